"""The promises of ports/tasks.py, kept by every store: in memory, DynamoDB Local, dynalite."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from aiflow.domain.lifecycle import TaskEvent, TaskStatus
from aiflow.domain.queue.runner import RunnerStatus
from aiflow.domain.queue.task import (
    INLINE_PROMPT_BYTES,
    PROMPT_BYTES,
    Task,
    TaskAction,
    TaskEnd,
    place_key,
    successor_of,
)
from aiflow.domain.request import Priority
from aiflow.errors import AiflowError, BadInputError, ConflictError, NotFoundError
from aiflow.ports.tasks import Claimant, ClaimTerms, QueueStore, RunnerRecords, TaskQueue
from task_builders import (
    COMPLETED,
    ELSEWHERE,
    HERE,
    LOST,
    ME,
    NOW,
    POLL_SECONDS,
    THERE,
    YOU,
    a_prompt,
    a_runner,
    a_task,
    later,
)

RUN = "RUN-20260102-030405-abcdef"
FAILED = TaskEnd(TaskEvent.FAILED, "UNIT_TEST_FAILED: two tests", RUN)


def put(queue: TaskQueue, *tasks: Task) -> list[Task]:
    """Enqueue tasks into this queue's namespace."""
    return [queue.enqueue(replace(task, namespace=queue.namespace)) for task in tasks]


def claim(queue: TaskQueue, claimant: Claimant = ME) -> Task:
    """Claim a task that must be there."""
    task = queue.claim(claimant, later(100))
    assert task is not None
    return task


def refused(error: type[AiflowError], call: Callable[..., Any], *arguments: Any) -> AiflowError:
    """Make a call that must be refused."""
    with pytest.raises(error) as caught:
        call(*arguments)
    return caught.value


# Enqueueing


@pytest.mark.spec("QUE-3")
def test_a_task_is_there_as_it_was_put(queue: TaskQueue) -> None:
    task = a_task(
        1,
        queue.namespace,
        action=TaskAction.RESUME,
        place_at=NOW,
        priority=Priority.P1,
        options={"answer": "はい", "force": "yes"},
        run_id=RUN,
        predecessor="TASK-0000",
    )
    there = queue.enqueue(task, "そのまま続けて")
    assert there == replace(task, prompt="そのまま続けて", prompt_bytes=21, fence=1)
    assert queue.get(task.task_id) == there
    assert queue.prompt(there) == "そのまま続けて"


@pytest.mark.spec("QUE-5")
def test_a_request_has_one_live_task(queue: TaskQueue) -> None:
    put(queue, a_task(1))
    error = refused(ConflictError, put, queue, a_task(2, request_id="RQ-0001"))
    assert error.reason_code == "REQUEST_QUEUED"
    assert error.context["task_id"] == "TASK-0001"
    assert error.context["status"] == "QUEUED"
    claim(queue)
    error = refused(ConflictError, put, queue, a_task(2, request_id="RQ-0001"))
    assert error.context["status"] == "RUNNING"
    assert queue.get("TASK-0002") is None


@pytest.mark.spec("QUE-5")
@pytest.mark.parametrize("end", ["finish", "cancel", "end_lost"])
def test_the_end_of_a_task_frees_its_request_and_the_fence_grows(queue: TaskQueue, end: str) -> None:
    [first] = put(queue, a_task(1))
    claimed = claim(queue)
    match end:
        case "finish":
            queue.finish(claimed, COMPLETED, NOW)
        case "cancel":
            queue.cancel(claimed.task_id, "no longer", NOW)
        case "end_lost":
            queue.end_lost(claimed, LOST, NOW)
    [second] = put(queue, a_task(2, request_id="RQ-0001"))
    assert second.fence > first.fence
    assert claim(queue).task_id == "TASK-0002"


