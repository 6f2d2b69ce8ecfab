"""The API's shapes (SPEC §11, §13): domain values as plain data, the same for CLI, API and UI.

Plain data never depends on the reader's language or locale: its sentences are English, as in D59 §8.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.domain.request import InvalidRequest, Problem, ProblemKind, Request
from aiflow.domain.selection import Backlog, Barrier, Exclusion, Selection, queue_order
from aiflow.domain.store_obstacles import Obstacles
from aiflow.messages import Texts
from aiflow.usecases.store_shapes import describe_obstacles

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from aiflow.domain.explanation import Station
    from aiflow.domain.forecast import Forecast
    from aiflow.domain.run_summary import RunSummary
    from aiflow.errors import AiflowError

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
            "path": chosen.path,
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
        return f"{invalid.path}: " + "; ".join(describe_problem(problem, texts) for problem in invalid.problems)
    facts = dict(barrier.facts)
    is_many = ", " in facts.get("ids", "")
    return texts(f"detail.{barrier.reason_code}{'.many' if is_many else ''}", **facts)


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


def request_list(backlog: Backlog, selection: Selection, kept: list[Request]) -> dict[str, Any]:
    """`list --json`: requests in selection order, then what could not be read."""
    barriers = {excluded.path: excluded.barrier for excluded in selection.excluded}
    chosen = selection.next
    return {
        "requests": [
            {
                **request_shape(request, backlog.runs.get(request.id)),
                "is_next": chosen is not None and request.id == chosen.id,
                **_barrier_shape(barriers.get(request.path)),
            }
            for request in kept
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
        "created_at": _stamp(request.created_at),
        "updated_at": _stamp(request.updated_at),
        "path": request.path,
        "latest_run": run_shape(run) if run is not None else None,
    }


def invalid_shape(broken: InvalidRequest) -> dict[str, Any]:
    """One file that cannot be used, as data."""
    return {
        "request_id": broken.id,
        "path": broken.path,
        "reason_code": broken.reason_code,
        "problems": [
            {"line": p.line, "message": describe_problem(p._replace(line=None), ENGLISH)} for p in broken.problems
        ],
    }


def run_shape(run: RunSummary) -> dict[str, Any]:
    """One run, summed up, as data."""
    return {
        "run_id": run.run_id,
        "state": run.state,
        "reason_code": run.reason_code,
        "cause": run.cause,
        "changed_at": _stamp(run.changed_at),
        "task": run.task._asdict() if run.task else None,
    }


def _stamp(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None


def why_result(stations: tuple[Station, ...]) -> dict[str, Any]:
    """`why --json`: the request itself, then everything it waits for, down to the roots."""
    first = stations[0]
    return {
        "request_id": first.request_id,
        "status": first.request.status if first.request else None,
        "is_runnable": first.request is not None and first.request.status == "ready" and not first.barriers,
        "stations": [station_shape(station) for station in stations],
    }


def station_shape(station: Station) -> dict[str, Any]:
    """One request on the way down, as data."""
    request = station.request
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
        "commands": list(station.commands),
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
        "path": request.path,
    }


def error_shape(error: AiflowError, texts: Texts) -> dict[str, Any]:
    """An error as the API answers it (ERR-2, D39 §4)."""
    from aiflow.domain.reasons import reason_for

    facts = error_facts(error, texts)
    message = texts.message(error.reason_code, facts)
    return {
        "error": {
            "category": reason_for(error.reason_code).category,
            "reason_code": error.reason_code,
            "message": message.title,
            "detail": message.summary,
            "context": {name: _in_english(value) for name, value in error.context.items()},
            "actions": list(actions_of(error, message.actions)),
        }
    }


def _in_english(value: object) -> object:
    """Return a fact as programs read it, the same in every language."""
    if isinstance(value, Problem):
        return describe_problem(value, ENGLISH)
    return describe_obstacles(value, ENGLISH) if isinstance(value, Obstacles) else value


def actions_of(error: AiflowError, general: tuple[str, ...]) -> tuple[str, ...]:
    """Return what to do: what the error itself knows to be right here, else the reason's general advice."""
    known = error.context.get("commands")
    if isinstance(known, (list, tuple)) and known:
        return tuple(map(str, known))
    typed = error.context.get("typed")  # what was tried was no resume: it is what is to be tried again
    return tuple(action.replace("aiflow resume", f"aiflow {typed}") for action in general) if typed else general


def error_facts(error: AiflowError, texts: Texts) -> dict[str, object]:
    """Return an error's facts with everything put into words that needs it."""
    facts: dict[str, object] = dict(error.context)
    problem = facts.get("problem")
    if isinstance(problem, Problem):
        facts["problem"] = facts["detail"] = describe_problem(problem, texts)
    elif isinstance(problem, Obstacles):
        facts |= {**problem.facts, "problem": describe_obstacles(problem, texts)}
    mistakes = facts.get("problems")
    if isinstance(mistakes, list):
        facts["detail"] = "\n".join(_mistake(mistake, texts) for mistake in mistakes)
    return facts


def _mistake(mistake: Mapping[str, object], texts: Texts) -> str:
    """Write one mistake in the settings: file, line, key, what is wrong."""
    place = ":".join(str(part) for part in (mistake["file"], mistake["line"]) if part)
    suffix = ".suggest" if mistake.get("suggestion") else ""
    facts = {**mistake, "wanted": texts(f"kind.{mistake['wanted']}")} if "wanted" in mistake else mistake
    words = texts(f"settings_mistake.{mistake['kind']}{suffix}", **facts)
    return f"{place}: {mistake['key']}: {words}" if mistake["key"] else f"{place}: {words}"


def in_queue_order(backlog: Backlog) -> list[Request]:
    """Return every valid request in selection order."""
    return sorted(backlog.requests, key=queue_order)
