"""Continue a stopped run (D34; RUN-5 to RUN-7, RUN-10): resume it, retry a step, or start a new run with a new plan."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aiflow.domain.agents.choices import picked
from aiflow.domain.details import Detail, detail
from aiflow.domain.lifecycle import RunEvent, RunState
from aiflow.domain.next_action import ActionKind, NextAction, shell
from aiflow.domain.request import RequestId
from aiflow.domain.runs.events import rebased
from aiflow.domain.runs.resume import Goal, GoOn, Refused, ResumeMode, StartAnew, decide_resume, over_the_limit
from aiflow.domain.runs.resume_events import delivered_again, resumed
from aiflow.domain.runs.stopped import as_stopped
from aiflow.domain.runs.worktree import retry_ref
from aiflow.errors import AiflowError, BadInputError, ConflictError, NotFoundError
from aiflow.messages.details import words
from aiflow.messages.sizes import named_with_sizes
from aiflow.usecases.health.check_health import require_health
from aiflow.usecases.runs.answer_issue import is_answered_there, retried_only, try_again
from aiflow.usecases.runs.baseline import taken_up
from aiflow.usecases.runs.claims import require_claim
from aiflow.usecases.runs.find import newest_run_id, require_request
from aiflow.usecases.runs.former import Before, what_was_learned
from aiflow.usecases.runs.locks import owned, reclaim_locks, require_free, take_lock
from aiflow.usecases.runs.recover import mark_crashed
from aiflow.usecases.runs.report import errors_shape
from aiflow.usecases.runs.start import start_new
from aiflow.usecases.runs.work import Work, failure_for, taking_up
from aiflow.usecases.runs.work_to_the_end import work_to_the_end

if TYPE_CHECKING:
    from aiflow.domain.request import Request
    from aiflow.domain.runs.run import Run
    from aiflow.ports import Lease
    from aiflow.usecases.engine import Engine


@dataclass(frozen=True, slots=True)
class ResumeWish:
    """What a person asked for (D34 §4.2), with an answer and whether to keep their own edits of the worktree.

    A delivery asks for nothing: it continues what an earlier delivery of its task left.
    """

    goal: Goal = field(default_factory=Goal)
    answer: str | None = None
    keeps_changes: bool = False
    is_delivery: bool = False


def resume_run(engine: Engine, run: Run, wish: ResumeWish) -> Run:
    """Continue a run to its end, or start the run that replaces it."""
    request_id = RequestId(run.request_id)
    if is_answered_there(run, wish.answer):
        return try_again(engine, run, wish.answer or "")
    reclaim_locks(engine)
    require_free(engine, request_id)
    if run.is_active:
        run = mark_crashed(engine, request_id) or run
    wish = _understood(run, wish)
    way = decide(engine, run, wish)
    try:
        facts = require_health(engine, request_id)
    except AiflowError as error:
        _explain(engine, run, error)
        raise
    if isinstance(way, GoOn):
        lease = take_lock(engine, request_id, run.run_id)
        return work_to_the_end(_go_on(engine, lease, run, way, wish))
    return start_new(engine, request_id, facts, lambda: _take_over(engine, run, wish))


def _take_over(engine: Engine, run: Run, wish: ResumeWish) -> tuple[Request, Before]:
    """Return what a new run takes over from the one it replaces, read again under the lock (RUN-6)."""
    old = _look_again(engine, run)
    answers = old.answers if wish.answer is None else (*old.answers, (_question(old), wish.answer))
    return engine.source.load(RequestId(run.request_id)), what_was_learned(engine, old, answers)


def _understood(run: Run, wish: ResumeWish) -> ResumeWish:
    """Replace the number or name of a choice by that choice."""
    choices = run.error.choices if run.error else ()
    return wish if wish.answer is None else replace(wish, answer=picked(wish.answer, choices))


def decide(engine: Engine, run: Run, wish: ResumeWish) -> GoOn | StartAnew:
    """Decide how a run continues, or refuse and name what is possible instead."""
    request_id = RequestId(run.request_id)
    if run.accepted_as:  # its request is done, too, and only a person may change that
        raise _refusal(run, Refused("RUN_NOT_RESUMABLE", detail("refused.accepted", run_id=run.run_id)), wish)
    require_request(engine, run)
    refusal = engine.source.may_go_on(request_id)
    if refusal is not None:
        raise retried_only(request_id, refusal)
    newest = newest_run_id(engine, request_id) or run.run_id
    newer = newest if newest > run.run_id else None
    stopped = as_stopped(run, newer)
    if wish.keeps_changes:  # after a person fixed it by hand, the counts of failures no longer apply
        stopped = replace(stopped, replan_signal=None, is_mended=True)
    way = decide_resume(stopped, wish.goal, engine.limits.step_retries)
    if isinstance(way, Refused):
        raise _refusal(run, way, wish)
    _require_answer(run, wish)
    return way


def _refusal(run: Run, way: Refused, wish: ResumeWish) -> AiflowError:
    """Return the error that says why not, with the commands that are possible instead."""
    commands = [NextAction(_KINDS[way.advice], run.request_id)] if way.advice else []
    is_advice = way.reason_code in ("REPLAN_REQUIRED", "RETRY_LIMIT_EXCEEDED")
    if is_advice or (run.state is RunState.FAILED and run.replaced_by is None):
        commands.append(_tried(run, wish).having(force=""))
    if run.state is RunState.DONE:
        accept = [] if run.accepted_as else [NextAction(ActionKind.ACCEPT, run.request_id)]
        commands = [*accept, NextAction(ActionKind.SHOW, run_id=run.run_id)]
    newer = dict(way.detail.facts).get("newer") if isinstance(way.detail, Detail) else None
    commands = [NextAction(ActionKind.SHOW, run_id=str(newer))] if newer else commands
    refuse = BadInputError if way.reason_code == "INPUT_INVALID" else ConflictError
    return refuse(
        reason_code=way.reason_code,
        request_id=run.request_id,
        run_id=run.run_id,
        detail=way.detail,
        advice=way.advice.value if way.advice else None,
        commands=commands,
    )


_KINDS = {
    ResumeMode.RESUME: ActionKind.RESUME,
    ResumeMode.RETRY_STEP: ActionKind.RETRY_STEP,
    ResumeMode.REPLAN: ActionKind.REPLAN,
}


def _tried(run: Run, wish: ResumeWish) -> NextAction:
    """Return the command that the person tried, without options that don't matter here."""
    action = NextAction(_KINDS[wish.goal.mode], run.request_id)
    return action.having(step_id=wish.goal.target_step_id) if wish.goal.target_step_id else action


