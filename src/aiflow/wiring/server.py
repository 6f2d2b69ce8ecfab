"""Putting a server together (API-1): its door, its workers, and what says that it is there."""

from __future__ import annotations

import getpass
import os
import secrets
import threading
from typing import TYPE_CHECKING

from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.errors import AiflowError, EnvironmentProblemError
from aiflow.messages.details import words
from aiflow.settings.table import LOCAL_STORE
from aiflow.wiring import PERSON_VARIABLE, system_time
from aiflow.wiring.stores import local_store, namespace_of, open_store, queue_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiflow.domain.lock import LockStatus
    from aiflow.ports import Journal
    from aiflow.ports.issues import IssueCare
    from aiflow.ports.server import Access, Neighbours, RunnerChild, ServerDoor, ServerRecord, ServerRecords
    from aiflow.ports.tasks import QueueStore
    from aiflow.settings import Settings
    from aiflow.usecases.queue.desk import StoreView
    from aiflow.usecases.server.issue_watch import ServerIssues
    from aiflow.usecases.server.sign_in import SignIn
    from aiflow.usecases.server.start_work import WorkStarter
    from aiflow.usecases.server.watch import CheckoutWatch
    from aiflow.wiring.live import LivePorts


def server_records(root: str) -> ServerRecords:
    """Give the place where the server of a checkout says that it is there."""
    from pathlib import Path

    from aiflow.adapters.server.record_files import RecordFiles

    return RecordFiles(Path(root), os.environ)


def access_of(root: str) -> Access:
    """Give the user's token and the sessions of a checkout."""
    from pathlib import Path

    from aiflow.adapters.server.access_files import AccessFiles

    return AccessFiles(Path(root), os.environ)


def door_of(root: str, session_days: float) -> SignIn:
    """Give the door of a checkout's server."""
    from aiflow.usecases.server.sign_in import SignIn

    return SignIn(
        access_of(root), system_time(), lambda: secrets.token_urlsafe(32), new_code, user_name(), session_days
    )


def server_door(root: str) -> ServerDoor:
    """Give the way to ask a server for an address to sign in with."""
    from aiflow.adapters.server.calling import ServerCalls

    return ServerCalls(access_of(root))


def work_starter(root: str, live: LivePorts, settings: Sequence[str] = ()) -> WorkStarter:
    """Give what starts work in a checkout, with the settings that the server itself was given."""
    from pathlib import Path

    from aiflow.adapters.processes.workers import WorkerProcesses
    from aiflow.usecases.server.start_work import WorkStarter

    workers = WorkerProcesses(Path(root), os.environ, PERSON_VARIABLE, settings)
    time = system_time()
    return WorkStarter(workers, live.project().journal, live.ports().locks, time, time.mutex())


def watch_of(root: str, live: LivePorts) -> CheckoutWatch:
    """Give what watches a checkout."""
    from aiflow.adapters.server.eyes import CheckoutFiles
    from aiflow.usecases.server.watch import CheckoutWatch

    def survey() -> Sequence[LockStatus]:
        return live.ports().locks.survey()

    eyes = CheckoutFiles(root, lambda: live.settings().requests_dir, survey)
    return CheckoutWatch(eyes, live.project().journal, system_time())


class StoreDoor:
    """The queue store of a long-running process: opened once, and this machine's started only for a write.

    `live` gives the settings as they are now; the one that they name is the one that is used.
    """

    def __init__(self, live: LivePorts) -> None:
        self._live = live
        self._guard = threading.Lock()
        self._opened: dict[tuple[str, bool], QueueStore] = {}  # by where each answers, and whether it is written to

    def view(self, journal: Journal, namespace: str | None = None, *, is_to_write: bool = False) -> StoreView:
        """Give the store as it is seen from the checkout, or say what keeps it from answering."""
        from aiflow.domain.queue.namespace import check_namespace

        settings, project = self._live.settings(), self._live.project()
        namespace_of(project, settings)  # an invalid name is reported before a store is started
        if namespace is not None:
            check_namespace(namespace)
        return queue_view(project, settings, journal, self._store(settings, is_to_write=is_to_write), namespace)

    def is_there(self) -> bool:
        """Return whether a store was named, or this machine's own is running; nothing is started to find out."""
        try:
            is_local = self._live.settings().text("queue.store") == LOCAL_STORE
            return not is_local or local_store(os.environ).status().is_running
        except AiflowError:
            return False

    def _store(self, settings: Settings, *, is_to_write: bool) -> QueueStore:
        name = settings.text("queue.store")
        at = self._running(is_to_write=is_to_write) if name == LOCAL_STORE else name
        with self._guard:
            known = self._opened.get((at, is_to_write))
            if known is None:
                known = open_store(settings, os.environ, lambda _step, _part: None, is_to_write=is_to_write)
                if at:  # where one that is started just now answers is known the next time
                    self._opened = {(at, is_to_write): known, **self._opened}
            elif is_to_write:
                known.prepare()  # it may have been emptied since
            return known

    @staticmethod
    def _running(*, is_to_write: bool) -> str:
        """Return where the store of this machine answers; nothing if it has to be started, which only a write may."""
        store = local_store(os.environ)
        status = store.status()
        if status.is_running or is_to_write:
            return status.endpoint or "" if status.is_running else ""
        lack = store.lack()
        if lack is not None:
            raise EnvironmentProblemError(reason_code="STORE_NOT_INSTALLED", problem=lack)
        raise EnvironmentProblemError(
            reason_code="STORE_UNREACHABLE",
            endpoint=LOCAL_STORE,
            problem=status.problem or words("store_problem.not_running"),
            start=NextAction(ActionKind.STORE_START),
        )


