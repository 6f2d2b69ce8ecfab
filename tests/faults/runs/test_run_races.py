"""Many at once, and processes that are stopped, killed and robbed: one run, and nothing of it left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.processes import table
from aiflow.domain.programs import GUARD_MARK
from faults.killing import KILLED, Scene, survivors, survivors_at_last
from faults.racing import Race, finish, refusals
from waiting import wait_until

pytestmark = pytest.mark.faults

ONE_STEP = ["planner", "implementer S01", "check S01", "qa S01"]
CONFLICT = 4

MakeScene = Callable[..., Scene]


@pytest.fixture
def make_scene(tmp_path: Path) -> Iterator[MakeScene]:
    """Give a way to make a project; afterwards nothing of it may be running."""
    scenes: list[Scene] = []

    def make(**options: Any) -> Scene:
        scenes.append(Scene(tmp_path / str(len(scenes)), **{"steps": 1, **options}))
        return scenes[-1]

    yield make
    for scene in scenes:
        (scene.world / "go").touch()
        left = survivors_at_last([run for request in scene.requests() for run in scene.run_ids(request)])
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        scene.close()
        assert left == {}


@pytest.fixture
def scene(make_scene: MakeScene) -> Scene:
    """Give a project with one step to do."""
    return make_scene()


def let_one_win(scene: Scene, commands: list[tuple[str, ...]]) -> dict[str, Any]:
    """Race; the winner's agent holds on until all others have given up. Return what the winner said."""
    scene.order(hold=["implementer S01"])
    race = Race(scene, commands)
    race.until_one_is_left()
    (scene.world / "go").touch()
    results = race.results()
    [(code, winner)] = [(code, answer) for code, answer in results if "error" not in answer]
    assert (code, winner["state"]) == (0, "DONE")
    assert set(refusals(results)) == {(CONFLICT, "RUN_IN_PROGRESS", winner["run_id"])}
    return winner


@pytest.mark.spec("LCK-7", "RUN-15", "LCK-2")
def test_sixteen_start_the_same_request_and_one_runs(scene: Scene) -> None:
    winner = let_one_win(scene, [("run", "RQ-1")] * 16)
    assert scene.run_ids() == [winner["run_id"]]
    scene.check_done()
    assert scene.names() == ONE_STEP


@pytest.mark.spec("LCK-7")
def test_sixteen_start_sixteen_requests_and_one_runs(make_scene: MakeScene) -> None:
    scene = make_scene(requests=16)
    winner = let_one_win(scene, [("run", f"RQ-{number}") for number in range(1, 17)])
    assert scene.requests() == [winner["request_id"]]
    scene.check_done(winner["request_id"])
    assert scene.names() == ONE_STEP
    others = [f"RQ-{number}" for number in range(1, 17) if f"RQ-{number}" != winner["request_id"]]
    assert {scene.status(request) for request in others} == {"ready"}


@pytest.mark.spec("LCK-7")
def test_four_that_wait_run_one_after_the_other(make_scene: MakeScene) -> None:
    scene = make_scene(requests=4)
    scene.order(seconds={"implementer S01": 0.3, "qa S01": 0.1})
    requests = [f"RQ-{number}" for number in range(1, 5)]
    results = Race(scene, [("run", request, "--wait") for request in requests]).results()
    assert [(code, answer["state"]) for code, answer in results] == [(0, "DONE")] * 4
    for request in requests:
        scene.check_done(request)
    began = {call["pid"]: call["at"] for call in scene.calls()}
    calls = sorted((began[call["pid"]], call["at"], call["run"]) for call in scene.calls("ended"))
    assert len(calls) == 4 * len(ONE_STEP)
    assert all(ended <= begins for (_, ended, _), (begins, _, _) in pairwise(calls))
    changes = [run for (_, _, run), (_, _, following) in pairwise(calls) if run != following]
    assert len(changes) == 3


@pytest.mark.spec("LCK-7", "RUN-6")
def test_eight_resume_a_stopped_run_and_one_goes_on(scene: Scene) -> None:
    scene.order(ask=["S01"])
    assert scene.aiflow("run", "RQ-1").answer["reason_code"] == "NEEDS_CLARIFICATION"
    scene.forget_calls()
    let_one_win(scene, [("resume", "RQ-1", "--answer", str(number)) for number in range(8)])
    run = scene.check_done()
    assert len(run.answers) == 1
    assert scene.names() == ONE_STEP[1:]


