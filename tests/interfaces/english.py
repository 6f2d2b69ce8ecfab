"""What test_english.py looks for: words that read as translated, where they are right all the same, and all our texts."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiflow.api.app import document

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/aiflow"
# What a clause says is left as it was written; Japanese has a test of its own.
LEFT_ALONE = ("README.ja.md", "docs/spec.md")
CODE = re.compile(r"^ *(```+)[^\n]*\n.*?^ *\1 *$|<!--.*?-->", re.DOTALL | re.MULTILINE)
# A table's row, a list's item, a heading or a paragraph.
PART = re.compile(
    r"^ *(?:\||[-*#]|\d+\.).*(?:\n(?! *(?:\||[-*#] |\d+\. )) *\S.*)*|^ *\S.*(?:\n(?! *[|#-]) *\S.*)*", re.MULTILINE
)
# Where the rule itself is, which names what not to write.
RULES = re.compile(r"^\*\*English\.\*\*.*?^$|^## In English$.*?(?=^## )", re.DOTALL | re.MULTILINE)

NOBODY = "answers|asks|began|can|cancelled|does|executes|gets|holds|knows|notices|reads|runs|sees|sits|takes|works"
# The table of the English rule: what to write instead, and what it replaces.
NOT_ENGLISH = {
    "continues, resumes": r"\b(?:go(?:es)?|going|went|gone) on\b(?! to\b)",
    "the next step": r"\bway on\b",
    "shows, reports": (
        r"\btells\b(?! \w+ from\b)|\b(?:is|are|was|were|been|being|gets?|not|only) told\b|\btells? of\b"
    ),
    "shows, lists": r"\b(?:says?|said) of\b|\b(?:is|are|was|were|be|been) said\b|\bsays? it of\b",
    "is free, it is unknown": rf"\bnobody (?:{NOBODY})\b|\bnobody's\b",
    "is running, is gone": r"\b(?:is|are|stays?|still) alive\b|\b(?:dead|dies|died)\b|\b(?:it|that|what|one) lives\b",
    "automatically": r"(?<!update )\bby (?:itself|themselves)\b|\bof its own accord\b",
    "fix": r"\bmend(?:s|ed|ing)?\b",
    "handle, check": r"\bsees? to (?!it that\b)",
    "release": r"\blet(?:s|ting)? (?:it )?go\b",
    "record": r"\bput(?:s|ting)? (?:\w+ )?down\b",
    "after, followed by": r"\bbehind\b",
    "again": r"\banew\b",
    "even if": r"\balso (?:after|if|through|though|when|while)\b",
    "if you …, anyone who": r"\bwhoever\b|(?:^|[.;] )(?-i:Who) [^?|:]+? (?:are|can|gets|has|is|may|must)\b",
    "exits": r"\bleaves? with \d|\b(?:it|runner|program|process|command) leaves(?! \w)|\bleaves? (?:at once|again|early)\b",
    "in progress": r"\bunder way\b",
    "anyway": r"\ball the same\b",
    "should, must": r"\bshall\b",
    "nothing: it is a machine": r"\bplease\b|\bsuccessfully\b|\boops\b|\bsorry\b",
    "is": r"\bstands (?:between|by|in|at|under|twice)\b|\bin brackets stands\b",
    "its, your": r"\bof (?:its|their|your) own\b|\bof (?:yours|ours)\b",
}
# Where such a word is right: taken out of a text before it is searched.
TRUE_USES = re.compile(
    r"behind a (?:path|proxy)"  # a place, not a time
    r"|behind (?:at least )?(?:…|\d+|\{count\}) other tasks?"  # a place in the queue
    r"|seconds behind GitHub's"  # what clocks are
    r"|left behind"  # by a crash, by a run
    r"|\ban? (?:[\w-]+ ){1,5}of (?:its|their|your) own"  # a thing that is separate
    r"|of (?:its|their|your) own (?!accord)[a-z]+"  # some of them
    r"|program of your own|worktrees of their own|(?:all|any|machine) of yours",
    re.IGNORECASE,
)


def strings(value: object) -> Iterator[str]:
    """The texts in a message, without its commands."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key not in ("do", "for"):
                yield from strings(each)


def shown() -> Iterator[tuple[str, str]]:
    """Every English text of the program: where it is, and what it says."""
    for name in ("messages/ui.v1.en.json", "messages/messages.v1.en.json"):
        for key, value in json.loads((SOURCE / name).read_text(encoding="utf-8")).items():
            yield from ((key, re.sub(r"`[^`]*`", "`x`", text)) for text in strings(value))


def without_code(where: str, text: str) -> Iterator[tuple[str, str]]:
    """The sentences of a Markdown text, whole over the ends of lines, without its code and the rule itself."""
    for hidden in (CODE, RULES):
        text = hidden.sub(lambda block: "\n" * block[0].count("\n"), text)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", lambda code: "x" + "\n" * code[0].count("\n"), text)
    for part in PART.finditer(text):
        yield f"{where}:{text.count(chr(10), 0, part.start()) + 1}", " ".join(part[0].split())


def explained() -> Iterator[tuple[str, str]]:
    """Every line of our pages and of the demo's requests."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(SOURCE / "demo/en").rglob("*.md")]
    for page in sorted(pages):
        name = str(page.relative_to(ROOT))
        if name not in LEFT_ALONE and not name.startswith(("docs/decisions/", "docs/ja/")):
            yield from without_code(name, page.read_text(encoding="utf-8"))


@functools.cache
def described() -> list[tuple[str, str]]:
    """Every line that describes a route, a value or a shape in the OpenAPI document."""
    found: list[tuple[str, str]] = []

    def look(value: Any, where: str) -> None:
        if isinstance(value, list):
            for number, each in enumerate(value):
                look(each, f"{where}/{number}")
        elif isinstance(value, dict):
            for key, each in value.items():
                if key == "description" and isinstance(each, str):
                    found.extend(without_code(f"{where}/{key}", each))
                look(each, f"{where}/{key}")

    look(document(), "openapi")
    return found
