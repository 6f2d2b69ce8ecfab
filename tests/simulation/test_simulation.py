"""Several processes at once, killed, paused, unanswered, with clocks that are set: every seed is one history.

What is looked at after every step is in `invariants`; `AIFLOW_SEED=<n>` plays one history again, `AIFLOW_SEEDS=<n>`
plays so many.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.seeds import PARTS, play, seeds


@pytest.mark.longer
@pytest.mark.spec("LCK-3", "LCK-5", "LCK-7", "RUN-11", "RUN-14", "QUE-5", "QUE-6", "QUE-7", "QUE-10", "AUT-4")
@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_befalls_whom_nothing_is_lost_nor_done_twice_and_all_comes_to_rest(part: int) -> None:
    for seed in seeds(part, PARTS):
        play(seed)


def test_the_histories_are_worth_playing() -> None:
    """What they are about does happen in them: every fault, and work that ends well all the same."""
    told = "\n".join(what for seed in range(40) for _, _, what in play(seed).world.trace)
    for word in ("KILLED", "PAUSED", "NO ANSWER (before)", "NO ANSWER (after)", "COMPLETE", "RUNNER_LOST", "CLOCK"):
        assert word in told, word


SCRIPT = """
import sys
from importlib import import_module
from simulation.scene import COARSE
from simulation.seeds import play
for name, seconds in COARSE.items():
    module, _, constant = name.rpartition(".")
    setattr(import_module(module), constant, seconds)
for seed in map(int, sys.argv[1:]):
    print(play(seed).world.story(10_000))
"""


def test_a_seed_is_one_history() -> None:
    tests = str(Path(__file__).parents[1])
    stories = set()
    for chance in ("0", "1", "random"):  # no set's order may matter
        environ = {**os.environ, "PYTHONHASHSEED": chance, "PYTHONPATH": tests}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, "3", "4", "7"], env=environ, capture_output=True, check=True, timeout=300
        )
        stories.add(hashlib.sha256(done.stdout).hexdigest())
    assert len(stories) == 1
