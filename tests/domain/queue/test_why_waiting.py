"""How it stands with a task (QUE-9, QUE-11): what is said is what a claim would do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.lock import Lock, LockType
from aiflow.domain.next_action import START_RUNNER
from aiflow.domain.queue.runner import Runner, RunnerStatus
from aiflow.domain.queue.task import Checkout, Task, TaskAction, place_key
from aiflow.domain.queue.why_waiting import Line, QueueScene, lines_ahead, standing_of, takers_of
from aiflow.domain.request import Priority
from builders import NOW

HERE, THERE = Checkout("vm", "/shop"), Checkout("other", "/shop")
TIMEOUT = 120.0
ELSEWHERE = START_RUNNER.having(setting="namespace=ns")


def task(task_id: str = "T-1", age: int = 10, **fields: Any) -> Task:
    at = NOW - timedelta(seconds=age)
    whole = {"checkout": HERE, "action": TaskAction.START, "request_id": task_id, **fields}
    return Task("ns", task_id, created_at=at, updated_at=at, place_at=at, **whole)


def runner(runner_id: str = "R-1", age: int = 1, checkout: Checkout = HERE, **fields: Any) -> Runner:
    return Runner("ns", runner_id, checkout, NOW, NOW - timedelta(seconds=age), **fields)


def line_of(tasks: tuple[Task, ...]) -> Line:
    """What a store shows of tasks that are in line."""
    waiting = [each for each in tasks if each.status is TaskStatus.QUEUED]
    places: dict[str | None, tuple[str, ...]] = {}
    for each in sorted(waiting, key=place_key):
        owner = id_of(each.checkout)
        places[owner] = (*places.get(owner, ()), place_key(each))
    return Line(places)


def id_of(checkout: Checkout | None) -> str | None:
    return checkout.id if checkout else None


def scene(*runners: Runner, tasks: tuple[Task, ...] = (), **fields: Any) -> QueueScene:
    return QueueScene(NOW, TIMEOUT, HERE, runners, line_of(tasks), **fields)


def said(one: Task, around: QueueScene) -> str | None:
    standing = standing_of(one, around)
    return standing.code.value if standing else None


@pytest.mark.spec("QUE-11")
@pytest.mark.parametrize(
    ("checkout", "code"),
    [(HERE, "no_runner_here"), (THERE, "no_runner_there"), (None, "no_runner_anywhere")],
)
def test_a_task_that_nobody_takes_says_where_a_runner_is_missing(checkout: Checkout | None, code: str) -> None:
    around = scene(
        runner("SILENT", age=120, checkout=checkout or HERE),
        runner("STOPPED", checkout=checkout or HERE, status=RunnerStatus.STOPPED),
        start=ELSEWHERE,
    )
    standing = standing_of(task(checkout=checkout), around)
    assert standing is not None
    assert (standing.code.value, standing.facts["command"]) == (code, ELSEWHERE)
    if checkout == THERE:
        assert (standing.facts["host"], standing.facts["root"]) == ("other", "/shop")


@pytest.mark.spec("QUE-11")
def test_only_runners_of_its_checkout_take_a_task_and_any_a_bare_prompt() -> None:
    here, there = runner("R-1"), runner("R-2", checkout=THERE)
    assert takers_of(task(), scene(here, there)) == (here,)
    assert takers_of(task(checkout=None), scene(here, there)) == (here, there)
    assert said(task(), scene(there)) == "no_runner_here"
    assert said(task(checkout=None), scene(there)) == "next"


def test_what_is_ahead_is_counted_as_a_claim_orders_it() -> None:
    mine = task("T-5", age=50)
    others = (
        task("OLDER", age=60),
        task("YOUNGER", age=40),
        task("URGENT", age=1, priority=Priority.P0),
        task("ANYBODYS", age=70, checkout=None),
        task("THEIRS", age=70, checkout=THERE),
        task("AT-WORK", age=70, status=TaskStatus.RUNNING),
    )
    standing = standing_of(mine, scene(runner(task_id="AT-WORK"), tasks=(mine, *others)))
    assert standing is not None
    assert (standing.code.value, standing.facts["count"]) == ("behind", 3)
    one = scene(runner(task_id="AT-WORK"), tasks=(mine, others[0]))
    assert said(mine, one) == "behind_one"
    # A prompt is taken by whoever is free first.
    prompt = task("PROMPT", checkout=None)
    both = scene(runner("R-1"), runner("R-2", checkout=THERE), tasks=(prompt, task("OLDER", age=60)))
    standing = standing_of(prompt, both)
    assert standing is not None
    assert (standing.code.value, standing.facts["runner"]) == ("next", "R-2")


@pytest.mark.parametrize("owner", [HERE, None])
def test_only_behind_what_was_read_of_a_line_nothing_exact_is_said(owner: Checkout | None) -> None:
    """What was cut off a line is behind what was read of it."""
    read = (task("OLDEST", age=90, checkout=owner), task("OLD", age=80, checkout=owner))
    line = replace(line_of(read), cut=frozenset({id_of(owner)}))
    around = replace(scene(runner()), line=line)
    standing = standing_of(task("LATE", age=10), around)
    assert standing is not None
    assert (standing.code.value, standing.facts["count"]) == ("behind_many", 2)
    assert [said(each, around) for each in read] == ["next", "behind_one"]
    assert said(task("URGENT", age=1, priority=Priority.P0), around) == "next"


@pytest.mark.spec("QUE-11")
def test_whose_lines_tell_what_is_ahead_of_a_task() -> None:
    around = scene(runner(), runner("R-2"), runner("R-3", checkout=THERE))
    assert lines_ahead([task()], around) == (None, HERE)
    assert lines_ahead([task(), task(checkout=None)], around) == (None, HERE, THERE)
    # Who waits for nobody, or in vain, is behind nobody.
    assert lines_ahead([task(status=TaskStatus.RUNNING)], around) == ()
    assert lines_ahead([task()], scene(runner(checkout=THERE))) == ()


def test_an_idle_runner_takes_it_next_and_a_busy_one_when_it_is_free() -> None:
    assert said(task(), scene(runner())) == "next"
    standing = standing_of(task(), scene(runner(task_id="T-0")))
    assert standing is not None
    assert (standing.code.value, standing.facts["task_id"]) == ("runner_busy", "T-0")
    assert said(task(), scene(runner(task_id="T-0"), runner("R-2"))) == "next"


@pytest.mark.spec("LCK-7")
def test_a_run_that_is_active_here_keeps_the_tasks_of_this_checkout_waiting() -> None:
    holder = Lock(LockType.REQUEST, "RQ-9", "RUN-9")
    standing = standing_of(task(), scene(runner(), holder=holder))
    assert standing is not None
    assert (standing.code.value, standing.facts["request_id"], standing.facts["run_id"]) == (
        "run_active",
        "RQ-9",
        "RUN-9",
    )
    # The run of the task's own request began while we looked.
    assert said(task("RQ-9"), scene(runner(), holder=holder)) == "next"
    # The run of the runner's own task is no such thing, nor one here for a runner elsewhere.
    assert said(task(), scene(runner(task_id="T-0"), holder=holder)) == "runner_busy"
    assert said(task(checkout=THERE), scene(runner(checkout=THERE), holder=holder)) == "next"


@pytest.mark.spec("QUE-9", "RUN-7")
def test_a_runner_that_takes_nothing_says_why_unless_another_takes_it() -> None:
    sick = runner("SICK", held_up="AGENT_NOT_FOUND: no claude")
    standing = standing_of(task(), scene(sick))
    assert standing is not None
    assert (standing.code.value, standing.facts["runner"], standing.facts["problem"]) == (
        "held_up",
        "SICK",
        "AGENT_NOT_FOUND: no claude",
    )
    assert said(task(), scene(sick, runner("R-2", task_id="T-0"))) == "runner_busy"
    assert said(task(), scene(replace(sick, task_id="T-0"))) == "runner_busy"
    # However short its line is, it takes nothing of it.
    waiting = task("PROMPT", checkout=None)
    around = scene(replace(sick, checkout=THERE), runner(), tasks=(waiting, task("OLDER", age=60)))
    assert said(waiting, around) == "behind_one"


@pytest.mark.spec("LCK-7", "QUE-11")
def test_a_run_that_is_active_elsewhere_is_told_by_the_runner_there_and_one_here_by_its_lock() -> None:
    waits: dict[str, Any] = {"held_up": "RUN_IN_PROGRESS: RUN-9, pid 7"}
    standing = standing_of(task(checkout=THERE), scene(runner(checkout=THERE, **waits)))
    assert standing is not None
    assert (standing.code.value, standing.facts["holder"]) == ("run_active_there", "RUN-9, pid 7")
    assert said(task(), scene(runner(**waits))) == "next"


@pytest.mark.spec("QUE-7")
@pytest.mark.parametrize(
    ("who", "code"),
    [
        (runner(task_id="T-1"), "at_work"),
        (runner(task_id="T-1", status=RunnerStatus.STOPPED), "finishing"),
        (runner(task_id="T-1", age=119), "at_work"),
        (runner(task_id="T-1", age=120), "silent"),
        (runner(task_id="T-1", age=120, status=RunnerStatus.STOPPED), "silent"),
        (runner("R-2"), "runner_unknown"),
    ],
)
def test_a_running_task_says_who_has_it_and_whether_that_one_shows_a_heartbeat(who: Runner, code: str) -> None:
    assert said(task(status=TaskStatus.RUNNING, claimed_by="R-1"), scene(who)) == code


@pytest.mark.spec("QUE-7")
def test_a_runner_that_is_provably_dead_is_dead_at_once_and_takes_nothing() -> None:
    lost = task(status=TaskStatus.RUNNING, claimed_by="R-1")
    around = scene(runner(task_id="T-1"), gone=frozenset({"R-1"}), start=ELSEWHERE)
    standing = standing_of(lost, around)
    assert standing is not None
    assert (standing.code.value, standing.facts["command"]) == ("dead", ELSEWHERE)
    assert said(task(), around) == "no_runner_here"
    silent = standing_of(lost, scene(runner(age=120)))
    assert silent is not None
    assert silent.facts["command"] == START_RUNNER


@pytest.mark.parametrize("status", [TaskStatus.COMPLETE, TaskStatus.ERROR, TaskStatus.CANCELLED])
def test_of_what_is_over_nothing_is_to_be_said(status: TaskStatus) -> None:
    assert standing_of(task(status=status), scene(runner())) is None


def test_an_empty_line_has_nothing_ahead() -> None:
    assert Line().ahead(task(), HERE) == 0


@pytest.mark.spec("QUE-5")
@pytest.mark.parametrize(("action", "code"), [(TaskAction.AUTO_RUN, "held_up"), (TaskAction.START, "next")])
def test_another_auto_run_is_in_the_way_of_an_auto_runs_task_only(action: TaskAction, code: str) -> None:
    one = task(action=action)
    assert said(one, scene(runner(held_up="QUEUE_IN_PROGRESS: pid 7"), tasks=(one,))) == code
