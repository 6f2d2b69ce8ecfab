"""The `Merging` port against real git (GIT-3): merges that touch nothing, and the one move of the base branch."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from aiflow.adapters.git.merging.merging import GitMerging
from aiflow.adapters.git.worktrees.worktrees import GitWorkspaces
from aiflow.adapters.processes.table import marked
from aiflow.domain.programs import GIT_MARK
from aiflow.domain.runs.merge import Merge, Update, merge_ref
from aiflow.domain.runs.worktree import Place, branch_name
from aiflow.errors import AiflowError, ConflictError, EnvironmentProblemError
from aiflow.ports import Merging, Workspaces
from conftest import somebody_else
from git_template import be_ada, contents, copy_template, git, head_of, make_template
from waiting import wait_until

pytestmark = pytest.mark.spec("GIT-3")

KEPT = merge_ref("RUN-1", "S02")
ODD_NAMES = ["with space.txt", "größe.txt", "日本.txt", "new\nline.txt", 'quo"te.txt', "tab\there.txt"]
TRAILERS = {"Aiflow-Run": "RUN-1", "Aiflow-Step": "S02"}


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    be_ada(monkeypatch)
    monkeypatch.setattr("aiflow.adapters.git.git_files._REF_LOCK_SECONDS", 0.2)
    monkeypatch.setattr("aiflow.adapters.git.merging.base_moving._LOCK_SECONDS", 0.2)


def write(path: Path, text: str | bytes = "text\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def commit(where: Path, files: dict[str, str | bytes | None], message: str = "change") -> str:
    for name, text in files.items():
        if text is None:
            git(where, "rm", "-rqf", "--", name)
        else:
            write(where / name, text)
    git(where, "add", "-A")
    git(where, "commit", "-q", "--no-gpg-sign", "-m", message)
    return head_of(where)


def everything_in(*folders: Path) -> dict[str, str]:
    """Every file with its mode and bytes: worktree, index, refs, reflogs, stash; only new objects do not count."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if "objects" in path.parts:
                continue
            if path.is_symlink():
                found[str(path)] = os.readlink(path)
            elif path.is_file():
                found[str(path)] = f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
            else:
                found[str(path)] = "folder"
    return found


