"""What a run writes for people when it ends (RUN-1, RUN-9), and reading it: `errors.json`, its part of `report.md`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aiflow.domain.agents.choices import numbered
from aiflow.domain.lifecycle import RunEvent, RunState
from aiflow.domain.next_action import ActionKind
from aiflow.domain.reasons import reason_for, shown_way, way_on, way_to_mend
from aiflow.domain.runs.report import report_of
from aiflow.domain.runs.run import PUSH_FAILED
from aiflow.domain.runs.stopped import may_repeat, recommended
from aiflow.domain.untrusted.calls import HIDDEN_TEXT, counts_of
from aiflow.messages.commands import command_line
from aiflow.messages.details import said_again
from aiflow.messages.sizes import named_with_sizes
from aiflow.usecases.backlog.hidden_text import hidden_words
from aiflow.usecases.shapes.report_words import criteria_section, found_lines, found_section, roles_table, step_words
from aiflow.usecases.shapes.usage_words import use_of

if TYPE_CHECKING:
    from aiflow.domain.next_action import NextAction
    from aiflow.domain.runs.report import RunReport
    from aiflow.domain.runs.run import Run, RunError
    from aiflow.domain.runs.worktree import LargeFile
    from aiflow.messages import Message, Texts
    from aiflow.usecases.engine import Engine

ERRORS_VERSION = "1.0"
_ENDS = {RunEvent.NEEDS_INPUT, RunEvent.FAILED, RunEvent.REPORTED, RunEvent.REPLACED, RunEvent.SENT_BACK}


def read_report(engine: Engine, run: Run) -> tuple[RunReport, str | None]:
    """Return what a run did so far, and its `report.md`; None if it has none yet."""
    return report_of(run), engine.runs.report(run)


def errors_shape(run: Run, texts: Texts, error: RunError | None = None) -> dict[str, Any]:
    """Write `errors.json`: why a run stopped, where it was seen, and what to do (RUN-1)."""
    why = error or run.error
    assert why is not None, run.run_id
    row = reason_for(why.reason_code)
    way = (recommended(run) if error is None else None) or way_on(why.reason_code, why.cause)
    action = way_to_mend(why.reason_code, run.request_id, why.cause, way)
    message, words = message_of(run, why, texts), words_of(why, texts)
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
        "actions": [advice.typed for advice in message.actions],
        "evidence": asdict(why.evidence) | {"log_paths": list(why.evidence.log_paths)},
        "suggested_next": {
            "way_on": shown_way(way, run.request_id).value,
            "command": command_line(action) if action else None,
        },
    }


def words_of(why: RunError, texts: Texts) -> str:
    """Return what was seen: in the person's language where its facts are known, else as it was recorded."""
    return said_again(why.facts, texts) or why.summary


def message_of(run: Run, why: RunError, texts: Texts) -> Message:
    """Return what a person gets to read about a stop, without advice that would be refused at once (RUN-4, RUN-5)."""
    message = texts.message(why.reason_code, message_facts(run, why, texts))
    if run.state is not RunState.NEEDS_INPUT or why is not run.error or may_repeat(run):
        return message
    return message._replace(actions=tuple(each for each in message.actions if not any(map(_repeats, each.steps))))


def _repeats(step: NextAction) -> bool:
    return step.kind in (ActionKind.RESUME, ActionKind.RETRY_STEP) and not step.options


def message_facts(run: Run, why: RunError, texts: Texts) -> dict[str, object]:
    """Return what a reason's words may need to know."""
    words = words_of(why, texts)
    facts = dict(why.facts)
    # What was recorded as problem or detail is in English; where it can be reworded, it is.
    again = {name: words for name in ("problem", "detail") if facts.get(name) == why.summary}
    return {
        "request_id": run.request_id,
        "run_id": run.run_id,
        "step_id": why.evidence.step_id or "",
        "problem": words,
        "detail": words,
        "question": why.question or "",
        "command": why.evidence.command or "",
        "path": run.place.path,
        "branch": run.place.base_branch,
        "cause": why.cause or "",
        "setting": "limits",
        "endpoint": "queue.store",
        **facts,
        **again,
    }


def add_to_report(engine: Engine, run: Run, patch: str | None, left_out: tuple[LargeFile, ...] = ()) -> None:
    """Add one section for the end a run has just come to; the same end is never reported twice.

    `patch` has what the unfinished step changed, but for files that are too large (`left_out`).
    """
    number = sum(line.event in _ENDS for line in run.history)
    # A kill may come between the report and `stage.json`: the same end is not reported twice, another one is.
    mark = f"<!-- aiflow:end {number} {run.state} {run.error.reason_code if run.error else ''} -->".replace("  ", " ")
    before = engine.runs.report(run) or ""
    if mark not in before.splitlines():
        texts = engine.voice.texts
        add_lines(engine, run, [*_section(run, texts, mark, before), *_unfinished(run, texts, patch, left_out)])


