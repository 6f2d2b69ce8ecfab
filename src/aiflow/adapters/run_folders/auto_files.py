"""The auto-run session of a checkout (AUT-4): `.aiflow/auto.json`, atomic, and checked whole when it is read back."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiflow.adapters.files.atomic_files import STATE_DIR, read_own, replace_file, state_dir, translated
from aiflow.adapters.files.checked_fields import amount, count, entries, flag, instant, mapping, maybe, text, words
from aiflow.adapters.run_folders.run_store import to_json
from aiflow.domain.agents.usage import Usage
from aiflow.domain.auto.session import AutoSession, Result, Started
from aiflow.domain.auto.stopping import Limits, StopRequest
from aiflow.domain.lifecycle import AutoRunState, RunOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "auto.json"
AUTO_VERSION = "1.0"
MAX_BYTES = 50_000_000
_COUNTS = tuple(each.name for each in fields(Limits) if each.name not in ("session_cost_usd", "until"))
MOST_SPENT = timedelta(days=36_500)  # no work took longer, and adding to it never overflows


class AutoFile:
    """The last session, on disk."""

    def __init__(self, root: Path | str) -> None:
        self._root = Path(root)
        self._path = self._root / STATE_DIR / NAME

    def load(self) -> AutoSession | None:
        """Return the last session, or None if there is none that can be read."""
        try:
            return _read(json.loads(read_own(self._path, MAX_BYTES)))
        except (OSError, KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
            return None

    def save(self, session: AutoSession) -> None:
        """Write the session down, atomically."""
        data = to_json(_shape(session)).encode("utf-8", "backslashreplace")
        with translated(self._path):
            replace_file(self._path, data, state_dir(self._root, "tmp"))


def _shape(session: AutoSession) -> dict[str, Any]:
    return {
        "version": AUTO_VERSION,
        "state": session.state.value,
        "reason_code": session.reason_code,
        "stop_request": session.stop_request.value,
        "began_at": session.began_at.isoformat() if session.began_at else None,
        "started_at": session.started_at.isoformat(),
        "changed_at": session.changed_at.isoformat() if session.changed_at else None,
        "spent_seconds": session.spent.total_seconds(),
        "runs": session.runs,
        "done": session.done,
        "needs_input_in_a_row": session.needs_input_in_a_row,
        "failed_in_a_row": session.failed_in_a_row,
        "usage": asdict(session.usage),
        "base_branch": session.base_branch,
        "began_clean": session.began_clean,
        "is_watching": session.is_watching,
        "is_delivered": session.is_delivered,
        "limits": _limits_shape(session.limits) if session.limits else None,
        "not_again": sorted(session.not_again),
        "current": asdict(session.current) if session.current else None,
        "results": [_row(result) for result in session.results],
    }


def _limits_shape(limits: Limits) -> dict[str, Any]:
    return asdict(limits) | {"until": limits.until.isoformat() if limits.until else None}


def _row(result: Result) -> dict[str, str | None]:
    """Write a result; by hand, for all of them are written at each run's end, and `asdict` copies deeply (AUT-2)."""
    return {
        "request_id": result.request_id,
        "run_id": result.run_id,
        "outcome": result.outcome.value,
        "reason_code": result.reason_code,
    }


def _read(shape: Mapping[str, Any]) -> AutoSession:
    """Read a session, or raise if anything in it is missing or not what it should be."""
    if text(shape["version"]).partition(".")[0] != AUTO_VERSION.partition(".")[0]:
        raise ValueError(shape["version"])
    began_at, changed_at, current = shape["began_at"], shape["changed_at"], shape["current"]
    spent = timedelta(seconds=amount(shape["spent_seconds"]))
    if spent > MOST_SPENT:
        raise ValueError(spent)
    return AutoSession(
        started_at=instant(shape["started_at"]),
        runs=count(shape["runs"]),
        done=count(shape["done"]),
        needs_input_in_a_row=count(shape["needs_input_in_a_row"]),
        failed_in_a_row=count(shape["failed_in_a_row"]),
        usage=_read_usage(shape["usage"]) if "usage" in shape else Usage(cost_usd=amount(shape["cost_usd"])),
        not_again=frozenset(map(text, entries(shape["not_again"]))),
        stop_request=StopRequest(shape["stop_request"]),
        state=AutoRunState(shape["state"]),
        reason_code=maybe(shape["reason_code"]),
        began_at=None if began_at is None else instant(began_at),
        changed_at=None if changed_at is None else instant(changed_at),
        spent=spent,
        current=None if current is None else Started(text(current["request_id"]), maybe(current["newest_before"])),
        results=tuple(_read_result(result) for result in entries(shape["results"])),
        # An older aiflow did not say.
        base_branch=words(shape.get("base_branch", "")),
        began_clean=flag(shape.get("began_clean", False)),
        limits=_read_limits(shape["limits"]) if shape.get("limits") is not None else None,
        is_watching=flag(shape.get("is_watching", False)),
        is_delivered=flag(shape.get("is_delivered", False)),
    )


def _read_limits(shape: object) -> Limits:
    """Read the limits that a session was begun with; one that another version did not know is none."""
    kept = mapping(shape)
    until = kept.get("until")
    counts = {name: count(kept[name]) for name in _COUNTS if name in kept}
    limits = Limits(until=None if until is None else instant(until), session_cost_usd=amount(kept["session_cost_usd"]))
    return replace(limits, **counts)  # type: ignore[arg-type]


def _read_result(result: Mapping[str, Any]) -> Result:
    outcome, reason_code = RunOutcome(result["outcome"]), maybe(result["reason_code"])
    return Result(text(result["request_id"]), maybe(result["run_id"]), outcome, reason_code)


def _read_usage(usage: object) -> Usage:
    """Read what agents used; a version that did not record it yet used nothing that counts."""
    used = mapping(usage)
    return Usage(
        *(count(used.get(name, 0)) for name in ("calls", "input_tokens", "cached_tokens", "output_tokens")),
        *(amount(used.get(name, 0)) for name in ("cost_usd", "seconds")),
    )
