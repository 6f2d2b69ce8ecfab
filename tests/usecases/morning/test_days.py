"""Fourteen days of a checkout: nothing older is read, and what was read stays known until it changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import Path

import pytest

from aiflow.adapters.files import file_marks
from aiflow.adapters.run_folders import run_files
from aiflow.adapters.run_folders.remembered_runs import RememberedRuns
from aiflow.domain.agents.usage import Usage
from aiflow.usecases.engine import Engine
from aiflow.usecases.morning.days import tell_days
from aiflow.usecases.shapes.morning import days_shape
from builders import write_request
from real_engine import engine_at, keep
from run_builders import done

pytestmark = pytest.mark.spec("WEB-1", "PRF-7")


def run_of(engine: Engine, number: int, days_ago: float, cost: float = 0.0) -> str:
    """Keep a run of a request of its own that began some days ago."""
    began = engine.time.now().astimezone(UTC) - timedelta(days=days_ago)
    run_id = f"RUN-{began:%Y%m%d-%H%M%S}-{number:06x}"
    used = Usage(1, 10, 0, 5, cost, 90.0)
    keep(engine, replace(done(), request_id=f"RQ-{number}", run_id=run_id, usage=used, created_at=began))
    return run_id


def watch_reading(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note which files of runs are read."""
    read: list[str] = []
    real = run_files._read_stage

    def note(path: str) -> object:
        read.append(path)
        return real(path)

    monkeypatch.setattr(run_files, "_read_stage", note)
    return read


def test_only_the_last_days_are_read(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_at(repository)
    for number, days_ago in enumerate((0, 3, 3.1, 20, 21, 22)):
        run_of(engine, number, days_ago, 0.5)
    write_request(repository, "RQ-0", None, status="done")
    read = watch_reading(monkeypatch)
    last = tell_days(engine, UTC)
    assert (last.total.runs, last.total.done, last.total.waited) == (3, 1, 2)
    assert (last.total.agent_seconds, last.total.cost_usd) == (270.0, 1.5)
    assert len(read) == 3
    shape = days_shape(last)
    assert (len(shape["days"]), shape["total"]["runs"], shape["total"]["day"]) == (14, 3, None)
    assert shape["days"][-1]["day"] == engine.time.now().astimezone(UTC).date().isoformat()


def test_a_process_that_stays_reads_a_run_once(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_at(repository)
    run_id = run_of(engine, 1, 0)
    stage = repository / "runs" / "RQ-1" / run_id / "stage.json"
    monkeypatch.setattr(file_marks, "YOUNG_NS", 0)  # its change is of another size, and seen however fast it comes
    read = watch_reading(monkeypatch)
    runs = RememberedRuns(repository)
    first, again = (runs.page(None, 10)[0] for _ in range(2))
    assert (first, len(read)) == (again, 1)
    assert first[0][1].record is not None
    assert runs.latest()[first[0][0]].record is None
    stage.write_text(stage.read_text().replace('"DONE"', '"FAILED"', 1))
    assert runs.page(None, 10)[0][0][1].state != first[0][1].state
