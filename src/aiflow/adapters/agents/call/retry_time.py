"""When a program says that its quota is there again (RUN-13): `at 3:05 PM`, `resets 4pm (Asia/Tokyo)`, `in 2 hours`.

Pure: the same words at the same moment give the same time; words that name none give None.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

MAX_TEXT = 4_000
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_UNIT = r"(ms|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?)(?![a-z])"

_DAY = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]* (?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
_CLOCK = re.compile(
    rf"\b(?P<word>at|resets?(?: (?:on|at))?) (?:{_DAY}(?:, (?P<year>\d{{4}}))?(?:,? at|,)? )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::\d{2})?(?: ?(?P<half>[ap]m)\b)?| ?(?P<whole>[ap]m)\b)"
    r"(?: (?P<utc>UTC|GMT)\b| \((?P<zone>[A-Za-z_]+(?:/[A-Za-z_+-]+){0,2})\))?",
    re.IGNORECASE,
)
_STAMP = re.compile(
    r"\b(?P<day>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d(?::\d\d)?)(?:\.\d+)?"
    r"(?P<zone> ?(?:Z|UTC|GMT)\b| ?[+-]\d\d:?\d\d)?"
)
_PART = re.compile(rf"(?:less than )?(\d{{1,9}}(?:\.\d{{1,9}})?|an?(?= )) ?{_UNIT}(?:,| and)? ?", re.IGNORECASE)
_PAUSE = re.compile(
    r"\b(?:(?:in|wait)|(?:retry|try again|resets?)[ -]after:?|retry[_-]?delay\W{1,4})\s?(?=\d|an? |less than )",
    re.IGNORECASE,
)
# A header, as programs hand it on: seconds without a unit.
_HEADER = re.compile(r"""\bretry[_-]after["']?\s?[:=]\s?["']?(\d{1,7})(?![\d.:-])(?! ?[a-z])""", re.IGNORECASE)
# Without a day, a time so long ago is tomorrow's; a shorter while ago it has only just come.
_LONG_AGO = timedelta(hours=12)
_JUST_NOW = timedelta(minutes=10)


def retry_time(text: str, now: datetime) -> datetime | None:
    """Return the first time that a text says to try again at; one without a zone is in the zone of `now`.

    A time to come goes before one that has passed: messages also name the time when they were written.
    """
    text = text[:MAX_TEXT]
    told = [*(_stamp_time(match, now) for match in _STAMP.finditer(text))]
    told += (_clock_time(match, now) for match in _CLOCK.finditer(text))
    told.append(_after_pause(text, now))
    known = [when.astimezone(now.tzinfo) for when in told if when is not None]
    return next((when for when in known if when > now), known[0] if known else None)


def _stamp_time(stamp: re.Match[str], now: datetime) -> datetime | None:
    """Read a date and time of ISO 8601; whatever it cuts off, the next second is safe."""
    zone = (stamp["zone"] or "").strip()
    offset = "+00:00" if zone.upper() in ("Z", "UTC", "GMT") else zone
    try:
        told = datetime.fromisoformat(f"{stamp['day']}T{stamp['time']}{offset}") + timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None
    return told if told.tzinfo else told.replace(tzinfo=now.tzinfo)


def _clock_time(at: re.Match[str], now: datetime) -> datetime | None:
    half = (at["half"] or at["whole"] or "").lower()
    hour = int(at["hour"]) % 12 + (12 if half == "pm" else 0) if half else int(at["hour"])
    try:
        here = now.astimezone(UTC if at["utc"] else _zone(at["zone"]) or now.tzinfo)
        told = here.replace(hour=hour, minute=int(at["minute"] or 0), second=0, microsecond=0)
        if at["month"]:
            return _on_the_day(told, at, here)
        # Programs cut it to the minute, and name the day only if it is another.
        told += timedelta(minutes=1)
        ago = _LONG_AGO if at["word"].lower() == "at" else _JUST_NOW
        return told + timedelta(days=1) if here - told > ago else told
    except (ValueError, OverflowError):
        return None


def _on_the_day(told: datetime, at: re.Match[str], here: datetime) -> datetime:
    """Move a time to the day that is named; without a year it is the next such day."""
    month, day = _MONTHS.index(at["month"].lower()) + 1, int(at["day"])
    year = int(at["year"]) if at["year"] else here.year + (month < here.month - 6)
    return told.replace(year=year, month=month, day=day) + timedelta(minutes=1)


def _zone(name: str | None) -> tzinfo | None:
    """Find a zone by its name; None if this machine knows no such zone."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _after_pause(text: str, now: datetime) -> datetime | None:
    seconds = next(filter(None, (_seconds_at(text, begins.end()) for begins in _PAUSE.finditer(text))), 0.0)
    if not seconds and (header := _HEADER.search(text)):
        seconds = float(header[1])
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
