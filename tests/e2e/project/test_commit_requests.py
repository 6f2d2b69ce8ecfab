"""`commit_requests = true` in every state a checkout can be in (REQ-8): those files only, or left and said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.bench import Bench, git

pytestmark = pytest.mark.spec("REQ-8")


@pytest.fixture
def committing(bench: Bench) -> Bench:
    bench.configure()
    path = bench.root / "aiflow.toml"
    path.write_text(f'accept = "auto"\ncommit_requests = true\n{path.read_text()}')
    bench.commit()
    return bench


def subjects(bench: Bench, count: int = 1) -> list[str]:
    return bench.git("log", "--first-parent", "--format=%s", f"-{count}").splitlines()


def test_a_night_commits_the_requests_it_changes_and_nothing_of_the_person_s(committing: Bench) -> None:
    bench = committing
    (bench.root / "staged.txt").write_text("staged\n")
    bench.git("add", "staged.txt")
    (bench.root / "untracked.txt").write_text("untracked\n")
    shape = bench.aiflow.json("-c", "git.dirty_checkout=warn", "auto")
    assert shape["done"] == 1
    assert subjects(bench, 4)[:3] == [
        "RQ-1: status running -> done",
        "Merge RQ-1: RQ-1",
        "RQ-1: status ready -> running",
    ]
    for commit in ("HEAD", "HEAD~2"):
        assert bench.git("show", "--first-parent", "--format=", "--name-only", commit) == "requests/RQ-1.md"
    assert bench.git("status", "--porcelain").splitlines() == ["A  staged.txt", "?? untracked.txt"]


def test_set_and_new_and_send_back_are_committed_too(committing: Bench) -> None:
    bench = committing
    made = bench.aiflow.json("new", "Another one", "--body", "Words.")
    assert subjects(bench) == [f"{made['request_id']}: new request"]
    bench.aiflow("set", made["request_id"], "priority=P0")
    assert subjects(bench) == [f"{made['request_id']}: priority P2 -> P0"]
    bench.aiflow("set", made["request_id"], "priority=P0")
    assert subjects(bench) == [f"{made['request_id']}: priority P2 -> P0"]
    bench.aiflow("-c", "accept=manual", "run", "RQ-1")
    bench.aiflow("send-back", "RQ-1", "-m", "Not yet")
    assert subjects(bench) == ["RQ-1: status blocked -> ready"]
    assert bench.git("status", "--porcelain") == ""


def _clean(_bench: Bench) -> None:
    """Nothing is changed."""


def _edited(bench: Bench) -> None:
    (bench.root / "app.txt").write_text("edited\n")


def _staged_and_edited(bench: Bench) -> None:
    (bench.root / "app.txt").write_text("staged\n")
    bench.git("add", "app.txt")
    (bench.root / "app.txt").write_text("edited\n")


def _staged_request(bench: Bench) -> None:
    path = bench.root / "requests/RQ-1.md"
    path.write_text(path.read_text() + "\nA person's line.\n")
    bench.git("add", "requests/RQ-1.md")


def _other_branch(bench: Bench) -> None:
    bench.git("checkout", "-q", "-b", "feature")


def _deleted(bench: Bench) -> None:
    bench.git("rm", "-q", "--cached", "app.txt")


def _failing_hook(bench: Bench) -> None:
    hook = bench.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)


def _in_folder_of_its_own(bench: Bench) -> None:
    bench.git("config", "core.quotePath", "true")
    bench.git("config", "status.relativePaths", "true")


def _unmerged_only(bench: Bench) -> None:
    (bench.root / "app.txt").write_text("stashed\n")
    bench.git("stash", "-q")
    (bench.root / "app.txt").write_text("main\n")
    bench.git("commit", "-qam", "main")
    bench.git("stash", "pop", "-q", code=1)


@pytest.mark.parametrize(
    "state",
    [
        _clean,
        _unmerged_only,
        _edited,
        _staged_and_edited,
        _staged_request,
        _other_branch,
        _deleted,
        _failing_hook,
        _in_folder_of_its_own,
    ],
)
def test_where_a_commit_is_possible_only_the_request_is_in_it(
    committing: Bench, state: Callable[[Bench], None]
) -> None:
    bench = committing
    state(bench)
    others = ("--", ".", ":(exclude)requests")
    before = (bench.git("diff", *others), bench.git("diff", "--cached", *others), bench.git("stash", "list"))
    said = bench.aiflow("set", "RQ-1", "priority=P3")
    assert said.stderr == ""
    assert subjects(bench) == ["RQ-1: priority P1 -> P3"]
    assert bench.git("show", "--format=", "--name-only", "HEAD") == "requests/RQ-1.md"
    assert "priority: P3" in bench.git("show", "HEAD:requests/RQ-1.md")
    assert bench.git("status", "--porcelain", "--", "requests") == ""
    assert before == (bench.git("diff", *others), bench.git("diff", "--cached", *others), bench.git("stash", "list"))


def _two_sides(bench: Bench) -> None:
    bench.git("checkout", "-q", "-b", "side")
    (bench.root / "app.txt").write_text("side\n")
    bench.git("commit", "-qam", "side")
    bench.git("checkout", "-q", "main")
    (bench.root / "app.txt").write_text("main\n")
    bench.git("commit", "-qam", "main")


def _merge(bench: Bench) -> None:
    _two_sides(bench)
    bench.git("merge", "-q", "side", code=1)


def _rebase(bench: Bench) -> None:
    _two_sides(bench)
    bench.git("rebase", "-q", "side", code=1)


def _cherry_pick(bench: Bench) -> None:
    _two_sides(bench)
    bench.git("cherry-pick", "side", code=1)


def _detached(bench: Bench) -> None:
    bench.git("checkout", "-q", "--detach")


def _bisect(bench: Bench) -> None:
    bench.git("bisect", "start")


def _index_held(bench: Bench) -> None:
    (bench.root / ".git/index.lock").touch()


@pytest.mark.parametrize(
    "state",
    [_merge, _rebase, _cherry_pick, _detached, _bisect, _index_held],
    ids=lambda each: each.__name__,
)
def test_where_it_is_not_the_change_is_left_and_said(committing: Bench, state: Callable[[Bench], None]) -> None:
    bench = committing
    state(bench)
    made = (bench.git("rev-parse", "HEAD"), bench.git("ls-files", "--stage"))
    said = bench.aiflow("set", "RQ-1", "priority=P3")
    assert "requests/RQ-1.md was changed but not committed: " in said.stderr
    new = bench.aiflow("new", "Another one", "--body", "Words.", "--id", "RQ-9")
    assert "requests/RQ-9.md was changed but not committed: " in new.stderr
    assert "コミットしていません" in bench.aiflow("--lang", "ja", "set", "RQ-1", "priority=P0").stderr
    assert "priority: P0" in (bench.root / "requests/RQ-1.md").read_text()
    assert made == (bench.git("rev-parse", "HEAD"), bench.git("ls-files", "--stage"))


def test_requests_that_a_person_keeps_out_of_git_stay_out(committing: Bench) -> None:
    bench = committing
    bench.git("rm", "-q", "--cached", "-r", "requests")
    (bench.root / ".gitignore").write_text("/runs/\n/.aiflow/\n/requests/\n")
    head = bench.commit()
    assert bench.aiflow("set", "RQ-1", "priority=P3").stderr == ""
    assert (bench.git("rev-parse", "HEAD"), bench.git("status", "--porcelain")) == (head, "")


def test_a_linked_worktree_commits_on_its_own_branch(committing: Bench, tmp_path: Path) -> None:
    tree = tmp_path / "linked"
    committing.git("worktree", "add", "-q", "-b", "linked", str(tree))
    committing.aiflow("-C", str(tree), "set", "RQ-1", "priority=P3")
    assert git(tree, "log", "-1", "--format=%s") == "RQ-1: priority P1 -> P3"
    assert git(tree, "status", "--porcelain") == ""


def test_without_the_setting_nothing_is_committed(bench: Bench) -> None:
    head = bench.git("rev-parse", "HEAD")
    bench.aiflow("set", "RQ-1", "priority=P3")
    assert bench.git("rev-parse", "HEAD") == head
