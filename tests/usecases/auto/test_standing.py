"""One look at a checkout (CLI `status`): what runs, what waits, what is next, the last auto-run, the cost."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from aiflow.adapters.memory.control import MemoryAutoRecords
from aiflow.domain.agents.usage import Usage
from aiflow.domain.auto.session import AutoSession, Result
from aiflow.domain.lifecycle import AutoRunState, RunOutcome
from aiflow.domain.lock import Lock
from aiflow.domain.request import RequestId
from aiflow.domain.runs.run import Run
from aiflow.messages import Texts
from aiflow.usecases.auto.standing import COST_DAYS, look_around
from aiflow.usecases.engine import Engine
from aiflow.usecases.shapes.status import standing_shape
from builders import NOW, write_request
from real_engine import engine_at, keep
from run_builders import done, in_step

pytestmark = pytest.mark.spec("CLI")
TEXTS = Texts("en")


def run_of(engine: Engine, request_id: str, days_ago: float, run: Run, cost: float = 0.0) -> Run:
    """Keep a run that began some days ago, by its id."""
    began = engine.time.now() - timedelta(days=days_ago)
    run_id = f"RUN-{began:%Y%m%d}-000000-{int(request_id[3:]):06x}"
    return keep(engine, replace(run, request_id=request_id, run_id=run_id, usage=Usage(1, 10, 0, 5, cost)))


def test_everything_is_in_one_answer(repository: Path) -> None:
    for request_id, status in (("RQ-1", "running"), ("RQ-2", "blocked"), ("RQ-3", "ready"), ("RQ-4", "done")):
        write_request(repository, request_id, None, status=status)
    engine = engine_at(repository)
    at_work, waits = run_of(engine, "RQ-1", 0, in_step(2), 0.5), run_of(engine, "RQ-2", 1, done(), 0.25)
    night = AutoSession(
        NOW,
        runs=1,
        done=1,
        state=AutoRunState.COMPLETED,
        reason_code="AUTO_NOTHING_RUNNABLE",
        results=(Result("RQ-2", waits.run_id, RunOutcome.AWAITING_ACCEPTANCE),),
    )
    lease = engine.locks.acquire_request(RequestId("RQ-1"), at_work.run_id)
    assert not isinstance(lease, Lock)
    try:
        shape = standing_shape(look_around(engine, MemoryAutoRecords(night), TEXTS))
    finally:
        lease.release()
    running = shape["running"][0]
    assert [running[key] for key in ("request_id", "run_id", "state")] == ["RQ-1", at_work.run_id, "IMPLEMENTING"]
    assert (running["current_step_id"], running["steps_done"], running["steps"]) == ("S02", 1, 3)
    assert [(each["request_id"], each["command"]) for each in shape["waiting"]] == [("RQ-2", "aiflow accept RQ-2")]
    assert (shape["next"]["request_id"], shape["stats"]) == ("RQ-3", {"total": 4, "ready": 1, "runnable": 1})
    assert (shape["auto"]["is_running"], shape["auto"]["session"]["done"]) == (False, 1)
    assert (shape["spent"]["runs"], shape["spent"]["cost_usd"], shape["spent"]["tokens"]) == (2, 0.75, 30)


@pytest.mark.spec("SEL-7", "RUN-11")
def test_a_dead_holders_request_does_not_run_and_is_what_the_next_start_continues(repository: Path) -> None:
    write_request(repository, "RQ-1", None, status="running")
    engine = engine_at(repository)
    run_of(engine, "RQ-1", 0, in_step(1))
    standing = look_around(engine, MemoryAutoRecords(), TEXTS)
    assert standing.running == ()
    assert ([each.id for each in standing.continued], standing.waiting) == (["RQ-1"], ())


def test_what_cannot_be_continued_waits(repository: Path) -> None:
    write_request(repository, "RQ-1", None, status="running")
    engine = engine_at(repository)
    run_of(engine, "RQ-1", 0, in_step(1))
    tried = AutoSession(NOW, state=AutoRunState.RUNNING, not_again=frozenset({"RQ-1"}))
    standing = look_around(engine, MemoryAutoRecords(tried), TEXTS)
    assert [(each.request_id, each.reason_code) for each in standing.waiting] == [("RQ-1", "PROCESS_CRASHED")]
    assert standing.continued == ()


def test_the_cost_is_that_of_the_last_days_whatever_there_was_before(repository: Path) -> None:
    engine = engine_at(repository)
    for number, days in enumerate((0, COST_DAYS - 2, COST_DAYS + 2, 100)):
        run_of(engine, f"RQ-{number}", days, done(), 1.0)
    spent = look_around(engine, MemoryAutoRecords(), TEXTS).spent
    assert (spent.runs, spent.cost_usd) == (2, 2.0)


@pytest.mark.spec("REQ-10")
def test_the_drafts_that_agents_proposed_are_named(repository: Path) -> None:
    write_request(repository, "RQ-1", None, status="ready")
    for request_id, status in (("RQ-2", "draft"), ("RQ-3", "ready")):
        write_request(repository, request_id, None, status=status, found_in="RQ-1")
    write_request(repository, "RQ-4", None, status="draft")
    shape = standing_shape(look_around(engine_at(repository), MemoryAutoRecords(), TEXTS))
    assert [(each["request_id"], each["found_in"]) for each in shape["follow_ups"]] == [("RQ-2", "RQ-1")]
