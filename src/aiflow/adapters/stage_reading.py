"""Reading `stage.json` back (RUN-1): every field is checked, so that a damaged file is never taken for a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.domain.answers import Role
from aiflow.domain.lifecycle import RunState
from aiflow.domain.place import Place
from aiflow.domain.plan import PlanStep, read_plan
from aiflow.domain.reasons import WayOn
from aiflow.domain.request import parse_instant
from aiflow.domain.retry import StepStop
from aiflow.domain.run import STAGE_VERSION, Evidence, Feedback, Happening, Run, RunError, StepWork, Visit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


def read_stage(stage: Mapping[str, Any]) -> Run:
    """Read a run, or raise if anything in it is missing or not what it should be."""
    if _text(stage["version"]).partition(".")[0] != STAGE_VERSION.partition(".")[0]:
        raise ValueError(stage["version"])
    tree = stage["worktree"]
    place = Place(
        run_id=_text(stage["run_id"]),
        path=_text(tree["path"]),
        branch=_text(stage["branch"]),
        base_branch=_text(stage["base_branch"]),
        base_commit=_text(stage["base_commit"]),
        copied=tuple(map(_text, _list(tree["copied"]))),
    )
    steps = _list(stage["steps"])
    return _stands_somewhere(
        Run(
            request_id=_text(stage["request_id"]),
            run_id=place.run_id,
            place=place,
            created_at=_instant(stage["created_at"]),
            state=RunState(stage["state"]),
            title=_words(stage["title"]),
            agent=_words(stage["agent"]),
            plan=_read_plan(steps),
            current_step_id=_maybe(stage["current_step_id"]),
            planning_calls=_count(stage["attempts"]["planning"]),
            steps={step["id"]: _read_work(step) for step in steps if _flag(step["is_visited"])},
            visit=_read_visit(stage["visit"]),
            error=None if stage["error"] is None else _read_error(stage["error"]),
            history=tuple(_read_line(line) for line in _list(stage["history"])),
            answers=tuple((_words(entry["question"]), _words(entry["answer"])) for entry in _list(stage["answers"])),
            feedback=_read_feedback(stage["feedback"]),
            warnings=tuple(map(_words, _list(stage["warnings"]))),
            is_prepared=_flag(tree["is_prepared"]),
            left_tree=_maybe(tree["left_tree"]),
            has_edits=_flag(tree["has_edits"]),
            stopped_in=None if stage["stopped_in"] is None else RunState(stage["stopped_in"]),
            compare_url=_maybe(stage["compare_url"]),
            replaces=_maybe(stage["replaces"]),
            replaced_by=_maybe(stage["replaced_by"]),
            # Fields that came with later versions may be missing, those of the first may not.
            accepted_as=_maybe(stage.get("accepted_as")),
            lock=_mapping(stage["lock"]),
        )
    )


def _stands_somewhere(run: Run) -> Run:
    """Refuse a run that works in a step which its plan does not have, and one that stopped for no reason."""
    is_in_step = run.state in (RunState.IMPLEMENTING, RunState.TESTING)
    if run.current_step is None and (is_in_step or run.current_step_id is not None):
        raise ValueError(run.current_step_id)
    if run.error is None and run.state in (RunState.NEEDS_INPUT, RunState.FAILED):
        raise ValueError(run.state)
    return run


def _read_plan(steps: list[Any]) -> tuple[PlanStep, ...]:
    return read_plan({"steps": steps}) if steps else ()


def _read_work(step: Mapping[str, Any]) -> StepWork:
    return StepWork(
        base=_maybe(step["base"]),
        commit=_maybe(step["commit"]),
        is_done={"done": True, "pending": False}[step["state"]],
        summary=_words(step["summary"]),
        retries=_count(step["retries"]),
        calls=_counts(step["calls"]),
        stops=tuple(_read_stop(stop) for stop in _list(step["stops"])),
        kept=_maybe(step["kept"]),
        merges=_maybe(step.get("merges")),
        conflicts=tuple(map(_text, _list(step.get("conflicts", [])))),
    )


def _read_stop(stop: Mapping[str, Any]) -> StepStop:
    areas = frozenset(map(_words, _list(stop["areas"])))
    return StepStop(_text(stop["reason_code"]), _maybe(stop["cause"]), _count(stop["changed_lines"]), areas)


def _read_visit(visit: Mapping[str, Any]) -> Visit:
    return Visit(
        calls=_counts(visit["calls"]),
        failures={role: tuple(map(_text, _list(codes))) for role, codes in _mapping(visit["failures"]).items()},
        feedback=_read_feedback(visit["feedback"]),
        calling=None if visit["calling"] is None else Role(visit["calling"]),
        crashes=_count(visit["crashes"]),
        is_tested=_flag(visit["is_tested"]),
        is_reviewed=_flag(visit["is_reviewed"]),
        changed_files=_count(visit["changed_files"]),
        changed_lines=_count(visit["changed_lines"]),
        areas=frozenset(map(_words, _list(visit["areas"]))),
        summary=_words(visit["summary"]),
    )


def _read_feedback(told: object) -> tuple[Feedback, ...]:
    return tuple(
        Feedback(_text(one["reason_code"]), _words(one["summary"]), _words(one["detail"])) for one in _list(told)
    )


def _read_error(error: Mapping[str, Any]) -> RunError:
    seen = error["evidence"]
    WayOn(error["way_on"])  # worked out anew from the rest, but what says something else is no file of ours
    return RunError(
        reason_code=_text(error["reason_code"]),
        summary=_words(error["summary"]),
        cause=_maybe(error["cause"]),
        question=_maybe(error["question"]),
        facts=tuple((name, _words(fact)) for name, fact in _mapping(error["facts"]).items()),
        evidence=Evidence(
            failed_at_state=_words(seen["failed_at_state"]),
            step_id=_maybe(seen["step_id"]),
            command=_maybe(seen["command"]),
            exit_code=_number(seen["exit_code"]),
            stderr_snippet=_words(seen["stderr_snippet"]),
            log_paths=tuple(map(_text, _list(seen["log_paths"]))),
        ),
    )


def _read_line(line: Mapping[str, Any]) -> Happening:
    rest = (_maybe(line.get(name)) for name in ("step_id", "reason_code", "note"))
    return Happening(_instant(line["at"]), _text(line["event"]), *rest)


def _text(value: object) -> str:
    if not value:
        raise TypeError(value)
    return _words(value)


def _words(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _maybe(value: object) -> str | None:
    return None if value is None else _words(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _number(value: object) -> int | None:
    if value is not None and type(value) is not int:
        raise TypeError(value)
    return value


def _count(value: object) -> int:
    number = _number(value)
    if number is None or number < 0:  # a count below zero would be a limit without an end
        raise ValueError(value)
    return number


def _counts(value: object) -> dict[str, int]:
    return {name: _count(count) for name, count in _mapping(value).items()}


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(value)
    return value


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


def _instant(value: object) -> datetime:
    moment = parse_instant(_words(value))
    if moment is None:
        raise ValueError(value)
    return moment
