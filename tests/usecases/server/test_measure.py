"""What `/metrics` counts: every run once, only what changed read again, what was cleaned away still counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.system_time import SystemTime
from aiflow.domain.activity import About, Activity, Actor, recovered, refused
from aiflow.domain.agents.usage import Usage
from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import RequestId
from aiflow.domain.runs.run import Run
from aiflow.domain.server.measures import Measures, figures_of
from aiflow.usecases.runs.accept import accept_run
from aiflow.usecases.runs.start import start_run
from aiflow.usecases.server.measure import measure
from builders import NOW
from memory_engine import MemoryCheckout, MemoryProcess, obliging
from run_builders import at, done, fail, in_step


class Counting:
    """A run store that notes what is read of it."""

    def __init__(self, runs: object) -> None:
        self.runs, self.read = runs, list[str]()

    def load(self, request_id: str, run_id: str) -> Run | None:
        self.read.append(run_id)
        found: Run | None = self.runs.load(request_id, run_id)  # type: ignore[attr-defined]
        return found

    def __getattr__(self, name: str) -> object:
        return getattr(self.runs, name)


@pytest.mark.spec("ERR-4")
def test_each_run_counts_once_as_it_stands_now_and_only_what_changed_is_read() -> None:
    checkout = MemoryCheckout()
    for name in ("RQ-1", "RQ-2"):
        checkout.add(name)
    engine = MemoryProcess(checkout, 1, SystemTime(), obliging(checkout)).engine()
    first = start_run(engine, RequestId("RQ-1"))
    runs, found = Counting(engine.runs), Measures()
    measure(found, runs, checkout.journal)  # type: ignore[arg-type]
    assert found.outcomes == {("DONE", ""): 1}
    assert found.usage.calls == 3
    assert [figures.steps for figures in found.runs.values()] == [1]

    second = start_run(engine, RequestId("RQ-2"))
    accept_run(engine, first)
    runs.read.clear()
    measure(found, runs, checkout.journal)  # type: ignore[arg-type]
    assert found.outcomes == {("ACCEPTED", ""): 1, ("DONE", ""): 1}
    assert sorted(runs.read) == sorted((first.run_id, second.run_id))

    runs.read.clear()
    measure(found, runs, checkout.journal)  # type: ignore[arg-type]
    assert runs.read == []  # nothing happened
    assert found.usage.calls == 6


def test_a_run_that_was_cleaned_away_stays_counted() -> None:
    checkout = MemoryCheckout()
    checkout.add("RQ-1")
    engine = MemoryProcess(checkout, 1, SystemTime(), obliging(checkout)).engine()
    run = start_run(engine, RequestId("RQ-1"))
    found = measure(Measures(), engine.runs, checkout.journal)
    checkout.runs.runs.clear()
    checkout.journal.append(recovered(NOW, Actor.ENGINE, About("RQ-1", run.run_id), "LOCK_STALE_RECOVERED"))
    measure(found, engine.runs, checkout.journal)
    assert found.outcomes == {("DONE", ""): 1}
    assert found.recoveries == {"LOCK_STALE_RECOVERED": 1}


def test_recoveries_and_refusals_are_counted_by_reason_through_many_pages() -> None:
    journal = MemoryJournal()
    entries: list[Activity] = [recovered(NOW, Actor.ENGINE, About("RQ-1"), "PROCESS_CRASHED")] * 1200
    for entry in (*entries, refused(NOW, Actor.RUNNER, About("RQ-1"), "LOCK_MISMATCH")):
        journal.append(entry)
    engine = MemoryProcess(MemoryCheckout(), 1, SystemTime(), obliging(MemoryCheckout())).engine()
    found = measure(Measures(), engine.runs, journal)
    assert found.recoveries == {"PROCESS_CRASHED": 1200}
    assert found.refusals == {"LOCK_MISMATCH": 1}


def test_the_time_in_which_a_run_waits_for_a_person_is_no_work() -> None:
    stopped = fail(fail(in_step(), "UNIT_TEST_FAILED"), "UNIT_TEST_FAILED")
    assert stopped.state is RunState.NEEDS_INPUT
    late = replace(stopped, history=(*stopped.history, replace(stopped.history[-1], at=at(10_000), event="RESUMED")))
    assert figures_of(late).worked_seconds == figures_of(stopped).worked_seconds
    assert figures_of(stopped).reason_code == "RETRY_LIMIT_EXCEEDED"


def test_steps_and_what_agents_used_are_summed() -> None:
    run = replace(done(), usage=Usage(calls=2, input_tokens=10, cached_tokens=4, output_tokens=5, cost_usd=0.5))
    figures = figures_of(run)
    assert (figures.outcome, figures.steps) == ("DONE", len(run.plan))
    assert 0 < figures.step_seconds <= figures.worked_seconds
    total = Measures(runs={"a": figures, "b": figures}).usage
    assert (total.calls, total.tokens, total.cost_usd) == (4, 30, 1.0)
    assert run.history[-1].at - run.created_at >= timedelta(seconds=figures.worked_seconds)
