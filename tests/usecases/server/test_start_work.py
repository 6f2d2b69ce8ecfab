"""Starting work (API-2): nothing is said to have begun that has not."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, cast

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.lock import Lock, LockType
from aiflow.domain.runs.resume import ResumeMode
from aiflow.errors import AiflowError
from aiflow.ports.journal import JournalEntry, JournalPage
from aiflow.ports.server import Worker
from aiflow.ports.sources import RequestSource
from aiflow.usecases.server.orders import (
    AutoWishes,
    LeftOut,
    Resumption,
    _resume_line,
    auto_order,
    entered,
    run_order,
)
from aiflow.usecases.server.start_work import PATIENCE_SECONDS, WorkStarter
from memory_engine import MemoryCheckout, MemoryProcess, obliging

PID = 4711


def a_source() -> RequestSource:
    """Give a source that has two requests."""
    checkout = MemoryCheckout()
    for name in ("RQ-1", "RQ-2"):
        checkout.add(name)
    return MemoryProcess(checkout, 1, PlayedTime(), obliging(checkout)).engine().source


class Site:
    """A journal, workers, locks and time that a test plays: `script` is what happens in each moment."""

    def __init__(self, *script: Any) -> None:
        self.script, self.seconds = [*script], 0.0
        self.entries: list[dict[str, object]] = []
        self.ended: dict[str, object] | None = None
        self.has_ended = False
        self.started: list[tuple[str, ...]] = []
        self.locks: tuple[dict[Any, Lock], Lock | None] = ({}, None)

    def starter(self) -> WorkStarter:
        site = cast("Any", self)
        return WorkStarter(site, site, site, site, contextlib.nullcontext())

    def start(self, argv: Sequence[str], person: str = "") -> Worker:
        self.started.append(tuple(argv))
        return Worker(PID, "w", tuple(argv))

    def exit_code(self, worker: Worker) -> int | None:
        return 0 if self.has_ended else None

    def answer(self, worker: Worker) -> dict[str, object] | None:
        return self.ended

    def said(self, worker: Worker) -> str:
        return "it said this"

    def held(self) -> tuple[dict[Any, Lock], Lock | None]:
        return self.locks

    def end(self) -> str:
        return str(len(self.entries))

    def read(self, cursor: str) -> JournalPage:
        found = tuple(JournalEntry("", each) for each in self.entries[int(cursor) :])
        return JournalPage(found, self.end())

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        if self.script:
            self.script.pop(0)(self)

    def write(self, pid: int = PID, **data: object) -> None:
        known: dict[str, object] = {"kind": "transition", "request_id": "RQ-1", "run_id": "RUN-1"}
        self.entries.append({**known, "data": data, "pid": pid})

    def leave(self, **answer: object) -> None:
        self.has_ended, self.ended = True, answer or None


@pytest.mark.spec("API-2")
def test_a_run_has_begun_when_its_worker_has_it_at_work() -> None:
    site = Site(
        lambda site: site.write(pid=1, to="PLANNING"),  # a terminal's
        lambda site: site.write(to="NEEDS_INPUT"),  # a crash that it marked
        lambda site: site.write(to="PLANNING"),
    )
    begun = site.starter().start(run_order(a_source(), "RQ-1", "Aki"))
    assert (begun.request_id, begun.run_id, begun.pid) == ("RQ-1", "RUN-1", PID)
    assert site.script == []
    assert site.started == [("--json", "run", "--", "RQ-1")]


@pytest.mark.spec("API-2")
def test_what_neither_begins_nor_ends_is_unconfirmed_after_thirty_seconds() -> None:
    site = Site()
    with pytest.raises(AiflowError) as refusal:
        site.starter().start(run_order(a_source(), "RQ-1", ""))
    assert refusal.value.reason_code == "START_UNCONFIRMED"
    assert site.seconds == pytest.approx(PATIENCE_SECONDS, abs=1)


@pytest.mark.spec("API-2", "ERR-2")
def test_a_worker_that_ends_is_answered_with_its_own_refusal() -> None:
    error = {"reason_code": "NOT_READY", "context": {"request_id": "RQ-1", "status": "draft", "commands": ["aiflow x"]}}
    site = Site(lambda site: site.leave(error=error))
    with pytest.raises(AiflowError) as refusal:
        site.starter().start(run_order(a_source(), "RQ-1", ""))
    assert (refusal.value.reason_code, refusal.value.context["status"]) == ("NOT_READY", "draft")
    silent = Site(lambda site: site.leave())
    with pytest.raises(AiflowError) as refusal:
        silent.starter().start(run_order(a_source(), "RQ-1", ""))
    assert (refusal.value.reason_code, refusal.value.context["detail"]) == ("INTERNAL_ERROR", "it said this")


@pytest.mark.spec("API-2", "AUT-1")
def test_an_auto_run_that_the_doctor_stopped_never_began() -> None:
    checks = [{"result": "PASS"}, {"result": "FAIL", "reason_code": "WORKTREE_DIRTY", "message": "edited"}]
    site = Site(lambda site: site.leave(reason_code="DOCTOR_FAILED", checks=checks))
    with pytest.raises(AiflowError) as refusal:
        site.starter().start(auto_order(AutoWishes(watch=True, max_runs=3), ""))
    assert (refusal.value.reason_code, refusal.value.context["detail"]) == ("DOCTOR_FAILED", "edited")
    assert site.started == [("--json", "auto", "--watch", "--max-runs=3")]


@pytest.mark.spec("API-1", "LCK-7")
def test_a_worker_with_a_lock_is_the_only_one() -> None:
    site = Site(lambda site: site.write(to="PLANNING"))
    starter = site.starter()
    starter.start(run_order(a_source(), "RQ-1", ""))
    run = Lock(LockType.REQUEST, "RQ-1", "RUN-1", PID)
    queue = Lock(LockType.QUEUE, pid=PID)
    for locks, order, code, run_id in (
        (({"RQ-1": run}, None), run_order(a_source(), "RQ-2", ""), "RUN_IN_PROGRESS", "RUN-1"),
        (({"RQ-1": run}, None), auto_order(AutoWishes(), ""), "RUN_IN_PROGRESS", "RUN-1"),
        (({"RQ-1": run}, queue), auto_order(AutoWishes(), ""), "QUEUE_IN_PROGRESS", "RUN-1"),
        (({"RQ-1": run}, queue), run_order(a_source(), "RQ-1", ""), "RUN_IN_PROGRESS", "RUN-1"),
        (({}, queue), run_order(a_source(), "RQ-1", ""), "QUEUE_IN_PROGRESS", None),
    ):
        site.locks = locks
        with pytest.raises(AiflowError) as refusal:
            starter.start(order)
        assert (refusal.value.reason_code, refusal.value.context.get("run_id")) == (code, run_id)
    assert len(site.started) == 1


@pytest.mark.spec("API-2", "RUN-17", "RUN-18")
def test_what_a_run_leaves_out_is_typed_as_at_a_terminal() -> None:
    how = LeftOut(quick=True, no_baseline=True)
    assert run_order(a_source(), "RQ-1", "", how).argv == ("run", "--quick", "--no-baseline", "--", "RQ-1")
    line = ("replan", "--no-baseline", "--", "RUN-1")
    assert _resume_line("RUN-1", Resumption(ResumeMode.REPLAN, no_baseline=True)) == line


@pytest.mark.spec("API-2")
def test_words_of_a_person_are_never_taken_for_options() -> None:
    how = Resumption(ResumeMode.RETRY_STEP, "--help", force=True, answer="--force", keep_changes=True)
    line = ("retry-step", "--keep-changes", "--force", "--answer=--force", "--", "RUN-1", "--help")
    assert _resume_line("RUN-1", how) == line
    assert _resume_line("RUN-1", Resumption(ResumeMode.REPLAN, force=True)) == ("replan", "--", "RUN-1")
    assert _resume_line("RUN-1", Resumption(update=True)) == ("resume", "--update", "--", "RUN-1")
    with pytest.raises(AiflowError):
        run_order(a_source(), "--all", "")


def test_a_replaced_run_is_not_the_one_that_replaces_it() -> None:
    is_begun = entered("RQ-1", other_than="RUN-1")
    entry: dict[str, object] = {"request_id": "RQ-1", "kind": "transition", "data": {"to": "PLANNING"}}
    assert [is_begun({**entry, "run_id": run_id}) for run_id in ("RUN-1", "RUN-2")] == [False, True]
