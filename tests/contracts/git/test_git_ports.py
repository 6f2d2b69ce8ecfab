"""The `Workspaces`, `Merging` and `Housekeeping` ports, the same for git and for memory: what the engine depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from aiflow.adapters.git.cleaning.housekeeping import LocalHousekeeping
from aiflow.adapters.git.merging.merging import GitMerging
from aiflow.adapters.git.worktrees.worktrees import GitWorkspaces
from aiflow.adapters.memory.housekeeping import MemoryHousekeeping
from aiflow.adapters.memory.machine import STATE
from aiflow.adapters.memory.merging import MemoryMerging
from aiflow.adapters.memory.repository import MemoryRepository
from aiflow.adapters.memory.run_store import MemoryRunFiles
from aiflow.adapters.memory.workspaces import MemoryWorkspaces
from aiflow.domain.clean.cleaning import Item, ItemKind
from aiflow.domain.clean.leftovers import TreeState
from aiflow.domain.runs.merge import Landing, merge_ref
from aiflow.domain.runs.worktree import Bounds, Place, branch_name, retry_ref, wip_ref
from aiflow.errors import AiflowError
from aiflow.ports import Housekeeping, Merging, Workspaces
from git_template import be_ada, git, head_of, make_template

RUN_ID = "RUN-20260102-030405-aaaaaa"
BRANCH = branch_name("RQ-1", RUN_ID)
WIP, RETRIED, MERGED = wip_ref(RUN_ID, "S01"), retry_ref(RUN_ID, "S01", 1), merge_ref(RUN_ID, "S02")
TRAILERS = {"Aiflow-Request": "RQ-1", "Aiflow-Step": "S01"}
MESSAGE = "Do it\n\nAiflow-Request: RQ-1\nAiflow-Step: S01\n"


class GitYard:
    """A real repository beside its state folder."""

    def __init__(self, folder: Path) -> None:
        def fill(root: Path) -> None:
            (root / "a.txt").write_text("one\n")
            (root / "b.txt").write_text("two\n")
            (root / "requests").mkdir()
            (root / "requests/RQ-1.md").write_text("# One\n")

        make_template(folder, fill)
        self.root, self.state = folder / "repository", folder / "state"
        self.trees = self.state / "worktrees"
        self.trees.mkdir(parents=True)
        self.base = head_of(self.root)
        self.merging: Merging = GitMerging(str(self.root))
        self.housekeeping: Housekeeping = LocalHousekeeping(str(self.root), str(self.state))

    def workspaces(self, requests_dir: str = "requests") -> Workspaces:
        return GitWorkspaces(str(self.root), RUN_ID, bounds=Bounds(requests_dir))

    @property
    def path(self) -> str:
        return str(self.trees / RUN_ID)

    def write(self, name: str, text: str | None, path: str | None = None) -> None:
        file = Path(path or self.path, name)
        if text is None:
            file.unlink()
        else:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)

    def files(self, path: str | None = None) -> dict[str, str]:
        root = Path(path or self.path)
        found = [each for each in root.rglob("*") if each.is_file() and ".git" not in each.relative_to(root).parts]
        return {str(each.relative_to(root)): each.read_text() for each in found}

    def commit_to_base(self, name: str, text: str) -> str:
        self.write(name, text, str(self.root))
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "by hand")
        return head_of(self.root)

    def ref(self, name: str) -> str:
        return git(self.root, "rev-parse", name)

    def files_of(self, commit: str) -> dict[str, str]:
        names = git(self.root, "ls-tree", "-r", "--name-only", commit).splitlines()
        return {name: git(self.root, "show", f"{commit}:{name}") + "\n" for name in names}


class MemoryYard:
    """The same in memory."""

    def __init__(self, _folder: Path) -> None:
        files = {"a.txt": b"one\n", "b.txt": b"two\n", "requests/RQ-1.md": b"# One\n"}
        self.repository = MemoryRepository.with_files(files)
        self.base = self.ref("refs/heads/main")
        self.merging: Merging = MemoryMerging(self.repository)
        self.housekeeping: Housekeeping = MemoryHousekeeping(self.repository, MemoryRunFiles())

    def workspaces(self, requests_dir: str = "requests") -> Workspaces:
        return MemoryWorkspaces(self.repository, requests_dir)

    @property
    def path(self) -> str:
        return f"{STATE}/worktrees/{RUN_ID}"

    def write(self, name: str, text: str | None, path: str | None = None) -> None:
        files = self.repository.worktrees[path or self.path].files
        if text is None:
            del files[name]
        else:
            files[name] = text.encode()

    def files(self, path: str | None = None) -> dict[str, str]:
        return {name: data.decode() for name, data in self.repository.worktrees[path or self.path].files.items()}

    def commit_to_base(self, name: str, text: str) -> str:
        tree = self.repository.keep_tree({**self.repository.files_of("refs/heads/main"), name: text.encode()})
        made = self.repository.make_commit(tree, (self.ref("refs/heads/main"),), "by hand\n")
        self.repository.refs["refs/heads/main"] = made
        return made

    def ref(self, name: str) -> str:
        return self.repository.refs[name if name.startswith("refs/") else f"refs/heads/{name}"]

    def files_of(self, commit: str) -> dict[str, str]:
        return {name: data.decode() for name, data in self.repository.files_of(commit).items()}


Yard = GitYard | MemoryYard


@pytest.fixture(params=[GitYard, MemoryYard], ids=["git", "memory"])
def yard(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    be_ada(monkeypatch)
    make: Callable[[Path], Yard] = request.param
    return make(tmp_path)


def place_of(yard: Yard, *copied: str) -> Place:
    return Place(RUN_ID, yard.path, BRANCH, "main", yard.base, copied)


def made(yard: Yard, *copied: str) -> tuple[Workspaces, Place]:
    """A worktree that was just made."""
    workspaces, place = yard.workspaces(), place_of(yard, *copied)
    assert workspaces.prepare(place, yard.base)
    return workspaces, place


def committed(yard: Yard, **files: str) -> tuple[Workspaces, Place, str]:
    """A worktree in which a step was committed."""
    workspaces, place = made(yard)
    for name, text in (files or {"a": "mine\n"}).items():
        yard.write(f"{name}.txt", text)
    workspaces.collect(place, yard.base)
    return workspaces, place, workspaces.commit(place, yard.base, MESSAGE)


@pytest.mark.spec("GIT-1")
def test_facts_and_a_worktree_on_its_own_branch(yard: Yard) -> None:
    workspaces = yard.workspaces()
    facts = workspaces.facts("")
    assert (facts.head_branch, facts.base_branch, facts.base_commit) == ("main", "main", yard.base)
    assert facts.identity
    assert facts.changed_paths == ()
    assert workspaces.facts("other").base_commit is None
    place = place_of(yard)
    assert (workspaces.is_intact(place), workspaces.tip(place)) == (False, None)
    assert workspaces.prepare(place, yard.base)
    assert not workspaces.prepare(place, yard.base)
    assert (workspaces.is_intact(place), workspaces.tip(place)) == (True, yard.base)
    assert yard.files() == yard.files_of(yard.base)
    assert workspaces.is_ancestor(place, yard.base, yard.base)
    assert not workspaces.is_ancestor(place, yard.base, RETRIED)


@pytest.mark.spec("RUN-3", "REQ-8")
def test_a_step_is_collected_and_committed_once(yard: Yard) -> None:
    workspaces, place = made(yard, "tools")
    assert workspaces.collect(place, yard.base).files == ()
    yard.write("a.txt", "one\nmore\n")
    yard.write("new.txt", "new\n")
    yard.write("b.txt", None)
    yard.write("tools", "only copied\n")
    yard.write("requests/RQ-1.md", "# Mine\n")
    yard.write(".aiflow", "in the place of a folder\n")
    yard.write("runs", "in the place of a folder\n")
    changes = workspaces.collect(place, yard.base)
    assert sorted((each.path, each.added, each.deleted) for each in changes.files) == [
        ("a.txt", 1, 0),
        ("b.txt", 0, 1),
        ("new.txt", 1, 0),
    ]
    assert sorted(changes.undone) == [".aiflow", "requests/RQ-1.md", "runs"]
    assert "+new" in workspaces.diff(place, yard.base)
    assert workspaces.find_commit(place, yard.base, TRAILERS) is None
    commit = workspaces.commit(place, yard.base, MESSAGE)
    assert workspaces.tip(place) == commit
    assert workspaces.find_commit(place, yard.base, TRAILERS) == commit
    assert workspaces.find_commit(place, yard.base, {**TRAILERS, "Aiflow-Step": "S02"}) is None
    assert workspaces.is_ancestor(place, yard.base, commit)
    assert not workspaces.is_ancestor(place, commit, yard.base)
    compared = workspaces.compare(yard.base, commit)
    assert compared is not None
    assert {each.path for each in compared.files} == {"a.txt", "b.txt", "new.txt"}
    assert "+more" in compared.text
    assert workspaces.compare(yard.base, "0" * 40) is None
    pairs = [(yard.base, commit), (commit, commit), (yard.base, "0" * 40), ("--x", commit), (yard.base, commit)]
    sizes = yard.merging.sizes(pairs)
    assert sizes[1:4] == ((), None, None)
    assert sizes[0] == sizes[4] == compared.files
    assert yard.merging.sizes([]) == ()
    assert "tools" not in yard.files_of(commit)
    assert yard.files()["tools"] == "only copied\n"
    assert yard.files_of(commit)["requests/RQ-1.md"] == "# One\n"


@pytest.mark.spec("REQ-2")
def test_what_git_tracks_in_a_folder_is_told(yard: Yard) -> None:
    assert yard.workspaces().tracked("requests") == ("requests/RQ-1.md",)
    assert yard.workspaces().tracked("request") == yard.workspaces().tracked("nowhere") == ()


@pytest.mark.spec("REQ-2", "REQ-8")
def test_the_folder_of_the_requests_is_the_one_that_the_settings_name(yard: Yard) -> None:
    made(yard)
    workspaces, place = yard.workspaces("backlog"), place_of(yard)
    yard.write("backlog/RQ-2.md", "# By an agent\n")
    yard.write("backlogs.txt", "code\n")
    yard.write("requests/RQ-1.md", "code = 1\n")
    changes = workspaces.collect(place, yard.base)
    assert changes.undone == ("backlog/RQ-2.md",)
    assert [file.path for file in changes.files] == ["backlogs.txt", "requests/RQ-1.md"]
    assert "backlog/RQ-2.md" not in yard.files()


@pytest.mark.spec("RUN-3")
def test_what_tests_and_reviewers_leave_is_put_back(yard: Yard) -> None:
    workspaces, place = made(yard)
    assert workspaces.tidy(place) == ()
    yard.write("a.txt", "mine\n")
    workspaces.collect(place, yard.base)
    yard.write("a.txt", "spoiled\n")
    yard.write("left.txt", "left\n")
    assert sorted(workspaces.drop_leftovers(place)) == ["a.txt", "left.txt"]
    assert yard.files()["a.txt"] == "mine\n"
    assert workspaces.drop_leftovers(place) == ()
    workspaces.commit(place, yard.base, MESSAGE)
    yard.write("left.txt", "left\n")
    assert workspaces.tidy(place) == ("left.txt",)
    assert "left.txt" not in yard.files()
    assert yard.workspaces().drop_leftovers(place) == ()  # another process has collected nothing


@pytest.mark.spec("RUN-7")
def test_an_unfinished_step_is_kept_and_laid_out_again(yard: Yard) -> None:
    workspaces, place = made(yard)
    yard.write("a.txt", "half\n")
    kept = workspaces.keep_unfinished(place, yard.base, WIP)
    assert (kept.tree, kept.commit) == (workspaces.snapshot(place), yard.ref(WIP))
    assert b"half" in kept.patch
    assert workspaces.tip(place) == yard.base
    assert workspaces.differing(place, yard.base, kept.commit) == {"a.txt"}
    workspaces.go_back(place, yard.base, RETRIED)
    assert yard.files() == yard.files_of(yard.base)
    assert yard.files_of(yard.ref(RETRIED))["a.txt"] == "half\n"
    workspaces.restore(place, yard.base, kept.commit)
    assert yard.files()["a.txt"] == "half\n"
    assert workspaces.snapshot(place) == kept.tree
    assert workspaces.keep_unfinished(place, yard.base, WIP).tree == kept.tree


@pytest.mark.spec("RUN-6")
def test_going_back_keeps_what_was_there_reachable(yard: Yard) -> None:
    workspaces, place, commit = committed(yard)
    workspaces.go_back(place, yard.base, RETRIED)
    assert workspaces.tip(place) == yard.base
    assert yard.files()["a.txt"] == "one\n"
    assert workspaces.is_ancestor(place, commit, RETRIED)
    workspaces.go_back(place, yard.base, RETRIED)  # a kill came in between, and it is done again
    assert workspaces.is_ancestor(place, commit, RETRIED)


def test_a_worktree_that_is_gone_is_made_anew_where_the_branch_stands(yard: Yard) -> None:
    workspaces, place, commit = committed(yard)
    yard.merging.discard(place.path)
    assert not workspaces.is_intact(place)
    with pytest.raises(AiflowError) as caught:
        workspaces.collect(place, commit)
    assert caught.value.reason_code == "WORKTREE_LOST"
    assert yard.workspaces().prepare(place, yard.base)
    assert (workspaces.tip(place), yard.files()["a.txt"]) == (commit, "mine\n")


@pytest.mark.spec("GIT-3")
def test_a_merge_moves_nothing_until_the_base_is_moved(yard: Yard) -> None:
    workspaces, place, tip = committed(yard)
    ours = yard.commit_to_base("b.txt", "theirs\n")
    merge = yard.merging.merge(place, "Merge RQ-1\n")
    assert (merge.base, merge.tip, merge.paths, merge.conflicts) == (ours, tip, ("a.txt",), ())
    assert merge.commit is not None
    assert yard.ref("main") == ours
    merged = yard.files_of(merge.commit)
    assert (merged["a.txt"], merged["b.txt"]) == ("mine\n", "theirs\n")
    beside = Place(RUN_ID, f"{place.path}.merge", BRANCH, "main", yard.base)
    yard.merging.check_out(merge.commit, beside)
    assert yard.files(beside.path) == merged
    yard.merging.discard(beside.path)
    yard.merging.discard(beside.path)
    assert yard.merging.move_base(place, merge)
    assert yard.ref("main") == merge.commit
    assert workspaces.is_ancestor(place, tip, merge.commit)
    again = yard.merging.merge(place, "Merge RQ-1\n")
    assert (again.commit, again.conflicts, again.base) == (None, (), merge.commit)


@pytest.mark.spec("GIT-3")
def test_a_base_that_moved_by_itself_is_not_moved(yard: Yard) -> None:
    _, place, _ = committed(yard)
    merge = yard.merging.merge(place, "Merge RQ-1\n")
    ours = yard.commit_to_base("b.txt", "theirs\n")
    assert not yard.merging.move_base(place, merge)
    assert yard.ref("main") == ours


@pytest.mark.spec("GIT-3")
def test_conflicts_are_named_and_laid_out_with_markers(yard: Yard) -> None:
    workspaces, place, tip = committed(yard)
    base = yard.commit_to_base("a.txt", "theirs\n")
    merge = yard.merging.merge(place, "Merge RQ-1\n")
    assert (merge.commit, merge.conflicts) == (None, ("a.txt",))
    update = yard.merging.update(place, MERGED)
    assert (update.base, update.conflicts, update.unmarked) == (base, ("a.txt",), ())
    assert workspaces.tip(place) == tip
    assert yard.merging.update(place, MERGED) == update
    workspaces.go_back(place, update.commit, retry_ref(RUN_ID, "S02", 0))
    assert yard.merging.marked(place, ("a.txt", "b.txt")) == ("a.txt",)
    yard.write("a.txt", "both\n")
    assert yard.merging.marked(place, ("a.txt",)) == ()
    workspaces.collect(place, update.commit)
    commit = workspaces.commit(place, update.commit, MESSAGE, amends=True)
    assert workspaces.is_ancestor(place, base, commit)
    assert not workspaces.is_ancestor(place, update.commit, commit)
    assert workspaces.find_commit(place, update.commit, TRAILERS) == commit
    assert yard.merging.merge(place, "Merge RQ-1\n").conflicts == ()


def test_what_a_person_left_in_a_worktree_is_seen(yard: Yard) -> None:
    _, place, _ = committed(yard)
    assert yard.merging.has_unsaved(place) == ()
    yard.write("a.txt", "by hand\n")
    yard.write("new.txt", "by hand\n")
    assert yard.merging.has_unsaved(place) == ("a.txt", "new.txt")
    yard.merging.discard(place.path)
    assert yard.merging.has_unsaved(place) == ()


def landed(yard: Yard) -> tuple[Place, Landing]:
    """Let a run change a file, and bring it in."""
    _, place, tip = committed(yard)
    merge = yard.merging.merge(place, f"Merge RQ-1\n\nAiflow-Run: {RUN_ID}\n")
    assert merge.commit is not None
    assert yard.merging.move_base(place, merge)
    landing = yard.merging.landing(place, merge.commit, (yard.base, tip))
    assert landing == Landing(yard.base, merge.commit, tip)
    return place, landing


def taken_out(yard: Yard) -> tuple[Place, Landing]:
    """Take it out again."""
    place, landing = landed(yard)
    revert = yard.merging.revert(place, landing, "Revert RQ-1\n")
    merge = revert.merge
    assert (merge.paths, merge.conflicts, merge.tip, revert.later) == (("a.txt",), (), landing.after, ())
    assert merge.commit is not None
    assert yard.ref("main") == landing.after
    assert yard.merging.move_base(place, merge)
    assert yard.files_of(merge.commit) == yard.files_of(yard.base)
    return place, replace(landing, undone_as=merge.commit)


@pytest.mark.spec("GIT-3", "REQ-6")
def test_work_is_taken_out_of_the_base_and_brought_in_again(yard: Yard) -> None:
    place, landing = taken_out(yard)
    assert yard.merging.merge(place, "Merge RQ-1\n").commit is None  # what git itself makes of it
    yard.commit_to_base("b.txt", "later\n")
    merge = yard.merging.merge(place, "Merge RQ-1\n", landing)
    assert merge.commit is not None
    assert merge.paths == ("a.txt",)
    assert (yard.files_of(merge.commit)["a.txt"], yard.files_of(merge.commit)["b.txt"]) == ("mine\n", "later\n")
    assert yard.merging.move_base(place, merge)
    assert yard.merging.merge(place, "Merge RQ-1\n", landing).commit is None


@pytest.mark.spec("GIT-3", "REQ-6")
def test_what_was_taken_out_stays_in_a_branch_that_is_brought_in_line(yard: Yard) -> None:
    place, landing = taken_out(yard)
    yard.commit_to_base("b.txt", "later\n")
    update = yard.merging.update(place, MERGED, landing)
    assert update.conflicts == ()
    assert (yard.files_of(update.commit)["a.txt"], yard.files_of(update.commit)["b.txt"]) == ("mine\n", "later\n")
    assert yard.merging.update(place, MERGED, landing) == update
    yard.commit_to_base("a.txt", "otherwise\n")
    assert yard.merging.update(place, MERGED, landing).conflicts == ("a.txt",)
    assert yard.merging.merge(place, "Merge RQ-1\n", landing).conflicts == ("a.txt",)


@pytest.mark.spec("GIT-3", "REQ-6")
def test_work_that_was_changed_again_is_not_taken_out_and_what_changed_it_is_named(yard: Yard) -> None:
    place, landing = landed(yard)
    yard.commit_to_base("b.txt", "elsewhere\n")
    last = yard.commit_to_base("a.txt", "mine, and more\n")
    revert = yard.merging.revert(place, landing, "Revert RQ-1\n")
    assert (revert.merge.commit, revert.merge.conflicts, revert.later) == (None, ("a.txt",), ("by hand",))
    assert yard.ref("main") == last


@pytest.mark.spec("GIT-3", "REQ-6")
def test_work_that_somebody_took_out_by_hand_leaves_nothing_to_take_out(yard: Yard) -> None:
    place, landing = landed(yard)
    last = yard.commit_to_base("a.txt", "one\n")
    revert = yard.merging.revert(place, landing, "Revert RQ-1\n")
    assert (revert.merge.base, revert.merge.commit, revert.merge.conflicts) == (last, None, ())
    merge = yard.merging.merge(place, "Merge RQ-1\n", replace(landing, undone_as=last))
    assert merge.commit is not None
    assert yard.files_of(merge.commit)["a.txt"] == "mine\n"


@pytest.mark.spec("GIT-3", "REQ-6")
def test_a_branch_that_is_gone_is_made_again_and_one_that_is_there_stays(yard: Yard) -> None:
    place, landing = landed(yard)
    yard.merging.keep_branch(place, yard.base)
    assert yard.ref(BRANCH) == landing.tip
    other = replace(place, branch=f"{BRANCH}-gone")
    yard.merging.keep_branch(other, landing.tip)
    assert yard.ref(other.branch) == landing.tip


@pytest.mark.spec("GIT-5")
def test_what_is_left_is_found_judged_and_taken_away(yard: Yard) -> None:
    workspaces, place, tip = committed(yard)
    keeping = yard.housekeeping
    remains = keeping.survey(frozenset({"main"}))
    assert dict(remains.worktrees) == {RUN_ID: place.path}
    assert remains.checked_out[BRANCH] == place.path
    assert [(ref.commit, ref.is_merged) for ref in remains.branches.values()] == [(tip, False)]
    assert keeping.state_of(place, None) is TreeState.SAVED
    yard.write("a.txt", "half\n")
    assert keeping.state_of(place, None) is TreeState.UNSAVED
    kept = workspaces.keep_unfinished(place, tip, WIP)
    assert keeping.state_of(place, kept.commit) is TreeState.SAVED
    assert [ref.name for ref in keeping.survey(frozenset({"main"})).refs[RUN_ID]] == [WIP]
    workspaces.go_back(place, tip, RETRIED)
    merge = yard.merging.merge(place, "Merge RQ-1\n")
    assert yard.merging.move_base(place, merge)
    assert keeping.survey(frozenset({"main"})).branches[BRANCH].is_merged
    branch = Item(ItemKind.BRANCH, BRANCH, "accepted", RUN_ID, "RQ-1", tip)
    with pytest.raises(AiflowError):  # it is checked out
        keeping.drop_refs([branch])
    keeping.take_away(Item(ItemKind.WORKTREE, place.path, "accepted", RUN_ID, "RQ-1"))
    assert keeping.state_of(place, None) is TreeState.MISSING
    assert not workspaces.is_intact(place)
    keeping.clear_away(RUN_ID)
    assert RUN_ID not in keeping.survey(frozenset({"main"})).leftovers
    moved = Item(ItemKind.REF, WIP, "accepted", RUN_ID, "RQ-1", yard.base)
    with pytest.raises(AiflowError):  # it is not where it was seen, so none goes
        keeping.drop_refs([branch, moved])
    keeping.drop_refs([branch, Item(ItemKind.REF, WIP, "accepted", RUN_ID, "RQ-1", kept.commit)])
    keeping.drop_refs([branch])
    assert workspaces.tip(place) is None