class Scene:
    """A user's repository on `main`, and a run's branch in its worktree."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.state = folder
        self.start = head_of(root)
        self.place = Place("RUN-1", str(folder / "RUN-1"), branch_name("RQ-1", "RUN-1"), "main", self.start)
        self.tree = folder / "RUN-1"
        self.work: Workspaces = GitWorkspaces(str(root), "RUN-1")
        self.work.prepare(self.place, self.start)
        self.git: Merging = GitMerging(str(root))

    def run(self, files: dict[str, str | bytes | None]) -> str:
        """Let the run change something."""
        return commit(self.tree, files, "the run's")

    def person(self, files: dict[str, str | bytes | None]) -> str:
        """Let a person commit something to what is checked out."""
        return commit(self.root, files, "a person's")

    def merged(self) -> Merge:
        merge = self.git.merge(self.place, "Accept RQ-1\n")
        assert merge.commit
        return merge

    def at(self, path: Path) -> Place:
        """Name another place of the run."""
        return replace(self.place, path=str(path))

    def base(self) -> str:
        return git(self.root, "rev-parse", "refs/heads/main")

    def refused(self, merge: Merge) -> ConflictError:
        """See a move refused, and nothing changed by it."""
        before = everything_in(self.root, self.state)
        with pytest.raises(ConflictError) as caught:
            self.git.move_base(self.place, merge)
        assert everything_in(self.root, self.state) == before
        assert caught.value.reason_code == "CHECKOUT_IN_THE_WAY"
        return caught.value

    def shown(self, commit: str) -> dict[str, str]:
        return contents(self.root, commit)


def fill(root: Path) -> None:
    """Write the user's files."""
    write(root / "a.txt", "one\ntwo\nthree\n")
    write(root / "other.txt", "other\n")
    write(root / "lib/b.txt", "b\n")
    write(root / ".gitignore", "*.log\nbuild/\n")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the repository with its worktree, made once."""
    with pytest.MonkeyPatch.context() as environ:
        be_ada(environ)
        folder = make_template(tmp_path_factory.mktemp("template"), fill)
        Scene(folder / "repository", folder / "state")
    return folder


@pytest.fixture
def scene(template: Path, tmp_path: Path) -> Scene:
    return Scene(copy_template(template, tmp_path), tmp_path / "state")


def reason_of(action: Callable[[], object]) -> str:
    with pytest.raises(AiflowError) as caught:
        action()
    return caught.value.reason_code


# --- merging -------------------------------------------------------------------------------------------------------


def test_a_merge_touches_nothing_and_has_both_sides(scene: Scene) -> None:
    tip = scene.run({"new.txt": "new\n", "lib/b.txt": None})
    base = scene.person({"other.txt": "changed\n"})
    before = everything_in(scene.root, scene.state)
    merge = scene.git.merge(scene.place, "Accept RQ-1: größe\n\nAiflow-Run: RUN-1")
    assert everything_in(scene.root, scene.state) == before
    assert merge.commit is not None
    assert merge == Merge(base, tip, ("lib/b.txt", "new.txt"), merge.commit)
    assert git(scene.root, "show", "-s", "--format=%P|%an|%ce", merge.commit) == f"{base} {tip}|Ada|ada@example.com"
    assert git(scene.root, "show", "-s", "--format=%B", merge.commit) == "Accept RQ-1: größe\n\nAiflow-Run: RUN-1"
    files = scene.shown(merge.commit)
    assert (files["new.txt"], files["other.txt"], "lib/b.txt" in files) == ("new", "changed", False)


def test_a_merge_of_a_base_that_stood_still_is_a_merge_too(scene: Scene) -> None:
    tip = scene.run({"new.txt": "new\n"})
    merge = scene.merged()
    assert git(scene.root, "rev-parse", f"{merge.commit}^1", f"{merge.commit}^2").split() == [scene.start, tip]


def test_nothing_to_merge(scene: Scene) -> None:
    assert scene.git.merge(scene.place, "x") == Merge(scene.start, scene.start)
    tip = scene.run({"new.txt": "new\n"})
    git(scene.root, "merge", "-q", "--no-edit", scene.place.branch)
    on_top = scene.person({"more.txt": "more\n"})
    merge = scene.git.merge(scene.place, "x")
    assert merge == Merge(on_top, tip)
    assert scene.git.move_base(scene.place, merge)
    assert scene.base() == on_top


Files = dict[str, str | bytes | None]
CONFLICTS: dict[str, tuple[Files, Files, tuple[str, ...]]] = {
    "content": ({"a.txt": "run\n"}, {"a.txt": "person\n"}, ("a.txt",)),
    "both added": ({"n.txt": "run\n"}, {"n.txt": "person\n"}, ("n.txt",)),
    "several": (
        {"a.txt": "run\n", "lib/b.txt": "run\n"},
        {"a.txt": "person\n", "lib/b.txt": "p\n"},
        ("a.txt", "lib/b.txt"),
    ),
    "deleted by the run": ({"a.txt": None}, {"a.txt": "person\n"}, ("a.txt",)),
    "deleted by the person": ({"a.txt": "run\n"}, {"a.txt": None}, ("a.txt",)),
    "binary": ({"x.bin": b"\0run"}, {"x.bin": b"\0person"}, ("x.bin",)),
    "a folder for a file": ({"a.txt": None, "a.txt/in": "x\n"}, {"a.txt": "person\n"}, ("a.txt",)),
    "a file for a folder": ({"lib": "run\n"}, {"lib/b.txt": "person\n"}, ("lib", "lib/b.txt")),
    "odd names": (dict.fromkeys(ODD_NAMES, "run\n"), dict.fromkeys(ODD_NAMES, "p\n"), tuple(sorted(ODD_NAMES))),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_conflicts_are_named_and_nothing_is_moved(scene: Scene, case: str) -> None:
    ours, theirs, names = CONFLICTS[case]
    if case == "a file for a folder":
        git(scene.tree, "rm", "-rq", "lib")
    tip, base = scene.run(ours), scene.person(theirs)
    before = everything_in(scene.root, scene.state)
    merge = scene.git.merge(scene.place, "x")
    assert everything_in(scene.root, scene.state) == before
    assert (merge.base, merge.tip, merge.commit, merge.conflicts) == (base, tip, None, names)
    assert merge.paths


def test_renames_in_conflict_are_named(scene: Scene) -> None:
    git(scene.tree, "mv", "a.txt", "run.txt")
    git(scene.root, "mv", "a.txt", "person.txt")
    scene.run({})
    scene.person({})
    assert scene.git.merge(scene.place, "x").conflicts == ("a.txt", "person.txt", "run.txt")


def test_a_conflict_of_no_file_is_named_too(scene: Scene) -> None:
    scene.person({f"d/{name}": f"{name}\n" * 9 for name in "12"})
    git(scene.tree, "merge", "-q", "--ff-only", "main")
    for name, folder in (("1", "e"), ("2", "f")):
        (scene.tree / folder).mkdir()
        git(scene.tree, "mv", f"d/{name}", f"{folder}/{name}")
    scene.run({})
    scene.person({"d/3": "3\n"})
    merge = scene.git.merge(scene.place, "x")
    assert (merge.commit, merge.conflicts) == (None, ("d",))


def test_bits_links_binaries_and_submodules_are_merged(scene: Scene, tmp_path: Path) -> None:
    module = tmp_path / "module"
    module.mkdir()
    git(module, "init", "-q", "-b", "main")
    commit(module, {"m.txt": "m\n"})
    git(scene.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(module), "sub")
    scene.person({})
    write(scene.tree / "run.sh", "#!/bin/sh\n").chmod(0o755)
    (scene.tree / "link").symlink_to("a.txt")
    scene.run({"x.bin": b"\0\1\2\xff"})
    merge = scene.merged()
    assert scene.git.move_base(scene.place, merge)
    assert (scene.root / "run.sh").stat().st_mode & 0o111
    assert os.readlink(scene.root / "link") == "a.txt"
    assert (scene.root / "x.bin").read_bytes() == b"\0\1\2\xff"
    assert (scene.root / "sub/m.txt").read_text() == "m\n"
    assert git(scene.root, "status", "--porcelain") == ""
    scene.git.check_out(merge.commit or "", scene.at(scene.state / "merged"))
    assert (scene.state / "merged/run.sh").stat().st_mode & 0o111
    scene.git.discard(str(scene.state / "merged"))


def test_a_base_or_a_branch_that_is_not_there(scene: Scene, tmp_path: Path) -> None:
    scene.run({"new.txt": "new\n"})
    merge = scene.merged()
    elsewhere = replace(scene.place, base_branch="gone")
    for action in (
        lambda: scene.git.merge(elsewhere, "x"),
        lambda: scene.git.update(elsewhere, KEPT),
        lambda: scene.git.move_base(elsewhere, merge),
    ):
        with pytest.raises(AiflowError) as caught:
            action()
        assert (caught.value.reason_code, caught.value.context["branch"]) == ("BASE_BRANCH_MISSING", "gone")
    without = replace(scene.place, branch="aiflow/RQ-1/gone")
    assert reason_of(lambda: scene.git.merge(without, "x")) == "GIT_FAILED"
    git(scene.root, "switch", "-q", "--orphan", "unborn")
    assert reason_of(lambda: scene.git.merge(replace(scene.place, base_branch="unborn"), "x")) == "BASE_BRANCH_MISSING"
    assert reason_of(lambda: GitMerging(str(tmp_path)).merge(scene.place, "x")) == "NOT_A_REPOSITORY"


def test_without_a_name_nothing_is_merged(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.run({"new.txt": "new\n"})
    scene.person({"more.txt": "more\n"})
    for name in [name for name in os.environ if name.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))]:
        monkeypatch.delenv(name)
    git(scene.root, "config", "user.useConfigOnly", "true")
    before = everything_in(scene.root)
    assert reason_of(lambda: scene.git.merge(scene.place, "x")) == "GIT_IDENTITY_MISSING"
    assert reason_of(lambda: scene.git.update(scene.place, KEPT)) == "GIT_IDENTITY_MISSING"
    assert everything_in(scene.root) == before


def test_a_git_that_is_too_old_is_named(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.run({"new.txt": "new\n"})
    script = (
        'for word in "$@"; do case "$word" in\n'
        "merge-tree) exit 129;;\n"
        "version) echo git version 2.37.1; exit 0;;\n"
        f'esac; done\nexec {shutil.which("git")} "$@"\n'
    )
    write(tmp_path / "bin/git", f"#!/bin/sh\n{script}").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with pytest.raises(AiflowError) as caught:
        scene.git.merge(scene.place, "x")
    assert (caught.value.reason_code, caught.value.context["version"]) == ("GIT_TOO_OLD", "2.37.1")


@pytest.mark.parametrize(
    "settings",
    [
        ("merge.conflictStyle=diff3", "merge.renames=false", "diff.renames=copies"),
        ("merge.conflictStyle=zdiff3", "merge.renames=true", "diff.relative=true", "diff.noprefix=true"),
        ("rerere.enabled=true", "rerere.autoupdate=true", "i18n.commitEncoding=ISO-8859-1"),
        ("commit.gpgSign=true", "gpg.program=/bin/false", "merge.verifySignatures=true", "tag.gpgSign=true"),
        ("merge.ff=false", "merge.autoStash=true", "merge.log=true", "merge.stat=true", "pull.rebase=true"),
        ("branch.main.mergeOptions=--squash --no-ff -s ours", "pull.twohead=ours", "pull.ff=no"),
        ("core.quotePath=true", "core.pager=false", "color.ui=always", "status.showUntrackedFiles=no"),
        ("submodule.recurse=true", "fetch.prune=true", "core.logAllRefUpdates=always", "core.commentChar=A"),
        ("merge.mine.driver=cat %A %B >%A.new && mv %A.new %A", "merge.mine.name=mine"),
    ],
)
def test_a_users_settings_break_nothing(scene: Scene, settings: tuple[str, ...]) -> None:
    for setting in settings:
        git(scene.root, "config", *setting.split("=", 1))
    write(scene.root / ".git/info/attributes", "*.union merge=mine\n")
    scene.run({"größe.txt": "run\n", "x.union": "run\n"})
    scene.person({"other.txt": "person\n"})
    merge = scene.merged()
    assert git(scene.root, "show", "-s", "--format=%B", merge.commit or "") == "Accept RQ-1"
    assert scene.git.move_base(scene.place, merge)
    assert scene.base() == merge.commit
    assert (scene.root / "größe.txt").read_text() == "run\n"
    assert git(scene.root, "status", "--porcelain", "-uall") == ""

    scene.run({"a.txt": "run\n"})
    scene.person({"a.txt": "person\n"})
    assert scene.git.merge(scene.place, "x").conflicts == ("a.txt",)
    update = scene.git.update(scene.place, KEPT)
    assert update.conflicts == ("a.txt",)
    assert "<<<<<<< aiflow/RQ-1/RUN-1-" in scene.shown(update.commit)["a.txt"]


def test_a_merge_driver_is_asked(scene: Scene) -> None:
    git(scene.root, "config", "merge.mine.driver", "cat %A %B >%A.new && mv %A.new %A")
    scene.person({".gitattributes": "*.union merge=mine\n", "x.union": "base\n"})
    git(scene.tree, "merge", "-q", "--ff-only", "main")
    scene.run({"x.union": "run\n"})
    scene.person({"x.union": "person\n"})
    merge = scene.merged()
    assert scene.shown(merge.commit or "")["x.union"] == "person\nrun"


def test_a_merge_is_signed_only_if_asked_for(scene: Scene, tmp_path: Path) -> None:
    program = write(
        tmp_path / "gpg",
        "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED x' >&2\n"
        "echo '-----BEGIN PGP SIGNATURE-----'\necho x\necho '-----END PGP SIGNATURE-----'\n",
    )
    program.chmod(0o755)
    git(scene.root, "config", "gpg.program", str(program))
    git(scene.root, "config", "commit.gpgSign", "true")
    scene.run({"new.txt": "new\n"})
    assert "gpgsig" not in git(scene.root, "cat-file", "commit", scene.merged().commit or "")
    merge = GitMerging(str(scene.root), sign=True).merge(scene.place, "x")
    assert "gpgsig" in git(scene.root, "cat-file", "commit", merge.commit or "")


def test_a_tag_named_like_a_branch_misleads_nobody(scene: Scene) -> None:
    tip = scene.run({"new.txt": "new\n"})
    git(scene.root, "tag", "main", tip)
    git(scene.root, "tag", scene.place.branch, scene.start)
    base = scene.person({"more.txt": "more\n"})
    merge = scene.merged()
    assert git(scene.root, "show", "-s", "--format=%P", merge.commit or "") == f"{base} {tip}"
    assert scene.git.move_base(scene.place, merge)
    assert scene.base() == merge.commit


# --- the worktree to test a merge in -------------------------------------------------------------------------------


def test_a_merge_is_laid_out_and_taken_away_again(scene: Scene) -> None:
    scene.run({"new.txt": "new\n"})
    before = everything_in(scene.root, scene.state)
    merge = scene.merged()
    path = scene.state / "merged RUN-1"
    scene.git.check_out(merge.commit or "", scene.at(path))
    assert (path / "new.txt").read_text() == "new\n"
    assert git(path, "rev-parse", "HEAD") == merge.commit
    git(path, "symbolic-ref", "-q", "HEAD", code=1)
    write(path / "made/by/tests.txt").chmod(0o444)
    for folder in (path / "made/by", path / "made"):
        folder.chmod(0o555)
    scene.git.check_out(merge.commit or "", scene.at(path))
    assert git(path, "status", "--porcelain") == ""
    (path / "lib").chmod(0o555)
    scene.git.discard(str(path))
    scene.git.discard(str(path))
    assert everything_in(scene.root, scene.state) == before


def test_the_git_that_lays_out_is_known_as_the_runs(scene: Scene) -> None:
    """So that whoever takes over waits for it, before the same worktree is made again."""
    _filter(scene, "a.txt", f"printenv {GIT_MARK} > {scene.state}/mark")
    scene.git.check_out(scene.start, scene.at(scene.state / "merged"))
    assert (scene.state / "mark").read_text() == "RUN-1\n"


def _locked(scene: Scene, path: Path, entry: Path) -> None:
    write(entry / "locked", "initializing")
    (entry / "index").unlink()


def _half_made(scene: Scene, path: Path, entry: Path) -> None:
    _locked(scene, path, entry)
    (entry / "gitdir").unlink()
    shutil.rmtree(path)


def _entry_gone(scene: Scene, path: Path, entry: Path) -> None:
    shutil.rmtree(entry)


def _a_file(scene: Scene, path: Path, entry: Path) -> None:
    shutil.rmtree(path)
    write(path, "x")


@pytest.mark.parametrize("damage", [_locked, _half_made, _entry_gone, _a_file])
def test_what_a_killed_checkout_left_is_no_hindrance(scene: Scene, damage: Callable[[Scene, Path, Path], None]) -> None:
    before = everything_in(scene.root, scene.state)
    path, entry = scene.state / "merged", scene.root / ".git/worktrees/merged"
    scene.git.check_out(scene.start, scene.at(path))
    damage(scene, path, entry)
    scene.git.check_out(scene.start, scene.at(path))
    assert git(path, "status", "--porcelain") == ""
    damage(scene, path, entry)
    scene.git.discard(str(path))
    assert everything_in(scene.root, scene.state) == before


def test_nothing_of_the_users_is_ever_discarded(scene: Scene, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(scene.root, "worktree", "add", "-q", str(linked))
    before = everything_in(scene.root, linked)
    for path in (scene.root, scene.root / ".git", scene.root.parent, Path("/")):
        with pytest.raises(AiflowError):
            scene.git.discard(str(path))
        with pytest.raises(AiflowError):
            scene.git.check_out(scene.start, scene.at(path))
    scene.git.check_out(scene.start, scene.at(scene.state / "linked"))
    scene.git.discard(str(scene.state / "linked"))
    assert everything_in(scene.root, linked) == before


# What git 2.39 said when five processes made and removed worktrees while others listed them; the last from its source.
PASSING = [
    "failed to read .git/worktrees/other/commondir: Success",
    "failed to read /path/.git/worktrees/other/commondir: No such file or directory",
    "failed to read '.git/worktrees/other/locked': No such file or directory",
    "Invalid path '/path/.git/worktrees/other': No such file or directory",
    "could not create directory of '.git/worktrees/other': No such file or directory",
]


@pytest.mark.spec("GIT-1", "GIT-3")
@pytest.mark.parametrize("saying", PASSING)
def test_worktrees_that_come_and_go_beside_are_no_trouble(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saying: str
) -> None:
    scene.run({"new.txt": "new\n"})
    merge, path = scene.merged(), scene.state / "merged"
    beside = Place("RUN-2", str(scene.state / "RUN-2"), branch_name("RQ-2", "RUN-2"), "main", scene.start)
    stumble = f'test -e {tmp_path}/at || continue; rm {tmp_path}/at; echo "fatal: {saying}" >&2; exit 128'
    script = f'for word in "$@"; do case "$word" in worktree) {stumble};; esac; done\nexec {shutil.which("git")} "$@"\n'
    write(tmp_path / "bin/git", f"#!/bin/sh\n{script}").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    for call in (
        lambda: scene.git.check_out(merge.commit or "", scene.at(path)),
        lambda: scene.work.prepare(beside, scene.start),
        lambda: scene.git.move_base(scene.place, merge),
    ):
        write(tmp_path / "at")
        call()
        assert not (tmp_path / "at").exists()
    assert git(path, "rev-parse", "HEAD") == git(scene.root, "rev-parse", "main") == merge.commit
    assert git(beside.path, "rev-parse", beside.branch) == scene.start


def _half_written(scene: Scene) -> Path:
    """A worktree that another git has begun to make."""
    entry = scene.root / ".git/worktrees/other"
    for name, text in (("gitdir", f"{scene.state}/other/.git\n"), ("HEAD", f"{scene.start}\n"), ("commondir", "")):
        write(entry / name, text)
    return entry / "commondir"


@pytest.mark.spec("GIT-1", "GIT-3")
def test_a_worktree_that_another_git_is_making_is_waited_for(scene: Scene) -> None:
    scene.run({"new.txt": "new\n"})
    merge, path = scene.merged(), scene.state / "merged"
    common = _half_written(scene)
    timer = threading.Timer(0.3, common.write_text, ["../..\n"])
    timer.start()
    scene.git.check_out(merge.commit or "", scene.at(path))
    timer.join()
    assert git(path, "rev-parse", "HEAD") == merge.commit


def test_a_broken_worktree_is_an_error_of_git(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiflow.adapters.git.worktrees.listing._PATIENCE_SECONDS", 0.1)
    _half_written(scene)
    with pytest.raises(AiflowError) as caught:
        scene.git.check_out(scene.start, scene.at(scene.state / "merged"))
    assert (caught.value.reason_code, "worktrees/other" in str(caught.value.context["problem"])) == ("GIT_FAILED", True)


# --- moving the base -----------------------------------------------------------------------------------------------


def test_a_checkout_of_the_base_is_fast_forwarded_once(scene: Scene) -> None:
    scene.run({"new.txt": "new\n", "a.txt": "run\n", "lib/b.txt": None})
    merge = scene.merged()
    assert scene.git.move_base(scene.place, merge)
    assert scene.base() == merge.commit
    assert git(scene.root, "status", "--porcelain") == ""
    assert git(scene.root, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert ((scene.root / "a.txt").read_text(), (scene.root / "lib").exists()) == ("run\n", False)
    assert "aiflow: accept RUN-1" in git(scene.root, "reflog", "-1", "main")
    before = everything_in(scene.root, scene.state)
    assert scene.git.move_base(scene.place, merge)
    assert everything_in(scene.root, scene.state) == before
    on_top = scene.person({"later.txt": "later\n"})
    assert scene.git.move_base(scene.place, merge)
    assert scene.base() == on_top


def test_what_is_unsaved_elsewhere_in_the_checkout_stays(scene: Scene) -> None:
    scene.run({"new.txt": "new\n"})
    merge = scene.merged()
    write(scene.root / "a.txt", "unstaged\n")
    write(scene.root / "other.txt", "staged\n")
    git(scene.root, "add", "other.txt")
    write(scene.root / "untracked.txt")
    write(scene.root / "x.log")
    assert scene.git.move_base(scene.place, merge)
    assert scene.base() == merge.commit
    status = git(scene.root, "status", "--porcelain", "--ignored").splitlines()
    assert status == ["M a.txt", "M  other.txt", "?? untracked.txt", "!! x.log"]
    assert git(scene.root, "stash", "list") == ""


def _unstaged(scene: Scene) -> None:
    write(scene.root / "a.txt", "mine\n")


def _staged(scene: Scene) -> None:
    _unstaged(scene)
    git(scene.root, "add", "a.txt")


def _staged_and_undone(scene: Scene) -> None:
    _staged(scene)
    write(scene.root / "a.txt", "one\ntwo\nthree\n")


def _assumed_unchanged(scene: Scene) -> None:
    git(scene.root, "update-index", "--assume-unchanged", "a.txt")
    _unstaged(scene)


def _executable(scene: Scene) -> None:
    (scene.root / "a.txt").chmod(0o755)


def _deleted(scene: Scene) -> None:
    git(scene.root, "rm", "-q", "a.txt")


def _deleted_and_not_staged(scene: Scene) -> None:
    (scene.root / "a.txt").unlink()


def _moved_away(scene: Scene) -> None:
    (scene.root / "a.txt").rename(scene.root / "b.txt")


def _not_to_be_looked_at(scene: Scene) -> None:
    git(scene.root, "update-index", "--skip-worktree", "a.txt")
    (scene.root / "a.txt").unlink()


def _staged_new(scene: Scene) -> None:
    write(scene.root / "new.txt", "mine\n")
    git(scene.root, "add", "new.txt")


def _untracked(scene: Scene) -> None:
    write(scene.root / "new.txt", "mine\n")


def _ignored(scene: Scene) -> None:
    write(scene.root / "forced.log", "mine\n")


def _ignored_folder(scene: Scene) -> None:
    write(scene.root / "build/out.txt", "mine\n")


def _untracked_for_a_folder(scene: Scene) -> None:
    write(scene.root / "folder", "mine\n")


def _a_folder_for_a_file(scene: Scene) -> None:
    write(scene.root / "new.txt/inside.txt", "mine\n")


def _odd(scene: Scene) -> None:
    for name in ODD_NAMES:
        write(scene.root / name, "mine\n")


def _with_a_stash_and_a_reset_behind(scene: Scene) -> None:
    git(scene.root, "reset", "-q", "--hard", scene.start)  # leaves ORIG_HEAD
    write(scene.root / "other.txt", "for the stash\n")
    git(scene.root, "stash", "-q")
    _untracked(scene)


IN_THE_WAY: list[tuple[Callable[[Scene], None], list[str]]] = [
    (_unstaged, ["a.txt"]),
    (_staged, ["a.txt"]),
    (_staged_and_undone, ["a.txt"]),
    (_assumed_unchanged, ["a.txt"]),
    (_executable, ["a.txt"]),
    (_deleted, ["a.txt"]),
    (_deleted_and_not_staged, ["a.txt"]),
    (_moved_away, ["a.txt"]),
    (_not_to_be_looked_at, ["a.txt"]),
    (_staged_new, ["new.txt"]),
    (_untracked, ["new.txt"]),
    (_ignored, ["forced.log"]),
    (_ignored_folder, ["build/out.txt"]),
    (_untracked_for_a_folder, ["folder"]),
    (_a_folder_for_a_file, ["new.txt"]),
    (_odd, sorted(ODD_NAMES)),
    (_with_a_stash_and_a_reset_behind, ["new.txt"]),
]


@pytest.mark.parametrize(("do", "files"), IN_THE_WAY, ids=lambda each: getattr(each, "__name__", ""))
def test_what_is_in_the_way_is_named_and_nothing_moves(
    scene: Scene, do: Callable[[Scene], None], files: list[str]
) -> None:
    changed: Files = {"a.txt": "run\n", "new.txt": "run\n", "folder/in.txt": "run\n", **dict.fromkeys(ODD_NAMES, "run")}
    for name in ("forced.log", "build/out.txt"):
        write(scene.tree / name, "run\n")
        git(scene.tree, "add", "-f", name)
    scene.run(changed)
    merge = scene.merged()
    do(scene)
    error = scene.refused(merge)
    assert error.context["files"] == files
    assert str(scene.root) in str(error.context["detail"])
    assert files[0] in str(error.context["detail"])


def test_a_deletion_that_hinders_nothing_stays(scene: Scene) -> None:
    scene.run({"new.txt": "run\n", "lib/b.txt": None})
    for name in ("a.txt", "lib/b.txt"):
        (scene.root / name).unlink()
    assert scene.git.move_base(scene.place, scene.merged())
    assert git(scene.root, "status", "--porcelain") == "D a.txt"


def test_what_a_sparse_checkout_leaves_out_is_not_deleted(scene: Scene) -> None:
    git(scene.root, "sparse-checkout", "set", "--no-cone", "/*", "!/lib/")
    scene.run({"lib/b.txt": "run\n", "a.txt": "run\n"})
    merge = scene.merged()
    assert scene.git.move_base(scene.place, merge)
    assert (scene.base(), git(scene.root, "status", "--porcelain")) == (merge.commit, "")
    assert not (scene.root / "lib").exists()


def test_a_message_that_was_prepared_for_the_next_commit_stays(scene: Scene) -> None:
    scene.run({"new.txt": "run\n"})
    git(scene.root, "switch", "-qc", "side")
    scene.person({"other.txt": "side\n"})
    git(scene.root, "switch", "-q", "main")
    git(scene.root, "cherry-pick", "-n", "side")
    before = (scene.root / ".git/MERGE_MSG").read_text()
    write(scene.root / ".git/SQUASH_MSG", "squashed\n")
    assert scene.git.move_base(scene.place, scene.merged())
    assert (scene.root / ".git/MERGE_MSG").read_text() == before
    assert (scene.root / ".git/SQUASH_MSG").read_text() == "squashed\n"
    assert git(scene.root, "status", "--porcelain") == "M  other.txt"


@pytest.mark.parametrize("setting", ["merge.autoStash", "rebase.autoStash"])
def test_nothing_is_stashed_away_for_it(scene: Scene, setting: str) -> None:
    git(scene.root, "config", setting, "true")
    scene.run({"a.txt": "run\n"})
    merge = scene.merged()
    write(scene.root / "a.txt", "one\ntwo\nmine\n")
    assert scene.refused(merge).context["files"] == ["a.txt"]


def test_the_same_path_after_it_was_cleared(scene: Scene) -> None:
    scene.run({"new.txt": "run\n"})
    merge = scene.merged()
    _untracked(scene)
    scene.refused(merge)
    (scene.root / "new.txt").unlink()
    assert scene.git.move_base(scene.place, merge)
    assert scene.base() == merge.commit


def test_a_fast_forward_that_was_killed_before_its_last_step_is_ended(scene: Scene) -> None:
    scene.run({"a.txt": "run\n", "new.txt": "run\n", "lib/b.txt": None})
    merge = scene.merged()
    git(scene.root, "read-tree", "-m", "-u", scene.start, merge.commit or "")
    again = scene.merged()
    assert scene.git.move_base(scene.place, again)
    assert (scene.base(), git(scene.root, "status", "--porcelain")) == (again.commit, "")


@pytest.mark.parametrize("name", ["release=1.2", "größe/日本", "a-0-gabcdef0"])
def test_a_base_with_an_odd_name(scene: Scene, name: str) -> None:
    git(scene.root, "branch", "-m", "main", name)
    git(scene.root, "config", f"branch.{name}.mergeOptions", "--no-ff --squash")
    place = replace(scene.place, base_branch=name)
    scene.run({"a.txt": "run\n"})
    scene.person({"more.txt": "more\n"})
    merge = scene.git.merge(place, "x")
    assert scene.git.move_base(place, merge)
    assert git(scene.root, "rev-parse", f"refs/heads/{name}", "HEAD").split() == [merge.commit] * 2
    assert git(scene.root, "status", "--porcelain") == ""


@pytest.mark.spec("GIT-1")
@pytest.mark.parametrize("hooks", [False, True])
def test_hooks_run_only_if_asked_for(scene: Scene, hooks: bool) -> None:
    for name in ("post-merge", "post-checkout", "reference-transaction", "pre-merge-commit"):
        write(scene.root / f".git/hooks/{name}", f"#!/bin/sh\necho {name} >>{scene.root}/.git/called\n").chmod(0o755)
    scene.run({"a.txt": "run\n"})
    (scene.root / ".git/called").unlink(missing_ok=True)
    merging = GitMerging(str(scene.root), hooks=hooks)
    merge = merging.merge(scene.place, "x")
    merging.check_out(merge.commit or "", scene.at(scene.state / "merged"))
    merging.discard(str(scene.state / "merged"))
    assert merging.move_base(scene.place, merge)
    called = (scene.root / ".git/called").read_text().split() if (scene.root / ".git/called").exists() else []
    assert ({"post-merge", "post-checkout"} <= set(called)) is hooks
    assert bool(called) is hooks


def test_a_branch_that_nobody_has_checked_out_is_swapped(scene: Scene) -> None:
    scene.run({"a.txt": "run\n"})
    git(scene.root, "switch", "-qc", "topic")
    write(scene.root / "a.txt", "mine\n")
    merge = scene.merged()
    before = {name: value for name, value in everything_in(scene.root).items() if "/.git/" not in name}
    index = (scene.root / ".git/index").read_bytes()
    assert scene.git.move_base(scene.place, merge)
    assert scene.base() == merge.commit
    assert {name: value for name, value in everything_in(scene.root).items() if "/.git/" not in name} == before
    assert (scene.root / ".git/index").read_bytes() == index
    assert git(scene.root, "rev-parse", "topic") == scene.start
    assert "aiflow: accept RUN-1" in git(scene.root, "reflog", "-1", "main")
    assert scene.git.move_base(scene.place, merge)


def test_a_detached_head_is_left_alone(scene: Scene) -> None:
    scene.run({"a.txt": "run\n"})
    git(scene.root, "switch", "-q", "--detach")
    merge = scene.merged()
    assert scene.git.move_base(scene.place, merge)
    assert (scene.base(), git(scene.root, "rev-parse", "HEAD")) == (merge.commit, scene.start)
    assert git(scene.root, "status", "--porcelain") == ""


def test_a_checkout_in_a_linked_worktree_is_found(scene: Scene, tmp_path: Path) -> None:
    scene.run({"a.txt": "run\n"})
    git(scene.root, "switch", "-qc", "topic")
    linked = tmp_path / "state" / "linked größe"
    git(scene.root, "worktree", "add", "-q", str(linked), "main")
    merge = scene.merged()
    write(linked / "a.txt", "mine\n")
    error = scene.refused(merge)
    assert (error.context["files"], error.context["path"]) == (["a.txt"], str(linked))
    git(linked, "restore", "a.txt")
    assert scene.git.move_base(scene.place, merge)
    assert (linked / "a.txt").read_text() == "run\n"
    assert git(linked, "status", "--porcelain") == ""
    assert (scene.root / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_aiflow_in_a_linked_worktree_finds_the_main_checkout(scene: Scene, tmp_path: Path) -> None:
    scene.run({"a.txt": "run\n"})
    linked = tmp_path / "linked"
    git(scene.root, "worktree", "add", "-q", str(linked))
    merging = GitMerging(str(linked))
    merge = merging.merge(scene.place, "x")
    assert merging.move_base(scene.place, merge)
    assert (scene.root / "a.txt").read_text() == "run\n"
    assert git(scene.root, "status", "--porcelain") == ""


def test_a_git_folder_elsewhere(scene: Scene, tmp_path: Path) -> None:
    scene.run({"a.txt": "run\n"})
    git(scene.root, "init", "-q", f"--separate-git-dir={tmp_path}/elsewhere.git")
    linked = tmp_path / "linked"
    git(scene.root, "worktree", "add", "-q", str(linked))
    merge = GitMerging(str(scene.root)).merge(scene.place, "x")
    # From a linked worktree nobody can tell where the main one is.
    with pytest.raises(ConflictError) as caught:
        GitMerging(str(linked)).move_base(scene.place, merge)
    assert caught.value.reason_code == "CHECKOUT_IN_THE_WAY"
    assert GitMerging(str(scene.root)).move_base(scene.place, merge)
    assert (scene.root / "a.txt").read_text() == "run\n"
    assert git(scene.root, "status", "--porcelain") == ""


def test_a_bare_repository_has_nothing_checked_out(scene: Scene, tmp_path: Path) -> None:
    scene.run({"a.txt": "run\n"})
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(scene.root), str(bare))
    git(bare, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "of-bare"))
    merging = GitMerging(str(tmp_path / "of-bare"))
    merge = merging.merge(scene.place, "x")
    assert merging.move_base(scene.place, merge)
    assert git(bare, "rev-parse", "main") == merge.commit


def test_a_worktree_that_is_gone_counts_until_git_forgets_it(scene: Scene, tmp_path: Path) -> None:
    scene.run({"a.txt": "run\n"})
    git(scene.root, "switch", "-qc", "topic")
    linked = tmp_path / "linked"
    git(scene.root, "worktree", "add", "-q", str(linked), "main")
    shutil.rmtree(linked)
    merge = scene.merged()
    git(scene.root, "worktree", "lock", str(linked))
    locked = scene.refused(merge).context
    assert (locked["path"], "prune" in str(locked["detail"])) == (str(linked), False)
    git(scene.root, "worktree", "unlock", str(linked))
    gone = scene.refused(merge).context
    assert (gone["path"], "`git worktree prune`" in str(gone["detail"])) == (str(linked), True)
    git(scene.root, "worktree", "prune")
    assert scene.git.move_base(scene.place, merge)
    assert scene.base() == merge.commit


@pytest.mark.parametrize("where", ["another name", "the branch itself", "nowhere"])
def test_a_base_that_is_another_name_of_a_branch(scene: Scene, where: str) -> None:
    git(scene.root, "branch", "-m", "main", "trunk")
    git(scene.root, "symbolic-ref", "refs/heads/main", "refs/heads/trunk")
    git(scene.root, "config", "branch.trunk.mergeOptions", "--no-ff --squash")
    if where == "nowhere":
        git(scene.root, "switch", "-qc", "topic")
    else:
        name = "main" if where == "another name" else "trunk"
        git(scene.root, "symbolic-ref", "HEAD", f"refs/heads/{name}")
    scene.run({"a.txt": "run\n"})
    merge = scene.merged()
    assert scene.git.move_base(scene.place, merge)
    assert git(scene.root, "rev-parse", "main", "trunk").split() == [merge.commit] * 2
    assert git(scene.root, "symbolic-ref", "refs/heads/main") == "refs/heads/trunk"
    assert git(scene.root, "status", "--porcelain") == ""
    assert (scene.root / "a.txt").read_text() == ("one\ntwo\nthree\n" if where == "nowhere" else "run\n")


def test_a_branch_that_is_checked_out_twice_is_not_moved(scene: Scene, tmp_path: Path) -> None:
    scene.run({"a.txt": "run\n"})
    git(scene.root, "worktree", "add", "-qf", str(tmp_path / "linked"), "main")
    assert str(tmp_path / "linked") in str(scene.refused(scene.merged()).context["detail"])


def test_a_base_that_moved_on_is_not_moved(scene: Scene) -> None:
    scene.run({"a.txt": "run\n"})
    merge = scene.merged()
    on_top = scene.person({"more.txt": "more\n"})
    before = everything_in(scene.root, scene.state)
    assert not scene.git.move_base(scene.place, merge)
    assert everything_in(scene.root, scene.state) == before
    git(scene.root, "switch", "-qc", "topic")
    assert not scene.git.move_base(scene.place, merge)
    assert scene.base() == on_top
    again = scene.merged()
    assert scene.git.move_base(scene.place, again)


def test_a_base_that_was_set_back_is_not_moved(scene: Scene) -> None:
    scene.run({"a.txt": "run\n"})
    scene.person({"more.txt": "more\n"})
    merge = scene.merged()
    git(scene.root, "reset", "-q", "--hard", scene.start)
    assert not scene.git.move_base(scene.place, merge)
    git(scene.root, "switch", "-qc", "topic")
    assert not scene.git.move_base(scene.place, merge)
    assert scene.base() == scene.start


def test_a_base_that_moves_at_the_last_moment(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody commits between the last look and git's own move."""
    scene.run({"a.txt": "run\n"})
    for checked_out in (True, False):
        merge = scene.merged()
        name = "fast_forward" if checked_out else "swap"
        real = getattr(__import__("aiflow.adapters.git.merging.base_moving", fromlist=["_Move"])._Move, name)
        moved: list[str] = []

        def late(self: object, *args: object, real: Callable[..., object] = real, moved: list[str] = moved) -> object:
            tree = git(scene.root, "rev-parse", "main^{tree}")
            moved.append(git(scene.root, "commit-tree", tree, "-p", "main", "-m", "late"))
            git(scene.root, "update-ref", "refs/heads/main", moved[0])
            return real(self, *args)

        if not checked_out:
            git(scene.root, "switch", "-qc", "topic")
        with monkeypatch.context() as patched:
            patched.setattr(f"aiflow.adapters.git.merging.base_moving._Move.{name}", late)
            assert not scene.git.move_base(scene.place, merge)
        assert scene.base() == moved[0]
        assert (scene.root / "a.txt").read_text() == "one\ntwo\nthree\n"
        assert git(scene.root, "status", "--porcelain") == ""


