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


class Helped:
    """A bench whose tests are green if `code.txt` is as committed, or if anything says `good`."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench, self.made = bench, folder / "made"
        (bench.root / ".gitignore").write_text("/runs/\n/.aiflow/\ndeps/\ngen/\n__pycache__/\n")
        (bench.root / "config.txt").write_text("bad1\n")
        (bench.root / "code.txt").write_text("plain\n")
        unit = "mkdir -p __pycache__; touch __pycache__/x deps/__pycache__; ! grep -q more code.txt"
        unit += " || grep -qs good config.txt gen/config.txt deps/lib deps/link"
        setup = f"mkdir -p deps; echo lib1 > deps/lib; ln -sf lib deps/link; echo made >> {self.made}"
        bench.configure(f'[worktree]\nsetup = "{setup}"\n[tests]\nunit = "{unit}"')
        bench.commit()

    def accept_after(self, code: str, exit_code: int = 0) -> tuple[str | None, bool, int]:
        """Tell why a run whose agent did this is not accepted, whether it is, and how often set-up ran."""
        self.bench.agent.does("implementer", f"import subprocess; write('code.txt', 'more\\n'); {code}; done()")
        self.bench.run()
        answer = self.bench.aiflow.json("accept", "RQ-1", code=exit_code)
        return answer["reason_code"], answer["accepted_as"] is not None, len(self.made.read_text().splitlines())


@pytest.fixture
def helped(bench: Bench, tmp_path: Path) -> Helped:
    return Helped(bench, tmp_path)


@pytest.mark.parametrize(
    ("code", "times"),
    [
        ("write('gen/config.txt', 'good\\n')", 1),
        ("write('deps/lib', 'good\\n')", 2),
        ("s = os.stat('deps/lib'); write('deps/lib', 'good\\n'); os.utime('deps/lib', ns=(1, s.st_mtime_ns))", 2),
        ("write('gen/good', 'good\\n'); os.remove('deps/link'); os.symlink('../gen/good', 'deps/link')", 2),
        ("write('gen/good', 'good\\n'); os.remove('deps/lib'); os.symlink('../gen/good', 'deps/lib')", 2),
    ],
)
def test_what_is_in_no_commit_helps_no_merge_through_its_tests(helped: Helped, code: str, times: int) -> None:
    assert helped.accept_after(code, 7) == ("MERGE_TESTS_FAILED", False, times)


def test_a_file_that_git_was_told_to_skip_is_committed_as_the_tests_saw_it(helped: Helped) -> None:
    skip = "subprocess.run(['git', 'update-index', '--skip-worktree', 'config.txt'], check=True)"
    assert helped.accept_after(f"write('config.txt', 'good\\n'); {skip}") == (None, True, 1)
    assert helped.bench.git("show", "main:config.txt") == "good"


def test_what_the_tests_left_costs_no_second_set_up_and_the_list_goes_with_the_worktree(helped: Helped) -> None:
    assert helped.accept_after("write('config.txt', 'good\\n')") == (None, True, 1)
    assert not [path for path in helped.bench.state.rglob("RUN-*") if "worktrees" in path.parts]


def test_a_run_without_a_list_is_tested_in_a_worktree_of_its_own(helped: Helped) -> None:
    helped.bench.agent.does("implementer", "write('code.txt', 'fine\\n'); done()")
    helped.bench.run()
    Path(f"{helped.bench.worktree()}.set-up").unlink()
    helped.bench.aiflow("accept", "RQ-1")
    assert (len(helped.made.read_text().splitlines()), helped.bench.status()) == (2, "done")


@pytest.mark.parametrize(
    ("code", "times"), [("write('gen/config.txt', 'good\\n')", 2), ("write('deps/lib', 'good\\n')", 3)]
)
def test_an_update_takes_nothing_an_agent_left_for_what_set_up_made(helped: Helped, code: str, times: int) -> None:
    bench = helped.bench
    bench.agent.does("implementer", f"write('code.txt', 'fine\\n'); {code}; done()")
    bench.run()
    (bench.root / "app.txt").write_text("theirs\n")
    bench.commit()
    bench.aiflow("resume", "RQ-1", "--update")
    assert not (bench.worktree() / "gen").exists()
    bench.aiflow("accept", "RQ-1")
    assert len(helped.made.read_text().splitlines()) == times
