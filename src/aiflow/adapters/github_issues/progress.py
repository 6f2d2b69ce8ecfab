"""The progress of runs at work, shown on their issues (ISS-9): beside the work, and at least every third of the TTL.

GitHub being away stops no run. What could not be written is written by a later turn, or by the next look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.adapters.github_issues.writing import marked_comment, post_once
from aiflow.domain.activity import About, Actor, refused
from aiflow.domain.issues.marks import find_mark
from aiflow.domain.issues.progress import is_current, signed
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.adapters.github_issues.book import IssueBook
    from aiflow.domain.issues.view import IssueView
    from aiflow.domain.runs.run import Run
    from aiflow.ports import Journal
    from aiflow.ports.issues import IssueHost
    from aiflow.ports.time import Beside

# What people want is heard this often while a run is at work.
LOOK_SECONDS = 30.0


@dataclass
class RunShown:
    """A run at work in this process: as it is now, what its comment says about it, and when that was written."""

    run: Run
    beside: Beside
    body: str = ""
    at: float | None = None
    is_dropped: bool = False


class ProgressComments:
    """The progress comments of the runs that this process works on."""

    def __init__(
        self,
        book: IssueBook,
        connect: Callable[[], IssueHost],
        words: Callable[[Run], str],
        journal: Journal,
        turn: Callable[[Run], None],
    ) -> None:
        self._book, self._connect, self._words, self._journal, self._act = book, connect, words, journal, turn
        self._shown: dict[str, RunShown] = {}

    def hear(self, run: Run) -> bool:
        """Hear of a run that was saved; returns whether it is new here."""
        known = self._shown.get(run.run_id)
        if known is not None:
            known.run = run
            if run.is_active:
                known.beside.poke()
            return False
        if not run.is_active:
            return False
        beside = self._book.time.beside("github", lambda: self._turn(run.run_id))
        self._shown[run.run_id] = RunShown(run, beside)
        beside.start()
        return True

    def end(self, run_id: str) -> Run | None:
        """End what runs beside a run; returns the run as last reported."""
        known = self._shown.get(run_id)
        if known is None:
            return None
        known.beside.close()
        return self._shown.pop(run_id).run

    def at_work(self, number: int) -> Run | None:
        """Return the run of an issue that this process works on."""
        request_id = f"GH-{number}"
        return next((each.run for each in self._shown.values() if each.run.request_id == request_id), None)

    def is_due(self, run: Run) -> bool:
        """Return whether a run's comment would say something else, or its sign of life would come too late."""
        known = self._shown.get(run.run_id)
        if known is None or known.at is None or known.body != self._words(run):
            return True
        since = self._book.time.monotonic() - known.at
        return since + self._pause > self._book.rules.lock_ttl.total_seconds() / 3

    def write(self, number: int, run: Run, view: IssueView) -> bool:
        """Write a run's comment, as the issue was just seen; dropped and recorded if it has no say any more (ISS-4)."""
        if not view.story.has_all_comments:  # it may be among those that are not listed yet
            return False
        if not is_current(view, run.run_id, is_active=run.is_active):
            self._drop(run)
            return False
        body = self._words(run)
        mark, host, written = find_mark(body), self._connect(), signed(body, self._book.time.now())
        assert mark is not None
        there = marked_comment(self._book, view.story, mark.key)
        if there is None:
            post_once(host, number, written)
        else:
            host.edit_comment(there.id, written)
        known = self._shown.get(run.run_id)
        if known is not None:
            known.body, known.at = body, self._book.time.monotonic()
        return True

    @property
    def _pause(self) -> float:
        return min(self._book.rules.lock_ttl.total_seconds() / 6, LOOK_SECONDS)

    def _turn(self, run_id: str) -> float:
        """Have one turn beside a run; GitHub being away is no reason to hurry."""
        known = self._shown.get(run_id)
        if known is not None and known.run.is_active:
            try:
                self._act(known.run)
            except AiflowError:
                return self._pause
        return self._pause

    def _drop(self, run: Run) -> None:
        known = self._shown.get(run.run_id)
        if known is not None and not known.is_dropped:
            known.is_dropped = True
            about = About(run.request_id, run.run_id)
            now = self._book.time.now()
            self._journal.append(refused(now, Actor.ENGINE, about, "LOCK_MISMATCH", state=run.state.value))
