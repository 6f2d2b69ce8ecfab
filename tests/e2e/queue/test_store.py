"""The store of this machine, as its user has it (QUE-2, QUE-2a, DOC-1): a real Java, real processes, one real store."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from aiflow.adapters.dynamo.local import PATIENCE_SECONDS, LocalDynamo
from aiflow.adapters.processes.machine import boot_id
from aiflow.adapters.processes.table import started_at
from aiflow.adapters.processes.wake_pipes import WakePipes
from aiflow.domain.health import Finding, Health
from aiflow.domain.next_action import NextAction
from aiflow.errors import EnvironmentProblemError
from aiflow.messages import Texts
from aiflow.messages.commands import command_line
from aiflow.settings import Source, settle
from aiflow.usecases.doctor.check_store import check_store
from aiflow.wiring import open_store, store_look
from conftest import somebody_else
from dynamo import Dynamo
from dynamo_keeper import java_command
from e2e.bench import Bench, is_alive
from e2e.doctor.test_doctor import checks
from store_home import StoreHome, filled_cache, program, store_home
from waiting import wait_until

SILENT = lambda _step, _fraction: None  # noqa: E731


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a cache that has DynamoDB Local already."""
    return filled_cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def home(tmp_path: Path, cache: Path) -> Iterator[StoreHome]:
    """Give a user's home whose store is stopped at the end."""
    with store_home(tmp_path / "home", cache) as made:
        yield made


