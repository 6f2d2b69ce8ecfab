"""Untrusted text (SEC): what an agent is given of it, and what is hidden in it from a person's eyes.

A request is data, and a person answers for it: so an agent gets what a person can see, and a person can see what was
kept back. `clean` is for Markdown, `clean_plain` for plain text such as a log.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.untrusted.characters import find_invisible, spell
from aiflow.domain.untrusted.definitions import find_unused
from aiflow.domain.untrusted.kinds import MARKUP, Cut, HiddenKind
from aiflow.domain.untrusted.markup import find_unshown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_LISTED = 200
MAX_SHOWN = 300
# A note of aiflow's own, as in a new request's body: kept from agents like any other, but no news to anybody.
_OWN_COMMENT = re.compile(r"<!-- aiflow:[^\n]*-->")
_LONE_RETURN = re.compile(r"\r(?!\n)")


class Hidden(NamedTuple):
    """One hidden piece: what kind it is, in which line it begins, and what it says; of characters, how many."""

    kind: HiddenKind
    line: int
    shown: str
    amount: int = 1


class CleanText(NamedTuple):
    """A text as an agent gets it, the first hidden pieces of it, and how many of each kind there are."""

    text: str
    hidden: tuple[Hidden, ...] = ()
    counts: Mapping[HiddenKind, int] = {}


def clean(text: str) -> CleanText:
    """Take out of a Markdown text what a person who reads it does not see."""
    cuts = _find_all(text)
    return _cleaned(text, cuts, _settled(_without(text, cuts))) if cuts else CleanText(text)


def clean_plain(text: str) -> CleanText:
    """Take the invisible characters out of a plain text; what is a comment in Markdown is seen there."""
    cuts = list(find_invisible(text))
    return _cleaned(text, cuts, _without(text, cuts)) if cuts else CleanText(text)


def reveal(text: str) -> str:
    """Write a Markdown text with all that `clean` takes out made visible between ⟨ and ⟩."""
    return _revealed(text, _find_all(text))


def reveal_plain(text: str) -> str:
    """Write a plain text with its invisible characters as numbers between ⟨ and ⟩."""
    return _revealed(text, list(find_invisible(text)))


def tally(texts: Iterable[CleanText]) -> dict[HiddenKind, int]:
    """Count what several texts hide, by kind."""
    counts: Counter[HiddenKind] = Counter()
    for cleaned in texts:
        counts.update(cleaned.counts)
    return {kind: counts[kind] for kind in HiddenKind if counts[kind]}


def _find_all(text: str) -> list[Cut]:
    """Find everything hidden, in order; a hidden character inside a comment belongs to the comment."""
    markup = _find_markup(text)
    starts = [cut.start for cut in markup]
    free = []
    for cut in find_invisible(text):
        index = bisect_right(starts, cut.start) - 1
        if index < 0 or cut.start >= markup[index].end:
            free.append(cut)
    return sorted([*markup, *free])


def _find_markup(text: str) -> list[Cut]:
    """Find what a page does not show; what overlaps is one piece, of the kind that begins first."""
    if "<" not in text and "]:" not in text:
        return []
    lines = _LONE_RETURN.sub("\n", text)  # ends a line for a page, and offsets stay
    unshown = find_unshown(lines)
    merged: list[Cut] = []
    for cut in sorted([*unshown.cuts, *find_unused(lines, unshown)]):
        if merged and cut.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(cut.end, merged[-1].end))
        else:
            merged.append(cut)
    return merged


def _without(text: str, cuts: Iterable[Cut]) -> str:
    return "".join(part if cut is None else cut.instead for part, cut in _parts(text, cuts))


def _parts(text: str, cuts: Iterable[Cut]) -> Iterator[tuple[str, Cut | None]]:
    """Yield the text piece by piece, the hidden ones with their cut."""
    at = 0
    for cut in cuts:
        yield text[at : cut.start], None
        yield text[cut.start : cut.end], cut
        at = cut.end
    yield text[at:], None


def _settled(text: str) -> str:
    """Keep what is left from becoming hidden itself, now that something between its parts is gone.

    It was there to be seen, so it stays, parted by a blank: `<! --` is no comment. Thus nothing is found a second time.
    """
    for _ in range(3):
        cuts = _find_markup(text)
        if not cuts:
            return text
        spots = sorted(cut.start + 1 if text[cut.start] == "<" else text.index("]:", cut.start) + 1 for cut in cuts)
        text = " ".join(text[a:b] for a, b in pairwise([0, *spots, len(text)]))
    return text.replace("<", "< ").replace("]:", "] :") if _find_markup(text) else text


def _cleaned(text: str, cuts: list[Cut], kept: str) -> CleanText:
    counts: Counter[HiddenKind] = Counter()
    hidden: list[Hidden] = []
    line, at = 1, 0
    for run in _runs(cuts):
        first, last = run[0], run[-1]
        if _OWN_COMMENT.fullmatch(text, first.start, last.end):
            continue
        amount = 1 if first.kind in MARKUP else last.end - first.start
        counts[first.kind] += amount
        if len(hidden) < MAX_LISTED:
            line += text.count("\n", at, first.start)
            at = first.start
            said = text[first.start : last.end]
            hidden.append(Hidden(first.kind, line, _shorten(_say(first.kind, said)), amount))
    return CleanText(kept, tuple(hidden), dict(counts))


def _runs(cuts: Iterable[Cut]) -> Iterator[list[Cut]]:
    """Yield the pieces, hidden characters of one kind that follow each other as one."""
    run: list[Cut] = []
    for cut in cuts:
        if run and (cut.kind in MARKUP or cut.kind is not run[-1].kind or cut.start != run[-1].end):
            yield run
            run = []
        run.append(cut)
    if run:
        yield run


def _revealed(text: str, cuts: list[Cut]) -> str:
    shown: list[str] = []
    at = 0
    for run in _runs(cuts):
        start, end = run[0].start, run[-1].end
        shown += (text[at:start], f"⟨{_say(run[0].kind, text[start:end])}⟩", _line_end(text[start:end], run[0]))
        at = end
    return "".join(shown) + text[at:]


def _line_end(said: str, cut: Cut) -> str:
    return "\n" if "\r" in said and cut.kind is HiddenKind.CONTROL else ""


def _say(kind: HiddenKind, text: str) -> str:
    """Write what is hidden so that it can be seen: characters as numbers, also inside a comment."""
    return reveal_plain(text) if kind in MARKUP else spell(text)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


__all__ = ["Cleaned", "Hidden", "HiddenKind", "clean", "clean_plain", "reveal", "reveal_plain", "tally"]
