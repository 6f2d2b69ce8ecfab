"""The `Workspaces` port against real git: what runs do in their worktrees, and what nobody may notice of it."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from aiflow.adapters.git.git_cli import Git
from aiflow.adapters.git.worktrees.worktrees import GitWorkspaces
from aiflow.domain.runs.worktree import Place, RepositoryFacts, branch_name, retry_ref, wip_ref
from aiflow.errors import AiflowError
from aiflow.ports import Workspaces
from forms import rounds
from git_template import be_ada, copy_template, git, head_of, make_template

WIP = wip_ref("RUN-1", "S01")
RETRIED = retry_ref("RUN-1", "S01", 1)


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    be_ada(monkeypatch)
    monkeypatch.setattr("aiflow.adapters.git.git_files._REF_LOCK_SECONDS", 0.2)


def write(path: Path, text: str | bytes = "text\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def files_of(tree: Path) -> dict[str, str]:
    found = {}
    for path in sorted(tree.rglob("*")):
        if ".git" not in path.relative_to(tree).parts and (path.is_symlink() or path.is_file()):
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(tree))] = hashlib.sha256(content).hexdigest()
    return found


class Scene:
    """A user's repository, and the worktree of one run."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.base = head_of(root)
        self.git: Workspaces = GitWorkspaces(str(root), "RUN-1")
        self.place = Place("RUN-1", str(folder), branch_name("RQ-1", "RUN-1"), "main", self.base)
        self.tree = folder

    def prepared(self) -> Scene:
        assert self.git.prepare(self.place, self.base)
        return self

    def anew(self) -> Workspaces:
        """Another process: nothing is remembered."""
        return GitWorkspaces(str(self.root), "RUN-1")

    def at(self, *args: str, code: int = 0) -> str:
        return git(self.tree, *args, code=code)

    def admin(self) -> Path:
        return Path(self.at("rev-parse", "--path-format=absolute", "--git-dir"))

    def is_at(self, commit: str) -> bool:
        told = self.at("rev-parse", "HEAD", "--symbolic-full-name", "HEAD")
        return told.split() == [commit, f"refs/heads/{self.place.branch}"]

    def shown(self, commit: str) -> list[str]:
        return self.at("show", "--format=", "--name-status", "--no-renames", commit).splitlines()


def fill(root: Path) -> None:
    """Write the user's files."""
    write(root / "a.txt", "one\ntwo\n")
    write(root / "lib/b.txt", "b\n")
    write(root / "requests/RQ-1.md", "# Request\n")
    write(root / ".gitignore", "*.log\nbuild/\n")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the user's repository, made once."""
    with pytest.MonkeyPatch.context() as environ:
        be_ada(environ)
        return make_template(tmp_path_factory.mktemp("template"), fill)


