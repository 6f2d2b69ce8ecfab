"""A run that its runner stopped, and that nobody goes on with by itself any more (RUN-12, RUN-14): say why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.delivery import given_up, is_cut
from aiflow.domain.lock import Lock
from aiflow.domain.request import RequestId
from aiflow.usecases.notify import tell_waiting
from aiflow.usecases.run_report import record_verdict
from aiflow.usecases.run_work import holding

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from aiflow.domain.run import Run
    from aiflow.usecases.engine import Engine


def judge_cut(engine: Engine, run: Run, verdict: Callable[[Run, datetime], Run]) -> Run | None:
    """Write a verdict on a run that its runner stopped; None if somebody has it or let it go on meanwhile."""
    lease = engine.locks.acquire_request(RequestId(run.request_id), run.run_id, beside_others=True)
    if isinstance(lease, Lock):
        return None
    with holding(engine, lease, run) as work:
        if not is_cut(work.run):
            return None
        record_verdict(work, verdict(work.run, engine.clock()))
        return work.run


def give_up(engine: Engine, run: Run) -> Run:
    """Leave a run to a person whose every attempt was cut off, and tell them."""
    judged = judge_cut(engine, run, given_up)
    if judged is None:
        return engine.runs.load(run.request_id, run.run_id) or run
    tell_waiting(engine, judged)
    return judged
