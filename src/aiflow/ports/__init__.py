"""Every protocol the use cases need; those of git, journal, locks, sources, queue and time have own pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from aiflow.ports.git import Housekeeping, Merging, Remote, Workspaces
from aiflow.ports.journal import Journal, JournalReader
from aiflow.ports.locks import Control, Lease, Locks, LockView
from aiflow.ports.sources import RequestEditor, RequestSource
from aiflow.ports.tasks import LocalStore, QueueStore, RunnerRecords, TaskQueue, Wake
from aiflow.ports.time import Beside, Time

if TYPE_CHECKING:
    from aiflow.domain.agents.answers import Role
    from aiflow.domain.agents.call import AgentCall, AgentReply, Brief
    from aiflow.domain.agents.programs import AgentChoice, AgentProgram
    from aiflow.domain.auto.session import AutoSession
    from aiflow.domain.notes import Note
    from aiflow.domain.programs import Ended, Program
    from aiflow.domain.request import RequestId
    from aiflow.domain.run_summary import RunSummary
    from aiflow.domain.runs.log_marks import LogMark
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.worktree import Place


class RunHistory(Protocol):
    """What is known of past and present runs."""

    def latest(self, request_ids: Iterable[RequestId] | None = None) -> dict[RequestId, RunSummary]:
        """Return the run that speaks for each request, for those asked for or all."""

    def all_of(self, request_id: RequestId) -> tuple[RunSummary, ...]:
        """Return every run of one request, newest first."""

    def has_draft(self, request_id: RequestId) -> bool:
        """Return whether a run was written down for a request and not made yet."""

    def page(
        self,
        request_id: RequestId | None = None,
        limit: int | None = None,
        after: str | None = None,
        *,
        since: str = "",
    ) -> tuple[tuple[tuple[RequestId, RunSummary], ...], int]:
        """Return runs of one request or of all, newest first, those after a run id, and how many there are in all.

        `since` leaves out those with a smaller id. Only here each has its record: when it began, how long it was
        worked on, what it used.
        """


class RunStore(RunHistory, Protocol):
    """The files of runs (RUN-1); every write is atomic, and made only while the lock is held."""

    def draft(self, run: Run, brief: Brief) -> None:
        """Write a new run down where it counts as none yet, in place of any other draft of its request."""

    def drafted(self, request_id: RequestId) -> tuple[Run, Brief] | None:
        """Return the run that was written down for a request and not made; None if there is none that is whole."""

    def discard(self, request_id: RequestId) -> None:
        """Remove what was written down for a request and not made."""

    def create(self, run: Run, brief: Brief) -> None:
        """Make a run's folder, with the request as it is now, whole at once: its draft, if it has one."""

    def save(self, run: Run) -> None:
        """Write `stage.json`."""

    def load(self, request_id: str, run_id: str) -> Run | None:
        """Read a run back; None if it is not there or its file cannot be read."""

    def find(self, run_id: str, request_id: str | None = None) -> str | None:
        """Return the request a run belongs to; with one given only that one is looked at."""

    def brief(self, run: Run) -> Brief:
        """Return the request as it was when the run began."""

    def write_planning(self, run: Run) -> None:
        """Write `planning.json`."""

    def write_errors(self, run: Run, errors: Mapping[str, object] | None) -> None:
        """Write `errors.json`, or remove it."""

    def errors(self, run: Run) -> Mapping[str, object] | None:
        """Read `errors.json`."""

    def report(self, run: Run) -> str | None:
        """Read `report.md`."""

    def append_report(self, run: Run, text: str) -> None:
        """Add to `report.md`."""

    def write_patch(self, run: Run, step_id: str, patch: bytes | None) -> str | None:
        """Write an unfinished step's patch and return its path, or remove it."""

    def open_log(self, run: Run, number: int, title: str, follow: Hear | None = None) -> StepLog:
        """Open a step's log to add to it (0 is the planner's), after a dated title; `follow` gets all of it too."""

    def log_path(self, run: Run, number: int) -> str:
        """Return the path of a step's log, below the root."""

    def log_numbers(self, run: Run) -> tuple[int, ...]:
        """Return which logs a run has, in the order of its steps."""

    def read_log(self, run: Run, number: int, offset: int = 0, limit: int | None = None) -> tuple[bytes, int] | None:
        """Read a log from a byte on, at most so many, with the size it has now; None if there is no such log."""

    def log_marks(self, run: Run, number: int, start: int, end: int) -> tuple[LogMark, ...]:
        """Return when some bytes of a log were written, and in which colours, as far as that was kept."""