def add_lines(engine: Engine, run: Run, lines: list[str]) -> None:
    """Add to a run's report, which begins with what the run is."""
    head = [] if engine.runs.report(run) else _head(run, engine.voice.texts)
    engine.runs.append_report(run, "\n".join([*head, *lines, ""]))


def _head(run: Run, texts: Texts) -> list[str]:
    lines = [f"# {run.request_id} {run.title}", "", f"- {texts('report.run')}: {run.run_id}"]
    lines.append(f"- {texts('report.branch', branch=run.place.branch, base=run.place.base_branch)}")
    if run.compare_url:
        lines.append(f"- {texts('report.compare')}: {run.compare_url}")
    if run.replaces:
        lines.append(f"- {texts('report.replaces')}: {run.replaces}")
    if run.continues:
        lines.append(f"- {texts('report.continues')}: {run.continues.run_id}")
    return [*lines, ""]


def _section(run: Run, texts: Texts, mark: str, before: str) -> list[str]:
    """Write what came of the run up to this end."""
    when = run.changed_at.isoformat(timespec="seconds")
    why = run.error
    resumed = [line for line in run.history if line.event.startswith("RESUMED")]
    how = f" ({resumed[-1].note} {resumed[-1].step_id or ''})".replace(" )", ")") if resumed else ""
    lines = [mark, f"## {when} {run.state}{f': {why.reason_code}' if why else ''}{how}", ""]
    if why is not None:
        lines += _why(run, why, texts)
    told = report_of(run)
    if told.steps:
        lines += _steps(told, texts)
    if used := use_of(run.usage, texts):
        lines += ["", texts("report.used", used=used)]
    lines += ["", *roles_table(told, texts)] if told.roles else []
    for code in run.warnings:
        if run.state is RunState.DONE or code == HIDDEN_TEXT:
            lines += ["", _warning(run, code, texts)]
    if why is None and (action := told.way_out.action):
        lines += ["", texts("report.next", command=command_line(action))]
    return [*lines, *_done(told, before, texts), *_found(told, before, texts), ""]


def _found(told: RunReport, before: str, texts: Texts) -> list[str]:
    """Name the follow-ups that the report does not name yet (REQ-10)."""
    lines = [line for line in found_lines(told.follow_ups, texts) if line not in before.splitlines()]
    return ["", *found_section(lines, texts)] if lines else []


def _done(told: RunReport, before: str, texts: Texts) -> list[str]:
    """Write what was done in each step; what the report says already, word for word, is not said again (RUN-9)."""
    parts = (*(step_words(step, texts) for step in told.steps), criteria_section(told, texts))
    return [line for words in parts if words and "\n".join(words) not in before for line in ("", *words[:-1])]


def _unfinished(run: Run, texts: Texts, patch: str | None, left_out: tuple[LargeFile, ...]) -> list[str]:
    """Say where the work of an unfinished step is."""
    lines = [texts("report.patch", path=patch), ""] if patch else []
    if left_out:
        lines += [texts("stop.left_out", files=named_with_sizes(left_out), path=run.place.path), ""]
    return lines


def _warning(run: Run, code: str, texts: Texts) -> str:
    hidden = hidden_words(counts_of(run), texts)
    message = texts.message(code, {"request_id": run.request_id, "branch": run.place.branch, "detail": hidden})
    said = run.push.note if code == PUSH_FAILED and run.push is not None else None
    summary = f"{message.summary} ({said})" if said else message.summary
    return texts("report.warning", code=code, title=message.title, summary=summary)


def _why(run: Run, why: RunError, texts: Texts) -> list[str]:
    message = message_of(run, why, texts)
    lines, words = [f"**{message.title}** {message.summary}", ""], words_of(why, texts)
    if words and words not in message.summary:
        lines += [f"> {line}" for line in words.splitlines()] + [""]
    if why.choices:
        lines += [*numbered(why.choices), ""]
    if why.cause:
        title = texts.message(why.cause, message_facts(run, why, texts)).title
        lines += [texts("report.cause", cause=why.cause, title=title), ""]
    return [*lines, *(f"- {advice.typed}" for advice in message.actions), ""]


def _steps(told: RunReport, texts: Texts) -> list[str]:
    columns = [texts(f"report.column.{name}") for name in ("step", "title", "state", "commit", "attempts")]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for step in told.steps:
        state = texts("report.done") if step.is_done else texts("report.open")
        no_commit = texts("report.no_changes") if step.is_done else ""
        commit = step.commit[:12] if step.commit else no_commit
        lines.append(f"| {step.step_id} | {step.title.replace('|', '/')} | {state} | {commit} | {step.attempts} |")
    return lines
