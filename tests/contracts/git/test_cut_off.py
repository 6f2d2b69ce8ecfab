"""A fast-forward that is cut off with its aiflow, as by a power cut (GIT-3): the next command puts the checkout right."""

from __future__ import annotations

import fcntl
import hashlib
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from aiflow.adapters.git.merging.merging import GitMerging
from aiflow.domain.runs.merge import CutOffMove, Merge
from aiflow.domain.runs.worktree import Place
from git_template import be_ada, copy_template, git, head_of, make_template
from waiting import wait_until

pytestmark = pytest.mark.spec("GIT-3")

BRANCH = "aiflow/RQ-1/RUN-1"
OWN = "M own.txt\nM  staged.txt\n?? untracked.txt"
RECORD = "aiflow-fast-forward.json"


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    be_ada(monkeypatch)
    monkeypatch.setattr("aiflow.adapters.git.merging.base_moving._LOCK_SECONDS", 0.2)


def fill(root: Path) -> None:
    for name in ("a.txt", "b/gone.txt", "m.txt", "x/link", "own.txt", "staged.txt", "file", "dir/in.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(f"old {name}\n")


def work(root: Path) -> None:
    """Change, add and remove files as a run does: a file where a folder was, a folder where a file was, a link."""
    git(root, "rm", "-q", "b/gone.txt", "x/link", "file", "dir/in.txt")
    for name in ("a.txt", "m.txt", "dir", "file/in.txt", "new/deep/n.txt", "z.txt", "größe\nline.txt"):
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / name).write_text(f"new {name}\n")
    (root / "x").mkdir(exist_ok=True)
    (root / "x/link").symlink_to("../a.txt")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "the run's")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as environ:
        be_ada(environ)
        folder = make_template(tmp_path_factory.mktemp("template"), fill)
        root = folder / "repository"
        git(root, "switch", "-qc", BRANCH)
        work(root)
        git(root, "switch", "-q", "main")
    return folder


class Scene:
    """A person's checkout of `main` with unfinished business in it, and a run's branch to bring in."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder, self.start = root, folder, head_of(root)
        self.place = Place("RUN-1", str(folder / "RUN-1"), BRANCH, "main", self.start)
        self.git = GitMerging(str(root), hooks=True)
        (root / "own.txt").write_text("mine\n")
        (root / "staged.txt").write_text("mine, too\n")
        git(root, "add", "staged.txt")
        (root / "untracked.txt").write_text("nobody else's\n")
        (root / ".git/SQUASH_MSG").write_text("prepared\n")
        self.merge: Merge = self.git.merge(self.place, "Accept RQ-1\n")
        self.looks = self.look()

    def cut_off(self, at: str) -> None:
        """Begin the move, and have git and its aiflow killed in the same moment."""
        kill = f"kill -9 $(cat {self.folder}/aiflow) $PPID"
        if at in HOOKS:
            hook, condition = HOOKS[at]
            path = self.root / ".git/hooks" / hook
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/sh\n{condition} && {kill}\nexit 0\n")
            path.chmod(0o755)
        else:
            (self.root / ".git/info/attributes").write_text(f"{at} filter=cut\n")
            git(self.root, "config", "filter.cut.smudge", f"{kill}; cat")
            git(self.root, "config", "filter.cut.clean", "cat")
        mover = multiprocessing.get_context("fork").Process(target=self._move)
        mover.start()
        mover.join()
        assert mover.exitcode == -9
        wait_until(self._is_left)  # the filter that killed them ends a moment later, and is at it until then
        for path in ((self.root / ".git/info/attributes"), *(self.root / ".git/hooks").glob("*")):
            path.unlink(missing_ok=True)

    def _is_left(self) -> bool:
        folder = os.open(self.root / ".git", os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(folder)
        return True

    def _move(self) -> None:
        (self.folder / "aiflow").write_text(str(os.getpid()))
        self.git.move_base(self.place, self.merge)

    def look(self) -> dict[str, str]:
        """Return every file with its bytes, of the checkout and of what git keeps of it, reflogs and hooks apart."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            below = path.relative_to(self.root)
            if {"objects", "logs", "hooks", "info"} & set(below.parts) or below.name in ("config", "COMMIT_EDITMSG"):
                continue
            if path.is_symlink():
                found[str(below)] = os.readlink(path)
            else:
                found[str(below)] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        return found

    def status(self) -> str:
        return git(self.root, "status", "--porcelain")

    def told(self, **more: object) -> CutOffMove:
        return CutOffMove("RUN-1", str(self.root), "main", **more)  # type: ignore[arg-type]


