"""What runs cost (RUN-19): the runs of the last twelve months are read, no older ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.morning.costs import Costs, first_month, sum_costs
from aiflow.usecases.morning.recent_runs import runs_since

if TYPE_CHECKING:
    from datetime import tzinfo

    from aiflow.usecases.engine import Engine


def tell_costs(engine: Engine, zone: tzinfo | None = None) -> Costs:
    """Sum up what runs cost, by a zone's clock (the machine's without one)."""
    now = engine.time.now()
    return sum_costs(runs_since(engine.backlog.runs, first_month(now, zone)), now, zone)
