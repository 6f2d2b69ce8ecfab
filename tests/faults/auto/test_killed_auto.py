"""Auto-run killed behind every write of its own: the next one carries on, and each run counts once (AUT-4)."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.kill_points import one_of_each
from faults.killing import KILLED, Scene
from forms import is_soak

pytestmark = pytest.mark.faults

REQUESTS = ["RQ-1", "RQ-2"]
# Files that only auto-run writes; what runs write is killed in `test_killed_engine`.
OWN = ("auto.json", "queue.lock", "/activity/")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """Give a project with two requests."""
    scene = Scene(tmp_path, steps=1, requests=2)
    yield scene
    scene.close()


def has_ended(scene: Scene) -> bool:
    """Tell whether the session's record says that it is over."""
    path = scene.root / ".aiflow/auto.json"
    return path.exists() and json.loads(path.read_text())["state"] == "completed"


def check_carried_on(scene: Scene) -> None:
    """Check that another auto-run finishes what was begun, and counts everything once."""
    was_over = has_ended(scene)
    done = scene.aiflow("auto")
    assert done.code == 0, done
    answer = done.answer
    assert answer["reason_code"] == "AUTO_NOTHING_RUNNABLE"
    assert (answer["runs"], answer["done"]) == ((0, 0) if was_over else (2, 2))
    assert sorted(result["request_id"] for result in answer["results"]) == ([] if was_over else REQUESTS)
    for request_id in REQUESTS:
        assert len(scene.run_ids(request_id)) == 1
        scene.check_done(request_id)
    assert has_ended(scene)


@pytest.mark.spec("AUT-4", "AUT-3", "RUN-11", "LCK-6")
def test_auto_run_killed_behind_any_write_of_its_own_is_carried_on(scene: Scene, chance: random.Random) -> None:
    scene.keep()
    whole = scene.aiflow("auto")
    assert (whole.code, whole.answer["runs"], whole.answer["done"]) == (0, 2, 2)
    own = [number for number, line in enumerate(whole.writes, 1) if any(name in line for name in OWN)]
    turns = sorted({number + more for number in own for more in (0, 1)} & set(range(1, len(whole.writes) + 1)))
    for turn in turns if is_soak() else one_of_each(turns, whole.writes, chance, 20):
        scene.restore()
        assert scene.aiflow("auto", turn=turn).code == KILLED, turn
        try:
            check_carried_on(scene)
        except AssertionError as error:
            raise AssertionError(f"killed at {turn}: {whole.writes[turn - 1]}\n{error}") from error