@pytest.fixture
def scene(template: Path, tmp_path: Path) -> Scene:
    return Scene(copy_template(template, tmp_path), tmp_path)


# Behind the index, before the branch; with the branch locked; behind the branch.
HOOKS = {
    "index": ("post-index-change", "true"),
    "locked": ("reference-transaction", '[ "$1" = prepared ] && grep -q refs/heads/main'),
    "moved": ("reference-transaction", '[ "$1" = committed ] && grep -q refs/heads/main'),
}
FILES = ["a.txt", "dir", "m.txt", "new/deep/n.txt", "z.txt"]


@pytest.mark.parametrize("at", [*FILES, *HOOKS])
def test_the_next_command_puts_the_checkout_right(scene: Scene, at: str) -> None:
    scene.cut_off(at)
    assert (scene.root / ".git" / RECORD).exists()
    has_moved = at in HOOKS
    assert scene.git.put_right() == scene.told(has_moved=has_moved)
    assert not list((scene.root / ".git").glob("**/*.lock"))
    if has_moved:
        assert (git(scene.root, "rev-parse", "main", "HEAD"), scene.status()) == (
            "\n".join([scene.merge.commit or ""] * 2),
            OWN,
        )
        assert (scene.root / ".git/SQUASH_MSG").read_text() == "prepared\n"
    else:
        assert scene.look() == scene.looks
    assert scene.git.put_right() is None
    assert scene.git.move_base(scene.place, scene.merge)
    assert (git(scene.root, "rev-parse", "main"), scene.status()) == (scene.merge.commit, OWN)
    assert (scene.root / "own.txt").read_text() == "mine\n"
    assert not (scene.root / ".git" / RECORD).exists()


@pytest.mark.parametrize("at", ["m.txt", "index"])
def test_whoever_moves_the_base_next_puts_it_right_first(scene: Scene, at: str) -> None:
    scene.cut_off(at)
    assert scene.git.move_base(scene.place, scene.merge)
    assert (git(scene.root, "rev-parse", "main"), scene.status()) == (scene.merge.commit, OWN)


def test_looking_names_it_and_changes_nothing(scene: Scene) -> None:
    assert scene.git.find_cut_off() is None
    scene.cut_off("m.txt")
    before = scene.look()
    assert scene.git.find_cut_off() == scene.told()
    assert scene.look() == before


def test_one_that_is_at_work_is_not_cut_off(scene: Scene) -> None:
    begun, go = scene.folder / "begun", scene.folder / "go"
    (scene.root / ".git/info/attributes").write_text("m.txt filter=slow\n")
    wait = f"n=0; until test -e {go} || test $n -gt 1500; do n=$((n+1)); sleep 0.02; done"
    git(scene.root, "config", "filter.slow.smudge", f"touch {begun}; {wait}; cat")
    git(scene.root, "config", "filter.slow.clean", "cat")
    mover = multiprocessing.get_context("fork").Process(target=scene._move)
    mover.start()
    wait_until(begun.exists)
    assert scene.git.find_cut_off() is None
    go.touch()
    assert scene.git.put_right() is None  # it waited for the end
    mover.join()
    assert (git(scene.root, "rev-parse", "main"), scene.status()) == (scene.merge.commit, OWN)


def _edited(scene: Scene) -> None:
    (scene.root / "a.txt").write_text("edited since\n")


