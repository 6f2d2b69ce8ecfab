"""The comments that people read on an issue (ISS-3, ISS-5, ISS-8, ISS-9): their words, and the mark that ends each.

Whatever an agent or a program wrote stands in a quote, so no line of it is a command or a mark.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aiflow.domain.issues.commands import CommandName
from aiflow.domain.issues.marks import CommentMark, MarkKind, write_mark
from aiflow.domain.issues.prose import quoted
from aiflow.domain.lifecycle import RunOutcome, RunState
from aiflow.usecases.runs.report import message_of, words_of
from aiflow.usecases.shapes.usage_words import use_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from aiflow.domain.issues.headers import RunHeader
    from aiflow.domain.issues.view import Post
    from aiflow.domain.runs.run import Run
    from aiflow.messages import Texts

# GitHub takes 65,536; the mark, and what a person may see of a run, must always have room.
MOST_CHARACTERS = 60_000
MOST_QUOTED = 4_000
_MOST_LOG_LINES = 200


def header_comment(header: RunHeader, texts: Texts) -> str:
    """Write a Run Header (FR-101)."""
    key = "issue.header.withdrawn" if header.withdrawn else "issue.header.words"
    facts = {name: str(fact) for name, fact in header._asdict().items()}
    return _marked([texts("issue.header.title", **facts), texts(key, **facts)], header.mark)


def progress_comment(run: Run, texts: Texts) -> str:
    """Write the one comment that shows how a run goes on; its first line says how it stands (ISS-9)."""
    lines = "\n".join(_log_lines(run))
    log = (
        f"<details><summary>{texts('issue.progress.log')}</summary>\n\n```json\n{lines}\n```\n\n</details>"
        if lines
        else ""
    )
    mark = CommentMark(MarkKind.PROGRESS, f"progress:{run.run_id}", {"run_id": run.run_id, "state": run.state.value})
    return _marked([_standing(run, texts), _steps(run, texts), log], mark)


def comment_of(post: Post, run: Run | None, texts: Texts) -> str:
    """Write the comment of a post; the run that it is about, where there is one here."""
    return _marked(_BODIES[post.kind](post.facts, run, texts), CommentMark(post.kind, post.key, post.facts))


def answer_comment(text: str, texts: Texts) -> str:
    """Write what a person answered on the page: their words, and the command that starts the next run."""
    return f"{texts('issue.answered')}\n\n/retry {text.strip()}"


def _marked(parts: Sequence[str], mark: CommentMark) -> str:
    body = "\n\n".join(filter(None, parts))
    if len(body) > MOST_CHARACTERS:
        body = body[:MOST_CHARACTERS].rsplit("\n", 1)[0] + "\n…"
    return f"{body}\n\n{write_mark(mark)}"


# --- how a run stands ------------------------------------------------------------------------------------------------


def _standing(run: Run, texts: Texts) -> str:
    step, index = run.current_step, run.current_index
    facts = {
        "run_id": run.run_id,
        "number": (index or 0) + 1,
        "of": len(run.plan),
        "step": step.title if step else "",
        "used": use_of(run.usage, texts) or "",
    }
    key = (
        run.state.value.lower()
        if run.is_active and (step or run.state is RunState.PLANNING)
        else run.outcome.value.lower()
    )
    return texts(f"issue.progress.{key}", **facts)


def _steps(run: Run, texts: Texts) -> str:
    if not run.plan:
        return ""
    columns = [texts(f"report.column.{name}") for name in ("step", "title", "state", "commit")]
    rows = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for step in run.plan:
        work = run.steps.get(step.id)
        is_now = run.is_active and step.id == run.current_step_id
        state = "done" if work and work.is_done else "now" if is_now else "open"
        commit = f"`{work.commit[:12]}`" if work and work.commit else ""
        rows.append(f"| {step.id} | {_cell(step.title)} | {texts(f'issue.step.{state}')} | {commit} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    """Write somebody's words into a table: one line, no other cell, nobody mentioned."""
    return quoted(" ".join(text.split()), 200).removeprefix("> ").replace("|", "\\|")


def _log_lines(run: Run) -> Iterator[str]:
    """Write each end of a step as a line of JSON (FR: structured log), the newest ones if there are too many."""
    for line in run.history[-_MOST_LOG_LINES:]:
        facts = {"at": line.at.isoformat(timespec="seconds"), "event": line.event, "step_id": line.step_id}
        facts["reason_code"] = line.reason_code
        yield json.dumps({"run_id": run.run_id, **{name: fact for name, fact in facts.items() if fact}})


# --- comments of their own -------------------------------------------------------------------------------------------


def _blocked(facts: Mapping[str, object], run: Run | None, texts: Texts) -> list[str]:
    """Say what failed, where, and what a person has to decide (FR-103)."""
    title = texts("issue.blocked.title" if facts.get("run_id") else "issue.blocked.not_started", **_told(facts))
    code = str(facts.get("reason_code") or "RUN_LOST")
    reason = f"`{facts['blocked_reason']}` · `{code}`" if facts.get("blocked_reason") else f"`{code}`"
    parts = [title, _section("what", _what(facts, run, texts), texts), _section("where", _where(run, texts), texts)]
    return [
        *parts,
        _section("decision", _decision(code, run, texts), texts),
        f"{texts('issue.blocked.reason')}: {reason}",
    ]


