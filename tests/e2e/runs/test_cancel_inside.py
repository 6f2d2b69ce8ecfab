"""Cancelling what nobody works on (RUN-12, QUE-6, QUE-8): the queue and the runs tell one story, wherever it was cut."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from aiflow.adapters.memory.queue import MemoryQueue
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.lifecycle import TaskEvent
from aiflow.domain.lock import Lock
from aiflow.domain.queue.task import Checkout, Task, TaskAction, TaskEnd, successor_of
from aiflow.domain.request import RequestId
from aiflow.domain.run_summary import TaskRef
from aiflow.domain.runs.events import cancelled
from aiflow.domain.runs.run import Run
from aiflow.ports import Lease
from aiflow.ports.tasks import Claimant
from aiflow.usecases.queue.desk import Desk
from aiflow.usecases.runner.cancel_task import cancel_task
from aiflow.usecases.runner.cancelled import mark_interrupted, stop_runs_of
from aiflow.usecases.runs.cancel import ask_to_cancel
from aiflow.usecases.runs.recover import mark_crashed, stop_interrupted
from aiflow.usecases.runs.start import start_run
from aiflow.wiring import now
from e2e.bench import Bench
from e2e.runs.test_quota_inside import quota, soon
from e2e.runs.test_work_inside import Office
from waiting import wait_until

RQ = RequestId("RQ-1")


class Scene(Office):
    """A task whose runner died in the middle of its run."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self.checkout = self.desk().runner.checkout
        self.engine = self.night.engine()
        self.task_id = self.add()
        self.claimed = self.queue.claim(Claimant("DEAD", self.checkout), now())
        self.crash(TaskRef("app", self.task_id))

    def crash(self, task: TaskRef | None) -> None:
        """Leave a run that nobody works on."""

        def die(_call: AgentCall, _should_stop: Callable[[], bool]) -> AgentReply:
            raise SystemExit

        self.night.answers["RQ-1"] = die
        with pytest.raises(SystemExit):
            start_run(self.engine.charged_with(task=task), RQ)
        self.night.answers.clear()

    def queue_desk(self, queue: MemoryQueue | None = None) -> Desk:
        return replace(self.desk(), queue=queue or self.queue, checkout=self.checkout)

    def run(self) -> Run:
        [run_id] = self.bench.run_ids()
        run = self.engine.runs.load("RQ-1", run_id)
        assert run is not None
        return run

    def ended(self) -> tuple[str, str | None, str]:
        """How the run, its reason and its request are."""
        run = self.run()
        return run.state.value, run.error.reason_code if run.error else None, self.bench.status()

    def marks(self) -> list[str]:
        return [path.name for path in (self.bench.root / ".aiflow/control").glob("cancel.*")]


STOPPED = ("NEEDS_INPUT", "CANCELLED", "blocked")


@pytest.fixture
def scene(bench: Bench) -> Scene:
    return Scene(bench)


@pytest.mark.spec("RUN-12", "QUE-8")
def test_the_interrupted_run_of_a_cancelled_task_stops_at_once_and_stays_so(scene: Scene) -> None:
    task = cancel_task(scene.queue_desk(), scene.engine, scene.task_id, "by mika on vm")
    assert [run.run_id for run in stop_runs_of(scene.engine, task, scene.checkout)] == scene.bench.run_ids()
    assert (task.status, scene.ended(), scene.marks()) == ("CANCELLED", STOPPED, [])
    scene.night.auto()
    scene.work()
    assert (scene.ended(), scene.night.ran) == (STOPPED, ["RQ-1"]), "planned once, and never taken up again"
    assert stop_runs_of(scene.engine, task, scene.checkout) == ()


@pytest.mark.spec("RUN-12", "QUE-6")
def test_a_kill_before_the_store_has_heard_of_it_leaves_a_cancel_that_everybody_obeys(scene: Scene) -> None:
    class Killed(MemoryQueue):
        def cancel(self, task_id: str, why: str, now: object) -> Task:
            raise SystemExit

    with pytest.raises(SystemExit):
        cancel_task(scene.queue_desk(Killed(scene.store, "app")), scene.engine, scene.task_id, "")
    assert (scene.ended()[0], len(scene.marks())) == ("IMPLEMENTING", 1)
    scene.night.auto()  # asks no store
    assert (scene.ended(), scene.marks()) == (STOPPED, [])
    lost = TaskEnd(TaskEvent.FAILED, "RUNNER_LOST", None, f"{scene.task_id}.2")
    scene.queue.enqueue(successor_of(scene.queue.end_lost(scene.claimed, lost, now()), now()))
    scene.work()
    assert (scene.task(f"{scene.task_id}.2").status, scene.ended()) == ("CANCELLED", STOPPED)


