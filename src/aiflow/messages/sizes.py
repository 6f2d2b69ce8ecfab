"""Sizes of files in words, the same in every language."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiflow.domain.runs.worktree import LargeFile


def named_with_sizes(large: tuple[LargeFile, ...]) -> str:
    """Name large files with their sizes, as a message does."""
    return ", ".join(f"{file.path} ({size_text(file.size)})" for file in large)


def size_text(count: int) -> str:
    """Write a number of bytes in the unit that fits."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
