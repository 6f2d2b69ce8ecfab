"""Runs for a process that stays (PRF-7): a `stage.json` is not read again until it has changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aiflow.adapters.files.file_marks import is_telling, mark_of
from aiflow.adapters.run_folders.run_files import STAGE, RunFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from aiflow.adapters.files.file_marks import Mark
    from aiflow.domain.run_summary import RunSummary

# So many are remembered; in a checkout with more the others are read again.
MOST_REMEMBERED = 20_000


class RememberedRuns(RunFiles):
    """Reads the runs below one root, those that changed since the last time; for any number of threads."""

    def __init__(self, root: Path | str) -> None:
        super().__init__(root)
        self._known: dict[str, tuple[Mark, RunSummary]] = {}
        self._with_records: dict[str, tuple[Mark, RunSummary]] = {}

    def _summed_up(self, request_id: str, run_id: str) -> RunSummary:
        return self._remember(self._known, request_id, run_id, super()._summed_up)

    def _recorded(self, request_id: str, run_id: str) -> RunSummary:
        return self._remember(self._with_records, request_id, run_id, super()._recorded)

    def _remember(
        self,
        known: dict[str, tuple[Mark, RunSummary]],
        request_id: str,
        run_id: str,
        read: Callable[[str, str], RunSummary],
    ) -> RunSummary:
        """Return what is known of a run, read again if its file has changed since."""
        path = f"{self._folder}/{request_id}/{run_id}/{STAGE}"
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError:
            return read(request_id, run_id)
        mark, before, is_kept = mark_of(status), known.get(path), is_telling(status)
        if before is not None and before[0] == mark:
            return before[1]
        summary = read(request_id, run_id)
        if is_kept:
            if len(known) >= MOST_REMEMBERED:
                known.clear()
            known[path] = (mark, summary)
        return summary
