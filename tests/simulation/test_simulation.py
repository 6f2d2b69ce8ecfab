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

from aiflow.domain.lifecycle import RunState
from memory_engine import MemoryCheckout
from simulation.invariants import late_file
from simulation.seeds import FIRST, PARTS, play, seeds


@pytest.mark.longer
@pytest.mark.spec("LCK-3", "LCK-5", "LCK-7", "RUN-11", "RUN-14", "QUE-5", "QUE-6", "QUE-7", "QUE-10", "AUT-4")
@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_befalls_whom_nothing_is_lost_nor_done_twice_and_all_comes_to_rest(part: int) -> None:
    for seed in seeds(part, PARTS):
        play(seed)


FAULTS = ("KILLED", "PAUSED", "NO ANSWER (before)", "NO ANSWER (after)", "CLOCK", "COMPLETE", "RUNNER_LOST")
WAYS = ("BASELINE is", "CONTINUED is", "BASE_MERGED is", "BASE_CONFLICTS is", "SENT_BACK is", "REPLANNED", "UNDONE is")


def _was_late(checkout: MemoryCheckout) -> int:
    """Count the runs in which the last review missed something, which was done then."""
    done = (run for run in checkout.runs.runs.values() if run and run.state is RunState.DONE)
    return sum(late_file(run.run_id) in checkout.repository.files_of(run.tip) for run in done)


@pytest.mark.spec("LCK-3", "LCK-5", "LCK-7", "RUN-11", "RUN-14", "QUE-5", "QUE-6", "QUE-7", "QUE-10", "AUT-4")
def test_the_histories_are_worth_playing() -> None:
    """What they are about does happen in the first, and work ends well all the same; most of it more than once."""
    scenes = [play(seed) for seed in FIRST]
    told = "\n".join(what for scene in scenes for _, _, what in scene.world.trace)
    for word in (*FAULTS, *WAYS):
        assert word in told, word
    checkouts = [checkout for scene in scenes for checkout in scene.checkouts]
    runs = [run for checkout in checkouts for run in checkout.runs.runs.values() if run]
    done = [run for run in runs if run.state is RunState.DONE]
    assert sum(run.continues is not None for run in done) > 2
    assert sum(run.is_dropped for run in runs) > 2
    assert sum(_was_late(checkout) for checkout in checkouts) > 2
    assert sum(bool(run.follow_ups.kept) for run in runs) > 10


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
