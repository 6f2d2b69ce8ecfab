"""The comments that people read on an issue (ISS-3, ISS-5, ISS-8, ISS-9): their words, and the mark that ends each.

Whatever an agent or a program wrote is in a quote, so no line of it is a command or a mark.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aiflow.domain.issues.commands import CommandName, without_commands
from aiflow.domain.issues.marks import CommentMark, MarkKind, without_marks, write_mark
from aiflow.domain.issues.prose import quoted
from aiflow.domain.lifecycle import RunOutcome, RunState
from aiflow.domain.runs.run import PUSH_FAILED
from aiflow.usecases.runs.report import message_of, words_of
from aiflow.usecases.shapes.report_words import Quoting, found_lines, found_section, report_words
from aiflow.usecases.shapes.usage_words import use_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from aiflow.domain.issues.headers import RunHeader
    from aiflow.domain.issues.view import Post
    from aiflow.domain.runs.run import Run
    from aiflow.messages import Texts

# GitHub takes 65,536; the mark, and what a person may see of a run, must always have room.
MOST_CHARACTERS = 60_000
MOST_QUOTED = 4_000
MOST_STEPS, MOST_LOGGED, MOST_DONE = 28_000, 28_000, 20_000
# What is not folded: longer words are folded.
MOST_SHOWN = 600
MOST_STEPS_SHOWN = 8
_MOST_LOG_LINES = 200


def header_comment(header: RunHeader, texts: Texts) -> str:
    """Write a Run Header (FR-101)."""
    key = "issue.header.withdrawn" if header.withdrawn else "issue.header.words"
    facts = {name: str(fact) for name, fact in header._asdict().items()}
    return marked([texts("issue.header.title", **facts), texts(key, **facts)], header.mark)


def progress_comment(run: Run, texts: Texts) -> str:
    """Write the one comment that shows how a run progresses; its first line is its state (ISS-9)."""
    lines = "\n".join(_newest(_log_lines(run), MOST_LOGGED))
    log = _folded("issue.progress.log", [f"```json\n{lines}\n```" if lines else ""], texts)
    facts = {"run_id": run.run_id, "state": run.state.value, "outcome": run.outcome.value}
    mark = CommentMark(MarkKind.PROGRESS, f"progress:{run.run_id}", facts)
    return marked([_standing(run, texts), steps_table(run, texts), log], mark)


def comment_of(post: Post, run: Run | None, texts: Texts) -> str:
    """Write the comment of a post; the run that it is about, where there is one here."""
    return marked(_BODIES[post.kind](post.facts, run, texts), CommentMark(post.kind, post.key, post.facts))


def answer_comment(text: str, texts: Texts) -> str:
    """Write what a person answered on the page: their words, and the command that starts the next run."""
    return f"{texts('issue.answered')}\n\n/retry {without_marks(without_commands(text.strip()))}"


def marked(parts: Sequence[str], mark: CommentMark) -> str:
    """Put parts together, short enough for GitHub, with the mark as the last line."""
    body = _shortened("\n\n".join(filter(None, parts)), MOST_CHARACTERS)
    return f"{body}\n\n{write_mark(mark)}"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rsplit("\n", 1)[0] + "\n…"


def _newest(lines: Iterable[str], most: int) -> list[str]:
    """Return the last of some lines that have room."""
    kept: list[str] = []
    for line in reversed(list(lines)):
        most -= len(line) + 1
        if most < 0:
            break
        kept.insert(0, line)
    return kept


# --- how a run stands ------------------------------------------------------------------------------------------------


def _standing(run: Run, texts: Texts) -> str:
    step, index = run.current_step, run.current_index
    facts = {
        "run_id": run.run_id,
        "number": (index or 0) + 1,
        "of": len(run.plan),
        "step": _cell(step.title) if step else "",
        "used": use_of(run.usage, texts) or "",
    }
    key = (
        run.state.value.lower()
        if run.is_active and (step or run.state is RunState.PLANNING)
        else run.outcome.value.lower()
    )
    return texts(f"issue.progress.{key}", **facts)


def steps_table(run: Run, texts: Texts) -> str:
    """Write a run's steps and how far each is."""
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
    table = _shortened("\n".join(rows), MOST_STEPS)
    return table if len(run.plan) <= MOST_STEPS_SHOWN else _folded("issue.steps", [table], texts)


