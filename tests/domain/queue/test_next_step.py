"""What a person does behind an ended task: the catalogue's command, and none where none is needed."""

from __future__ import annotations

from typing import Any

import pytest

from aiflow.domain.lifecycle import RunState, TaskStatus
from aiflow.domain.queue.next_step import next_step, next_step_here
from aiflow.domain.queue.task import Task, TaskAction
from aiflow.domain.request import RequestStatus
from aiflow.domain.run_summary import RunSummary
from builders import NOW, typed
from builders import request as make_request

RUN = "RUN-20261104-013000-5e1f0a"
COMPLETE, ERROR, CANCELLED = TaskStatus.COMPLETE, TaskStatus.ERROR, TaskStatus.CANCELLED


def task(status: TaskStatus, error: str | None = None, run_id: str | None = RUN, **fields: Any) -> Task:
    whole = {"action": TaskAction.START, "request_id": "RQ-1", **fields}
    at: dict[str, Any] = {"created_at": NOW, "updated_at": NOW, "place_at": NOW}
    return Task("ns", "T-1", **at, status=status, error_message=error, run_id=run_id, **whole)


@pytest.mark.spec("RUN-8")
@pytest.mark.parametrize(
    ("ended", "command"),
    [
        (task(COMPLETE), "aiflow accept RQ-1"),
        (task(ERROR, "NEEDS_CLARIFICATION: Which?"), 'aiflow resume RQ-1 --answer "…"'),
        (task(CANCELLED, "CANCELLED: by mika"), "aiflow resume RQ-1"),
        (task(CANCELLED, "CANCELLED: by mika", None), "aiflow queue add RQ-1"),
        (task(CANCELLED, "CANCELLED: by mika", None, action=TaskAction.PROMPT), None),
        (task(ERROR, "RUNNER_LOST: vm", None), "aiflow queue add RQ-1"),
        (task(ERROR, "RUNNER_LOST: vm", successor="T-1.2"), None),
        (task(ERROR, "something went wrong"), None),
        (task(COMPLETE, run_id="session-7"), None),
        (task(ERROR, "CANCELLED", action=TaskAction.AUTO_RUN), None),
        (task(TaskStatus.RUNNING), None),
    ],
)
def test_an_ended_task_names_the_next_command(ended: Task, command: str | None) -> None:
    assert typed(next_step(ended)) == (command,)


def test_a_limit_that_was_reached_takes_the_way_of_its_cause() -> None:
    ended = task(ERROR, "RETRY_LIMIT_EXCEEDED")
    assert typed(next_step(ended, "NEEDS_CLARIFICATION")) == ('aiflow resume RQ-1 --answer "…"',)
    assert typed(next_step(ended, None, "replan")) == ("aiflow replan RQ-1",)


@pytest.mark.parametrize(
    ("status", "state", "command"),
    [
        (RequestStatus.BLOCKED, RunState.DONE, "aiflow accept RQ-1"),
        (RequestStatus.DONE, RunState.DONE, None),
        (RequestStatus.READY, RunState.FAILED, None),
        (RequestStatus.RUNNING, RunState.IMPLEMENTING, None),
    ],
)
def test_here_it_is_by_how_it_stands_with_the_request_now(
    status: RequestStatus, state: RunState, command: str | None
) -> None:
    request = make_request("RQ-1", status.value)
    assert typed(next_step_here(task(COMPLETE), request, RunSummary(RUN, state, None))) == (command,)
    newer = RunSummary("RUN-20261105-013000-5e1f0a", state, None)
    assert next_step_here(task(COMPLETE), request, newer) is None
