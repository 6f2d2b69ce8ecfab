"""How it is with auto-run (AUT-4), for whoever looks in: at work by whom and at what, or how the last one ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from aiflow.domain.auto.session import AutoSession, Result
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.lifecycle import AutoRunState, RunOutcome
from aiflow.domain.lock import Lock
from aiflow.domain.request import RequestId
from aiflow.messages import Texts
from aiflow.usecases.auto.status import auto_status
from aiflow.usecases.shapes.auto import auto_report_shape
from builders import NOW, write_request
from real_engine import engine_at

pytestmark = pytest.mark.spec("AUT-4")

ENDED = AutoSession(
    NOW,
    runs=2,
    done=1,
    state=AutoRunState.COMPLETED,
    reason_code="AUTO_NOTHING_RUNNABLE",
    began_at=NOW,
    changed_at=NOW,
    results=(Result("RQ-1", "RUN-1", RunOutcome.ACCEPTED),),
)
WORKING = replace(ENDED, state=AutoRunState.RUNNING, reason_code=None)


@dataclass
class Records:
    """What is kept of the auto-run."""

    session: AutoSession | None = None

    def load(self) -> AutoSession | None:
        return self.session

    def save(self, session: AutoSession) -> None:
        self.session = session


def test_where_there_never_was_one_there_is_nothing(repository: Path) -> None:
    report = auto_status(engine_at(repository), Records(), Texts("en"))
    assert (report.is_on, report.session, report.summary, report.was_cut) == (False, None, None, False)
    shape = auto_report_shape(report)
    assert (shape["is_running"], shape["since"], shape["session"], shape["summary"]) == (False, None, None, None)


def test_one_that_is_at_work_is_told_with_its_holder_its_run_and_its_session_so_far(repository: Path) -> None:
    engine = engine_at(repository)
    queue, request = engine.locks.acquire_queue(), engine.locks.acquire_request(RequestId("RQ-7"), "RUN-7")
    assert not isinstance(queue, Lock)
    assert not isinstance(request, Lock)
    try:
        engine.control.ask_stop(StopRequest.AFTER_RUN)
        report = auto_status(engine, Records(WORKING))
        shape = auto_report_shape(report)
        young = auto_status(engine, Records(ENDED))
    finally:
        request.release()
        queue.release()
    assert (report.is_on, report.is_current, report.was_cut, report.summary) == (True, True, False, None)
    assert (shape["pid"], shape["host"]) == (queue.lock.pid, queue.lock.host)
    assert queue.lock.created_at is not None
    assert shape["since"] == queue.lock.created_at.isoformat()
    assert (shape["request_id"], shape["run_id"], shape["stop_request"]) == ("RQ-7", "RUN-7", "after_run")
    assert (shape["session"]["runs"], shape["session"]["done"], shape["is_session_current"]) == (2, 1, True)
    assert [each["request_id"] for each in shape["session"]["results"]] == ["RQ-1"]
    # One that has only just begun has not recorded its own session.
    assert (young.is_on, young.is_current) == (True, False)


def test_the_last_one_is_summed_up_with_the_backlog_as_it_is(repository: Path) -> None:
    write_request(repository, "RQ-1", None, status="done")
    write_request(repository, "RQ-2", None, status="ready")
    report = auto_status(engine_at(repository), Records(ENDED), Texts("en"))
    assert (report.is_on, report.is_current, report.was_cut) == (False, False, False)
    shape = auto_report_shape(report)["summary"]
    assert (shape["reason_code"], shape["done"]) == ("AUTO_NOTHING_RUNNABLE", 1)
    assert [each["request_id"] for each in shape["unreached"]] == ["RQ-2"]


def test_one_whose_process_died_was_cut_off(repository: Path) -> None:
    report = auto_status(engine_at(repository), Records(WORKING))
    assert (report.is_on, report.is_current, report.was_cut) == (False, False, True)