@pytest.mark.spec("QUE-8")
def test_a_mark_that_cannot_be_left_does_not_keep_the_task_from_being_cancelled(scene: Scene) -> None:
    folder = scene.bench.root / ".aiflow/control"
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("in the way")
    task = cancel_task(scene.queue_desk(), scene.engine, scene.task_id, "")
    assert (task.status, scene.ended()[0]) == ("CANCELLED", "IMPLEMENTING")
    folder.unlink()
    scene.work()
    assert scene.ended() == STOPPED, "who recovers asks the store"


@pytest.mark.spec("RUN-12", "QUE-6")
@pytest.mark.parametrize("who", ["auto", "run", "doctor", "runner"])
def test_a_kill_before_the_run_was_stopped_leaves_that_to_whoever_comes_next(scene: Scene, who: str) -> None:
    cancel_task(scene.queue_desk(), scene.engine, scene.task_id, "")
    assert scene.ended()[0] == "IMPLEMENTING"
    if who == "auto":
        scene.night.auto()
    elif who == "run":
        start_run(scene.engine, RQ)
    elif who == "doctor":
        scene.engine.locks.reclaim()
        mark_crashed(scene.engine, RQ)
    else:
        scene.work()
        assert scene.told == ["started", "stopped"]
    assert (scene.ended(), scene.marks(), scene.night.ran) == (STOPPED, [], ["RQ-1"])


@pytest.mark.spec("QUE-11")
def test_a_task_of_another_checkout_has_nothing_to_do_with_a_run_here(scene: Scene) -> None:
    there = replace(scene.task(scene.task_id), checkout=Checkout("far", "/away"))
    assert mark_interrupted(scene.engine, there, scene.checkout) == ()
    scene.queue.cancel(scene.task_id, "", now())
    scene.store.tasks["app", scene.task_id] = replace(scene.task(scene.task_id), checkout=there.checkout)
    scene.work()
    assert scene.ended()[0] == "DONE", "it was recovered"


@pytest.mark.spec("QUE-8", "LCK-7")
def test_a_run_that_somebody_took_up_is_left_to_them(scene: Scene) -> None:
    scene.engine.locks.reclaim()
    lease = cast(Lease, scene.engine.locks.acquire_request(RQ, scene.run().run_id))
    assert mark_interrupted(scene.engine, scene.task(scene.task_id), scene.checkout) == ()
    assert scene.marks() == []
    assert ask_to_cancel(scene.engine, scene.run()), "a person's cancel of the run itself reaches them"
    assert len(scene.marks()) == 1
    lease.release()


@pytest.mark.spec("RUN-12", "LCK-7")
@pytest.mark.parametrize("by", ["run", "task"])
def test_what_nobody_works_on_is_cancelled_beside_another_run(scene: Scene, by: str) -> None:
    scene.engine.locks.reclaim()
    lease = scene.engine.locks.acquire_request(RequestId("RQ-2"), "RUN-20260101-000000-aaaaaa")
    assert not isinstance(lease, Lock)
    if by == "run":
        assert not ask_to_cancel(scene.engine, scene.run())
    else:
        task = cancel_task(scene.queue_desk(), scene.engine, scene.task_id, "")
        assert stop_runs_of(scene.engine, task, scene.checkout)
    assert (scene.ended(), scene.marks()) == (STOPPED, [])
    lease.release()


@pytest.mark.spec("RUN-12")
def test_a_run_that_came_to_its_end_meanwhile_is_left_as_it_is(scene: Scene) -> None:
    seen = scene.run()
    start_run(scene.engine, RQ)
    scene.engine.control.ask_cancel(seen.run_id)
    lease = cast(Lease, scene.engine.locks.acquire_request(RQ, seen.run_id))
    assert stop_interrupted(scene.engine, lease, seen, cancelled).state == "DONE"
    assert (scene.marks(), scene.engine.locks.held()[0]) == ([], {})


