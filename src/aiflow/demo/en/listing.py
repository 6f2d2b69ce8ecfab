"""How the list looks."""

from __future__ import annotations


def lines(things: list[dict]) -> list[str]:
    """Return the list as lines of text."""
    shown = [line(number, thing) for number, thing in in_order(things)]
    return shown


def in_order(things: list[dict]) -> list[tuple[int, dict]]:
    """Return the things with their numbers, in the order in which they are shown."""
    return list(enumerate(things, start=1))


def line(number: int, thing: dict) -> str:
    """Return the line of one thing."""
    tick = "x" if thing["done"] else " "
    return f"{number:>2} [{tick}] {thing['text']}"
