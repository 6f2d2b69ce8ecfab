"""Which histories are played: the usual ones, more by AIFLOW_SEEDS=n or AIFLOW_SOAK=1, or the one of AIFLOW_SEED=n."""

from __future__ import annotations

import os
from collections.abc import Iterable

from aiflow.adapters.memory.queue import MemoryStore
from forms import SEED, rounds
from simulation.crowd import a_crowd, some_faults
from simulation.scene import Scene

USUAL, SOAK = 240, 20_000
# So that several workers share them.
PARTS = 8
# The first are played by the test that looks at what happens in them, whichever seed is chosen.
FIRST = range(40)


def seeds(part: int = 0, parts: int = 1) -> Iterable[int]:
    """Return the seeds of one part; all parts and the first are all histories."""
    if chosen := os.environ.get(SEED):
        return [int(chosen)] if part == 0 else []
    return range(len(FIRST) + part, int(os.environ.get("AIFLOW_SEEDS", rounds(USUAL, SOAK))), parts)


def play(seed: int, store: MemoryStore | None = None) -> Scene:
    """Play one history; raises what must not happen, with the seed and the end of the history."""
    scene = Scene(seed, store)
    scene.play(a_crowd, some_faults(scene))
    return scene
