"""Further work that an agent proposes (REQ-10, AGT-3): read from an answer, whatever that holds.

What an agent writes here is an offer beside its work: an odd one is left out, and never spoils the answer.
"""

from __future__ import annotations

from typing import NamedTuple

from aiflow.domain.agents.plain_text import plain
from aiflow.domain.agents.plan import one_line, whole

MAX_TITLE, MAX_BODY = 120, 4_000


class Proposal(NamedTuple):
    """Further work, as an agent names and describes it: a title on one line, a text that may be empty."""

    title: str
    body: str = ""


def read_proposals(raw: object) -> tuple[Proposal, ...]:
    """Read `follow_ups`: a list of titles with texts, a single one, or whatever else was answered."""
    entries = raw if isinstance(raw, list) else [raw]
    return tuple(filter(None, map(_read_proposal, entries)))


def _read_proposal(raw: object) -> Proposal | None:
    """Read one; without a title its text has to give it one."""
    given = raw if isinstance(raw, dict) else {"title": raw}
    title, body = (text if isinstance(text, str) else "" for text in (given.get("title"), given.get("body")))
    text = whole(plain(body)).strip()
    line = _title(title) or _title(next(iter(text.splitlines()), ""))
    return Proposal(line, _cut(text, MAX_BODY)) if line else None


def _title(text: str) -> str:
    """Make one line of a title, without what would make a heading of it or end one."""
    return _cut(one_line(whole(plain(text))).strip("# "), MAX_TITLE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
