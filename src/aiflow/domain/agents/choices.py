"""What a question can be answered with (RUN-10): shown with numbers, and picked by number or by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def numbered(choices: Sequence[str]) -> list[str]:
    """Show choices, one to a line, as a person picks them."""
    return [f"{number}. {' '.join(choice.split())}" for number, choice in enumerate(choices, 1)]


def picked(answer: str, choices: Sequence[str]) -> str:
    """Return the choice that an answer means, by its number or its name in any case; else the answer as it is."""
    said = answer.strip().removesuffix(".")
    if said.isascii() and said.isdigit() and len(said) < 10 and 1 <= int(said) <= len(choices):
        return choices[int(said) - 1]
    return next((choice for choice in choices if choice.strip().casefold() == answer.strip().casefold()), answer)
