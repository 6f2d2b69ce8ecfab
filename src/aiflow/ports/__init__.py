"""Every protocol the use cases need; those of git, the locks and the queue are on pages of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from aiflow.ports.git import Housekeeping, Merging, Remote, Workspaces
from aiflow.ports.locks import Control, Lease, Locks, LockView
from aiflow.ports.tasks import LocalStore, QueueStore, RunnerRecords, TaskQueue, Wake

if TYPE_CHECKING:
    from aiflow.domain.activity import Activity
    from aiflow.domain.agent_call import AgentCall, AgentReply
    from aiflow.domain.agent_programs import AgentChoice, AgentProgram
    from aiflow.domain.answers import Role
    from aiflow.domain.auto_run import Session
    from aiflow.domain.change import Change
    from aiflow.domain.lifecycle import RunOutcome
    from aiflow.domain.notes import Note
    from aiflow.domain.place import Place
    from aiflow.domain.programs import Ended, Program
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

    def program_of(self, role: Role, *, asks: bool = False) -> AgentProgram:
        """Say what is known of a role's agent, from files and variables; `asks` starts its program for a moment."""

    def limit_seconds(self, role: Role) -> float:
        """Return how long a call may take."""


class AgentPrograms(Protocol):
    """The agent programs of this machine, whether a project uses them or not."""

    def survey(self) -> tuple[AgentProgram, ...]:
        """Look for every program we know, from files and variables."""

    def find(self, choice: AgentChoice) -> AgentProgram:
        """Look for the program that the settings choose."""

    def ask(self, programs: Iterable[AgentProgram]) -> tuple[AgentProgram, ...]:
        """Let programs tell their version and whether they are logged in, all at once."""


class Processes(Protocol):
    """Running external programs so that nothing of them outlives the call (AGT-5)."""

    def run(self, program: Program, output: Hear, should_stop: Callable[[], bool], errors: Hear | None = None) -> Ended:
        """Run a program to its end, what it says handed over as it comes; `should_stop` is asked every 0.2 s.

        Without `errors`, its standard error is among the output.
        """

    def confinement(self) -> str | None:
        """Return what confines programs on this machine (`Program.writable`), None if nothing does."""


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

    def confinement(self) -> str | None:
        """Return what confines agents on this machine, None if nothing does."""

    def unwritable(self) -> tuple[str, str] | None:
        """Return the folder that keeps worktrees from being made and what is the matter with it, else None."""

    def free_bytes(self) -> int:
        """Return how much room there is, in the checkout or where worktrees go, whichever has less."""


class Notifier(Protocol):
    """Tells a person who is not there (a command from the settings)."""

    def send(self, note: Note, interrupted: Callable[[], bool] = lambda: False) -> str | None:
        """Send one message; return what went wrong, None if nothing did. Never raises."""


class AutoRecords(Protocol):
    """The auto-run session of this checkout, kept through a crash (AUT-4)."""

    def load(self) -> Session | None:
        """Return the last session, or None if there is none that can be read."""

    def save(self, session: Session) -> None:
        """Write the session down, atomically."""


class Journal(Protocol):
    """The one record of everything that happened (ERR-4)."""

    def append(self, activity: Activity) -> None:
        """Add one entry; it is on disk when this returns."""


Clock = Callable[[], datetime]
Hear = Callable[[bytes], None]

__all__ = [
    "Agents",
    "AutoRecords",
    "Clock",
    "Control",
    "Hear",
    "Housekeeping",
    "Journal",
    "Lease",
    "LocalStore",
    "LockView",
    "Locks",
    "Merging",
    "Notifier",
    "Processes",
    "QueueStore",
    "Remote",
    "RequestFiles",
    "RequestSource",
    "RunHistory",
    "RunStore",
    "RunnerRecords",
    "StepLog",
    "TaskQueue",
    "Wake",
    "Workshop",
    "Workspaces",
]
