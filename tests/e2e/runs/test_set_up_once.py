"""Set-up is paid once a request (GIT-4, GIT-3): the merge is tested where the run was prepared, if that fits it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from e2e.bench import Bench, git
from waiting import wait_until

pytestmark = pytest.mark.spec("GIT-4", "GIT-3")


class SetUp:
    """A bench whose set-up and tests say when they ran, and which files the tests saw."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.made, self.seen, self.gate = folder / "made", folder / "seen", folder / "gate"
        (bench.root / ".gitignore").write_text("/runs/\n/.aiflow/\n/deps\n")
        (bench.root / "package-lock.json").write_text("{}\n")
        look = f"ls | tr '\\\\n' ' ' >> {self.seen}; echo >> {self.seen}"
        hold = f"while test -e {self.gate}; do sleep 0.02; done"
        unit = f"{look}; {hold}; test -e deps && ! test -e {self.gate}.red"
        bench.configure(f'[worktree]\nsetup = "touch deps; echo made >> {self.made}"\n[tests]\nunit = "{unit}"')
        bench.commit()

    @property
    def times(self) -> int:
        return len(self.made.read_text().splitlines())

    @property
    def last_seen(self) -> list[str]:
        return self.seen.read_text().splitlines()[-1].split()


@pytest.fixture
def set_up(bench: Bench, tmp_path: Path) -> SetUp:
    return SetUp(bench, tmp_path)


@pytest.mark.parametrize(
    ("code", "times"),
    [
        ("write('S01.txt', 'x\\n'); done()", 1),
        ("write('package-lock.json', '{\"a\": 1}\\n'); done()", 2),
        ("write('web/requirements-dev.txt', 'x\\n'); done()", 2),
    ],
)
def test_set_up_is_run_again_only_if_its_lock_files_changed(set_up: SetUp, code: str, times: int) -> None:
    set_up.bench.agent.does("implementer", code)
    done = set_up.bench.aiflow.json("-c", "accept=auto", "run", "RQ-1")
    assert (done["accepted_as"] is not None, set_up.times) == (True, times)


def test_the_merge_itself_is_tested_there_and_the_worktree_is_put_back(set_up: SetUp) -> None:
    bench = set_up.bench
    bench.run()
    (bench.root / "theirs.txt").write_text("theirs\n")
    bench.commit()
    Path(f"{set_up.gate}.red").touch()
    tree = bench.worktree()
    refused = bench.aiflow.json("accept", "RQ-1", code=7)
    assert (refused["reason_code"], refused["accepted_as"]) == ("MERGE_TESTS_FAILED", None)
    assert {"S01.txt", "theirs.txt", "deps"} <= set(set_up.last_seen)
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "branch", "--show-current").startswith("aiflow/RQ-1/")
    assert not (tree / "theirs.txt").exists()
    assert (tree / "deps").exists()
    Path(f"{set_up.gate}.red").unlink()
    bench.aiflow("accept", "RQ-1")
    assert (set_up.times, bench.status()) == (1, "done")


def test_an_acceptance_that_was_killed_there_is_put_right(set_up: SetUp) -> None:
    bench = set_up.bench
    bench.run()
    (bench.root / "theirs.txt").write_text("theirs\n")
    bench.commit()
    set_up.gate.touch()
    process = bench.start("accept", "RQ-1", "--json")
    wait_until(lambda: "theirs.txt" in set_up.last_seen or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    set_up.gate.unlink()
    assert (bench.worktree() / "theirs.txt").exists()
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"] is not None
    assert (set_up.times, bench.status()) == (1, "done")


def test_set_up_is_told_also_without_a_terminal(set_up: SetUp) -> None:
    words = "Setting up the worktree: touch deps; echo made"
    assert words in set_up.bench.aiflow("run", "RQ-1").stdout
    set_up.bench.add_request("RQ-2")
    assert words in set_up.bench.aiflow("auto").stdout
    set_up.bench.add_request("RQ-3")
    assert "worktree を準備中" in set_up.bench.aiflow("--lang", "ja", "run", "RQ-3").stdout
