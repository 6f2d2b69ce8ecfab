"""What every reader takes from a `stage.json` (RUN-16), read in one place: no two commands say different things.

Only what has no readable state is damaged. What a newer aiflow wrote and this one cannot follow waits for a person.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import parse_instant
from aiflow.domain.run_summary import FROM_NEWER, STAGE_VERSION, made_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

_STATES = {state.value: state for state in RunState}
_STOPPED = (RunState.NEEDS_INPUT, RunState.FAILED)
_OVER = ("DONE", "FAILED")
_STEP_ID = re.compile(r"S(?!00)[0-9]{2}")
_MAJOR = re.compile(r"\d{1,9}")


class Head(NamedTuple):
    """Where a run stands, why, and since when."""

    state: RunState
    reason_code: str | None
    cause: str | None
    created_at: datetime | None
    changed_at: datetime | None


def is_stage_of(stage: object, request_id: str, run_id: str) -> bool:
    """Return whether a file's content says where this run stands: damaged is what does not, or names another run."""
    if not isinstance(stage, dict) or text_or_none(stage.get("state")) is None:
        return False
    named = text_or_none(stage.get("request_id")), text_or_none(stage.get("run_id"))
    return named[0] in (None, request_id) and named[1] in (None, run_id)


def read_head(stage: Mapping[str, Any], run_id: str) -> Head:
    """Read a stage's first fields; each has a default but the state."""
    told = stage.get("error")
    error = told if isinstance(told, dict) else {}
    history = _lines(stage)
    created_at = _instant(stage.get("created_at")) or next(_instants(history), None) or made_at(run_id)
    changed_at = next(_instants(history[::-1]), created_at)
    given, cause = text_or_none(error.get("reason_code")), text_or_none(error.get("cause"))
    if is_from_newer(stage):
        return Head(RunState.NEEDS_INPUT, FROM_NEWER, cause or given, created_at, changed_at)
    state = _STATES[stage["state"]]
    if state in _STOPPED and given is None:
        # The process that stopped it could not record why; its last line may show it.
        codes = (text_or_none(line.get("reason_code")) for line in history[::-1])
        given = next(filter(None, codes), "PROCESS_CRASHED")
    return Head(state, given, cause if given else None, created_at, changed_at)


def is_from_newer(stage: Mapping[str, Any]) -> bool:
    """Return whether only a newer aiflow knows how this run continues: by its state, its format or its steps."""
    if stage["state"] not in _STATES:
        return True
    return stage["state"] not in _OVER and (_is_newer(stage.get("version")) or not _has_known_steps(stage.get("steps")))


def text_or_none(value: object) -> str | None:
    """Return a text that says something, or None."""
    return value if isinstance(value, str) and value else None


def _is_newer(version: object) -> bool:
    major = _MAJOR.match(str(version))
    return major is not None and int(major[0]) > int(STAGE_VERSION.partition(".")[0])


def _has_known_steps(steps: object) -> bool:
    """Return whether a plan's steps are all ones that can be worked on; to leave one out would be to lose work."""
    if steps is None:
        return True
    if not isinstance(steps, list):
        return False
    ids = [step.get("id") if isinstance(step, dict) else None for step in steps]
    return all(isinstance(name, str) and _STEP_ID.fullmatch(name) for name in ids) and len(set(ids)) == len(ids)


def _lines(stage: Mapping[str, Any]) -> list[dict[str, Any]]:
    history = stage.get("history")
    return [line for line in history if isinstance(line, dict)] if isinstance(history, list) else []


def _instants(lines: list[dict[str, Any]]) -> Iterator[datetime]:
    return (at for line in lines if (at := _instant(line.get("at"))) is not None)


def _instant(value: object) -> datetime | None:
    return parse_instant(value) if isinstance(value, str) else None
