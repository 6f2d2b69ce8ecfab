"""Begin an auto-run at a time that was set (AUT-3, `auto --at`): checked now, while the person is still there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.health import Health
from aiflow.usecases.health.check_health import check_quick, unhealthy

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from aiflow.usecases.engine import Engine

LOOK_SECONDS = 0.5


def wait_for_start(engine: Engine, at: datetime, is_enough: Callable[[], bool]) -> bool:
    """Wait until a time by the clock, holding nothing meanwhile; False if the person lost patience, or called it off.

    What the doctor would refuse then is refused at once.
    """
    failed = [finding for finding in check_quick(engine)[1] if finding.health is Health.FAIL]
    if failed:
        raise unhealthy(engine, failed)
    with engine.control.beginning_at(at) as is_called_off:
        while engine.time.now() < at:
            if is_enough() or is_called_off():
                return False
            engine.time.sleep(LOOK_SECONDS)
        return not is_enough() and not is_called_off()
