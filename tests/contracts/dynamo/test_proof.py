"""Nothing is sent to whoever took the store's port (QUE-2a): each connection proves first whose its other end is."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aiflow.adapters.dynamo.address import local_address
from aiflow.adapters.dynamo.client import DynamoClient, bare_client
from aiflow.adapters.dynamo.local import LocalDynamo
from aiflow.adapters.dynamo.local.by_docker import DockerStore
from aiflow.adapters.dynamo.local.folder import DOCKER, JAVA, Record, StoreFolder
from aiflow.adapters.dynamo.local.proof import Connect, by_process
from aiflow.adapters.dynamo.local.proved_connections import prove_connections
from aiflow.adapters.processes import sockets
from aiflow.adapters.processes.machine import boot_id, pid_namespace
from aiflow.adapters.processes.sockets import Ends
from aiflow.adapters.processes.table import started_at
from aiflow.domain.queue.store_obstacles import ObstacleKind, Obstacles
from aiflow.errors import EnvironmentProblemError
from aiflow.messages import Texts
from aiflow.usecases.shapes.errors import error_facts
from store_home import program
from waiting import wait_until

pytestmark = pytest.mark.spec("QUE-2a")

# Listens on all interfaces as Java does, in one socket of both kinds; takes what comes, or not.
LISTENER = """
import socket, sys
family = socket.AF_INET6 if sys.argv[1] == "both" else socket.AF_INET
server = socket.create_server(("", 0), family=family, dualstack_ipv6=family == socket.AF_INET6)
print(server.getsockname()[1], flush=True)
taken = []
while sys.argv[2] == "takes": taken.append(server.accept())
sys.stdin.read()
"""


class Listener:
    """A process that listens."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", LISTENER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.pid = self.process.pid

    def record(self, port: int | None = None) -> Record:
        return Record(JAVA, port or self.port, self.pid, started_at(self.pid), boot_id(), None, pid_namespace())

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def listening(*arguments: str) -> Iterator[Listener]:
    """Give a process that listens, and end it."""
    listener = Listener(*arguments)
    try:
        yield listener
    finally:
        listener.end()