@pytest.fixture(scope="module")
def at_work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the same repository with the worktree of its run."""
    with pytest.MonkeyPatch.context() as environ:
        be_ada(environ)
        folder = make_template(tmp_path_factory.mktemp("at-work"), fill)
        Scene(folder / "repository", folder / "state" / "RUN-1").prepared()
    return folder


@pytest.fixture
def scene(template: Path, tmp_path: Path) -> Scene:
    return Scene(copy_template(template, tmp_path), tmp_path / "state" / "RUN-1")


@pytest.fixture
def found(at_work: Path, tmp_path: Path) -> Scene:
    """Give the scene as another process finds it: the worktree is there, nothing is remembered."""
    return Scene(copy_template(at_work, tmp_path), tmp_path / "state" / "RUN-1")


# --- making the worktree -------------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-1")
def test_a_worktree_is_made_on_its_own_branch_once(scene: Scene) -> None:
    assert not scene.git.is_intact(scene.place)
    assert scene.git.tip(scene.place) is None
    assert scene.git.prepare(scene.place, scene.base)
    assert scene.is_at(scene.base)
    assert files_of(scene.tree) == files_of(scene.root)
    assert scene.git.is_intact(scene.place)
    assert scene.git.tip(scene.place) == scene.base
    write(scene.tree / "new.txt")
    assert not scene.git.prepare(scene.place, scene.base)
    assert (scene.tree / "new.txt").exists()
    assert git(scene.root, "config", "--get-regexp", "branch[.].*", code=1) == ""


def _folder_deleted(scene: Scene) -> None:
    shutil.rmtree(scene.tree)


def _entry_pruned(scene: Scene) -> None:
    shutil.rmtree(scene.tree)
    git(scene.root, "worktree", "prune")


def _entry_deleted(scene: Scene) -> None:
    shutil.rmtree(scene.admin())


def _entry_half_made(scene: Scene) -> None:
    admin = scene.admin()
    shutil.rmtree(scene.tree)
    (admin / "gitdir").unlink()
    (admin / "index").unlink()


def _killed_while_laying_out(scene: Scene) -> None:
    admin = scene.admin()
    write(admin / "locked", "initializing\n")
    write(admin / "index.lock", "")
    (admin / "index").unlink()
    (scene.tree / "a.txt").unlink()


def _killed_and_folder_gone(scene: Scene) -> None:
    write(scene.admin() / "locked", "initializing\n")
    shutil.rmtree(scene.tree)


def _pointer_lost(scene: Scene) -> None:
    (scene.tree / ".git").unlink()


def _another_repository(scene: Scene) -> None:
    (scene.tree / ".git").unlink()
    scene.at("init", "-q")


def _only_a_copy(scene: Scene) -> None:
    elsewhere = scene.tree.parent / "elsewhere"
    scene.at("worktree", "move", str(scene.tree), str(elsewhere))
    shutil.copytree(elsewhere, scene.tree)
    git(elsewhere, "checkout", "-q", "--detach")


def _of_another_repository(scene: Scene) -> None:
    shutil.rmtree(scene.tree)
    other = scene.tree.parent / "other"
    git(scene.root, "clone", "-q", str(scene.root), str(other))
    git(other, "worktree", "add", "-q", str(scene.tree))


def _folder_is_a_file(scene: Scene) -> None:
    shutil.rmtree(scene.tree)
    write(scene.tree)


def _branch_is_packed(scene: Scene) -> None:
    git(scene.root, "pack-refs", "--all")
    shutil.rmtree(scene.tree)


def _branch_was_locked(scene: Scene) -> None:
    lock = write(scene.root / ".git/refs/heads" / f"{scene.place.branch}.lock", "")
    os.utime(lock, (1, 1))
    shutil.rmtree(scene.tree)


@pytest.mark.spec("GIT-1")
@pytest.mark.parametrize(
    "breakage",
    [
        _folder_deleted,
        _entry_pruned,
        _entry_deleted,
        _entry_half_made,
        _killed_while_laying_out,
        _killed_and_folder_gone,
        _pointer_lost,
        _another_repository,
        _only_a_copy,
        _of_another_repository,
        _folder_is_a_file,
        _branch_is_packed,
        _branch_was_locked,
    ],
)
def test_a_broken_worktree_is_made_anew_at_its_tip(found: Scene, breakage: Callable[[Scene], None]) -> None:
    scene = found
    write(scene.tree / "new.txt")
    scene.git.collect(scene.place, scene.base)
    tip = scene.git.commit(scene.place, scene.base, "S01\n")
    breakage(scene)
    anew = scene.anew()
    assert anew.prepare(scene.place, scene.base)
    assert scene.is_at(tip)
    assert scene.at("status", "--porcelain") == ""
    assert files_of(scene.tree) == {**files_of(scene.root), "new.txt": files_of(scene.tree)["new.txt"]}
    assert anew.collect(scene.place, tip).files == ()


@pytest.mark.spec("GIT-1")
@pytest.mark.faults
def test_git_worktree_add_may_be_killed_at_any_time(scene: Scene, chance: random.Random) -> None:
    for number in range(300):
        write(scene.root / f"many/{number}.txt", f"{number}\n" * 100)
    git(scene.root, "add", "-A")
    git(scene.root, "commit", "-qm", "many")
    base = git(scene.root, "rev-parse", "HEAD")
    for turn in range(rounds(10, 25)):
        place = replace(scene.place, branch=f"aiflow/RQ-1/RUN-{turn}", path=f"{scene.tree}-{turn}")
        argv = ["git", "worktree", "add", "-q", "-b", place.branch, place.path, base]
        with subprocess.Popen(argv, cwd=scene.root, stderr=subprocess.DEVNULL, process_group=0) as killed:
            time.sleep(chance.uniform(0, 0.02))
            os.killpg(killed.pid, signal.SIGKILL)
        workspaces = scene.anew()
        workspaces.prepare(place, base)
        assert git(place.path, "status", "--porcelain") == ""
        assert git(place.path, "rev-parse", "--abbrev-ref", "HEAD") == place.branch
        assert workspaces.collect(place, base).files == ()


@pytest.mark.spec("GIT-1")
@pytest.mark.parametrize("is_empty", [True, False])
def test_an_entry_that_a_killed_git_only_began_is_in_nobodys_way(scene: Scene, is_empty: bool) -> None:
    scene.prepared()
    [entry] = (scene.root / ".git/worktrees").iterdir()
    if is_empty:
        (entry / "commondir").write_text("")
    else:
        (entry / "commondir").unlink()
    assert scene.anew().prepare(scene.place, scene.base)
    assert git(scene.place.path, "status", "--porcelain") == ""


@pytest.mark.spec("GIT-1")
def test_only_the_worktrees_own_folder_is_ever_removed(scene: Scene, tmp_path: Path) -> None:
    precious = write(tmp_path / "elsewhere/precious.txt")
    scene.tree.parent.mkdir(parents=True)
    scene.tree.symlink_to(precious.parent)
    assert scene.git.prepare(scene.place, scene.base)
    assert precious.exists()
    for path in (scene.root, scene.root.parent, scene.root / ".git"):
        with pytest.raises(AiflowError):
            scene.git.prepare(replace(scene.place, path=str(path)), scene.base)
    assert (scene.root / "a.txt").exists()


@pytest.mark.spec("GIT-1")
def test_a_branch_that_a_person_has_checked_out_is_not_taken(scene: Scene) -> None:
    scene.prepared()
    _entry_pruned(scene)
    git(scene.root, "checkout", "-q", scene.place.branch)
    with pytest.raises(AiflowError) as caught:
        scene.git.prepare(scene.place, scene.base)
    assert caught.value.reason_code == "GIT_FAILED"
    assert str(scene.root) in str(caught.value.context["problem"])


@pytest.mark.spec("GIT-1")
@pytest.mark.parametrize("breakage", [_folder_deleted, _pointer_lost, _another_repository, _entry_deleted])
def test_a_lost_worktree_is_told_and_no_repository_further_up_is_touched(
    found: Scene, breakage: Callable[[Scene], None], tmp_path: Path
) -> None:
    scene = found
    git(tmp_path, "init", "-q")
    breakage(scene)
    calls: list[Callable[[], object]] = [
        lambda: scene.git.collect(scene.place, scene.base),
        lambda: scene.git.commit(scene.place, scene.base, "S01\n"),
        lambda: scene.git.tidy(scene.place),
        lambda: scene.git.snapshot(scene.place),
        lambda: scene.git.keep_unfinished(scene.place, scene.base, WIP),
        lambda: scene.git.restore(scene.place, scene.base, scene.base),
        lambda: scene.git.go_back(scene.place, scene.base, RETRIED),
    ]
    for call in calls:
        with pytest.raises(AiflowError) as caught:
            call()
        assert (caught.value.reason_code, caught.value.context["path"]) == ("WORKTREE_LOST", str(scene.tree))
    assert not scene.git.is_intact(scene.place)


@pytest.mark.spec("GIT-1")
def test_git_is_told_which_worktree_it_works_in(scene: Scene, tmp_path: Path) -> None:
    scene.prepared()
    git_dir = str(scene.admin())
    git(tmp_path, "init", "-q")
    _pointer_lost(scene)
    assert Git(str(scene.root)).inside(git_dir, str(scene.tree)).run("rev-parse", "--absolute-git-dir").word == git_dir


# --- collecting and committing -------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-3", "GIT-1")
def test_a_step_is_collected_and_committed(scene: Scene) -> None:
    scene.prepared()
    write(scene.tree / "a.txt", "one\n2\nthree\n")
    (scene.tree / "lib/b.txt").unlink()
    write(scene.tree / "new/deep.txt", "x\ny\n")
    write(scene.tree / "picture.bin", b"\0\1\2")
    write(scene.tree / "noise.log")
    changes = scene.git.collect(scene.place, scene.base)
    assert [(file.path, file.added, file.deleted) for file in changes.files] == [
        ("a.txt", 2, 1),
        ("lib/b.txt", 0, 1),
        ("new/deep.txt", 2, 0),
        ("picture.bin", 0, 0),
    ]
    assert (changes.undone, changes.notes) == ((), ())
    assert changes.areas == {"", "lib", "new"}
    message = "S01: ändern\n\n# not a comment\n\n\nAiflow-Run: RUN-1\nAiflow-Step: S01\n"
    commit = scene.git.commit(scene.place, scene.base, message)
    assert scene.is_at(commit)
    assert scene.at("log", "-1", "--format=%P", commit) == scene.base
    assert scene.at("cat-file", "commit", commit).partition("\n\n")[2] == message.rstrip("\n")
    assert scene.shown(commit) == ["M\ta.txt", "D\tlib/b.txt", "A\tnew/deep.txt", "A\tpicture.bin"]
    assert scene.git.tidy(scene.place) == ()
    assert scene.git.collect(scene.place, commit).files == ()


@pytest.mark.spec("RUN-3")
def test_a_commit_made_just_before_a_crash_is_recognised(scene: Scene) -> None:
    scene.prepared()
    trailers = {"Aiflow-Run": "RUN-1", "Aiflow-Step": "S01"}
    assert scene.git.find_commit(scene.place, scene.base, trailers) is None
    write(scene.tree / "new.txt")
    scene.git.collect(scene.place, scene.base)
    commit = scene.git.commit(scene.place, scene.base, "S01\n\nAiflow-Run: RUN-1\nAiflow-Step: S01\n")
    anew = scene.anew()
    assert anew.find_commit(scene.place, scene.base, trailers) == commit
    assert anew.find_commit(scene.place, scene.base, {**trailers, "Aiflow-Step": "S02"}) is None
    assert anew.find_commit(scene.place, commit, trailers) is None
    scene.at("commit", "-q", "--allow-empty", "-m", "more\n\nAiflow-Run: RUN-1\nAiflow-Step: S01\n")
    assert anew.find_commit(scene.place, scene.base, trailers) is None
    assert anew.find_commit(replace(scene.place, branch="aiflow/none"), scene.base, trailers) is None


@pytest.mark.spec("RUN-3")
def test_one_commit_leads_to_another(scene: Scene) -> None:
    scene.prepared()
    scene.at("commit", "-q", "--allow-empty", "-m", "more")
    tip = scene.at("rev-parse", "HEAD")
    assert scene.git.is_ancestor(scene.place, scene.base, tip)
    assert scene.git.is_ancestor(scene.place, tip, tip)
    assert not scene.git.is_ancestor(scene.place, tip, scene.base)
    assert not scene.git.is_ancestor(scene.place, "1" * 40, tip)


def _own_commits(scene: Scene) -> None:
    scene.at("commit", "-qam", "mine")
    write(scene.tree / "late.txt")
    scene.at("add", "-A")
    scene.at("commit", "-qm", "mine too")


def _own_branch(scene: Scene) -> None:
    scene.at("checkout", "-q", "-b", "feature")
    scene.at("commit", "-qam", "mine")


def _detached(scene: Scene) -> None:
    scene.at("checkout", "-q", "--detach")
    scene.at("commit", "-qam", "mine")


def _orphan(scene: Scene) -> None:
    scene.at("checkout", "-q", "--orphan", "fresh")


def _amended(scene: Scene) -> None:
    scene.at("commit", "-qa", "--amend", "-m", "not the first any more")


def _branch_deleted(scene: Scene) -> None:
    scene.at("checkout", "-q", "--detach")
    scene.at("branch", "-qD", scene.place.branch)


def _half_staged(scene: Scene) -> None:
    scene.at("add", "a.txt")
    write(scene.tree / "a.txt", "one\ntwo\nthree\n")


def _forced_ignored(scene: Scene) -> None:
    write(scene.tree / "noise.log")
    scene.at("add", "-f", "noise.log", "a.txt")


def _hidden(scene: Scene) -> None:
    scene.at("update-index", "--assume-unchanged", "a.txt")


def _skipped(scene: Scene) -> None:
    scene.at("update-index", "--skip-worktree", "a.txt")


def _index_broken(scene: Scene) -> None:
    write(scene.admin() / "index", "garbage")


def _index_gone(scene: Scene) -> None:
    (scene.admin() / "index").unlink()


def _index_locked(scene: Scene) -> None:
    write(scene.admin() / "index.lock", "")
    write(scene.admin() / "HEAD.lock", "")


def _branch_locked(scene: Scene) -> None:
    write(scene.root / ".git/refs/heads" / f"{scene.place.branch}.lock", "")


def _refs_packed(scene: Scene) -> None:
    scene.at("pack-refs", "--all")


def _merging(scene: Scene) -> None:
    _conflict(scene, "merge", "-q", "side")


def _rebasing(scene: Scene) -> None:
    _conflict(scene, "rebase", "-q", "side")


def _picking(scene: Scene) -> None:
    _conflict(scene, "cherry-pick", "side")


def _bisecting(scene: Scene) -> None:
    scene.at("stash", "-q")
    scene.at("bisect", "start", "HEAD", scene.at("commit-tree", "HEAD^{tree}", "-m", "x"))
    scene.at("stash", "pop", "-q")


def _conflict(scene: Scene, *args: str) -> None:
    scene.at("commit", "-qam", "mine")
    scene.at("checkout", "-q", "-b", "side", scene.base)
    write(scene.tree / "a.txt", "one\nside\n")
    scene.at("commit", "-qam", "side")
    scene.at("checkout", "-q", scene.place.branch)
    done = subprocess.run(["git", *args], cwd=scene.tree, capture_output=True, check=False)
    assert done.returncode
    write(scene.tree / "a.txt", "one\ntwo\nthree\n")


@pytest.mark.spec("RUN-3")
@pytest.mark.parametrize(
    ("deed", "noted"),
    [
        (_own_commits, "Folded in the agent's own commits: 2"),
        (_own_branch, "from branch feature"),
        (_detached, "from a detached HEAD"),
        (_orphan, "from branch fresh"),
        (_amended, "Folded in the agent's own commits: 1"),
        (_branch_deleted, "from a detached HEAD"),
        (_half_staged, None),
        (_forced_ignored, None),
        (_hidden, None),
        (_skipped, None),
        (_index_broken, None),
        (_index_gone, None),
        (_index_locked, None),
        (_branch_locked, None),
        (_refs_packed, None),
        (_merging, "MERGE_HEAD"),
        (_rebasing, "rebase-merge"),
        (_picking, "CHERRY_PICK_HEAD"),
        (_bisecting, "BISECT_LOG"),
    ],
)
@pytest.mark.parametrize("is_new_process", [False, True])
def test_whatever_the_agent_did_with_git_becomes_one_commit(
    request: pytest.FixtureRequest, deed: Callable[[Scene], None], noted: str | None, is_new_process: bool
) -> None:
    scene: Scene = request.getfixturevalue("found" if is_new_process else "scene")
    if not is_new_process:
        scene.prepared()
    workspaces = scene.git
    write(scene.tree / "a.txt", "one\ntwo\nthree\n")
    deed(scene)
    here = files_of(scene.tree)
    changes = workspaces.collect(scene.place, scene.base)
    late = ["late.txt"] if deed is _own_commits else []
    assert [file.path for file in changes.files] == ["a.txt", *late]
    assert (changes.files[0].added, changes.files[0].deleted) == (1, 0)
    assert noted in " | ".join(changes.notes) if noted else changes.notes == ()
    assert scene.is_at(scene.base)
    assert files_of(scene.tree) == here
    commit = workspaces.commit(scene.place, scene.base, "S01\n")
    assert scene.is_at(commit)
    told = scene.at("log", "-1", "--format=%P%n%s", "--name-status", "--no-renames", commit).splitlines()
    assert told == [scene.base, "S01", "", "M\ta.txt", *(f"A\t{path}" for path in late)]
    status = scene.at("status")
    assert "nothing to commit, working tree clean" in status
    assert "You are currently" not in status


@pytest.mark.spec("RUN-3")
def test_an_agent_that_only_reset_is_noted(scene: Scene) -> None:
    scene.prepared()
    write(scene.tree / "new.txt")
    scene.git.collect(scene.place, scene.base)
    commit = scene.git.commit(scene.place, scene.base, "S01\n")
    scene.at("reset", "-q", "--hard", "HEAD~1")
    changes = scene.git.collect(scene.place, commit)
    assert [(file.path, file.deleted) for file in changes.files] == [("new.txt", 1)]
    assert changes.notes == (f"Put the branch back from {scene.base[:12]}",)
    assert scene.is_at(commit)


@pytest.mark.spec("RUN-3")
def test_what_was_collected_is_what_is_committed(scene: Scene) -> None:
    scene.prepared()
    write(scene.tree / "a.txt", "good\n")
    scene.git.collect(scene.place, scene.base)
    write(scene.tree / "a.txt", "changed by tests\n")
    write(scene.tree / "by-tests.txt")
    scene.at("add", "-A")
    scene.at("commit", "-qm", "a reviewer's commit")
    write(scene.admin() / "MERGE_HEAD", scene.at("rev-parse", "HEAD") + "\n")
    commit = scene.git.commit(scene.place, scene.base, "S01\n")
    assert scene.at("log", "-1", "--format=%P", commit) == scene.base
    assert scene.at("show", f"{commit}:a.txt") == "good"
    assert scene.shown(commit) == ["M\ta.txt"]
    assert scene.git.tidy(scene.place) == ("a.txt", "by-tests.txt")
    assert (scene.tree / "a.txt").read_text() == "good\n"
    assert not (scene.tree / "by-tests.txt").exists()
    assert not list(scene.admin().glob("aiflow-*"))


@pytest.mark.spec("RUN-3")
def test_a_second_try_is_collected_from_the_start(scene: Scene) -> None:
    scene.prepared()
    write(scene.tree / "cache.tmp")
    assert [file.path for file in scene.git.collect(scene.place, scene.base).files] == ["cache.tmp"]
    write(scene.tree / ".gitignore", "*.log\nbuild/\n*.tmp\n")
    assert [file.path for file in scene.git.collect(scene.place, scene.base).files] == [".gitignore"]


@pytest.mark.spec("REQ-8")
@pytest.mark.parametrize("is_committed", [False, True])
def test_requests_are_put_back_and_told(scene: Scene, is_committed: bool) -> None:
    scene.prepared()
    write(scene.tree / "requests/RQ-1.md", "# Changed\n")
    write(scene.tree / "requests/sub/RQ-2.md")
    write(scene.tree / "requests-not.txt")
    if is_committed:
        scene.at("add", "-A")
        scene.at("commit", "-qm", "mine")
    changes = scene.git.collect(scene.place, scene.base)
    assert changes.undone == ("requests/RQ-1.md", "requests/sub/RQ-2.md")
    assert [file.path for file in changes.files] == ["requests-not.txt"]
    assert (scene.tree / "requests/RQ-1.md").read_text() == "# Request\n"
    assert not (scene.tree / "requests/sub/RQ-2.md").exists()
    assert scene.shown(scene.git.commit(scene.place, scene.base, "S01\n")) == ["A\trequests-not.txt"]


@pytest.mark.spec("REQ-8")
@pytest.mark.parametrize("folder", ["runs", ".aiflow"])
@pytest.mark.parametrize("is_link", [False, True])
def test_what_is_brought_where_aiflow_keeps_its_own_is_removed(scene: Scene, folder: str, is_link: bool) -> None:
    scene.prepared()
    if is_link:
        (scene.tree / folder).symlink_to("/")
    else:
        write(scene.tree / folder / "locks/queue.lock.json", "{}")
    write(scene.tree / f"{folder}-not.txt")
    changes = scene.git.collect(scene.place, scene.base)
    assert changes.undone == (folder if is_link else f"{folder}/locks/queue.lock.json",)
    assert [file.path for file in changes.files] == [f"{folder}-not.txt"]
    assert not os.path.lexists(scene.tree / folder)
    assert scene.shown(scene.git.commit(scene.place, scene.base, "S01\n")) == [f"A\t{folder}-not.txt"]


@pytest.mark.spec("REQ-8")
def test_requests_that_the_base_does_not_have_are_removed(scene: Scene) -> None:
    git(scene.root, "rm", "-q", "requests/RQ-1.md")
    git(scene.root, "commit", "-qm", "no requests")
    base = git(scene.root, "rev-parse", "HEAD")
    scene.git.prepare(scene.place, base)
    write(scene.tree / "requests/RQ-2.md")
    changes = scene.git.collect(scene.place, base)
    assert (changes.files, changes.undone) == ((), ("requests/RQ-2.md",))
    assert not (scene.tree / "requests/RQ-2.md").exists()


@pytest.mark.spec("REQ-8")
@pytest.mark.parametrize("kind", ["deleted", "file", "link"])
def test_the_whole_folder_of_requests_is_put_back(scene: Scene, kind: str) -> None:
    scene.prepared()
    shutil.rmtree(scene.tree / "requests")
    if kind == "file":
        write(scene.tree / "requests")
    elif kind == "link":
        (scene.tree / "requests").symlink_to("lib")
    changes = scene.git.collect(scene.place, scene.base)
    assert "requests/RQ-1.md" in changes.undone
    assert changes.files == ()
    assert (scene.tree / "requests/RQ-1.md").read_text() == "# Request\n"
    assert scene.at("status", "--porcelain") == ""


@pytest.mark.spec("RUN-3")
def test_names_of_every_kind(scene: Scene) -> None:
    scene.prepared()
    names = [
        "-n",
        "--all",
        ":(top)x",
        "a\nb",
        "tab\tq",
        'quo"te',
        "ü 漢.txt",
        "sp ace /x",
        "*",
        "[a]",
        "back\\slash",
        "A.TXT",
    ]
    for name in names:
        write(scene.tree / name, "1\n")
    os.symlink("/nowhere", scene.tree / "link")
    shutil.rmtree(scene.tree / "lib")
    write(scene.tree / "lib", "now a file\n")
    (scene.tree / "a.txt").unlink()
    write(scene.tree / "a.txt/now a folder", "1\n")
    with open(os.fsencode(scene.tree) + b"/bytes-\xff", "wb") as file:
        file.write(b"1\n")
    changes = scene.git.collect(scene.place, scene.base)
    expected = {*names, "link", "lib", "lib/b.txt", "a.txt", "a.txt/now a folder", "bytes-\\xff"}
    assert {file.path for file in changes.files} == expected
    for change in changes.files:
        change.path.encode("utf-8")
    scene.git.commit(scene.place, scene.base, "S01\n")
    assert scene.at("status", "--porcelain") == ""
    for name in names:
        write(scene.tree / name, "2\n")
        write(scene.tree / f"{name}.new", "2\n")
    assert len(scene.git.tidy(scene.place)) == 2 * len(names)
    assert scene.at("status", "--porcelain") == ""


@pytest.mark.spec("RUN-3")
def test_nested_repositories_become_plain_files(scene: Scene) -> None:
    scene.prepared()
    for name in ("app", "app/inner", "unborn", "empty"):
        (scene.tree / name).mkdir()
        git(scene.tree / name, "init", "-q")
    write(scene.tree / "app/main.py")
    write(scene.tree / "app/.gitignore", "out/\n")
    write(scene.tree / "app/out/x.bin")
    write(scene.tree / "app/inner/x.py")
    write(scene.tree / "app/noise.log")
    git(scene.tree / "app", "add", "main.py")
    git(scene.tree / "app", "commit", "-qm", "scaffold")
    os.symlink("main.py", scene.tree / "app/link")
    write(scene.tree / "unborn/y.py")
    write(scene.tree / "z.py")
    expected = ["app/.gitignore", "app/inner/x.py", "app/link", "app/main.py", "unborn/y.py", "z.py"]
    for _ in range(2):
        changes = scene.git.collect(scene.place, scene.base)
        assert [file.path for file in changes.files] == expected
        assert [note.rsplit("repository ", 1)[1] for note in changes.notes] == [
            "app as plain files",
            "unborn as plain files",
        ]
    commit = scene.git.commit(scene.place, scene.base, "S01\n")
    assert "160000" not in scene.at("ls-tree", "-r", commit)
    scene.git.tidy(scene.place)
    assert scene.at("status", "--porcelain") == ""
    write(scene.tree / "app/more.py")
    changes = scene.git.collect(scene.place, commit)
    assert ([file.path for file in changes.files], changes.notes) == (["app/more.py"], ())


@pytest.mark.spec("RUN-3")
def test_a_nested_repository_with_a_commit_is_no_link(scene: Scene) -> None:
    scene.prepared()
    write(scene.tree / "app/main.py")
    git(scene.tree / "app", "init", "-q")
    git(scene.tree / "app", "add", "-A")
    git(scene.tree / "app", "commit", "-qm", "scaffold")
    changes = scene.git.collect(scene.place, scene.base)
    assert [file.path for file in changes.files] == ["app/main.py"]
    assert changes.notes == ("Took in the nested git repository app as plain files",)


@pytest.mark.spec("RUN-3")
def test_submodules_of_the_base_do_not_show(scene: Scene, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    write(other / "x.txt")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "x")
    allowed = ("-c", "protocol.file.allow=always")
    git(scene.root, *allowed, "submodule", "--quiet", "add", str(other), "vendor/other")
    git(scene.root, "commit", "-qm", "submodule")
    assert scene.git.facts("").has_submodules
    base = git(scene.root, "rev-parse", "HEAD")
    assert scene.git.prepare(scene.place, base)
    assert scene.git.collect(scene.place, base).files == ()
    assert scene.git.tidy(scene.place) == ()
    write(scene.tree / "new.txt")
    changes = scene.git.collect(scene.place, base)
    assert ([file.path for file in changes.files], changes.submodules) == (["new.txt"], ())
    tree = scene.git.snapshot(scene.place)
    assert "160000" in scene.at("ls-tree", "-r", tree)
    scene.at(*allowed, "submodule", "--quiet", "add", str(other), "vendor/second")
    for nested in ((), ("app/main.py",)):
        for name in nested:
            write(scene.tree / name)
            git(scene.tree / "app", "init", "-q")
        changes = scene.git.collect(scene.place, base)
        assert {file.path for file in changes.files} == {"new.txt", ".gitmodules", "vendor/second", *nested}
        assert len(changes.notes) == len(nested)


@pytest.mark.spec("GIT-4")
def test_copied_paths_are_never_committed_nor_removed(scene: Scene) -> None:
    scene.place = replace(scene.place, copied=(".env", "a.log", "./conf/local [x]/", "lib/b.txt", "lib/sub", "we*rd"))
    scene.prepared()
    for name in (".env", "a.log", "conf/local [x]/key", "we*rd", "lib/sub/key"):
        write(scene.tree / name, "secret\n")
    assert scene.git.collect(scene.place, scene.base).files == ()
    assert scene.git.tidy(scene.place) == ()
    write(scene.tree / "lib/b.txt", "was in git before\n")
    write(scene.tree / "weird")
    scene.at("add", "-A", "-f")
    scene.at("commit", "-qm", "mine")
    changes = scene.git.collect(scene.place, scene.base)
    assert [file.path for file in changes.files] == ["lib/b.txt", "weird"]
    unfinished = scene.git.keep_unfinished(scene.place, scene.base, WIP)
    assert b"secret" not in unfinished.patch
    assert scene.shown(unfinished.commit) == ["M\tlib/b.txt", "A\tweird"]
    scene.git.collect(scene.place, scene.base)
    commit = scene.git.commit(scene.place, scene.base, "S01\n")
    assert scene.shown(commit) == ["M\tlib/b.txt", "A\tweird"]
    write(scene.tree / "conf/other")
    write(scene.tree / "lib/b.txt", "changed\n")
    assert scene.git.tidy(scene.place) == ("conf/other", "lib/b.txt")
    scene.git.go_back(scene.place, scene.base, RETRIED)
    scene.git.restore(scene.place, scene.base, unfinished.commit)
    for name in (".env", "a.log", "conf/local [x]/key", "we*rd", "lib/sub/key"):
        assert (scene.tree / name).read_text() == "secret\n"
    everything = git(scene.root, "log", "--all", "--format=", "--name-only")
    assert ".env" not in everything and "key" not in everything


# --- tidying, keeping, going back ----------------------------------------------------------------------------------


@pytest.mark.spec("GIT-4")
def test_what_a_set_up_made_is_named_a_folder_as_one(scene: Scene) -> None:
    scene.prepared()
    assert scene.git.untracked(scene.place) == ()
    for name in ("node_modules/x/y.js", "node_modules/z.js", "lib/new ü.txt", "build/x.o", "a.txt"):
        write(scene.tree / name)
    assert scene.git.untracked(scene.place) == ("lib/new ü.txt", "node_modules")
    scene.place = replace(scene.place, copied=scene.git.untracked(scene.place))
    assert [file.path for file in scene.git.collect(scene.place, scene.base).files] == ["a.txt"]


@pytest.mark.spec("RUN-3")
@pytest.mark.parametrize("is_switched", [False, True])
def test_tidy_puts_back_what_came_behind_the_commit(scene: Scene, is_switched: bool) -> None:
    scene.prepared()
    write(scene.tree / "a.txt", "changed\n")
    (scene.tree / "lib/b.txt").unlink()
    write(scene.tree / "staged.txt")
    scene.at("add", "staged.txt")
    write(scene.tree / "deep/er/x.txt")
    write(scene.tree / "build/kept.o")
    (scene.tree / "nested").mkdir()
    git(scene.tree / "nested", "init", "-q")
    if is_switched:
        scene.at("checkout", "-q", "-b", "reviewers-own")
    scene.at("commit", "-qm", "a reviewer's commit")
    write(scene.admin() / "MERGE_HEAD", scene.base + "\n")
    assert scene.git.tidy(scene.place) == ("a.txt", "deep/er/x.txt", "lib/b.txt", "nested/", "staged.txt")
    assert scene.is_at(scene.base)
    assert scene.at("status", "--porcelain") == ""
    assert (scene.tree / "build/kept.o").exists()
    assert not (scene.tree / "deep").exists()
    assert not (scene.tree / "nested").exists()
    assert scene.git.tidy(scene.place) == ()


@pytest.mark.spec("RUN-7")
def test_a_persons_commit_before_a_resume_is_not_taken_back(scene: Scene) -> None:
    scene.prepared()
    write(scene.tree / "mine.txt")
    scene.at("add", "-A")
    scene.at("commit", "-qm", "a person's commit")
    tip = scene.at("rev-parse", "HEAD")
    assert not scene.git.prepare(scene.place, scene.base)
    assert scene.git.tidy(scene.place) == ()
    assert scene.is_at(tip)


@pytest.mark.spec("RUN-7")
def test_a_snapshot_tells_whether_anything_changed(scene: Scene) -> None:
    scene.prepared()
    before = scene.git.snapshot(scene.place)
    assert before == scene.at("rev-parse", "HEAD^{tree}")
    write(scene.tree / "noise.log")
    assert scene.anew().snapshot(scene.place) == before
    write(scene.tree / "new.txt")
    after = scene.anew().snapshot(scene.place)
    assert after != before
    assert "new.txt" in scene.at("ls-tree", "-r", "--name-only", after)
    assert scene.anew().snapshot(scene.place) == after
    assert scene.is_at(scene.base)


@pytest.mark.spec("RUN-7", "RUN-11")
def test_an_unfinished_step_is_kept_and_laid_out_again(scene: Scene) -> None:
    scene.prepared()
    write(scene.tree / "a.txt", "half done\n")
    scene.at("commit", "-qam", "mine")
    (scene.tree / "lib/b.txt").unlink()
    write(scene.tree / "new/ü.bin", b"\0\1\2")
    here = files_of(scene.tree)
    kept = scene.git.keep_unfinished(scene.place, scene.base, WIP)
    assert scene.is_at(scene.base)
    assert files_of(scene.tree) == here
    assert git(scene.root, "rev-parse", WIP) == kept.commit
    assert git(scene.root, "log", "-1", "--format=%P %T", kept.commit) == f"{scene.base} {kept.tree}"
    assert scene.git.snapshot(scene.place) == kept.tree

    shutil.rmtree(scene.tree)
    anew = scene.anew()
    assert anew.prepare(scene.place, scene.base)
    anew.restore(scene.place, scene.base, kept.commit)
    assert files_of(scene.tree) == here
    assert scene.is_at(scene.base)
    assert anew.snapshot(scene.place) == kept.tree
    assert [file.path for file in anew.collect(scene.place, scene.base).files] == ["a.txt", "lib/b.txt", "new/ü.bin"]

    clone = scene.root.parent / "clone"
    git(scene.root.parent, "clone", "-q", "--no-local", str(scene.root), str(clone))
    subprocess.run(["git", "apply", "--index", "-"], cwd=clone, input=kept.patch, check=True)
    assert git(clone, "write-tree") == kept.tree


@pytest.mark.spec("RUN-7")
def test_an_unfinished_step_that_changed_nothing_is_kept_too(scene: Scene) -> None:
    scene.prepared()
    kept = scene.git.keep_unfinished(scene.place, scene.base, WIP)
    assert (kept.tree, kept.patch) == (scene.at("rev-parse", f"{scene.base}^{{tree}}"), b"")
    assert git(scene.root, "rev-parse", WIP) == kept.commit
    assert scene.git.collect(scene.place, scene.base).files == ()


@pytest.mark.spec("RUN-6")
def test_going_back_keeps_what_was_there(scene: Scene) -> None:
    scene.prepared()
    write(scene.tree / "a.txt", "S01\n")
    scene.git.collect(scene.place, scene.base)
    first = scene.git.commit(scene.place, scene.base, "S01\n")
    write(scene.tree / "a.txt", "S02\n")
    write(scene.tree / "new.txt")
    write(scene.tree / "noise.log")
    here = scene.git.snapshot(scene.place)
    scene.git.go_back(scene.place, scene.base, RETRIED)
    assert scene.is_at(scene.base)
    assert scene.at("status", "--porcelain") == ""
    assert not (scene.tree / "new.txt").exists()
    assert (scene.tree / "noise.log").exists()
    assert git(scene.root, "log", "-1", "--format=%P %T", RETRIED) == f"{first} {here}"
    kept = git(scene.root, "rev-parse", RETRIED)
    scene.anew().go_back(scene.place, scene.base, RETRIED)
    assert git(scene.root, "rev-parse", RETRIED) == kept
    write(scene.tree / "other.txt")
    scene.anew().go_back(scene.place, scene.base, RETRIED)
    assert git(scene.root, "merge-base", "--is-ancestor", kept, RETRIED) == ""
    assert scene.git.collect(scene.place, scene.base).files == ()


@pytest.mark.spec("RUN-6")
def test_going_back_from_another_branch_loses_nothing(scene: Scene) -> None:
    scene.prepared()
    scene.at("checkout", "-q", "-b", "feature")
    write(scene.tree / "a.txt", "elsewhere\n")
    scene.at("commit", "-qam", "mine")
    elsewhere = scene.at("rev-parse", "HEAD")
    scene.git.go_back(scene.place, scene.base, RETRIED)
    assert scene.is_at(scene.base)
    assert git(scene.root, "merge-base", "--is-ancestor", elsewhere, RETRIED) == ""
    assert (scene.tree / "a.txt").read_text() == "one\ntwo\n"


# --- the user's own ------------------------------------------------------------------------------------------------


def _prints(root: Path) -> dict[str, str]:
    prints = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        parts = path.relative_to(root).parts
        ours = parts[0] == ".git" and ({"objects", "worktrees", "aiflow"} & set(parts))
        if not ours and (path.is_file() or path.is_symlink()):
            prints[name] = (
                f"{path.lstat().st_mode} {path.lstat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
            )
    return prints


@pytest.mark.spec("GIT-1")
@pytest.mark.parametrize("is_detached", [False, True])
def test_nothing_of_the_users_is_touched(scene: Scene, is_detached: bool) -> None:
    root = scene.root
    write(root / "a.txt", "stashed\n")
    git(root, "stash", "push", "-q")
    git(root, "branch", "other")
    if is_detached:
        git(root, "checkout", "-q", "--detach")
    write(root / "staged.txt")
    write(root / "a.txt", "staged\n")
    git(root, "add", "-A")
    write(root / "a.txt", "staged, then changed\n")
    write(root / "untracked/x.txt")
    write(root / "ignored.log")
    (root / "lib/b.txt").touch()  # a refresh would write the index
    before = _prints(root)
    assert {
        ".git/index",
        ".git/HEAD",
        ".git/refs/stash",
        ".git/refs/heads/other",
        ".git/config",
        ".git/logs/HEAD",
    } <= set(before)

    facts = scene.git.facts("main")
    assert facts.changed_paths == ("a.txt", "staged.txt")
    scene.prepared()
    write(scene.tree / "a.txt", "S01\n")
    write(scene.tree / "requests/RQ-9.md")
    scene.git.collect(scene.place, scene.base)
    commit = scene.git.commit(scene.place, scene.base, "S01\n")
    write(scene.tree / "by-tests.txt")
    scene.git.tidy(scene.place)
    write(scene.tree / "half.txt")
    kept = scene.git.keep_unfinished(scene.place, commit, WIP)
    scene.git.go_back(scene.place, scene.base, RETRIED)
    scene.git.restore(scene.place, scene.base, kept.commit)
    scene.git.snapshot(scene.place)
    scene.git.find_commit(scene.place, scene.base, {"Aiflow-Run": "RUN-1"})
    shutil.rmtree(scene.tree)
    scene.anew().prepare(scene.place, scene.base)
    scene.anew().facts("")
    assert _prints(root) == before


@pytest.mark.spec("GIT-1")
def test_hooks_and_signing_are_left_out_unless_asked_for(scene: Scene, tmp_path: Path) -> None:
    for name in (
        "pre-commit",
        "post-checkout",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "reference-transaction",
    ):
        hook = write(scene.root / ".git/hooks" / name, f"#!/bin/sh\necho {name} >> {tmp_path}/hooks\n")
        hook.chmod(0o755)
    signer = write(tmp_path / "signer", f"#!/bin/sh\ntouch {tmp_path}/signed\nexit 1\n")
    signer.chmod(0o755)
    git(scene.root, "config", "commit.gpgSign", "true")
    git(scene.root, "config", "gpg.program", str(signer))
    scene.prepared()
    write(scene.tree / "a.txt", "S01\n")
    scene.git.collect(scene.place, scene.base)
    commit = scene.git.commit(scene.place, scene.base, "S01\n")
    scene.git.go_back(scene.place, scene.base, RETRIED)
    assert commit
    assert not (tmp_path / "hooks").exists()
    assert not (tmp_path / "signed").exists()

    write(scene.tree / "a.txt", "again\n")
    hooked: Workspaces = GitWorkspaces(str(scene.root), "RUN-1", hooks=True)
    hooked.collect(scene.place, scene.base)
    commit = hooked.commit(scene.place, scene.base, "S01\n")
    assert {"pre-commit", "commit-msg", "post-commit"} <= set((tmp_path / "hooks").read_text().split())
    write(scene.tree / "a.txt", "once more\n")
    signed: Workspaces = GitWorkspaces(str(scene.root), "RUN-1", sign=True)
    signed.collect(scene.place, commit)
    with pytest.raises(AiflowError) as caught:
        signed.commit(scene.place, commit, "S02\n")
    assert caught.value.reason_code == "GIT_FAILED"
    assert (tmp_path / "signed").exists()


@pytest.mark.spec("GIT-1")
def test_settings_and_variables_of_the_user_do_not_confuse(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = write(tmp_path / "monitor", f"#!/bin/sh\ntouch {tmp_path}/monitored\nexit 1\n")
    monitor.chmod(0o755)
    for name, value in {
        "color.ui": "always",
        "color.status": "always",
        "status.showUntrackedFiles": "no",
        "status.short": "true",
        "status.branch": "true",
        "status.showStash": "true",
        "status.relativePaths": "true",
        "commit.template": "/nowhere",
        "commit.cleanup": "strip",
        "commit.verbose": "true",
        "core.safecrlf": "true",
        "core.autocrlf": "input",
        "core.quotePath": "true",
        "core.commentChar": "S",
        "diff.noprefix": "true",
        "diff.mnemonicPrefix": "true",
        "diff.external": "/bin/false",
        "diff.renames": "copies",
        "diff.orderFile": "/nowhere",
        "core.pager": "/bin/false",
        "core.editor": "/bin/false",
        "core.fsmonitor": str(monitor),
        "core.splitIndex": "true",
        "submodule.recurse": "true",
        "push.default": "nothing",
        "i18n.commitEncoding": "ISO-8859-1",
        "clean.requireForce": "true",
        "index.version": "4",
    }.items():
        git(scene.root, "config", name, value)
    for name in (
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_EDITOR",
        "GIT_EXTERNAL_DIFF",
    ):
        monkeypatch.setenv(name, str(tmp_path / "wrong"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    write(scene.root / "a.txt", "changed\n")
    assert scene.git.facts("").changed_paths == ("a.txt",)
    scene.prepared()
    write(scene.tree / "ü.txt", "a\r\nb\n")
    write(scene.tree / "a.txt", "S01\n")
    assert [file.path for file in scene.git.collect(scene.place, scene.base).files] == ["a.txt", "ü.txt"]
    commit = scene.git.commit(scene.place, scene.base, "S01 ü\n\n\n# kept\n")
    assert scene.git.tip(scene.place) == commit
    write(scene.tree / "new.txt")
    assert scene.git.tidy(scene.place) == ("new.txt",)
    write(scene.tree / "new.txt")
    kept = scene.git.keep_unfinished(scene.place, commit, WIP)
    assert kept.patch.startswith(b"diff --git a/new.txt b/new.txt\n")
    for name in [name for name in os.environ if name.startswith("GIT_") and "wrong" in os.environ[name]]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("GIT_CONFIG_COUNT")
    assert not (tmp_path / "monitored").exists()
    header, _, message = scene.at("cat-file", "commit", commit).partition("\n\n")
    assert message == "S01 ü\n\n\n# kept"
    assert "encoding" not in header


@pytest.mark.spec("AGT-5")
def test_git_carries_the_mark_of_its_run(scene: Scene) -> None:
    told = Git(str(scene.root), "RUN-1").run("-c", "alias.env=!env", "env").out.decode()
    assert "AIFLOW_GIT_OF=RUN-1\n" in told
    assert "GIT_TERMINAL_PROMPT=0\n" in told
    assert "GIT_OPTIONAL_LOCKS=0\n" in told
    assert "AIFLOW_GIT_OF" not in Git(str(scene.root)).run("-c", "alias.env=!env", "env").out.decode()


# --- what goes wrong -----------------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-1")
def test_a_commit_without_an_identity(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.prepared()
    git(scene.root, "config", "user.useConfigOnly", "true")
    write(scene.tree / "new.txt")
    for name in [name for name in os.environ if name.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))]:
        monkeypatch.delenv(name)
    assert [file.path for file in scene.git.collect(scene.place, scene.base).files] == ["new.txt"]
    with pytest.raises(AiflowError) as caught:
        scene.git.commit(scene.place, scene.base, "S01\n")
    assert caught.value.reason_code == "GIT_IDENTITY_MISSING"
    kept = scene.git.keep_unfinished(scene.place, scene.base, WIP)
    scene.git.go_back(scene.place, scene.base, RETRIED)
    assert git(scene.root, "rev-parse", WIP) == kept.commit


@pytest.mark.spec("GIT-1")
def test_what_git_refuses_is_told_with_its_words(scene: Scene) -> None:
    scene.prepared()
    with pytest.raises(AiflowError) as caught:
        scene.git.commit(scene.place, scene.base, "nothing to commit\n")
    assert caught.value.reason_code == "GIT_FAILED"
    assert str(caught.value.context["command"]).startswith("git commit")
    with pytest.raises(AiflowError) as caught:
        scene.git.prepare(replace(scene.place, branch="bad..name", path=f"{scene.tree}-2"), scene.base)
    assert "bad..name" in str(caught.value.context["problem"])


@pytest.mark.spec("GIT-1")
def test_git_may_be_missing_or_stand_still(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiflow.adapters.git.git_cli._LIMIT_SECONDS", 0.2)
    with pytest.raises(AiflowError) as caught:
        Git(str(scene.root)).run("-c", "alias.still=!exec sleep 5", "still")
    assert caught.value.reason_code == "GIT_FAILED"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AiflowError) as caught:
        scene.git.facts("")
    assert caught.value.reason_code == "GIT_NOT_FOUND"
    with pytest.raises(AiflowError) as caught:
        GitWorkspaces(str(tmp_path / "nowhere")).facts("")
    assert caught.value.reason_code == "IO_ERROR"


@pytest.mark.spec("DOC-1")
@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("git version 2.39.5", (2, 39, 5)),
        ("git version 2.50.1 (Apple Git-155)", (2, 50, 1)),
        ("git version 2.45.0.rc1.windows.1", (2, 45, 0)),
        ("nonsense", ()),
    ],
)
def test_gits_version(said: str, version: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "bin/git", f"#!/bin/sh\necho '{said}'\n").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    assert GitWorkspaces(str(tmp_path)).version() == version


# --- facts ---------------------------------------------------------------------------------------------------------


def facts_of(root: Path, base_branch: str = "") -> RepositoryFacts:
    return GitWorkspaces(str(root)).facts(base_branch)


@pytest.mark.spec("GIT-1", "RUN-7")
def test_facts_of_a_clean_checkout(scene: Scene) -> None:
    write(scene.root / "untracked.txt")
    assert facts_of(scene.root) == RepositoryFacts(
        head_branch="main",
        head_commit=scene.base,
        base_branch="main",
        base_commit=scene.base,
        identity="Ada <ada@example.com>",
    )


@pytest.mark.spec("RUN-7")
def test_every_kind_of_change_counts(scene: Scene) -> None:
    for name in ("moved", "typed", "gone", "unstaged", "both", "new\nline"):
        write(scene.root / name, f"{name}\n" * 20)
    git(scene.root, "add", "-A")
    git(scene.root, "commit", "-qm", "more")
    git(scene.root, "checkout", "-q", "-b", "side")
    write(scene.root / "both", "side\n")
    git(scene.root, "commit", "-qam", "side")
    git(scene.root, "checkout", "-q", "main")
    write(scene.root / "both", "main\n")
    git(scene.root, "commit", "-qam", "main")
    git(scene.root, "merge", "-q", "side", code=1)
    git(scene.root, "mv", "moved", "moved here")
    (scene.root / "typed").unlink()
    (scene.root / "typed").symlink_to("a.txt")
    git(scene.root, "rm", "-q", "gone")
    write(scene.root / "unstaged", "changed\n")
    write(scene.root / "new\nline", "changed\n")
    write(scene.root / "added")
    git(scene.root, "add", "added")
    found = facts_of(scene.root).changed_paths
    assert sorted(found) == sorted(["moved", "moved here", "typed", "gone", "unstaged", "both", "new\nline", "added"])


@pytest.mark.spec("GIT-1")
def test_the_base_branch_may_be_another_one(scene: Scene) -> None:
    git(scene.root, "branch", "release/1")
    write(scene.root / "new.txt")
    git(scene.root, "add", "-A")
    git(scene.root, "commit", "-qm", "second")
    second = git(scene.root, "rev-parse", "HEAD")
    for _ in range(2):
        facts = facts_of(scene.root, "release/1")
        assert (facts.head_commit, facts.base_branch, facts.base_commit) == (second, "release/1", scene.base)
        assert facts_of(scene.root, "none").base_commit is None
        assert facts_of(scene.root, "release").base_commit is None
        git(scene.root, "pack-refs", "--all")
    git(scene.root, "checkout", "-q", "--detach")
    facts = facts_of(scene.root)
    assert (facts.head_branch, facts.head_commit, facts.base_branch, facts.base_commit) == (None, second, "", None)
    assert facts_of(scene.root, "main").base_commit == second


@pytest.mark.spec("GIT-1")
def test_facts_in_places_of_other_kinds(scene: Scene, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(scene.root, "worktree", "add", "-q", "-b", "linked", str(linked))
    facts = facts_of(linked, "main")
    assert (facts.head_branch, facts.base_commit) == ("linked", scene.base)
    write(linked / "a.txt", "changed\n")
    assert facts_of(linked).changed_paths == ("a.txt",)
    assert facts_of(scene.root).changed_paths == ()
    place = replace(scene.place, path=str(tmp_path / "of-linked"))
    workspaces = GitWorkspaces(str(linked))
    assert workspaces.prepare(place, scene.base)
    assert workspaces.collect(place, scene.base).files == ()

    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(scene.root), str(bare))
    git(bare, "worktree", "add", "-q", str(tmp_path / "of-bare"), "main")
    assert facts_of(tmp_path / "of-bare").base_commit == scene.base
    place = replace(scene.place, path=str(tmp_path / "run-of-bare"))
    workspaces = GitWorkspaces(str(tmp_path / "of-bare"))
    assert workspaces.prepare(place, scene.base)
    write(tmp_path / "run-of-bare/new.txt")
    assert len(workspaces.collect(place, scene.base).files) == 1
    assert workspaces.commit(place, scene.base, "S01\n")

    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (empty, bare, tmp_path):
        with pytest.raises(AiflowError) as caught:
            facts_of(path)
        assert (caught.value.reason_code, caught.value.context["path"]) == ("NOT_A_REPOSITORY", str(path))
    git(empty, "init", "-q", "-b", "trunk")
    facts = facts_of(empty)
    assert (facts.head_branch, facts.head_commit, facts.base_branch, facts.base_commit) == (
        "trunk",
        None,
        "trunk",
        None,
    )


@pytest.mark.spec("RUN-7")
def test_who_commits(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_NAME", "Grace")
    assert facts_of(scene.root).identity == "Grace <ada@example.com>"
    for name in [name for name in os.environ if name.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("EMAIL", raising=False)
    git(scene.root, "config", "user.useConfigOnly", "true")
    assert facts_of(scene.root).identity is None
    git(scene.root, "config", "user.name", "Ada 漢字")
    assert facts_of(scene.root).identity is None
    git(scene.root, "config", "user.email", "ada@local")
    assert facts_of(scene.root).identity == "Ada 漢字 <ada@local>"
    git(scene.root, "config", "committer.email", "bot@local")
    assert facts_of(scene.root).identity == "Ada 漢字 <bot@local>"
    monkeypatch.setenv("GIT_AUTHOR_NAME", "<>")
    assert facts_of(scene.root).identity is None
    monkeypatch.delenv("GIT_AUTHOR_NAME")
    git(scene.root, "config", "user.name", "")
    assert facts_of(scene.root).identity is None
    git(scene.root, "config", "--unset", "user.name")
    git(scene.root, "config", "--unset", "user.useConfigOnly")
    for variable in ("user.email", "committer.email"):
        git(scene.root, "config", "--unset", variable)
    monkeypatch.setenv("EMAIL", "ada@example.org")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ada")
    monkeypatch.setenv("GIT_COMMITTER_NAME", "Ada")
    assert facts_of(scene.root).identity == "Ada <ada@example.org>"


@pytest.mark.spec("GIT-2")
def test_where_origin_is(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert facts_of(scene.root).origin_url is None
    git(scene.root, "remote", "add", "origin", "git@github.com:o/r.git")
    git(scene.root, "remote", "add", "other", "git@github.com:o/other.git")
    assert facts_of(scene.root).origin_url == "git@github.com:o/r.git"
    git(scene.root, "remote", "set-url", "--add", "origin", "git@github.com:o/mirror.git")
    assert facts_of(scene.root).origin_url == "git@github.com:o/r.git"
    included = write(tmp_path / "global", '[url "git@github.com:"]\n\tinsteadOf = gh:\n\tinsteadOf = g\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(included))
    git(scene.root, "config", "--replace-all", "remote.origin.url", "gh:o/r")
    assert facts_of(scene.root).origin_url == "git@github.com:o/r"


@pytest.mark.spec("GIT-1")
def test_facts_do_not_depend_on_what_git_tells_along_the_way(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    git(scene.root, "remote", "add", "origin", "git@github.com:o/r.git")
    told = facts_of(scene.root)
    monkeypatch.setattr("aiflow.adapters.git.repository_facts._TELLING", {})
    assert facts_of(scene.root) == told
    assert told.origin_url == "git@github.com:o/r.git"


@pytest.mark.spec("RUN-7")
def test_submodules_and_large_files_are_noticed(scene: Scene) -> None:
    write(scene.root / ".gitattributes", "*.psd filter=lfs diff=lfs merge=lfs -text\n")
    write(scene.root / ".gitmodules", "")
    facts = facts_of(scene.root)
    assert (facts.has_submodules, facts.uses_lfs) == (True, True)


# --- the price -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("PRF-5")
def test_three_steps_start_at_most_14_processes(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which("git")
    counter = tmp_path / "calls"
    wrapper = write(tmp_path / "bin/git", f'#!/bin/sh\necho "$@" >> {counter}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    git(scene.root, "remote", "add", "origin", "git@github.com:o/r.git")
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    workspaces: Workspaces = GitWorkspaces(str(scene.root), "RUN-1")
    tip = workspaces.facts("").base_commit or ""
    workspaces.prepare(scene.place, tip)
    for step in ("S01", "S02", "S03"):
        assert not workspaces.prepare(scene.place, tip)
        assert workspaces.is_intact(scene.place)
        write(scene.tree / f"{step}.txt")
        write(scene.tree / "a.txt", step)
        assert len(workspaces.collect(scene.place, tip).files) == 2
        assert workspaces.find_commit(scene.place, tip, {"Aiflow-Step": step}) is None
        assert workspaces.tip(scene.place) == tip
        tip = workspaces.commit(scene.place, tip, f"{step}\n")
        assert workspaces.tidy(scene.place) == ()
    calls = counter.read_text().splitlines()
    assert len(calls) <= 14, calls


@pytest.mark.spec("GIT-1", "AGT-4")
def test_no_git_of_ours_heeds_the_settings_that_an_agent_gave_a_submodule(scene: Scene, tmp_path: Path) -> None:
    sub = scene.prepared().tree / "sub"
    sub.mkdir()
    git(sub, "init", "-q", ".")
    write(sub / ".gitattributes", "*.txt filter=evil\n")
    write(sub / "a.txt", "one\n")
    git(sub, "add", "-A")
    git(sub, "commit", "-qm", "inside")
    git(sub, "config", "filter.evil.clean", f"touch {tmp_path}/escaped; cat")
    write(scene.tree / ".gitmodules", '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n')
    scene.git.collect(scene.place, scene.base)
    first = scene.git.commit(scene.place, scene.base, "with a submodule")
    assert git(scene.root, "ls-tree", first, "sub").startswith("160000 ")
    (scene.tree / ".gitmodules").unlink()
    write(sub / "a.txt", "two\n")
    write(scene.tree / "c.txt", "c\n")
    for workspaces in (scene.git, scene.anew()):
        changes = workspaces.collect(scene.place, first)
        assert ({file.path for file in changes.files}, changes.submodules) == ({".gitmodules", "c.txt"}, ("sub",))
        workspaces.keep_unfinished(scene.place, first, "refs/aiflow/wip/x")
    assert not (tmp_path / "escaped").exists()


# --- what set-up made ----------------------------------------------------------------------------------------------


@pytest.fixture
def set_up(found: Scene) -> Scene:
    """Give a worktree in which set-up made things, and a file was copied."""
    write(found.tree / "build/lib/one")
    write(found.tree / "lib/two.log")
    write(found.tree / "plain/three")
    write(found.tree / "build/copied/.env")
    (found.tree / "build/link").symlink_to(found.root)
    found.place = replace(found.place, copied=("build/copied",))
    found.git.note_set_up(found.place, is_known=True)
    return found


@pytest.mark.spec("GIT-3", "GIT-4")
def test_what_came_since_set_up_is_removed_and_no_link_followed(set_up: Scene) -> None:
    before, theirs = files_of(set_up.tree), files_of(set_up.root)
    write(set_up.tree / "build/lib/deep/er/new").chmod(0o400)
    (set_up.tree / "build/lib/deep/er").chmod(0o500)
    (set_up.tree / "lib/new.log").symlink_to(set_up.root)
    (set_up.tree / "lib/empty").mkdir()
    git(set_up.tree, "init", "-q", "build/nested")
    write(set_up.tree / "plain/forced")
    set_up.at("add", "-f", "plain/forced")
    write(set_up.tree / "build/copied/more")
    assert set_up.anew().is_as_set_up(set_up.place, set_up.base)
    assert files_of(set_up.tree) == before | {"build/copied/more": files_of(set_up.tree)["build/copied/more"]}
    assert not (set_up.tree / "lib/empty").exists()
    assert not (set_up.tree / "build/nested").exists()
    assert files_of(set_up.root) == theirs


def _touched(scene: Scene) -> None:
    os.utime(scene.tree / "build/lib/one")


def _opened_up(scene: Scene) -> None:
    (scene.tree / "lib/two.log").chmod(0o755)


def _unlinked(scene: Scene) -> None:
    (scene.tree / "plain/three").unlink()


def _linked_elsewhere(scene: Scene) -> None:
    (scene.tree / "build/link").unlink()
    (scene.tree / "build/link").symlink_to(scene.tree)


def _list_torn(scene: Scene) -> None:
    path = Path(f"{scene.tree}.set-up")
    path.write_bytes(path.read_bytes()[:-5])


def _not_known(scene: Scene) -> None:
    scene.git.note_set_up(scene.place, is_known=False)


def _worktree_inside(scene: Scene) -> None:
    git(scene.root, "worktree", "add", "-q", "--detach", str(scene.tree / "build/other"))


def _sparse(scene: Scene) -> None:
    git(scene.root, "config", "core.sparseCheckout", "true")


@pytest.mark.spec("GIT-3", "GIT-4")
@pytest.mark.parametrize(
    "deed",
    [
        _touched,
        _opened_up,
        _unlinked,
        _linked_elsewhere,
        _list_torn,
        _not_known,
        _worktree_inside,
        _sparse,
    ],
)
def test_a_worktree_that_is_not_as_set_up_left_it_stays_untouched(set_up: Scene, deed: Callable[[Scene], None]) -> None:
    write(set_up.tree / "build/new")
    deed(set_up)
    before = files_of(set_up.tree)
    assert not set_up.anew().is_as_set_up(set_up.place, set_up.base)
    assert files_of(set_up.tree) == before


@pytest.mark.spec("RUN-3")
def test_what_a_sparse_checkout_leaves_out_is_no_deletion(found: Scene) -> None:
    found.at("sparse-checkout", "set", "--no-cone", "/*", "!/lib/")
    assert not (found.tree / "lib").exists()
    write(found.tree / "a.txt", "changed\n")
    assert [file.path for file in found.git.collect(found.place, found.base).files] == ["a.txt"]
