"""Reading `stage.json` back (RUN-1): every field is checked, so that a damaged file is never taken for a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.adapters.checked_fields import (
    amount,
    count,
    counts,
    entries,
    flag,
    instant,
    mapping,
    maybe,
    number,
    text,
    words,
)
from aiflow.domain.answers import Role
from aiflow.domain.lifecycle import RunState
from aiflow.domain.place import Place
from aiflow.domain.plan import PlanStep, read_plan
from aiflow.domain.quota import QuotaWait
from aiflow.domain.reasons import WayOn
from aiflow.domain.retry import StepStop
from aiflow.domain.run import STAGE_VERSION, Evidence, Feedback, Happening, Run, RunError, StepWork, Visit
from aiflow.domain.run_summary import TaskRef
from aiflow.domain.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_stage(stage: Mapping[str, Any]) -> Run:
    """Read a run, or raise if anything in it is missing or not what it should be."""
    if text(stage["version"]).partition(".")[0] != STAGE_VERSION.partition(".")[0]:
        raise ValueError(stage["version"])
    tree = stage["worktree"]
    place = Place(
        run_id=text(stage["run_id"]),
        path=text(tree["path"]),
        branch=text(stage["branch"]),
        base_branch=text(stage["base_branch"]),
        base_commit=text(stage["base_commit"]),
        copied=tuple(map(text, entries(tree["copied"]))),
    )
    steps = entries(stage["steps"])
    return _stands_somewhere(
        Run(
            request_id=text(stage["request_id"]),
            run_id=place.run_id,
            place=place,
            created_at=instant(stage["created_at"]),
            state=RunState(stage["state"]),
            title=words(stage["title"]),
            agent=words(stage["agent"]),
            plan=_read_plan(steps),
            current_step_id=maybe(stage["current_step_id"]),
            planning_session=maybe(stage.get("planning_session")),
            usage=read_usage(stage.get("usage", {})),
            quota=_read_quota(stage.get("quota")),
            planning_calls=count(stage["attempts"]["planning"]),
            steps={step["id"]: _read_work(step) for step in steps if flag(step["is_visited"])},
            visit=_read_visit(stage["visit"]),
            error=None if stage["error"] is None else _read_error(stage["error"]),
            history=tuple(_read_line(line) for line in entries(stage["history"])),
            answers=tuple((words(entry["question"]), words(entry["answer"])) for entry in entries(stage["answers"])),
            feedback=_read_feedback(stage["feedback"]),
            warnings=tuple(map(words, entries(stage["warnings"]))),
            is_prepared=flag(tree["is_prepared"]),
            left_tree=maybe(tree["left_tree"]),
            has_edits=flag(tree["has_edits"]),
            stopped_in=None if stage["stopped_in"] is None else RunState(stage["stopped_in"]),
            compare_url=maybe(stage["compare_url"]),
            replaces=maybe(stage["replaces"]),
            replaced_by=maybe(stage["replaced_by"]),
            # Fields that came with later versions may be missing, those of the first may not.
            accepted_as=maybe(stage.get("accepted_as")),
            lock=mapping(stage["lock"]),
            task=_read_task(stage.get("task")),
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
        base=maybe(step["base"]),
        commit=maybe(step["commit"]),
        is_done={"done": True, "pending": False}[step["state"]],
        summary=words(step["summary"]),
        retries=count(step["retries"]),
        calls=counts(step["calls"]),
        stops=tuple(_read_stop(stop) for stop in entries(step["stops"])),
        kept=maybe(step["kept"]),
        sessions={role: text(known) for role, known in mapping(step.get("sessions", {})).items()},
        merges=maybe(step.get("merges")),
        conflicts=tuple(map(text, entries(step.get("conflicts", [])))),
        unmarked=tuple(map(text, entries(step.get("unmarked", [])))),
    )


def read_usage(usage: object) -> Usage:
    """Read what agents used; a version that did not record it yet used nothing that counts."""
    used = mapping(usage)
    return Usage(
        *(count(used.get(name, 0)) for name in ("calls", "input_tokens", "cached_tokens", "output_tokens")),
        *(amount(used.get(name, 0)) for name in ("cost_usd", "seconds")),
    )


def _read_quota(quota: Mapping[str, Any] | None) -> QuotaWait | None:
    if quota is None:
        return None
    since, until = instant(quota["since"]), instant(quota["until"])
    return QuotaWait(since, until, count(quota["tries"]), words(quota["detail"]), flag(quota["is_over"]))


def _read_task(task: Mapping[str, Any] | None) -> TaskRef | None:
    return None if task is None else TaskRef(text(task["namespace"]), text(task["task_id"]))


def _read_stop(stop: Mapping[str, Any]) -> StepStop:
    areas = frozenset(map(words, entries(stop["areas"])))
    return StepStop(text(stop["reason_code"]), maybe(stop["cause"]), count(stop["changed_lines"]), areas)


def _read_visit(visit: Mapping[str, Any]) -> Visit:
    return Visit(
        calls=counts(visit["calls"]),
        failures={role: tuple(map(text, entries(codes))) for role, codes in mapping(visit["failures"]).items()},
        feedback=_read_feedback(visit["feedback"]),
        calling=None if visit["calling"] is None else Role(visit["calling"]),
        crashes=count(visit["crashes"]),
        is_tested=flag(visit["is_tested"]),
        is_reviewed=flag(visit["is_reviewed"]),
        changed_files=count(visit["changed_files"]),
        changed_lines=count(visit["changed_lines"]),
        areas=frozenset(map(words, entries(visit["areas"]))),
        summary=words(visit["summary"]),
    )


def _read_feedback(told: object) -> tuple[Feedback, ...]:
    return tuple(
        Feedback(text(one["reason_code"]), words(one["summary"]), words(one["detail"])) for one in entries(told)
    )


def _read_error(error: Mapping[str, Any]) -> RunError:
    seen = error["evidence"]
    WayOn(error["way_on"])  # worked out anew from the rest, but what says something else is no file of ours
    return RunError(
        reason_code=text(error["reason_code"]),
        summary=words(error["summary"]),
        cause=maybe(error["cause"]),
        question=maybe(error["question"]),
        choices=tuple(map(words, entries(error.get("choices", [])))),
        facts=tuple((name, words(fact)) for name, fact in mapping(error["facts"]).items()),
        evidence=Evidence(
            failed_at_state=words(seen["failed_at_state"]),
            step_id=maybe(seen["step_id"]),
            command=maybe(seen["command"]),
            exit_code=number(seen["exit_code"]),
            stderr_snippet=words(seen["stderr_snippet"]),
            log_paths=tuple(map(text, entries(seen["log_paths"]))),
        ),
    )


def _read_line(line: Mapping[str, Any]) -> Happening:
    rest = (maybe(line.get(name)) for name in ("step_id", "reason_code", "note"))
    return Happening(instant(line["at"]), text(line["event"]), *rest)
