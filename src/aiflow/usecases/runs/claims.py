"""A request and its source while a run works on it (REQ-5): claimed first, settled at the end, each in the journal."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from aiflow.domain.activity import About, Activity, ActivityKind, Actor, refused
from aiflow.domain.claims import Claimed, Comment, Dropped, Lost, NotStarted
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.errors import ConflictError, EnvironmentProblemError, as_problem
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.claims import Settled
    from aiflow.domain.lifecycle import RunOutcome
    from aiflow.usecases.engine import Engine


def claim(engine: Engine, request_id: str, run_id: str) -> Claimed | Lost:
    """Show that a run works on a request, or hear who or what keeps it."""
    answer = engine.source.claim(RequestId(request_id), run_id)
    if isinstance(answer, Claimed) and answer.was is not RequestStatus.RUNNING:
        _record(engine, request_id, run_id, (answer.was, RequestStatus.RUNNING))
    elif isinstance(answer, Lost) and answer.was is not None:
        _record(engine, request_id, run_id, (answer.was, answer.status))
    return answer


@contextlib.contextmanager
def telling_source(engine: Engine, request_id: str, run_id: str = "", *, is_blocking: bool = False) -> Iterator[None]:
    """Let the source of a request hear if its environment keeps a run of it from beginning (ISS-3, ISS-5)."""
    try:
        with _in_our_words():
            yield
    except EnvironmentProblemError as error:
        tell_not_started(engine, request_id, NotStarted(error.reason_code, is_blocking), run_id)
        raise


@contextlib.contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise as_problem(error, error.filename or "") from error


def tell_not_started(engine: Engine, request_id: str, why: NotStarted, run_id: str = "") -> None:
    """Inform the source of a request that no run of it could begin; another status is recorded."""
    answer = engine.source.not_started(RequestId(request_id), why)
    if answer is not None:
        _record(engine, request_id, run_id, (answer.was, answer.now))


def require_claim(engine: Engine, request_id: str, run_id: str) -> None:
    """Claim a request for a run, or refuse with who has it or which status a person gave it."""
    answer = claim(engine, request_id, run_id)
    if isinstance(answer, Lost):
        raise lost(engine, request_id, answer)


def lost(engine: Engine, request_id: str, answer: Lost) -> ConflictError:
    """Say why a request is not ours to work on."""
    if answer.refusal is not None:
        code, facts = answer.refusal.reason_code, dict(answer.refusal.facts)
        return ConflictError(reason_code=code, request_id=request_id, **{"detail": "", **facts})
    if answer.holder is None:
        return not_ready(request_id, answer.status)
    return ConflictError(
        reason_code="REQUEST_LOCKED",
        request_id=request_id,
        status=answer.status.value,
        holder=answer.holder,
        detail=engine.voice.texts("detail.REQUEST_LOCKED", holder=answer.holder),
    )


def not_ready(request_id: str, status: RequestStatus) -> ConflictError:
    """Refuse a request for the status it has."""
    told = words("refused.status", status=status)
    return ConflictError(reason_code="NOT_READY", request_id=request_id, status=status.value, detail=told)


def settle(engine: Engine, request_id: str, run_id: str, outcome: RunOutcome) -> Settled | Dropped:
    """Show what a run's end means on its request; that another run holds it by now is recorded (ISS-4)."""
    answer = engine.source.settle(RequestId(request_id), run_id, outcome)
    if not isinstance(answer, Dropped):
        _record(engine, request_id, run_id, (answer.was, answer.now))
    elif answer.holder is not None:
        data = {"outcome": outcome.value, "holder": answer.holder}
        about = About(request_id, run_id or None)
        engine.journal.append(refused(engine.time.now(), Actor.ENGINE, about, "LOCK_MISMATCH", **data))
    return answer


def send_back(engine: Engine, request_id: str, run_id: str, text: str) -> None:
    """Give a request a person's comment and make it ready again (REQ-6)."""
    title = engine.voice.texts("send_back.heading", date=f"{engine.time.now():%Y-%m-%d}")
    answer = engine.source.send_back(RequestId(request_id), run_id, Comment(title, text))
    if isinstance(answer, Dropped):
        raise lost(engine, request_id, Lost(answer.status or RequestStatus.DRAFT, answer.holder))
    # A comment is a change of its own: it is recorded also where the status was `ready` already.
    _record(engine, request_id, run_id, (answer.was, answer.now), is_change=True)


def undo(engine: Engine, request_id: str, run_id: str) -> Settled | Dropped:
    """Block a request whose acceptance was undone; what a person set since stays."""
    answer = engine.source.undo(RequestId(request_id), run_id)
    if not isinstance(answer, Dropped):
        _record(engine, request_id, run_id, (answer.was, answer.now))
    return answer


def _record(
    engine: Engine, request_id: str, run_id: str, step: tuple[RequestStatus, RequestStatus], *, is_change: bool = False
) -> None:
    old, new = step
    if old is new and not is_change:
        return
    data = {"key": "status", "from": old.value, "to": new.value}
    kind = ActivityKind.STATUS_CHANGED
    engine.journal.append(Activity(engine.time.now(), kind, Actor.ENGINE, request_id, run_id or None, data=data))
