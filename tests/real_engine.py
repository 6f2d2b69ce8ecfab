"""The engine of a real repository inside the test's own process, to ask it things."""

from __future__ import annotations

from pathlib import Path

from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.domain.agents.call import Brief
from aiflow.domain.runs.run import Run
from aiflow.messages import Texts
from aiflow.settings import settle
from aiflow.usecases.engine import Engine, Voice
from aiflow.wiring import build_engine, project_at


def engine_at(root: Path) -> Engine:
    """The engine of a checkout, with every setting at its default."""
    (root / "requests").mkdir(exist_ok=True)
    return build_engine(project_at(str(root)), settle({}), MemoryJournal(), Voice(Texts("en")))


def keep(engine: Engine, run: Run) -> Run:
    """Write a run down, and return it as it is read back."""
    engine.runs.create(run, Brief(run.request_id, run.title, "body", "P2"))
    kept = engine.runs.load(run.request_id, run.run_id)
    assert kept is not None
    return kept
