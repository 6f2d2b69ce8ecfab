"""When a program says that its quota is there again (RUN-13): `try again at 3:05 PM`, `in 2 hours`, `in 11.5s`.

Pure: the same words at the same moment give the same time; words that name none give None.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

_AT = re.compile(
    r"\bat (?:(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?, (?P<year>\d{4}),? )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?: ?(?P<half>[AP]M))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_UNIT = r"(ms|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?)(?![a-z])"
_PART = re.compile(rf"(?:less than )?(\d{{1,9}}(?:\.\d{{1,9}})?|an?(?= )) ?{_UNIT}(?:,| and)? ?", re.IGNORECASE)
_IN = re.compile(r"\bin (?=\d|an? |less than )", re.IGNORECASE)
MAX_TEXT = 4_000


def retry_time(text: str, now: datetime) -> datetime | None:
    """Return the first time that a text says to try again at, in the zone of `now`."""
    text = text[:MAX_TEXT]
    at = _AT.search(text)
    found = _clock_time(at, now) if at else None
    return found or _after_pause(text, now)


def _clock_time(at: re.Match[str], now: datetime) -> datetime | None:
    hour = int(at["hour"])
    if at["half"]:
        hour = hour % 12 + (12 if at["half"].upper() == "PM" else 0)
    try:
        day = now if at["month"] is None else now.replace(year=int(at["year"]), month=_month(at), day=int(at["day"]))
        told = day.replace(hour=hour, minute=int(at["minute"]), second=0, microsecond=0)
        # Programs cut it to the minute, and name the day only if it is not today.
        return told + timedelta(minutes=1)
    except (ValueError, OverflowError):
        return None


def _month(at: re.Match[str]) -> int:
    return _MONTHS.index(at["month"].lower()) + 1


def _after_pause(text: str, now: datetime) -> datetime | None:
    seconds = next(filter(None, (_seconds_at(text, begins.end()) for begins in _IN.finditer(text))), 0.0)
    try:
        return now + timedelta(seconds=seconds) if seconds else None
    except OverflowError:
        return None


def _seconds_at(text: str, place: int) -> float:
    """Add up the parts of a pause that begins here: `1h2m`, `3 days, 2 hours and a minute`."""
    seconds = 0.0
    while part := _PART.match(text, place):
        number, unit = part[1], part[2].lower()
        seconds += (float(number) if number[0].isdigit() else 1.0) * _UNITS["ms" if unit == "ms" else unit[0]]
        place = part.end()
    return seconds
