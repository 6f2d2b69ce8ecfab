"""Every protocol the use cases need, on one page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from aiflow.domain.activity import Activity
    from aiflow.domain.lock import Liveness, Lock, Verdict
    from aiflow.domain.place import Changes, Place, RepositoryFacts, Unfinished
    from aiflow.domain.request import InvalidRequest, Request, RequestId, Value
    from aiflow.domain.run_summary import RunSummary


class _Any(Enum):
    ANY = "any"


ANY = _Any.ANY


@dataclass(frozen=True, slots=True)
class Change:
    """A new value for a key; with `expected`, only if the key still says that (REQ-3)."""

    new: Value
    expected: Value | _Any = ANY


class RequestFiles(Protocol):
    """Where requests are kept as files."""

    def load(self) -> tuple[list[Request], list[InvalidRequest]]:
        """Read every request; a broken one stops nothing."""

    def body(self, request_id: RequestId) -> str:
        """Return a request's text without its metadata."""

    def edit(
        self, request_id: RequestId, changes: Mapping[str, Change], body: tuple[str, str] | None = None
    ) -> dict[str, tuple[Value, Value]]:
        """Change keys (and the body), return key -> (old, new) of what really changed."""

    def create(self, propose: Callable[[frozenset[str]], RequestId], text: str, values: Mapping[str, Value]) -> str:
        """Create a request under an id that is free, from a text and values for its keys; return its path."""


class RunHistory(Protocol):
    """What is known of past and present runs."""

    def latest(self, request_ids: Iterable[RequestId] | None = None) -> dict[RequestId, RunSummary]:
        """Return the run that speaks for each request, for those asked for or all."""

    def all_of(self, request_id: RequestId) -> tuple[RunSummary, ...]:
        """Return every run of one request, newest first."""


class LockView(Protocol):
    """Which locks exist; looking changes nothing."""

    def held(self) -> tuple[dict[RequestId, Lock], Lock | None]:
        """Return the request locks by request, and the queue lock."""


@dataclass(frozen=True, slots=True)
class LockStatus:
    """A lock that exists, and what is known of its holder."""

    lock: Lock
    liveness: Liveness
    verdict: Verdict


class Lease(Protocol):
    """A lock that is ours, kept alive by a heartbeat beside us (LCK-3)."""

    lock: Lock

    @property
    def is_lost(self) -> bool:
        """Whether somebody else has taken the lock: then nothing may be written any more."""

    def allow(self, seconds: float) -> None:
        """Let the heartbeat renew the lock for this long from now; behind that it expires."""

    def writing(self) -> AbstractContextManager[None]:
        """Hold the guard while something is written; raises LOCK_LOST if the lock is no longer ours."""

    def release(self) -> None:
        """Give the lock back if it is still ours; twice does no harm."""


class Locks(LockView, Protocol):
    """Taking, judging and giving back locks (LCK); only the engine calls this."""

    def acquire_request(self, request_id: RequestId, run_id: str) -> Lease | Lock:
        """Take a request's lock, or return the lock of whoever runs in this checkout, stale or not (LCK-7)."""

    def acquire_queue(self) -> Lease | Lock:
        """Take the queue lock, or return its holder's lock."""

    def survey(self) -> list[LockStatus]:
        """Judge every lock that exists; changes nothing."""

    def reclaim(self) -> list[LockStatus]:
        """Remove every stale lock, after what its holder's agent left running is ended; return those removed."""

    def break_lock(self, request_id: RequestId | None) -> LockStatus | None:
        """Remove a lock whoever holds it, a request's or (None) the queue's; None if there is none."""


class Control(Protocol):
    """Files that reach a running process from another one (LCK-8)."""

    def ask_cancel(self, run_id: str) -> None:
        """Ask whoever works on a run to cancel it."""

    def is_cancelled(self, run_id: str) -> bool:
        """Tell whether somebody asked for it."""

    def clear(self, run_id: str) -> None:
        """Forget what was asked of a run."""


class End(StrEnum):
    """How an external program ended."""

    EXITED = "exited"
    NOT_FOUND = "not_found"
    NOT_EXECUTABLE = "not_executable"
    TIMED_OUT = "timed_out"
    SILENT = "silent"
    STOPPED = "stopped"
    GUARD_LOST = "guard_lost"


@dataclass(frozen=True, slots=True)
class Program:
    """Something external to run (AGT-4): its whole environment, its limits, and the run it is marked with."""

    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str]
    run_id: str
    timeout_seconds: float
    idle_seconds: float
    stdin: bytes = b""


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended; a negative exit code is a signal. `leftovers` counts the processes it had left running."""

    end: End
    exit_code: int | None = None
    leftovers: int = 0


class Processes(Protocol):
    """Running external programs so that nothing of them outlives the call (AGT-5)."""

    def run(self, program: Program, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> Ended:
        """Run a program to its end, its output handed over as it comes; `should_stop` is asked every 0.2 s."""


class Workspaces(Protocol):
    """Git (GIT): the user's repository, read only, and the runs' own worktrees."""

    def facts(self, base_branch: str) -> RepositoryFacts:
        """Look at the user's repository; an empty base branch is the one that is checked out."""

    def prepare(self, place: Place, tip: str) -> bool:
        """Make the worktree on its branch, at a commit if the branch does not exist yet; True if it had to be made."""

    def is_intact(self, place: Place) -> bool:
        """Tell whether the worktree is there and git knows it."""

    def tip(self, place: Place) -> str | None:
        """Return the commit the branch stands at."""

    def is_ancestor(self, place: Place, old: str, new: str) -> bool:
        """Tell whether one commit leads to another."""

    def collect(self, place: Place, since: str) -> Changes:
        """Take everything a step changed since a commit into the index: own commits folded, `requests/` put back."""

    def commit(self, place: Place, since: str, message: str) -> str:
        """Commit what was collected on top of a commit, and return the new one."""

    def find_commit(self, place: Place, since: str, trailers: Mapping[str, str]) -> str | None:
        """Return the branch's tip if it is the one commit behind `since` that carries these trailers."""

    def tidy(self, place: Place) -> tuple[str, ...]:
        """Put back what tests or a reviewer changed behind a commit, and return those paths."""

    def snapshot(self, place: Place) -> str:
        """Return the tree of the worktree as it is, untracked files included."""

    def keep_unfinished(self, place: Place, since: str, ref: str) -> Unfinished:
        """Keep what an unfinished step left under a ref; own commits folded back to `since`."""

    def restore(self, place: Place, since: str, kept: str) -> None:
        """Lay an unfinished step's kept commit out in the worktree again, behind `since`."""

    def go_back(self, place: Place, commit: str, keep_as: str) -> None:
        """Set branch and worktree back to a commit; what was there stays reachable under a ref (RUN-6)."""


class Journal(Protocol):
    """The one record of everything that happened (ERR-4)."""

    def append(self, activity: Activity) -> None:
        """Add one entry; it is on disk when this returns."""


Clock = Callable[[], datetime]
