"""When issues are looked at (ISS-1): at every poll, sooner for a hint, and never so often that it does harm."""

from __future__ import annotations

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.errors import AiflowError
from aiflow.usecases.issues.looks import BETWEEN_SECONDS, HINTS_AT_ONCE, MOST_HINTS, IssueLooks
from usecases.issues.caring import Care, trouble

POLL = 30.0


@pytest.fixture
def time() -> PlayedTime:
    return PlayedTime()


@pytest.fixture
def care(time: PlayedTime) -> Care:
    return Care(time)


def pass_time(time: PlayedTime, looks: IssueLooks, care: Care, seconds: float) -> None:
    """Let a process look whenever that is due."""
    until = time.seconds + seconds
    while time.seconds < until:
        looks.look(care, POLL)
        time.sleep(0.5)


@pytest.mark.spec("ISS-1")
def test_polling_is_always_on(time: PlayedTime, care: Care) -> None:
    pass_time(time, IssueLooks(time), care, 100)
    assert care.synced == [0, 30, 60, 90]


@pytest.mark.spec("ISS-1")
def test_a_hint_is_a_look_at_that_issue_now(time: PlayedTime, care: Care) -> None:
    looks = IssueLooks(time)
    pass_time(time, looks, care, 10)
    looks.hint(7)
    looks.look(care, POLL)
    assert (care.tended, care.synced) == ([7], [0])


@pytest.mark.spec("ISS-1")
def test_many_hints_are_one_look_and_a_flood_does_not_keep_the_poll_back(time: PlayedTime, care: Care) -> None:
    looks = IssueLooks(time)
    looks.look(care, POLL)
    for _ in range(650):
        for number in (1, 2, 2, 1):
            looks.hint(number)
        looks.look(care, POLL)
        time.sleep(0.1)
    assert care.synced == pytest.approx([0, 30, 60], abs=BETWEEN_SECONDS)
    assert len(care.tended) <= 2 * 66
    for number in range(MOST_HINTS * 2):
        looks.hint(number)
    care.tended.clear()
    time.sleep(2)
    looks.look(care, POLL)
    assert len(care.tended) == HINTS_AT_ONCE


@pytest.mark.spec("ISS-1")
def test_what_another_process_of_the_checkout_read_counts(time: PlayedTime, care: Care) -> None:
    looks = IssueLooks(time)
    pass_time(time, looks, care, 10)
    for _ in range(12):
        care.others_looked = time.now()
        pass_time(time, looks, care, 10)
    assert care.synced == [0]
    pass_time(time, looks, care, 31)
    assert len(care.synced) == 2
    assert IssueLooks(time).look(care, POLL) is not None  # the first look of a process is its own


@pytest.mark.spec("ISS-11", "ISS-12")
def test_trouble_is_told_when_it_begins_changes_and_ends(time: PlayedTime, care: Care) -> None:
    told: list[str | None] = []
    looks = IssueLooks(time, lambda error: told.append(error.reason_code if error else None))
    pass_time(time, looks, care, 40)
    care.wrong["sync"] = trouble()
    pass_time(time, looks, care, 100)
    assert looks.is_cut_off
    care.wrong["sync"] = trouble("GITHUB_TOKEN_INVALID")
    pass_time(time, looks, care, 100)
    care.wrong.clear()
    pass_time(time, looks, care, 100)
    assert told == ["GITHUB_UNREACHABLE", "GITHUB_TOKEN_INVALID", None]
    assert not looks.is_cut_off


@pytest.mark.spec("ISS-10")
def test_trouble_with_one_issue_does_not_keep_the_others_from_being_tended(time: PlayedTime, care: Care) -> None:
    care.due = (1, 2, 3)
    care.wrong[1] = trouble("GITHUB_RIGHTS")
    seen = IssueLooks(time).look(care, POLL)
    assert seen is not None
    assert (care.tended, seen.looked.tended) == ([1, 2, 3], (2, 3))
    assert isinstance(seen.trouble, AiflowError)
    care.wrong[2] = trouble("GITHUB_RATE_LIMITED")
    care.tended.clear()
    looks = IssueLooks(time)
    looks.look(care, POLL)
    assert (care.tended, looks.is_cut_off) == ([1, 2], True)


@pytest.mark.spec("ISS-12")
def test_a_look_that_is_not_wanted_any_more_tends_nothing_more(time: PlayedTime, care: Care) -> None:
    care.due = (1, 2, 3)
    IssueLooks(time).look(care, POLL, is_over=lambda: bool(care.tended))
    assert care.tended == [1]