def stores_of(home: StoreHome) -> list[int]:
    """Return the processes that have the user's data open."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if os.fsencode(home.store / "data") in words and b"-jar" in words and b"read -r go" not in words[2]:
                found.append(int(entry.name))
    return found


@contextlib.contextmanager
def taken_port(port: int) -> Iterator[None]:
    """Listen where the store was, and hang up on everybody."""
    with socket.create_server(("127.0.0.1", port)) as server:

        def hang_up() -> None:
            with contextlib.suppress(OSError):
                while True:
                    server.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextlib.contextmanager
def somebody() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that has nothing to do with us."""
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.faults
@pytest.mark.spec("QUE-2", "QUE-2a", "DOC-1")
def test_eight_starts_at_once_give_one_store_that_is_the_users_alone(home: StoreHome, bench: Bench) -> None:
    command = [sys.executable, "-m", "aiflow", "store", "start", "--json"]
    started = [
        subprocess.Popen(command, cwd=home.folder, env=home.environ, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    answers = [json.loads(process.communicate(timeout=120)[0])["store"] for process in started]
    assert {process.returncode for process in started} == {0}
    assert answers == [{**answers[0], "running": True}] * 8
    [pid] = stores_of(home)
    assert answers[0]["pid"] == pid == os.getsid(pid)

    environ = dict(part.split("=", 1) for part in Path(f"/proc/{pid}/environ").read_text().split("\0") if part)
    assert set(environ) <= {"PATH", "HOME", "LANG", "PWD"}
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    assert "-sharedDb" not in words
    assert "-disableTelemetry" in words
    assert home.data.stat().st_mode & 0o777 == 0o700
    assert home.store.stat().st_mode & 0o777 == 0o700
    assert not any(path.stat().st_mode & 0o077 for path in (home.store / "data").iterdir())
    assert (home.store / "key").stat().st_mode & 0o777 == 0o600

    said = [
        home.aiflow("store", *words) for words in (("status",), ("start",), ("logs", "-n", "50"), ("logs", "--json"))
    ]
    said += [home.aiflow("--lang", "ja", "store", "status"), home.aiflow("store", "status", "--json")]
    assert not any(home.key in f"{each.stdout}{each.stderr}{words}" for each in said)
    assert f"Java, process {pid}" in said[0].stdout
    assert "SharedDb:\tfalse" in said[2].stdout.replace(" ", "\t")
    assert "Starting" not in said[1].stderr

    # Whoever comes by another key is in another, empty database.
    ours = Dynamo(answers[0]["endpoint"], home.key).client()
    open_store(settle({}), home.environ, SILENT)
    assert "pm-runner-queue" in ours.list_tables()["TableNames"]
    for stranger in ("aiflow", "mine"):
        assert Dynamo(answers[0]["endpoint"], stranger).client().list_tables()["TableNames"] == []

    bench.aiflow.environ |= {"XDG_DATA_HOME": home.environ["XDG_DATA_HOME"]}
    assert checks(bench, "doctor", "--full")["store"]["result"] == "PASS"
    home.store.chmod(0o755)
    exposed = checks(bench, "doctor", "--full", code=3)["store"]
    assert (exposed["result"], exposed["evidence"]) == ("FAIL", [str(home.store)])
    assert exposed["fix"] == "aiflow queue store rotate-key"

    runner = WakePipes(str(home.data / "wake"), "app", "r1")
    stopped = home.aiflow("store", "stop").stdout
    runner.close()
    assert "tasks are kept" in stopped
    assert "Runners on this machine: 1." in stopped
    assert stores_of(home) == []
    assert home.aiflow.json("store", "status", code=3)["store"]["running"] is False
    assert "was not running" in home.aiflow("store", "stop").stdout
    assert "store" not in checks(bench, "doctor", "--full")


@pytest.mark.faults
@pytest.mark.spec("QUE-2")
def test_what_was_written_survives_a_kill_and_a_taken_port(home: StoreHome, bench: Bench) -> None:
    store = open_store(settle({}), home.environ, SILENT)
    local = LocalDynamo(home.environ)
    first = local.status()
    assert first.pid is not None
    client = Dynamo(str(first.endpoint), home.key).client()
    task = {"namespace": "n", "task_id": "t", "status": "QUEUED", "created_at": "2026-11-04T01:30:00.000000Z"}
    client.put_item(TableName="pm-runner-queue", Item={name: {"S": value} for name, value in task.items()})
    killed = first.pid
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not is_alive(killed))
    status = home.aiflow("store", "status", code=3)
    assert f"process {killed} is gone" in status.stdout
    [unpacked] = (home.store / "tmp").iterdir()  # what a killed Java leaves is in no folder of everybody's
    bench.aiflow.environ |= {"XDG_DATA_HOME": home.environ["XDG_DATA_HOME"]}
    assert checks(bench, "doctor", "--full")["store"]["fix"] == "aiflow queue store start"

    # Somebody else has its port and its number by now: neither is touched, nor believed.
    port = int(str(first.endpoint).rpartition(":")[2])
    with taken_port(port), somebody() as other:
        home.store.joinpath("state.json").write_text(
            json.dumps({**home.state, "pid": other.pid, "started_at": (started_at(other.pid) or 0) - 5})
        )
        # A client that was opened before starts it again, and finds it where it is.
        with pytest.raises(EnvironmentProblemError) as caught:
            store.all_runners()
        start = caught.value.context["start"]
        assert (caught.value.reason_code, command_line(cast(NextAction, start))) == (
            "STORE_UNREACHABLE",
            "aiflow queue store start",
        )
        again = local.status()
        assert again.is_running
        assert again.endpoint != first.endpoint
        assert not unpacked.exists()
        assert set(store.namespaces()) == {"n"}
        assert other.poll() is None
    moved = Dynamo(str(again.endpoint), home.key).client()
    assert "Item" in moved.get_item(TableName="pm-runner-queue", Key={"namespace": {"S": "n"}, "task_id": {"S": "t"}})

    # What a person stopped stays stopped.
    fresh = open_store(settle({}), home.environ, SILENT)
    assert local.stop()
    with pytest.raises(EnvironmentProblemError):
        fresh.all_runners()
    assert stores_of(home) == []
    assert local.status().is_stopped


@pytest.mark.spec("CLI")
def test_without_an_action_it_shows_its_help_as_the_queue_does(home: StoreHome) -> None:
    for words in (["store"], ["queue", "store"], ["queue"]):
        shown = home.aiflow(*words)
        assert f"Usage: aiflow queue{' store' if 'store' in words else ''} " in shown.stdout
        assert shown.stderr == ""
    assert "使い方" in home.aiflow("store", "--lang", "ja").stdout


@pytest.mark.spec("QUE-2")
def test_it_says_exactly_what_is_missing(home: StoreHome, tmp_path: Path) -> None:
    nothing = home.aiflow("store", "start", code=3, env=home.without("java", "npm") | {"XDG_CACHE_HOME": str(tmp_path)})
    assert "STORE_NOT_INSTALLED" in nothing.stderr
    assert "Java 17 or newer was not found" in nothing.stderr
    assert "npm, which downloads DynamoDB Local, was not found" in nothing.stderr
    assert "Docker was not found" in nothing.stderr

    old = program(tmp_path / "old/bin", "java", "echo 'openjdk version \"11.0.2\"' >&2")
    too_old = home.aiflow.json("store", "start", code=3, env={"PATH": f"{old.parent}:{home.without('java')['PATH']}"})
    assert f"{old} is Java 11.0.2, and 17 or newer is needed" in too_old["error"]["detail"]
    assert "npm" not in too_old["error"]["detail"]

    program(home.folder / "bin", "docker", "exit 1")
    no_engine = home.aiflow("--lang", "ja", "store", "start", code=3, env=home.without("java"))
    assert "エンジンが応答しません" in no_engine.stderr
    assert "Java 17 以降が見つかりません" in no_engine.stderr
    assert "not found" not in no_engine.stderr
    assert stores_of(home) == []


@pytest.mark.spec("QUE-2", "DOC-1")
@pytest.mark.parametrize("how", ["java", "docker"])
def test_once_it_ran_the_advice_is_to_get_that_back(home: StoreHome, how: str) -> None:
    home.store.mkdir(parents=True)
    (home.store / "key").write_text("x" * 32)
    (home.store / "state.json").write_text(json.dumps({"how": how, "port": 1}))
    env = home.without(how)
    if how == "java":
        program(home.folder / "bin", "docker", "exit 0")  # it works, and does not help: the tasks are not there
    failed, status = (home.aiflow("store", action, code=3, env=env) for action in ("start", "status"))
    for told in (" ".join(failed.stderr.split()), " ".join(status.stdout.split())):
        assert f"it ran {'with Java' if how == 'java' else 'in Docker'} before" in told
        assert ("Install Java 17" in told) is (how == "java")
        assert ("Start Docker again" in told) is (how == "docker")
        assert "start Docker" not in told
        assert f"delete {home.store}" in told
    assert "starts automatically" not in status.stdout
    lack = home.aiflow.json("store", "status", code=3, env=env)["store"]["lack"]
    assert ("Java 17 or newer was not found" if how == "java" else "Docker was not found") in lack
    [warning] = check_store(settle({}), store_look(settle({}), home.environ | env), Texts("en"))
    assert warning.fix is not None
    assert ("docker" in command_line(warning.fix)) is (how == "docker")


@pytest.mark.timing
@pytest.mark.spec("QUE-2")
def test_a_registry_that_does_not_answer_is_told_soon_and_with_advice_that_fits(
    home: StoreHome, tmp_path: Path, allowed: Callable[[float], float]
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{nobody.getsockname()[1]}"
        env = {"XDG_CACHE_HOME": str(tmp_path), "npm_config_registry": f"http://{where}"}
        began = time.monotonic()
        failed = home.aiflow("store", "start", code=3, env=env)
    assert time.monotonic() - began < allowed(30)  # npm alone would take 70
    assert "STORE_NOT_FETCHED" in failed.stderr
    assert f"ECONNREFUSED {where}" in " ".join(failed.stderr.split())
    assert "npm ping" in failed.stderr
    assert "node_modules" not in failed.stderr
    assert "Install Java" not in failed.stderr


@pytest.mark.spec("QUE-2", "DOC-1")
def test_the_full_check_warns_where_nothing_can_run_it_and_only_there(home: StoreHome, tmp_path: Path) -> None:
    def found(environ: dict[str, str]) -> list[Finding]:
        return list(check_store(settle({}), store_look(settle({}), environ), Texts("en")))

    bare = home.environ | home.without("java", "npm") | {"XDG_CACHE_HOME": str(tmp_path)}
    [warning] = found(bare)
    assert (warning.health, warning.reason_code) == (Health.WARN, "STORE_NOT_INSTALLED")
    told = Texts("en")(f"check.{warning.message}", **dict(warning.facts))
    assert "only the queue and runners need" in told
    assert "Java 17 or newer was not found" in told
    assert "npm, which downloads DynamoDB Local, was not found" in told
    assert "Docker was not found" in told
    # It never ran, and could.
    assert found(home.environ) == []
    program(home.folder / "bin", "docker", "exit 0")
    assert found(bare) == []
    assert not home.store.exists()


@pytest.mark.spec("QUE-2")
def test_a_data_folder_that_cannot_be_written_is_named(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "share").mkdir(mode=0o555)
    environ = {"PATH": os.environ["PATH"], "XDG_DATA_HOME": str(tmp_path / "share"), "XDG_CACHE_HOME": str(cache)}
    with somebody_else(tmp_path), pytest.raises(EnvironmentProblemError) as caught:
        LocalDynamo(environ).start(SILENT)
    assert caught.value.reason_code == "IO_ERROR"
    assert caught.value.context == {"path": str(tmp_path / "share/aiflow"), "problem": "Permission denied"}
    assert not LocalDynamo(environ).status().is_running
    assert LocalDynamo(environ).log(5) == ""
    assert not LocalDynamo(environ).stop()
    assert list((tmp_path / "share").iterdir()) == []


@pytest.mark.spec("QUE-2")
def test_a_java_that_leaves_is_reported_with_what_it_said(home: StoreHome) -> None:
    script = "case \"$1\" in -version) echo 'openjdk version \"17\"' >&2;; *) echo 'Out of luck'; exit 5;; esac"
    java = program(home.folder / "bad", "java", script)
    error = home.aiflow.json("store", "start", code=3, env={"PATH": f"{java.parent}:{os.environ['PATH']}"})["error"]
    assert error["reason_code"] == "STORE_NOT_STARTED"
    assert "exited with code 5: Out of luck" in error["detail"]
    assert "Out of luck" in home.aiflow("store", "logs").stdout


class Refusing(BaseHTTPRequestHandler):
    """Answers as AWS does to somebody it does not know."""

    def do_POST(self) -> None:
        data = b'{"__type": "com.amazon.coral.service#UnrecognizedClientException", "message": "The token is invalid"}'
        self.send_response(400)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.mark.spec("QUE-2", "DOC-1")
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"AWS_REGION": "eu-west-1"}, "Unable to locate credentials"),
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}, "You must specify a region"),
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "the moon"}, "region"),
        ({"AWS_PROFILE": "nobody", "AWS_REGION": "eu-west-1"}, "nobody"),
        (
            {
                "AWS_ACCESS_KEY_ID": "a",
                "AWS_SECRET_ACCESS_KEY": "b",
                "AWS_REGION": "eu-west-1",
                "AWS_ENDPOINT_URL": "?",
            },
            "UnrecognizedClientException: The token is invalid",
        ),
    ],
)
def test_aws_says_what_is_wrong_with_who_we_are(bench: Bench, given: dict[str, str], told: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    url = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_address[1]}"} if "AWS_ENDPOINT_URL" in given else {}
    home = str(bench.root.parent)
    env = {"AIFLOW_QUEUE_STORE": "aws", "AWS_EC2_METADATA_DISABLED": "true", "HOME": home, **given, **url}
    found = checks(bench, "doctor", "--full", code=3, env=env)["store"]
    server.shutdown()
    server.server_close()
    code = "STORE_REFUSED" if url else "STORE_CREDENTIALS_MISSING"
    assert (found["result"], found["reason_code"]) == ("FAIL", code)
    assert told in found["message"]
    assert not found["message"].endswith(".")


