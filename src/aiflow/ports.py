"""Every protocol the use cases need, on one page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from aiflow.domain.activity import Activity
    from aiflow.domain.agent_call import AgentCall, AgentReply
    from aiflow.domain.answers import Role
    from aiflow.domain.auto_run import Session, StopRequest
    from aiflow.domain.change import Change
    from aiflow.domain.cleaning import Item
    from aiflow.domain.lifecycle import RunOutcome
    from aiflow.domain.lock import Lock, LockStatus
    from aiflow.domain.merge import Merge, Update
    from aiflow.domain.notes import Note
    from aiflow.domain.place import Changes, Place, RepositoryFacts, Unfinished
    from aiflow.domain.programs import Ended, Program
    from aiflow.domain.remains import Remains, TreeState
    from aiflow.domain.request import InvalidRequest, Request, RequestId, RequestStatus, Value
    from aiflow.domain.run import Brief, Run
    from aiflow.domain.run_summary import RunSummary


class RequestFiles(Protocol):
    """Where requests are kept as files."""

    def load(self) -> tuple[list[Request], list[InvalidRequest]]:
        """Read every request; a broken one stops nothing."""

    def read(self, request_id: RequestId) -> Request | InvalidRequest:
        """Read one request as it is now, without looking at the others."""

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


class RunStore(RunHistory, Protocol):
    """The files of runs (RUN-1); every write is atomic, and made only while the lock is held."""

    def create(self, run: Run, brief: Brief) -> None:
        """Make a run's folder, with the request as it is now."""

    def save(self, run: Run) -> None:
        """Write `stage.json`."""

    def load(self, request_id: str, run_id: str) -> Run | None:
        """Read a run back; None if it is not there or its file cannot be read."""

    def set_aside(self, request_id: str, run_id: str) -> None:
        """Put a damaged `stage.json` aside: its run then counts as lost."""

    def find(self, run_id: str) -> str | None:
        """Return the request a run belongs to."""

    def brief(self, run: Run) -> Brief:
        """Return the request as it was when the run began."""

    def write_planning(self, run: Run) -> None:
        """Write `planning.json`."""

    def write_errors(self, run: Run, errors: Mapping[str, object] | None) -> None:
        """Write `errors.json`, or remove it."""

    def report(self, run: Run) -> str | None:
        """Read `report.md`."""

    def append_report(self, run: Run, text: str) -> None:
        """Add to `report.md`."""

    def write_patch(self, run: Run, step_id: str, patch: bytes | None) -> str | None:
        """Write an unfinished step's patch and return its path, or remove it."""

    def open_log(self, run: Run, number: int, title: str) -> StepLog:
        """Open a step's log to add to it (0 is the planner's), behind a dated title."""

    def log_path(self, run: Run, number: int) -> str:
        """Return the path of a step's log, below the root."""


class StepLog(Protocol):
    """A log that is being written; secrets are masked on the way."""

    def write(self, data: bytes) -> None:
        """Add output as it comes."""

    def say(self, text: str) -> None:
        """Add a line of aiflow's own."""

    @property
    def tail(self) -> str:
        """The last lines, for the evidence of a failure."""

    def close(self) -> None:
        """Flush what is left."""


