"""The `Wake` port, the same for pipes and for memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.memory.wake import MemoryBells, MemoryWake
from aiflow.adapters.processes.wake_pipes import WakePipes
from aiflow.ports import Wake

Make = Callable[[str | None], Wake]


def by_pipes(folder: Path) -> Make:
    return lambda runner_id: WakePipes(str(folder), "app", runner_id)


def in_memory(_folder: Path) -> Make:
    bells, time = MemoryBells(), PlayedTime()
    return lambda runner_id: MemoryWake(bells, time, "app", runner_id)


@pytest.fixture(params=[by_pipes, in_memory])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    give: Callable[[Path], Make] = request.param
    return give(tmp_path)


@pytest.mark.spec("PRF-4")
def test_every_runner_of_a_namespace_hears_of_each_task_once(make: Make) -> None:
    teller, one, two = make(None), make("r1"), make("r2")
    assert [teller.poke("app", name) for name in ("T-1", "T-2", "T-1")] == [2, 2, 2]
    assert teller.poke("other", "T-3") == 0
    assert one.wait(0) == ("T-1", "T-2")
    assert one.wait(0) == ()
    two.close()
    assert teller.poke("app", "T-4") == 1
    assert one.wait(0.01) == ("T-4",)
    one.close()
    assert teller.poke("app", "T-5") == 0
