"""Waiting for an agent's quota (RUN-13)."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.runs.quota import FIRST_SECONDS, MARGIN, MOST_SECONDS, QuotaPatience, QuotaWait, next_wait, over
from builders import NOW

HOUR = timedelta(hours=1)


def waits(count: int, retry_at: datetime | None = None, hours: float = 24) -> list[QuotaWait]:
    """The waits of an agent that never gets its quota back, each as soon as the one before is over."""
    found: list[QuotaWait] = []
    wait, now = None, NOW
    while len(found) < count and (wait := next_wait(wait, retry_at, now, QuotaPatience(hours))) is not None:
        found.append(wait)
        wait, now = over(wait), wait.until
    return found


@pytest.mark.spec("RUN-13")
def test_the_time_the_agent_gives_is_waited_for_and_a_little_longer() -> None:
    wait = next_wait(None, NOW + HOUR, NOW, QuotaPatience(24), "429")
    assert wait == QuotaWait(NOW, NOW + HOUR + MARGIN, 1, "429")


@pytest.mark.spec("RUN-13")
@pytest.mark.parametrize("retry_at", [None, NOW, NOW - HOUR], ids=["unknown", "now", "past"])
def test_without_a_time_it_tries_soon_and_then_ever_more_rarely(retry_at: datetime | None) -> None:
    pauses = [(b.until - a.until).total_seconds() for a, b in zip(waits(12), waits(12)[1:], strict=False)]
    first = next_wait(None, retry_at, NOW, QuotaPatience(24))
    assert first is not None
    assert (first.until - NOW).total_seconds() == FIRST_SECONDS
    assert pauses == sorted(pauses)
    assert pauses[-1] == MOST_SECONDS


@pytest.mark.spec("RUN-13")
def test_in_all_it_waits_as_long_as_the_settings_say_and_not_longer() -> None:
    found = waits(10_000, hours=24)
    assert found[-1].until == NOW + 24 * HOUR
    assert len(found) < 100
    assert next_wait(over(found[-1]), None, found[-1].until, QuotaPatience(24)) is None
    assert next_wait(None, None, NOW, QuotaPatience(0)) is None


@pytest.mark.spec("RUN-13")
def test_a_quota_that_comes_back_too_late_is_not_waited_for() -> None:
    assert next_wait(None, NOW + 25 * HOUR, NOW, QuotaPatience(24)) is None
    assert next_wait(None, NOW + 23 * HOUR, NOW, QuotaPatience(24)) is not None
    earlier = QuotaWait(NOW - 2 * HOUR, NOW, is_over=True)
    assert next_wait(earlier, NOW + 23 * HOUR, NOW, QuotaPatience(24)) is None


@pytest.mark.spec("RUN-13")
def test_what_an_auto_run_has_left_counts_from_now_and_what_a_quota_may_take_from_its_beginning() -> None:
    """Eight hours, the quota is gone after ten minutes for five hours, and then for ten minutes more."""
    earlier = QuotaWait(NOW, NOW + 5 * HOUR, is_over=True)
    now = NOW + 5 * HOUR
    again = next_wait(earlier, now + HOUR / 6, now, QuotaPatience(24, minutes_left=170))
    assert again is not None
    assert again.until == now + HOUR / 6 + MARGIN
    assert next_wait(earlier, now + 3 * HOUR, now, QuotaPatience(24, minutes_left=170)) is None
    assert next_wait(earlier, now + HOUR, now, QuotaPatience(5.5, minutes_left=170)) is None


@pytest.mark.spec("RUN-13", "RUN-14")
@given(st.lists(st.one_of(st.none(), st.integers(-90_000, 90_000)), max_size=300), st.floats(0, 48))
def test_whatever_the_agent_says_waiting_has_an_end(seconds: list[int | None], hours: float) -> None:
    wait, now = None, NOW
    for told in [*seconds, *[None] * 3000]:
        retry_at = None if told is None else now + timedelta(seconds=told)
        wait = next_wait(wait, retry_at, now, QuotaPatience(hours))
        if wait is None:
            return
        assert now <= wait.until <= NOW + timedelta(hours=hours)
        assert wait.since == NOW
        wait, now = over(wait), wait.until
    raise AssertionError("it waits for ever")
