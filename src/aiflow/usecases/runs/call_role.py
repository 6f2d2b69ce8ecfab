"""Call one role's agent (RUN-3, RUN-4, AGT-3): count it, launch it, read its answer, record what came of it."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.agents.answers import Implemented, Planned, Question, Reviewed, Role, Spoiled, read_answer
from aiflow.domain.agents.call import AgentCall, Feedback
from aiflow.domain.agents.choices import numbered
from aiflow.domain.agents.judging import named, verdict_on
from aiflow.domain.agents.programs import advice_facts
from aiflow.domain.runs.agent_events import quota_reached, replied
from aiflow.domain.runs.events import asked, attempt_failed, called, implemented, measured, planned, reviewed
from aiflow.domain.runs.next_move import budget_of, ceiling_reached
from aiflow.domain.runs.retry import NOT_THE_WORK
from aiflow.domain.runs.step_record import Review, judged
from aiflow.domain.untrusted.calls import withheld, without_hidden
from aiflow.errors import AiflowError
from aiflow.messages.details import recorded, words
from aiflow.messages.sizes import named_with_sizes
from aiflow.usecases.backlog.hidden_text import hidden_words
from aiflow.usecases.runs.diff import ends_of
from aiflow.usecases.runs.ending import end_run, record
from aiflow.usecases.runs.follow_ups import take_proposals
from aiflow.usecases.runs.known import diff_of_former, feedback_for, steps_done, tests_shown, whole_of
from aiflow.usecases.runs.obeyed import Obeyed, stop_for
from aiflow.usecases.runs.work import SECONDS_OVER
from aiflow.usecases.shapes.backlog import ENGLISH

if TYPE_CHECKING:
    from aiflow.domain.agents.call import AgentReply
    from aiflow.domain.details import Detail
    from aiflow.domain.runs.run import Run, RunError
    from aiflow.domain.runs.worktree import Changes
    from aiflow.ports import StepLog
    from aiflow.usecases.runs.work import Work


def call_role(work: Work, role: Role) -> None:
    """Call a role once; a call that was cancelled leaves the run to the loop."""
    dropped = work.workspace.tidy(work.run.place) if role is Role.IMPLEMENTER and _begins_step(work) else ()
    work.save(called(work.run, role))
    attempt = work.run.calls_of(role)
    log = work.open_log(f"{role} {work.run.current_step_id or ''} attempt {attempt}".replace("  ", " "))
    try:
        if dropped:
            log.say(f"[aiflow] put back what was changed outside a step: {', '.join(dropped)}")
        work.lease.allow(work.engine.agents.limit_seconds(role) + SECONDS_OVER)
        began, obeyed = work.engine.time.monotonic(), Obeyed(work)
        call = _clean_call(work, role, attempt, log)
        reply = work.engine.agents.call(call, log.write, work.should_stop)
        work.require_lock()
        work.run = replied(work.run, role, reply, work.engine.time.monotonic() - began)
        refused = obeyed.why_refused(log, reply.command)
        if reply.reason_code == "CANCELLED":
            return
        if refused is not None:
            stop_for(work, refused)
            return
        _take(work, call, reply, log)
    finally:
        log.close()


def _begins_step(work: Work) -> bool:
    """Return whether the planner, tests or a reviewer may have left something that is not this step's."""
    run = work.run
    is_first = run.calls_of(Role.IMPLEMENTER) == 0 and run.work.kept is None and not run.visit.crashes
    return is_first and not run.has_edits  # a person's edits that were adopted are this step's


def _clean_call(work: Work, role: Role, attempt: int, log: StepLog) -> AgentCall:
    """Make a call with nothing in it that a person would not see; what is kept back is reported and recorded."""
    call, kept = without_hidden(_call(work, role, attempt))
    for what, counts in (("hidden text", kept.written), ("invisible characters of output", kept.put_out)):
        if counts:
            log.say(f"[aiflow] {what} kept from the agent: {hidden_words(counts, ENGLISH)}")
    noticed = withheld(work.run, kept.written, work.engine.time.now())
    if noticed is not work.run:
        work.save(noticed)
    return call