class Thief:
    """Listens on a port and keeps every byte that it is sent."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._thread = threading.Thread(target=self._listen)

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(10)
                self.heard.append(connection.recv(65536))

    def __enter__(self) -> Thief:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()


def connect_to(port: int, made: list[socket.socket]) -> Connect:
    def connect() -> socket.socket:
        made.append(socket.create_connection(("127.0.0.1", port), 5))
        return made[-1]

    return connect


@pytest.fixture
def made() -> Iterator[list[socket.socket]]:
    """Give a list of connections that are closed at the end."""
    connections: list[socket.socket] = []
    yield connections
    for each in connections:
        each.close()


@pytest.mark.parametrize("way", [sockets._by_proc, sockets._by_psutil])
@pytest.mark.parametrize("kind", ["both", "one"])
def test_the_other_end_of_a_connection_is_found_with_whom_it_is(
    made: list[socket.socket], kind: str, way: Callable[[int, socket.socket], Ends]
) -> None:
    with listening(kind, "takes") as ours, listening(kind, "takes") as other:
        connection = connect_to(ours.port, made)()
        wait_until(lambda: way(ours.pid, connection).has_peer)
        assert way(ours.pid, connection) == Ends(has_peer=True, is_listening=True)
        assert way(other.pid, connection) == Ends(has_peer=False, is_listening=False)
        # We have an end of it too, and it is not the other one.
        assert way(os.getpid(), connection) == Ends(has_peer=False, is_listening=False)
        ours.end()
        assert way(ours.pid, connection) == Ends(has_peer=False, is_listening=False)


def test_a_connection_to_the_very_process_is_proved(made: list[socket.socket]) -> None:
    with listening("both", "takes") as ours, listening("both", "takes") as other:
        assert by_process(ours.record())(connect_to(ours.port, made)) is None
        # It lives, and somebody else has the port.
        there = connect_to(other.port, made)
        assert by_process(ours.record(other.port))(there) == Obstacles.of(ObstacleKind.STRANGER, port=other.port)
        # Its number is somebody else's by now, who has the port too.
        reused = ours.record()._replace(started_at=1.0)
        assert by_process(reused)(connect_to(ours.port, made)) == Obstacles.of(ObstacleKind.PROCESS_GONE, pid=ours.pid)


def test_one_that_listens_and_takes_nothing_is_waited_for_and_told_nothing(
    made: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiflow.adapters.dynamo.local.proof.ACCEPT_SECONDS", 0.05)
    with listening("both", "waits") as ours, pytest.raises(TimeoutError):
        by_process(ours.record())(connect_to(ours.port, made))


@pytest.mark.parametrize("language", ["en", "ja"])
def test_who_has_the_port_of_a_store_that_lives_hears_nothing(tmp_path: Path, language: str) -> None:
    environ = {"XDG_DATA_HOME": str(tmp_path)}
    folder = StoreFolder(environ)
    folder.make()
    key = folder.make_key()
    with Thief() as thief, listening("both", "takes") as ours:
        folder.write(ours.record(thief.port))
        local = LocalDynamo(environ)
        status = local.status()
        assert (status.is_running, status.problem) == (False, Obstacles.of(ObstacleKind.STRANGER, port=thief.port))
        # Nor by the client that works all night.
        address = local_address(f"http://127.0.0.1:{thief.port}", key)
        bare = bare_client(address)
        prove_connections(bare, str(address.endpoint), lambda connect: local.prove(address, connect))
        with pytest.raises(EnvironmentProblemError) as caught:
            DynamoClient(address, bare).call("list_tables")
        wait_until(lambda: len(thief.heard) == 2)
    assert thief.heard == [b"", b""]
    assert caught.value.reason_code == "STORE_UNREACHABLE"
    told = {"en": f"another program listens on port {thief.port}", "ja": f"ポート {thief.port} では別のプログラムが"}
    assert told[language] in str(error_facts(caught.value, Texts(language))["problem"])


@pytest.mark.parametrize("change", ["key", "port", "stopped", "none"])
def test_a_client_of_another_key_or_port_connects_to_nobody(tmp_path: Path, change: str) -> None:
    folder = StoreFolder({"XDG_DATA_HOME": str(tmp_path)})
    folder.make()
    key = folder.make_key()
    with listening("both", "takes") as ours:
        record = ours.record()
        folder.write(Record(JAVA, record.port) if change == "stopped" else record)
        if change == "none":
            (folder.path / "state.json").unlink()
        port = record.port + (change == "port")
        address = local_address(f"http://127.0.0.1:{port}", "another" if change == "key" else key)

        def connect() -> socket.socket:
            raise AssertionError

        local = LocalDynamo({"XDG_DATA_HOME": str(tmp_path)})
        assert local.prove(address, connect) == Obstacles.of(ObstacleKind.MOVED)


@pytest.mark.parametrize(
    ("said", "is_ours"),
    [
        (["true 1 {ports}"], True),
        (["false 1 {ports}"], False),
        # It was started between: whom we reached is not known.
        (["false 0 {ports}", "true 1 {ports}"], False),
        (["true 1 {ports}", "true 2 {ports}"], False),
        (["true 1 {}"], False),
    ],
)
def test_a_container_has_its_port_before_and_after_we_connect(
    tmp_path: Path, made: list[socket.socket], said: list[str], is_ours: bool
) -> None:
    with listening("one", "takes") as engine:
        ports = f'{{"8000/tcp":[{{"HostIp":"127.0.0.1","HostPort":"{engine.port}"}}]}}'
        for number in (0, 1):
            line = said[min(number, len(said) - 1)].replace("{ports}", ports)
            (tmp_path / str(number)).write_text(f"{line}\n")
        count = tmp_path / "count"
        script = f"echo x >> {count}; if [ $(wc -l < {count}) = 1 ]; then cat {tmp_path}/0; else cat {tmp_path}/1; fi"
        docker = program(tmp_path / "bin", "docker", script)
        store = DockerStore(str(docker), os.environ)
        prove = store.prove_by(Record(DOCKER, engine.port, container="c"))
        found = prove(connect_to(engine.port, made))
    assert found == (None if is_ours else Obstacles.of(ObstacleKind.STRANGER, port=engine.port))
