"""The Japanese (ERR-1): one rule for blanks and one word for a thing, wherever a person reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.cli.main import COMMANDS
from aiflow.cli.terminal.layout import display_width

ROOT = Path(__file__).parents[2]
LETTER = "[ぁ-ゖァ-ヺー一-鿿々]"
COUNTERS = "件|回|秒|分|時間|日|行|個|つ|文字|番|バイト"
# Facts that are whole numbers, and those that are Japanese themselves; all others stand for a Latin word or a path.
NUMBERS = re.compile(
    "attempt|attempts|of|changed|gone|tended|problems|warnings|"
    "begin|bytes|calls|clock|day|end|failed|n|waited|cancelled|complete|count|days|done|error|first_line|hours|left|len|limit|line|minutes|most|nargs|number|"
    "place|ready|runnable|runs|seconds|shown|tasks|total|unreached"
)
JAPANESE = {"wanted", "month", "since", "weekday", "worked"}
# The user's own words, which tests/interfaces/test_messages.py keeps to the letter.
AS_GIVEN = ("QUEUE_IN_PROGRESS", "同一RequestのRunが実行中です", "実行可能なrequestなし")

BLANKS = {
    "no blank beside a Latin word": re.compile(rf"{LETTER}[A-Za-z`<]|[A-Za-z`>/]{LETTER}"),
    "blank before a number": re.compile(rf"{LETTER} \d+(?:\.\d+)?(?![\w.:-])"),
    "blank after a number": re.compile(rf"(?<![A-Za-z0-9.:=_-] )(?<![A-Za-z0-9.:=_-])\d+(?:\.\d+)? {LETTER}"),
    "no blank after a version": re.compile(rf"[A-Za-z] \d+(?:\.\d+)?(?!{COUNTERS}|[\d.]){LETTER}"),
    "blank before a counter": re.compile(rf"\d (?:{COUNTERS})"),
    "blank beside a full-width mark": re.compile(
        r"[、。（）「」](?! {2}) (?![-|」])|[^\s|] [、。（）「」]|[^\sA-Za-z] …(?! -)"
    ),
    "half-width mark": re.compile(rf"{LETTER} ?[(!?,]|\){LETTER}|{LETTER} ?\.\.\.|～"),
}


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)


def texts() -> Iterator[tuple[str, str]]:
    """Every Japanese text that we wrote: where it is, and what it says."""
    catalogues = ("messages/ui.v1.ja.json", "messages/messages.v1.ja.json", "cli/click.ja.json")
    for path in (*(ROOT / "src/aiflow" / name for name in catalogues), ROOT / "docs/words.ja.json"):
        for key, value in json.loads(path.read_text(encoding="utf-8")).items():
            yield from ((key, text) for text in strings(value) if not {key, text} & set(AS_GIVEN))
    folders = (ROOT / "docs/ja", ROOT / "src/aiflow/demo/ja")
    pages = [ROOT / "README.ja.md", *(page for folder in folders for page in sorted(folder.rglob("*.md")))]
    pages = [page for page in pages if page.parent.name != "reference"]  # drawn from the catalogues
    for page in pages:
        prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        yield from ((f"{page.name}:{number}", line) for number, line in enumerate(prose.splitlines(), 1))


def as_read(text: str) -> str:
    """A text with its facts filled in, code as one word, and links as their words."""

    def fact(found: re.Match[str]) -> str:
        name = found[1]
        if name == "waiting" and "{request_id}" not in text:
            return "7"
        return "7" if NUMBERS.fullmatch(name) else "整数" if name in JAPANESE else "X"

    shown = re.sub(r"\]\([^)]*\)", "", re.sub(r"`[^`]*`", "`x`", text)).replace("[", "")
    return re.sub(r"\{(\w+)(?:![rs])?\}", fact, shown)


@pytest.mark.spec("ERR-1")
@pytest.mark.parametrize("what", BLANKS)
def test_blanks_follow_one_rule(what: str) -> None:
    assert [(where, text) for where, text in texts() if BLANKS[what].search(as_read(text))] == []


def other_words() -> set[str]:
    """The words that the glossary's Japanese table tells us not to use."""
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").partition("\n## In Japanese\n")[2]
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")][1:]
    return {word.strip() for row in rows for word in row[3].split(",") if word.strip()}


@pytest.mark.spec("ERR-1")
def test_there_is_one_word_for_each_thing() -> None:
    words = other_words()
    assert {"ワークツリー", "Task"} <= words
    latin = "|".join(word for word in words if word.isascii())
    other = "|".join(word for word in words if not word.isascii())
    not_used = rf"\b(?:{latin})(?= {LETTER})|(?<![ァ-ヺー])(?:{other})(?![ァ-ヺー])"
    # A term of ours has a capital; a command, an option and a key of a file are code or stand alone.
    small = rf"(?<![\w./'-])(?:request|run|step|runner|id|report)(?= {LETTER}|[、。（）])"
    old = r"既に|フォルダ(?!ー)|エディタ(?!ー)|サーバ(?!ー)"
    found = re.compile(f"{not_used}|{small}|{old}")
    assert [(where, hit[0]) for where, text in texts() if (hit := found.search(as_read(text)))] == []


@pytest.mark.spec("ERR-1")
def test_help_speaks_politely_and_actions_plainly() -> None:
    plain = re.compile(r"(?<![まで])[うくすつぬむるぐぶ]。$|ない。$")
    assert [
        (where, text) for where, text in texts() if where.startswith(("cli.", "option.")) and plain.search(text)
    ] == []
    polite = re.compile(r"(?:ます|です|ません|ください|ました)$")
    messages = json.loads((ROOT / "src/aiflow/messages/messages.v1.ja.json").read_text(encoding="utf-8"))
    actions = {code: list(strings(entry["actions"])) for code, entry in messages.items()}
    assert [(code, text) for code in actions for text in actions[code] if polite.search(text)] == []


@pytest.mark.spec("ERR-1")
def test_each_command_is_told_in_one_line_of_the_list() -> None:
    indent = max(len(name) for name in COMMANDS) + 4
    said = dict(texts())
    long = [name for name in COMMANDS if display_width(said[f"cli.{name}.short"]) > 79 - indent]
    assert long == []
