"""What `aiflow up` does next (API-1): one decision of what it sees, made again and again.

It starts at most one worker, for what a crash left (RUN-11, AUT-4) or for an issue that is ready (ISS-12), keeps a
runner where one is wanted, and ends in order: after the work, now, or, as a service, at once, leaving the work to
itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

# A worker that is killed again and again at the same place is not started for ever; runs count their own crashes.
MOST_TRIES = 3
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
# A runner that worked this long was well: what ended it then is news, not the same trouble again.
WELL_SECONDS = 60.0
# How long to wait for workers that were asked to end now.
GIVE_UP_SECONDS = 60.0


class Wish(IntEnum):
    """What is asked of `up`: to stay, to end after the work, to end the work too, or to exit at once."""

    STAY = 0
    AFTER_WORK = 1
    NOW = 2
    LEAVE = 3


class Left(NamedTuple):
    """Something that a crash left, and the command that continues it; `key` is another once it got any further.

    What is new is no such thing, but an issue that is ready (ISS-12).
    """

    key: str
    argv: tuple[str, ...]
    request_id: str | None = None
    is_new: bool = False


class UpSight(NamedTuple):
    """What is seen at one moment: `workers` are those of this `up` that work, `ended` how others of them ended.

    `auto_pid` is who has the queue, `is_busy` whether anybody works in the checkout, `left` what a crash left there,
    `ready` the issue that starts next.
    """

    at: float
    wish: Wish = Wish.STAY
    workers: tuple[int, ...] = ()
    ended: Mapping[int, int] = {}
    auto_pid: int | None = None
    is_busy: bool = False
    left: tuple[Left, ...] = ()
    ready: tuple[Left, ...] = ()
    is_runner_wanted: bool = False
    is_runner_working: bool = False


class MoveKind(StrEnum):
    """What `up` can do."""

    START_WORKER = "start_worker"
    ASK_AUTO = "ask_auto"
    END_WORKER = "end_worker"
    START_RUNNER = "start_runner"
    RELEASE_RUNNER = "release_runner"
    END_RUNNER = "end_runner"
    RUNNER_DIED = "runner_died"
    LEAVE = "leave"


class Move(NamedTuple):
    """One thing to do: with a worker, for what a crash left, or after a pause."""

    kind: MoveKind
    left: Left | None = None
    pid: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RunnerKnown:
    """What is known of the runner: since when it works, whether it was asked to end, and when it may start again."""

    is_started: bool = False
    is_released: bool = False
    is_ended: bool = False
    started_at: float = 0.0
    due_at: float = 0.0
    pause: float = FIRST_PAUSE_SECONDS


@dataclass(frozen=True, slots=True)
class Known:
    """What `up` remembers from one decision to the next."""

    tries: Mapping[str, int] = field(default_factory=dict)
    at_work_for: Mapping[int, Left] = field(default_factory=dict)
    asked: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    now_since: float | None = None
    runner: RunnerKnown = field(default_factory=RunnerKnown)


def decide(seen: UpSight, known: Known) -> tuple[list[Move], Known]:
    """Return what to do now, in order, and what to remember."""
    known = _counted(seen, known)
    if seen.wish is Wish.STAY:
        moves, runner = _look_after_runner(seen, known.runner)
        worker = _start_worker(seen, known)
        return [*moves, *worker], replace(known, runner=runner)
    moves, known = _stop(seen, known)
    is_over = not seen.workers and not seen.is_runner_working
    is_enough = known.now_since is not None and seen.at - known.now_since >= GIVE_UP_SECONDS
    if seen.wish is Wish.LEAVE or is_over or is_enough:
        moves.append(Move(MoveKind.LEAVE))
    return moves, known


def started(known: Known, left: Left, pid: int) -> Known:
    """Remember what a worker was started for."""
    return replace(known, at_work_for={**known.at_work_for, pid: left})


def open_tries(left: tuple[Left, ...], known: Known) -> tuple[Left, ...]:
    """Return what may still be tried of what a crash left."""
    return tuple(each for each in left if known.tries.get(each.key, 0) < MOST_TRIES)


def _counted(seen: UpSight, known: Known) -> Known:
    """Count what came of workers: one that was killed may be started again, one that ended has said what it could."""
    over = {pid: left for pid, left in known.at_work_for.items() if pid not in seen.workers}
    if not over:
        return known
    tries = dict(known.tries)
    for pid, left in over.items():
        if left.is_new:  # how often that is tried is remembered elsewhere
            continue
        was_killed = seen.ended.get(pid, 0) < 0
        tries[left.key] = tries.get(left.key, 0) + 1 if was_killed else MOST_TRIES
    going = {pid: left for pid, left in known.at_work_for.items() if pid not in over}
    return replace(known, tries=tries, at_work_for=going)


def _start_worker(seen: UpSight, known: Known) -> list[Move]:
    """Start a worker for what a crash left, then for what is ready, one at a time, while no other is at work."""
    if seen.workers or seen.is_busy:
        return []
    return [Move(MoveKind.START_WORKER, left) for left in (*open_tries(seen.left, known), *seen.ready)[:1]]


def _look_after_runner(seen: UpSight, runner: RunnerKnown) -> tuple[list[Move], RunnerKnown]:
    """Start the runner that is wanted, again with pauses that grow, and let one go that is not wanted any more."""
    if seen.is_runner_working:
        if seen.is_runner_wanted or runner.is_released:
            return [], runner
        return [Move(MoveKind.RELEASE_RUNNER)], replace(runner, is_released=True)
    if runner.is_started:
        if runner.is_released:
            return [], RunnerKnown()
        was_well = seen.at - runner.started_at >= WELL_SECONDS
        pause = FIRST_PAUSE_SECONDS if was_well else runner.pause
        again = RunnerKnown(due_at=seen.at + pause, pause=min(pause * 2, LONGEST_PAUSE_SECONDS))
        return [Move(MoveKind.RUNNER_DIED, seconds=pause)], again
    if not seen.is_runner_wanted or seen.at < runner.due_at:
        return [], runner
    return [Move(MoveKind.START_RUNNER)], replace(runner, is_started=True, started_at=seen.at)


def _stop(seen: UpSight, known: Known) -> tuple[list[Move], Known]:
    """Ask everything that works to end as it is wished, each once."""
    moves: list[Move] = []
    runner, asked, ended, since = known.runner, known.asked, known.ended, known.now_since
    if seen.is_runner_working and not runner.is_released:
        moves.append(Move(MoveKind.RELEASE_RUNNER))
        runner = replace(runner, is_released=True)
    if seen.wish is Wish.AFTER_WORK:
        autos = {pid for pid in seen.workers if pid == seen.auto_pid} - asked
        moves += [Move(MoveKind.ASK_AUTO, pid=pid) for pid in autos]
        asked |= autos
    if seen.wish is Wish.NOW:
        since = seen.at if since is None else since
        moves += [Move(MoveKind.END_WORKER, pid=pid) for pid in seen.workers if pid not in ended]
        ended |= set(seen.workers)
        if seen.is_runner_working and not runner.is_ended:
            moves.append(Move(MoveKind.END_RUNNER))
            runner = replace(runner, is_ended=True)
    return moves, replace(known, runner=runner, asked=asked, ended=ended, now_since=since)
