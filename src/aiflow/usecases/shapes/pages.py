"""A part of a list as plain data (API-2): a page with how many entries there are, and where to continue."""

from __future__ import annotations

from typing import Any, Protocol


class Paged(Protocol):
    """A list of which only a part may have been asked for."""

    @property
    def total(self) -> int:
        """How many entries there are in all."""

    @property
    def next_after(self) -> str | int | None:
        """Where the next part begins; None after the last."""


def with_page(shape: dict[str, Any], found: Paged) -> dict[str, Any]:
    """Add to a list's shape what is needed to ask for the next part."""
    return {**shape, "total": found.total, "next_after": found.next_after}
