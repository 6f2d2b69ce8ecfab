"""`aiflow up` watches issues (ISS-12): a label is the trigger, a webhook only makes it quicker, trouble ends nothing."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.github_issues.transport import Ask
from aiflow.usecases.issues.labels import COLOURS
from e2e.bench import Bench
from e2e.up import Up, end_leftovers, hold, let_go
from github.places import Place, a_place, deliver, delivery, signed
from waiting import wait_until


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


def events(bench: Bench) -> list[tuple[Any, Any]]:
    """What the journal says of GitHub."""
    told = [entry for entry in bench.journal() if entry["actor"] == "issues"]
    return [(entry["data"]["event"], entry.get("reason_code")) for entry in told]


@pytest.mark.contract
@pytest.mark.spec("ISS-12", "ISS-9")
def test_a_label_becomes_a_run_and_its_result_a_comment(place: Place) -> None:
    number = place.queued()
    up = Up(place.bench)
    wait_until(lambda: place.is_finished(number))
    runs = up.call("GET", f"/api/requests/GH-{number}/runs").shape["runs"]
    assert [run["state"] for run in runs] == ["DONE"]
    assert up.call("GET", "/api/health").shape["degraded"] == []
    assert f"Starting GH-{number}" in up.end()
    assert place.bench.run_ids("RQ-1") == []  # what is in files is auto-run's, or a person's
    assert len(place.headers(number)) == 1


@pytest.mark.contract
@pytest.mark.spec("ISS-1", "ISS-12")
def test_a_delivery_starts_an_issue_long_before_the_poll_and_a_forged_one_does_nothing(place: Place) -> None:
    place.join(place.bench, "poll_seconds = 3600")
    hold(place.bench)
    up = Up(place.bench)
    up.run("RQ-1")
    wait_until(lambda: place.polls() == 1 and set(COLOURS) <= set(place.hub.labels))
    number = place.queued()
    body = delivery(place.hub.repo, number)
    before = len(place.api.calls)
    forged, elsewhere = signed(body, "guessed"), delivery("octo/other", number)
    assert deliver(up.url, body, forged)[1]["error"]["reason_code"] == "SIGNATURE_INVALID"  # type: ignore[index]
    assert deliver(up.url, elsewhere, signed(elsewhere)) == (202, {"event": "issues", "request_id": None})
    assert deliver(up.url, b'{"zen": "Design for failure."}', signed(b'{"zen": "Design for failure."}'), "ping") == (
        202,
        {"event": "ping", "request_id": None},
    )
    assert len(place.api.calls) == before
    for _ in range(3):  # a delivery that is sent again changes nothing
        assert deliver(up.url, body, signed(body)) == (202, {"event": "issues", "request_id": f"GH-{number}"})
    wait_until(lambda: up.call("GET", f"/api/requests/GH-{number}").status == 200)
    assert place.headers(number) == []  # somebody is at work in this checkout
    let_go(place.bench)
    wait_until(lambda: place.is_finished(number))
    assert deliver(up.url, body, signed(body))[0] == 202
    assert place.polls() == 1
    up.end()
    assert len(place.headers(number)) == 1
    assert len(place.bench.run_ids(f"GH-{number}")) == 1


@pytest.mark.contract
@pytest.mark.spec("ISS-12")
def test_without_a_token_it_is_up_and_says_once_what_is_missing(place: Place) -> None:
    place.join(place.bench, "poll_seconds = 5")
    up = Up(place.bench, GITHUB_TOKEN="")
    wait_until(lambda: "GITHUB_NOT_SIGNED_IN" in up.call("GET", "/api/health").shape["degraded"])
    assert up.call("GET", "/api/queue/next").status == 200
    said = up.end()
    assert said.count("GITHUB_NOT_SIGNED_IN") == 1
    assert events(place.bench) == [("github_trouble", "GITHUB_NOT_SIGNED_IN")]


@pytest.mark.timing
@pytest.mark.spec("ISS-12", "API-1")
def test_a_stop_waits_for_no_answer_of_githubs(place: Place, allowed: Callable[[float], float]) -> None:
    asked, is_over = threading.Event(), threading.Event()

    def hang(_ask: Ask) -> None:
        asked.set()
        is_over.wait(60)

    place.api.before = hang
    up = Up(place.bench)
    try:
        assert asked.wait(60)
        began = time.monotonic()
        up.end(signal.SIGTERM)
        assert not is_over.is_set()
        assert time.monotonic() - began < allowed(10)  # and not the 30 seconds that a call may take
    finally:
        is_over.set()
