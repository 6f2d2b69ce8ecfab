"""How a run ends on disk (RUN-1, RUN-7, RUN-9): unfinished work kept, `errors.json`, the report, then `stage.json`.

`stage.json` comes last: a kill before it leaves an active run that is recovered, and every file here can be written
again without saying anything twice.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from aiflow.domain.choices import numbered
from aiflow.domain.lifecycle import RunEvent, RunState
from aiflow.domain.place import wip_ref
from aiflow.domain.reasons import mending_command, reason_for, way_on
from aiflow.domain.run import recommended
from aiflow.domain.run_events import left, reported
from aiflow.domain.withheld import HIDDEN_TEXT, counts_of
from aiflow.errors import AiflowError
from aiflow.usecases.hidden_text import hidden_words
from aiflow.usecases.use_told import use_of

if TYPE_CHECKING:
    from aiflow.domain.place import Unfinished
    from aiflow.domain.run import Run, RunError
    from aiflow.messages import Texts
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.run_work import Work

ERRORS_VERSION = "1.0"
_ENDS = {RunEvent.NEEDS_INPUT, RunEvent.FAILED, RunEvent.REPORTED, RunEvent.REPLACED, RunEvent.SENT_BACK}


def end_run(work: Work, ended: Run) -> None:
    """Write down a run that stops: what its step left, why it stopped, the report; the lock is given back later."""
    is_in_step = ended.stopped_in in (RunState.IMPLEMENTING, RunState.TESTING)
    unfinished = keep_unfinished(work, ended) if is_in_step else None
    run = left(ended, unfinished) if unfinished is not None else replace(ended, left_tree=_tree(work, ended))
    store, texts = work.engine.runs, work.engine.texts
    try:
        with work.lease.writing():
            step_id = run.current_step_id if unfinished is not None else None
            patch = store.write_patch(run, step_id, unfinished.patch) if unfinished and step_id else None
            store.write_errors(run, errors_shape(run, texts))
            add_to_report(work.engine, run, patch)
    except AiflowError as error:  # a full disk: that the run stopped is worth more than the words about it
        if error.reason_code == "LOCK_LOST":
            raise
    work.save(run)


def record(work: Work, run: Run) -> None:
    """Write down what came of something: the run goes on, or it ends."""
    if run.is_active:
        work.save(run)
    else:
        end_run(work, run)


def record_verdict(work: Work, run: Run) -> None:
    """Write down what was decided about a run that had ended, and why."""
    with work.lease.writing():
        work.engine.runs.write_errors(run, errors_shape(run, work.engine.texts))
        add_to_report(work.engine, run, None)
    work.save(run)


def finish_run(work: Work) -> None:
    """Write the report of a run whose last step is done; then it is DONE."""
    run = left(reported(work.run, work.engine.clock()), None)
    with work.lease.writing():
        add_to_report(work.engine, run, None)
        work.engine.runs.write_errors(run, None)
    work.save(run)


def keep_unfinished(work: Work, run: Run, trailers: dict[str, str] | None = None) -> Unfinished | None:
    """Keep what the current step changed under a ref; None if there is nothing, or a commit with these trailers has it.

    Trouble with git must not keep a run from ending, being taken over or cancelled: what comes next meets it too.
    """
    step_id = run.current_step_id
    if step_id is None or not run.is_prepared:
        return None
    try:
        if not work.workspace.is_intact(run.place):
            return None
        if trailers and work.workspace.find_commit(run.place, run.step_base, trailers) is not None:
            return None
        return work.workspace.keep_unfinished(run.place, run.step_base, wip_ref(run.run_id, step_id))
    except (AiflowError, OSError):
        return None


def _tree(work: Work, run: Run) -> str | None:
    """Return how the worktree is left at a stop outside a step: the next start sees whether a person changed it."""
    try:
        is_there = run.is_prepared and work.workspace.is_intact(run.place)
        return work.workspace.snapshot(run.place) if is_there else None
    except (AiflowError, OSError):
        return None


def errors_shape(run: Run, texts: Texts, error: RunError | None = None) -> dict[str, Any]:
    """Write `errors.json`: why a run stopped, where it was seen, and what to do (RUN-1)."""
    why = error or run.error
    assert why is not None, run.run_id
    row = reason_for(why.reason_code)
    way = (recommended(run) if error is None else None) or way_on(why.reason_code, why.cause)
    message, words = texts.message(why.reason_code, message_facts(run, why)), words_of(why, texts)
    return {
        "version": ERRORS_VERSION,
        "request_id": run.request_id,
        "run_id": run.run_id,
        "state": run.state.value,
        "category": row.category.value,
        "reason_code": why.reason_code,
        "cause": why.cause,
        "title": message.title,
        "message": "\n".join(filter(None, (message.summary, "" if words in message.summary else words))),
        "retryable": row.is_retryable,
        "actions": list(message.actions),
        "evidence": asdict(why.evidence) | {"log_paths": list(why.evidence.log_paths)},
        "suggested_next": {
            "way_on": way.value,
            "command": mending_command(why.reason_code, run.request_id, why.cause, way),
        },
    }


def words_of(why: RunError, texts: Texts) -> str:
    """Return what was seen: in the person's language where its facts are known, else as it was recorded."""
    return end_words(why.facts, texts) or why.summary