def _cell(text: str) -> str:
    """Write somebody's words into a table: one line, no other cell, no mention."""
    return quoted(" ".join(text.split()), 200).removeprefix("> ").replace("|", "\\|")


def _log_lines(run: Run) -> Iterator[str]:
    """Write each end of a step as a line of JSON (FR: structured log), the newest ones if there are too many."""
    for line in run.history[-_MOST_LOG_LINES:]:
        facts = {"at": line.at.isoformat(timespec="seconds"), "event": line.event, "step_id": line.step_id}
        facts["reason_code"] = line.reason_code
        yield json.dumps({"run_id": run.run_id, **{name: fact for name, fact in facts.items() if fact}})


# --- comments of their own -------------------------------------------------------------------------------------------


def _blocked(facts: Mapping[str, object], run: Run | None, texts: Texts) -> list[str]:
    """Say what failed and what a person has to decide; where it was seen, and the codes, are folded (FR-103)."""
    if facts.get("about") == "not_started":
        return _blocked_before(facts, texts)
    title = texts("issue.blocked.title" if facts.get("run_id") else "issue.blocked.not_started", **_told(facts))
    code = str(facts.get("reason_code") or "RUN_LOST")
    names = ("run_id", "attempt", "of", "blocked_reason", "reason_code")
    coded = {name: facts[name] for name in names if facts.get(name)}
    seen = [_where(run, texts), f"```json\n{json.dumps(coded, ensure_ascii=False)}\n```"]
    return [title, _what(facts, run, texts), _decision(code, run, texts), _folded("issue.blocked.where", seen, texts)]


def _blocked_before(facts: Mapping[str, object], texts: Texts) -> list[str]:
    """Say that no run could be made, without naming a place on the machine."""
    coded = {name: facts[name] for name in ("blocked_reason", "reason_code") if facts.get(name)}
    return [
        texts("issue.blocked.not_started"),
        texts("issue.blocked.no_run", title=_title(facts, texts)),
        texts("issue.blocked.again"),
        _folded("issue.blocked.where", [f"```json\n{json.dumps(coded)}\n```"], texts),
    ]


def _folded(key: str, parts: Sequence[str], texts: Texts) -> str:
    """Fold what most readers need not see."""
    inside = "\n\n".join(filter(None, parts))
    return f"<details><summary>{texts(key)}</summary>\n\n{inside}\n\n</details>" if inside else ""


def _what(facts: Mapping[str, object], run: Run | None, texts: Texts) -> str:
    why = run.error if run is not None else None
    if run is None or why is None:
        message = texts.message(str(facts.get("reason_code") or "RUN_LOST"), _told(facts))
        return texts("issue.blocked.said", title=message.title, summary=message.summary)
    message = message_of(run, why, texts)
    if why.question:
        return texts("issue.blocked.asks")
    words = words_of(why, texts)
    said = [
        texts("issue.blocked.said", title=message.title, summary=message.summary),
        "" if words in message.summary else quoted(words, MOST_SHOWN),
    ]
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
        texts("issue.blocked.command", command=_cell(seen.command), code=str(seen.exit_code))
        if seen.command and seen.exit_code
        else "",
        "" if why.question or len(words_of(why, texts)) <= MOST_SHOWN else quoted(words_of(why, texts), MOST_QUOTED),
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
    where = [texts("issue.result.branch", branch=run.place.branch, base=run.place.base_branch), *_on_github(run, texts)]
    where += [_pull_line(facts, run, texts)]
    if run.accepted_as:
        where += [texts("issue.result.merged", base=run.place.base_branch, commit=run.accepted_as[:12])]
    where += [texts("report.used", used=used)] if (used := use_of(run.usage, texts)) else []
    key = "close" if is_accepted else "how_pull" if facts.get("pull_url") else "how"
    how = texts(f"issue.result.{key}", request_id=run.request_id)
    told = _shortened(report_words(run, texts, Quoting(_cell, quoted)), MOST_DONE)
    done = _folded("issue.result.done", [told], texts)
    found = "\n".join(found_section(list(found_lines(run.follow_ups, texts, Quoting(_cell, quoted))), texts))
    return [title, "\n".join(f"- {line}" for line in where if line), steps_table(run, texts), found, done, how]


