"""A crash continues the same run (ISS-6, RUN-11): whatever started an issue's run and died, the next one takes it up."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.adapters.github_issues.transport import Ask
from e2e.bench import Bench
from e2e.up import end_leftovers, hold, holder_of, let_go
from github.places import Place, a_place
from waiting import wait_until

WAYS = {
    "up": ("up", "--json", "--port", "0"),
    "issues watch": ("issues", "watch", "--json"),
    "auto": ("auto", "--json"),
}


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(repository, tmp_path)
    yield made
    end_leftovers(made)
    made.close()


@pytest.fixture
def place(bench: Bench) -> Iterator[Place]:
    with a_place(bench) as made:
        yield made


@pytest.mark.faults
@pytest.mark.spec("ISS-6", "ISS-12", "RUN-11")
@pytest.mark.parametrize("way", WAYS)
def test_a_kill_in_the_middle_of_an_agents_call_continues_the_same_run(place: Place, way: str) -> None:
    bench, number = place.bench, place.queued()
    bench.add_request("RQ-1", status="draft")
    bench.commit()
    hold(bench)
    first = bench.start(*WAYS[way])
    wait_until((bench.agent.folder / f"at.GH-{number}").exists)
    worker = holder_of(bench, f"request.GH-{number}")
    for pid in {first.pid, worker}:
        os.kill(pid, signal.SIGKILL)
    first.communicate()
    let_go(bench)
    second = bench.start(*WAYS[way])
    wait_until(lambda: place.is_finished(number))
    if way != "auto":  # which ends by itself
        second.send_signal(signal.SIGINT)
    second.communicate(timeout=60)
    [run_id] = bench.run_ids(f"GH-{number}")
    assert bench.stage(f"GH-{number}")["state"] == "DONE"
    assert len(place.headers(number)) == 1
    assert run_id in place.hub.rows[number].comments[0].body
    assert place.shown(number)[0] == ["P0", "agent:running"]


@pytest.mark.faults
@pytest.mark.spec("ISS-6", "ISS-3", "RUN-11")
@pytest.mark.parametrize("where", ["POST .*/comments", r"POST .*/issues/\d+/labels"])
def test_a_kill_in_the_middle_of_a_start_continues_the_same_run(place: Place, where: str) -> None:
    bench, number = place.bench, place.queued()
    asked, is_killed = threading.Event(), threading.Event()

    def hang(ask: Ask) -> None:
        if re.search(where, str(ask)) and not is_killed.is_set():
            asked.set()
            is_killed.wait(60)

    place.api.before = hang
    first = bench.start("issues", "watch", "--json")
    assert asked.wait(60)
    first.kill()
    first.communicate()
    is_killed.set()  # what it asked for happens: only its answer is lost
    wait_until(lambda: place.headers(number))
    second = bench.start("issues", "watch", "--json")
    wait_until(lambda: place.is_finished(number))
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=60)
    [run_id] = bench.run_ids(f"GH-{number}")
    assert len(place.headers(number)) == 1
    assert run_id in place.hub.rows[number].comments[0].body
