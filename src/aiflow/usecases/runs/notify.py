"""Notify a person who is not there: a run has just started to wait for them, or auto-run has ended.

Called when everything is written down and no lock is held; a note that cannot be sent changes nothing else.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.agents.choices import numbered
from aiflow.domain.claims import Settled
from aiflow.domain.lifecycle import RunOutcome, RunState
from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.domain.notes import Note, NoteKind
from aiflow.domain.reasons import way_to_mend
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.runs.retry import CUT_OFF
from aiflow.domain.runs.stopped import outcome_code, recommended
from aiflow.errors import AiflowError
from aiflow.usecases.runs.report import message_facts, words_of

if TYPE_CHECKING:
    from aiflow.domain.auto.summary import Summary
    from aiflow.domain.claims import Dropped
    from aiflow.domain.runs.run import Run, RunError
    from aiflow.messages import Texts
    from aiflow.usecases.engine import Engine

# What a person cancelled, sent back or replaced themselves waits for no one.
_WAITING = (RunOutcome.AWAITING_ACCEPTANCE, RunOutcome.NEEDS_INPUT, RunOutcome.FAILED)
_AT_REST = (RequestStatus.BLOCKED, RequestStatus.RUNNING)


def tell_waiting(engine: Engine, run: Run, shown: Settled | Dropped | None = None) -> None:
    """Report that a run that has just ended waits for a person; one that does not is skipped.

    `shown` is what its request showed a moment ago, where somebody looked.
    """
    is_taken_up = run.error is not None and run.error.reason_code in CUT_OFF  # by another delivery or auto-run
    if run.outcome in _WAITING and not is_taken_up and run.replaced_by is None and not _is_put_away(engine, run, shown):
        _send(engine, waiting_note(run, engine.voice.texts))


def _is_put_away(engine: Engine, run: Run, shown: Settled | Dropped | None) -> bool:
    """Return whether a person set the request to something else while the run was at work."""
    if shown is None:
        status = engine.source.status(RequestId(run.request_id))
    else:
        status = shown.now if isinstance(shown, Settled) else shown.status
    return status is not None and status not in _AT_REST  # what is the matter with it is for others to say


def tell_auto_ended(engine: Engine, summary: Summary) -> None:
    """Report that auto-run has ended: why, and what a person finds."""
    texts, code = engine.voice.texts, summary.session.reason_code or "AUTO_NOTHING_RUNNABLE"
    counts = {name: len(getattr(summary, name)) for name in ("done", "waiting", "unreached")}
    lines = [texts.message(code, {}).title, *(f"{each.request_id}: {each.text}" for each in summary.waiting)]
    if summary.follow_ups:
        lines.append(texts("overview.found", count=len(summary.follow_ups)))
    title = texts("notify.auto_ended", **counts)
    _send(engine, Note(NoteKind.AUTO_ENDED, code, title, "\n".join(lines), NextAction(ActionKind.LIST)))


def waiting_note(run: Run, texts: Texts) -> Note:
    """Write a note about a run that waits: the question or the reason, and how to continue."""
    code, why = outcome_code(run) or "", run.error
    facts = message_facts(run, why, texts) if why else {"request_id": run.request_id, "branch": run.place.branch}
    message = texts.message(code, facts)
    action = way_to_mend(code, run.request_id, why.cause if why else None, recommended(run))
    return Note(
        NoteKind.WAITING,
        code,
        texts(f"notify.{_manner(run)}", request_id=run.request_id, reason=message.title),
        _told(why, message.summary, texts) if why else message.summary,
        action or NextAction(ActionKind.SHOW, run.request_id),
        run.request_id,
        run.run_id,
    )


def _manner(run: Run) -> str:
    """Name how a run waits."""
    if run.error is not None and run.error.question:
        return "question"
    if run.state is RunState.DONE:
        return "not_accepted" if run.error else "done"
    return "failed" if run.state is RunState.FAILED else "stopped"


def _told(why: RunError, summary: str, texts: Texts) -> str:
    """Return the question, or the reason with what it was and its cause."""
    if why.question:
        return "\n".join((why.question, *numbered(why.choices)))
    words = words_of(why, texts)
    detail = "" if words in summary else words
    cause = texts("report.cause", cause=why.cause, title=texts.message(why.cause, {}).title) if why.cause else ""
    return "\n".join(filter(None, (summary, detail, cause)))


def _send(engine: Engine, note: Note) -> None:
    problem = engine.notifier.send(note, engine.voice.interrupted)
    if problem is None:
        return
    data = {"note": note.kind.value, "problem": problem}
    kind = ActivityKind.NOTE_FAILED
    with contextlib.suppress(AiflowError):  # a full disk may be what the note is about
        engine.journal.append(
            Activity(engine.time.now(), kind, Actor.ENGINE, note.request_id, note.run_id, note.reason_code, data)
        )
    engine.voice.warn(engine.voice.texts("notify.not_sent", problem=problem))
