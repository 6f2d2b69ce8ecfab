"""The only package that names concrete adapters: it puts a project together."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.locks.lock_files import LockFiles
from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.adapters.markdown_requests.store import id_in as id_in
from aiflow.adapters.project_files import find_repository as find_repository
from aiflow.adapters.project_files import find_root as find_root
from aiflow.adapters.project_files import refuse_linked_state
from aiflow.adapters.run_folders.run_files import RunFiles
from aiflow.usecases.read_backlog import BacklogSources
from aiflow.wiring.run_ids import new_run_id as new_run_id
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
    queue_view as queue_view,
)
from aiflow.wiring.stores import (
    store_look as store_look,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from aiflow.adapters.demo_folder import DemoFolder
    from aiflow.adapters.journal import ActivityLog
    from aiflow.adapters.markdown_requests.store import Written
    from aiflow.adapters.project_files import ProjectFolder
    from aiflow.domain.queue.runner import Runner
    from aiflow.domain.queue.task import Checkout
    from aiflow.ports import AgentPrograms, AutoRecords, Journal, RequestEditor, RequestSource, Time
    from aiflow.settings import Settings
    from aiflow.usecases.engine import Engine, Ports, Voice
    from aiflow.usecases.project.init import Site
    from aiflow.usecases.project.try_agent import TrialGround


# On whose behalf a process works that the server started: the journal records it.
PERSON_VARIABLE = "AIFLOW_PERSON"


class Project(NamedTuple):
    """One checkout with everything that reads it."""

    root: str
    requests: RequestSource
    editor: RequestEditor
    runs: RunFiles
    locks: LockFiles
    more: Sequence[RequestSource] = ()
    glanced: RequestSource | None = None

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
    def glance(self) -> BacklogSources:
        """Where a page looks at the backlog: in a process that stays, what is listed may be a moment old (PRF-7)."""
        return BacklogSources(self.glanced or self.requests, self.runs, self.locks)

    @property
    def folder(self) -> ProjectFolder:
        """The project's own files."""
        from aiflow.adapters.project_files import ProjectFolder

        return ProjectFolder(self.path)

    @property
    def journal(self) -> ActivityLog:
        """The journal of this checkout, to add to and to read, on behalf of this process's caller."""
        return self.journal_of(os.environ.get(PERSON_VARIABLE, ""))

    def journal_of(self, person: str) -> ActivityLog:
        """The journal of this checkout, in which everything that is added has a person's name."""
        from aiflow.adapters.journal import ActivityLog

        return ActivityLog(self.path, person=person)

    @property
    def auto_records(self) -> AutoRecords:
        """What is kept of this checkout's auto-run."""
        from aiflow.adapters.run_folders.auto_files import AutoFile

        return AutoFile(self.root)


def build_engine(project: Project, settings: Settings, journal: Journal, voice: Voice) -> Engine:
    """Put the run engine together for one caller."""
    return build_ports(project, settings, journal).engine(voice)


def build_ports(project: Project, settings: Settings, journal: Journal) -> Ports:
    """Put a checkout's ports together: the only place that knows what it is made of."""
    from aiflow.adapters.agents.call.command import Surroundings
    from aiflow.adapters.agents.chosen import ChosenAgents
    from aiflow.adapters.git.cleaning.housekeeping import LocalHousekeeping
    from aiflow.adapters.git.commits import GitRemote
    from aiflow.adapters.git.merging.merging import GitMerging
    from aiflow.adapters.git.run_base import with_base
    from aiflow.adapters.git.worktrees.worktrees import GitWorkspaces
    from aiflow.adapters.locks.control_files import ControlFiles
    from aiflow.adapters.locks.taking import LockTaking
    from aiflow.adapters.machine import LocalWorkshop, checkout_folder, state_home
    from aiflow.adapters.notifications.notifier import ProgramNotifier
    from aiflow.adapters.processes.launch import GuardedProcesses
    from aiflow.adapters.run_folders.baseline_file import BaselineFile
    from aiflow.adapters.run_folders.run_store import RunFolders
    from aiflow.domain.agents.plain_text import plain
    from aiflow.domain.runs.worktree import MEGABYTE, Bounds
    from aiflow.usecases.engine import Ports
    from aiflow.wiring.issues import masker_for
    from aiflow.wiring.server import page_address

    root, environ = project.root, os.environ
    masker, processes = masker_for(settings), GuardedProcesses(f"{root}/.aiflow/guards")
    workshop, state = LocalWorkshop(root, environ, settings, processes), str(checkout_folder(root, environ))
    calls, caches = f"{state_home(environ)}/calls", f"{state}/caches"
    around = Surroundings(root, f"{state}/results", calls, environ, processes, masker, caches)
    hooks, sign, base_branch = settings.flag("git.hooks"), settings.flag("git.sign"), settings.text("base_branch")
    bounds = Bounds(settings.requests_dir, settings.integer("limits.file_mb") * MEGABYTE)
    return Ports(
        backlog=project.sources,
        source=project.requests,
        editor=project.editor,
        runs=RunFolders(root, masker, now, workshop.worktree_path, partial(with_base, root, base_branch)),
        locks=LockTaking(root, settings.number("locks.ttl_seconds")),
        control=ControlFiles(root),
        workspaces=partial(GitWorkspaces, root, hooks=hooks, sign=sign, bounds=bounds),
        remote=GitRemote(root, hooks=hooks),
        merging=GitMerging(root, hooks=hooks, sign=sign),
        notifier=ProgramNotifier(root, environ, settings, processes, masker, partial(page_address, root, settings)),
        housekeeping=LocalHousekeeping(root, state),
        baselines=BaselineFile(root),
        agents=ChosenAgents(settings, around),
        workshop=workshop,
        journal=journal,
        time=system_time(),
        new_run_id=new_run_id,
        settings=settings,
        mask=lambda text: masker.mask_text(plain(text)),
    )