def _on_github(run: Run, texts: Texts) -> Iterator[str]:
    """Say where the branch can be seen, or that it cannot, and why."""
    if run.is_pushed:
        yield texts("issue.result.compare", url=run.compare_url) if run.compare_url else ""
    elif run.push is not None:
        yield texts("issue.result.push_failed", problem=_cell(run.push.note or "?"))
    elif run.has_commits and not run.accepted_as:
        yield texts("issue.result.not_pushed")


def _pull_line(facts: Mapping[str, object], run: Run, texts: Texts) -> str:
    """Name the pull request, or say why there is none though the settings ask for one."""
    if facts.get("pull_url"):
        return texts("issue.result.pull", url=str(facts["pull_url"]))
    code, problem = str(facts.get("no_pull") or ""), str(facts.get("problem") or "")
    if not code:
        return ""
    title = texts.message(code, {**_told(facts), "branch": run.place.branch}).title
    # What git said about a push is on a separate line.
    said = f"{title} ({_cell(problem)})" if problem and code != PUSH_FAILED else title
    return texts("issue.result.no_pull", why=said, code=code)


def _refusal(facts: Mapping[str, object], _run: Run | None, texts: Texts) -> list[str]:
    """Say on the issue itself what was not done, and what to do instead."""
    return [texts(f"issue.refused.{facts.get('reason_code')}", **_told(facts))]


def _reminder(facts: Mapping[str, object], run: Run | None, texts: Texts) -> list[str]:
    """Remind of a decision, with answers ready to copy (ISS-8)."""
    why = run.error if run is not None else None
    choices = [f"/retry {_cell(choice)}" for choice in (why.choices if why else ())] or [texts("issue.reminder.answer")]
    blocks = "\n\n".join(f"```text\n{line}\n```" for line in (*choices, "/cancel"))
    asked = quoted(why.question) if why and why.question else ""
    return [texts("issue.reminder.title", **_told(facts)), asked, texts("issue.reminder.how"), blocks]


def _note(facts: Mapping[str, object], run: Run | None, texts: Texts) -> list[str]:
    about = facts.get("about")
    if about == CommandName.HELP.value:
        return [texts("issue.help.title"), texts("issue.help.commands"), texts("issue.help.labels")]
    if about == CommandName.STATUS.value:
        told = texts("issue.status", **{**_told(facts), "status": texts(f"issue.state.{facts.get('status')}")})
        return [
            told,
            _standing(run, texts) if run is not None else "",
            steps_table(run, texts) if run is not None else "",
        ]
    if about == "not_started":
        return [texts("issue.not_started", title=_title(facts, texts))]
    waits = {"waiting": "issue.waiting", "no_runner": "issue.no_runner"}.get(str(about))
    return [texts(waits or "issue.cancelled", **_told(facts))]


def _title(facts: Mapping[str, object], texts: Texts) -> str:
    """Name a reason in a few words, without what it says about this machine."""
    return texts.message(str(facts.get("reason_code") or ""), _told(facts)).title


def _told(facts: Mapping[str, object]) -> dict[str, object]:
    usual = {"attempt": "?", "of": "?", "detail": "", "problem": "", "request_id": "", "label": "?", "actor": "?"}
    return {**usual, **{name: fact for name, fact in facts.items() if fact is not None}}


_BODIES: Mapping[MarkKind, Callable[[Mapping[str, object], Run | None, Texts], list[str]]] = {
    MarkKind.BLOCKED: _blocked,
    MarkKind.RESULT: _result,
    MarkKind.REFUSAL: _refusal,
    MarkKind.REMINDER: _reminder,
    MarkKind.NOTE: _note,
}
