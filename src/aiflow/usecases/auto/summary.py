"""What a person finds when auto-run has ended (AUT-3): what is done, what waits for them, what was not reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.auto.session import Upcoming
from aiflow.domain.auto.stopping import barred
from aiflow.domain.auto.summary import Summary, Unreached, Waiting
from aiflow.domain.backlog.explanation import mending_actions, stopped_for
from aiflow.domain.backlog.selection import queue_order, select_next
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.reasons import way_to_mend
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.run_summary import LOST
from aiflow.usecases.read_backlog import read_backlog, with_interrupted
from aiflow.usecases.runs.report import message_facts, words_of
from aiflow.usecases.shapes.backlog import describe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.auto.session import AutoSession, Result
    from aiflow.domain.backlog.selection import Backlog
    from aiflow.domain.request import Request
    from aiflow.domain.run_summary import RunSummary
    from aiflow.domain.runs.run import Run
    from aiflow.messages import Texts
    from aiflow.usecases.engine import Engine

MOST_WORDS = 160
CUT = "PROCESS_CRASHED"
_AT_REST = (RequestStatus.BLOCKED, RequestStatus.RUNNING)


def summarize(engine: Engine, session: AutoSession, texts: Texts) -> Summary:
    """Sum up a session that has ended, with the backlog as it is now."""
    backlog = read_open(engine)
    found = tuple(find_waiting(engine, backlog, texts))
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
        follow_ups=tuple(_found(engine, session)),
    )


def summarize_alone(session: AutoSession, texts: Texts) -> Summary:
    """Sum up a session after which the backlog can no longer be read: what it did, and what of that waits."""
    waiting = tuple(
        Waiting(
            each.request_id,
            "",
            code,
            texts.message(code, {"request_id": each.request_id}).title,
            way_to_mend(code, each.request_id),
        )
        for each in session.results
        if each.outcome is not RunOutcome.ACCEPTED and (code := each.reason_code or "AWAITING_ACCEPTANCE")
    )
    done = (Upcoming(each.request_id, "") for each in session.results if each.outcome is RunOutcome.ACCEPTED)
    return Summary(session, tuple(done), waiting)


def _lost(session: AutoSession, backlog: Backlog, texts: Texts) -> Iterator[Waiting]:
    """Yield what was lost with its run's files: nothing of it is left to say so but this session (REQ-7)."""
    for each in session.results:
        request = backlog.by_id.get(RequestId(each.request_id))
        if each.reason_code == LOST and request is not None and request.status is RequestStatus.BLOCKED:
            title = texts.message(LOST, {"request_id": request.id}).title
            yield Waiting(request.id, request.title, LOST, title, way_to_mend(LOST, request.id))


def _found(engine: Engine, session: AutoSession) -> Iterator[Upcoming]:
    """Yield the drafts that agents of this session proposed (REQ-10)."""
    for request_id, run_id in dict.fromkeys((each.request_id, each.run_id) for each in session.results):
        run = engine.runs.load(request_id, run_id) if run_id is not None else None
        for each in run.follow_ups.kept if run is not None else ():
            if each.request_id is not None and not each.is_known:
                yield Upcoming(each.request_id, each.title)


def _is_done(backlog: Backlog, result: Result) -> bool:
    """Return whether a request is done, accepted automatically or by a person; else it waits for a person."""
    request = backlog.by_id.get(RequestId(result.request_id))
    return result.outcome is RunOutcome.ACCEPTED or (request is not None and request.status is RequestStatus.DONE)


def read_open(engine: Engine) -> Backlog:
    """Read the backlog with the runs of what is still open; those of the rest have nothing to say here."""
    backlog = read_backlog(engine.backlog, with_all_runs=False)._replace(queue_lock=None)
    at_rest = engine.backlog.runs.latest([request.id for request in backlog.requests if request.status in _AT_REST])
    return with_interrupted(backlog._replace(runs={**backlog.runs, **at_rest}), engine.locks)


def waiting_requests(backlog: Backlog) -> Iterator[tuple[Request, RunSummary | None, str]]:
    """Yield each request that waits for a person, the run that speaks for it, and the reason code."""
    for request in backlog.requests:
        latest = backlog.runs.get(request.id)
        if request.id in backlog.continued:
            continue
        if request.id in backlog.lost:
            yield request, None, LOST
        elif request.id in backlog.interrupted:
            yield request, latest, CUT
        elif (code := stopped_for(request, latest)) is not None:
            yield request, latest, code


def find_waiting(engine: Engine, backlog: Backlog, texts: Texts) -> Iterator[Waiting]:
    """Yield what waits for a person, in the order in which it would run."""
    for request, latest, code in sorted(waiting_requests(backlog), key=lambda each: queue_order(each[0])):
        run = engine.runs.load(request.id, latest.run_id) if latest is not None and latest.reason_code else None
        why = run.error if run is not None else None
        question = why.question if why is not None else None
        yield Waiting(
            request.id,
            request.title,
            code,
            question or _reason(request, run, code, texts),
            next(iter(mending_actions(request, backlog)), None),
            is_question=question is not None,
            choices=why.choices if why is not None else (),
        )


def _reason(request: Request, run: Run | None, code: str, texts: Texts) -> str:
    """Say in one line why a request waits."""
    why = run.error if run is not None else None
    if run is None or why is None:
        return texts.message(code, {"request_id": request.id, "branch": ""}).title
    facts = message_facts(run, why, texts)
    first_line = next(iter(words_of(why, texts).splitlines()), "")
    last_words = next((line.strip() for line in reversed(why.evidence.stderr_snippet.splitlines()) if line.strip()), "")
    codes = (code, why.cause) if why.cause else (code,)
    said = (*(texts.message(each, facts).title for each in codes), first_line, last_words[:MOST_WORDS])
    return ": ".join(dict.fromkeys(filter(None, said)))


def _unreached(session: AutoSession, backlog: Backlog, texts: Texts) -> Iterator[Unreached]:
    """Yield every ready request that did not run, and every file that cannot be used, and why."""
    selection = select_next(backlog)
    failures = {result.request_id: result.reason_code for result in session.results if result.run_id is None}
    ran = barred(session, backlog.runs)
    for request in selection.runnable:
        code = failures.get(request.id) or session.reason_code or "AUTO_NOTHING_RUNNABLE"
        key = "not_started" if request.id in failures else "ran_already" if request.id in ran else "not_reached"
        title = texts.message(code, {"request_id": request.id}).title
        yield Unreached(request.id, request.title, code, texts(f"auto.{key}", reason=title))
    titles = {request.id: request.title for request in backlog.requests}
    for excluded in selection.excluded:
        code, text = excluded.barrier.reason_code, describe(excluded.barrier, texts, excluded.invalid)
        yield Unreached(excluded.request_id, titles.get(excluded.request_id, ""), code, text)
