"""Lines of logs: a terminal's colours, headings, commands and failures, alike on the page and in the browser."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiflow.web
from aiflow.web.text.ansi import ansi_line, show_ansi
from aiflow.web.text.log_lines import LogHeading, LogKind, view_line, view_log
from aiflow.web.text.rules import text_rules

HERE = Path(__file__).parent
STATIC = Path(aiflow.web.__file__).parent / "static"
ANSI_CASES = json.loads((HERE / "ansi_cases.json").read_text(encoding="utf-8"))
LOG_CASES = json.loads((HERE / "log_cases.json").read_text(encoding="utf-8"))
HEAD = "=== 2026-11-18T23:34:42+09:00 implementer S02 attempt 2"


def in_the_browser(lines: list[str], folder: Path) -> list[dict[str, Any]]:
    """Run lines through the ES modules, in node."""
    cases = folder / "lines.json"
    cases.write_text(json.dumps(lines), encoding="utf-8")
    for module in ("ansi.js", "log_lines.js", "text_rules.js"):  # `.js` is a module only where a package says so
        (folder / module).write_bytes((STATIC / module).read_bytes())
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    call = ["node", str(HERE / "text_cases.mjs"), str(folder), str(cases)]
    done = subprocess.run(call, capture_output=True, check=True)
    made: list[dict[str, Any]] = json.loads(done.stdout)
    return made


@pytest.mark.parametrize("case", ANSI_CASES, ids=lambda case: case["name"])
def test_colours_become_classes_and_nothing_is_obeyed(case: dict[str, Any]) -> None:
    assert [list(span) for span in ansi_line(case["line"]).spans] == case["spans"]


@pytest.mark.parametrize("case", LOG_CASES, ids=lambda case: case["line"][:40] or "empty")
def test_a_line_is_known_by_its_text(case: dict[str, Any]) -> None:
    line = view_line(case["line"], 7)
    assert (line.number, line.kind) == (7, case["kind"])
    told = line.heading._asdict() if line.heading else {}
    assert {name: told.get(name) for name in case.get("heading", {})} == case.get("heading", {})
    assert (line.kind is LogKind.HEADING) == (line.heading is not None)


def test_the_browser_reads_lines_as_the_page_does(tmp_path: Path) -> None:
    lines = [case["line"] for case in (*ANSI_CASES, *LOG_CASES)] + ["x" * 5_000, "🎉" * 5_000]
    for line, made in zip(lines, in_the_browser(lines, tmp_path), strict=True):
        seen = view_line(line, made["number"])
        assert made["spans"] == [list(span) for span in ansi_line(line).spans], line
        assert (made["kind"], made["text"], made["leftOut"]) == (seen.kind, seen.text, seen.left_out), line
        told = {
            name: part for name, part in (seen.heading._asdict() if seen.heading else {}).items() if part is not None
        }
        assert {name: part for name, part in (made["heading"] or {}).items() if part is not None} == told
        drawn = [[node.get("text", node.get("textContent")), node.get("className", "")] for node in made["nodes"]]
        assert drawn == made["spans"]


def test_every_rule_has_a_case() -> None:
    # A pattern that no line needs is a guess.
    for name, kind in (("failing", "bad"), ("passing", "ok")):
        lines = [ansi_line(case["line"]).spans for case in LOG_CASES if case["kind"] == kind]
        texts = ["".join(span.text for span in spans) for spans in lines]
        for each in text_rules()[name]:
            assert any(re.search(each["pattern"], text, re.ASCII) for text in texts), each


def test_a_log_is_numbered_from_its_begin_and_shown_from_its_end() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 11)) + "FAILED (failures=1)\n\n"
    view = view_log(text, most=4)
    assert [(line.number, line.text) for line in view.lines] == [
        (9, "line 9"),
        (10, "line 10"),
        (11, "FAILED (failures=1)"),
        (12, ""),
    ]
    assert (view.left_out, view.failing, view.next_number) == (8, (11,), 13)
    assert view_log("") == ((), 0, ())
    assert view_log("").next_number == 1
    assert view_log("a\nb", first=5).lines[0].number == 5


def test_a_line_ends_only_where_the_log_ends_it() -> None:
    view = view_log("one\u2028still\x0bone\x85\ntwo\r\n")
    assert [line.text for line in view.lines] == ["one\\u2028still\\x0bone\\x85", "two"]


def test_a_heading_is_told_by_its_parts() -> None:
    heading = view_line(HEAD, 1).heading
    title, time = "implementer S02 attempt 2", "2026-11-18T23:34:42+09:00"
    assert heading == LogHeading("role", title, time, role="implementer", step="S02", attempt=2)


def test_a_line_is_drawn_as_text() -> None:
    assert show_ansi('\x1b[31m<img src=x onerror="a()">\u202e') == (
        '<span class="ansi-1">&lt;img src=x onerror=&#34;a()&#34;&gt;</span><span class="unseen">\\u202e</span>'
    )


def test_a_long_line_is_cut_and_counted() -> None:
    line = view_line("\udcff" + "x" * 10_000_000, 1)
    assert (line.left_out, len(line.text)) == (10_000_001 - 4_000, 4_003)
    assert line.html.encode().startswith(b'<span class="unseen">\\xff</span>xxx')


@given(
    st.text(st.one_of(st.characters(), st.sampled_from("\x1b[]0123456789;:mK\r\x07\x9b<>&\"'\udcff\ud800\u202e\u200d")))
)
def test_any_line_can_be_drawn_and_sent(line: str) -> None:
    seen = view_line(line, 1)
    seen.html.encode()
    assert not any(ord(letter) < 32 and letter not in "\t\n" for letter in seen.text)
    assert {"<", ">"} & set(seen.html.replace("</span>", "").replace('<span class="', "").replace('">', "")) == set()


def test_the_browser_and_the_page_agree_about_noise(tmp_path: Path) -> None:
    # Drawn by chance, but the same each time: what fails here can be seen again.
    chance = random.Random(15)
    letters = "\x1b\x1b\x1b[[[[0123456789;;:mmmmKP]\\\r\x07\x9bab \udcff\u202e\u200d\ufe0f\u20e3é日🎉"
    lines = ["".join(chance.choices(letters, k=chance.randrange(40))) for _ in range(3_000)]
    for line, made in zip(lines, in_the_browser(lines, tmp_path), strict=True):
        assert made["spans"] == [list(span) for span in ansi_line(line).spans], ascii(line)
