"""The API's shapes (SPEC §11, §13): domain values as plain data, the same for CLI, API and UI.

Plain data never depends on the reader's language or locale: its sentences are English, as in D59 §8.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.domain.request import InvalidRequest, Problem, ProblemKind
from aiflow.domain.run_summary import CUT_OFF
from aiflow.messages import Texts

if TYPE_CHECKING:
    from aiflow.domain.backlog.explanation import Station
    from aiflow.domain.backlog.forecast import Forecast
    from aiflow.domain.backlog.selection import Barrier, Exclusion, Selection
    from aiflow.domain.request import Request, Value
    from aiflow.domain.run_summary import RunSummary
    from aiflow.usecases.backlog.create import NewRequest
    from aiflow.usecases.backlog.list import RequestList
    from aiflow.usecases.backlog.show import BrokenRequest, ShownRequest

from aiflow.usecases.shapes.run_summary import run_shape, stamp

ENGLISH = Texts("en")


def next_request_result(selection: Selection) -> dict[str, Any]:
    """D59's `NextRequestResult`, to the letter (SEL-3)."""
    chosen = selection.next
    return {
        "next": None
        if chosen is None
        else {
            "request_id": chosen.id,
            "priority": chosen.priority,
            "status": chosen.status,
            "title": chosen.title,
            "path": chosen.where,
        },
        "stats": {"total": selection.total, "ready": selection.ready, "runnable": len(selection.runnable)},
        "excluded": [exclusion_shape(excluded) for excluded in selection.excluded],
    }


def exclusion_shape(excluded: Exclusion) -> dict[str, Any]:
    """One entry of `excluded`."""
    return {
        "request_id": excluded.request_id,
        "reason_code": excluded.barrier.reason_code,
        "detail": describe(excluded.barrier, ENGLISH, excluded.invalid),
    }


def describe(barrier: Barrier, texts: Texts, invalid: InvalidRequest | None = None) -> str:
    """Say in one sentence what a barrier is about."""
    if invalid is not None:
        return f"{invalid.where}: " + "; ".join(describe_problem(problem, texts) for problem in invalid.problems)
    facts = dict(barrier.facts)
    form = ".many" if ", " in facts.get("ids", "") else ".dead" if facts.get("is_dead") else ""
    form = ".cut_off" if facts.get("reason") == CUT_OFF else form
    if own := facts.get("form"):
        form = f".{own}{form}" if own == "elsewhere" else f".{own}"
    return texts(f"detail.{barrier.reason_code}{form}", **facts)


def describe_problem(problem: Problem, texts: Texts) -> str:
    """Say what is wrong with a file, and where."""
    facts = dict(problem.facts)
    if problem.kind is ProblemKind.BAD_YAML:
        facts["problem"] = _yaml_words(str(facts["problem"]), texts)
    words = texts(f"problem.{problem.kind.value}", **facts)
    return texts("problem.at_line", line=problem.line, problem=words) if problem.line else words


# What YAML says when it meets the usual mistakes, and our words for them; it has no Japanese, and its English is for
# those who write parsers.
_YAML_WORDS = {
    "mapping values are not allowed": "yaml.colon",
    "while scanning a quoted scalar": "yaml.quote",
    "while parsing a flow": "yaml.bracket",
    "cannot start any token": "yaml.sign",
    "found a tab character": "yaml.tab",
}


def _yaml_words(told: str, texts: Texts) -> str:
    return next((texts(key) for begin, key in _YAML_WORDS.items() if begin in told), told)


def request_list(found: RequestList) -> dict[str, Any]:
    """`list --json`: requests in selection order, then what could not be read."""
    backlog = found.backlog
    barriers = {excluded.where: excluded.barrier for excluded in found.selection.excluded}
    chosen = found.selection.next
    return {
        "requests": [
            {
                **request_shape(request, backlog.runs.get(request.id)),
                "is_next": chosen is not None and request.id == chosen.id,
                **_barrier_shape(barriers.get(request.where)),
            }
            for request in found.requests
        ],
        "invalid": [invalid_shape(broken) for broken in backlog.invalid],
    }


def _barrier_shape(barrier: Barrier | None) -> dict[str, Any]:
    if barrier is None:
        return {"reason_code": None, "detail": None}
    return {"reason_code": barrier.reason_code, "detail": describe(barrier, ENGLISH)}


