"""From a label to a branch (ISS-12): the whole program against a hub that answers by HTTP, with a real agent program and git."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.adapters.toml_settings import load_settings
from aiflow.wiring.issues import IssueRoom
from e2e.bench import Bench, git
from github.places import Place, a_place
from waiting import wait_until


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Bench:
    return Bench(repository, tmp_path)


@pytest.fixture
def place(bench: Bench) -> Iterator[Place]:
    with a_place(bench) as made:
        yield made


@pytest.mark.contract
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


@pytest.mark.contract
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


@pytest.mark.contract
@pytest.mark.spec("ISS-9", "GIT-1", "ISS-11")
def test_a_finished_run_is_pushed_and_a_pull_request_shows_it_wherever_the_run_is_shown(
    place: Place, tmp_path: Path
) -> None:
    bench, aiflow, hub = place.bench, place.bench.aiflow, place.hub
    hub.origin = tmp_path / "origin.git"
    bench.git("init", "-q", "--bare", "-b", "main", str(hub.origin))
    bench.git("remote", "add", "origin", str(hub.origin))
    more = "pull_request = true\n[git]\npush = true\n"
    bench.configure(f'[github]\nrepo = "{hub.repo}"\napi_url = "{place.url}"\n{more}')
    bench.commit()
    number = place.queued()
    aiflow.json("issues", "sync")
    done = bench.run(f"GH-{number}")
    [pull] = hub.pulls
    assert (done["is_pushed"], done["pull_url"]) == (True, f"https://github.com/{hub.repo}/pull/{pull.number}")
    assert git(hub.origin, "rev-parse", done["branch"]) == bench.git("rev-parse", done["branch"])
    assert done["pull_url"] in place.hub.rows[number].comments[-1].body
    assert "merge the pull request" in place.hub.rows[number].comments[-1].body
    assert done["pull_url"] in aiflow("report", f"GH-{number}").stdout
    assert done["pull_url"] in aiflow("show", f"GH-{number}").stdout
    token = aiflow.environ["GITHUB_TOKEN"]
    assert all(token not in file.read_text(errors="replace") for file in bench.root.rglob("*") if file.is_file())


@pytest.mark.spec("ISS-9")
def test_what_the_settings_want_of_pull_requests_and_acceptance_reaches_the_rules(tmp_path: Path) -> None:
    flags = ("github.repo=octo/demo", "github.pull_request=true", "github.accept_closes=true")
    rules = [IssueRoom(str(tmp_path), load_settings(tmp_path, {}, given)).book.rules for given in (flags, flags[:1])]
    assert [(rule.opens_pulls, rule.accept_closes) for rule in rules] == [(True, True), (False, False)]