def find_agents(settings: Settings, root: str) -> AgentPrograms:
    """Give a look at the agent programs of this machine, as a project at this root would find them."""
    from aiflow.adapters.agents.finding.installed import InstalledAgents

    return InstalledAgents(os.environ, root, settings.texts("agent.env"))


@contextlib.contextmanager
def trial_agents(settings: Settings, root: str) -> Iterator[TrialGround]:
    """Give the ground for a call that belongs to no run: its folder is gone afterwards."""
    import tempfile

    from aiflow.adapters.agents.call.command import Surroundings
    from aiflow.adapters.agents.chosen import ChosenAgents
    from aiflow.adapters.processes.launch import GuardedProcesses
    from aiflow.usecases.project.try_agent import TrialGround
    from aiflow.wiring.issues import masker_for

    with tempfile.TemporaryDirectory(prefix="aiflow-", ignore_cleanup_errors=True) as made:
        folder = os.path.realpath(made)
        os.mkdir(f"{folder}/work")
        processes, masker = GuardedProcesses(f"{folder}/guards"), masker_for(settings)
        around = Surroundings(root, f"{folder}/results", f"{folder}/calls", os.environ, processes, masker)
        yield TrialGround(ChosenAgents(settings, around), f"{folder}/work", new_run_id(), system_time())


def now() -> datetime:
    """The time, with the user's own offset."""
    from aiflow.adapters.system_time import local_now

    return local_now()


def system_time() -> Time:
    """The time of this machine."""
    from aiflow.adapters.system_time import SystemTime

    return SystemTime()


def project_at(
    root: str,
    more: Sequence[RequestSource] = (),
    requests_dir: str = "requests",
    written: Written | None = None,
    *,
    stays: bool = False,
) -> Project:
    """Put a project together at a known root; its requests are its files, and those of `more` sources.

    `written` hears of each request file that is changed or made. A process that `stays` reads again only what changed.
    """
    refuse_linked_state(root)
    files, runs = MarkdownRequests(root, requests_dir, written), RunFiles(root)
    glanced: RequestSource | None = None
    if stays:
        from aiflow.adapters.markdown_requests.remembered import GlancedRequests, RememberedRequests
        from aiflow.adapters.run_folders.remembered_runs import RememberedRuns

        files, runs = (known := RememberedRequests(root, requests_dir, written)), RememberedRuns(root)
        glanced = GlancedRequests(known)
    source: RequestSource = FileSource(files)
    editor: RequestEditor = files
    if more:
        from aiflow.adapters.several_sources import FilesAmongOthers, SeveralSources

        source, editor = SeveralSources(source, more), FilesAmongOthers(files, more)
        glanced = SeveralSources(glanced, more) if glanced is not None else None
    return Project(root, source, editor, runs, LockFiles(root), more, glanced)


def commit_request(root: str, settings: Settings, path: str, message: str) -> str | None:
    """Commit one request file in the user's checkout; return why it was left, None if it was not (REQ-8)."""
    from aiflow.adapters.git.git_cli import Git
    from aiflow.adapters.git.request_commits import commit_file

    return commit_file(Git(root, hooks=settings.flag("git.hooks"), sign=settings.flag("git.sign")), path, message)


def site_at(root: str, start: str, settings: Settings) -> Site:
    """Give a repository to make a project of, seen from a folder at or below its root."""
    from aiflow.adapters.git.project_look import ProjectLook
    from aiflow.usecases.project.init import Site

    below = os.path.relpath(os.path.realpath(start), root)
    look, programs = ProjectLook(root), find_agents(settings, root)
    return Site(project_at(root).folder, look, programs, settings, "" if below == os.curdir else below)


def new_demo(folder: str | None) -> DemoFolder:
    """Give a demo its place: the folder that was named, or one below the system's temporary folder."""
    from aiflow.adapters.demo_folder import DemoFolder

    return DemoFolder(folder, os.environ)


def read_settings(root: str, flags: Iterable[str]) -> Settings:
    """Read the settings from flags, environment and file, or stop with file, key and line."""
    from aiflow.adapters.toml_settings import load_settings

    return load_settings(root, os.environ, flags)


def is_runner_gone(runner: Runner) -> bool:
    """Return whether a runner was a process of this machine and is provably gone."""
    from aiflow.adapters.processes.runner_process import is_gone

    return is_gone(runner)


def checkout_of(project: Project) -> Checkout:
    """Name a project's checkout as every machine sees it (QUE-11)."""
    from aiflow.adapters.processes.runner_process import checkout_at

    return checkout_at(project.root)
