"""The check before auto-run starts (WEB-1): what will run, what cannot and why, which ceilings are set, is all well."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from aiflow.domain.auto.session import Upcoming
from aiflow.domain.auto.stopping import Limits
from aiflow.domain.backlog.forecast import forecast
from aiflow.domain.morning.evening import EveningCheck, SetCeiling, group_by_reason
from aiflow.usecases.auto.standing import read_standing
from aiflow.usecases.auto.stop import working_auto
from aiflow.usecases.health.check_health import check_quick

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from aiflow.domain.backlog.selection import Backlog
    from aiflow.ports import AutoRecords
    from aiflow.settings import Settings
    from aiflow.usecases.engine import Engine

SHOWN = 10
FROM_CALL = "call"
_OF_RUN = ("limits.run_cost_usd", "limits.run_tokens", "limits.run_agent_calls", "limits.run_minutes")


def check_evening(
    engine: Engine,
    records: AutoRecords,
    given: Mapping[str, float | datetime] | None = None,
    backlog: Backlog | None = None,
    limit: int = SHOWN,
) -> EveningCheck:
    """Look ahead; `given` are fields of `Limits` for this one auto-run, `backlog` is one that was read already.

    Changes nothing.
    """
    known = backlog or read_standing(engine, records)
    is_accepted = engine.settings.text("accept") == "auto"
    foreseen = forecast(known, is_accepted=is_accepted)
    coming = (*(known.by_id[name] for name in known.continued), *foreseen.order)
    facts, findings = check_quick(engine)
    session, is_on = records.load(), working_auto(engine) is not None
    return EveningCheck(
        tuple(Upcoming(request.id, request.title) for request in coming[:limit]),
        len(coming),
        tuple(request.id for request in foreseen.running if request.id not in known.continued),
        group_by_reason(foreseen.never),
        tuple(_ceilings(engine.settings, given or {})),
        tuple(findings),
        (facts.base_branch if facts is not None else engine.find_base()) if is_accepted else None,
        is_on,
        session is not None and session.was_cut and not is_on,
    )


def _ceilings(settings: Settings, given: Mapping[str, float | datetime]) -> Iterator[SetCeiling]:
    """Yield every ceiling of the auto-run, and of each run in it."""
    for each in fields(Limits):
        name = _setting_of(each.name)
        if each.name in given:
            yield SetCeiling(name, given[each.name] or None, FROM_CALL)
        elif each.name == "until":
            yield SetCeiling(name, None, FROM_CALL)
        else:
            yield SetCeiling(name, settings.number(name) or None, settings.sources[name].value)
    for name in _OF_RUN:
        yield SetCeiling(name, settings.number(name) or None, settings.sources[name].value)


def _setting_of(field: str) -> str:
    """Return the setting for a field of `Limits`."""
    if field == "until":
        return field
    return f"limits.{field}" if field.startswith("session_") else f"auto.{field}"
