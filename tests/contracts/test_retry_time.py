"""When programs say that a quota is there again (RUN-13)."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.adapters.agents.retry_time import retry_time

ZONE = timezone(timedelta(hours=9))
NOW = datetime(2026, 11, 16, 8, 20, 30, tzinfo=ZONE)


@pytest.mark.spec("RUN-13")
@pytest.mark.parametrize(
    ("text", "when"),
    [
        # A time is cut to the minute, so the next one is safe.
        ("or try again at 8:23 AM.", datetime(2026, 11, 16, 8, 24, tzinfo=ZONE)),
        ("Try again at 3:05 PM.", datetime(2026, 11, 16, 15, 6, tzinfo=ZONE)),
        ("Try again at 12:00 AM.", datetime(2026, 11, 16, 0, 1, tzinfo=ZONE)),
        ("Try again at 12:00 PM.", datetime(2026, 11, 16, 12, 1, tzinfo=ZONE)),
        ("or try again at Nov 20th, 2026 12:01 AM.", datetime(2026, 11, 20, 0, 2, tzinfo=ZONE)),
        ("try again at Jan 1st, 2027 11:59 PM", datetime(2027, 1, 2, 0, 0, tzinfo=ZONE)),
        ("resets at 15:04", datetime(2026, 11, 16, 15, 5, tzinfo=ZONE)),
    ],
)
def test_a_time_of_day(text: str, when: datetime) -> None:
    assert retry_time(text, NOW) == when


@pytest.mark.parametrize(
    ("text", "pause"),
    [
        ("Please try again in 11.054s.", timedelta(seconds=11.054)),
        ("Please try again in 350ms.", timedelta(milliseconds=350)),
        ("Please try again in 1m30s.", timedelta(seconds=90)),
        ("Please try again in 6m0s.", timedelta(minutes=6)),
        ("Please try again in 1h2m3.5s.", timedelta(hours=1, minutes=2, seconds=3.5)),
        ("Try again in 3 days 2 hours 5 minutes.", timedelta(days=3, hours=2, minutes=5)),
        ("try again in 5 hours and 3 minutes", timedelta(hours=5, minutes=3)),
        ("Try again in 1 day, 2 hours", timedelta(days=1, hours=2)),
        ("Try again in less than a minute.", timedelta(minutes=1)),
        ("Try again in an hour.", timedelta(hours=1)),
        ("Used 5 in 7 files. Try again in 20 seconds", timedelta(seconds=20)),
    ],
)
def test_a_pause(text: str, pause: timedelta) -> None:
    assert retry_time(text, NOW) == NOW + pause


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Try again later.",
        "at 99:99 PM",
        "at Feb 30th, 2026 1:00 PM",
        "at Foo 3rd, 2026 1:00 PM",
        "in the evening",
        "in 999999999 weeks",
        "in 0s",
    ],
)
def test_no_time(text: str) -> None:
    assert retry_time(text, NOW) is None


@given(st.text(st.sampled_from("in at 0129:.PMAM sdhmw,"), max_size=60) | st.text())
def test_any_words_are_taken(text: str) -> None:
    assert isinstance(retry_time(text, NOW), datetime | None)