@pytest.mark.spec("QUE-7", "QUE-8", "RUN-12")
def test_a_run_that_its_runner_stopped_does_not_say_that_it_goes_on_when_its_task_is_cancelled(scene: Scene) -> None:
    cut = cancelled(scene.run(), now())
    assert cut.error is not None
    scene.engine.runs.save(replace(cut, error=replace(cut.error, reason_code="RUNNER_STOPPED")))
    handed_on = TaskEnd(TaskEvent.FAILED, "RUNNER_STOPPED", cut.run_id, f"{scene.task_id}.2")
    scene.queue.enqueue(successor_of(scene.queue.finish(scene.claimed, handed_on, now()), now()))
    other = replace(scene.task(f"{scene.task_id}.2"), task_id="T-99", action=TaskAction.RESUME)
    assert stop_runs_of(scene.engine, other, scene.checkout) == ()
    task = cancel_task(scene.queue_desk(), scene.engine, scene.task_id, "")
    assert (task.task_id, task.status) == (f"{scene.task_id}.2", "CANCELLED")
    [run] = stop_runs_of(scene.engine, task, scene.checkout)
    assert (run, scene.ended()[:2]) == (scene.run(), STOPPED[:2])
    assert (scene.bench.errors()["reason_code"], run.history[-1].reason_code) == ("CANCELLED", "CANCELLED")
    assert "NEEDS_INPUT: CANCELLED" in (scene.engine.runs.report(run) or "")
    assert stop_runs_of(scene.engine, task, scene.checkout) == (), "once"


@pytest.mark.spec("QUE-3")
def test_a_run_names_whoever_took_it_up_last(scene: Scene) -> None:
    assert scene.run().task == TaskRef("app", scene.task_id)
    start_run(scene.engine, RQ)
    assert scene.run().task is None


@pytest.mark.spec("RUN-13", "RUN-12", "QUE-8")
@pytest.mark.parametrize("action", ["start", "auto_run"])
def test_a_wait_for_a_quota_ends_when_its_task_is_cancelled(bench: Bench, action: str) -> None:
    office = Office(bench)
    bench.add_request("RQ-2")
    office.night.answers["RQ-1"] = office.night.answers["RQ-2"] = quota(1, lambda: soon(3600))
    task_id = office.add(action)

    def cancel() -> None:
        wait_until(lambda: bench.run_ids() and bench.stage()["quota"] is not None)
        office.queue.cancel(task_id, "", now())

    thread = threading.Thread(target=cancel)
    thread.start()
    office.work()
    thread.join()
    assert (office.task(task_id).status, bench.errors()["reason_code"]) == ("CANCELLED", "CANCELLED")
    assert (bench.status(), bench.run_ids("RQ-2")) == ("blocked", [])


# A store that takes calls and never answers must not be asked.
NOWHERE = {"AIFLOW_QUEUE_STORE": "http://127.0.0.1:9"}


@pytest.mark.spec("RUN-12", "QUE-8")
@pytest.mark.parametrize("namespace", ["app", "other"])
def test_cancelling_a_run_whose_runner_is_dead_says_what_ends_its_task(scene: Scene, namespace: str) -> None:
    more = "" if namespace == "app" else " --namespace app"
    said = scene.bench.aiflow("cancel", "RQ-1", env={**NOWHERE, "AIFLOW_NAMESPACE": namespace}).stdout
    assert " ".join(said.split()).endswith(f"To end it now: aiflow queue cancel {scene.task_id}{more}")
    assert scene.ended() == STOPPED


@pytest.mark.spec("RUN-12", "QUE-7")
def test_cancelling_a_run_that_its_runner_stopped_names_the_task_that_goes_on_with_it(scene: Scene) -> None:
    stopped_so = cancelled(scene.run(), now())
    assert stopped_so.error is not None
    scene.engine.runs.save(replace(stopped_so, error=replace(stopped_so.error, reason_code="RUNNER_STOPPED")))
    env = {**NOWHERE, "AIFLOW_NAMESPACE": "app"}
    error = scene.bench.aiflow.json("cancel", "RQ-1", code=4, env=env)["error"]
    assert (error["reason_code"], error["actions"]) == ("RUN_NOT_ACTIVE", [f"aiflow queue cancel {scene.task_id}"])
    assert "its runner did" in scene.bench.aiflow("cancel", "RQ-1", code=4, env=env).stderr
    scene.engine.runs.save(stopped_so)
    assert "queue cancel" not in scene.bench.aiflow("cancel", "RQ-1", code=4, env=env).stderr