def _call(work: Work, role: Role, attempt: int) -> AgentCall:
    run = work.run
    return AgentCall(
        role=role,
        brief=work.brief,
        run_id=run.run_id,
        cwd=run.place.path,
        step=run.current_step,
        plan=run.plan,
        attempt=attempt,
        feedback=feedback_for(run),
        answers=run.answers,
        session_id=run.session_of(role),
        budget=budget_of(run, work.engine.limits),
        tests=_tests_of(work),
        step_limits=(work.engine.limits.step_files, work.engine.limits.step_lines),
        changes=lambda: _changes(work),
        requests_dir=work.engine.settings.requests_dir,
        done=steps_done(run),
        summary=run.visit.summary,
        test_output=tests_shown(work),
        whole=whole_of(work),
        began=ends_of(run)[0],
        former=run.former,
        former_diff=(lambda: diff_of_former(work)) if run.former else None,
        continues=run.continues.run_id if run.continues else None,
        is_planned=run.is_planned,
    )


def _changes(work: Work) -> str:
    """Return the step's changes as a reviewer reads them; a process that did not collect them does so now."""
    if work.collected is None:
        work.collect()
    return work.workspace.diff(work.run.place, work.run.step_base)


def _tests_of(work: Work) -> dict[str, str]:
    """Return the test commands that run after the current step."""
    commands, step = work.engine.test_commands, work.run.current_step
    kinds = commands if step is None or step.tests is None else step.tests
    return {kind: commands[kind] for kind in kinds if kind in commands}


def _take(work: Work, call: AgentCall, reply: AgentReply, log: StepLog) -> None:
    """Record what a call gave."""
    role = call.role
    if not work.workspace.is_intact(work.run.place):
        unprepared(work)
        fail(work, role, _failure(work, "WORKTREE_LOST", words("stop.worktree_deleted"), log, reply))
        return
    if reply.reason_code is not None:
        _take_failure(work, role, reply, log)
        return
    answer = read_answer(role, reply.answer)
    if isinstance(answer, Spoiled):
        _measure_failed(work, role, answer.reason_code, log)
        fail(work, role, _failure(work, answer.reason_code, answer.detail, log, reply))
        return
    if not isinstance(answer, Planned):
        take_proposals(work, role, answer.proposals, log)
    if isinstance(answer, Question):
        _ask(work, role, answer, log, reply)
    elif isinstance(answer, Planned):
        run = planned(work.run, answer.steps, work.engine.time.now())
        work.engine.runs.write_planning(run)
        work.save(run)
    elif isinstance(answer, Implemented):
        _measure(work, answer, log, reply)
    else:
        _take_review(work, call, answer, (log, reply))


def _ask(work: Work, role: Role, asks: Question, log: StepLog, reply: AgentReply) -> None:
    """Stop with a question to a person, who may pick one of its choices (RUN-10)."""
    log.say("\n".join((f"question: {asks.question}", *numbered(asks.choices))))
    why = _failure(work, "NEEDS_CLARIFICATION", asks.question, log, reply)
    why = replace(why, question=asks.question, choices=asks.choices)
    end_run(work, asked(work.run, role, why, work.engine.time.now()))


def _take_failure(work: Work, role: Role, reply: AgentReply, log: StepLog) -> None:
    """Record a call that gave no answer: a quota is waited for, a ceiling stops the run, all else is an attempt."""
    code = reply.reason_code or ""
    if code == "NEEDS_CLARIFICATION":  # the program itself asks whether it may do something
        question = work.engine.voice.texts("run.may_agent", what=reply.detail)
        _ask(work, role, Question(question, reply.choices), log, reply)
        return
    why = _failure(work, code, reply.detail, log, reply)
    log.say(f"[aiflow] {code}: {work.engine.mask(reply.detail)}")
    if code == "AGENT_QUOTA":
        wait = (reply.retry_at, work.engine.quota_patience)
        record(work, quota_reached(work.run, role, why, wait, work.engine.time.now()))
        return
    if code in (limit_code(COST), limit_code("")):
        setting = (
            ceiling_reached(work.run, work.engine.limits)
            or f"limits.run{COST if code == limit_code(COST) else '_minutes'}"
        )
        why = replace(why, facts=(*why.facts, ("setting", setting)))
    else:
        why = replace(why, facts=(*why.facts, *advice_facts(work.engine.agents.program_of(role), code)))
    _measure_failed(work, role, code, log)
    fail(work, role, why)


def _measure_failed(work: Work, role: Role, code: str, log: StepLog) -> None:
    """Measure what an implementer's call left that failed: it counts for whether the plan must change (RUN-5)."""
    if role is Role.IMPLEMENTER and code not in NOT_THE_WORK:
        with contextlib.suppress(AiflowError):  # that the call failed is what counts
            _collect(work, log)


COST = "_cost_usd"


def limit_code(setting: str) -> str:
    """Return the reason code of a ceiling: money has a separate one."""
    return "COST_LIMIT_REACHED" if setting.endswith(COST) else "RUN_LIMIT_REACHED"


