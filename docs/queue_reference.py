"""The JSON of the queue: what the program prints, from the same functions, for values that are always the same.

The other shapes are what the program printed in a separate project; a queue would need a running store for that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.runner import Runner
from aiflow.domain.queue.task import Checkout, Task, TaskAction
from aiflow.domain.queue.why_waiting import QueueScene
from aiflow.domain.request import Priority
from aiflow.usecases.shapes.tasks import counts_shape, namespaces_shape, runner_shape, task_shape

AT = datetime(2026, 11, 4, 1, 30, 5, tzinfo=UTC)
HERE = Checkout("build-7", "/srv/shop")
TASK = Task("shop", "TASK-20261104-013005-250000-5e1f0a", TaskAction.START, "RQ-2", AT, AT, AT, fence=4)
RUNNER = Runner(
    namespace="shop",
    runner_id="R-build-7-4711",
    checkout=HERE,
    started_at=AT - timedelta(hours=1),
    last_heartbeat=AT,
    task_id="TASK-20261104-012900-110000-5e1f09",
    pid=4711,
    version="0.1.0",
)
COUNTS = {TaskStatus.QUEUED: 1, TaskStatus.RUNNING: 1, TaskStatus.COMPLETE: 12, TaskStatus.ERROR: 2}
TIMEOUT_SECONDS = 120.0


def queue_sections() -> Iterator[str]:
    """Write a section per command."""
    task = replace(TASK, checkout=HERE, priority=Priority.P1)
    scene = QueueScene(AT, TIMEOUT_SECONDS, HERE, (RUNNER,))
    waiting = task_shape(task, scene)
    ended = replace(task, status=TaskStatus.CANCELLED, error_message="CANCELLED: by mika on build-7")
    yield _section(
        "queue add RQ-2",
        "`tasks` is what was queued; `is_new` is `false` for an id that existed already, for the same work. If you "
        "queue several requests, `refused` has those that could not be queued, each as the `error` of a call for it "
        "alone. `warnings` lists the doctor's checks that fail, as in its `checks`, if a task needs a runner of this "
        "checkout and none is running: such a runner would take nothing. "
        "`standing` says why a queued task is not taken, or who works on a running one; `null` when it is over; "
        "`next_command` is then what a person types next, if anything. Its "
        "`code` is `no_runner_here`, `no_runner_there`, `no_runner_anywhere`, `held_up`, `run_active`, "
        "`run_active_there`, `runner_busy`, `behind_one`, `behind`, `behind_many`, "
        "`next`, `at_work`, `finishing`, `dead`, `silent` or `runner_unknown`.",
        {"tasks": [{**waiting, "is_new": True}], "refused": [], "warnings": []},
    )
    yield (
        "## aiflow queue list\n\n`{namespace, tasks, next_start}`: tasks as above, by `task_id`, newest first. "
        "`--start` with `next_start` gives those that follow; it is `null` at the end. "
        "With `--all`, `namespace` is `null`, and `next_start` is a namespace, a slash and the last task's id.\n"
    )
    yield (
        "## aiflow queue show\n\nA task as above. `prompt` is the whole text here; in a list, the beginning of a long "
        "one.\n"
    )
    yield _section(
        "queue cancel TASK-20261104-013005-250000-5e1f0a",
        "`is_released` is `false` if its runner has not ended the agent yet.",
        {"tasks": [{**task_shape(ended), "is_released": True}], "refused": []},
    )
    yield _section(
        "queue counts", "With `--all`: `{namespaces: […]}`, one like this each.", counts_shape("shop", COUNTS)
    )
    yield _section(
        "queue runners",
        "Running ones first. `state` is `working`, `idle`, `held_up` (it takes nothing, for the reason in `held_up`), "
        "`stopping`, `stopped`, `dead` (its process is gone; only its own machine knows) or `silent` (no heartbeat for "
        "too long).",
        {"runners": [runner_shape(RUNNER, AT, TIMEOUT_SECONDS)]},
    )
    yield _section(
        "queue namespaces",
        "Every namespace with tasks or a living runner, and the project's own.",
        {"namespaces": namespaces_shape({"shop": COUNTS}, [RUNNER], "shop")},
    )


def _section(call: str, words: str, answer: object) -> str:
    return f"## aiflow {call}\n\n{words}\n\n```json\n{json.dumps(answer, ensure_ascii=False, indent=2)}\n```\n"