def _rebase(scene: Scene, where: Path) -> None:
    git(where, "switch", "-qc", "side", scene.start)
    commit(where, {"a.txt": "side\n"})
    git(where, "switch", "-q", "main")
    commit(where, {"a.txt": "main\n"})
    git(where, "rebase", "-q", "side", code=1)


def _apply_rebase(scene: Scene, where: Path) -> None:
    git(where, "config", "rebase.backend", "apply")
    _rebase(scene, where)


def _bisect(scene: Scene, where: Path) -> None:
    git(where, "switch", "-q", "main")
    for number in range(3):
        commit(where, {"n.txt": f"{number}\n"})
    git(where, "bisect", "start", "HEAD", "HEAD~3")


@pytest.mark.parametrize("begin", [_rebase, _apply_rebase, _bisect])
@pytest.mark.parametrize("is_linked", [False, True])
def test_a_base_that_is_being_rewritten_is_not_moved(
    scene: Scene, begin: Callable[[Scene, Path], None], is_linked: bool
) -> None:
    scene.run({"new.txt": "run\n"})
    where = scene.root
    if is_linked:
        git(scene.root, "switch", "-qc", "topic")
        where = scene.state / "linked"
        git(scene.root, "worktree", "add", "-q", str(where), "main")
    begin(scene, where)
    error = scene.refused(scene.merged())
    assert ("bisect" if begin is _bisect else "rebase") in str(error.context["detail"])
    assert error.context["path"] == str(where)


