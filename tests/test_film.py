"""The README's animated picture shows what the program does: its words, not its seconds."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

import film
from aiflow.messages import Texts
from doc_examples import TOKEN, fenced

ROOT = Path(__file__).resolve().parents[1]
SVG = "{http://www.w3.org/2000/svg}"
DURATION = re.compile(r"\d+ ?(?:s|min|秒|分)(?=\s|$)")
LANGUAGES = {"en": "README.md", "ja": "README.ja.md"}


def told(line: str) -> str:
    """Return a line without what differs from run to run: times, ids, and so the gaps between columns."""
    same = TOKEN.sub(lambda match: match.lastgroup or "", line)
    return "".join(film.CLOCK.sub("", DURATION.sub("", same)).split())


def scenes(language: str) -> list[list[str]]:
    """Return every frame of the picture, as the lines that it shows."""
    drawing = ElementTree.parse(ROOT / f"docs/pictures/demo.{language}.svg").getroot()
    lines = {line.get("id"): " ".join(line.itertext()) for line in drawing.iterfind(f"{SVG}defs/{SVG}g")}
    (strip,) = (group for group in drawing.iterfind(f"{SVG}g") if group.get("class") == "film")
    return [[told(lines[use.attrib["href"][1:]]) for use in scene] for scene in strip]


@pytest.mark.parametrize(("language", "readme"), LANGUAGES.items())
def test_the_picture_shows_what_the_readme_shows(language: str, readme: str) -> None:
    first_screen = next(fenced((ROOT / readme).read_text("utf-8"), "console")).splitlines()[1:]
    end = Texts(language)("demo.next")
    wanted = [told(line) for line in first_screen if line.strip() not in {"", "…", end}]
    seen = {line for scene in scenes(language) for line in scene}
    assert [line for line in wanted if not any(each.startswith(line.removesuffix("…")) for each in seen)] == []
    assert "![aiflow demo" in (ROOT / readme).read_text("utf-8")
    assert f"(docs/pictures/demo.{language}.svg)" in (ROOT / readme).read_text("utf-8")


@pytest.mark.contract
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_picture_is_what_the_demo_shows_at_a_terminal(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIFLOW_DEMO_SECONDS", "0")
    texts = Texts(language)
    with tempfile.TemporaryDirectory() as home:  # no longer a path than that of the picture, which stands on one line
        written = film.record(language, Path(home))
    last = film.frames(written, texts)[-1].screen
    drawn = scenes(language)
    assert [words for line in last if (words := told(film.words_of(line)))] == [line for line in drawn[-1] if line]

    terminal = film.Terminal()
    for each in film.until_the_end(written, texts):
        terminal.take(each.text)
    stayed = [told(film.words_of(tuple(line))) for line in terminal.lines]
    seen = {line for scene in drawn for line in scene}
    assert [line for line in stayed if line and line not in seen] == []


def test_the_terminal_draws_again_what_is_written_over() -> None:
    terminal = film.Terminal()
    terminal.take("one\r\n\x1b[1;36m▶ two\x1b[0m  three\r\n\r\x1b[2K\x1b[1A\x1b[2Kfour\r\n期日\x1b[90mdue")
    assert [film.words_of(line) for line in terminal.screen()] == ["one", "four", "期日due"]
    assert terminal.screen()[2] == (film.Piece(0, "期日", ""), film.Piece(4, "due", "g"))
    terminal.take("\r\n" * film.ROWS)
    assert len(terminal.screen()) == film.ROWS
    with pytest.raises(ValueError, match="H"):
        terminal.take("\x1b[2;2H")


def test_a_clock_that_runs_is_no_frame_of_its_own() -> None:
    written = [film.Written(n, f"\r\x1b[2K   00:0{n}  testing") for n in range(3)]
    shown = film.frames([*written, film.Written(9, "\r\x1b[2Kdone")], Texts("en"))
    assert [film.words_of(frame.screen[1]) for frame in shown] == ["", "   00:00  testing", "done"]
    assert [frame.seconds for frame in shown] == [film.SHORTEST_SECONDS, film.LONGEST_SECONDS, film.LAST_SECONDS]
