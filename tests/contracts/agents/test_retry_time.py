"""When programs say that a quota is there again (RUN-13)."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.adapters.agents.call.retry_time import retry_time

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
        ("Try again at 8:01 AM.", datetime(2026, 11, 16, 8, 2, tzinfo=ZONE)),
        ("Try again at 12:00 PM.", datetime(2026, 11, 16, 12, 1, tzinfo=ZONE)),
        ("or try again at Nov 20th, 2026 12:01 AM.", datetime(2026, 11, 20, 0, 2, tzinfo=ZONE)),
        ("try again at Jan 1st, 2027 11:59 PM", datetime(2027, 1, 2, 0, 0, tzinfo=ZONE)),
        ("resets at 15:04", datetime(2026, 11, 16, 15, 5, tzinfo=ZONE)),
    ],
)
def test_a_time_of_day(text: str, when: datetime) -> None:
    assert retry_time(text, NOW) == when


@pytest.mark.spec("RUN-13")
@pytest.mark.parametrize(
    ("text", "when"),
    [
        # Claude's own words; it names a day only if it is another one, so a time that has passed is tomorrow's.
        ("You've hit your session limit · resets 4pm (Asia/Tokyo)", datetime(2026, 11, 16, 16, 1, tzinfo=ZONE)),
        ("5-hour limit reached ∙ resets 7am", datetime(2026, 11, 17, 7, 1, tzinfo=ZONE)),
        ("resets 12am (Europe/Berlin)", datetime(2026, 11, 17, 8, 1, tzinfo=ZONE)),
        ("resets 3:30pm (America/New_York)", datetime(2026, 11, 17, 5, 31, tzinfo=ZONE)),
        ("Your limit will reset at 9pm (America/Santiago).", datetime(2026, 11, 16, 9, 1, tzinfo=ZONE)),
        ("resets Nov 20, 2pm (Europe/Berlin)", datetime(2026, 11, 20, 22, 1, tzinfo=ZONE)),
        ("resets Jan 2 at 1am", datetime(2027, 1, 2, 1, 1, tzinfo=ZONE)),
        ("try again after it resets on November 20 at 08:00 UTC.", datetime(2026, 11, 20, 17, 1, tzinfo=ZONE)),
        ("resets 4pm (No/Such_Zone)", datetime(2026, 11, 16, 16, 1, tzinfo=ZONE)),
        # Other zones, whole dates, and what was only the message's own time.
        ("try again at 3:05 AM UTC", datetime(2026, 11, 16, 12, 6, tzinfo=ZONE)),
        ("Rate limit resets at 2026-11-16T03:00:00Z", datetime(2026, 11, 16, 12, 0, 1, tzinfo=ZONE)),
        ("retry after 2026-11-16 10:00:00.123 +0900", datetime(2026, 11, 16, 10, 0, 1, tzinfo=ZONE)),
        ("reset at 2026-11-16 10:00:00", datetime(2026, 11, 16, 10, 0, 1, tzinfo=ZONE)),
        ("2026-11-16T08:05:29 error at 08:05: try again in 2 hours", NOW + timedelta(hours=2)),
        ("try again at 2026-11-15T03:00:00Z", datetime(2026, 11, 15, 12, 0, 1, tzinfo=ZONE)),
    ],
)
def test_odd_forms_other_zones_and_moments_that_have_passed(text: str, when: datetime) -> None:
    if "(" in text and not available_timezones():
        pytest.skip("this machine knows no time zones")
    assert retry_time(text, NOW) == when


@pytest.mark.spec("RUN-13")
def test_a_time_of_day_of_tomorrow() -> None:
    evening = NOW.replace(hour=22)
    assert retry_time("try again at 2:00 AM", evening) == datetime(2026, 11, 17, 2, 1, tzinfo=ZONE)


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
        ("Your quota will reset after 2h39m10s.", timedelta(hours=2, minutes=39, seconds=10)),
        ("retry after 30 seconds", timedelta(seconds=30)),
        ("Retry-After: 30", timedelta(seconds=30)),
        ("{'retry-after': '12'}", timedelta(seconds=12)),
        ('"retryDelay": "39s"', timedelta(seconds=39)),
        ("Please wait 2 minutes and try again.", timedelta(minutes=2)),
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
        "at 2026-13-45T99:00:00Z",
        "await 3 calls",
    ],
)
def test_no_time(text: str) -> None:
    assert retry_time(text, NOW) is None


@given(st.text(st.sampled_from("in at 0129:.PMAM sdhmw,"), max_size=60) | st.text())
def test_any_words_are_taken(text: str) -> None:
    assert isinstance(retry_time(text, NOW), datetime | None)