def _written_over(scene: Scene) -> None:
    (scene.root / "dir").write_text("another file since\n")


@pytest.mark.parametrize(("do", "name"), [(_edited, "a.txt"), (_written_over, "dir")])
def test_what_a_person_changed_since_stays_and_is_named(scene: Scene, do: Callable[[Scene], None], name: str) -> None:
    scene.cut_off("m.txt")
    do(scene)
    text = (scene.root / name).read_text()
    told = scene.git.put_right()
    assert told is not None
    assert name in told.left
    assert (scene.root / name).read_text() == text
    assert git(scene.root, "show", ":m.txt") == (scene.root / "m.txt").read_text().strip()
    assert scene.git.put_right() is None


@pytest.mark.parametrize("commands", [["reset -q --hard"], ["stash -q -u"], ["add -A", "commit -qm mine"]])
def test_a_person_who_went_on_by_hand_is_not_disturbed(scene: Scene, commands: list[str]) -> None:
    scene.cut_off("m.txt")
    (scene.root / ".git/index.lock").unlink()
    for command in commands:
        git(scene.root, *command.split())
    head, stash = head_of(scene.root), git(scene.root, "stash", "list")
    told = scene.git.put_right()
    assert told is not None
    assert not told.left
    assert (head_of(scene.root), git(scene.root, "stash", "list"), scene.status()) == (
        head,
        stash,
        told_status(commands),
    )


def told_status(commands: list[str]) -> str:
    """A hard reset leaves what git does not know; what the merge brought of that is gone again."""
    return "?? untracked.txt" if "reset" in commands[0] else ""


def test_the_lock_of_a_git_that_waits_for_a_person_is_left(scene: Scene) -> None:
    scene.cut_off("m.txt")
    lock = scene.root / ".git/index.lock"
    lock.write_bytes((scene.root / ".git/index").read_bytes())  # as `git commit -a` has it while an editor is open
    before = scene.look()
    assert scene.git.put_right() == scene.told(locks=(str(lock),))
    assert scene.look() == before
    lock.unlink()
    assert scene.git.put_right() == scene.told()
    assert scene.look() == scene.looks


def test_a_lock_that_somebody_has_open_is_left(scene: Scene) -> None:
    scene.cut_off("m.txt")
    with (scene.root / ".git/index.lock").open("rb"):
        told = scene.git.put_right()
    assert told is not None
    assert told.outcome == "locked"
    assert scene.git.put_right() == scene.told()


def test_a_checkout_that_was_moved_meanwhile_is_found(scene: Scene, tmp_path: Path) -> None:
    scene.cut_off("m.txt")
    scene.root.rename(tmp_path / "elsewhere")
    scene.root = tmp_path / "elsewhere"
    assert GitMerging(str(scene.root)).put_right() == scene.told()
    assert scene.look() == scene.looks


def test_a_record_that_nobody_can_read_is_no_hindrance(scene: Scene) -> None:
    (scene.root / ".git" / RECORD).write_text("{half")
    assert scene.git.find_cut_off() is None
    assert scene.git.put_right() is None
    assert scene.git.move_base(scene.place, scene.merge)
    assert not (scene.root / ".git" / RECORD).exists()


def test_where_there_is_no_repository_nothing_is_cut_off(tmp_path: Path) -> None:
    assert GitMerging(str(tmp_path)).put_right() is None
    assert GitMerging(str(tmp_path)).find_cut_off() is None


def test_a_git_that_alone_is_killed_is_put_right_at_once(scene: Scene) -> None:
    (scene.root / ".git/info/attributes").write_text("m.txt filter=cut\n")
    git(scene.root, "config", "filter.cut.smudge", f"mkdir {scene.folder}/killed && kill -9 $PPID; cat")
    with pytest.raises(Exception, match="GIT_FAILED") as caught:
        scene.git.move_base(scene.place, scene.merge)
    assert "signal 9" in str(caught.value)
    (scene.root / ".git/info/attributes").unlink()
    assert scene.look() == scene.looks
