"""The commits on which the tests pass (RUN-17): `.aiflow/baselines.json`, atomic; only what passed is remembered."""

from __future__ import annotations

import json
from pathlib import Path

from aiflow.adapters.files.atomic_files import STATE_DIR, read_own, replace_file, state_dir, translated

NAME = "baselines.json"
MAX_BYTES = 1_000_000
# As many are remembered, the newest: a run starts from where its base branch stands now.
MOST_KEPT = 200


class BaselineFile:
    """The `Baselines` port, on disk; of two that write at once one note may be lost, and its tests run again."""

    def __init__(self, root: Path | str) -> None:
        self._root = Path(root)
        self._path = self._root / STATE_DIR / NAME

    def passed(self, how: str) -> tuple[str, ...]:
        """Return the commits on which the tests passed in a certain way, oldest first; what cannot be read did not."""
        return tuple(commit for known, commit in self._notes() if known == how)

    def note_passed(self, how: str, commit: str) -> None:
        """Remember that they did; the oldest are forgotten."""
        notes = [*(note for note in self._notes() if note != [how, commit]), [how, commit]][-MOST_KEPT:]
        with translated(self._path):
            replace_file(self._path, f"{json.dumps({'passed': notes})}\n".encode(), state_dir(self._root, "tmp"))

    def _notes(self) -> list[list[str]]:
        try:
            kept = json.loads(read_own(self._path, MAX_BYTES))["passed"]
        except (OSError, KeyError, TypeError, ValueError, RecursionError):
            return []
        return [note for note in kept if _is_note(note)] if isinstance(kept, list) else []


def _is_note(note: object) -> bool:
    return isinstance(note, list) and len(note) == 2 and all(isinstance(each, str) for each in note)
