"""Files that are too large for a commit (RUN-3, RUN-7): seen by their size, left out of git, never lost in silence."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from aiflow.adapters.git.cleaning.housekeeping import LocalHousekeeping
from aiflow.adapters.git.worktrees.worktrees import GitWorkspaces
from aiflow.domain.clean.leftovers import TreeState
from aiflow.domain.runs.worktree import Bounds, LargeFile, Place, branch_name, retry_ref, wip_ref
from aiflow.messages.sizes import named_with_sizes
from git_template import be_ada, git, head_of, make_template

RUN_ID = "RUN-20260102-030405-aaaaaa"
LIMIT = 1000
WIP, RETRIED = wip_ref(RUN_ID, "S01"), retry_ref(RUN_ID, "S01", 1)


class Yard:
    """A repository with files of all sizes, and the worktree of a run."""

    def __init__(self, folder: Path) -> None:
        def fill(root: Path) -> None:
            (root / "a.txt").write_text("one\n")
            (root / ".gitignore").write_text("*.ignored\nbuild/\n")
            (root / "was-large.bin").write_bytes(b"x" * 5000)
            (root / "also-large.bin").write_bytes(b"y" * 5000)

        make_template(folder, fill)
        self.root, self.state = folder / "repository", folder / "state"
        self.tree = self.state / "worktrees" / RUN_ID
        self.tree.parent.mkdir(parents=True)
        self.base = head_of(self.root)
        self.place = Place(RUN_ID, str(self.tree), branch_name("RQ-1", RUN_ID), "main", self.base, ("tools",))
        self.git = self.anew()
        self.git.prepare(self.place, self.base)

    def anew(self, most_bytes: int = LIMIT) -> GitWorkspaces:
        return GitWorkspaces(str(self.root), RUN_ID, bounds=Bounds(most_bytes=most_bytes))

    def write(self, name: str, size: int = 5000) -> None:
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\0" * size)

    def collect(self) -> tuple[list[str], list[str]]:
        changes = self.git.collect(self.place, self.base)
        return [each.path for each in changes.files], [each.path for each in changes.large]

    def has_object_of(self, name: str) -> bool:
        digest = git(self.tree, "hash-object", "--", name)
        done = subprocess.run(["git", "cat-file", "-e", digest], cwd=self.root, capture_output=True, check=False)
        return done.returncode == 0


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    be_ada(monkeypatch)
    return Yard(tmp_path)


@pytest.mark.spec("RUN-3")
def test_new_and_changed_files_over_the_limit_are_named_and_nothing_of_them_is_written(yard: Yard) -> None:
    yard.write("new.txt", 1000)
    yard.write("lib/large.bin", 1001)
    yard.write("a.txt", 2000)
    yard.write("was-large.bin", 6000)
    changes = yard.git.collect(yard.place, yard.base)
    assert [each.path for each in changes.files] == ["new.txt"]
    assert changes.large == (
        LargeFile("a.txt", 2000),
        LargeFile("lib/large.bin", 1001),
        LargeFile("was-large.bin", 6000),
    )
    assert [yard.has_object_of(name) for name in ("a.txt", "lib/large.bin", "was-large.bin")] == [False] * 3


@pytest.mark.spec("RUN-3")
def test_what_is_no_part_of_the_step_does_not_count(yard: Yard) -> None:
    yard.write("big.ignored")
    yard.write("build/big.bin")
    yard.write("tools/big.bin")
    os.symlink("build/big.bin", yard.tree / "link.bin")
    (yard.tree / "was-large.bin").unlink()
    os.utime(yard.tree / "also-large.bin")  # touched, but the same
    assert yard.collect() == (["link.bin", "was-large.bin"], [])


@pytest.mark.spec("RUN-3")
def test_a_hole_counts_by_its_length_and_is_never_read(yard: Yard) -> None:
    with (yard.tree / "hole.bin").open("wb") as file:
        file.truncate(500_000_000_000)  # reading it would take hours, and git's own limit is ten minutes
    changes = yard.git.collect(yard.place, yard.base)
    assert named_with_sizes(changes.large) == "hole.bin (500.0 GB)"
    kept = yard.git.keep_unfinished(yard.place, yard.base, WIP)
    assert named_with_sizes(kept.left_out) == "hole.bin (500.0 GB)"
    assert yard.git.snapshot(yard.place) == kept.tree
    assert named_with_sizes(yard.git.go_back(yard.place, yard.base, RETRIED)) == "hole.bin (500.0 GB)"
    assert not (yard.tree / "hole.bin").exists()


@pytest.mark.spec("RUN-3")
def test_own_commits_count_by_what_is_left_of_them(yard: Yard) -> None:
    yard.write("gone.bin")
    yard.write("stays.bin")
    git(yard.tree, "add", "-A")
    git(yard.tree, "commit", "-qm", "mine")
    git(yard.tree, "rm", "-q", "gone.bin")
    git(yard.tree, "commit", "-qm", "mine, too")
    assert yard.collect() == ([], ["stays.bin"])
    (yard.tree / "stays.bin").unlink()
    assert yard.collect() == ([], [])


@pytest.mark.spec("RUN-3")
def test_files_of_nested_repositories_count_but_not_what_git_keeps_there(yard: Yard) -> None:
    yard.write("nested/big.bin")
    yard.write("nested/small.txt", 10)
    yard.write("nested/big.ignored")
    git(yard.tree / "nested", "init", "-q")
    (yard.tree / "nested/.git/large.pack").write_bytes(b"\0" * 5000)
    assert yard.collect() == (["nested/small.txt"], ["nested/big.bin"])


@pytest.mark.spec("RUN-3")
def test_without_a_limit_everything_is_taken(yard: Yard) -> None:
    yard.git = yard.anew(0)
    yard.write("large.bin")
    assert yard.collect() == (["large.bin"], [])


@pytest.mark.spec("RUN-7")
def test_an_unfinished_step_is_kept_without_them_and_says_which(yard: Yard) -> None:
    yard.write("small.txt", 10)
    yard.write("large.bin")
    yard.write("a.txt")
    kept = yard.git.keep_unfinished(yard.place, yard.base, WIP)
    assert [each.path for each in kept.left_out] == ["a.txt", "large.bin"]
    assert git(yard.root, "diff", "--name-only", yard.base, WIP).splitlines() == ["small.txt"]
    assert (b"small.txt" in kept.patch, b"large.bin" in kept.patch, len(kept.patch) < 1000) == (True, False, True)
    assert (yard.tree / "large.bin").stat().st_size == 5000
    assert not git(yard.tree, "diff", "--cached", "--name-only")
    # `clean` does not take the only copy away.
    housekeeping = LocalHousekeeping(str(yard.root), str(yard.state))
    assert housekeeping.state_of(yard.place, kept.commit) is TreeState.UNSAVED


@pytest.mark.spec("RUN-7")
def test_a_large_file_that_a_person_brings_or_changes_is_noticed(yard: Yard) -> None:
    yard.write("large.bin")
    kept = yard.git.keep_unfinished(yard.place, yard.base, WIP)
    assert yard.anew().snapshot(yard.place) == kept.tree
    assert not git(yard.tree, "ls-files", "large.bin")
    yard.write("other.bin")
    assert yard.anew().snapshot(yard.place) != kept.tree
    (yard.tree / "other.bin").unlink()
    yard.write("large.bin", 5001)
    assert yard.anew().snapshot(yard.place) != kept.tree


@pytest.mark.spec("RUN-6")
def test_what_was_too_large_to_be_kept_at_a_retry_is_named(yard: Yard) -> None:
    yard.write("small.txt", 10)
    yard.write("large.bin")
    assert yard.git.go_back(yard.place, yard.base, RETRIED) == (LargeFile("large.bin", 5000),)
    assert git(yard.root, "ls-tree", "--name-only", RETRIED, "small.txt", "large.bin") == "small.txt"
    assert sorted(path.name for path in yard.tree.iterdir() if path.suffix == ".bin") == [
        "also-large.bin",
        "was-large.bin",
    ]
    assert yard.git.go_back(yard.place, yard.base, RETRIED) == ()
