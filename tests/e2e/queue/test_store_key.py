"""The key of this machine's store (QUE-2a): told to nobody who took its port, and changed with nothing lost."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.adapters.dynamo.local import LocalDynamo
from aiflow.adapters.dynamo.local.by_java import is_free
from aiflow.adapters.dynamo.local.folder import StoreFolder
from aiflow.errors import EnvironmentProblemError
from aiflow.messages import Texts
from aiflow.ports.tasks import QueueStore
from aiflow.settings import settle
from aiflow.usecases.shapes.errors import error_facts
from aiflow.wiring import open_store
from dynamo import Dynamo
from e2e.bench import is_alive
from store_home import StoreHome, filled_cache, store_home
from waiting import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.spec("QUE-2a")]

SILENT = lambda _step, _fraction: None  # noqa: E731


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a cache that has DynamoDB Local already."""
    return filled_cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def home(tmp_path: Path, cache: Path) -> Iterator[StoreHome]:
    """Give a user's home whose store is stopped at the end."""
    with store_home(tmp_path / "home", cache) as made:
        yield made


def open_with_a_task(home: StoreHome) -> QueueStore:
    """Open the user's store, and put a task into it."""
    store = open_store(settle({}), home.environ, SILENT)
    task = {"namespace": "n", "task_id": "t", "status": "QUEUED", "created_at": "2026-11-04T01:30:00.000000Z"}
    item = {name: {"S": value} for name, value in task.items()}
    client = Dynamo(str(LocalDynamo(home.environ).status().endpoint), home.key).client()
    client.put_item(TableName="pm-runner-queue", Item=item)
    return store


def namespaces(home: StoreHome) -> set[str]:
    return set(open_store(settle({}), home.environ, SILENT).namespaces())


def names(home: StoreHome) -> set[str]:
    """Return the databases there are, by the keys that they belong to."""
    return {path.name.partition("_")[0] for path in (home.store / "data").iterdir()}


def test_who_takes_the_port_of_a_killed_store_hears_no_byte(home: StoreHome) -> None:
    store = open_with_a_task(home)
    first = LocalDynamo(home.environ).status()
    assert first.pid is not None
    pid, port, heard = first.pid, int(str(first.endpoint).rpartition(":")[2]), []
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid) and is_free(port))
    with socket.create_server(("127.0.0.1", port)) as thief:

        def listen() -> None:
            while True:
                try:
                    connection, _ = thief.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(30)
                    heard.append(connection.recv(65536))

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            with pytest.raises(EnvironmentProblemError) as caught:
                store.namespaces()
            assert caught.value.reason_code == "STORE_UNREACHABLE"
            assert f"process {pid} is gone" in str(error_facts(caught.value, Texts("en"))["problem"])
            # It was started again elsewhere meanwhile, and is found there.
            assert set(store.namespaces()) == {"n"}
        finally:
            thief.shutdown(socket.SHUT_RDWR)
            thread.join()
    assert heard
    assert set(heard) == {b""}


def test_a_new_key_finds_all_tasks_and_whoever_worked_goes_on(home: StoreHome) -> None:
    store, old = open_with_a_task(home), home.key
    said = home.aiflow("store", "rotate-key")
    assert "new access key" in said.stdout
    new = home.key
    assert new != old
    assert not any(key in f"{said.stdout}{said.stderr}" for key in (old, new))
    assert (home.store / "key").stat().st_mode & 0o777 == 0o600
    assert names(home) == {new}
    assert namespaces(home) == {"n"}
    # Who has the old key is sent away once, and makes nothing of its own under it.
    with pytest.raises(EnvironmentProblemError) as caught:
        store.namespaces()
    assert caught.value.reason_code == "STORE_UNREACHABLE"
    assert set(store.namespaces()) == {"n"}
    assert names(home) == {new}


@pytest.mark.parametrize("step", ["planned", "half", "renamed"])
def test_who_is_killed_while_the_key_changes_loses_nothing(home: StoreHome, step: str) -> None:
    open_with_a_task(home)
    home.aiflow("store", "stop")
    old, folder = home.key, StoreFolder(home.environ)
    journal = home.store / f"data/{old}_us-east-1.db-journal"
    journal.touch()
    folder.plan_key()
    new = folder.next_key()
    assert new is not None
    if step != "planned":
        folder.rename_data(old, new)
    if step == "half":
        (home.store / f"data/{new}_us-east-1.db-journal").rename(journal)
    home.aiflow("store", "start")
    assert (home.key, folder.next_key()) == (new, None)
    assert names(home) == {new}
    assert namespaces(home) == {"n"}


def test_a_key_that_others_could_read_is_changed_at_the_next_start(home: StoreHome) -> None:
    open_with_a_task(home)
    old = home.key
    (home.store / "key").chmod(0o644)
    assert namespaces(home) == {"n"}
    new = home.key
    assert new != old
    assert (home.store / "key").stat().st_mode & 0o777 == 0o600
    # Once is enough.
    assert namespaces(home) == {"n"}
    assert home.key == new