@pytest.mark.spec("QUE-9")
def test_the_same_task_again_is_the_same_task_whatever_became_of_it(queue: TaskQueue) -> None:
    mine = a_task(1, queue.namespace, options={"keep": "yes"})
    first = queue.enqueue(mine, "text")
    assert queue.enqueue(mine, "text") == first
    claimed = claim(queue)
    assert queue.enqueue(replace(mine, created_at=later(50)), "text") == claimed
    ended = queue.finish(claimed, FAILED, NOW)
    assert queue.enqueue(mine, "text") == ended
    put(queue, a_task(2, request_id=mine.request_id))
    assert queue.enqueue(mine, "text") == ended
    error = refused(ConflictError, put, queue, a_task(3, request_id=mine.request_id))
    assert error.context["task_id"] == "TASK-0002"


@pytest.mark.spec("QUE-9")
@pytest.mark.parametrize("is_final", [False, True])
def test_another_task_under_its_id_is_refused_and_changes_nothing(queue: TaskQueue, is_final: bool) -> None:
    others: list[tuple[dict[str, Any], str]] = [
        ({"action": TaskAction.REPLAN}, "text"),
        ({"request_id": "RQ-0009"}, "text"),
        ({"options": {"force": "yes"}}, "text"),
        ({"checkout": THERE}, "text"),
        ({}, "texT"),
        ({}, "another text"),
    ]
    mine = a_task(1, queue.namespace)
    queue.enqueue(mine, "text")
    if is_final:
        queue.cancel(mine.task_id, "", NOW)
    before = queue.get(mine.task_id)
    for changes, prompt in others:
        error = refused(ConflictError, queue.enqueue, replace(mine, **changes), prompt)
        assert error.reason_code == "TASK_EXISTS", (changes, prompt)
        assert queue.get(mine.task_id) == before, (changes, prompt)
    put(queue, a_task(2, request_id="RQ-0009"))
    if not is_final:
        assert refused(ConflictError, put, queue, a_task(3, request_id="RQ-0001")).reason_code == "REQUEST_QUEUED"


