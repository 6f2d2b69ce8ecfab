"""What git obeys in the folder that all worktrees share is no run's to change (SEC): compared around agents and tests.

It is not undone: it may be a person's. Another attempt would find it as it is now, so the run stops for a person.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.runs.events import stopped
from aiflow.messages.details import words
from aiflow.usecases.runs.ending import end_run

if TYPE_CHECKING:
    from aiflow.domain.runs.run import RunError
    from aiflow.ports import StepLog
    from aiflow.usecases.runs.work import Work

REFUSED = "CHANGES_REFUSED"


class Obeyed:
    """What git obeys as it is now, to be compared with later."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._before = self._look()

    def why_refused(self, log: StepLog, command: str, code: str = REFUSED) -> RunError | None:
        """Return why the run may not continue, if something was changed meanwhile."""
        before, after = self._before, self._look()
        changed = ", ".join(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))
        if not changed:
            return None
        told = words("stop.git_settings", git_settings=changed)
        log.say(f"[aiflow] {told}")
        why = self._work.failure(code, told, log, command)
        return replace(why, facts=(*why.facts, ("git_settings", changed)))

    def _look(self) -> dict[str, str]:
        return dict(self._work.engine.merging.obeyed(self._work.run.place))


def stop_for(work: Work, why: RunError) -> None:
    """Stop the run: only a person can judge what git is to obey."""
    end_run(work, stopped(work.run, why, work.engine.time.now()))
