"""From a label to a branch (ISS-12): the whole program against a hub that answers by HTTP, with a real agent program and git."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.bench import Bench
from github.answering import GitHub
from github.hub import Hub
from github.scene import PEOPLE, RUNNER
from github.server import served
from waiting import wait_until


class Place:
    """A checkout whose settings name the repository of a hub, and the hub."""

    def __init__(self, bench: Bench, hub: Hub, url: str) -> None:
        self.bench, self.hub = bench, hub
        bench.aiflow.environ["GITHUB_TOKEN"] = next(t for t, login in hub.tokens.items() if login == RUNNER)
        bench.configure(f'[github]\nrepo = "{hub.repo}"\napi_url = "{url}"\n')
        bench.commit()

    def queued(self, title: str = "Say hello") -> int:
        number = self.hub.open_issue(title, "Please.", by="maya")
        for label in ("P0", "agent:queued"):
            self.hub.label(number, label, "maya")
        return number

    def shown(self, number: int) -> tuple[list[str], list[str]]:
        row = self.hub.rows[number]
        return row.label_names(), [comment.body.splitlines()[0] for comment in row.comments]


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Bench:
    return Bench(repository, tmp_path)


@pytest.fixture
def place(bench: Bench) -> Iterator[Place]:
    hub = Hub()
    api = GitHub(hub)
    for login, permission in PEOPLE.items():
        hub.person(login, permission)
    hub.person(RUNNER, "write")
    with served(api) as url:
        api.link_url = url
        yield Place(bench, hub, url)


@pytest.mark.spec("ISS-2", "ISS-3", "ISS-9")
def test_a_labelled_issue_is_run_like_any_request_and_says_so(place: Place) -> None:
    number = place.queued()
    aiflow = place.bench.aiflow
    assert aiflow.json("issues", "sync")["changed"] == [f"GH-{number}"]
    assert aiflow.json("next")["next"]["request_id"] == f"GH-{number}"
    done = place.bench.run(f"GH-{number}")
    assert done["state"] == "DONE"
    labels, comments = place.shown(number)
    assert labels == ["P0", "agent:running"]
    assert comments[0] == "**aiflow is working on this issue** · attempt 1 of 6"
    assert comments[-1] == "**aiflow finished** · attempt 1 of 6"


@pytest.mark.spec("ISS-12")
def test_a_watch_starts_what_is_labelled_and_ends_in_order(place: Place) -> None:
    watching = place.bench.start("issues", "watch", "--json")
    number = place.queued()
    wait_until(lambda: len(place.shown(number)[1]) == 3)
    assert place.shown(number)[1][-1] == "**aiflow finished** · attempt 1 of 6"
    assert place.bench.run_ids("RQ-1") == []  # what is in files is auto-run's
    watching.send_signal(signal.SIGINT)
    out, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0
    states = [json.loads(line).get("state") for line in out.splitlines()]
    assert "DONE" in states