def _require_answer(run: Run, wish: ResumeWish) -> None:
    """Refuse to resume a run with a question unless it is answered."""
    has_question = run.error is not None and run.error.question is not None
    if (
        has_question
        and wish.goal.mode is ResumeMode.RESUME
        and not wish.goal.is_forced
        and not (wish.answer or "").strip()
    ):
        raise ConflictError(
            reason_code="NEEDS_CLARIFICATION",
            request_id=run.request_id,
            run_id=run.run_id,
            question=_question(run),
            choices=list(run.error.choices) if run.error else [],
            detail=_question(run),
        )


def _question(run: Run) -> str:
    return run.error.question or "" if run.error else ""


def _explain(engine: Engine, run: Run, error: AiflowError) -> None:
    """Write to `errors.json` why a run does not continue; the run itself stays as it is (RUN-7)."""
    why = failure_for(run, error)
    engine.runs.write_errors(run, errors_shape(run, engine.voice.texts, why))


def _go_on(engine: Engine, lease: Lease, run: Run, way: GoOn, wish: ResumeWish) -> Work:
    """Start to work on a stopped run again, under its lock."""
    with taking_up(lease):
        work = Work(engine, lease, _look_again(engine, run))
        again, way = _settle_worktree(work, way, wish)
        _require_tries_left(work, way, wish)
        engine.control.clear(run.run_id)
        engine.runs.discard(RequestId(run.request_id))  # the draft of a new run that never began
        require_claim(engine, run.request_id, run.run_id)
        if run.agent != engine.agent_name:  # the settings, or a flag, name another one now
            engine.voice.warn(engine.voice.texts("run.other_agent", before=run.agent, now=engine.agent_name))
        again = replace(owned(engine, lease, taken_up(work, again)), agent=engine.agent_name)
        now = engine.time.now()
        work.save(delivered_again(again, way, now) if wish.is_delivery else resumed(again, way, wish.answer, now))
    return work


def _require_tries_left(work: Work, way: GoOn, wish: ResumeWish) -> None:
    """Refuse if a person should have fixed something by hand and changed nothing: it would fail again (RUN-4)."""
    limit = work.engine.limits.step_retries
    if not wish.goal.is_forced and (refusal := over_the_limit(as_stopped(work.run, None), way, limit)):
        raise _refusal(work.run, refusal, wish)


def _look_again(engine: Engine, run: Run) -> Run:
    """Read the run again under its lock: another process may have continued it meanwhile."""
    current = engine.runs.load(run.request_id, run.run_id)
    if current is None:
        raise NotFoundError(reason_code="RUN_NOT_FOUND", request_id=run.request_id, name=run.run_id)
    if current.history != run.history:
        detail = words("refused.went_on", run_id=run.run_id)
        raise ConflictError(
            reason_code="RUN_NOT_RESUMABLE", request_id=run.request_id, run_id=run.run_id, detail=detail
        )
    return current