def request_shape(request: Request, run: RunSummary | None) -> dict[str, Any]:
    """One request as data."""
    return {
        "request_id": request.id,
        "title": request.title,
        "status": request.status,
        "priority": request.priority,
        "depends_on": list(request.depends_on),
        "labels": list(request.labels),
        "created_at": stamp(request.created_at),
        "updated_at": stamp(request.updated_at),
        "found_in": request.found_in,
        "path": request.where,
        "latest_run": run_shape(run) if run is not None else None,
    }


def shown_shape(shown: ShownRequest | BrokenRequest) -> dict[str, Any]:
    """`show --json` of a request: with its runs, its text, and what of that no agent gets."""
    from aiflow.usecases.backlog.hidden_text import hidden_shape
    from aiflow.usecases.backlog.show import BrokenRequest

    if isinstance(shown, BrokenRequest):
        return {"request_id": shown.request_id, "invalid": [invalid_shape(file) for file in shown.files]}
    return {
        **request_shape(shown.request, shown.latest),
        "runs": [run_shape(run) for run in shown.runs],
        "body": shown.body,
        "hidden": hidden_shape(shown.request, shown.body),
    }


def created_shape(new: NewRequest, request_id: str, path: str) -> dict[str, Any]:
    """`new --json`: where the request is, and its state."""
    return {"request_id": request_id, "path": path, "status": new.status, "priority": new.priority}


def edited_shape(request_id: str, key: str, wanted: Value, changed: tuple[Value, Value] | None) -> dict[str, Any]:
    """`set --json`: what a key was and is; what was so already is not changed."""
    old = changed[0] if changed else wanted
    return {"request_id": request_id, "key": key, "changed": changed is not None, "from": old, "to": wanted}


def rewritten_shape(request_id: str, *, has_changed: bool) -> dict[str, Any]:
    """`edit --json`: whether the request is another one now."""
    return {"request_id": request_id, "changed": has_changed}


def invalid_shape(broken: InvalidRequest) -> dict[str, Any]:
    """One file that cannot be used, as data."""
    return {
        "request_id": broken.id,
        "path": broken.where,
        "reason_code": broken.reason_code,
        "problems": [
            {"line": p.line, "message": describe_problem(p._replace(line=None), ENGLISH)} for p in broken.problems
        ],
    }


def why_result(stations: tuple[Station, ...], warnings: tuple[Barrier, ...] = ()) -> dict[str, Any]:
    """`why --json`: the request itself, then everything it waits for, down to the roots."""
    first = stations[0]
    return {
        "request_id": first.request_id,
        "status": first.request.status if first.request else None,
        "is_runnable": first.request is not None and first.request.status == "ready" and not first.barriers,
        "stations": [station_shape(station) for station in stations],
        "warnings": [{"reason_code": each.reason_code, "detail": describe(each, ENGLISH)} for each in warnings],
    }


def station_shape(station: Station) -> dict[str, Any]:
    """One request on the way down, as data."""
    from aiflow.domain.next_action import NOT_TYPED
    from aiflow.messages.commands import command_line

    request, typed = station.request, [action for action in station.actions if action.kind not in NOT_TYPED]
    return {
        "request_id": station.request_id,
        "depth": station.depth,
        "waited_for_by": station.waited_for_by,
        "title": request.title if request else None,
        "status": request.status if request else None,
        "barriers": [
            {"reason_code": barrier.reason_code, "detail": describe(barrier, ENGLISH, invalid)}
            for barrier, invalid in station.explained
        ],
        "waits_for": list(station.waits_for),
        "latest_run": run_shape(station.run) if station.run else None,
        "commands": [command_line(action) for action in typed],
        "at_github": [command_line(action) for action in station.actions if action not in typed],
    }


def forecast_result(foreseen: Forecast) -> dict[str, Any]:
    """`forecast --json`: what runs now, what follows, what is never reached."""
    return {
        "running": [_planned(request) for request in foreseen.running],
        "order": [_planned(request) for request in foreseen.order],
        "never": [exclusion_shape(excluded) for excluded in foreseen.never],
    }


def _planned(request: Request) -> dict[str, Any]:
    return {
        "request_id": request.id,
        "priority": request.priority,
        "title": request.title,
        "depends_on": list(request.depends_on),
        "path": request.where,
    }
