"""Hidden text as people see it reported (SEC): what a request hides, in words and as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.domain.untrusted import CleanText, clean, tally

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.domain.request import Request
    from aiflow.domain.untrusted import HiddenKind
    from aiflow.messages import Texts


def hidden_in(request: Request, body: str) -> dict[HiddenKind, int]:
    """Count what a request hides from a person who reads it, by kind."""
    return tally(cleaned for _, cleaned in _fields(request, body))


def hidden_words(counts: Mapping[HiddenKind, int], texts: Texts) -> str:
    """Say what is hidden, in one line."""
    return ", ".join(texts(f"hidden.{kind}", count=count) for kind, count in counts.items())


def hidden_shape(request: Request, body: str) -> list[dict[str, Any]]:
    """List what a request hides, as data: where it is, what it is, and what it says."""
    return [
        {"field": name, "kind": found.kind.value, "line": found.line, "amount": found.amount, "shown": found.shown}
        for name, cleaned in _fields(request, body)
        for found in cleaned.hidden
    ]


def _fields(request: Request, body: str) -> list[tuple[str, CleanText]]:
    titles = () if request.title in body else (("title", request.title),)  # a heading is reported once
    texts = (*titles, *(("labels", label) for label in request.labels), ("body", body))
    return [(name, clean(text)) for name, text in texts]
