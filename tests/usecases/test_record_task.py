"""Work in a terminal beside a shared store (SPEC §0), with the queue in memory: whatever goes wrong, its task ends."""

from __future__ import annotations

import pytest

from aiflow.domain.lifecycle import TaskEvent
from aiflow.domain.task import TaskAction, TaskEnd
from aiflow.usecases.engine import Engine
from aiflow.usecases.record_task import Errand, record_task
from usecases.test_runners import SECRET, Scene

ERRAND = Errand(TaskAction.START, "RQ-1")


def record(scene: Scene) -> str:
    """Do something as a task of our own."""
    return record_task(scene.desk, ERRAND, lambda _engine: "done", lambda _hold, _done: TaskEnd(TaskEvent.COMPLETED))


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
