"""The `Housekeeping` port against real git: what a worktree holds, what is found, and what may be taken away (GIT-5)."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from aiflow.domain.clean.cleaning import Item, ItemKind
from aiflow.domain.clean.leftovers import LeftoverKind, TreeState
from aiflow.domain.runs.run import Run
from aiflow.errors import EnvironmentProblemError
from clean_yard import Yard, everything_in, git


@pytest.fixture
def yard(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    return Yard(repository, tmp_path, monkeypatch)


@pytest.fixture
def run(yard: Yard) -> Run:
    return yard.run()


def tree_of(run: Run) -> Path:
    return Path(run.place.path)


# --- what is in a worktree -------------------------------------------------------------------------------------------


def _nothing(tree: Path) -> None:
    pass


def _ignored(tree: Path) -> None:
    (tree / "x.ignored").write_text("x")


def _copied(tree: Path) -> None:
    (tree / "copied").mkdir()
    (tree / "copied/key").write_text("x")


def _empty_folder(tree: Path) -> None:
    (tree / "empty/er").mkdir(parents=True)


def _touched(tree: Path) -> None:
    os.utime(tree / "app.txt", (1, 1))


def _detached_at_home(tree: Path) -> None:
    git(tree, "checkout", "-q", "--detach", "HEAD~1")


def _hidden_but_as_it_was(tree: Path) -> None:
    git(tree, "update-index", "--assume-unchanged", "app.txt")


def _sparse(tree: Path) -> None:
    git(tree, "sparse-checkout", "set", "--no-cone", "/app.txt")
    assert not (tree / ".gitignore").exists()


def _worktree_inside_gone(tree: Path) -> None:
    _worktree_inside(tree)
    subprocess.run(["rm", "-r", str(tree / "side.ignored")], check=True)


def _pointer_only(tree: Path) -> None:
    for path in tree.iterdir():
        if path.name != ".git":
            path.unlink()
    (tree / ".git").write_text("gitdir: /nowhere\n")


def _half_made(tree: Path) -> None:
    admin = Path(git(tree, "rev-parse", "--path-format=absolute", "--git-dir"))
    (admin / "locked").write_text("initializing\n")


def _submodule(tree: Path) -> None:
    other = tree.parent.parent / "other"
    git(tree.parent.parent, "init", "-q", "-b", "main", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "first")
    git(tree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    git(tree, "commit", "-qm", "submodule")


@pytest.mark.spec("GIT-5")
@pytest.mark.parametrize(
    "change",
    [
        _nothing,
        _ignored,
        _copied,
        _empty_folder,
        _touched,
        _detached_at_home,
        _hidden_but_as_it_was,
        _pointer_only,
        _half_made,
        _submodule,
        _sparse,
        _worktree_inside_gone,
    ],
)
def test_a_worktree_is_saved_if_git_has_all_of_it(yard: Yard, run: Run, change: Callable[[Path], None]) -> None:
    change(tree_of(run))
    place = replace(run.place, copied=("copied",))
    before = everything_in(yard.root, yard.state)
    assert yard.engine.housekeeping.state_of(place, None) is TreeState.SAVED
    assert everything_in(yard.root, yard.state) == before  # looking changes nothing at all


def _changed(tree: Path) -> None:
    (tree / "app.txt").write_text("changed\n")


def _deleted(tree: Path) -> None:
    (tree / "app.txt").unlink()


def _mode(tree: Path) -> None:
    (tree / "app.txt").chmod(0o755)


def _untracked(tree: Path) -> None:
    (tree / "deep/er").mkdir(parents=True)
    (tree / "deep/er/new.txt").write_text("x")


def _staged_only(tree: Path) -> None:
    (tree / "app.txt").write_text("changed\n")
    git(tree, "add", "app.txt")
    (tree / "app.txt").write_text("app\n")


def _hidden(tree: Path) -> None:
    git(tree, "update-index", "--assume-unchanged", "app.txt")
    (tree / "app.txt").write_text("changed\n")


def _skipped(tree: Path) -> None:
    git(tree, "update-index", "--skip-worktree", "app.txt")
    (tree / "app.txt").write_text("changed\n")


def _nested_repository(tree: Path) -> None:
    git(tree, "init", "-q", "nested")
    (tree / "nested/x").write_text("x")


def _forced_ignored(tree: Path) -> None:
    (tree / "x.ignored").write_text("x")
    git(tree, "add", "-f", "x.ignored")


def _submodule_commit(tree: Path) -> None:
    """A submodule of the worktree with a commit of its own that nobody else has."""
    _submodule(tree)
    git(tree / "sub", "commit", "-q", "--allow-empty", "-m", "own")
    git(tree, "commit", "-qam", "its own commit")


@pytest.mark.spec("GIT-5")
@pytest.mark.parametrize(
    "change",
    [
        _changed,
        _deleted,
        _mode,
        _untracked,
        _staged_only,
        _hidden,
        _skipped,
        _nested_repository,
        _forced_ignored,
        _submodule_commit,
    ],
)
def test_a_worktree_with_anything_else_is_unsaved(yard: Yard, run: Run, change: Callable[[Path], None]) -> None:
    change(tree_of(run))
    assert yard.engine.housekeeping.state_of(run.place, None) is TreeState.UNSAVED


def _other_branch(tree: Path) -> None:
    git(tree, "switch", "-qc", "mine")


def _detached_commit(tree: Path) -> None:
    git(tree, "checkout", "-q", "--detach")
    git(tree, "commit", "-q", "--allow-empty", "-m", "mine")


def _merging(tree: Path) -> None:
    git(tree, "switch", "-qc", "theirs", "HEAD~1")
    (tree / "app.txt").write_text("theirs\n")
    git(tree, "commit", "-qam", "theirs")
    git(tree, "switch", "-q", "-")
    git(tree, "merge", "-q", "--no-commit", "--no-ff", "theirs")


def _person_locked(tree: Path) -> None:
    git(tree, "worktree", "lock", str(tree))


def _worktree_inside(tree: Path) -> None:
    git(tree, "worktree", "add", "-q", "-b", "side", str(tree / "side.ignored"))


def _pointer_lost(tree: Path) -> None:
    (tree / ".git").unlink()


def _link(tree: Path) -> None:
    tree.rename(tree.with_name("mine"))
    tree.symlink_to(tree.with_name("mine"))


def _file(tree: Path) -> None:
    subprocess.run(["rm", "-r", str(tree)], check=True)
    tree.write_text("mine\n")


def _missing(tree: Path) -> None:
    subprocess.run(["rm", "-r", str(tree)], check=True)


@pytest.mark.spec("GIT-5")
@pytest.mark.parametrize(
    ("change", "state"),
    [
        (_other_branch, "other_branch"),
        (_detached_commit, "other_branch"),
        (_merging, "under_way"),
        (_person_locked, "held"),
        (_worktree_inside, "nested"),
        (_pointer_lost, "unknown"),
        (_file, "unknown"),
        (_link, "elsewhere"),
        (_missing, "missing"),
    ],
)
def test_a_worktree_that_is_something_else_is_told(
    yard: Yard, run: Run, change: Callable[[Path], None], state: str
) -> None:
    change(tree_of(run))
    assert yard.engine.housekeeping.state_of(run.place, None) == state


@pytest.mark.spec("GIT-5")
def test_what_an_unfinished_step_left_is_saved_while_it_is_as_it_was_kept(yard: Yard, run: Run) -> None:
    tree, engine = tree_of(run), yard.engine
    (tree / "app.txt").write_text("half\n")
    (tree / "new.txt").write_text("half\n")
    (tree / "copied").write_text("x")
    place = replace(run.place, copied=("copied",))
    workspace = engine.workspaces(run.run_id)
    kept = workspace.keep_unfinished(
        place, yard.git("rev-parse", run.place.branch), f"refs/aiflow/wip/{run.run_id}/S01"
    )
    before = everything_in(yard.root, yard.state)
    assert engine.housekeeping.state_of(place, kept.commit) is TreeState.SAVED
    assert engine.housekeeping.state_of(place, None) is TreeState.UNSAVED
    assert everything_in(yard.root, yard.state) == before
    workspace.snapshot(place)  # a resume that was refused leaves it in the index
    assert engine.housekeeping.state_of(place, kept.commit) is TreeState.SAVED
    (tree / "new.txt").write_text("mended by a person\n")
    assert engine.housekeeping.state_of(place, kept.commit) is TreeState.UNSAVED
    git(tree, "add", "new.txt")
    (tree / "new.txt").write_text("half\n")  # what was staged is nowhere else
    assert engine.housekeeping.state_of(place, kept.commit) is TreeState.UNSAVED


@pytest.mark.spec("GIT-5")
def test_a_state_folder_behind_a_link_is_still_ours(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "big disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "big disk")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "link"))
    run = yard.run()
    assert yard.engine.housekeeping.state_of(run.place, None) is TreeState.SAVED
    assert [item.kind for item in yard.clean().removed] == ["worktree", "branch"]
    assert yard.entries() == []
    assert yard.refs() == []


# --- what is found ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-5")
def test_everything_with_a_runs_name_is_found_and_nothing_else(yard: Yard) -> None:
    run = yard.run()
    open_run = yard.run("RQ-2", status="blocked", merged=False)
    refs = {yard.keep(run, kind) for kind in ("wip", "retried", "merges")}
    for ref in ("refs/heads/aiflow/mine", "refs/heads/aiflow/RQ-1/mine", "refs/aiflow/mine", "refs/heads/mine"):
        yard.git("update-ref", ref, "main")
    yard.git("symbolic-ref", f"refs/heads/aiflow/RQ-9/{run.run_id}", "refs/heads/main")
    old = time.time() - 7200
    for path in (
        yard.trees / f"{run.run_id}.merge/app.txt",
        yard.trees / f"{run.run_id}.aside-2/app.txt",
        yard.trees / "my own notes/app.txt",
        yard.trees.parent / f"results/{run.run_id}.0123456789ab.json",
        yard.folder(run) / ".stage.json.0123456789ab.tmp",
        yard.folder(run) / ".stage.json.ba9876543210.tmp",
        yard.folder(run) / "mine.tmp",
        yard.root / f"runs/RQ-1/.{run.run_id}.new/stage.json",
        yard.root / f"runs/.{run.run_id}.gone/stage.json",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        os.utime(path, (old, old))
    os.utime(yard.folder(run) / ".stage.json.ba9876543210.tmp")  # somebody may be writing it
    before = everything_in(yard.root, yard.state)

    remains = yard.engine.housekeeping.survey(frozenset({"main", "", "no-such-branch"}))

    assert everything_in(yard.root, yard.state) == before
    assert set(remains.worktrees) == {run.run_id, open_run.run_id}
    assert {name: ref.is_merged for name, ref in remains.branches.items()} == {
        run.place.branch: True,
        open_run.place.branch: False,
    }
    assert {ref.name for ref in remains.refs[run.run_id]} == refs
    assert remains.checked_out[run.place.branch] == remains.worktrees[run.run_id]
    found = {(Path(each.path).name, each.kind, each.is_empty) for each in remains.leftovers[run.run_id]}
    assert found == {
        (f"{run.run_id}.merge", LeftoverKind.MERGE, True),
        (f"{run.run_id}.aside-2", LeftoverKind.ASIDE, False),
        (f"{run.run_id}.0123456789ab.json", LeftoverKind.FILE, True),
        (".stage.json.0123456789ab.tmp", LeftoverKind.FILE, True),
        (f".{run.run_id}.new", LeftoverKind.FILE, True),
        (f".{run.run_id}.gone", LeftoverKind.GONE, True),
    }


@pytest.mark.spec("GIT-5")
def test_links_are_not_followed_when_looking(yard: Yard, tmp_path: Path) -> None:
    run = yard.run()
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / run.run_id).mkdir(parents=True)
    for link in (
        yard.trees / f"{run.run_id}.gone",
        yard.trees / f"{run.run_id}.merge",
        yard.trees.parent / "results",
        yard.root / "runs/RQ-2",
    ):
        link.symlink_to(elsewhere)
    (elsewhere / f"{run.run_id}.json").write_text("x")
    assert yard.engine.housekeeping.survey(frozenset({"main"})).leftovers == {}
    yard.engine.housekeeping.clear_away(run.run_id)
    assert {path.name for path in elsewhere.iterdir()} == {run.run_id, f"{run.run_id}.json"}


@pytest.mark.spec("GIT-5")
def test_git_is_asked_three_things_however_many_runs_there_are(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        yard.keep(yard.run(f"RQ-{number}", merged=number % 2 == 0))
    engine = yard.engine
    calls: list[list[str]] = []
    real = subprocess.run

    def counted(argv: list[str], **more: object) -> object:
        calls.append([word for word in argv[1:] if "=" not in word and word != "-c"])
        return real(argv, **more)  # type: ignore[call-overload]

    monkeypatch.setattr("aiflow.adapters.git.git_cli.subprocess.run", counted)
    engine.housekeeping.survey(frozenset({"main", ""}))
    assert [call[0] for call in calls] == ["worktree", "for-each-ref", "for-each-ref"]


@pytest.mark.spec("GIT-5", "REQ-7")
def test_the_runs_of_other_checkouts_are_theirs(yard: Yard, tmp_path: Path) -> None:
    run = yard.run()
    other = tmp_path / "other"
    yard.git("worktree", "add", "-q", "-b", "second", str(other))
    (other / "runs/RQ-7/RUN-20250101-000000-abcdef").mkdir(parents=True)
    remains = yard.engine.housekeeping.survey(frozenset({"main"}))
    assert remains.foreign == {"RUN-20250101-000000-abcdef"}
    assert set(remains.worktrees) == {run.run_id}
    assert remains.is_whole
    other.rename(tmp_path / "on a disk that is not there")
    assert not yard.engine.housekeeping.survey(frozenset({"main"})).is_whole


# --- taking away -----------------------------------------------------------------------------------------------------


def item(run: Run, kind: ItemKind, name: str | Path, commit: str | None = None) -> Item:
    return Item(kind, str(name), "accepted", run.run_id, run.request_id, commit)


@pytest.mark.spec("GIT-5")
def test_a_worktree_leaves_at_once_and_is_emptied_later(yard: Yard, run: Run) -> None:
    tree, other = tree_of(run), yard.run("RQ-2")
    (tree / "locked.ignored").mkdir()
    (tree / "locked.ignored/deep").mkdir()
    (tree / "locked.ignored").chmod(0o500)
    keeper = yard.engine.housekeeping
    assert keeper.size_of(item(run, ItemKind.WORKTREE, tree)) > 0
    keeper.take_away(item(run, ItemKind.WORKTREE, tree))
    assert not tree.exists()
    assert yard.entries() == [other.place.path]  # and nobody else's
    assert (yard.trees / f"{run.run_id}.gone/app.txt").exists()
    keeper.take_away(item(run, ItemKind.WORKTREE, tree))  # twice does no harm
    keeper.clear_away(run.run_id)
    assert [path.name for path in yard.trees.iterdir()] == [other.run_id]


@pytest.mark.spec("GIT-5")
def test_a_branch_goes_only_from_where_it_was_seen_and_with_its_refs(yard: Yard, run: Run) -> None:
    keeper, branch, ref = yard.engine.housekeeping, run.place.branch, yard.keep(run)
    old, commit = yard.git("rev-parse", f"{branch}~1"), yard.git("rev-parse", branch)
    kept = item(run, ItemKind.REF, ref, yard.git("rev-parse", ref))
    keeper.take_away(item(run, ItemKind.WORKTREE, run.place.path))
    for moved in (
        [item(run, ItemKind.BRANCH, branch, old), kept],
        [item(run, ItemKind.BRANCH, branch, commit), replace(kept, commit=old)],
    ):
        with pytest.raises(EnvironmentProblemError, match="GIT_FAILED"):
            keeper.drop_refs(moved)
        assert len(yard.refs()) == 2  # all or none
    Path(yard.root, f".git/refs/heads/{branch}.lock").touch()  # left by a git that was killed
    yard.git("pack-refs", "--all")
    for _ in range(2):
        keeper.drop_refs([item(run, ItemKind.BRANCH, branch, commit), kept])
    assert yard.refs() == []


def _looks_at_it(yard: Yard, branch: str) -> None:
    yard.git("switch", "-q", branch)


def _rebases_it(yard: Yard, branch: str) -> None:
    yard.git("switch", "-q", branch)
    yard.git(
        "-c", "sequence.editor=true", "-c", "core.editor=false", "rebase", "-q", "-i", "--exec=false", "HEAD~1", code=1
    )
    assert yard.git("symbolic-ref", "-q", "HEAD", code=1) == ""


@pytest.mark.spec("GIT-5")
@pytest.mark.parametrize("uses", [_looks_at_it, _rebases_it])
def test_a_branch_that_a_person_came_to_use_stays(yard: Yard, run: Run, uses: Callable[[Yard, str], None]) -> None:
    keeper, branch = yard.engine.housekeeping, run.place.branch
    keeper.take_away(item(run, ItemKind.WORKTREE, run.place.path))
    uses(yard, branch)
    with pytest.raises(EnvironmentProblemError, match="is used at"):
        keeper.drop_refs([item(run, ItemKind.BRANCH, branch, yard.git("rev-parse", branch))])
    assert yard.refs() == [f"refs/heads/{branch}"]


@pytest.mark.spec("GIT-5")
def test_nothing_outside_its_own_places_is_ever_taken_away(yard: Yard, run: Run, tmp_path: Path) -> None:
    keeper, mine = yard.engine.housekeeping, tmp_path / "mine"
    (mine / run.run_id).mkdir(parents=True)
    (yard.trees / "link").symlink_to(mine)
    (yard.root / "runs/RQ-3").symlink_to(mine)
    (yard.root / "runs/RQ-1/link").symlink_to(mine / run.run_id)
    before = everything_in(mine, yard.root)
    for path in (
        mine,
        mine / run.run_id,
        yard.trees / "link",
        yard.trees / "link" / run.run_id,
        yard.trees,
        yard.root,
        yard.root / "requests",
        yard.root / "requests/RQ-1.md",
        yard.root / "runs",
        yard.root / f"runs/RQ-3/{run.run_id}",
        yard.root / "runs/RQ-1/link",
        yard.root / "runs/RQ-1/../../requests",
    ):
        with pytest.raises(EnvironmentProblemError, match="elsewhere"):
            keeper.take_away(item(run, ItemKind.LEFTOVER, path))
    assert everything_in(mine, yard.root) == before


@pytest.mark.spec("GIT-5")
def test_what_is_mounted_in_a_worktree_is_not_emptied(
    yard: Yard, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = os.path.realpath(tree_of(run) / "data volume")
    mounts = tmp_path / "mountinfo"
    escaped = point.replace(" ", "\\040")
    mounts.write_text(f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n99 22 8:1 /x {escaped} rw - ext4 /dev/sda1 rw\n")
    monkeypatch.setattr("aiflow.adapters.git.worktrees.unsaved_work._MOUNTS", str(mounts))
    assert yard.engine.housekeeping.state_of(run.place, None) is TreeState.MOUNTED
    with pytest.raises(EnvironmentProblemError, match="mounted"):
        yard.engine.housekeeping.take_away(item(run, ItemKind.WORKTREE, run.place.path))
    assert tree_of(run).is_dir()