@pytest.mark.spec("QUE-9")
@pytest.mark.parametrize("size", [1, INLINE_PROMPT_BYTES, INLINE_PROMPT_BYTES + 1, PROMPT_BYTES])
def test_a_prompt_comes_back_whole(queue: TaskQueue, size: int) -> None:
    text = ("語" * (size // 3)) + "x" * (size % 3)
    there = queue.enqueue(a_prompt(1, queue.namespace), text)
    assert len(there.prompt.encode()) <= INLINE_PROMPT_BYTES
    assert there.prompt_bytes == size
    assert text.startswith(there.prompt)
    assert queue.prompt(claim(queue)) == text


@pytest.mark.spec("QUE-9")
@pytest.mark.parametrize(("text", "code"), [("x" * 500_000, "PROMPT_TOO_LARGE"), ("語" * 130_001, "PROMPT_TOO_LARGE")])
def test_a_prompt_over_the_limit_is_refused_and_nothing_is_there(queue: TaskQueue, text: str, code: str) -> None:
    error = refused(BadInputError, queue.enqueue, a_prompt(1, queue.namespace), text)
    assert (error.reason_code, error.context["bytes"]) == (code, len(text.encode()))
    assert queue.get("TASK-0001") is None
    assert queue.claim(ME, NOW) is None


@pytest.mark.spec("QUE-9")
def test_a_refused_task_does_not_touch_the_large_prompt_of_the_one_that_is_there(queue: TaskQueue) -> None:
    text = "a" * 5_000
    there = queue.enqueue(a_prompt(1, queue.namespace), text)
    other = "a" * 4_999 + "b"
    assert refused(ConflictError, queue.enqueue, a_prompt(1, queue.namespace), other).reason_code == "TASK_EXISTS"
    assert queue.prompt(there) == text
    assert queue.enqueue(a_prompt(1, queue.namespace), text) == there


@pytest.mark.spec("QUE-7")
def test_a_successor_has_its_predecessors_place_and_large_prompt(queue: TaskQueue) -> None:
    text = "a" * 5_000
    queue.enqueue(a_prompt(1, queue.namespace), text)
    put(queue, a_prompt(2))
    claimed = claim(queue)
    ended = queue.end_lost(claimed, replace(LOST, successor="TASK-0001.2"), NOW)
    assert ended is not None
    assert (ended.status, ended.successor) == (TaskStatus.ERROR, "TASK-0001.2")
    successor = queue.enqueue(successor_of(ended, later(200), HERE))
    assert queue.enqueue(successor_of(ended, later(300), HERE)) == successor
    assert queue.prompt(successor) == text
    again = claim(queue)
    assert (again.task_id, again.losses) == ("TASK-0001.2", 1)


# Claiming


@pytest.mark.spec("QUE-5")
def test_the_most_urgent_then_oldest_is_claimed_first(queue: TaskQueue) -> None:
    wanted = [
        a_task(5, priority=Priority.P0),
        a_task(7, priority=Priority.P0),
        a_prompt(2, priority=Priority.P1),
        a_task(4, priority=Priority.P1),
        a_task(9, priority=Priority.P2, place_at=NOW),
        a_task(3, priority=Priority.P2),
        a_prompt(6, priority=Priority.P2),
        a_task(1, priority=Priority.P3),
    ]
    put(queue, *sorted(wanted, key=lambda task: task.task_id))
    assert [claim(queue).task_id for _ in wanted] == [task.task_id for task in wanted]
    assert queue.claim(ME, NOW) is None


@pytest.mark.spec("QUE-5")
def test_nothing_is_claimed_out_of_turn_and_no_turn_is_asked_for_without_need(queue: TaskQueue) -> None:
    asked: list[bool] = []

    def turn(is_ours: bool) -> ClaimTerms:
        def ask() -> bool:
            asked.append(is_ours)
            return is_ours

        return ClaimTerms(ask)

    assert (queue.claim(ME, NOW, turn(is_ours=True)), asked) == (None, [])
    put(queue, a_task(1), a_prompt(2))
    for _ in range(2):
        assert (queue.claim(ME, NOW, turn(is_ours=False)), set(asked)) == (None, {False})
    assert queue.get("TASK-0001") == replace(a_task(1), namespace=queue.namespace, fence=1)
    asked.clear()
    claimed = [queue.claim(ME, NOW, turn(is_ours=True)) for _ in range(3)]
    assert [task and task.task_id for task in claimed] == ["TASK-0001", "TASK-0002", None]
    assert asked == [True, True]


@pytest.mark.spec("QUE-5")
def test_what_a_claim_is_to_leave_stays_and_is_found_again(queue: TaskQueue) -> None:
    put(queue, a_task(1), a_task(2))
    terms = ClaimTerms(left=frozenset({"TASK-0001"}))
    claimed = [queue.claim(ME, NOW, terms) for _ in range(2)]
    assert [task and task.task_id for task in claimed] == ["TASK-0002", None]
    only = ClaimTerms(lambda: pytest.fail("there is nothing to claim"), terms.left)
    assert queue.claim(ME, NOW, only) is None
    assert claim(queue).task_id == "TASK-0001"


@pytest.mark.spec("QUE-5")
def test_a_claim_is_written_with_who_and_a_token_of_its_own(queue: TaskQueue) -> None:
    [one, _two] = put(queue, a_task(1), a_task(2))
    claimed = claim(queue)
    token = claimed.claim_token
    assert claimed == replace(
        one, status=TaskStatus.RUNNING, claimed_by=ME.runner_id, claim_token=token, updated_at=later(100)
    )
    assert token
    assert queue.get(one.task_id) == claimed
    assert claim(queue, YOU).claim_token not in (None, token)


@pytest.mark.spec("QUE-11")
def test_a_task_is_for_its_checkout_and_a_prompt_for_anybody(queue: TaskQueue) -> None:
    put(queue, a_task(1), a_prompt(2))
    assert claim(queue, ELSEWHERE).task_id == "TASK-0002"
    assert queue.claim(ELSEWHERE, NOW) is None
    assert claim(queue).task_id == "TASK-0001"


@pytest.mark.spec("QUE-11")
def test_other_machines_see_a_task_and_can_cancel_it(store: QueueStore, queue: TaskQueue) -> None:
    put(queue, a_task(1))
    other = store.queue(queue.namespace)
    seen = other.get("TASK-0001")
    assert seen is not None
    assert seen.checkout == HERE
    other.cancel("TASK-0001", "from elsewhere", NOW)
    assert queue.claim(ME, NOW) is None


@pytest.mark.spec("QUE-5")
def test_of_many_at_once_one_gets_a_task(store: QueueStore, queue: TaskQueue) -> None:
    put(queue, *(a_task(number) for number in range(1, 13)))
    barrier = threading.Barrier(8)

    def take(number: int) -> list[str]:
        mine, claimant = store.queue(queue.namespace), Claimant(f"runner-{number}", HERE)
        barrier.wait()
        taken = []
        while (task := mine.claim(claimant, NOW)) is not None:
            assert task.claimed_by == claimant.runner_id
            taken.append(task.task_id)
        return taken

    with ThreadPoolExecutor(8) as pool:
        taken = [task_id for each in pool.map(take, range(8)) for task_id in each]
    assert sorted(taken) == [f"TASK-{number:04d}" for number in range(1, 13)]


def test_what_comes_later_is_found_too(queue: TaskQueue) -> None:
    assert queue.claim(ME, NOW) is None
    put(queue, a_task(1))
    assert claim(queue).task_id == "TASK-0001"
    put(queue, a_prompt(2))
    threading.Event().wait(POLL_SECONDS)  # what anybody may take is looked at once per poll
    assert claim(queue).task_id == "TASK-0002"


# Ending


@pytest.mark.spec("QUE-3", "QUE-4")
@pytest.mark.parametrize(
    ("end", "status"),
    [
        (COMPLETED, TaskStatus.COMPLETE),
        (FAILED, TaskStatus.ERROR),
        (TaskEnd(TaskEvent.CANCELLED, "CANCELLED", RUN), TaskStatus.CANCELLED),
    ],
)
def test_a_claimed_task_ends_as_its_run_did(queue: TaskQueue, end: TaskEnd, status: TaskStatus) -> None:
    put(queue, a_task(1))
    claimed = claim(queue)
    ended = queue.finish(claimed, end, later(200))
    assert ended == replace(
        claimed, status=status, error_message=end.error_message, run_id=end.run_id, updated_at=later(200)
    )
    assert queue.get(claimed.task_id) == ended
    assert queue.finish(claimed, end, later(300)) == ended
    assert queue.claim(ME, NOW) is None


def test_a_run_is_named_and_stays_named(queue: TaskQueue) -> None:
    put(queue, a_task(1))
    claimed = claim(queue)
    queue.note_run(claimed, RUN, later(150))
    there = queue.get(claimed.task_id)
    assert there == replace(claimed, run_id=RUN, updated_at=later(150))
    assert queue.finish(claimed, COMPLETED, NOW).run_id == RUN


def stale_writes(queue: TaskQueue, task: Task) -> list[Callable[[], object]]:
    """Everything a runner writes to a task."""
    return [
        lambda: queue.finish(task, COMPLETED, NOW),
        lambda: queue.finish(task, FAILED, NOW),
        lambda: queue.note_run(task, RUN, NOW),
    ]


@pytest.mark.spec("QUE-6")
@pytest.mark.parametrize(
    "forgery", [{"claimed_by": "runner-you"}, {"claim_token": "0123456789abcdef"}, {"fence": 7}], ids=str
)
def test_a_write_of_anybody_else_is_refused(queue: TaskQueue, forgery: dict[str, Any]) -> None:
    put(queue, a_task(1))
    claimed = claim(queue)
    for write in stale_writes(queue, replace(claimed, **forgery)):
        error = refused(ConflictError, write)
        assert error.reason_code == "LOCK_MISMATCH"
        assert error.context["task_id"] == "TASK-0001"
        assert error.context["status"] == "RUNNING"
        assert error.context["claimed_by"] == ME.runner_id
    assert queue.end_lost(replace(claimed, **forgery), LOST, NOW) is None
    assert queue.get(claimed.task_id) == claimed


@pytest.mark.spec("QUE-6", "QUE-8")
@pytest.mark.parametrize("how", ["cancelled", "lost", "ended otherwise", "never claimed"])
def test_what_is_no_longer_ours_cannot_be_written(queue: TaskQueue, how: str) -> None:
    [queued] = put(queue, a_task(1))
    claimed = queued if how == "never claimed" else claim(queue)
    match how:
        case "cancelled":
            queue.cancel(claimed.task_id, "no longer", NOW)
        case "lost":
            queue.end_lost(claimed, LOST, NOW)
        case "ended otherwise":
            queue.finish(claimed, TaskEnd(TaskEvent.FAILED, "NOT_READY"), NOW)
    before = queue.get(claimed.task_id)
    assert before is not None
    for write in stale_writes(queue, claimed):
        error = refused(ConflictError, write)
        assert error.reason_code == "LOCK_MISMATCH"
        assert error.context["status"] == before.status
    assert queue.get(claimed.task_id) == before


@pytest.mark.spec("QUE-6")
def test_a_stale_end_does_not_free_the_request_of_the_task_that_went_on(queue: TaskQueue) -> None:
    put(queue, a_task(1))
    claimed = claim(queue)
    ended = queue.end_lost(claimed, replace(LOST, successor="TASK-0001.2"), NOW)
    assert ended is not None
    queue.enqueue(successor_of(ended, NOW))
    refused(ConflictError, queue.finish, claimed, COMPLETED, NOW)
    assert queue.end_lost(claimed, replace(LOST, successor="TASK-0001.2"), NOW) == ended
    assert refused(ConflictError, put, queue, a_task(2, request_id="RQ-0001")).context["task_id"] == "TASK-0001.2"


@pytest.mark.spec("QUE-8")
def test_a_queued_task_is_cancelled_at_once(queue: TaskQueue) -> None:
    [queued] = put(queue, a_task(1))
    cancelled = queue.cancel(queued.task_id, "not needed", later(9))
    assert cancelled == replace(
        queued, status=TaskStatus.CANCELLED, error_message="CANCELLED: not needed", updated_at=later(9)
    )
    assert queue.claim(ME, NOW) is None
    assert queue.cancel(queued.task_id, "again", NOW) == cancelled


@pytest.mark.spec("QUE-8")
def test_a_running_task_can_be_cancelled_and_what_ended_cannot(queue: TaskQueue) -> None:
    put(queue, a_task(1), a_task(2))
    running, ended = claim(queue), claim(queue)
    queue.finish(ended, COMPLETED, NOW)
    assert queue.cancel(running.task_id, "stop it", NOW).status is TaskStatus.CANCELLED
    error = refused(ConflictError, queue.cancel, ended.task_id, "stop it", NOW)
    assert (error.reason_code, error.context["status"]) == ("TASK_NOT_ACTIVE", "COMPLETE")
    error = refused(NotFoundError, queue.cancel, "TASK-0009", "stop it", NOW)
    assert (error.reason_code, error.context["namespace"]) == ("TASK_NOT_FOUND", queue.namespace)


@pytest.mark.spec("QUE-7")
def test_a_lost_task_is_ended_by_the_claim_that_was_seen(queue: TaskQueue) -> None:
    put(queue, a_task(1), a_task(2))
    lost, ended = claim(queue), claim(queue)
    queue.finish(ended, COMPLETED, NOW)
    assert queue.end_lost(ended, LOST, NOW) is None
    there = queue.end_lost(lost, LOST, later(200))
    assert there == replace(
        lost, status=TaskStatus.ERROR, error_message="RUNNER_LOST: no heartbeat", updated_at=later(200)
    )
    assert queue.end_lost(lost, LOST, later(300)) == there
    assert queue.end_lost(lost, replace(LOST, error_message="RUNNER_LOST: otherwise"), NOW) is None


# Listing


@pytest.mark.spec("QUE-9")
def test_tasks_are_listed_newest_first_and_counted(queue: TaskQueue) -> None:
    put(queue, *(a_task(number) for number in range(1, 6)))
    queue.finish(claim(queue), COMPLETED, NOW)
    claim(queue)

    def listed(statuses: tuple[TaskStatus, ...] = (), start: str | None = None) -> list[str]:
        return [task.task_id[-1] for page in queue.pages(statuses, start) for task in page.tasks]

    assert listed() == ["5", "4", "3", "2", "1"]
    assert listed((TaskStatus.QUEUED,)) == ["5", "4", "3"]
    assert listed((TaskStatus.RUNNING, TaskStatus.COMPLETE)) == ["2", "1"]
    assert listed((), "TASK-0003") == ["2", "1"]
    seen: list[int] = []
    assert queue.counts(seen.append) == {
        TaskStatus.QUEUED: 3,
        TaskStatus.RUNNING: 1,
        TaskStatus.COMPLETE: 1,
        TaskStatus.ERROR: 0,
        TaskStatus.CANCELLED: 0,
    }
    assert seen[-1] == 5


@pytest.mark.spec("QUE-9")
def test_what_waits_is_told_in_the_order_of_the_claim_for_each_that_may_take_it(
    store: QueueStore, queue: TaskQueue
) -> None:
    priorities = (Priority.P3, Priority.P2, Priority.P2, Priority.P0)
    ours = put(queue, *(a_task(n, priority=priority) for n, priority in enumerate(priorities, 1)))
    late, two, three, urgent = ours
    [prompt, theirs] = put(queue, a_prompt(5), a_task(6, checkout=THERE))
    put(store.queue(f"{queue.namespace}-b"), a_task(8))

    def places(*tasks: Task) -> tuple[str, ...]:
        return tuple(place_key(task) for task in tasks)

    assert queue.waiting(HERE, 10) == places(urgent, two, three, late)
    assert queue.waiting(HERE, 4) == places(urgent, two, three, late)
    assert queue.waiting(HERE, 3) == places(urgent, two, three)
    assert (queue.waiting(None, 10), queue.waiting(THERE, 10)) == (places(prompt), places(theirs))
    queue.finish(claim(queue), COMPLETED, NOW)
    queue.cancel(three.task_id, "", NOW)
    claim(queue)
    assert queue.waiting(HERE, 10) == places(late)


def test_the_live_task_of_a_request_is_found_by_the_request(queue: TaskQueue) -> None:
    assert queue.live_of("RQ-0001") is None
    assert not queue.has_had("RQ-0001")
    [first, other] = put(queue, a_task(1), a_task(2))
    assert queue.live_of("RQ-0001") == first
    claimed = claim(queue)
    assert queue.live_of("RQ-0001") == claimed
    queue.finish(claimed, COMPLETED, later(101))
    assert queue.live_of("RQ-0001") is None
    [second] = put(queue, a_task(3, request_id="RQ-0001"))
    assert (queue.live_of("RQ-0001"), queue.live_of("RQ-0002")) == (second, other)
    assert (queue.has_had("RQ-0001"), queue.has_had("RQ-0003")) == (True, False)


def test_the_tasks_that_a_runner_has_are_found(queue: TaskQueue) -> None:
    put(queue, *(a_task(number) for number in range(1, 5)))
    ended, mine, yours = claim(queue), claim(queue), claim(queue, YOU)
    queue.finish(ended, COMPLETED, NOW)
    assert queue.tasks_of(ME.runner_id) == (mine,)
    assert queue.tasks_of(YOU.runner_id) == (yours,)
    assert queue.tasks_of("nobody") == ()
    queue.cancel(mine.task_id, "", NOW)
    assert queue.tasks_of(ME.runner_id) == ()


@pytest.mark.spec("QUE-5", "QUE-9")
def test_namespaces_do_not_meet(store: QueueStore, queue: TaskQueue) -> None:
    other = store.queue(f"{queue.namespace}-b")
    put(queue, a_task(1), a_prompt(2))
    assert other.claim(ME, NOW) is None
    assert other.get("TASK-0001") is None
    assert sum(other.counts().values()) == 0
    refused(NotFoundError, other.cancel, "TASK-0001", "", NOW)
    put(other, a_task(1))
    assert claim(other).task_id == "TASK-0001"
    assert other.tasks_of(ME.runner_id) != queue.tasks_of(ME.runner_id)
    mine = queue.get("TASK-0001")
    assert mine is not None
    assert mine.status is TaskStatus.QUEUED
    both = {name: counts for name, counts in store.namespaces().items() if name.startswith(queue.namespace)}
    assert both == {queue.namespace: queue.counts(), other.namespace: other.counts()}


# Runners


@pytest.mark.spec("QUE-7")
def test_a_runners_record_is_there_as_it_was_saved(store: QueueStore, runners: RunnerRecords, namespace: str) -> None:
    whole = a_runner(
        "runner-a",
        namespace,
        beats=3,
        task_id="TASK-0001",
        pid=4711,
        boot_id="boot",
        process_started_at=1767323045.25,
        version="0.1.0",
        held_up="AGENT_NOT_FOUND: no claude",
    )
    least = a_runner("runner-b", namespace)
    runners.save(least)
    runners.save(replace(whole, beats=2))
    runners.save(whole)
    store.runners(f"{namespace}-b").save(a_runner("runner-c", f"{namespace}-b"))
    assert sorted(runners.all(), key=lambda runner: runner.runner_id) == [whole, least]
    everybody = {runner.runner_id for runner in store.all_runners() if runner.namespace.startswith(namespace)}
    assert everybody == {"runner-a", "runner-b", "runner-c"}


@pytest.mark.spec("QUE-7")
def test_a_beat_that_comes_late_does_not_undo_the_last_word(runners: RunnerRecords, namespace: str) -> None:
    last = a_runner(namespace=namespace, beats=4, status=RunnerStatus.STOPPED)
    for runner in (replace(last, beats=2, status=RunnerStatus.RUNNING), last, last):
        runners.save(runner)
    runners.save(replace(last, beats=3, status=RunnerStatus.RUNNING, task_id="TASK-0001"))
    assert runners.all() == (last,)


@pytest.mark.spec("QUE-7")
def test_a_dead_runner_is_put_to_rest_and_forgotten(runners: RunnerRecords, namespace: str) -> None:
    runner = a_runner(namespace=namespace, beats=3, task_id="TASK-0001")
    runners.save(runner)
    runners.forget(runner)
    assert runners.all() == (runner,)
    assert runners.put_to_rest(runner)
    rested = replace(runner, status=RunnerStatus.STOPPED, task_id=None)
    assert runners.all() == (rested,)
    assert runners.put_to_rest(runner)
    runners.forget(rested)
    assert runners.all() == ()
    runners.forget(rested)


@pytest.mark.spec("QUE-7")
def test_a_runner_that_moved_is_left_alone(runners: RunnerRecords, namespace: str) -> None:
    seen = a_runner(namespace=namespace, beats=3, task_id="TASK-0001")
    runners.save(replace(seen, beats=4))
    assert not runners.put_to_rest(seen)
    assert runners.all() == (replace(seen, beats=4),)
    runners.save(replace(seen, beats=5, status=RunnerStatus.STOPPED, task_id=None))
    runners.forget(seen)
    assert len(runners.all()) == 1
    assert not runners.put_to_rest(a_runner("nobody", namespace))