def _of_another_shape(dynamo: Dynamo) -> None:
    dynamo.client().create_table(
        TableName="pm-runner-queue",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}],
        BillingMode="PAY_PER_REQUEST",
    )


@pytest.mark.spec("QUE-2", "DOC-1")
def test_the_full_check_asks_a_shared_store_and_makes_nothing_there(bench: Bench, dynamo: Dynamo) -> None:
    fresh = checks(bench, "doctor", "--full", env=dynamo.environ)["store"]
    assert (fresh["result"], fresh["message"]) == (
        "PASS",
        f"The queue store answers; its tables are created on first use: {dynamo.endpoint}",
    )
    assert dynamo.client().list_tables()["TableNames"] == []
    _of_another_shape(dynamo)
    other = checks(bench, "doctor", "--full", code=3, env=dynamo.environ)["store"]
    assert (other["result"], other["reason_code"]) == ("FAIL", "STORE_TABLE_MISMATCH")
    assert "found id (HASH, N)" in other["message"]


@pytest.mark.spec("DOC-1", "QUE-2")
def test_the_quick_check_needs_no_store_and_the_full_one_warns_of_an_open_way(bench: Bench) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        env: dict[str, Any] = {"AIFLOW_QUEUE_STORE": url}
        assert "store" not in checks(bench, "doctor", env=env)
        gone = checks(bench, "doctor", "--full", code=3, env=env)["store"]
    assert (gone["result"], gone["reason_code"]) == ("FAIL", "STORE_UNREACHABLE")
    env = {"AIFLOW_QUEUE_STORE": "http://aiflow.invalid:1"}
    answer = json.loads(bench.aiflow("doctor", "--full", "--json", code=3, env=env).stdout)
    results = [each["result"] for each in answer["checks"] if each["id"] == "store"]
    assert results == ["WARN", "FAIL"]


