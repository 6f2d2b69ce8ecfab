"""What would keep a runner of this checkout from taking a task (RUN-7), told while nobody is there who says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.health import Health
from aiflow.domain.standing import StandingCode, standing_of
from aiflow.usecases.check_health import check_quick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aiflow.domain.health import Finding
    from aiflow.domain.standing import Scene
    from aiflow.domain.task import Task
    from aiflow.usecases.engine import Engine


def foresee_refusal(engine: Callable[[], Engine], tasks: Iterable[Task], scene: Scene) -> tuple[Finding, ...]:
    """Return what the doctor fails at, if a task needs a runner of this checkout and none lives.

    It may be mended before one comes, so it is no reason to refuse the task. A runner that lives has its own settings,
    and tells itself what keeps it; one elsewhere has another checkout.
    """
    standings = (standing_of(task, scene) for task in tasks)
    if not any(each is not None and each.code is StandingCode.NO_RUNNER_HERE for each in standings):
        return ()
    _, findings = check_quick(engine())
    return tuple(each for each in findings if each.health is Health.FAIL)
