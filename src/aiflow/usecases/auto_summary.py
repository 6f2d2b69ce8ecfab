"""What a person finds when auto-run has ended (AUT-3): what is done, what waits for them, what was not reached."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from aiflow.domain.auto_run import Summary, Unreached, Upcoming, Waiting, worn_out
from aiflow.domain.explanation import mending_commands, stopped_for
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.reasons import mending_command
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.selection import queue_order, select_next
from aiflow.usecases.find_interrupted import with_interrupted
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.run_report import message_facts, words_of
from aiflow.usecases.run_shapes import finding_shape
from aiflow.usecases.shapes import ENGLISH, describe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from aiflow.domain.auto_run import Result, Session
    from aiflow.domain.request import Request
    from aiflow.domain.run import Run
    from aiflow.domain.selection import Backlog
    from aiflow.messages import Texts
    from aiflow.usecases.engine import Engine

MOST_WORDS = 160
_AT_REST = (RequestStatus.BLOCKED, RequestStatus.RUNNING)


def summarize(engine: Engine, session: Session, texts: Texts) -> Summary:
    """Sum up a session that has ended, with the backlog as it is now."""
    backlog = _read(engine)
    found = tuple(_waiting(engine, backlog, texts))
    known = {each.request_id for each in found}
    waiting = (*found, *(each for each in _lost(session, backlog, texts) if each.request_id not in known))
    shown = {each.request_id for each in waiting}
    unreached = (each for each in _unreached(session, backlog, texts) if each.request_id not in shown)
    done = dict.fromkeys(each.request_id for each in session.results if _is_done(backlog, each))
    titles = {request.id: request.title for request in backlog.requests}
    return Summary(
        session,
        tuple(Upcoming(each, titles.get(RequestId(each), "")) for each in done),
        waiting,
        tuple(unreached),
    )


def summarize_alone(session: Session, texts: Texts) -> Summary:
    """Sum up a session behind which the backlog cannot be read any more: what it did, and what of that waits."""
    waiting = tuple(
        Waiting(
            each.request_id,
            "",
            code,
            texts.message(code, {"request_id": each.request_id}).title,
            mending_command(code, each.request_id),
        )
        for each in session.results
        if each.outcome is not RunOutcome.ACCEPTED and (code := each.reason_code or "AWAITING_ACCEPTANCE")
    )
    done = (Upcoming(each.request_id, "") for each in session.results if each.outcome is RunOutcome.ACCEPTED)
    return Summary(session, tuple(done), waiting)


def _lost(session: Session, backlog: Backlog, texts: Texts) -> Iterator[Waiting]:
    """Yield what was lost with its run's files: nothing of it is left to say so but this session (REQ-7)."""
    for each in session.results:
        request = backlog.by_id.get(RequestId(each.request_id))
        if each.reason_code == "RUN_LOST" and request is not None and request.status is RequestStatus.BLOCKED:
            title = texts.message("RUN_LOST", {"request_id": request.id}).title
            yield Waiting(request.id, request.title, "RUN_LOST", title, mending_command("RUN_LOST", request.id))


def _is_done(backlog: Backlog, result: Result) -> bool:
    """Tell whether a request is done, be it accepted by itself or by a person meanwhile; else it waits for one."""
    request = backlog.by_id.get(RequestId(result.request_id))
    return result.outcome is RunOutcome.ACCEPTED or (request is not None and request.status is RequestStatus.DONE)


def _read(engine: Engine) -> Backlog:
    """Read the backlog with the runs of what is still open; those of the rest have nothing to say here."""
    backlog = replace(read_backlog(engine.backlog, with_all_runs=False), queue_lock=None)
    at_rest = engine.runs.latest([request.id for request in backlog.requests if request.status in _AT_REST])
    return with_interrupted(replace(backlog, runs={**backlog.runs, **at_rest}), engine.locks)


def _waiting(engine: Engine, backlog: Backlog, texts: Texts) -> Iterator[Waiting]:
    """Yield what waits for a person, in the order in which it would run."""
    for request in sorted(backlog.requests, key=queue_order):
        latest = backlog.runs.get(request.id)
        code = "PROCESS_CRASHED" if request.id in backlog.interrupted else stopped_for(request, latest)
        if code is None:
            continue
        run = engine.runs.load(request.id, latest.run_id) if latest is not None and latest.reason_code else None
        why = run.error if run is not None else None
        question = why.question if why is not None else None
        yield Waiting(
            request.id,
            request.title,
            code,
            question or _reason(request, run, code, texts),
            next(iter(mending_commands(request, backlog)), None),
            is_question=question is not None,
            choices=why.choices if why is not None else (),
        )


def _reason(request: Request, run: Run | None, code: str, texts: Texts) -> str:
    """Say in one line why a request waits."""
    why = run.error if run is not None else None
    if run is None or why is None:
        return texts.message(code, {"request_id": request.id, "branch": ""}).title
    facts = message_facts(run, why)
    first_line = next(iter(words_of(why, texts).splitlines()), "")
    last_words = next((line.strip() for line in reversed(why.evidence.stderr_snippet.splitlines()) if line.strip()), "")
    codes = (code, why.cause) if why.cause else (code,)
    said = (*(texts.message(each, facts).title for each in codes), first_line, last_words[:MOST_WORDS])
    return ": ".join(dict.fromkeys(filter(None, said)))


def _unreached(session: Session, backlog: Backlog, texts: Texts) -> Iterator[Unreached]:
    """Yield every ready request that did not run, and every file that cannot be used, and why."""
    selection = select_next(backlog)
    failures = {result.request_id: result.reason_code for result in session.results if result.run_id is None}
    spent = worn_out(session)
    for request in selection.runnable:
        code = failures.get(request.id) or session.reason_code or "AUTO_NOTHING_RUNNABLE"
        key = "not_started" if request.id in failures else "worn_out" if request.id in spent else "not_reached"
        title = texts.message(code, {"request_id": request.id}).title
        yield Unreached(request.id, request.title, code, texts(f"auto.{key}", reason=title))
    titles = {request.id: request.title for request in backlog.requests}
    for excluded in selection.excluded:
        code, text = excluded.barrier.reason_code, describe(excluded.barrier, texts, excluded.invalid)
        yield Unreached(excluded.request_id, titles.get(excluded.request_id, ""), code, text)


def summary_shape(summary: Summary) -> dict[str, Any]:
    """`auto --json`: how it ended, what came of each request, what waits, what was not reached."""
    session = summary.session
    return {
        "state": session.state.value,
        "reason_code": session.reason_code,
        "began_at": _stamp(session.began_at),
        "ended_at": _stamp(session.changed_at),
        "runs": session.runs,
        "done": session.done,
        "cost_usd": session.cost_usd,
        "tokens": session.usage.tokens,
        "agent_calls": session.usage.calls,
        "interrupted": [each.request_id for each in summary.interrupted],
        "results": [asdict(result) for result in session.results],
        "waiting": [asdict(each) for each in summary.waiting],
        "unreached": [asdict(each) for each in summary.unreached],
        "checks": [finding_shape(finding, ENGLISH) for finding in summary.findings],
    }


def _stamp(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None
