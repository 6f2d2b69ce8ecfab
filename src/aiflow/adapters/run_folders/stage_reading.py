"""Reading `stage.json` back (RUN-1, RUN-16): every field but the state has a default.

So a field that a later version adds needs nothing here but its line, and a file without it stays a run.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from aiflow.adapters.files.given_fields import GivenFields
from aiflow.adapters.run_folders.stage_head import is_from_newer, is_stage_of, read_head
from aiflow.adapters.run_folders.stage_record import read_follow_ups, read_record, read_roles, read_usage
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import Feedback
from aiflow.domain.agents.former import Continued, Former, FormerStep
from aiflow.domain.agents.plan import TEST_KINDS, PlanStep, is_usable_path, one_line, whole
from aiflow.domain.lifecycle import RunEvent, RunState
from aiflow.domain.request import parse_instant
from aiflow.domain.run_summary import FROM_NEWER, RunRecord, TaskRef, worked_seconds
from aiflow.domain.runs.course import Course
from aiflow.domain.runs.merge import Landing
from aiflow.domain.runs.quota import QuotaWait
from aiflow.domain.runs.retry import StepStop
from aiflow.domain.runs.run import Evidence, Happening, Run, RunError, Visit
from aiflow.domain.runs.run_limits import STEP_RETRIES
from aiflow.domain.runs.spending import spent_by_role
from aiflow.domain.runs.step_work import StepWork
from aiflow.domain.runs.worktree import Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.adapters.run_folders.stage_head import Head

Named = TypeVar("Named", bound=StrEnum)
_EPOCH = datetime.fromtimestamp(0, UTC)
_FINISHED = (RunEvent.STEP_DONE, RunEvent.LAST_STEP_DONE)


def run_of(stage: Mapping[str, Any], planning: Mapping[str, Any] | None = None) -> Run | None:
    """Read a run, or None if it does not say where it stands; one without steps may have them in its planning.json."""
    given = GivenFields(stage)
    request_id, run_id = given.text("request_id"), given.text("run_id")
    if not request_id or not run_id or not is_stage_of(stage, request_id, run_id):
        return None
    head, tree = read_head(stage, run_id), given.object("worktree")
    plan = _read_plan(given, planning)
    return Run(
        request_id=request_id,
        run_id=run_id,
        place=_read_place(given, run_id),
        created_at=head.created_at or _EPOCH,
        state=head.state,
        title=given.text("title"),
        agent=given.text("agent"),
        plan=plan,
        current_step_id=given.maybe("current_step_id"),
        planning_calls=given.object("attempts").count("planning"),
        planning_session=given.maybe("planning_session"),
        planning_retries=given.count("planning_retries"),
        step_retries=given.count("step_retries") if "step_retries" in stage else STEP_RETRIES,
        usage=read_usage(given.object("usage")),
        roles=read_roles(given),
        quota=_read_quota(given.object("quota"), head.changed_at or _EPOCH),
        steps=_read_steps(given, plan),
        visit=_read_visit(given.object("visit")),
        error=_read_error(given, head),
        history=_read_history(given, head.created_at or _EPOCH),
        answers=tuple((entry.text("question"), entry.text("answer")) for entry in given.objects("answers")),
        feedback=_read_feedback(given),
        warnings=given.texts("warnings"),
        course=_read_course(given.object("course")),
        follow_ups=read_follow_ups(given),
        base_tested=given.object("course").maybe("base_tested"),
        is_prepared=tree.flag("is_prepared"),
        left_tree=tree.named("left_tree"),
        has_edits=tree.flag("has_edits"),
        stopped_in=_known(RunState, given.maybe("stopped_in")),
        compare_url=given.maybe("compare_url"),
        **_read_links(given),
        lock=given.object("lock").raw,
        task=read_task(stage.get("task")),
    )


def _read_landing(landing: GivenFields) -> Landing | None:
    """Read how the work had come into the base branch; half of it is no use."""
    before, after, tip = (landing.named(name) for name in ("before", "after", "tip"))
    return Landing(before, after, tip, landing.named("undone_as")) if before and after and tip else None


def _read_course(course: GivenFields) -> Course:
    usual = asdict(Course())
    return Course(**{name: course.flag(name, default=value) for name, value in usual.items()})


def _read_links(given: GivenFields) -> dict[str, Any]:
    """Read what a run has to do with others: those before and after it, where it began, and where its work went."""
    return {
        "pull_url": given.maybe("pull_url"),
        "replaces": given.named("replaces"),
        "replaced_by": given.named("replaced_by"),
        "former": _read_former(given.object("former")),
        "continues": _read_continued(given.object("continues")),
        "continued_by": given.named("continued_by"),
        "begun_at": given.named("begun_at"),
        "is_dropped": given.flag("is_dropped"),
        "accepted_as": given.named("accepted_as"),
        "merging_as": given.named("merging_as"),
        "landing": _read_landing(given.object("landing")),
    }


def _read_continued(continued: GivenFields) -> Continued | None:
    """Return the run that is continued, if it is named with the commit to begin at."""
    run_id, commit = continued.named("run_id"), continued.named("commit")
    return Continued(run_id, commit) if run_id and commit else None


def _read_former(former: GivenFields) -> Former | None:
    run_id, base, tip = (former.named(name) or "" for name in ("run_id", "base", "tip"))
    if not run_id:
        return None
    steps = tuple(_read_former_step(step) for step in former.objects("steps"))
    return Former(run_id, former.text("reason_code"), base, tip, steps)


def _read_former_step(step: GivenFields) -> FormerStep:
    is_done, summary = step.flag("is_done"), whole(step.text("summary"))
    return FormerStep(step.text("id"), one_line(step.text("title")), is_done, summary, step.named("commit"))


def read_task(raw: object) -> TaskRef | None:
    """Return the task that a run names, if it names one in full."""
    task = GivenFields(raw)
    namespace, task_id = task.text("namespace"), task.text("task_id")
    return TaskRef(namespace, task_id) if namespace and task_id else None


def _known(kind: type[Named], name: str | None) -> Named | None:
    """Return a name that this version knows."""
    return kind(name) if name in tuple(kind) else None


def _read_place(given: GivenFields, run_id: str) -> Place:
    tree = given.object("worktree")
    branch, base_branch, base_commit = (given.named(name) or "" for name in ("branch", "base_branch", "base_commit"))
    return Place(run_id, tree.named("path") or "", branch, base_branch, base_commit, tree.texts("copied"))


def _read_plan(given: GivenFields, planning: Mapping[str, Any] | None) -> tuple[PlanStep, ...]:
    """Read the steps; those of a plan that only a newer aiflow can follow are not worked on."""
    told = given.raw if given.raw.get("steps") is not None else {"state": "INIT", **(planning or {})}
    if is_from_newer({"state": "INIT", "steps": told.get("steps")}):
        return ()
    return tuple(_read_step(step) for step in GivenFields(told).objects("steps"))


def _read_step(step: GivenFields) -> PlanStep:
    step_id = step.text("id")
    paths = tuple(whole(path) for path in step.object("targets").texts("paths") if is_usable_path(path))
    kinds = tuple(dict.fromkeys(kind for kind in step.texts("tests") if kind in TEST_KINDS))
    tests = None if not kinds and step.raw.get("tests") != [] else kinds
    return PlanStep(step_id, one_line(step.text("title")) or step_id, whole(step.text("instructions")), paths, tests)


def _read_steps(given: GivenFields, plan: tuple[PlanStep, ...]) -> dict[str, StepWork]:
    """Read what became of each step; one that does not say is done if it lies before the current one."""
    raw = {step.text("id"): step for step in given.objects("steps")}
    ids = [step.id for step in plan]
    current = given.text("current_step_id")
    done = {line.text("step_id") for line in given.objects("history") if line.text("event") in _FINISHED} - {current}
    done.update(ids[: ids.index(current)] if current in ids else ())
    done.update(ids if given.text("state") in (RunState.DONE, RunState.REPORTING) else ())
    counted = given.object("attempts").object("steps")
    steps = {}
    for step_id in ids:
        step = raw.get(step_id, GivenFields({}))
        is_done = step.text("state") == "done" if "state" in step.raw else step_id in done
        if step.flag("is_visited", default=is_done or step_id in counted.raw or step_id == current):
            steps[step_id] = _read_work(step, counted.counts(step_id), is_done=is_done)
    return steps


def _read_work(step: GivenFields, counted: Mapping[str, int], *, is_done: bool) -> StepWork:
    return StepWork(
        base=step.named("base"),
        commit=step.named("commit"),
        is_done=is_done,
        summary=step.text("summary"),
        retries=step.count("retries"),
        restarts=step.count("restarts" if "restarts" in step.raw else "retries"),
        calls=step.counts("calls") if "calls" in step.raw else counted,
        stops=tuple(_read_stop(stop) for stop in step.objects("stops")),
        tested_at=tuple(filter(None, map(parse_instant, step.texts("tested_at")))),
        kept=step.named("kept"),
        sessions=step.texts_by_name("sessions"),
        merges=step.named("merges"),
        conflicts=step.texts("conflicts"),
        unmarked=step.texts("unmarked"),
        record=read_record(step),
    )


def record_of(stage: dict[str, Any], run_id: str) -> RunRecord:
    """Read when a run began, how long it was worked on and what that used."""
    given, head = GivenFields(stage), read_head(stage, run_id)
    began = head.created_at or _EPOCH
    lines = ((line.at, line.event) for line in _read_history(given, began))
    used, seconds = read_usage(given.object("usage")), worked_seconds(began, lines)
    spent = (used.cost_usd, used.tokens, used.calls, used.seconds)
    is_accepted, pull_url = given.named("accepted_as") is not None, given.maybe("pull_url")
    roles = spent_by_role(read_roles(given))
    return RunRecord(head.created_at, seconds, *spent, is_accepted=is_accepted, pull_url=pull_url, roles=roles)


def _read_quota(quota: GivenFields, now: datetime) -> QuotaWait | None:
    if not quota.raw:
        return None
    since, tries = quota.instant("since", now), max(1, quota.count("tries"))
    return QuotaWait(since, quota.instant("until", since), tries, quota.text("detail"), quota.flag("is_over"))


def _read_stop(stop: GivenFields) -> StepStop:
    areas = frozenset(stop.texts("areas"))
    return StepStop(stop.text("reason_code"), stop.maybe("cause"), stop.count("changed_lines"), areas)


def _read_visit(visit: GivenFields) -> Visit:
    failures = visit.object("failures")
    return Visit(
        calls=visit.counts("calls"),
        failures={role: failures.texts(role) for role in failures.raw},
        feedback=_read_feedback(visit),
        calling=_known(Role, visit.maybe("calling")),
        crashes=visit.count("crashes"),
        is_tested=visit.flag("is_tested"),
        is_reviewed=visit.flag("is_reviewed"),
        changed_files=visit.count("changed_files"),
        changed_lines=visit.count("changed_lines"),
        areas=frozenset(visit.texts("areas")),
        summary=visit.text("summary"),
    )


def _read_feedback(given: GivenFields) -> tuple[Feedback, ...]:
    told = given.objects("feedback")
    return tuple(Feedback(one.text("reason_code"), one.text("summary"), one.text("detail")) for one in told)


def _read_error(given: GivenFields, head: Head) -> RunError | None:
    if head.reason_code is None:
        return None
    error = given.object("error")
    seen = error.object("evidence")
    return RunError(
        reason_code=head.reason_code,
        summary=given.text("state") if head.reason_code == FROM_NEWER else error.text("summary", given.text("error")),
        cause=head.cause,
        question=error.maybe("question"),
        choices=error.texts("choices"),
        facts=tuple(error.texts_by_name("facts").items()),
        output=error.text("output"),
        evidence=Evidence(
            failed_at_state=seen.text("failed_at_state"),
            step_id=seen.maybe("step_id"),
            command=seen.maybe("command"),
            exit_code=seen.number("exit_code"),
            stderr_snippet=seen.text("stderr_snippet"),
            log_paths=seen.texts("log_paths"),
        ),
    )


def _read_history(given: GivenFields, at: datetime) -> tuple[Happening, ...]:
    """Read every line, also one that says nothing here; one without its time has that of the line before."""
    lines = []
    for line in map(GivenFields, given.entries("history")):
        at = line.instant("at", at)
        rest = (line.maybe(name) for name in ("step_id", "reason_code", "note"))
        lines.append(Happening(at, line.text("event", "UNKNOWN"), *rest))
    return tuple(lines)