def test_a_base_that_a_rebase_of_another_branch_will_write_is_not_moved(scene: Scene) -> None:
    scene.run({"new.txt": "run\n"})
    git(scene.root, "switch", "-qc", "side")
    scene.person({"a.txt": "side\n"})
    git(scene.root, "switch", "-q", "main")
    scene.person({"other.txt": "main\n"})
    git(scene.root, "switch", "-qc", "topic")
    scene.person({"a.txt": "topic\n"})
    git(scene.root, "rebase", "-q", "--update-refs", "side", code=1)
    merge = scene.merged()
    assert "rebase" in str(scene.refused(merge).context["detail"])
    notes = scene.root / ".git/rebase-merge/update-refs"
    others = "".join(f"refs/heads/stack/{number:04}\n{'1' * 40}\n{'0' * 40}\n" for number in range(500))
    notes.write_text(others + notes.read_text())
    assert "rebase" in str(scene.refused(merge).context["detail"])


def _merging(scene: Scene) -> None:
    git(scene.root, "merge", "side", code=1)


def _picking(scene: Scene) -> None:
    git(scene.root, "cherry-pick", "side", code=1)


def _reverting(scene: Scene) -> None:
    git(scene.root, "revert", "--no-edit", "HEAD~1", code=1)


def _reverting_cleanly(scene: Scene) -> None:
    git(scene.root, "revert", "--no-commit", "main~2")


