"""The tests themselves: their two forms, their one seed, and that none of them races the clock beside others."""

from __future__ import annotations

import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import forms
from faults.kill_points import kind_of, one_of_each
from waiting import slowness, wait_until

ROOT = Path(__file__).parents[1]
TOLD = re.compile(r"`make ([a-z-]+)`|^\$? ?make ([a-z-]+)", re.MULTILINE)


def config(**more: Any) -> Any:
    return SimpleNamespace(stash=pytest.Stash(), **more)


def test_the_long_form_has_more_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for said, found in (("", 3), ("0", 3), ("1", 9)):
        monkeypatch.setenv(forms.SOAK, said)
        assert forms.rounds(3, 9) == found


def test_the_seed_is_the_given_one_or_one_for_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(forms.SEED, "7")
    assert forms.seed_of(config()) == 7
    monkeypatch.delenv(forms.SEED)
    whole = config()
    seed = forms.seed_of(whole)
    assert (forms.seed_of(whole), forms.seed_of(config(workerinput={forms.SEED: seed}))) == (seed, seed)
    assert len({forms.seed_of(config()) for _ in range(20)}) > 1


def test_chance_is_the_sessions(chance: random.Random, request: pytest.FixtureRequest) -> None:
    again = random.Random(f"{forms.seed_of(request.config)} {request.node.name}")
    assert chance.random() == again.random()


def test_what_never_comes_is_not_waited_for_without_end() -> None:
    assert wait_until(lambda: True) < 60
    with pytest.raises(AssertionError, match="never came"):
        wait_until(lambda: False, 0.05)
    assert slowness() >= 1


WRITES = [
    "1 mkdir (PosixPath('/w/repository/runs/RQ-1/.RUN-20261118-003530-5a5b60.new'), 511)",
    "2 open (PosixPath('/w/runs/.stage.json.5bb813582092.tmp'), 524481)",
    "3 content /w/runs/.stage.json.5bb813582092.tmp",
    "4 replace (PosixPath('/w/runs/.stage.json.5bb8.tmp'), PosixPath('/w/runs/RQ-1/RUN-1/stage.json'))",
    """5 write (7, b'{"at":"2026","kind":"transition","data":{"event":"PLANNED","from":"PLANNING"}}\\n')""",
    "6 __init__ (<Popen: args: ['git', '-c', 'x...>, ['git', '--git-dir=/w', '-c', 'gc.auto=0', 'commit', '-m'])",
    "7 run (['git', '-c', 'gc.auto=0', 'commit', '-m'],)",
    "8 replace (PosixPath('/w/runs/.stage.json.94742bc42d7b.tmp'), PosixPath('/w/runs/RQ-1/RUN-1/stage.json'))",
    """9 write (7, b'{"at":"2026","kind":"transition","data":{"event":"DONE","from":"TESTING"}}\\n')""",
    "10 content /w/runs/.report.md.fc4f92945847.tmp",
    """11 write (7, b'{"at":"2026","kind":"status_changed","data":{"key":"status","to":"blocked"}}\\n')""",
    "12 unlink ('README',)",
]


def test_writes_of_a_kind_are_known_by_what_they_do_to_what() -> None:
    assert [kind_of(WRITES, at) for at in range(len(WRITES))] == [
        "mkdir .RUN-#-#-#.new",
        "open a temporary file",
        "content a temporary file",
        "replace stage.json PLANNED",
        "write PLANNED",
        "__init__ git commit",
        "run git commit",
        "replace stage.json DONE",
        "write DONE",
        "content a temporary file",
        "write status_changed",
        "unlink",
    ]
    turns = list(range(1, len(WRITES) + 1))
    drawn = [one_of_each(turns, WRITES, random.Random(seed), 99) for seed in range(20)]
    assert {tuple(sorted({*each} - {3, 10})) for each in drawn} == {(1, 2, 4, 5, 6, 7, 8, 9, 11, 12)}
    assert {tuple({*each} & {3, 10}) for each in drawn} == {(3,), (10,)}, "one of the two, left to chance"
    assert len(one_of_each(turns, WRITES, random.Random(1), 4)) == 4


def test_only_what_runs_alone_asserts_how_long_something_took_at_most() -> None:
    found = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        for part in re.split(r"(?m)^(?=@pytest|(?:async )?def )", path.read_text(encoding="utf-8")):
            bounds = re.findall(r"assert [^\n]*(?:monotonic|perf_counter|time\.time)\(\) - \w+(?:\[0\])? <=? ?.*", part)
            found += [f"{path.name}: {bound}" for bound in bounds if "allowed(" not in bound]
    assert found == []


def test_every_make_target_that_is_told_of_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    for name in ("README.md", "README.ja.md", "CONTRIBUTING.md", ".ci/run"):
        told = {one or other for one, other in TOLD.findall((ROOT / name).read_text(encoding="utf-8"))}
        assert told, name
        assert told <= targets, name


def test_every_long_form_is_run_by_make_test_soak() -> None:
    """`make test-soak` selects by marks: what has a long form and none of them would never be run in it."""
    selected = re.compile(r"pytest\.mark\.(faults|longer|contract|timing|soak)\b")
    found = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name != "test_forms.py" and re.search(r"\brounds\(|simulation\.seeds import .*\bseeds\b", text):
            found += [] if selected.search(text) else [str(path.relative_to(ROOT))]
    assert found == []
