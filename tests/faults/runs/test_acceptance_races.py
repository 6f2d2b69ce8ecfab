"""Acceptance at the same moment (REQ-6, GIT-3): one of two decisions holds, and no run is merged twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from faults.accepting import accepted_runs, check_accepted, check_base, check_tidy, commit_on_base
from faults.killing import Scene, survivors
from faults.racing import Race, refusals
from forms import rounds

pytestmark = pytest.mark.faults

CONFLICT = 4
ROUNDS = rounds(2, 5)
ACCEPT = ("accept", "RQ-1")
MakeScene = Callable[..., Scene]


@pytest.fixture
def make_scene(tmp_path: Path) -> Iterator[MakeScene]:
    """Give a way to make a project with finished runs; afterwards nothing of it may be running."""
    scenes: list[Scene] = []

    def make(*, requests: int = 1, is_on_base: bool = False) -> Scene:
        scene = Scene(tmp_path / str(len(scenes)), steps=1, requests=requests, is_on_base=is_on_base)
        scenes.append(scene)
        scene.order(own_files=requests > 1)
        for number in range(1, requests + 1):
            assert scene.aiflow("run", f"RQ-{number}").answer["state"] == "DONE"
        return scene

    yield make
    for scene in scenes:
        scene.close()
        assert survivors(run for request in scene.requests() for run in scene.run_ids(request)) == {}


def race(scene: Scene, *commands: tuple[str, ...]) -> list[dict[str, Any]]:
    """Let these begin at once; whoever comes too late is told that the run is at work, or what became of it."""
    results = Race(scene, list(commands)).results()
    for code, reason, run_id in refusals(results):
        assert (code, run_id) == (CONFLICT, scene.run().run_id)
        assert reason in ("RUN_IN_PROGRESS", "RUN_NOT_ACCEPTABLE")
    return [answer for _, answer in results]


@pytest.mark.spec("REQ-6", "GIT-3", "LCK-7")
@pytest.mark.parametrize("is_on_base", [True, False])
def test_of_four_who_accept_a_run_one_does(make_scene: MakeScene, is_on_base: bool) -> None:
    scene = make_scene(is_on_base=is_on_base)
    scene.order(hold=["check merge"])
    racing = Race(scene, [ACCEPT] * 4)
    racing.until_one_is_left()
    (scene.world / "go").touch()
    results = racing.results()
    [(code, winner)] = [(code, answer) for code, answer in results if "error" not in answer]
    assert (code, winner["run_id"], bool(winner["accepted_as"])) == (0, scene.run().run_id, True)
    assert set(refusals(results)) == {(CONFLICT, "RUN_IN_PROGRESS", winner["run_id"])}
    assert scene.aiflow(*ACCEPT).answer["accepted_as"] == winner["accepted_as"]
    check_accepted(scene)
    assert scene.names().count("check merge") == 1


@pytest.mark.spec("REQ-6", "LCK-7")
def test_accepted_or_sent_back_but_not_both(make_scene: MakeScene) -> None:
    scene = make_scene(is_on_base=True)
    scene.keep()
    for _ in range(ROUNDS):
        scene.restore()
        accepted, returned = race(scene, ACCEPT, ("send-back", "RQ-1", "-m", "Not like this"))
        assert ("error" in accepted) != ("error" in returned)
        if "error" in returned:
            check_accepted(scene)
            continue
        assert (scene.run().state.value, scene.status()) == ("FAILED", "ready")
        assert (scene.root / "requests/RQ-1.md").read_text().count("Not like this") == 1
        scene.check_files(scene.run())
        check_base(scene)
        check_tidy(scene)


@pytest.mark.spec("REQ-6", "GIT-3", "LCK-7")
def test_accepted_before_or_behind_an_update(make_scene: MakeScene) -> None:
    scene = make_scene()
    commit_on_base(scene, {"base": "new\n"})
    scene.keep()
    for _ in range(ROUNDS):
        scene.restore()
        accepted, updated = race(scene, ACCEPT, ("resume", "RQ-1", "--update"))
        assert "error" not in accepted or "error" not in updated
        assert scene.run().state.value == "DONE"
        assert [step.id for step in scene.run().plan] == (["S01"] if "error" in updated else ["S01", "S02"])
        assert scene.aiflow(*ACCEPT).code == 0
        check_accepted(scene)


@pytest.mark.spec("REQ-6", "GIT-3", "LCK-7")
@pytest.mark.parametrize("is_on_base", [True, False])
def test_eight_runs_accepted_at_once_are_each_merged_once(make_scene: MakeScene, is_on_base: bool) -> None:
    requests = [f"RQ-{number}" for number in range(1, 9)]
    scene = make_scene(requests=8, is_on_base=is_on_base)
    results = Race(scene, [("accept", request) for request in requests]).results()
    waiting = {answer["request_id"]: answer["reason_code"] for _, answer in results if not answer["accepted_as"]}
    assert set(waiting.values()) <= {"CHECKOUT_IN_THE_WAY"}, results
    assert {run.request_id for run in accepted_runs(scene)} == set(requests) - set(waiting)
    check_base(scene)
    for request in waiting:
        assert scene.aiflow("accept", request).code == 0
    for request in requests:
        check_accepted(scene, request)