def _unmerged(scene: Scene) -> None:
    _merging(scene)
    (scene.root / ".git/MERGE_HEAD").unlink()


def _index_locked(scene: Scene) -> None:
    write(scene.root / ".git/index.lock", "")


def _head_locked(scene: Scene) -> None:
    write(scene.root / ".git/HEAD.lock", "")


def _branch_locked(scene: Scene) -> None:
    write(scene.root / ".git/refs/heads/main.lock", "")


@pytest.mark.parametrize(
    ("begin", "files"),
    [
        (_merging, ["a.txt"]),
        (_picking, ["a.txt"]),
        (_reverting, ["a.txt"]),
        (_unmerged, ["a.txt"]),
        (_reverting_cleanly, []),
        (_index_locked, []),
        (_head_locked, []),
        (_branch_locked, []),
    ],
)
def test_an_unfinished_command_in_the_checkout_is_not_disturbed(
    scene: Scene, begin: Callable[[Scene], None], files: list[str]
) -> None:
    scene.run({"new.txt": "run\n"})
    scene.person({"other.txt": "main\n"})
    git(scene.root, "switch", "-qc", "side")
    scene.person({"a.txt": "side\n"})
    git(scene.root, "switch", "-q", "main")
    scene.person({"a.txt": "main\n"})
    scene.person({"a.txt": "main again\n"})
    merge = scene.merged()
    begin(scene)
    error = scene.refused(merge)
    is_lock = begin in (_index_locked, _head_locked, _branch_locked)
    assert error.context["files"] == files
    assert (".lock" in str(error.context["detail"])) is is_lock


