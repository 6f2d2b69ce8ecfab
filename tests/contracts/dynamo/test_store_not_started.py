"""A local store that does not start (QUE-2) says why, in the words of whoever asked (ERR-1)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aiflow import wiring
from aiflow.adapters.dynamo import local
from aiflow.adapters.dynamo.local import LocalDynamo, by_java, fetch
from aiflow.adapters.dynamo.local.by_docker import DockerStore
from aiflow.adapters.dynamo.local.by_java import JavaStore
from aiflow.adapters.dynamo.local.folder import DOCKER, Record, StoreFolder
from aiflow.adapters.dynamo.local.java import Java
from aiflow.cli.main import run
from aiflow.errors import EnvironmentProblemError
from aiflow.messages import Texts
from aiflow.usecases.shapes.errors import error_facts
from aiflow.usecases.shapes.store import describe_obstacles
from store_home import program

pytestmark = pytest.mark.spec("QUE-2", "ERR-1")

DYING = 'case "$1" in run) echo c0ffee;; inspect) echo false;; logs) {logs};; esac'


@pytest.fixture
def folder(tmp_path: Path) -> StoreFolder:
    made = StoreFolder(environ_of(tmp_path))
    made.make()
    made.make_key()
    return made


def environ_of(tmp_path: Path) -> dict[str, str]:
    return {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "XDG_DATA_HOME": str(tmp_path / "data")}


def refusal(start: Callable[[], object]) -> tuple[str, str]:
    """Return why it was not started, in each language."""
    with pytest.raises(EnvironmentProblemError) as caught:
        start()
    assert caught.value.reason_code == "STORE_NOT_STARTED"
    english, japanese = (str(error_facts(caught.value, Texts(language))["problem"]) for language in ("en", "ja"))
    return english, japanese


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            "echo Hello; echo 'Out of {luck}'; echo; exit 5",
            ("it exited with code 5: Out of {luck}", "終了コード 5 で終了しました: Out of {luck}"),
        ),
        ("exit 6", ("it exited with code 6 and no message", "何も出力せずに終了コード 6 で終了しました")),
        (
            "echo 'Address already in use'; exit 1",
            (
                "every port that was tried is in use",
                "試したポートは、すべてほかのプログラムが使用中でした",
            ),
        ),
        (
            "exec sleep 60",
            ("Connection refused; no answer in 1 s", "Connection refused、1秒以内に応答しませんでした"),
        ),
    ],
    ids=["words", "silent", "ports", "hangs"],
)
def test_of_java(
    tmp_path: Path, folder: StoreFolder, monkeypatch: pytest.MonkeyPatch, script: str, told: tuple[str, str]
) -> None:
    monkeypatch.setattr(by_java, "START_SECONDS", 1 if "sleep" in script else by_java.START_SECONDS)
    java = program(tmp_path / "bin", "java", script)
    store = JavaStore(str(java), tmp_path, environ_of(tmp_path))
    assert refusal(lambda: store.run(folder, None)) == told
    record = folder.record()
    assert record is not None
    assert not record.is_process_alive()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            "echo Pulling; echo 'no such image'; exit 125",
            ("docker run: no such image", "docker run: no such image"),
        ),
        (
            "exit 7",
            (
                "`docker run` exited with code 7 and no message",
                "`docker run` が何も出力せずに終了コード 7 で終了しました",
            ),
        ),
        (
            DYING.format(logs="echo 'No room'"),
            ("Connection refused; its last line: No room", "Connection refused、ログの最終行: No room"),
        ),
        (DYING.format(logs=":"), ("Connection refused", "Connection refused")),
    ],
    ids=["words", "silent", "died", "died silent"],
)
def test_of_docker(tmp_path: Path, folder: StoreFolder, script: str, told: tuple[str, str]) -> None:
    store = DockerStore(str(program(tmp_path / "bin", "docker", script)), environ_of(tmp_path))
    assert refusal(lambda: store.run(folder, None)) == told


def test_a_container_that_is_gone_is_named(tmp_path: Path, folder: StoreFolder) -> None:
    program(tmp_path / "bin", "docker", "exit 1")
    folder.write(Record(DOCKER, 8000, container="aiflow-store-1"))
    status = LocalDynamo(environ_of(tmp_path)).status()
    assert (status.is_running, status.endpoint) == (False, None)
    assert status.problem is not None
    assert describe_obstacles(status.problem, Texts("en")) == "container aiflow-store-1 is gone"
    assert describe_obstacles(status.problem, Texts("ja")) == "コンテナ aiflow-store-1 はすでに終了しています"


ANSWERS_ONCE = """
import json, socket, sys, time
port = int(sys.argv[sys.argv.index("-port") + 1])
with socket.create_server(("127.0.0.1", port)) as server:
    connection, _ = server.accept()
    connection.recv(10000)
    body = json.dumps({"TableNames": []})
    connection.sendall(f"HTTP/1.1 200 OK\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}".encode())
    connection.close()
    time.sleep(60)
"""


def test_a_store_that_answered_was_started_however_busy_it_is_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "store.py"
    script.write_text(ANSWERS_ONCE)
    java = program(tmp_path / "bin", "java", f'exec "{sys.executable}" "{script}" "$@"')
    monkeypatch.setattr(local, "find_java", lambda _environ: Java(str(java), "17"))
    monkeypatch.setattr(fetch, "library_in", lambda _cache: tmp_path)
    store = LocalDynamo(environ_of(tmp_path))
    monkeypatch.setattr(wiring, "local_store", lambda _environ: store)
    try:
        assert run(["store", "start", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["store"]["running"] is True
        assert not store.status().is_running
    finally:
        assert store.stop()
