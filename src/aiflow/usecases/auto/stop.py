"""Ask a running auto-run to stop (AUT-3, LCK-8): after the run it is at, or now."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import About, Actor, decided
from aiflow.domain.backlog.selection import describe_holder
from aiflow.domain.lock import Lock, LockType
from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.errors import ConflictError

if TYPE_CHECKING:
    from aiflow.domain.auto.stopping import StopRequest
    from aiflow.domain.auto.summary import Beginning
    from aiflow.usecases.engine import Engine


class StopAsked(NamedTuple):
    """Who was asked: the auto-run by its lock, and the run it is at, if it is at one.

    One that only waited for its time has no lock, and is called off: then `auto` names its process.
    """

    auto: Lock
    run: Lock | None
    called_off: tuple[Beginning, ...] = ()


def stop_or_call_off(engine: Engine, wish: StopRequest) -> StopAsked:
    """Ask the auto-run of this checkout to stop; if none is at work, those that wait for their time do not begin."""
    return ask_to_stop(engine, wish) if working_auto(engine) else _call_off(engine, wish)


def ask_to_stop(engine: Engine, wish: StopRequest) -> StopAsked:
    """Ask the auto-run of this checkout to stop, or refuse if none is at work."""
    auto = working_auto(engine)
    if auto is None:
        raise ConflictError(reason_code="AUTO_NOT_RUNNING")
    run = run_of(engine, auto)
    data = {"asked": "stop", "when": wish.value, "pid": auto.pid}
    now, about = engine.time.now(), run or About()
    engine.journal.append(decided(now, Actor.PERSON, about, "AUTO_STOPPED_BY_PERSON", **data))
    engine.control.ask_stop(wish)
    return StopAsked(auto, run)


def _call_off(engine: Engine, wish: StopRequest) -> StopAsked:
    """Let no auto-run begin that waits for its time, or refuse if none does."""
    found = engine.control.call_off()
    if not found:
        raise ConflictError(reason_code="AUTO_NOT_RUNNING")
    for each in found:
        data = {"asked": "stop", "when": wish.value, "pid": each.pid, "begins": each.at.isoformat()}
        engine.journal.append(decided(engine.time.now(), Actor.PERSON, About(), "AUTO_STOPPED_BY_PERSON", **data))
    return StopAsked(Lock(LockType.QUEUE, pid=found[0].pid), None, found)


def has_ended(engine: Engine, auto: Lock) -> bool:
    """Return whether an auto-run is no longer at work."""
    now = working_auto(engine)
    return now is None or now.token != auto.token


def run_of(engine: Engine, auto: Lock) -> Lock | None:
    """Return the lock of the run that an auto-run is at, if it is at one."""
    held = engine.locks.held()[0].values()
    return next((lock for lock in held if lock.holder == auto.holder), None)


def queue_in_progress(auto: Lock, run: Lock | None) -> ConflictError:
    """Name the auto-run that is at work, and the run it is at if it is at one (AUT-1, ERR-2)."""
    told = {"pid": auto.pid, "host": auto.host, "detail": describe_holder(auto)}
    at = {} if run is None else {"request_id": run.request_id, "run_id": run.run_id}
    return ConflictError(reason_code="QUEUE_IN_PROGRESS", hint=NextAction(ActionKind.STOP), **told, **at)


def working_auto(engine: Engine) -> Lock | None:
    """Return the queue lock of an auto-run that is at work; that of a process that is gone counts as none."""
    queue = (status for status in engine.locks.survey() if status.lock.lock_type is LockType.QUEUE)
    return next((status.lock for status in queue if not status.verdict.is_stale), None)