def _settle_worktree(work: Work, way: GoOn, wish: ResumeWish) -> tuple[Run, GoOn]:
    """Make sure that the worktree is as the run left it, or as the person wants it (RUN-6, RUN-7)."""
    run, workspace = work.run, work.workspace
    if not workspace.is_intact(run.place):
        run = _without_worktree(work, replace(run, is_prepared=False), wish)
        if not way.is_from_start:
            return run, way
        workspace.prepare(run.place, run.tip)
        if run.work.kept:  # so that it stays reachable when the step starts again
            workspace.restore(run.place, run.step_base, run.work.kept)
        run = replace(run, left_tree=None)  # it is as we have just created it, without files too large to be kept
    step_id = way.step_id
    if not way.is_from_start or step_id is None:
        return _adopt(work, run, way, wish)
    keep_as = retry_ref(run.run_id, step_id, run.steps[step_id].restarts + 1)
    # Already kept for this very retry: a kill interrupted the reset, and what is there now is only half of it.
    if not workspace.is_ancestor(run.place, run.place.base_commit, keep_as):
        run, way = _adopt(work, run, way, wish)
    if gone := workspace.go_back(run.place, run.steps[step_id].base or run.start, keep_as):
        work.engine.voice.warn(work.engine.voice.texts("resume.large_gone", files=named_with_sizes(gone)))
    work.engine.runs.write_patch(run, step_id, None)
    return run, way


def _without_worktree(work: Work, run: Run, wish: ResumeWish) -> Run:
    """Continue without the run's old worktree; a person's commits on its branch since then count, the rest is kept."""
    tip = work.workspace.tip(run.place)
    if tip is None or tip == run.tip or _is_on_the_way(work, run, tip):
        return run
    moved = replace(_adopt_commits(work, run, tip, wish), left_tree=None)
    # Restored, the unfinished step would undo those commits: it stays reachable under its ref, and as a patch.
    step_id = run.current_step_id
    return replace(moved, steps={**moved.steps, step_id: replace(moved.work, kept=None)}) if step_id else moved


def _adopt(work: Work, run: Run, way: GoOn, wish: ResumeWish) -> tuple[Run, GoOn]:
    """Take over what a person did in the worktree since the stop, as far as they want that."""
    tip = work.workspace.tip(run.place)
    committed = tip if tip != run.tip and not _is_on_the_way(work, run, tip) else None
    if committed is not None:
        run = _adopt_commits(work, run, committed, wish)
    is_as_left = run.left_tree is None or _is_as_left(work, run.left_tree, committed)
    if not is_as_left and not wish.keeps_changes:
        _refuse_dirty(work, run, wish)
    if way.is_from_start:
        return run, way
    if committed is not None or not is_as_left:  # fixed by hand: the next try is no mere repetition (RUN-4)
        way = replace(way, is_again=False)
    return _adopt_edits(run, way) if not is_as_left else (run, way)


def _is_on_the_way(work: Work, run: Run, tip: str | None) -> bool:
    """Return whether the branch is where aiflow put it before merging the base in: that is the next thing to do."""
    if run.continues is not None and run.has_to_continue:
        return tip == run.continues.commit
    is_next = bool(run.work.merges) and not run.is_prepared
    return is_next and tip is not None and work.workspace.is_ancestor(run.place, tip, run.tip)


def _is_as_left(work: Work, left_tree: str, committed: str | None) -> bool:
    """Return whether the worktree differs from how the run left it at most in what a person committed (RUN-7)."""
    place, workspace = work.run.place, work.workspace
    now = workspace.snapshot(place)
    if now == left_tree or committed is None:
        return now == left_tree
    return not workspace.differing(place, left_tree, now) & workspace.differing(place, committed, now)


def _adopt_edits(run: Run, way: GoOn) -> tuple[Run, GoOn]:
    """Continue with a person's edits; if the implementer had finished and the person fixed the work, test it first."""
    edited = replace(run, left_tree=None, has_edits=True, visit=replace(run.visit, is_tested=False))
    is_mended = run.stopped_in is RunState.TESTING and way.event is RunEvent.RESUMED_AT_STEP
    return edited, replace(way, event=RunEvent.RESUMED_AT_TESTS) if is_mended else way


def _adopt_commits(work: Work, run: Run, tip: str, wish: ResumeWish) -> Run:
    """Keep a person's commits on the run's branch; a rewritten history only if they ask for it."""
    if not work.workspace.is_ancestor(run.place, run.tip, tip) and not wish.keeps_changes:
        _refuse_dirty(work, run, wish)
    return rebased(run, tip)


def _refuse_dirty(work: Work, run: Run, wish: ResumeWish) -> None:
    detail = f"{work.engine.voice.texts('resume.worktree_changed')} {run.place.path}"
    commands = (shell(f"git -C {run.place.path} status"), _tried(run, wish).having(keep_changes=""))
    error = ConflictError(
        reason_code="WORKTREE_DIRTY", request_id=run.request_id, run_id=run.run_id, detail=detail, commands=commands
    )
    _explain(work.engine, run, error)
    raise error
