"""The state of a checkout as values: what one screen shows (CLI `status`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.auto.summary import AutoReport, Waiting
    from aiflow.domain.backlog.selection import Selection
    from aiflow.domain.lock import Lock
    from aiflow.domain.request import Request
    from aiflow.domain.run_summary import TaskRef


class Progress(NamedTuple):
    """How far a run is: its state, its step (counted from 1), what is done of how many, and the task it is for.

    `waits_until` is until when it waits for its agent's quota, None if it does not.
    """

    state: str
    step_id: str | None = None
    step_title: str = ""
    step_number: int = 0
    steps: int = 0
    steps_done: int = 0
    task: TaskRef | None = None
    waits_until: datetime | None = None


class AtWork(NamedTuple):
    """A request that somebody works on: who, since when, and how far it is if its run can be read."""

    request_id: str
    title: str
    run_id: str | None
    since: datetime | None
    pid: int | None
    host: str | None
    progress: Progress | None = None


class SpentLately(NamedTuple):
    """What the runs that began in the last days used."""

    days: int
    runs: int
    cost_usd: float
    tokens: int
    agent_calls: int


class Glance(NamedTuple):
    """What a short look shows: what runs, how many requests wait for a person, what is next, and auto-run.

    `continued` is what the next auto-run continues first.
    """

    running: tuple[AtWork, ...]
    waiting: int
    selection: Selection
    auto: AutoReport
    continued: tuple[Request, ...] = ()


class Standing(NamedTuple):
    """Everything that one screen shows.

    `continued` is what the next auto-run continues before it selects, `turn` belongs to a runner about to start a run.
    `follow_ups` are the drafts that agents proposed.
    """

    running: tuple[AtWork, ...]
    waiting: tuple[Waiting, ...]
    selection: Selection
    auto: AutoReport
    spent: SpentLately
    continued: tuple[Request, ...] = ()
    turn: Lock | None = None
    follow_ups: tuple[Request, ...] = ()
