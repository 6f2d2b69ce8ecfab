"""`aiflow up` as people use it (API-1): one line when it is ready, one server a checkout, ports, Ctrl-C, signals."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import fresh_git
from e2e.bench import Bench, is_alive
from e2e.up import Up, end_leftovers, hold, holder_of, let_go, wait_for_state
from waiting import wait_until

pytestmark = pytest.mark.spec("API-1")


@pytest.fixture(autouse=True)
def _no_leftovers(bench: Bench) -> Iterator[None]:
    yield
    end_leftovers(bench)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Bench]:
    """Give another project of the same user."""
    root = tmp_path / "other"
    root.mkdir()
    fresh_git.make_repository(root)
    made = Bench(root, tmp_path / "elsewhere")
    made.aiflow.environ["XDG_DATA_HOME"] = f"{tmp_path}/repository.data"
    yield made
    made.close()


def test_when_ready_it_says_one_line_and_ctrl_c_leaves_nothing(bench: Bench) -> None:
    up = Up(bench)
    assert set(up.ready) == {"url", "token_file", "instance_id", "pid"}
    assert up.ready["pid"] == up.process.pid
    assert Path(up.ready["token_file"]).stat().st_mode & 0o777 == 0o600
    assert up.call("GET", "/api/health").shape["instance_id"] == up.ready["instance_id"]
    record = json.loads((bench.root / ".aiflow/server/server.json").read_text())
    assert (record["url"], record["instance_id"]) == (up.url, up.ready["instance_id"])
    up.end()
    assert bench.locks() == []


def test_a_second_one_says_where_the_first_is(bench: Bench) -> None:
    up = Up(bench)
    refused = bench.aiflow.json("up", "--port", "0", code=4)["error"]
    assert (refused["reason_code"], refused["context"]["url"]) == ("SERVER_RUNNING", up.url)
    told = bench.aiflow("up", code=4)
    assert up.url in told.stderr
    up.end()
    Up(bench).end()


def test_the_port_of_another_project_is_left_to_it(bench: Bench, other: Bench) -> None:
    first = Up(bench)
    port = urlsplit(first.url).port
    other.configure(f"[server]\nport = {port}")
    process = other.start("up", "--json")
    assert process.stdout is not None
    second = json.loads(process.stdout.readline())["url"]
    assert second.startswith("http://127.0.0.1:")
    assert second != first.url
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert str(bench.root) in err, "it says who has the port"
    assert other.aiflow.json("up", "--port", str(port), code=3)["error"]["reason_code"] == "PORT_IN_USE", (
        "it was wanted"
    )
    first.end()


def test_the_port_of_another_program_is_said(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bench.configure(f"[server]\nport = {taken.getsockname()[1]}")
        refused = bench.aiflow.json("up", code=3)["error"]
    assert refused["reason_code"] == "PORT_IN_USE"
    assert not (bench.root / ".aiflow/server/server.json").exists()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1", ""])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_an_address_that_is_not_this_machines_is_said(bench: Bench, host: str, language: str) -> None:
    told = bench.aiflow("--lang", language, "up", "--host", host, code=2)
    assert "INPUT_INVALID" in told.stderr
    assert f"{host}:4310" in told.stderr
    assert "server.host" in told.stderr


def test_on_all_addresses_the_link_is_one_that_a_browser_here_can_open(bench: Bench) -> None:
    up = Up(bench, "--host", "0.0.0.0")
    assert up.url.startswith("http://127.0.0.1:")
    assert up.call("GET", "/api/status").status == 200
    assert "set server.hosts" in up.end()
    bench.configure('[server]\nhosts = ["desk.example"]')
    assert "server.hosts" not in Up(bench, "--host", "0.0.0.0").end()


def test_ctrl_c_once_waits_for_the_run_and_the_page_answers_meanwhile(bench: Bench) -> None:
    hold(bench)
    up = Up(bench)
    up.run()
    up.asks(signal.SIGINT)
    wait_until(lambda: up.call("POST", "/api/requests/RQ-1/run").shape["error"]["reason_code"] == "SERVER_STOPPING")
    assert up.call("GET", "/api/status").shape["running"][0]["request_id"] == "RQ-1"
    let_go(bench)
    assert "Ctrl-C again" in up.end(None)
    assert bench.stage()["state"] == "DONE"


def test_ctrl_c_twice_cancels_the_run_in_order(bench: Bench) -> None:
    hold(bench)
    up = Up(bench)
    up.run()
    up.asks(signal.SIGINT)
    wait_until(lambda: up.call("POST", "/api/requests/RQ-1/run").shape["error"]["reason_code"] == "SERVER_STOPPING")
    up.end()
    assert (bench.stage()["state"], bench.stage()["error"]["reason_code"]) == ("NEEDS_INPUT", "CANCELLED")
    assert bench.locks() == []
    assert not any(is_alive(call["pid"]) for call in bench.agent.calls)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_service_stop_leaves_the_work_alone_and_a_closed_terminal_does_not(
    bench: Bench, number: signal.Signals
) -> None:
    hold(bench)
    up = Up(bench)
    up.run()
    worker = holder_of(bench)
    up.end(number)
    if number is signal.SIGHUP:
        assert bench.stage()["error"]["reason_code"] == "CANCELLED"
        return
    assert is_alive(worker)
    assert os.getsid(worker) == worker, "it is in a session of its own"
    let_go(bench)
    wait_for_state(bench, "DONE")


def test_settings_that_break_while_it_runs_end_nothing(bench: Bench) -> None:
    up = Up(bench)
    good = (bench.root / "aiflow.toml").read_text()
    (bench.root / "aiflow.toml").write_text("nonsense = [")
    assert up.call("GET", "/api/status").shape["error"]["reason_code"] == "SETTINGS_INVALID"
    assert up.call("GET", "/api/health").status == 200
    (bench.root / "aiflow.toml").write_text(good)
    assert up.call("GET", "/api/status").status == 200
    up.end()


@pytest.mark.spec("AUT-5")
def test_the_base_branch_is_that_of_the_start(bench: Bench) -> None:
    up = Up(bench)
    bench.git("checkout", "-q", "-b", "side")
    up.call("POST", "/api/requests/RQ-1/run")
    wait_for_state(bench, "DONE")
    assert bench.stage()["base_branch"] == "main"
    up.end()


def test_a_state_folder_that_cannot_be_written_is_said(bench: Bench) -> None:
    (bench.root / ".aiflow").mkdir(exist_ok=True)
    (bench.root / ".aiflow/server").write_text("in the way")
    error = bench.aiflow.json("up", "--port", "0", code=3)["error"]
    assert ".aiflow/server" in json.dumps(error)


def test_in_words_it_says_how_to_sign_in(bench: Bench) -> None:
    process = bench.start("up", "--port", "0")
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(5)]
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err, out) == (0, "", "Stopped.\n")
    assert lines[0].startswith("aiflow is running at http://127.0.0.1:")
    assert "main" in lines[1]
    assert "/sign-in#code=" in lines[3]
