"""The English (ERR-1): plain and idiomatic, one word for a thing, wherever a person reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import pytest

from aiflow.settings import TABLE
from interfaces.english import NOT_ENGLISH, ROOT, SOURCE, TRUE_USES, described, explained, shown, strings

# In texts that we show, not only on pages that explain.
NOT_ON_SCREEN = {
    "its own": r"\bof (?:its|their|your) own\b",
    "is": r"\bstands? (?:in|at|under|there|twice)\b",
    "spaces": r"(?<=[a-z.,;]) {2}(?=[A-Za-z])",
    "one period": r"(?<![.'])\.\.(?![.'])",
    "runs: 1": r"\{(?:count|n|runs|number)\} (?:request|run|task|step|file|session)s? (?:is|was|has)\b",
}
NAMES = (
    r"AWS|Amazon|API|CI|CSV|DynamoDB|Docker|English|GitHub|Git|HTTP|ID|JSON|Java|Japanese|Landlock|Linux|Local|P[0-3]|"
    r"README|TOML|URL|US|WSL2|Windows|FAILED|Ctrl-C|Auto-run|Enter|I"
)


def found(what: str, texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    wanted = re.compile(what, re.IGNORECASE)
    return [(where, text) for where, text in texts if wanted.search(text)]


def right(texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The texts without the phrases in which such a word is right."""
    return ((where, TRUE_USES.sub("x", text)) for where, text in texts)


@pytest.mark.spec("ERR-1")
@pytest.mark.parametrize("instead", NOT_ENGLISH)
def test_what_is_shown_and_explained_is_plain_english(instead: str) -> None:
    assert found(NOT_ENGLISH[instead], right(shown())) == []
    assert found(NOT_ENGLISH[instead], right(explained())) == []
    assert found(NOT_ENGLISH[instead], right(described())) == []


WRONG = (
    "The run goes on. The way on is shown. It tells its cost. The agent is told. Of that nothing is said.",
    "Nobody holds the lock. It is alive. The runner died. It starts by itself, a program of yours.",
    "You mend it, see to it, put it down, let go of it. The files behind the run are made anew.",
    "It works also if you stop. Who writes to it is heard. Whoever reads it waits. The command leaves with 3.",
    "Brackets: by what stands in them. It shall stop all the same, while a run is under way. Please wait.",
)
RIGHT = "Behind a proxy, behind 3 other tasks, in a worktree of its own, any of yours."


@pytest.mark.spec("ERR-1")
def test_every_pattern_finds_its_word_and_no_right_use() -> None:
    unused = {instead for instead, what in NOT_ENGLISH.items() if not found(what, (("", text) for text in WRONG))}
    assert unused == set()
    assert [instead for instead, what in NOT_ENGLISH.items() if found(what, right([("", RIGHT)]))] == []


@pytest.mark.spec("ERR-1")
@pytest.mark.parametrize("instead", NOT_ON_SCREEN)
def test_what_is_shown_is_written_with_care(instead: str) -> None:
    layout = ("why.", "forecast.hint", "init.", "new.next", "runner.", "auto.", "next.", "list.empty", "show.", "set.")
    examples = (".examples", "init.example", "completion.man")
    kept = [(where, text) for where, text in shown() if not where.endswith(".examples")]
    if instead == "spaces":  # columns that a view lines up
        kept = [(where, text) for where, text in kept if not where.startswith((*layout, "standing.", "edit."))]
    assert found(NOT_ON_SCREEN[instead], iter(each for each in kept if not each[0].startswith(examples))) == []


def glossary() -> dict[str, str]:
    """The words that the glossary's English table tells us not to use, and those that we use."""
    page = (
        (ROOT / "docs/glossary.md").read_text(encoding="utf-8").partition("\n## In English\n")[2].partition("\n## ")[0]
    )
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")][1:]
    return {word.strip(): use for use, other, *_ in rows for word in other.split(",") if word.strip()}


@pytest.mark.spec("ERR-1")
def test_there_is_one_english_word_for_each_thing() -> None:
    words = glossary()
    assert {"working tree", "approve", "ticket"} <= set(words)
    every = r"\b(?:" + "|".join(sorted(words, key=len, reverse=True)) + r")s?\b"
    assert found(every, shown()) == []
    assert found(f"(?-i:{every})", explained()) == []
    assert found(f"(?-i:{every})", described()) == []


@pytest.mark.spec("ERR-1")
def test_titles_and_buttons_are_in_sentence_case() -> None:
    messages = json.loads((SOURCE / "messages/messages.v1.en.json").read_text(encoding="utf-8"))
    titles = {code: entry["title"] for code, entry in messages.items()}
    titles |= {
        key: text for key, text in shown() if key.startswith(("web.", "cli.", "init.", "report.")) and "." not in text
    }
    inner = re.compile(rf"(?<=[a-z,] )(?!(?:{NAMES})\b)[A-Z][a-z]+")
    spoken = ("web.weekday", "web.month", "web.taken", "web.keys")
    assert {
        key: hit[0] for key, text in titles.items() if not key.startswith(spoken) and (hit := inner.search(text))
    } == {}
    assert [
        code
        for code, entry in messages.items()
        if entry["title"][:1].islower() and not entry["title"].startswith("aiflow")
    ] == []


@pytest.mark.spec("ERR-1")
def test_summaries_end_as_sentences_and_titles_and_actions_do_not() -> None:
    messages = json.loads((SOURCE / "messages/messages.v1.en.json").read_text(encoding="utf-8"))
    for code, entry in messages.items():
        assert re.search(r"[.:]$|\{\w+\}'?$", entry["summary"]), code
        assert not [text for text in (entry["title"], *strings(entry["actions"])) if text.endswith(".")], code
        assert not [
            text for text in strings(entry["actions"]) if text[:1].islower() and not text.startswith("aiflow")
        ], code


@pytest.mark.spec("ERR-1", "CFG")
def test_the_meaning_of_a_setting_is_a_phrase() -> None:
    said = dict(shown())
    meanings = [said[f"setting.{setting.name}"] for setting in TABLE if f"setting.{setting.name}" in said]
    assert len(meanings) > 50
    assert [text for text in meanings if text.endswith(".") or text[:1].islower()] == []