def _section(name: str, text: str, texts: Texts) -> str:
    return f"**{texts(f'issue.blocked.{name}')}**\n{text}" if text else ""


def _what(facts: Mapping[str, object], run: Run | None, texts: Texts) -> str:
    why = run.error if run is not None else None
    if run is None or why is None:
        message = texts.message(str(facts.get("reason_code") or "RUN_LOST"), _told(facts))
        return f"{message.title}. {message.summary}"
    message = message_of(run, why, texts)
    words = words_of(why, texts)
    said = [f"{message.title}. {message.summary}", "" if words in message.summary else quoted(words, MOST_QUOTED)]
    return "\n\n".join(filter(None, said))


def _where(run: Run | None, texts: Texts) -> str:
    why = run.error if run is not None else None
    if run is None or why is None:
        return ""
    seen = why.evidence
    lines = [
        texts("issue.blocked.step", step=f"{seen.step_id} {_cell(_title_of(run, seen.step_id))}")
        if seen.step_id
        else "",
        texts("issue.blocked.command", command=_cell(seen.command), code=str(seen.exit_code)) if seen.command else "",
        quoted(seen.stderr_snippet, MOST_QUOTED) if seen.stderr_snippet else "",
    ]
    return "\n\n".join(filter(None, lines))


def _title_of(run: Run, step_id: str) -> str:
    return next((step.title for step in run.plan if step.id == step_id), "")


def _decision(code: str, run: Run | None, texts: Texts) -> str:
    why = run.error if run is not None else None
    asked = [quoted(why.question)] if why and why.question else []
    choices = [f"> {number}. {_cell(choice)}" for number, choice in enumerate(why.choices if why else (), 1)]
    key = "limit" if code == "ISSUE_RETRY_LIMIT" else "question" if asked else "how"
    return "\n\n".join(filter(None, [*asked, "\n".join(choices), texts(f"issue.blocked.{key}")]))


def _result(facts: Mapping[str, object], run: Run | None, texts: Texts) -> list[str]:
    is_accepted = facts.get("ended") == RunOutcome.ACCEPTED.value
    title = texts("issue.result.accepted" if is_accepted else "issue.result.title", **_told(facts))
    if run is None:
        return [title]
    where = [texts("issue.result.branch", branch=run.place.branch, base=run.place.base_branch)]
    where += [texts("issue.result.compare", url=run.compare_url)] if run.compare_url else []
    used = use_of(run.usage, texts)
    where += [texts("report.used", used=used)] if used else []
    how = "" if is_accepted else texts("issue.result.how", request_id=run.request_id)
    return [title, "\n".join(f"- {line}" for line in where), _steps(run, texts), how]


def _refusal(facts: Mapping[str, object], _run: Run | None, texts: Texts) -> list[str]:
    code = str(facts.get("reason_code") or "")
    message = texts.message(code, _told(facts))
    return [texts("issue.refusal", title=message.title, summary=message.summary), f"`{code}`"]


def _reminder(facts: Mapping[str, object], run: Run | None, texts: Texts) -> list[str]:
    """Remind of a decision, with answers ready to copy (ISS-8)."""
    why = run.error if run is not None else None
    choices = [f"/retry {_cell(choice)}" for choice in (why.choices if why else ())] or [texts("issue.reminder.answer")]
    copied = "\n".join([*choices, "/cancel"])
    return [texts("issue.reminder.title", **_told(facts)), texts("issue.reminder.how"), f"```text\n{copied}\n```"]


def _note(facts: Mapping[str, object], run: Run | None, texts: Texts) -> list[str]:
    about = facts.get("about")
    if about == CommandName.HELP.value:
        return [texts("issue.help.title"), texts("issue.help.commands"), texts("issue.help.labels")]
    if about == CommandName.STATUS.value:
        told = texts("issue.status", **{**_told(facts), "status": texts(f"issue.state.{facts.get('status')}")})
        return [told, _standing(run, texts) if run is not None else "", _steps(run, texts) if run is not None else ""]
    return [texts("issue.waiting") if about == "waiting" else texts("issue.cancelled", **_told(facts))]


def _told(facts: Mapping[str, object]) -> dict[str, object]:
    usual = {"attempt": "?", "of": "?", "detail": "", "problem": "", "request_id": ""}
    return {**usual, **{name: fact for name, fact in facts.items() if fact is not None}}


_BODIES: Mapping[MarkKind, Callable[[Mapping[str, object], Run | None, Texts], list[str]]] = {
    MarkKind.BLOCKED: _blocked,
    MarkKind.RESULT: _result,
    MarkKind.REFUSAL: _refusal,
    MarkKind.REMINDER: _reminder,
    MarkKind.NOTE: _note,
}