def end_words(facts: tuple[tuple[str, str], ...], texts: Texts) -> str:
    """Say how an agent's program ended, if its facts tell; empty if not."""
    told = f"agent_end.{dict(facts).get('told')}"
    return texts(told, **dict(facts)) if texts.has(told) else ""


def message_facts(run: Run, why: RunError) -> dict[str, object]:
    """Return what a reason's words may need to know."""
    return {
        "request_id": run.request_id,
        "run_id": run.run_id,
        "step_id": why.evidence.step_id or "",
        "problem": why.summary,
        "detail": why.summary,
        "question": why.question or "",
        "command": why.evidence.command or "",
        "path": run.place.path,
        "branch": run.place.base_branch,
        "cause": why.cause or "",
        "setting": "limits",
        "endpoint": "queue.store",
        **dict(why.facts),
    }


def add_to_report(engine: Engine, run: Run, patch: str | None) -> None:
    """Add one section for the end a run has just come to; the same end is never told twice."""
    number = sum(line.event in _ENDS for line in run.history)
    # A kill may come between the report and `stage.json`: the same end is not told twice, another one is.
    mark = f"<!-- aiflow:end {number} {run.state} {run.error.reason_code if run.error else ''} -->".replace("  ", " ")
    if mark not in (engine.runs.report(run) or "").splitlines():
        add_lines(engine, run, _section(run, engine.texts, mark, patch))


def add_lines(engine: Engine, run: Run, lines: list[str]) -> None:
    """Add to a run's report, which begins with what the run is."""
    head = [] if engine.runs.report(run) else _head(run, engine.texts)
    engine.runs.append_report(run, "\n".join([*head, *lines, ""]))


def _head(run: Run, texts: Texts) -> list[str]:
    lines = [f"# {run.request_id} {run.title}", "", f"- {texts('report.run')}: {run.run_id}"]
    lines.append(f"- {texts('report.branch', branch=run.place.branch, base=run.place.base_branch)}")
    if run.compare_url:
        lines.append(f"- {texts('report.compare')}: {run.compare_url}")
    if run.replaces:
        lines.append(f"- {texts('report.replaces')}: {run.replaces}")
    return [*lines, ""]


def _section(run: Run, texts: Texts, mark: str, patch: str | None) -> list[str]:
    """Write what came of the run up to this end."""
    when = run.changed_at.isoformat(timespec="seconds")
    why = run.error
    resumed = [line for line in run.history if line.event.startswith("RESUMED")]
    how = f" ({resumed[-1].note} {resumed[-1].step_id or ''})".replace(" )", ")") if resumed else ""
    lines = [mark, f"## {when} {run.state}{f': {why.reason_code}' if why else ''}{how}", ""]
    if why is not None:
        lines += _why(run, why, texts)
    if run.plan:
        lines += _steps(run, texts)
    if used := use_of(run.usage, texts):
        lines += ["", texts("report.used", used=used)]
    for code in run.warnings:
        if run.state is RunState.DONE or code == HIDDEN_TEXT:
            lines += ["", _warning(run, code, texts)]
    if patch:
        lines += ["", texts("report.patch", path=patch)]
    return [*lines, ""]


def _warning(run: Run, code: str, texts: Texts) -> str:
    hidden = hidden_words(counts_of(run), texts)
    message = texts.message(code, {"request_id": run.request_id, "branch": run.place.branch, "detail": hidden})
    return texts("report.warning", code=code, title=message.title, summary=message.summary)


def _why(run: Run, why: RunError, texts: Texts) -> list[str]:
    message = texts.message(why.reason_code, message_facts(run, why))
    lines, words = [f"**{message.title}** {message.summary}", ""], words_of(why, texts)
    if words and words not in message.summary:
        lines += [f"> {line}" for line in words.splitlines()] + [""]
    if why.choices:
        lines += [*numbered(why.choices), ""]
    if why.cause:
        lines += [
            texts("report.cause", cause=why.cause, title=texts.message(why.cause, message_facts(run, why)).title),
            "",
        ]
    return [*lines, *(f"- {action}" for action in message.actions), ""]


def _steps(run: Run, texts: Texts) -> list[str]:
    columns = [texts(f"report.column.{name}") for name in ("step", "title", "state", "commit", "attempts")]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for step in run.plan:
        work = run.steps.get(step.id)
        is_done = work is not None and work.is_done
        state = texts("report.done") if is_done else texts("report.open")
        no_commit = texts("report.no_changes") if is_done else ""
        commit = work.commit[:12] if work and work.commit else no_commit
        attempts = str(work.calls.get("implementer", 0)) if work else "0"
        lines.append(f"| {step.id} | {step.title.replace('|', '/')} | {state} | {commit} | {attempts} |")
    return lines