class Agents(Protocol):
    """The coding agents, one per role as the settings say (AGT-1)."""

    def call(self, call: AgentCall, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> AgentReply:
        """Call an agent and wait for its answer; a stop that was asked for shows as CANCELLED."""

    def problem_of(self, role: Role) -> str | None:
        """Say why a role's agent cannot be started, or None if it can."""

    def limit_seconds(self, role: Role) -> float:
        """Return how long a call may take."""


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

    def acquire_request(self, request_id: RequestId, run_id: str, *, beside_others: bool = False) -> Lease | Lock:
        """Take a request's lock, or return the lock of who runs here, or (beside others) of who runs that (LCK-7)."""

    def acquire_queue(self) -> Lease | Lock:
        """Take the queue lock, or return its holder's lock."""

    def survey(self) -> list[LockStatus]:
        """Judge every lock that exists; changes nothing."""

    def reclaim(self) -> list[LockStatus]:
        """Remove every stale lock, after what its holder's agent left running is ended; return those removed."""

    def break_lock(self, request_id: RequestId | None) -> LockStatus | None:
        """Remove a lock whoever holds it, a request's or (None) the queue's; None if there is none."""

    def standstill(self) -> AbstractContextManager[Mapping[RequestId, Lock]]:
        """Let nobody take a lock, nor a holder write, for a moment; gives the request locks that are held."""


class Control(Protocol):
    """Files that reach a running process from another one (LCK-8)."""

    def ask_cancel(self, run_id: str) -> None:
        """Ask whoever works on a run to cancel it."""

    def is_cancelled(self, run_id: str) -> bool:
        """Tell whether somebody asked for it."""

    def clear(self, run_id: str) -> None:
        """Forget what was asked of a run."""

    def ask_stop(self, request: StopRequest) -> None:
        """Ask the auto-run of this checkout to stop; the stronger wish counts."""

    def stop_asked(self) -> StopRequest:
        """Return what was asked of the auto-run; one look at a file name, for this is asked several times a second."""

    def clear_stop(self, before: datetime | None = None) -> None:
        """Forget what was asked of the auto-run, or only what was asked before a moment."""

    def waiting_for_turn(self) -> AbstractContextManager[None]:
        """Let it be known that a person waits for their turn in this checkout."""

    def is_turn_wanted(self) -> bool:
        """Tell whether somebody who is alive waits for their turn: auto-run lets them go first."""


class Processes(Protocol):
    """Running external programs so that nothing of them outlives the call (AGT-5)."""

    def run(self, program: Program, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> Ended:
        """Run a program to its end, its output handed over as it comes; `should_stop` is asked every 0.2 s."""


class RequestSource(Protocol):
    """Where requests come from and where their outcome goes, files or issues; the engine never asks which."""

    def load(self, request_id: RequestId) -> Request:
        """Return one request as it is now, or raise that there is none or that it cannot be read."""

    def body(self, request_id: RequestId) -> str:
        """Return a request's text without its metadata."""

    def claim(self, request_id: RequestId, run_id: str) -> RequestStatus | None:
        """Show that a run works on a request; None if that is so now, else the status a person gave it meanwhile."""

    def settle(self, request_id: RequestId, run_id: str, outcome: RunOutcome) -> None:
        """Show what a run's end means to its request; a status that a person set meanwhile stays (REQ-3)."""

    def can_resume(self, request_id: RequestId) -> bool:
        """Tell whether a stopped run of this request may go on."""

    def send_back(self, request_id: RequestId, run_id: str, comment: str) -> None:
        """Add a comment to a request and make it ready again, both at once (REQ-6)."""


class Workshop(Protocol):
    """The machine a run works on: where its worktree goes, shell commands, files to copy, free space."""

    def worktree_path(self, run_id: str) -> str:
        """Return where a run's worktree goes, in the user's state directory (GIT-1)."""

    def copy(self, paths: tuple[str, ...], target: str) -> tuple[str, ...]:
        """Copy files and folders of the user's checkout into a worktree, and return those that were there."""

    def shell(
        self, command: str, place: Place, output: Callable[[bytes], None], should_stop: Callable[[], bool]
    ) -> Ended:
        """Run a test or set-up command in a worktree."""

    def find_program(self, command: str) -> str | None:
        """Return the program that a shell command starts with if it cannot be found, else None."""

    def is_repository_root(self) -> bool:
        """Tell whether the project is a repository, and not a folder inside one."""

    def file_system(self) -> str | None:
        """Return the kind of file system the checkout is on if it is a network's, else None."""

    def free_bytes(self) -> int:
        """Return how much room there is, in the checkout or where worktrees go, whichever has less."""


class Workspaces(Protocol):
    """Git (GIT): the user's repository, read only, and the runs' own worktrees."""

    def facts(self, base_branch: str) -> RepositoryFacts:
        """Look at the user's repository; an empty base branch is the one that is checked out."""

    def version(self) -> tuple[int, ...]:
        """Return git's version."""

    def untracked(self, place: Place) -> tuple[str, ...]:
        """Return what a set-up command made that git neither tracks nor ignores, a folder as one."""

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

    def commit(self, place: Place, since: str, message: str, *, amends: bool = False) -> str:
        """Commit what was collected on top of a commit (or in its place: `amends`), and return the new one."""

    def find_commit(self, place: Place, since: str, trailers: Mapping[str, str]) -> str | None:
        """Return the branch's tip if it is the one commit behind (or in place of) `since` with these trailers."""

    def tidy(self, place: Place) -> tuple[str, ...]:
        """Put back what tests or a reviewer changed behind a commit, and return those paths."""

    def drop_leftovers(self, place: Place) -> tuple[str, ...]:
        """Put back what tests changed behind what was collected of a step, and return those paths."""

    def snapshot(self, place: Place) -> str:
        """Return the tree of the worktree as it is, untracked files included."""

    def differing(self, place: Place, old: str, new: str) -> frozenset[str]:
        """Return the paths in which two trees or commits differ."""

    def keep_unfinished(self, place: Place, since: str, ref: str) -> Unfinished:
        """Keep what an unfinished step left under a ref; own commits folded back to `since`."""

    def restore(self, place: Place, since: str, kept: str) -> None:
        """Lay an unfinished step's kept commit out in the worktree again, behind `since`."""

    def go_back(self, place: Place, commit: str, keep_as: str) -> None:
        """Set branch and worktree back to a commit; what was there stays reachable under a ref (RUN-6)."""


class Merging(Protocol):
    """Bringing runs into the base branch (GIT-3); nothing moves before `move_base`."""

    def merge(self, place: Place, message: str) -> Merge:
        """Merge a run's branch into the base branch as both stand now, with git's `merge-tree`; nothing is moved."""

    def check_out(self, commit: str, place: Place) -> None:
        """Lay a commit out in a worktree of a run's own, detached, in place of whatever is left there."""

    def discard(self, path: str) -> None:
        """Remove such a worktree; one that is not there is no trouble."""

    def move_base(self, place: Place, merge: Merge) -> bool:
        """Move the base branch to a merge commit, in a checkout by fast-forward; False if it moved by itself before."""

    def update(self, place: Place, keep_as: str) -> Update:
        """Merge the base branch into a run's branch as a commit kept under a ref; the branch itself stays."""

    def has_unsaved(self, place: Place) -> tuple[str, ...]:
        """Return what a person changed in a run's worktree and did not commit; nothing if there is no worktree."""

    def marked(self, place: Place, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return which of these files of a run's worktree still hold conflict markers."""


class Notifier(Protocol):
    """Tells a person who is not there (a command from the settings)."""

    def send(self, note: Note, interrupted: Callable[[], bool] = lambda: False) -> str | None:
        """Send one message; return what went wrong, None if nothing did. Never raises."""


class Housekeeping(Protocol):
    """What runs leave on disk and in git, and taking it away (GIT-5); looking changes nothing."""

    def survey(self, base_branches: frozenset[str]) -> Remains:
        """Find all that is left of runs, with a few calls of git; merged is what one of these branches has."""

    def state_of(self, place: Place, kept: str | None) -> TreeState:
        """Tell whether git has all of a worktree: its branch, or the commit that keeps an unfinished step."""

    def size_of(self, item: Item) -> int:
        """Return how many bytes a thing takes on disk."""

    def take_away(self, item: Item) -> None:
        """Take a file or folder out of use at once: a folder only gets another name."""

    def drop_refs(self, items: Sequence[Item]) -> None:
        """Delete branches and refs that still stand where they were seen, all of them or none."""

    def clear_away(self, run_id: str) -> None:
        """Delete the folders of a run that were taken away; that may take its time."""


class AutoRecords(Protocol):
    """The auto-run session of this checkout, kept through a crash (AUT-4)."""

    def load(self) -> Session | None:
        """Return the last session, or None if there is none that can be read."""

    def save(self, session: Session) -> None:
        """Write the session down, atomically."""


class Remote(Protocol):
    """Where branches are shown to others."""

    def push(self, place: Place) -> None:
        """Push a run's branch, without force."""


class Journal(Protocol):
    """The one record of everything that happened (ERR-4)."""

    def append(self, activity: Activity) -> None:
        """Add one entry; it is on disk when this returns."""


Clock = Callable[[], datetime]
