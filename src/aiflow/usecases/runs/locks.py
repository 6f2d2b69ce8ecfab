"""A request's lock as runs use it (LCK-4, LCK-5, LCK-7): take it, name who has it, reclaim it, break it by hand."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.activity import About, Actor, decided
from aiflow.domain.backlog.selection import describe_holder
from aiflow.domain.lock import Lock, LockType, may_write
from aiflow.domain.request import RequestId
from aiflow.errors import AiflowError, ConflictError, NotFoundError

if TYPE_CHECKING:
    from aiflow.domain.lock import LockStatus
    from aiflow.domain.runs.merge import CutOffMove
    from aiflow.domain.runs.run import Run
    from aiflow.ports import Lease
    from aiflow.usecases.engine import Engine

from aiflow.domain.activity import recovered as recovered_entry
from aiflow.usecases.runs.report import add_lines

FILES_SHOWN = 20
LOOK_SECONDS = 0.05
# So long a start waits for somebody who has the turn to start something, or nothing.
TURN_SECONDS = 5.0


def take_lock(engine: Engine, request_id: RequestId, run_id: str, *, beside_others: bool = False) -> Lease:
    """Take a request's lock, or say who holds one in this checkout (or, beside others, that very one).

    It takes the place of the turn, where that is ours (QUE-5).
    """
    turn = engine.charge.turn
    token = turn.lock.token if turn is not None else None
    until = engine.time.monotonic() + TURN_SECONDS
    while True:
        lease = engine.locks.acquire_request(request_id, run_id, beside_others=beside_others, turn=token)
        # A runner is about to start something: what that is, or that it is nothing, shows in a moment.
        is_brief = isinstance(lease, Lock) and lease.lock_type is LockType.TURN
        if not is_brief or engine.time.monotonic() >= until or engine.voice.interrupted():
            break
        engine.time.sleep(LOOK_SECONDS)
    if isinstance(lease, Lock):
        raise in_progress(lease, request_id)
    give_back_turn(engine)
    return lease


def give_back_turn(engine: Engine) -> None:
    """Let others have the turn, if it was ours: what we work on now has its own lock, or has to wait itself."""
    release_turn(engine.charge.turn)


def release_turn(turn: Lease | None) -> None:
    """Give a turn back; that this cannot be done, as on a full disk, is no reason to end what it was taken for."""
    if turn is not None:
        with contextlib.suppress(AiflowError):
            turn.release()


def has_turn(engine: Engine) -> bool:
    """Return whether the turn of this checkout is still ours."""
    turn, holder = engine.charge.turn, engine.locks.turn_holder() if engine.charge.turn else None
    return turn is not None and may_write(holder, turn.lock.token or "")


def occupant(engine: Engine) -> Lock | None:
    """Return the lock of the process that runs in this checkout, or is about to; our own turn does not count."""
    if holder := engine.locks.holder():
        return holder
    return None if has_turn(engine) else engine.locks.turn_holder()


def require_free(engine: Engine, request_id: RequestId) -> None:
    """Refuse while anybody runs in this checkout, naming who works on this very request if somebody does (RUN-15).

    With the turn, only who works on this very request is in the way: others run nothing, they accept or put right.
    """
    if holder := engine.locks.holder_of(request_id) or (None if has_turn(engine) else engine.locks.holder()):
        raise in_progress(holder, request_id)


def in_progress(holder: Lock, asked_for: RequestId) -> ConflictError:
    """Name the process that runs in this checkout, and for which request if that is another one.

    One that has only the turn is about to start something.
    """
    if holder.lock_type is LockType.TURN:
        return ConflictError(
            reason_code="RUN_IN_PROGRESS", request_id=asked_for, turn=describe_holder(holder), pid=holder.pid
        )
    other = {} if holder.request_id in (None, asked_for) else {"asked_for": asked_for}
    return ConflictError(
        reason_code="RUN_IN_PROGRESS", request_id=holder.request_id, run_id=holder.run_id, pid=holder.pid, **other
    )


def owned(engine: Engine, lease: Lease, run: Run) -> Run:
    """Write into a run who works on it from now on, for which task, and with which limit (LCK-6, QUE-3, RUN-4)."""
    limit = engine.limits.step_retries
    return replace(run, lock=_holder_shape(lease.lock), task=engine.charge.task, step_retries=limit)


def _holder_shape(lock: Lock) -> dict[str, object]:
    """Write a lock's holder as `stage.json` records it (LCK-6)."""
    return {
        "pid": lock.pid,
        "host": lock.host,
        "fence": lock.fence,
        "created_at": lock.created_at.isoformat() if lock.created_at else None,
    }


