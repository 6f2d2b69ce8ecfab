"""Text of people and agents on an issue (SEC, ISS-6): what is read of it, and how it is shown again.

One way in: `readable` for bodies, comments and the text of `/retry`, `readable_line` for titles. One way out: `quoted`,
in which no line is a command or a mark, no one is mentioned and no issue is closed.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from aiflow.domain.request import UNCLEAN
from aiflow.domain.untrusted import clean, clean_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# Characters of no meaning: a place in a text is marked with one, its number and the other, and found again after the
# parser.
_OPEN, _CLOSE = "\ue000", "\ue001"
_OWN = re.compile(f"[{_OPEN}{_CLOSE}]")
_PLACE = re.compile(rf"(?:\[[ xX]\]\s+)?{_OPEN}(\d+){_CLOSE}")
_BREAKS = ("softbreak", "hardbreak")
# What stands for anything in a line that is not plain text: code, a tag, an escaped character.
_NOT_TEXT = "\ufffc"
_MENTION = re.compile(r"@(?=\w)")
# By these words in a pull request or a commit GitHub closes the issue that they name.
_CLOSING = re.compile(
    r"(\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b[\s:*_`>(\[]*(?:[\w.-]+/[\w.-]+)?"
    r"(?:#|GH-|https?://[^\s/]+/[\w.-]+/[\w.-]+/(?:issues|pull)/))(?=\d)",
    re.IGNORECASE,
)
_CUT = "…"


def readable(text: str) -> str:
    """Return a Markdown text of somebody as a person sees it, with plain line ends."""
    return clean(text.replace("\r\n", "\n")).text.strip("\n")


def readable_line(text: str) -> str:
    """Return a title as a person sees it: one line, nothing hidden in it."""
    return UNCLEAN.sub(" ", clean_plain(text).text).strip()


def quoted(text: str, most_characters: int = 4000) -> str:
    """Quote what an agent or a program wrote: each line begins with `>`, so none is a command or a mark."""
    shown = readable(text)
    if len(shown) > most_characters:
        shown = shown[:most_characters].rstrip() + _CUT
    return "\n".join(f"> {line}".rstrip() for line in harmless(shown).splitlines())


def harmless(text: str) -> str:
    """Take from a text what GitHub would act on: it mentions no one, and closes no issue."""
    return without_closing(_MENTION.sub("@\u2060", text))


def without_closing(text: str) -> str:
    """Keep a text from closing issues, wherever it is merged."""
    return _CLOSING.sub("\\1\u2060", text)


def lines_with(pattern: re.Pattern[str], text: str, *, in_lists: bool = False) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern whose group `it` begins a line of plain text.

    Not in code, quotes or HTML, and not in lists unless asked for.
    """
    text = _OWN.sub(" ", text)
    found = list(pattern.finditer(text))
    if not found:
        return
    marked = "".join(
        f"{text[before : match.start('it')]}{_OPEN}{number}{_CLOSE}"
        for number, (before, match) in enumerate(zip([0, *(m.start("it") for m in found)], found, strict=False))
    )
    shown = set(_places(marked + text[found[-1].start("it") :], in_lists=in_lists))
    yield from (match for number, match in enumerate(found) if number in shown)


def _places(text: str, *, in_lists: bool) -> Iterator[int]:
    """Yield the numbers that begin a line of a paragraph outside quotes, and outside lists."""
    quotes = lists = 0
    is_paragraph = False
    for token in _parser().parse(text):
        quotes += token.nesting if token.type.startswith("blockquote") else 0
        lists += token.nesting if token.type.endswith("_list_open") or token.type.endswith("_list_close") else 0
        if token.type != "inline":
            is_paragraph = token.type == "paragraph_open"
        elif is_paragraph and not quotes and (in_lists or not lists):
            for line in _shown_lines(token.children or []):
                if place := _PLACE.match(line):
                    yield int(place[1])


def _shown_lines(tokens: list[Token]) -> list[str]:
    """Return a paragraph's lines; what is not plain text in them is one character."""
    parts = (
        "\n" if token.type in _BREAKS else token.content if token.type == "text" else _NOT_TEXT for token in tokens
    )
    return "".join(parts).split("\n")


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": 20}).disable("text_join")
