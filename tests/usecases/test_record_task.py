"""Work in a terminal beside a shared store (SPEC §0), with the queue in memory: whatever goes wrong, its task ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TypeVar

import pytest

from aiflow.adapters.memory_queue import MemoryQueue, MemoryStore
from aiflow.domain.lifecycle import TaskEvent, TaskStatus
from aiflow.domain.runner import RunnerStatus
from aiflow.domain.task import Task, TaskAction, TaskEnd
from aiflow.errors import ConflictError, EnvironmentProblemError
from aiflow.ports.tasks import Claimant
from aiflow.usecases.engine import Engine
from aiflow.usecases.reap_runners import Reaper, end_stray, end_strays
from aiflow.usecases.record_task import Errand, record_task
from aiflow.usecases.runner_desk import Desk
from usecases.test_runners import AWAY, HERE, SECRET, Clock, Scene, watch

Result = TypeVar("Result")
ERRAND = Errand(TaskAction.START, "RQ-1")


def record(scene: Scene, desk: Desk | None = None) -> str:
    """Do something as a task of our own."""
    end_of = TaskEnd(TaskEvent.COMPLETED)
    return record_task(desk or scene.desk, ERRAND, lambda _engine: "done", lambda _hold, _done: end_of)


@pytest.mark.spec("QUE-4")
def test_what_goes_wrong_in_a_terminal_is_told_without_the_secrets_in_it() -> None:
    def fail(_engine: Engine) -> None:
        raise RuntimeError(f"a defect with {SECRET}")

    scene = Scene()
    with pytest.raises(RuntimeError):
        record_task(scene.desk, ERRAND, fail, lambda _hold, _done: TaskEnd(TaskEvent.COMPLETED))
    assert scene.task("TASK-NEW").error_message == "INTERNAL_ERROR: RuntimeError: a defect with ***"


@pytest.mark.spec("QUE-11")
def test_a_terminal_is_no_runner_for_others_from_its_first_heartbeat_on() -> None:
    scene = Scene()
    seen: list[bool] = []
    scene.queue.before["enqueue"] = lambda: seen.append(scene.record.is_terminal)
    assert record(scene) == "done"
    assert (seen, scene.record.is_terminal, scene.record.is_at_rest) == ([True], True, True)


OWNER = "terminal-0"


def leave(scene: Scene, *, is_claimed: bool) -> Task:
    """Leave the task of another terminal in the queue, before or behind its claim."""
    scene.add("T-0", is_private=True, claimed_by=OWNER)
    if is_claimed:
        assert scene.queue.real.claim_this("T-0", Claimant(OWNER, HERE), scene.now)
    return scene.task("T-0")


def whose_owner(scene: Scene, how: str) -> Desk:
    """Say what became of that terminal, and give the desk of the next one."""
    if how != "forgotten":
        status = RunnerStatus.STOPPED if how == "at rest" else RunnerStatus.RUNNING
        scene.records.real.save(scene.runner(OWNER, status=status, is_terminal=True))
    return replace(scene.desk, is_gone=lambda runner: how == "killed" and runner.runner_id == OWNER)


@pytest.mark.spec("QUE-5", "QUE-7")
@pytest.mark.parametrize("is_claimed", [False, True])
@pytest.mark.parametrize("how", ["killed", "at rest", "forgotten"])
def test_what_a_dead_terminal_left_does_not_keep_its_request_from_the_next(how: str, is_claimed: bool) -> None:
    scene = Scene()
    leave(scene, is_claimed=is_claimed)
    desk = whose_owner(scene, how)
    assert record(scene, desk) == "done"
    left, done = scene.task("T-0"), scene.task("TASK-NEW")
    # Not cancelled: that would be a person's decision, and stop the run that was interrupted with it.
    assert (left.status, left.reason_code, left.successor) == ("ERROR", "RUNNER_LOST", None)
    assert (done.status, done.claimed_by) == ("COMPLETE", "me")


@pytest.mark.parametrize("is_claimed", [False, True])
@pytest.mark.parametrize("how", ["killed", "at rest", "forgotten"])
def test_a_stray_is_ended_without_reading_the_whole_namespace(how: str, is_claimed: bool) -> None:
    scene = Scene()
    leave(scene, is_claimed=is_claimed)
    end_stray(whose_owner(scene, how), "RQ-1")
    assert scene.task("T-0").reason_code == "RUNNER_LOST"
    assert {"pages", "tasks_of"}.isdisjoint(scene.queue.calls)


@pytest.mark.spec("QUE-7")
def test_a_runner_without_a_record_is_given_its_time() -> None:
    scene = Scene()
    scene.add("T-0")
    scene.claim("runner-0")
    end_stray(scene.desk, "RQ-1")
    assert scene.task("T-0").status is TaskStatus.RUNNING
    scene.add("T-1", "RQ-2")
    end_stray(scene.desk, "RQ-2")
    assert scene.task("T-1").status is TaskStatus.QUEUED


@pytest.mark.spec("QUE-5", "QUE-7")
@pytest.mark.parametrize("is_claimed", [False, True])
def test_the_task_of_a_terminal_that_lives_is_left_to_it_however_slow_it_is(is_claimed: bool) -> None:
    scene = Scene()
    before = leave(scene, is_claimed=is_claimed)
    desk = whose_owner(scene, "alive")
    with pytest.raises(ConflictError, match="REQUEST_QUEUED") as refused:
        record(scene, desk)
    Reaper(desk).look()
    assert (refused.value.context["task_id"], end_strays(desk)) == ("T-0", frozenset())
    assert scene.task("T-0") == before
    if not is_claimed:
        assert scene.queue.real.claim_this("T-0", Claimant(OWNER, HERE), scene.now)


class Losing(MemoryQueue):
    """A queue that does what it is asked, and loses the answer: once, or it is gone from then on."""

    def __init__(self, store: MemoryStore, lost: str, *, stays_away: bool) -> None:
        super().__init__(store, "app")
        self.lost, self.stays_away, self.is_away = lost, stays_away, False

    def enqueue(self, task: Task, prompt: str = "") -> Task:
        return self._answer("enqueue", super().enqueue(task, prompt))

    def claim_this(self, task_id: str, claimant: Claimant, now: datetime) -> Task | None:
        if self.is_away:
            raise AWAY
        return self._answer("claim_this", super().claim_this(task_id, claimant, now))

    def _answer(self, name: str, answer: Result) -> Result:
        if name == self.lost:
            self.lost, self.is_away = "", self.stays_away
            raise AWAY
        return answer


@pytest.mark.spec("QUE-5", "QUE-7")
@pytest.mark.parametrize("lost", ["enqueue", "claim_this"])
@pytest.mark.parametrize("stays_away", [False, True])
def test_a_terminal_that_was_cut_off_before_it_began_blocks_nobody(lost: str, stays_away: bool) -> None:
    scene = Scene()
    cut_off = replace(scene.desk, queue=Losing(scene.store, lost, stays_away=stays_away), new_task_id=lambda: "T-0")
    with pytest.raises(EnvironmentProblemError, match="STORE_UNREACHABLE"):
        record(scene, cut_off)
    assert scene.record.is_at_rest
    assert scene.task("T-0").is_final is not stays_away
    desk = replace(scene.desk, runner=scene.runner("next"))
    assert record(scene, desk) == "done"
    left = scene.task("T-0")
    assert (left.status, left.reason_code) == ("ERROR", "RUNNER_LOST" if stays_away else "STORE_UNREACHABLE")


@pytest.mark.spec("QUE-7")
@pytest.mark.parametrize("how", ["killed", "at rest", "forgotten"])
def test_a_runner_sees_to_what_a_terminal_never_came_to(how: str) -> None:
    scene, clock = Scene(timeout_seconds=120), Clock()
    leave(scene, is_claimed=False)
    desk = whose_owner(scene, how)
    reaper = Reaper(desk, clock)
    reaper.suspect(end_strays(desk))
    assert (scene.task("T-0").is_final) is (how == "at rest")
    watch(reaper, clock, 130)
    assert (scene.task("T-0").reason_code, scene.task("T-0").successor) == ("RUNNER_LOST", None)
    [entry] = scene.journal.entries
    assert (entry.kind, entry.data["runner_id"]) == ("recovery", OWNER)


@pytest.mark.spec("QUE-7")
def test_of_two_who_see_to_it_at_once_one_does() -> None:
    scene = Scene()
    leave(scene, is_claimed=False)
    desk = whose_owner(scene, "at rest")
    scene.queue.before["claim_this"] = lambda: end_strays(replace(desk, queue=scene.queue.real))
    assert end_strays(desk) == frozenset()
    assert (scene.task("T-0").reason_code, len(scene.journal.entries)) == ("RUNNER_LOST", 1)
