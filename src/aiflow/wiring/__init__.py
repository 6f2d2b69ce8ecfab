"""The only package that names concrete adapters: it puts a project together."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.lock_files import LockFiles
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.adapters.project_files import find_repository, find_root
from aiflow.adapters.run_files import RunFiles
from aiflow.usecases.read_backlog import BacklogSources
from aiflow.wiring.stores import (
    count_listeners as count_listeners,
)
from aiflow.wiring.stores import (
    local_store as local_store,
)
from aiflow.wiring.stores import (
    namespace_of as namespace_of,
)
from aiflow.wiring.stores import (
    open_store as open_store,
)
from aiflow.wiring.stores import (
    open_wake as open_wake,
)
from aiflow.wiring.stores import (
    store_look as store_look,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from aiflow.adapters.demo_folder import DemoFolder
    from aiflow.adapters.project_files import ProjectFolder
    from aiflow.domain.run import Run
    from aiflow.domain.runner import Runner
    from aiflow.domain.task import Checkout
    from aiflow.messages import Texts
    from aiflow.ports import AgentPrograms, Agents, AutoRecords, Journal
    from aiflow.ports.tasks import QueueStore
    from aiflow.settings import Settings
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.runner_desk import Desk


class Project(NamedTuple):
    """One checkout with everything that reads it."""

    root: str
    requests: MarkdownRequests
    runs: RunFiles
    locks: LockFiles

    @property
    def path(self) -> Path:
        """The root as a path; made when it is needed, for importing it takes longer than reading 500 files."""
        from pathlib import Path

        return Path(self.root)

    @property
    def sources(self) -> BacklogSources:
        """Where the backlog is read from."""
        return BacklogSources(self.requests, self.runs, self.locks)

    @property
    def folder(self) -> ProjectFolder:
        """The project's own files."""
        from aiflow.adapters.project_files import ProjectFolder

        return ProjectFolder(self.path)

    @property
    def journal(self) -> Journal:
        """The journal of this checkout."""
        from aiflow.adapters.activity_log import ActivityLog

        return ActivityLog(self.path)

    @property
    def auto_records(self) -> AutoRecords:
        """What is kept of this checkout's auto-run."""
        from aiflow.adapters.auto_files import AutoFile

        return AutoFile(self.root)


class Voice(NamedTuple):
    """What a caller of the engine gives: its words, whether it is to stop, and where it wants to see what happens."""

    texts: Texts
    interrupted: Callable[[], bool] = lambda: False
    observe: Callable[[Run], None] = lambda _run: None
    follow: Callable[[bytes], None] | None = None
    warn: Callable[[str], None] = lambda _text: None


def build_engine(project: Project, settings: Settings, journal: Journal, voice: Voice) -> Engine:
    """Put the run engine together: the only place that knows what it is made of."""
    from aiflow.adapters.agents.chosen import ChosenAgents
    from aiflow.adapters.agents.command import Surroundings
    from aiflow.adapters.control_files import ControlFiles
    from aiflow.adapters.file_source import FileSource
    from aiflow.adapters.housekeeping import LocalHousekeeping
    from aiflow.adapters.lock_taking import LockTaking
    from aiflow.adapters.merging import GitMerging
    from aiflow.adapters.notifications import CommandNotifier
    from aiflow.adapters.processes.launch import GuardedProcesses
    from aiflow.adapters.remote import GitRemote
    from aiflow.adapters.run_store import RunFolders
    from aiflow.adapters.secrets import Masker
    from aiflow.adapters.workshop import LocalWorkshop, checkout_folder, state_home
    from aiflow.adapters.worktrees import GitWorkspaces
    from aiflow.usecases.engine import Engine

    root, environ = project.root, os.environ
    masker = Masker(environ)
    processes = GuardedProcesses(f"{root}/.aiflow/guards")
    workshop = LocalWorkshop(root, environ, settings, processes)
    runs = RunFolders(root, masker, now, workshop.worktree_path)
    runs.follow = voice.follow
    state = str(checkout_folder(root, environ))
    around = Surroundings(root, f"{state}/results", f"{state_home(environ)}/calls", environ, processes, masker)
    hooks, sign = settings.flag("git.hooks"), settings.flag("git.sign")
    return Engine(
        backlog=project.sources,
        source=FileSource(project.requests, journal, now),
        runs=runs,
        locks=LockTaking(root, settings.number("locks.ttl_seconds")),
        control=ControlFiles(root),
        workspaces=lambda run_id: GitWorkspaces(root, run_id, hooks=hooks, sign=sign),
        remote=GitRemote(root, hooks=hooks),
        merging=GitMerging(root, hooks=hooks, sign=sign),
        notifier=CommandNotifier(root, environ, settings, processes, masker),
        housekeeping=LocalHousekeeping(root, state),
        agents=ChosenAgents(settings, around),
        workshop=workshop,
        journal=journal,
        clock=now,
        new_run_id=new_run_id,
        settings=settings,
        texts=voice.texts,
        interrupted=voice.interrupted,
        observe=voice.observe,
        warn=voice.warn,
        mask=masker.mask_text,
    )


