"""Letting a run go on while somebody else does (RUN-6, LCK-7): what was decided before the lock is looked at again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from aiflow.domain.lifecycle import RunState
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.errors import ConflictError
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from simulation.kills import ONE, a_bench, asked


class Slow:
    """Locks that take a moment to be taken, in which somebody else is faster."""

    def __init__(self, real: Any, meanwhile: Callable[[], object]) -> None:
        self._real = real
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def acquire_request(self, *args: Any, **more: Any) -> Any:
        self._meanwhile()
        return self._real.acquire_request(*args, **more)


@pytest.mark.spec("RUN-6", "LCK-7")
@pytest.mark.parametrize("mode", list(ResumeMode))
def test_a_run_that_went_on_meanwhile_is_neither_resumed_nor_replaced(mode: ResumeMode) -> None:
    bench = a_bench()
    run = asked(bench)
    engine, others = bench.engine(), bench.engine()

    def meanwhile() -> None:
        assert resume_run(others, run, ResumeWish(answer="That one.")).state is RunState.DONE

    slow: Any = Slow(engine.locks, meanwhile)
    step_id = run.current_step_id if mode is ResumeMode.RETRY_STEP else None
    wish = ResumeWish(Goal(mode, step_id, is_forced=True), "The other one.")
    with pytest.raises(ConflictError) as caught:
        resume_run(replace(engine, locks=slow), run, wish)
    assert caught.value.reason_code == "RUN_NOT_RESUMABLE"
    [there] = filter(None, bench.checkout.runs.runs.values())
    assert (there.state, there.replaced_by) == (RunState.DONE, None)
    assert bench.checkout.status(ONE) == "blocked"
    assert bench.checkout.locks.locks == {}
