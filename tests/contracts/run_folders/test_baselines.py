"""The commits on which the tests pass (RUN-17): remembered for the next run, and no junk is taken for one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from aiflow.adapters.memory.baselines import MemoryBaselines
from aiflow.adapters.run_folders.baseline_file import MOST_KEPT, BaselineFile
from aiflow.ports import Baselines

pytestmark = pytest.mark.spec("RUN-17")


@pytest.fixture(params=[lambda _root: MemoryBaselines(), BaselineFile], ids=["memory", "file"])
def baselines(request: pytest.FixtureRequest, tmp_path: Path) -> Baselines:
    make: Callable[[Path], Baselines] = request.param
    return make(tmp_path)


def test_what_passed_is_known_and_nothing_else(baselines: Baselines) -> None:
    assert baselines.passed("make test") == ()
    for commit in ("abc", "def", "abc"):
        baselines.note_passed("make test", commit)
    baselines.note_passed("make e2e", "abc")
    assert baselines.passed("make test") == ("def", "abc")
    assert (baselines.passed("make e2e"), baselines.passed("make")) == (("abc",), ())


def test_another_process_knows_the_newest(tmp_path: Path) -> None:
    for number in range(MOST_KEPT + 2):
        BaselineFile(tmp_path).note_passed("make test", str(number))
    known = BaselineFile(str(tmp_path)).passed("make test")
    assert (known[0], known[-1], len(known)) == ("2", str(MOST_KEPT + 1), MOST_KEPT)
    assert sorted(path.name for path in (tmp_path / ".aiflow").iterdir()) == [".gitignore", "baselines.json", "tmp"]


@pytest.mark.parametrize("junk", ["", "[]", "{}", '{"passed": 3}', '{"passed": {"x": 1}}', "[" * 100_000, "\xff"])
def test_junk_is_nothing_and_is_replaced(tmp_path: Path, junk: str) -> None:
    path = tmp_path / ".aiflow/baselines.json"
    path.parent.mkdir()
    path.write_bytes(junk.encode("latin-1"))
    assert BaselineFile(tmp_path).passed("make test") == ()
    BaselineFile(tmp_path).note_passed("make test", "abc")
    assert BaselineFile(tmp_path).passed("make test") == ("abc",)
    path.write_text(json.dumps({"passed": [["make test", "abc"], 3, None, ["x"], ["make test", 3]]}))
    assert BaselineFile(tmp_path).passed("make test") == ("abc",)
