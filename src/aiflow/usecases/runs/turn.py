"""Wait for one's turn in this checkout (LCK-7): one run at a time, and an auto-run lets others that wait go first."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from aiflow.errors import ConflictError
from aiflow.usecases.runs.locks import LOOK_SECONDS, occupant, reclaim_locks

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine

Outcome = TypeVar("Outcome")

# A holder that crashed meanwhile is looked for this often.
RECLAIM_SECONDS = 0.5


class Patience(NamedTuple):
    """How somebody waits: what they hear of each refusal, when it is enough, and which refusals pass."""

    told: Callable[[ConflictError], None]
    is_enough: Callable[[], bool]
    codes: frozenset[str] = frozenset({"RUN_IN_PROGRESS"})


def in_turn(engine: Engine, work: Callable[[Engine], Outcome], patience: Patience) -> Outcome:
    """Work as soon as no other process does in this checkout; raise the refusal once it was waited enough."""
    # Auto-run is asked to wait only until the turn is ours: then it waits for our lock, as for any other.
    with contextlib.ExitStack() as waiting:

        def observe(run: Run) -> None:
            waiting.close()
            engine.voice.observe(run)

        begun, is_known = engine.heard_by(observe=observe), False
        while True:
            try:
                return work(begun)
            except ConflictError as error:
                if error.reason_code not in patience.codes or patience.is_enough():
                    raise
                if error.reason_code == "RUN_IN_PROGRESS" and not is_known:
                    waiting.enter_context(engine.control.waiting_for_turn())
                    is_known = True
                patience.told(error)
            # A process that runs shows in the locks; an auto-run that waits for work does not, and is asked less often.
            engine.time.sleep(LOOK_SECONDS if is_known else RECLAIM_SECONDS)
            wait_until_free(engine, patience.is_enough)


def wait_until_free(engine: Engine, is_enough: Callable[[], bool]) -> None:
    """Wait until no process runs in this checkout, or it was waited enough; a stale lock is reclaimed."""
    until = engine.time.monotonic() + RECLAIM_SECONDS
    while occupant(engine) and not is_enough():
        engine.time.sleep(LOOK_SECONDS)
        if engine.time.monotonic() >= until:
            reclaim_locks(engine)
            until = engine.time.monotonic() + RECLAIM_SECONDS