def _measure(work: Work, answer: Implemented, log: StepLog, reply: AgentReply) -> None:
    """Collect what the implementer changed; a step that is too large needs another plan (STEP_TOO_LARGE)."""
    changes = _collect(work, log)
    if refusal := _refusal(work, changes):
        fail(work, Role.IMPLEMENTER, _failure(work, *refusal, log, reply))
        return
    if marked := work.engine.merging.marked(work.run.place, work.run.work.conflicts):
        detail = words("stop.markers_left", files=", ".join(marked))
        fail(work, Role.IMPLEMENTER, _failure(work, "MERGE_CONFLICT", detail, log, reply))
        return
    limits = work.engine.limits
    files, lines = len(changes.files), changes.lines
    if files <= limits.step_files and lines <= limits.step_lines:
        work.save(implemented(work.run, changes, answer.summary, work.engine.time.now()))
        return
    counts = {"files": files, "most_files": limits.step_files, "lines": lines, "most_lines": limits.step_lines}
    detail = words("stop.too_large", **counts)
    fail(work, Role.IMPLEMENTER, _failure(work, "STEP_TOO_LARGE", detail, log, reply))


def _collect(work: Work, log: StepLog) -> Changes:
    """Collect what a step has changed so far, and know its size."""
    changes = work.collect()
    for note in _notes(changes):
        log.say(f"[aiflow] {note}")
    work.run = measured(work.run, changes)
    return changes


def _refusal(work: Work, changes: Changes) -> tuple[str, str] | None:
    """Say why a step cannot stand as it is: a large file, a changed submodule, or nothing but what was put back."""
    if changes.large:
        return "FILE_TOO_LARGE", too_large(work, changes)
    if changes.submodules:
        return "SUBMODULE_CHANGED", words("stop.submodule_changed", paths=", ".join(changes.submodules))
    if not changes.undone:
        return None
    told = words("stop.changes_refused", files=", ".join(changes.undone))
    if not changes.files:
        return "CHANGES_REFUSED", told
    # The rest stands; whoever is called next should know.
    work.run = replace(work.run, visit=work.run.visit.told(Feedback("CHANGES_REFUSED", recorded(told)[0])))
    return None


def too_large(work: Work, changes: Changes) -> str:
    """Name the files that are too large for a commit, and the limit."""
    limit = work.engine.settings.integer("limits.file_mb")
    return words("stop.file_too_large", files=named_with_sizes(changes.large), limit=limit)


def _notes(changes: Changes) -> tuple[str, ...]:
    undone = f"changes that no run may make were undone: {', '.join(changes.undone)}" if changes.undone else ""
    return (*changes.notes, undone) if undone else changes.notes


def _take_review(work: Work, call: AgentCall, answer: Reviewed, seen: tuple[StepLog, AgentReply]) -> None:
    """Take a verdict as it stands with what was said of the acceptance criteria (RUN-18)."""
    may_ask = not work.run.is_spent(Role.QA, work.engine.limits)
    told = verdict_on(answer, call.criteria, may_ask=may_ask)
    if told.unjudged:
        skipped = words("answer.unjudged", criteria=named(told.unjudged))
        work.run = judged(work.run, Review(is_passed=False, findings=(str(skipped),), criteria=told.criteria))
        seen[0].say(f"[aiflow] {skipped}")
        fail(work, Role.QA, _failure(work, "JSON_SCHEMA_INVALID", skipped, *seen))
        return
    work.run = judged(work.run, Review(told.is_passed, told.findings, told.criteria))
    if told.is_passed:
        work.save(reviewed(work.run))
        return
    findings = "; ".join(told.findings) or words("stop.no_findings")
    seen[0].say(f"rejected: {findings}")
    fail(work, Role.IMPLEMENTER, _failure(work, "QA_REJECTED", findings, *seen))


def _failure(work: Work, reason_code: str, summary: str | Detail, log: StepLog, reply: AgentReply) -> RunError:
    why = work.failure(reason_code, summary, log, reply.command)
    return replace(why, evidence=replace(why.evidence, exit_code=reply.exit_code))


def fail(work: Work, role: Role, why: RunError) -> None:
    """Record a failed attempt: the role is tried again, or the run ends."""
    record(work, attempt_failed(work.run, role, why, work.engine.limits, work.engine.time.now()))


def unprepared(work: Work) -> Run:
    """Remember that the worktree has to be created again before anything else."""
    work.run = replace(work.run, is_prepared=False)
    work.collected = None
    return work.run