def list_locks(engine: Engine) -> tuple[LockStatus, ...]:
    """Judge every lock of this checkout; changes nothing."""
    return tuple(engine.locks.survey())


def require_lock(engine: Engine, request_id: RequestId | None) -> None:
    """Say that there is no such lock, before anybody is asked whether to break it."""
    meant = _meant(engine, request_id)
    if not any((status.lock.lock_type, status.lock.request_id) == meant for status in list_locks(engine)):
        raise _no_lock(request_id)


def _meant(engine: Engine, request_id: RequestId | None) -> tuple[LockType, RequestId | None]:
    """Return which lock is meant: a request's, or one of those that are named by their kind; None is the queue's."""
    name = request_id or RequestId(LockType.QUEUE)
    if name in (LockType.QUEUE.value, LockType.TURN.value) and name not in engine.locks.held()[0]:
        return LockType(name), None
    return LockType.REQUEST, name


def _no_lock(request_id: RequestId | None) -> NotFoundError:
    name = request_id or LockType.QUEUE.value
    return NotFoundError(reason_code="LOCK_NOT_FOUND", name=name, request_id=name)


def break_lock(engine: Engine, request_id: RequestId | None) -> LockStatus:
    """Remove a request's lock, the queue's or the turn (by its kind; None is the queue's), any holder's."""
    kind, meant = _meant(engine, request_id)
    broken = engine.locks.break_lock(meant) if meant else engine.locks.break_lock(None, kind)
    if broken is None:
        raise _no_lock(request_id)
    lock = broken.lock
    data = {"asked": "break", "pid": lock.pid, "host": lock.host, "verdict": broken.verdict.value}
    engine.journal.append(decided(engine.time.now(), Actor.PERSON, lock, "LOCK_LOST", **data))
    return broken


def reclaim_locks(engine: Engine) -> list[LockStatus]:
    """Remove stale locks, with a line in the journal and in the run's report for each (LCK-5).

    What such a holder left half written in a person's checkout is put right, too.
    """
    reclaimed = engine.locks.reclaim()
    for status in reclaimed:
        lock = status.lock
        data = {
            "lock_type": lock.lock_type.value,
            "pid": lock.pid,
            "host": lock.host,
            "verdict": status.verdict.value,
        }
        engine.journal.append(recovered_entry(engine.time.now(), Actor.ENGINE, lock, "LOCK_STALE_RECOVERED", **data))
        _tell_report(engine, status)
    put_checkout_right(engine)
    return reclaimed


def put_checkout_right(engine: Engine) -> CutOffMove | None:
    """End or take back an acceptance that was cut off while git wrote into a person's checkout (GIT-3).

    What cannot be put right does not keep a run from continuing: where it matters, git refuses.
    """
    found = None
    with contextlib.suppress(AiflowError):  # the doctor names what is wrong with the repository
        found = engine.merging.put_right()
    if found is None:
        return None
    engine.voice.warn(engine.voice.texts(f"cut_off.{found.outcome}", **cut_off_facts(found)))
    if not found.locks:
        about = About(engine.runs.find(RequestId(found.run_id)), found.run_id)
        data = {"path": found.path, "branch": found.branch, "outcome": found.outcome, "files": list(found.left)}
        engine.journal.append(recovered_entry(engine.time.now(), Actor.ENGINE, about, "CHECKOUT_RECOVERED", **data))
    return found


def cut_off_facts(found: CutOffMove) -> dict[str, str]:
    """Return what the words about an acceptance that was cut off need."""
    shown, more = found.left[:FILES_SHOWN], len(found.left) - FILES_SHOWN
    files = ", ".join(shown) + (f" (+{more})" if more > 0 else "")
    told = {"path": found.path, "branch": found.branch, "run_id": found.run_id}
    return {**told, "files": files, "names": ", ".join(found.locks)}


def _tell_report(engine: Engine, status: LockStatus) -> None:
    lock = status.lock
    run = engine.runs.load(lock.request_id, lock.run_id) if lock.request_id and lock.run_id else None
    if run is not None:
        when = engine.time.now().isoformat(timespec="seconds")
        line = f"{when} LOCK_STALE_RECOVERED: pid {lock.pid}, {lock.host} ({status.verdict})"
        add_lines(engine, run, [line, ""])
