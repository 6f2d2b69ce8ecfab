"""The commits on which the tests pass, in memory (RUN-17)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class MemoryBaselines:
    """The `Baselines` port: what was noted is known."""

    notes: list[tuple[str, str]] = field(default_factory=list)

    def passed(self, how: str) -> tuple[str, ...]:
        """Return the commits on which the tests passed in a certain way, oldest first."""
        return tuple(commit for known, commit in self.notes if known == how)

    def note_passed(self, how: str, commit: str) -> None:
        """Remember that they did."""
        self.notes = [*(note for note in self.notes if note != (how, commit)), (how, commit)]
