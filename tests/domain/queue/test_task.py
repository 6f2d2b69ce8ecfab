"""Tasks: ids, order, ends and successors (QUE-3, QUE-4, QUE-5, QUE-7, QUE-9)."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.lifecycle import TASK_TRANSITIONS, RunOutcome, TaskEvent, TaskStatus, advance
from aiflow.domain.queue.task import (
    FINAL_STATUSES,
    INLINE_PROMPT_BYTES,
    LIVE_STATUSES,
    MESSAGE_CHARACTERS,
    MOST_LOSSES,
    PROMPT_BYTES,
    TASK_ID_CHARACTERS,
    Checkout,
    auto_run_guard,
    check_prompt,
    check_task_id,
    delivery_number,
    end_for,
    excerpt,
    first_delivery,
    is_delivered_again,
    may_claim,
    message_of,
    moment,
    new_task_id,
    old_prompt_request_id,
    place_key,
    prompt_request_id,
    stamp,
    successor_id,
    successor_of,
)
from aiflow.domain.request import Priority, is_valid_id
from aiflow.errors import BadInputError, TransitionError
from task_builders import HERE, NOW, THERE, a_prompt, a_task, later

MOMENTS = st.timedeltas(timedelta(-9000), timedelta(9000)).map(lambda distance: NOW + distance)
# Of one to four bytes, and everything that ends a line somewhere; a small alphabet is quick.
TEXT = "ab: é語😀\n\r\t\x1c\x85\u2028"
TASK_IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}", fullmatch=True)


@pytest.mark.spec("QUE-3")
@pytest.mark.parametrize("status", TaskStatus)
@pytest.mark.parametrize("event", TaskEvent)
def test_the_transitions_are_the_seeds(status: TaskStatus, event: TaskEvent) -> None:
    seed = {
        "QUEUED": {"claimed": "RUNNING", "cancelled": "CANCELLED"},
        "RUNNING": {"completed": "COMPLETE", "failed": "ERROR", "cancelled": "CANCELLED"},
    }
    wanted = seed.get(status, {}).get(event)
    if wanted is None:
        with pytest.raises(TransitionError):
            advance(TASK_TRANSITIONS, status, event)
    else:
        assert advance(TASK_TRANSITIONS, status, event) == wanted


@pytest.mark.spec("QUE-3")
def test_what_is_final_is_what_the_seed_calls_so() -> None:
    assert {TaskStatus.COMPLETE, TaskStatus.ERROR, TaskStatus.CANCELLED} == FINAL_STATUSES
    assert {TaskStatus.QUEUED, TaskStatus.RUNNING} == LIVE_STATUSES
    assert [a_task(status=status).is_final for status in TaskStatus] == [False, False, True, True, True]


@pytest.mark.spec("QUE-4")
@pytest.mark.parametrize(
    ("outcome", "event", "message"),
    [
        (RunOutcome.ACCEPTED, TaskEvent.COMPLETED, None),
        (RunOutcome.AWAITING_ACCEPTANCE, TaskEvent.COMPLETED, None),
        (RunOutcome.NEEDS_INPUT, TaskEvent.FAILED, "UNIT_TEST_FAILED: two tests"),
        (RunOutcome.FAILED, TaskEvent.FAILED, "UNIT_TEST_FAILED: two tests"),
        (RunOutcome.SENT_BACK, TaskEvent.FAILED, "UNIT_TEST_FAILED: two tests"),
        (RunOutcome.CANCELLED, TaskEvent.CANCELLED, "UNIT_TEST_FAILED: two tests"),
    ],
)
def test_a_task_ends_as_its_run(outcome: RunOutcome, event: TaskEvent, message: str | None) -> None:
    end = end_for(outcome, "UNIT_TEST_FAILED", "two\n tests", "RUN-1")
    assert (end.event, end.error_message, end.run_id, end.successor) == (event, message, "RUN-1", None)


@given(st.from_regex(r"[A-Z_]{1,40}", fullmatch=True), st.text(TEXT, max_size=1000))
def test_a_message_is_one_short_line_that_begins_with_its_code(code: str, text: str) -> None:
    message = message_of(code, text)
    assert len(message) <= MESSAGE_CHARACTERS
    assert len(message.splitlines()) == 1
    assert a_task(error_message=message).reason_code == code


def test_a_task_without_a_message_has_no_reason() -> None:
    assert a_task().reason_code is None


@given(MOMENTS, MOMENTS)
def test_the_order_of_texts_is_the_order_of_time(one: datetime, other: datetime) -> None:
    assert (stamp(one) < stamp(other)) == (one < other)
    assert (new_task_id(one, "000000") < new_task_id(other, "000000")) == (one < other)
    assert len(stamp(one)) == len(stamp(other))
    assert moment(stamp(one)) == one


def test_times_are_written_in_utc_and_read_as_others_write_them() -> None:
    tokyo = timezone(timedelta(hours=9))
    assert stamp(datetime(2026, 1, 2, 9, tzinfo=tokyo)) == "2026-01-02T00:00:00.000000Z"
    assert moment("2026-01-02T09:00:00+09:00") == datetime(2026, 1, 2, tzinfo=UTC)
    assert moment("2026-01-02T00:00:00.000Z") == datetime(2026, 1, 2, tzinfo=UTC)
    assert moment("2026-01-02T00:00:00") == datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.spec("QUE-5")
@given(st.lists(st.tuples(st.sampled_from(Priority), st.integers(0, 10**9), st.integers(1, 9999)), min_size=2))
def test_the_place_in_the_queue_is_priority_then_age(places: list[tuple[Priority, int, int]]) -> None:
    tasks = [
        a_task(number, priority=priority, place_at=NOW + timedelta(microseconds=age))
        for priority, age, number in places
    ]
    by_key = sorted(tasks, key=place_key)
    assert by_key == sorted(tasks, key=lambda task: (task.priority, task.place_at, task.task_id))


@pytest.mark.spec("QUE-9")
@pytest.mark.parametrize("name", ["T", "TASK-1", "a.b", "a_b-c.d", "v1.2.x", "9", "x" * TASK_ID_CHARACTERS])
def test_a_task_id_may_be_chosen(name: str) -> None:
    assert check_task_id(name) == name


@pytest.mark.spec("QUE-9")
@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a/b", "../a", ".a", "-a", "_a", "a#b", "日本", "a\n", "a.1", "a.b.22", "x" * 129]
)
def test_a_task_id_that_cannot_be_used_is_refused(name: str) -> None:
    with pytest.raises(BadInputError) as caught:
        check_task_id(name)
    assert caught.value.reason_code == "TASK_ID_INVALID"
    assert len(str(caught.value.context["task_id"])) <= TASK_ID_CHARACTERS


@pytest.mark.spec("QUE-9")
def test_a_prompt_fits_or_is_refused() -> None:
    assert check_prompt("x" * PROMPT_BYTES)
    for text, code in (("x" * (PROMPT_BYTES + 1), "PROMPT_TOO_LARGE"), ("", "PROMPT_EMPTY"), (" \n", "PROMPT_EMPTY")):
        with pytest.raises(BadInputError) as caught:
            check_prompt(text)
        assert caught.value.reason_code == code
    with pytest.raises(BadInputError, match="INPUT_INVALID"):
        check_prompt("a\udcffb")  # what was not UTF-8
    with pytest.raises(BadInputError) as caught:
        check_prompt("語" * (PROMPT_BYTES // 2))
    assert caught.value.context == {"bytes": PROMPT_BYTES // 2 * 3, "most": PROMPT_BYTES}


@given(st.text(TEXT, max_size=400))
def test_an_excerpt_is_the_beginning_or_all(text: str) -> None:
    part = excerpt(text)
    assert text.startswith(part)
    assert len(part.encode()) <= INLINE_PROMPT_BYTES
    size = len(text.encode())
    assert (part == text) == (size <= INLINE_PROMPT_BYTES)
    assert len(part.encode()) > INLINE_PROMPT_BYTES - 4 or part == text
    assert a_task(prompt=part, prompt_bytes=size).is_prompt_whole == (part == text)


@pytest.mark.spec("QUE-7")
@given(TASK_IDS, st.integers(1, 30))
def test_successors_are_numbered_and_lead_back_to_the_first(task_id: str, times: int) -> None:
    name = task_id
    for _ in range(times):
        name = successor_id(name)
    assert (first_delivery(name), delivery_number(name)) == (task_id, times + 1)
    assert prompt_request_id(name) == prompt_request_id(task_id)


@pytest.mark.spec("REQ-9")
def test_prompts_have_requests_of_their_own() -> None:
    names = [
        "TASK-20260102-030405-678901-abcdef",
        "TASK-20260102-030405-678901-abcdf0",
        "TASK-20269999-030405-x",
        "mine",
    ]
    made = [prompt_request_id(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(re.fullmatch("RQ-(20260102|20269999|[a-z]{8})-[a-z]{4}", each) and is_valid_id(each) for each in made)
    assert made[0].startswith("RQ-20260102-")
    assert prompt_request_id(f"{names[0]}.3") == made[0]
    # Short ids are spread: of a thousand prompts of one day hardly two are the same.
    assert len({prompt_request_id(f"TASK-20260102-030405-{number:06}-abcdef") for number in range(1000)}) >= 997
    old = old_prompt_request_id(names[0])
    assert re.fullmatch("ADHOC-[0-7][0-9A-HJKMNP-TV-Z]{25}", old)
    assert old == old_prompt_request_id(f"{names[0]}.3") == "ADHOC-01KDYAK3SE" + old[16:]


@pytest.mark.spec("QUE-3", "QUE-7")
def test_a_successor_is_a_new_task_that_names_the_old_one_and_keeps_its_place() -> None:
    old = a_task(
        1, status=TaskStatus.ERROR, run_id="RUN-1", claimed_by="runner", claim_token="token", fence=3,
        error_message="RUNNER_LOST", successor="TASK-0001.2", options={"a": "b"}, priority=Priority.P0,
    )  # fmt: skip
    new = successor_of(old, later(500), THERE)
    assert new == a_task(
        1, task_id="TASK-0001.2", created_at=later(500), updated_at=later(500), run_id="RUN-1", predecessor="TASK-0001",
        options={"a": "b"}, priority=Priority.P0, losses=1,
    )  # fmt: skip
    assert place_key(new).rpartition("#")[0] == place_key(old).rpartition("#")[0]
    assert new.checkout == HERE


@pytest.mark.spec("QUE-11")
def test_a_prompt_that_was_begun_belongs_to_where_it_was_begun() -> None:
    assert successor_of(a_prompt(1), NOW, THERE).checkout == THERE
    assert successor_of(a_prompt(1), NOW).checkout is None


@pytest.mark.spec("RUN-14", "QUE-7")
def test_a_lost_task_is_not_delivered_for_ever_and_stops_in_order_do_not_count() -> None:
    task = a_task(1)
    delivered = 1
    while is_delivered_again(task) and delivered < 20:
        for reason in ("RUNNER_STOPPED", "STORE_UNREACHABLE: x", "RUNNER_LOST: x"):
            task, delivered = successor_of(replace(task, error_message=reason), NOW), delivered + 1
    assert delivered == 3 * (MOST_LOSSES - 1) + 1


@pytest.mark.spec("QUE-5", "QUE-11")
@pytest.mark.parametrize(
    ("changes", "is_so"),
    [
        ({}, True),
        ({"checkout": None}, True),
        ({"checkout": THERE}, False),
        ({"status": TaskStatus.RUNNING}, False),
        # What another program left in a queued one says nothing.
        ({"claimed_by": "another"}, True),
    ],
)
def test_who_may_claim_a_task(changes: dict[str, Any], is_so: bool) -> None:
    assert may_claim(replace(a_task(1), **changes), HERE) is is_so


@pytest.mark.spec("QUE-11")
@given(st.from_regex(r"[a-z0-9.-]{1,20}", fullmatch=True), st.text(TEXT, min_size=1))
def test_a_checkout_is_read_back_from_its_id(host: str, root: str) -> None:
    checkout = Checkout(host, root)
    assert Checkout.parse(checkout.id) == checkout
    assert Checkout.parse("") is None
    assert auto_run_guard(checkout).startswith(".")


@pytest.mark.spec("QUE-7")
@pytest.mark.parametrize(
    ("task_id", "is_again"), [("task-001", True), ("T.1", True), ("a b", False), ("../x", False), ("x" * 129, False)]
)
def test_what_could_be_no_task_of_ours_is_not_delivered_again(task_id: str, is_again: bool) -> None:
    assert is_delivered_again(a_task(task_id=task_id)) is is_again