@pytest.mark.spec("LCK-4", "LCK-7", "RUN-11")
def test_eight_find_a_crashed_run_and_one_recovers_it(scene: Scene) -> None:
    scene.order(kill=["implementer S01"])
    assert scene.aiflow("run", "RQ-1").code == KILLED
    let_one_win(scene, [("run", "RQ-1")] * 8)
    run = scene.check_done()
    assert [line.event for line in run.history].count("RECOVERED") == 1
    assert [call["attempt"] for call in scene.calls() if call["name"] == "implementer S01"] == [1, 2]


class Tree:
    """Fifty processes that an agent has planted: sessions of their own, deaf to TERM, orphaned, stopped."""

    def __init__(self, scene: Scene) -> None:
        scene.order(tree=["implementer S01"])
        self.runner = scene.start("run", "RQ-1")
        wait_until(lambda: scene.calls("planted"))
        pids = [int(line) for line in (scene.world / "tree").read_text().split()]
        self.born = {pid: born for pid in pids if (born := table.started_at(pid)) is not None}
        assert len(self.born) == 50
        scene.order(tree=[])

    def living(self) -> list[int]:
        looked = ((pid, table.table().look(pid)) for pid in self.born)
        return [pid for pid, known in looked if known and not known.is_zombie and known.started_at == self.born[pid]]

    def seconds_until_gone(self) -> float:
        return wait_until(lambda: not self.living())


def check_cancelled(scene: Scene) -> None:
    run = scene.run()
    assert run.error is not None
    assert (run.state.value, run.error.reason_code, scene.status()) == ("NEEDS_INPUT", "CANCELLED", "blocked")
    scene.check_files(run)
    scene.check_tidy()
    done = scene.aiflow("resume", "RQ-1")
    assert (done.code, done.answer["state"]) == (0, "DONE")
    scene.check_done()


@pytest.mark.spec("RUN-12", "AGT-5", "LCK-8")
def test_cancel_leaves_none_of_fifty_alive(scene: Scene) -> None:
    tree = Tree(scene)
    cancel = scene.start("cancel", "RQ-1")
    tree.seconds_until_gone()
    code, answer = finish(cancel)
    assert (code, answer["state"], answer["reason_code"]) == (0, "NEEDS_INPUT", "CANCELLED")
    code, answer = finish(tree.runner)
    assert (code, answer["reason_code"]) == (CONFLICT, "CANCELLED")
    check_cancelled(scene)


@pytest.mark.spec("RUN-12", "AGT-5", "LCK-6")
@pytest.mark.parametrize(
    ("number", "send"),
    [
        (signal.SIGTERM, os.kill),
        (signal.SIGINT, os.killpg),
        (signal.SIGHUP, os.kill),
        *(
            pytest.param(number, send, marks=pytest.mark.soak)
            for number, send in (
                (signal.SIGTERM, os.killpg),
                (signal.SIGINT, os.kill),
                (signal.SIGHUP, os.killpg),
            )
        ),
    ],
)
def test_a_signal_to_the_runner_cancels_in_order(
    scene: Scene, number: signal.Signals, send: Callable[[int, int], None]
) -> None:
    tree = Tree(scene)
    send(tree.runner.pid, number)
    tree.seconds_until_gone()
    code, answer = finish(tree.runner)
    assert (code, answer["reason_code"]) == (CONFLICT, "CANCELLED")
    check_cancelled(scene)


@pytest.mark.spec("AGT-5", "RUN-11", "LCK-4")
def test_a_killed_runner_leaves_none_of_fifty_alive(scene: Scene) -> None:
    tree = Tree(scene)
    tree.runner.kill()
    tree.seconds_until_gone()
    finish(tree.runner)
    assert scene.aiflow("run", "RQ-1").code == 0
    scene.check_done()


@pytest.mark.timing
@pytest.mark.spec("RUN-12", "AGT-5")
@pytest.mark.parametrize("way", ["cancel", "SIGTERM", "SIGKILL"])
def test_fifty_are_gone_within_five_seconds(scene: Scene, way: str, allowed: Callable[[float], float]) -> None:
    tree = Tree(scene)
    processes = [tree.runner]
    if way == "cancel":
        processes.append(scene.start("cancel", "RQ-1"))
    else:
        tree.runner.send_signal(signal.Signals[way])
    took = tree.seconds_until_gone()
    for process in processes:
        finish(process)
    assert took < allowed(5)


@pytest.mark.spec("AGT-5", "LCK-4")
def test_runner_and_guard_killed_the_next_start_ends_the_fifty_first(scene: Scene) -> None:
    tree = Tree(scene)
    [guard] = table.marked(GUARD_MARK, scene.run_ids()[0])
    tree.runner.send_signal(signal.SIGSTOP)  # or it would end them itself
    os.kill(guard, signal.SIGKILL)
    tree.runner.kill()
    finish(tree.runner)
    assert len(tree.living()) == 50
    scene.order(hold=["implementer S01"])
    again = scene.start("run", "RQ-1")
    wait_until(lambda: scene.calls("held"))
    assert tree.living() == []
    (scene.world / "go").touch()
    assert finish(again)[0] == 0
    scene.check_done()


