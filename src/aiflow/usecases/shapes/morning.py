"""The morning as plain data (SPEC §11, §12), the same for the API and the page."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from aiflow.messages.commands import command_line
from aiflow.usecases.shapes.backlog import ENGLISH
from aiflow.usecases.shapes.run_summary import stamp
from aiflow.usecases.shapes.runs import finding_shape

if TYPE_CHECKING:
    from aiflow.domain.morning.days import DayTally, LastDays
    from aiflow.domain.morning.evening import EveningCheck, SetCeiling
    from aiflow.domain.morning.night import Bar, Gap, Night
    from aiflow.domain.morning.waiting import DiffStat, WaitingItem, WaitingList
    from aiflow.domain.next_action import NextAction


def night_shape(night: Night) -> dict[str, Any]:
    """The night on the clock: bars, gaps, full hours, and what it came to."""
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


def waiting_list_shape(waiting: WaitingList) -> dict[str, Any]:
    """What waits for a person: the first in full, and how many there are of each kind."""
    return {
        "waiting": [_waiting_shape(each) for each in waiting.items],
        "total": waiting.total,
        "more": waiting.more,
        "by_kind": {kind.value: count for kind, count in waiting.by_kind},
    }


def _waiting_shape(each: WaitingItem) -> dict[str, Any]:
    return {
        **each._asdict(),
        "kind": each.kind.value,
        "since": stamp(each.since),
        "where": each.where._asdict(),
        "excerpt": each.excerpt._asdict() if each.excerpt else None,
        "diff": _stat_shape(each.diff) if each.diff else None,
        "unblocks": each.unblocks._asdict(),
        "recommended": action_shape(each.recommended) if each.recommended else None,
        "others": [action_shape(way) for way in each.others],
    }


def _stat_shape(diff: DiffStat) -> dict[str, Any]:
    return {**diff._asdict(), "files": [asdict(file) for file in diff.files]}


def action_shape(action: NextAction) -> dict[str, Any]:
    """One thing that a person can do: what, about whom, how, and as it is typed."""
    return {
        "kind": action.kind.value,
        "request_id": action.request_id,
        "run_id": action.run_id,
        "options": dict(action.options),
        "command": command_line(action),
    }


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