def server_issues(live: LivePorts, store: StoreDoor, language: str) -> ServerIssues:
    """Give the issue watch beside a server."""
    from aiflow.messages import Texts
    from aiflow.usecases.engine import Voice
    from aiflow.usecases.server.issue_watch import IssuePlace, ServerIssues

    def care() -> IssueCare | None:
        room = live.issues()
        return room.work if room is not None else None

    return ServerIssues(
        IssuePlace(
            care=care,
            engine=lambda: live.engine(Voice(Texts(language))),
            open_desk=lambda: store.view(live.project().journal, is_to_write=True).desk,
            time=system_time(),
        )
    )


def webhook_secret(settings: Settings) -> str:
    """Return the secret that GitHub signs its deliveries with; empty where none is set, or nothing is watched."""
    variable = settings.text("github.webhook_secret_env")
    return os.environ.get(variable, "") if variable and settings.text("github.repo") else ""


def runner_child(root: str, settings: Sequence[str] = ()) -> RunnerChild:
    """Give the runner beside a server."""
    from pathlib import Path

    from aiflow.adapters.processes.runner_child import RunnerProcess

    return RunnerProcess(Path(root), os.environ, settings)


def wants_runner(settings: Settings) -> bool:
    """Return whether a runner belongs beside the server: as the settings say, or where there is a store to ask."""
    mode = settings.text("server.runner")
    if mode != "auto":
        return mode == "always"
    return settings.text("queue.store") != LOCAL_STORE or local_store(os.environ).status().is_running


def new_code() -> str:
    """Make a code that can be typed from a screen: ten characters that are hard to mistake, 50 bits of chance."""
    letters = "".join(secrets.choice("ABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(10))
    return f"{letters[:5]}-{letters[5:]}"


def page_address(root: str, settings: Settings) -> str:
    """Return the address that notes link to: as the settings say, else where this checkout's server says that it is."""
    if settings.text("server.url"):
        return settings.text("server.url")
    known = server_records(root).read()
    return known.url if known else ""


def answering(url: str) -> str | None:
    """Return the instance id of the aiflow server that answers at an address; None if none does."""
    from aiflow.adapters.server.answering import answering as ask

    return ask(url)


def neighbours_of(records: ServerRecords, own: ServerRecord) -> Neighbours:
    """Give the look at the user's other servers; one that does not answer soon is not shown."""
    from functools import partial

    from aiflow.adapters.server.answering import answering as ask
    from aiflow.adapters.server.neighbours import OtherServers

    return OtherServers(records.others, own, partial(ask, seconds=1.0))


def own_command(settings: Sequence[str], argv: Sequence[str]) -> list[str]:
    """Return the command line of one of our own commands, with these settings."""
    from aiflow.adapters.processes.workers import command_line

    return command_line(settings, argv)


def user_name() -> str:
    """Return the name of the operating system's user; a container may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def new_instance_id() -> str:
    """Make the id of one start of a server."""
    return secrets.token_hex(8)


def door_page(root: str, url: str) -> str:
    """Write the file that leads the user's browser to the sign-in, and return its address."""
    from pathlib import Path

    from aiflow.adapters.server.door_page import write_door_page

    return write_door_page(Path(root), url)


def close_door_page(root: str) -> None:
    """Remove that file."""
    from pathlib import Path

    from aiflow.adapters.server.door_page import remove_door_page

    remove_door_page(Path(root))


def tell_manager(state: str) -> bool:
    """Report our state to the service manager, if one started us."""
    from aiflow.adapters.server.service_manager import tell_manager as tell

    return tell(os.environ, state)
