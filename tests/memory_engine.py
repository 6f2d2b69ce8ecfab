"""A whole checkout in memory, and processes that work in it: the engine and a runner's desk on the memory adapters."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.memory.agents import ScriptedAgents
from aiflow.adapters.memory.baselines import MemoryBaselines
from aiflow.adapters.memory.control import MemoryAutoRecords, MemoryControl, MemoryWishes
from aiflow.adapters.memory.housekeeping import MemoryHousekeeping
from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.memory.leases import MemoryLocking, MemoryLockTable
from aiflow.adapters.memory.machine import MemoryNotifier, MemoryRemote, MemoryWorkshop
from aiflow.adapters.memory.merging import MemoryMerging
from aiflow.adapters.memory.queue import MemoryStore
from aiflow.adapters.memory.repository import MAIN, MemoryRepository
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.adapters.memory.run_store import MemoryRunFiles, MemoryRunStore
from aiflow.adapters.memory.tickets import MemoryTickets
from aiflow.adapters.memory.wake import MemoryBells, MemoryWake
from aiflow.adapters.memory.workspaces import MemoryWorkspaces
from aiflow.adapters.several_sources import SeveralSources
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.process import Process
from aiflow.domain.queue.runner import Runner
from aiflow.domain.queue.task import Checkout, new_task_id
from aiflow.domain.request import RequestId
from aiflow.messages import Texts
from aiflow.ports import Time
from aiflow.settings import Settings, settle
from aiflow.usecases.engine import Engine, Voice
from aiflow.usecases.read_backlog import BacklogSources
from aiflow.usecases.runner.desk import RunnerDesk, pace_of, sit_down

NAMESPACE = "app"
TEXTS = Texts("en")
Wrap = Callable[[str, Any], Any]


def request_text(status: str = "ready", **keys: str) -> str:
    """Write a request file."""
    lines = "".join(f"{key}: {value}\n" for key, value in {"status": status, **keys}.items())
    return f"---\n{lines}---\n\n# A title\n\nThe body.\n"


@dataclass
class MemoryCheckout:
    """Everything that is on the disk of one checkout, whoever works there."""

    name: str = "one"
    settings: Settings = field(default_factory=lambda: settle({}))
    requests: MemoryRequests = field(default_factory=MemoryRequests)
    tickets: MemoryTickets = field(default_factory=MemoryTickets)
    runs: MemoryRunFiles = field(default_factory=MemoryRunFiles)
    locks: MemoryLockTable = field(default_factory=MemoryLockTable)
    baselines: MemoryBaselines = field(default_factory=MemoryBaselines)
    wishes: MemoryWishes = field(default_factory=MemoryWishes)
    repository: MemoryRepository = field(default_factory=lambda: MemoryRepository.with_files({"README": b"hello\n"}))
    session: MemoryAutoRecords = field(default_factory=MemoryAutoRecords)
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    notifier: MemoryNotifier = field(default_factory=MemoryNotifier)
    workshop: MemoryWorkshop = field(default_factory=MemoryWorkshop)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    # The titles of what obliging implementers propose.
    found: list[str] = field(default_factory=list)

    @property
    def at(self) -> Checkout:
        """The checkout as the store knows it."""
        return Checkout("host", f"/work/{self.name}")

    @property
    def base(self) -> str:
        """The commit that the main branch stands at."""
        return self.repository.refs[f"refs/heads/{MAIN}"]

    def add(self, request_id: str, status: str = "ready", **keys: str) -> RequestId:
        """Write a request down."""
        self.requests.texts[RequestId(request_id)] = request_text(status, **keys)
        return RequestId(request_id)

    def status(self, request_id: str) -> str:
        """Return the status of a request that can be read."""
        if ticket := self.tickets.status(RequestId(request_id)):
            return ticket.value
        return str(getattr(self.requests.read(RequestId(request_id)), "status", "invalid"))

    @property
    def request_ids(self) -> list[RequestId]:
        """The requests of all sources."""
        return [*self.requests.texts, *self.tickets.tickets]


@dataclass
class MemoryProcess:
    """One process in a checkout: who it is, its time, and how its ports are wrapped."""

    checkout: MemoryCheckout
    pid: int
    time: Time
    script: Callable[..., AgentReply]
    wrap: Wrap = lambda _name, port: port
    pid_namespace: str | None = None

    @property
    def process(self) -> Process:
        """The process as a lock names it."""
        return Process("host", self.pid, "boot", self.pid_namespace, float(self.pid))

    def engine(self, **more: Any) -> Engine:
        """Put the engine of this process together."""
        checkout, wrap, settings = self.checkout, self.wrap, self.checkout.settings
        requests, journal = wrap("requests", checkout.requests), wrap("journal", checkout.journal)
        files = FileSource(requests)
        source = SeveralSources(files, [wrap("tickets", checkout.tickets)]) if checkout.tickets.tickets else files
        runs = wrap("runs", MemoryRunStore(checkout.runs, checkout.workshop.worktree_path))
        ttl = settings.number("locks.ttl_seconds")
        locks = wrap("locks", MemoryLocking(checkout.locks, self.process, self.time, ttl))
        workspaces = wrap("workspaces", MemoryWorkspaces(checkout.repository, settings.requests_dir))
        parts: dict[str, Any] = {
            "backlog": BacklogSources(source, runs, locks),
            "source": source,
            "editor": requests,
            "runs": runs,
            "locks": locks,
            "control": wrap("control", MemoryControl(checkout.wishes, self.process, self.time)),
            "workspaces": lambda _run_id: workspaces,
            "remote": wrap("remote", MemoryRemote()),
            "merging": wrap("merging", MemoryMerging(checkout.repository)),
            "notifier": wrap("notifier", checkout.notifier),
            "housekeeping": wrap("housekeeping", MemoryHousekeeping(checkout.repository, checkout.runs)),
            "baselines": wrap("baselines", checkout.baselines),
            "agents": wrap("agents", ScriptedAgents(self.script)),
            "workshop": wrap("workshop", checkout.workshop),
            "journal": journal,
            "time": self.time,
            "new_run_id": self.new_run_id,
            "settings": settings,
            "voice": Voice(TEXTS),
        }
        return Engine(**{**parts, **more})

    def new_run_id(self, newest: str | None = None) -> str:
        """Make a run id behind the newest."""
        made = f"RUN-{self.time.now():%Y%m%d-%H%M%S}-{next(self.checkout.numbers):06x}"
        if newest is None or made > newest:
            return made
        stamp, _, number = newest.rpartition("-")
        return f"{stamp}-{int(number, 16) + 1:06x}"

    def desk(self, store: MemoryStore, bells: MemoryBells, engine: Engine | None = None, **more: Any) -> RunnerDesk:
        """Put a runner's place of work together."""
        now, made = self.time.now(), engine or self.engine()
        runner_id = f"runner-{self.pid}"
        parts: dict[str, Any] = {
            "queue": self.wrap("queue", store.queue(NAMESPACE)),
            "runners": self.wrap("records", store.runners(NAMESPACE)),
            "wake": self.wrap("wake", MemoryWake(bells, self.time, NAMESPACE, runner_id)),
            "auto_records": self.wrap("auto_records", self.checkout.session),
            "new_task_id": self.new_task_id,
        }
        runner = Runner(NAMESPACE, runner_id, self.checkout.at, now, now, pid=self.pid)
        return sit_down(made, runner, pace_of(made.settings), **{**parts, **more})

    def new_task_id(self, now: datetime) -> str:
        """Make a task id."""
        return new_task_id(now, f"{next(self.checkout.numbers):06x}")


def plan(*step_ids: str) -> AgentReply:
    """Answer as a planner does."""
    steps = ",".join(f'{{"id":"{each}","title":"Do {each}","instructions":"Do it."}}' for each in step_ids)
    return AgentReply(f'{{"steps":[{steps}]}}'.encode())


def look(call: AgentCall) -> None:
    """Look at a step's change as a reviewer does, and in the last step at the whole one."""
    call.changes()
    if call.whole is not None:
        assert call.is_at_the_end
        call.whole()


def obliging(checkout: MemoryCheckout) -> Callable[..., AgentReply]:
    """Give a script of agents that do at once what they are asked for: one step, one file for each request."""

    def script(call: AgentCall, _output: Callable[[bytes], None], _should_stop: Callable[[], bool]) -> AgentReply:
        if call.role is Role.PLANNER:
            return plan("S01")
        if call.role is Role.QA:
            look(call)
            return AgentReply(b'{"verdict":"pass","findings":[]}')
        checkout.repository.worktrees[call.cwd].files[f"{call.brief.id}.txt"] = call.run_id.encode()
        return AgentReply(json.dumps({"status": "done", "follow_ups": checkout.found}).encode())

    return script