class StepLog(Protocol):
    """A log that is being written; secrets are masked on the way."""

    def write(self, data: bytes) -> None:
        """Add output as it comes."""

    def say(self, text: str) -> None:
        """Add a line of aiflow's own."""

    @property
    def tail(self) -> str:
        """The last lines, for the evidence of a failure."""

    @property
    def excerpt(self) -> str:
        """The output's beginning and end, with how much is left out between them."""

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
        """Ask programs for their version and whether they are logged in, all at once."""


class Processes(Protocol):
    """Running external programs so that nothing of them outlives the call (AGT-5)."""

    def run(self, program: Program, output: Hear, should_stop: Callable[[], bool], errors: Hear | None = None) -> Ended:
        """Run a program to its end, what it says handed over as it comes; `should_stop` is asked every 0.2 s.

        Without `errors`, its standard error is among the output.
        """

    def confinement(self) -> str | None:
        """Return what confines programs on this machine (`Program.writable`), None if nothing does."""


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
        """Return whether the project is a repository, and not a folder inside one."""

    def file_system(self) -> str | None:
        """Return the kind of file system the checkout is on if it is a network's, else None."""

    def confinement(self) -> str | None:
        """Return what confines agents on this machine, None if nothing does."""

    def unwritable(self) -> tuple[str, str] | None:
        """Return the folder that keeps worktrees from being made and what is the matter with it, else None."""

    def least_room(self) -> tuple[str, int]:
        """Return the checkout or where worktrees go, whichever has less room, and how many bytes that is."""


class Notifier(Protocol):
    """Notifies a person who is away (a command from the settings)."""

    def send(self, note: Note, interrupted: Callable[[], bool] = lambda: False) -> str | None:
        """Send one message; return what went wrong, None if nothing did. Never raises."""

    def lack(self) -> str | None:
        """Say what is missing to send by addresses (`notify.urls_env`): the variable, apprise, or nothing (None)."""


class Baselines(Protocol):
    """The commits of this checkout on which the tests are known to pass (RUN-17)."""

    def passed(self, how: str) -> tuple[str, ...]:
        """Return the commits on which the tests passed in a certain way, oldest first; what cannot be read did not."""

    def note_passed(self, how: str, commit: str) -> None:
        """Remember that they did; what was noted long ago may be forgotten."""


class AutoRecords(Protocol):
    """The auto-run session of this checkout, kept through a crash (AUT-4)."""

    def load(self) -> AutoSession | None:
        """Return the last session, or None if there is none that can be read."""

    def save(self, session: AutoSession) -> None:
        """Write the session down, atomically."""


Clock = Callable[[], datetime]
Hear = Callable[[bytes], None]

__all__ = [
    "Agents",
    "AutoRecords",
    "Baselines",
    "Beside",
    "Clock",
    "Control",
    "Hear",
    "Housekeeping",
    "Journal",
    "JournalReader",
    "Lease",
    "LocalStore",
    "LockView",
    "Locks",
    "Merging",
    "Notifier",
    "Processes",
    "QueueStore",
    "Remote",
    "RequestEditor",
    "RequestSource",
    "RunHistory",
    "RunStore",
    "RunnerRecords",
    "StepLog",
    "TaskQueue",
    "Time",
    "Wake",
    "Workshop",
    "Workspaces",
]