def find_agents(settings: Settings, root: str) -> AgentPrograms:
    """Give a look at the agent programs of this machine, as a project at this root would find them."""
    from aiflow.adapters.agents.installed import InstalledAgents

    return InstalledAgents(os.environ, root, settings.texts("agent.env"))


@contextlib.contextmanager
def trial_agents(settings: Settings, root: str) -> Iterator[tuple[Agents, tuple[str, str]]]:
    """Give the agents for a call that belongs to no run: a folder of its own to work in, gone afterwards, and an id."""
    import tempfile

    from aiflow.adapters.agents.chosen import ChosenAgents
    from aiflow.adapters.agents.command import Surroundings
    from aiflow.adapters.processes.launch import GuardedProcesses
    from aiflow.adapters.secrets import Masker

    with tempfile.TemporaryDirectory(prefix="aiflow-", ignore_cleanup_errors=True) as made:
        folder = os.path.realpath(made)
        os.mkdir(f"{folder}/work")
        processes = GuardedProcesses(f"{folder}/guards")
        masker = Masker(os.environ)
        around = Surroundings(root, f"{folder}/results", f"{folder}/calls", os.environ, processes, masker)
        yield ChosenAgents(settings, around), (f"{folder}/work", new_run_id())


def now() -> datetime:
    """The time, with the user's own offset."""
    from datetime import datetime

    return datetime.now().astimezone()


def new_run_id(newest: str | None = None) -> str:
    """Make a run id: the time in UTC and six hex digits (SPEC §1), behind the request's newest in text order."""
    from datetime import UTC, datetime

    made = f"RUN-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.urandom(3).hex()}"
    if newest is None or made > newest:
        return made
    # Within one second, or with a clock that was set back: the next number behind the newest.
    stamp, _, number = newest.rpartition("-")
    return f"{stamp}-{int(number, 16) + 1:06x}"


def open_project(start: str) -> Project:
    """Find the project at or above a folder."""
    return project_at(find_root(start))


def project_at(root: str) -> Project:
    """Put a project together at a known root."""
    return Project(root, MarkdownRequests(root), RunFiles(root), LockFiles(root))


def new_project(start: str) -> Project:
    """Put a project together at the root of the repository at or above a folder, for `init`."""
    return project_at(find_repository(start))


def new_demo(folder: str | None) -> DemoFolder:
    """Give a demo its place: the folder that was named, or one below the system's temporary folder."""
    from aiflow.adapters.demo_folder import DemoFolder

    return DemoFolder(folder, os.environ)


def read_settings(root: str, flags: Iterable[str]) -> Settings:
    """Read the settings from flags, environment and file, or stop with file, key and line."""
    from aiflow.adapters.toml_settings import load_settings

    return load_settings(root, os.environ, flags)


def is_runner_gone(runner: Runner) -> bool:
    """Tell whether a runner was a process of this machine and is provably dead."""
    from aiflow.adapters.runner_process import is_gone

    return is_gone(runner)


def checkout_of(project: Project) -> Checkout:
    """Name a project's checkout as every machine sees it (QUE-11)."""
    from aiflow.adapters.runner_process import checkout_at

    return checkout_at(project.root)


def build_desk(project: Project, engine: Engine, store: QueueStore, *, is_listening: bool = True) -> Desk:
    """Put a runner's place of work together, to be woken there or not; who works there says what it hears and tells."""
    from aiflow.adapters.runner_process import make_task_id, new_runner
    from aiflow.usecases.runner_desk import Desk, pace_of

    namespace = namespace_of(project, engine.settings)
    runner = new_runner(project.root, namespace, now())
    return Desk(
        engine=engine,
        queue=store.queue(namespace),
        records=store.runners(namespace),
        wake=open_wake(os.environ, namespace, runner.runner_id if is_listening else None),
        runner=runner,
        pace=pace_of(engine.settings),
        auto_records=project.auto_records,
        new_task_id=lambda: make_task_id(now()),
        is_gone=is_runner_gone,
    )