def _filter(scene: Scene, path: str, smudge: str) -> None:
    """Let git run a command when it writes a file in a checkout."""
    write(scene.root / ".git/info/attributes", f"{path} filter=slow\n")
    for name, value in (("smudge", f"{smudge}; cat"), ("clean", "cat"), ("required", "true")):
        git(scene.root, "config", f"filter.slow.{name}", value)


def _leave_alone(scene: Scene, merge: Merge) -> int:
    """Have somebody begin a fast-forward who is killed while git writes the files; return that git."""
    begun, go = scene.state / "begun", scene.state / "go"
    wait = f"n=0; until test -e {go} || test $n -gt 1500; do n=$((n+1)); sleep 0.02; done"  # nor longer than the test
    _filter(scene, "new.txt", f"echo $PPID > {begun}; {wait}; echo late >&2 || exit 1")
    mover = multiprocessing.get_context("fork").Process(target=scene.git.move_base, args=(scene.place, merge))
    mover.start()
    while not (begun.exists() and begun.read_text().strip()):
        time.sleep(0.01)
    mover.kill()
    mover.join()
    return int(begun.read_text())


def test_a_fast_forward_whose_aiflow_was_killed_is_waited_for(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiflow.adapters.git.merging.base_moving._LOCK_SECONDS", 0.0)
    scene.run({"new.txt": "run\n"})
    merge = scene.merged()
    left = _leave_alone(scene, merge)
    assert left not in marked(GIT_MARK, scene.place.run_id)  # so that whoever takes the run over does not end it
    timer = threading.Timer(0.3, (scene.state / "go").touch)
    timer.start()
    assert scene.git.move_base(scene.place, merge)
    timer.join()
    assert (scene.base(), git(scene.root, "status", "--porcelain")) == (merge.commit, "")


def test_a_fast_forward_that_does_not_end_is_left_alone(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_MOVE_SECONDS", "_LOCK_SECONDS"):
        monkeypatch.setattr(f"aiflow.adapters.git.merging.base_moving.{name}", 0.1)
    scene.run({"new.txt": "run\n"})
    merge = scene.merged()
    _leave_alone(scene, merge)
    assert "index.lock" in str(scene.refused(merge).context["detail"])
    (scene.state / "go").touch()
    wait_until(lambda: scene.base() == merge.commit)
    monkeypatch.undo()
    assert (scene.base(), git(scene.root, "status", "--porcelain")) == (merge.commit, "")


def test_what_a_git_that_was_killed_in_the_middle_wrote_is_put_back(scene: Scene) -> None:
    scene.run({"a.txt": "run\n", "new.txt": "run\n", "z.txt": "run\n"})
    write(scene.root / "lib/b.txt", "mine\n")
    merge = scene.merged()
    _filter(scene, "z.txt", "kill -9 $PPID")
    before = everything_in(scene.root)
    with pytest.raises(EnvironmentProblemError, match="GIT_FAILED") as caught:
        scene.git.move_base(scene.place, merge)
    assert "signal 9" in str(caught.value.context["problem"])
    assert everything_in(scene.root) == before
    (scene.root / ".git/info/attributes").unlink()
    assert scene.git.move_base(scene.place, merge)
    assert git(scene.root, "status", "--porcelain") == "M lib/b.txt"


def test_a_lock_that_goes_away_is_waited_for(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiflow.adapters.git.merging.base_moving._LOCK_SECONDS", 30.0)
    scene.run({"new.txt": "run\n"})
    merge = scene.merged()
    lock = write(scene.root / ".git/index.lock", "")
    timer = threading.Timer(0.2, lock.unlink)
    timer.start()
    assert scene.git.move_base(scene.place, merge)
    timer.join()


def test_a_ref_lock_that_stays_is_an_error_of_git(scene: Scene) -> None:
    scene.run({"new.txt": "run\n"})
    git(scene.root, "switch", "-qc", "topic")
    merge = scene.merged()
    _branch_locked(scene)
    before = everything_in(scene.root)
    assert reason_of(lambda: scene.git.move_base(scene.place, merge)) == "GIT_FAILED"
    assert everything_in(scene.root) == before


def test_a_checkout_that_cannot_be_written_is_an_error_of_git(scene: Scene) -> None:
    scene.run({"new.txt": "run\n"})
    git(scene.root, "config", "filter.broken.smudge", "false")
    git(scene.root, "config", "filter.broken.required", "true")
    write(scene.root / ".git/info/attributes", "new.txt filter=broken\n")
    merge = scene.merged()
    assert reason_of(lambda: scene.git.move_base(scene.place, merge)) == "GIT_FAILED"
    assert scene.base() == scene.start


def _failing(scene: Scene, merge: Merge) -> str:
    """See a move fail in the middle, and return what is told about it."""
    with pytest.raises(EnvironmentProblemError, match="GIT_FAILED") as caught:
        scene.git.move_base(scene.place, merge)
    assert scene.base() == scene.start
    return str(caught.value.context["problem"])


def _break_at(scene: Scene, path: str, smudge: str) -> None:
    write(scene.root / ".git/info/attributes", f"{path} filter=broken\n")
    git(scene.root, "config", "filter.broken.smudge", smudge)
    git(scene.root, "config", "filter.broken.clean", "cat")
    git(scene.root, "config", "filter.broken.required", "true")


def test_what_a_failing_fast_forward_wrote_is_put_back(scene: Scene) -> None:
    scene.person({"link": "x\n", "tool.sh": "#!/bin/sh\n", "file": "file\n", "dir/in.txt": "in\n", "own.txt": "own\n"})
    git(scene.tree, "merge", "-q", "--ff-only", "main")
    scene.start = scene.base()
    (scene.tree / "link").unlink()
    (scene.tree / "link").symlink_to("a.txt")
    (scene.tree / "tool.sh").chmod(0o755)
    git(scene.tree, "rm", "-q", "file", "dir/in.txt", "lib/b.txt")
    changed: Files = {"a.txt": "run\n", "deep/down/new.txt": "run\n", "file/in.txt": "run\n", "dir": "run\n"}
    scene.run({**changed, **dict.fromkeys(ODD_NAMES, "run\n"), "zzz/last.txt": "run\n"})
    merge = scene.merged()
    write(scene.root / "own.txt", "mine\n")
    write(scene.root / "untracked.txt", "mine\n")
    (scene.root / "zzz").mkdir()
    _break_at(scene, "zzz/last.txt", "false")
    before = everything_in(scene.root)
    assert "left" not in _failing(scene, merge)
    assert everything_in(scene.root) == before
    (scene.root / ".git/info/attributes").unlink()
    assert scene.git.move_base(scene.place, merge)
    assert git(scene.root, "status", "--porcelain") == "M own.txt\n?? untracked.txt"


def test_what_is_neither_the_old_nor_the_new_file_is_named_and_left(scene: Scene) -> None:
    scene.run({"a.txt": "run\n", "new.txt": "run\n", "z.txt": "run\n"})
    merge = scene.merged()
    _break_at(scene, "z.txt", f"printf half > {scene.root}/a.txt; false")
    assert _failing(scene, merge).endswith("; left half written: a.txt")
    assert git(scene.root, "status", "--porcelain") == "M a.txt"


def test_the_beginnings_of_files_that_a_full_disk_leaves_are_put_back(scene: Scene) -> None:
    scene.run({"a.txt": "run\n", "m.txt": "run\n", "n.txt": "run\n", "z.txt": "run\n"})
    merge = scene.merged()
    _break_at(scene, "z.txt", "printf ru > a.txt; printf r > m.txt; : > n.txt; false")
    before = everything_in(scene.root)
    assert "left" not in _failing(scene, merge)
    assert everything_in(scene.root) == before


def test_a_file_that_cannot_be_put_back_is_named(scene: Scene) -> None:
    scene.run({"a.txt": "run\n", "new.txt": "run\n"})
    merge = scene.merged()
    _break_at(scene, "a.txt", "false")
    assert _failing(scene, merge).endswith("; left half written: a.txt")
    assert git(scene.root, "status", "--porcelain") == "D a.txt"
    (scene.root / ".git/info/attributes").unlink()
    assert scene.refused(merge).context["files"] == ["a.txt"]
    git(scene.root, "restore", "a.txt")
    assert scene.git.move_base(scene.place, merge)


def test_files_that_were_as_in_the_merge_before_it_failed_are_not_touched(scene: Scene) -> None:
    scene.run({"a.txt": "run\n", "new.txt": "run\n"})
    merge = scene.merged()
    write(scene.root / "a.txt", "run\n")
    write(scene.root / "new.txt", "run\n")
    assert "already as in the merge (a.txt, new.txt)" in str(scene.refused(merge).context["detail"])


def test_a_folder_that_cannot_be_written_leaves_nothing_half_done(scene: Scene) -> None:
    scene.run({"a.txt": "run\n", "lib/b.txt": "run\n", "new.txt": "run\n"})
    merge = scene.merged()
    before = everything_in(scene.root)
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "65534", scene.root, scene.state], check=True)
    (scene.root / "lib").chmod(0o555)
    with somebody_else(scene.root):
        told = _failing(scene, merge)
    (scene.root / "lib").chmod(0o755)
    assert ("lib/b.txt" in told, "left" in told) == (True, False)
    assert everything_in(scene.root) == before


def test_a_fast_forward_that_only_lacks_its_last_step_is_left_and_told(scene: Scene) -> None:
    scene.run({"a.txt": "run\n", "new.txt": "run\n", "lib/b.txt": None})
    merge = scene.merged()
    lock = scene.root / ".git/refs/heads/main.lock"
    _filter(scene, "new.txt", f"touch {lock}")
    with pytest.raises(AiflowError) as caught:
        scene.git.move_base(scene.place, merge)
    assert "accepting again completes it" in str(caught.value.context)
    lock.unlink()
    (scene.root / ".git/info/attributes").unlink()
    assert scene.git.move_base(scene.place, merge)
    assert (scene.base(), git(scene.root, "status", "--porcelain")) == (merge.commit, "")


def _move(root: str, place: Place, merge: Merge, at: float) -> str:
    time.sleep(max(0.0, at - time.time()))
    try:
        return str(GitMerging(root).move_base(place, merge))
    except AiflowError as error:
        return error.reason_code


@pytest.mark.faults
@pytest.mark.parametrize("is_checked_out", [True, False])
def test_of_two_who_move_the_base_at_once_one_wins(scene: Scene, is_checked_out: bool) -> None:
    second = replace(scene.place, run_id="RUN-2", path=f"{scene.place.path}-2", branch="aiflow/RQ-2/RUN-2")
    scene.work.prepare(second, scene.start)
    if not is_checked_out:
        git(scene.root, "switch", "-qc", "topic")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for turn in range(5):
            scene.run({f"one-{turn}.txt": "one\n"})
            commit(Path(second.path), {f"two-{turn}.txt": "two\n"})
            merges = [scene.merged(), scene.git.merge(second, "two")]
            at = time.time() + (1.5 if turn == 0 else 0.05)
            jobs = [(str(scene.root), *each, at) for each in zip((scene.place, second), merges, strict=True)]
            results = pool.starmap(_move, jobs, chunksize=1)
            assert sorted(results) == ["False", "True"]
            assert scene.base() == merges[results.index("True")].commit
            assert git(scene.root, "status", "--porcelain") == ""


# --- the base merged into the branch -------------------------------------------------------------------------------


def test_the_base_is_merged_into_the_branch_and_kept(scene: Scene) -> None:
    tip, base = scene.run({"new.txt": "new\n"}), scene.person({"more.txt": "more\n"})
    before = everything_in(scene.root / "a.txt", scene.tree)
    update = scene.git.update(scene.place, KEPT)
    assert update == Update(base, update.commit)
    assert git(scene.root, "rev-parse", KEPT) == update.commit
    told = git(scene.root, "show", "-s", "--format=%P|%s|%an", update.commit)
    assert told == f"{tip} {base}|Merge main into {scene.place.branch}|Ada"
    assert set(scene.shown(update.commit)) >= {"new.txt", "more.txt"}
    assert (git(scene.root, "rev-parse", scene.place.branch), scene.base()) == (tip, base)
    assert everything_in(scene.root / "a.txt", scene.tree) == before
    assert scene.git.update(scene.place, KEPT) == update
    newer = scene.person({"newest.txt": "newest\n"})
    assert scene.git.update(scene.place, KEPT).base == newer


def test_a_base_that_the_branch_has_already(scene: Scene) -> None:
    tip = scene.run({"new.txt": "new\n"})
    assert scene.git.update(scene.place, KEPT) == Update(scene.start, tip)
    assert git(scene.root, "rev-parse", KEPT) == tip


@pytest.mark.parametrize("case", CONFLICTS)
def test_conflicts_of_an_update_stand_in_its_files(scene: Scene, case: str) -> None:
    ours, theirs, names = CONFLICTS[case]
    if case == "a file for a folder":
        git(scene.tree, "rm", "-rq", "lib")
    scene.run(ours)
    scene.person(theirs)
    update = scene.git.update(scene.place, KEPT)
    files = scene.shown(update.commit)
    assert {name.partition("~")[0] for name in update.conflicts} == set(names)
    assert update.unmarked == tuple(name for name in update.conflicts if ">>>>>>>" not in files.get(name, ""))
    if case in ("content", "both added", "several", "odd names"):
        assert all("\n=======\n" in files[name] for name in update.conflicts)
        assert files[update.conflicts[0]].startswith("<<<<<<< aiflow/RQ-1/RUN-1-0-g")
        assert ">>>>>>> main-0-g" in files[update.conflicts[0]]
    assert scene.git.update(scene.place, KEPT) == update
    scene.work.go_back(scene.place, update.commit, "refs/aiflow/retried/x")
    # A kill came before that was written down.
    assert scene.git.update(scene.place, KEPT) == update
    texts = tuple(name for name, text in files.items() if "<<<<<<<" in text)
    assert scene.git.marked(scene.place, update.conflicts) == tuple(each for each in update.conflicts if each in texts)


def test_conflicts_that_no_marker_shows_are_told_apart(scene: Scene) -> None:
    git(scene.root, "config", "merge.fails.driver", "false")
    write(scene.root / ".git/info/attributes", "lib/b.txt merge=fails\n")
    git(scene.tree, "mv", "other.txt", "run.txt")
    git(scene.root, "mv", "other.txt", "person.txt")
    odd = os.fsdecode(b"not-\xff-utf8.bin")
    for add, text in ((scene.run, "run"), (scene.person, "person")):
        add({"a.txt": f"{text}\n", "lib/b.txt": f"{text}\n", "x.bin": b"\0" + text.encode(), odd: f"\0{text}"})
    update = scene.git.update(scene.place, KEPT)
    unmarked = ("lib/b.txt", "not-\\xff-utf8.bin", "other.txt", "person.txt", "run.txt", "x.bin")
    assert (update.conflicts, update.unmarked) == (("a.txt", *unmarked), unmarked)


def test_a_conflict_of_submodules_has_no_marker(scene: Scene) -> None:
    for where, bit in ((scene.tree, "1"), (scene.root, "2")):
        git(where, "update-index", "--add", "--cacheinfo", f"160000,{bit * 40},sub")
        git(where, "commit", "-q", "-m", "a module")
    update = scene.git.update(scene.place, KEPT)
    assert (update.conflicts, update.unmarked) == (("sub",), ("sub",))


def test_a_base_that_moved_on_after_an_update_is_merged_without_the_first(scene: Scene) -> None:
    tip = scene.run({"a.txt": "run\n"})
    scene.person({"a.txt": "person\n"})
    first = scene.git.update(scene.place, KEPT)
    scene.work.go_back(scene.place, first.commit, "refs/aiflow/retried/x")
    newer = scene.person({"a.txt": "person again\n"})
    second = scene.git.update(scene.place, KEPT)
    assert git(scene.root, "show", "-s", "--format=%P", second.commit) == f"{tip} {newer}"
    assert scene.shown(second.commit)["a.txt"].count("<<<<<<<") == 1


def test_a_lock_that_a_kill_left_on_the_kept_ref(scene: Scene) -> None:
    scene.run({"new.txt": "new\n"})
    write(scene.root / ".git" / f"{KEPT}.lock", "")
    assert scene.git.update(scene.place, KEPT).commit == git(scene.root, "rev-parse", KEPT)


def test_a_resolved_merge_takes_the_place_of_the_one_with_markers(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    tip, base = scene.run({"a.txt": "run\n"}), scene.person({"a.txt": "person\n", "more.txt": "more\n"})
    update = scene.git.update(scene.place, KEPT)
    scene.work.go_back(scene.place, update.commit, "refs/aiflow/retried/x")
    assert scene.git.marked(scene.place, update.conflicts) == ("a.txt",)
    write(scene.tree / "a.txt", "both\n")
    assert scene.git.marked(scene.place, update.conflicts) == ()
    assert [file.path for file in scene.work.collect(scene.place, update.commit).files] == ["a.txt"]
    assert scene.work.find_commit(scene.place, update.commit, TRAILERS) is None
    message = "Resolve\n\n" + "".join(f"{name}: {value}\n" for name, value in TRAILERS.items())
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Grace")
    made = scene.work.commit(scene.place, update.commit, message, amends=True)
    assert git(scene.root, "show", "-s", "--format=%P|%an|%s", made) == f"{tip} {base}|Grace|Resolve"
    assert git(scene.root, "rev-parse", scene.place.branch) == made
    assert git(scene.root, "log", "--format=%H", f"{made}..{update.commit}").split() == [update.commit]
    assert git(scene.tree, "status", "--porcelain") == ""
    anew = GitWorkspaces(str(scene.root), "RUN-1")
    assert anew.find_commit(scene.place, update.commit, TRAILERS) == made
    assert anew.find_commit(scene.place, update.commit, {"Aiflow-Step": "S03"}) is None
    merge = scene.merged()
    assert merge.paths == ("a.txt",)
    assert scene.git.move_base(scene.place, merge)
    assert (scene.root / "a.txt").read_text() == "both\n"
    assert "<<<<<<<" not in git(scene.root, "log", "-p", "-m", "main")


@pytest.mark.parametrize("text", ["run\n", "person\n"])
def test_a_merge_resolved_as_one_of_its_sides_is_a_commit_too(scene: Scene, text: str) -> None:
    tip, base = scene.run({"a.txt": "run\n"}), scene.person({"a.txt": "person\n"})
    update = scene.git.update(scene.place, KEPT)
    scene.work.go_back(scene.place, update.commit, "refs/aiflow/retried/x")
    write(scene.tree / "a.txt", text)
    scene.work.collect(scene.place, update.commit)
    made = scene.work.commit(scene.place, update.commit, "Resolve\n", amends=True)
    assert git(scene.root, "show", "-s", "--format=%P", made) == f"{tip} {base}"
    assert scene.shown(made)["a.txt"] == text.strip()


# --- what a person left in a run's worktree ------------------------------------------------------------------------


@pytest.mark.spec("GIT-5")
def test_what_is_unsaved_in_a_worktree(scene: Scene) -> None:
    assert scene.git.has_unsaved(scene.place) == ()
    write(scene.tree / "x.log")
    write(scene.tree / ".env")
    write(scene.tree / "node_modules/m/index.js")
    place = replace(scene.place, copied=(".env", "node_modules/"))
    assert scene.git.has_unsaved(place) == ()
    write(scene.tree / "a.txt", "mine\n")
    write(scene.tree / "other.txt", "mine\n")
    git(scene.tree, "add", "other.txt")
    (scene.tree / "lib/b.txt").unlink()
    for name in ODD_NAMES:
        write(scene.tree / f"odd/{name}")
    before = everything_in(scene.root, scene.tree)
    found = scene.git.has_unsaved(place)
    assert found == tuple(sorted(["a.txt", "other.txt", "lib/b.txt", *(f"odd/{name}" for name in ODD_NAMES)]))
    assert everything_in(scene.root, scene.tree) == before
    shutil.rmtree(scene.tree)
    assert scene.git.has_unsaved(place) == ()


def test_markers_are_looked_for_in_plain_files_of_the_worktree_only(scene: Scene, tmp_path: Path) -> None:
    marked = "<<<<<<< one\na\n=======\nb\n>>>>>>> two\n"
    outside = write(tmp_path / "outside/file.txt", marked).parent
    for name in ODD_NAMES:
        write(scene.tree / name, marked)
    write(scene.tree / "half.txt", "<<<<<<< one\n")
    write(scene.tree / "long.txt", marked.replace("<<<<<<<", "<" * 20).replace(">>>>>>>", ">" * 20))
    (scene.tree / "link").symlink_to(outside / "file.txt")
    (scene.tree / "folder").symlink_to(outside)
    os.mkfifo(scene.tree / "pipe")
    with open(scene.tree / "huge.bin", "wb") as file:
        file.truncate(5_000_000_000)
    odd = os.fsencode(scene.tree) + b"/not-\xff-utf8.txt"
    Path(os.fsdecode(odd)).write_text(marked)
    git(scene.tree, "add", "-A", ":!huge.bin")
    shown = "not-\\xff-utf8.txt"
    paths = (*ODD_NAMES, "half.txt", "link", "folder/file.txt", "pipe", "huge.bin", "lib", "gone", "a.txt/x")
    found = scene.git.marked(
        scene.place, (*paths, "../../outside/file.txt", str(outside / "file.txt"), shown, "long.txt")
    )
    assert found == (*ODD_NAMES, shown, "long.txt")
    shutil.rmtree(scene.tree)
    assert scene.git.marked(scene.place, paths) == ()
