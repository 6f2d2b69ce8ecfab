"""Putting a queue store together (QUE-2): which one is meant, opened, looked at, and its runners woken."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from aiflow.settings.table import LOCAL_STORE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiflow.ports import Journal
    from aiflow.ports.tasks import LocalStore, QueueStore, Wake
    from aiflow.settings import Settings
    from aiflow.usecases.doctor.check_store import StoreLook
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.queue.desk import StoreView
    from aiflow.usecases.runner.desk import RunnerDesk
    from aiflow.wiring import Project


def namespace_of(project: Project, settings: Settings) -> str:
    """Return the namespace of a project's tasks: as the settings say, else one of this checkout's own."""
    import hashlib

    from aiflow.domain.queue.namespace import check_namespace, default_namespace

    if settings.text("namespace"):
        return check_namespace(settings.text("namespace"))
    real = os.path.realpath(project.root)
    return default_namespace(os.path.basename(real), hashlib.sha256(os.fsencode(real)).hexdigest())


def local_store(environ: Mapping[str, str]) -> LocalStore:
    """Give the store of this machine, to start, stop and look at."""
    from aiflow.adapters.dynamo.local import LocalDynamo

    return LocalDynamo(environ)


def open_store(
    settings: Settings,
    environ: Mapping[str, str],
    progress: Callable[[str, float | None], None],
    *,
    is_to_write: bool = True,
    is_all_told: bool = False,
) -> QueueStore:
    """Open the queue store that the settings name, with its tables; the one of this machine is started if need be.

    Just to look, in somebody's account perhaps, no table is made: a missing one reads as empty. That an answer takes
    long is reported while the store is opened, later only if all is wanted: the watch costs a thread for each call.
    """
    from aiflow.adapters.dynamo.address import shared_address
    from aiflow.adapters.dynamo.client import connect
    from aiflow.adapters.dynamo.local import LocalDynamo
    from aiflow.adapters.dynamo.local.client import LocalClient
    from aiflow.adapters.dynamo.queue import DynamoStore

    name = settings.text("queue.store")
    local = LocalClient(LocalDynamo(environ), progress) if name == LOCAL_STORE else None
    client = local or connect(shared_address(name, environ))
    client.slow = lambda: progress("wait", None)
    store = DynamoStore(client, settings.number("queue.poll_ms") / 1000)
    if is_to_write:
        store.prepare()
    if not is_all_told:
        client.slow = None
    return store


def queue_view(
    project: Project, settings: Settings, journal: Journal, store: QueueStore, namespace: str | None = None
) -> StoreView:
    """Give a store as it is seen from a project's checkout; without a namespace the project's own is asked about."""
    from aiflow.adapters.processes.runner_process import make_task_id
    from aiflow.domain.next_action import START_RUNNER
    from aiflow.domain.queue.namespace import check_namespace
    from aiflow.usecases.queue.desk import Desk, StoreView
    from aiflow.wiring import checkout_of, is_runner_gone, system_time

    own = namespace_of(project, settings)
    timeout, time = settings.number("queue.heartbeat_timeout_seconds"), system_time()

    def desk_of(name: str) -> Desk:
        return Desk(
            queue=store.queue(name),
            runners=store.runners(name),
            checkout=checkout_of(project),
            locks=project.locks,
            wake=open_wake(os.environ),
            journal=journal,
            time=time,
            new_task_id=make_task_id,
            timeout_seconds=timeout,
            start=START_RUNNER if name == own else START_RUNNER.having(setting=f"namespace={name}"),
            is_own=name == own,
            is_gone=is_runner_gone,
        )

    asked = own if namespace is None else check_namespace(namespace)
    return StoreView(store, own, asked, desk_of, time, timeout, is_runner_gone)


def store_look(settings: Settings, environ: Mapping[str, str]) -> StoreLook:
    """Give the doctor its look at the stores."""
    from aiflow.usecases.doctor.check_store import StoreLook

    return StoreLook(
        lambda: local_store(environ).status(),
        lambda: local_store(environ).lack(),
        lambda: open_store(settings, environ, lambda _step, _fraction: None, is_to_write=False),
    )


def count_listeners(environ: Mapping[str, str]) -> int:
    """Count the runners of this user that are at work on this machine."""
    from aiflow.adapters.files.user_folders import data_home
    from aiflow.adapters.processes.wake_pipes import count_listeners as count

    return count(str(data_home(environ) / "wake"))


def open_wake(environ: Mapping[str, str], namespace: str | None = None, runner_id: str | None = None) -> Wake:
    """Give the way to wake the runners of this machine; with a namespace and a runner's id, to be woken."""
    from aiflow.adapters.files.user_folders import data_home, private_folder
    from aiflow.adapters.processes.wake_pipes import WakePipes

    if runner_id is not None:
        with contextlib.suppress(OSError):  # then the poll has to do
            private_folder(data_home(environ))
    return WakePipes(str(data_home(environ) / "wake"), namespace, runner_id)


def build_desk(project: Project, engine: Engine, store: QueueStore) -> RunnerDesk:
    """Put a runner's place of work together, to be woken there; the runner decides what it hears and reports."""
    from aiflow.adapters.processes.runner_process import make_task_id, new_runner
    from aiflow.usecases.runner.desk import pace_of, sit_down
    from aiflow.wiring import is_runner_gone, now

    namespace = namespace_of(project, engine.settings)
    runner = new_runner(project.root, namespace, now())
    return sit_down(
        engine,
        runner,
        pace_of(engine.settings),
        queue=store.queue(namespace),
        runners=store.runners(namespace),
        wake=open_wake(os.environ, namespace, runner.runner_id),
        auto_records=project.auto_records,
        new_task_id=make_task_id,
        is_gone=is_runner_gone,
    )