def start_held(scene: Scene, environ: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a run whose implementer holds on, and return when it does."""
    scene.order(hold=["implementer S01"])
    runner = scene.start("run", "RQ-1", environ=environ)
    wait_until(lambda: scene.calls("held"))
    return runner


@pytest.mark.spec("LCK-4", "LCK-7")
def test_a_stopped_runner_is_not_robbed_even_when_its_lock_has_expired(make_scene: MakeScene) -> None:
    scene = make_scene(requests=2)
    short = {"AIFLOW_LOCKS_TTL_SECONDS": "1"}
    runner = start_held(scene, short)
    [run_id] = scene.run_ids()
    runner.send_signal(signal.SIGSTOP)
    for seconds in (0.0, 2.5):
        time.sleep(seconds)
        for request in ("RQ-2", "RQ-1"):
            code, answer = finish(scene.start("run", request, environ=short))
            assert (code, answer["error"]["reason_code"]) == (CONFLICT, "RUN_IN_PROGRESS")
            assert answer["error"]["context"]["run_id"] == run_id
    [lock] = finish(scene.start("locks", environ=short))[1]["locks"]
    assert (lock["run_id"], lock["verdict"], lock["is_stale"]) == (run_id, "held_expired", False)
    runner.send_signal(signal.SIGCONT)
    (scene.world / "go").touch()
    assert finish(runner)[1]["state"] == "DONE"
    scene.check_done()
    assert (scene.names(), scene.status("RQ-2")) == (ONE_STEP, "ready")


@pytest.mark.timing
@pytest.mark.spec("LCK-4", "RUN-11")
@pytest.mark.parametrize("is_waiting", [True, False])
def test_a_killed_runner_is_noticed_within_two_seconds(
    scene: Scene, is_waiting: bool, allowed: Callable[[float], float]
) -> None:
    runner = start_held(scene)
    began = time.monotonic()
    finish(scene.start("locks"))
    own_seconds = 0.0 if is_waiting else time.monotonic() - began  # what starting a program takes here and now
    follower = scene.start("run", "RQ-1", "--wait") if is_waiting else None
    if is_waiting:
        time.sleep(own_seconds + 2)
    runner.kill()
    killed = time.monotonic()
    finish(runner)
    follower = follower or scene.start("run", "RQ-1")
    pid = follower.pid
    wait_until(lambda: (scene.holder() or {}).get("pid") == pid)
    took = time.monotonic() - killed
    assert took < allowed(2) + own_seconds
    (scene.world / "go").touch()
    assert finish(follower)[1]["state"] == "DONE"
    scene.check_done()


def files(scene: Scene) -> dict[str, bytes]:
    """Return everything that says something about runs and requests, logs apart."""
    paths = [*scene.root.glob("runs/*/*/*.*"), *scene.root.glob("requests/*")]
    return {str(path.relative_to(scene.root)): path.read_bytes() for path in paths}


@pytest.mark.spec("LCK-3", "LCK-4")
@pytest.mark.parametrize("is_stubborn", [False, True])
def test_a_runner_whose_lock_is_broken_ends_its_agent_and_writes_nothing_more(scene: Scene, is_stubborn: bool) -> None:
    scene.order(stubborn=is_stubborn)
    runner = start_held(scene)
    before = files(scene)
    code, answer = finish(scene.start("locks", "break", "RQ-1", "--yes"))
    assert (code, answer["broken"]["pid"]) == (0, runner.pid)
    code, answer = finish(runner)
    assert (code, answer["error"]["reason_code"]) == (CONFLICT, "LOCK_LOST")
    assert survivors(scene.run_ids()) == {}
    assert files(scene) == before
    assert scene.lock_files() == []
    (scene.world / "go").touch()
    assert scene.aiflow("run", "RQ-1").code == 0
    scene.check_done()


@pytest.mark.spec("LCK-3", "LCK-4")
def test_who_takes_over_behind_a_broken_lock_never_works_beside_the_old_agent(scene: Scene) -> None:
    scene.order(stubborn=True)
    runner = start_held(scene)
    [old] = scene.calls("held")
    finish(scene.start("locks", "break", "RQ-1", "--yes"))
    again = scene.start("run", "RQ-1")
    wait_until(lambda: len(scene.calls("held")) == 2)
    is_beside = (known := table.table().look(old["pid"])) is not None and not known.is_zombie
    (scene.world / "go").touch()
    assert finish(again)[1]["state"] == "DONE"
    finish(runner)
    assert not is_beside
    scene.check_done()
