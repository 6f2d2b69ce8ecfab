"""The morning as plain data (SPEC §11, §12), the same for the API and the page."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from aiflow.usecases.shapes.backlog import ENGLISH
from aiflow.usecases.shapes.run_summary import stamp
from aiflow.usecases.shapes.runs import finding_shape

if TYPE_CHECKING:
    from aiflow.domain.morning.days import DayTally, LastDays
    from aiflow.domain.morning.evening import EveningCheck, SetCeiling
    from aiflow.domain.morning.night import Bar, Gap, Night


def night_shape(night: Night) -> dict[str, Any]:
    """The night on the clock: bars, gaps, round times, and what it came to."""
    return {
        "since": stamp(night.since),
        "begin": stamp(night.begin),
        "end": stamp(night.end),
        "bars": [_timed(each) for each in night.bars],
        "gaps": [_timed(each) for each in night.gaps],
        "ticks": [{"at": stamp(tick.at), "place": tick.place} for tick in night.ticks],
        "numbers": night.numbers._asdict(),
        "left_out": night.left_out,
    }


def _timed(part: Bar | Gap) -> dict[str, Any]:
    return {**part._asdict(), "begin": stamp(part.begin), "end": stamp(part.end)}


def days_shape(last: LastDays) -> dict[str, Any]:
    """The last days, oldest first, and all of them together."""
    return {"days": [_day_shape(each) for each in last.days], "total": _day_shape(last.total)}


def _day_shape(each: DayTally) -> dict[str, Any]:
    return {**each._asdict(), "day": each.day.isoformat() if each.day else None}


def evening_shape(check: EveningCheck) -> dict[str, Any]:
    """What a person should know before auto-run starts."""
    return {
        "may_start": check.may_start,
        "is_running": check.is_on,
        "continues": check.continues,
        "upcoming": [{"request_id": each.request_id, "title": each.title} for each in check.upcoming],
        "total": check.total,
        "running": list(check.running),
        "cannot": [each._asdict() for each in check.cannot],
        "ceilings": [_ceiling_shape(each) for each in check.ceilings],
        "has_ceiling": check.has_ceiling,
        "health": check.health.value,
        "checks": [finding_shape(finding, ENGLISH) for finding in check.findings],
        "base_branch": check.base_branch,
    }


def _ceiling_shape(each: SetCeiling) -> dict[str, Any]:
    value = stamp(each.value) if isinstance(each.value, datetime) else each.value
    return {"name": each.name, "value": value, "source": each.source}