@pytest.mark.faults
@pytest.mark.spec("QUE-2", "QUE-10", "ERR-3")
def test_a_full_disk_is_named_and_nothing_is_lost_by_it(tiny_disk: Path, cache: Path, bench: Bench) -> None:
    with store_home(tiny_disk / "home", cache) as home:
        where = ("-C", str(bench.root), "queue")
        first = home.aiflow.json(*where, "add", "The first one")["tasks"][0]["task_id"]
        with contextlib.suppress(OSError), open(tiny_disk / "fill", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        error = home.aiflow.json(*where, "add", "No room for this one", code=3)["error"]
        assert (error["reason_code"], error["context"]["path"]) == ("DISK_FULL", str(home.store / "data"))
        [task] = home.aiflow.json(*where, "list")["tasks"]
        assert task["task_id"] == first
        (tiny_disk / "fill").unlink()
        second = home.aiflow.json(*where, "add", "Room again")["tasks"][0]["task_id"]
        assert [each["task_id"] for each in home.aiflow.json(*where, "list")["tasks"]] == [second, first]


@pytest.mark.faults
@pytest.mark.spec("QUE-2")
def test_one_that_lives_and_does_not_answer_is_replaced_after_a_while(home: StoreHome) -> None:
    home.aiflow("store", "start")
    pid = int(str(home.state["pid"]))
    os.kill(pid, signal.SIGSTOP)
    status = home.aiflow.json("store", "status", code=3)["store"]
    assert status["pid"] == pid
    assert status["problem"] == "timed out"
    home.aiflow("store", "start")
    [now] = stores_of(home)
    assert now != pid
    # One that is merely slow is waited for.
    os.kill(now, signal.SIGSTOP)
    threading.Timer(4, os.kill, (now, signal.SIGCONT)).start()
    home.aiflow("store", "start")
    assert stores_of(home) == [now]


@pytest.mark.timing
@pytest.mark.spec("QUE-2")
def test_one_that_ends_while_it_is_waited_for_is_waited_for_no_longer(
    home: StoreHome, allowed: Callable[[float], float]
) -> None:
    home.aiflow("store", "start")
    pid = int(str(home.state["pid"]))
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(1, os.kill, (pid, signal.SIGKILL)).start()
    began = time.monotonic()
    home.aiflow("store", "start")
    assert stores_of(home) != [pid]
    assert time.monotonic() - began < allowed(PATIENCE_SECONDS)


@pytest.mark.faults
@pytest.mark.spec("QUE-2a")
def test_a_starter_that_is_killed_leaves_no_store_that_nobody_knows_of(home: StoreHome) -> None:
    command = [sys.executable, "-m", "aiflow", "store", "start"]
    for seconds in (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.2):
        starter = subprocess.Popen(command, cwd=home.folder, env=home.environ, stderr=subprocess.DEVNULL)
        try:
            starter.wait(seconds)
        except subprocess.TimeoutExpired:
            starter.kill()
            starter.wait()
        wait_until(lambda: len(stores_of(home)) == 0 or home.state["pid"] in stores_of(home))
        assert len(stores_of(home)) <= 1
    home.aiflow("store", "start")
    assert stores_of(home) == [home.state["pid"]]
    # Nor is its data opened twice if what was written down is lost.
    (home.store / "state.json").unlink()
    lost = home.aiflow("store", "start", code=3)
    assert "is already using its data" in lost.stderr
    [pid] = stores_of(home)
    os.kill(pid, signal.SIGTERM)


@pytest.mark.faults
@pytest.mark.spec("QUE-2")
def test_docker_is_the_second_way(home: StoreHome) -> None:
    """A stand-in for the engine, with the real DynamoDB Local in its container: there is no engine where tests run."""
    java, folder = shutil.which("java"), java_command(0, home.folder)[1]
    state = home.folder / "engine"
    script = f"""
echo "$@" >> {state}.calls
case "$1" in
info) exit 0;;
inspect) kill -0 $(cat {state}.pid) 2>/dev/null && echo "true $(cat {state}.began)" || exit 1;;
stop) kill $(cat {state}.pid); rm {state}.pid;;
rm) exit 0;;
logs) cat {state}.log;;
run) case "$*" in *--entrypoint*)
    for last; do :; done; cd {state}.volume; exec sh -c "$(echo "$last" | sed 's#cd /data#true#')";; esac
  port=$(echo "$@" | sed 's/.*127.0.0.1:\\([0-9]*\\):8000.*/\\1/')
  mkdir -p {state}.volume; cd {folder}
  setsid {java} -Djava.io.tmpdir={state}.volume -Djava.library.path=./DynamoDBLocal_lib -jar DynamoDBLocal.jar -port $port -dbPath {state}.volume \\
    > {state}.log 2>&1 < /dev/null & echo $! > {state}.pid
  echo "$! {{\\"8000/tcp\\":[{{\\"HostIp\\":\\"127.0.0.1\\",\\"HostPort\\":\\"$port\\"}}]}}" > {state}.began;;
esac"""
    program(home.folder / "bin", "docker", script)
    path = home.without("java")["PATH"]
    for name in ("sed", "mkdir", "setsid", "rm", "kill", "mv"):
        link = Path(path, name)
        found = [Path(each, name) for each in ("/usr/bin", "/bin") if Path(each, name).exists()]
        if found and not link.exists():
            link.symlink_to(found[0])
    home.aiflow.environ |= {"PATH": path}
    started = home.aiflow("store", "start")
    assert "Using Docker" in started.stderr
    assert "Docker; DynamoDB Local" in started.stdout
    calls = Path(f"{state}.calls").read_text()
    assert "--publish 127.0.0.1:" in calls
    assert "sharedDb" not in calls
    store = open_store(settle({Source.FLAG: {}}), home.aiflow.environ, SILENT)
    store.prepare()
    assert "SharedDb" in home.aiflow("store", "logs").stdout
    # A new key finds the same tables, by way of no command line.
    key = home.key
    home.aiflow("store", "rotate-key")
    assert home.key != key
    assert LocalDynamo(home.aiflow.environ).status().is_running
    with contextlib.suppress(EnvironmentProblemError):
        store.check()  # the first call finds out that the old key is no more
    assert store.check() == ()
    assert not any(each in Path(f"{state}.calls").read_text() for each in (key, home.key))
    # Java has come meanwhile: the tasks are in Docker, and so it stays.
    home.aiflow("store", "stop")
    home.aiflow("store", "status", code=3)
    again = home.aiflow("store", "start", env={"PATH": f"{path}:{os.environ['PATH']}"})
    assert "Docker; DynamoDB Local" in again.stdout
    assert boot_id() is None or home.state["pid"] is None
