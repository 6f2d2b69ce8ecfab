"""Cleaning up after runs (GIT-5): the use cases with real git and real files, interrupted wherever that is possible."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from aiflow.adapters.git.cleaning import housekeeping
from aiflow.adapters.git.cleaning.housekeeping import LocalHousekeeping
from aiflow.adapters.locks.lease import LockLease
from aiflow.domain.activity import Actor
from aiflow.domain.clean.cleaning import Item, ItemKind
from aiflow.domain.clean.leftovers import Found, RunStanding
from aiflow.domain.lock import Lock, LockType
from aiflow.domain.request import RequestId
from aiflow.domain.runs.run import Run
from aiflow.errors import EnvironmentProblemError, NotFoundError
from aiflow.ports import Lease
from aiflow.usecases.clean.clean_up import CleanWish, clean_after_accept, clean_up, plan_clean_up, retention, rules_for
from aiflow.usecases.clean.find_leftovers import is_locked
from builders import write_request
from clean_yard import Yard, everything_in, git, told

ALL = CleanWish()


@pytest.fixture
def yard(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    return Yard(repository, tmp_path, monkeypatch)


def journal(yard: Yard) -> list[dict[str, object]]:
    files = sorted((yard.root / ".aiflow/activity").glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text("utf-8").splitlines()]


# --- what goes, what stays -------------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-5", "ERR-4")
def test_of_an_accepted_run_everything_goes_but_its_files_and_the_journal_tells(yard: Yard) -> None:
    run = yard.run()
    refs = [yard.keep(run, "wip"), yard.keep(run, "retried", "S01-1")]
    (yard.trees.parent / "results").mkdir()
    result = yard.trees.parent / f"results/{run.run_id}.0123456789ab.json"
    result.write_text("{}")
    commits = {name: yard.git("rev-parse", name) for name in (run.place.branch, *refs)}
    user = everything_in(yard.root / "requests"), yard.git("status", "--porcelain"), yard.git("rev-parse", "HEAD")

    cleaned = yard.clean()

    assert told(cleaned) == {
        *((kind, "accepted") for kind in (ItemKind.WORKTREE, ItemKind.BRANCH, ItemKind.REF)),
        (ItemKind.LEFTOVER, "leftover"),
    }
    assert (cleaned.kept, cleaned.failed) == ([], [])
    assert sum(item.size_bytes or 0 for item in cleaned.removed) > 0
    assert (yard.refs(), yard.entries(), list(yard.trees.iterdir())) == ([], [], [])
    assert not result.exists()
    assert (yard.folder(run) / "stage.json").exists()
    (entry,) = [entry for entry in journal(yard) if entry["kind"] == "cleaned"]
    assert (entry["actor"], entry["request_id"], entry["run_id"]) == ("person", "RQ-1", run.run_id)
    gone = {line["name"]: line["commit"] for line in entry["data"]["removed"]}  # type: ignore[index]
    assert gone == {run.place.path: None, str(result): None, **commits}
    assert user == (
        everything_in(yard.root / "requests"),
        yard.git("status", "--porcelain"),
        yard.git("rev-parse", "HEAD"),
    )
    again = yard.clean()
    assert (again.removed, again.kept) == ([], [])


@pytest.mark.spec("GIT-5")
@pytest.mark.parametrize(
    ("facts", "removed", "kept"),
    [
        ({"days": 6}, set(), {("run", "young")}),
        ({"status": "blocked"}, {("worktree", "waiting")}, set()),
        ({"status": "blocked", "state": "NEEDS_INPUT", "merged": False}, {("worktree", "waiting")}, set()),
        (
            {"status": "blocked", "accepted_as": "abc"},
            {("worktree", "accepted"), ("branch", "accepted")},
            set(),
        ),
        (
            {"accepted_as": "abc", "merged": False},
            {("worktree", "accepted")},
            {("branch", "not_merged")},
        ),
        ({"merged": False}, {("worktree", "request_closed")}, {("branch", "not_merged")}),
        (
            {"status": "archived", "state": "NEEDS_INPUT", "commits": False},
            {("worktree", "request_closed"), ("branch", "request_closed")},
            set(),
        ),
        (
            {"status": "ready", "state": "FAILED", "reason": "SENT_BACK", "merged": False},
            {("worktree", "sent_back")},
            {("branch", "next_run")},
        ),
        (
            {"status": "ready", "state": "FAILED", "reason": "SENT_BACK"},
            {("worktree", "sent_back")},
            {("branch", "next_run")},
        ),
        (
            {"status": "done", "state": "FAILED", "reason": "SENT_BACK"},
            {("worktree", "sent_back"), ("branch", "sent_back")},
            set(),
        ),
        (
            {"status": "blocked", "state": "FAILED", "reason": "REPLANNED", "merged": False, "replaced_by": "RUN-9"},
            {("worktree", "replaced")},
            {("branch", "not_merged")},
        ),
        ({"status": None}, {("worktree", "request_gone"), ("branch", "request_gone")}, set()),
        ({"status": "running", "state": "PLANNING"}, set(), {("run", "active")}),
    ],
)
def test_what_a_run_is_to_its_request_decides(
    yard: Yard, facts: dict[str, object], removed: set[tuple[str, str]], kept: set[tuple[str, str]]
) -> None:
    run = yard.run(**facts)  # type: ignore[arg-type]
    cleaned = yard.clean()
    assert told(cleaned) == removed
    assert told(cleaned, "kept") == kept
    assert Path(run.place.path).exists() == (not removed)
    assert (run.place.branch in yard.git("branch", "--list", "aiflow/*")) == (
        ("branch", "accepted") not in removed and not any(kind == "branch" for kind, _ in removed)
    )


@pytest.mark.spec("GIT-5")
def test_of_several_runs_the_newest_and_the_one_that_speaks_are_not_over(yard: Yard) -> None:
    first = yard.run(days=40, state="FAILED", reason="INTERNAL_ERROR", status="blocked", merged=False)
    speaks = yard.run(days=35, state="NEEDS_INPUT", status="blocked", merged=False)
    newest = yard.run(days=30, state="FAILED", reason="INTERNAL_ERROR", status="blocked", merged=False)
    cleaned = yard.clean(unmerged=True)
    assert {(item.run_id, item.kind, item.why) for item in cleaned.removed} == {
        (first.run_id, "worktree", "superseded"),
        (first.run_id, "branch", "not_merged"),
        (speaks.run_id, "worktree", "waiting"),
        (newest.run_id, "worktree", "waiting"),
    }


@pytest.mark.spec("GIT-5")
def test_a_request_that_cannot_be_read_is_not_gone(yard: Yard) -> None:
    yard.run(merged=False)
    write_request(yard.root, "RQ-1", "---\nstatus: [\n---\n")
    cleaned = yard.clean(unmerged=True)
    assert told(cleaned) == {("worktree", "waiting")}


@pytest.mark.spec("GIT-5")
def test_a_run_whose_file_is_damaged_is_judged_by_what_git_has(yard: Yard) -> None:
    run = yard.run(status="blocked")
    (yard.folder(run) / "stage.json").write_text("{")
    assert told(yard.clean()) == {("worktree", "waiting")}
    yard.run(status="done", days=20)  # a newer one is there
    cleaned = yard.clean()
    assert (run.run_id, "branch") in {(item.run_id, item.kind) for item in cleaned.removed}


@pytest.mark.spec("GIT-5")
def test_with_unmerged_the_commit_is_told_that_brings_it_back(yard: Yard) -> None:
    run = yard.run(merged=False)
    ref = yard.keep(run)
    commit, kept = yard.git("rev-parse", run.place.branch), yard.git("rev-parse", ref)
    assert told(yard.clean(), "kept") == {("branch", "not_merged"), ("ref", "not_merged")}
    cleaned = yard.clean(unmerged=True)
    assert [(item.name, item.commit) for item in cleaned.removed if item.is_unmerged] == [
        (run.place.branch, commit),
        (ref, kept),
    ]
    yard.git("branch", run.place.branch, commit)
    assert yard.git("show", f"{run.place.branch}:{run.run_id}.txt") == "work"


@pytest.mark.spec("GIT-5")
def test_only_the_requests_and_runs_that_are_named_are_cleaned(yard: Yard) -> None:
    runs = [yard.run(f"RQ-{number}") for number in range(4)]
    write_request(yard.root, "RQ-8", None, status="ready")
    write_request(yard.root, "RQ-9", "---\nstatus: [\n---\n")
    assert {item.run_id for item in yard.clean("RQ-0", runs[2].run_id).removed} == {runs[0].run_id, runs[2].run_id}
    assert yard.clean("RQ-8", "RQ-9").removed == []
    with pytest.raises(NotFoundError, match="REQUEST_NOT_FOUND"):
        yard.clean("RQ-0", "RQ-7")
    with pytest.raises(NotFoundError, match="RUN_NOT_FOUND"):
        yard.clean("RUN-20200101-000000-aaaaaa")
    assert len(yard.entries()) == 2


@pytest.mark.spec("GIT-5")
def test_a_base_branch_that_is_gone_or_another_one_still_counts(yard: Yard) -> None:
    run = yard.run()
    yard.git("branch", "-m", "main", "trunk")
    assert told(yard.clean()) == {("worktree", "accepted"), ("branch", "accepted")}
    assert run.place.branch not in yard.git("branch", "--list", "aiflow/*")


@pytest.mark.spec("GIT-5")
def test_a_worktree_path_that_somebody_edited_leads_nowhere_else(yard: Yard, tmp_path: Path) -> None:
    run = yard.run()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "x").write_text("x")
    yard.engine.runs.save(replace(run, place=replace(run.place, path=str(mine))))
    yard.engine.runs.save(replace(run, place=replace(run.place, branch="main", path=str(mine))))
    assert {item.name for item in yard.clean(unmerged=True).removed} == {run.place.path, run.place.branch}
    assert (mine / "x").exists()
    assert yard.git("branch", "--list", "main")


@pytest.mark.spec("GIT-5")
def test_a_run_that_two_requests_have_is_left_alone(yard: Yard) -> None:
    run = yard.run()
    shutil.copytree(yard.folder(run), yard.root / "runs/RQ-2" / run.run_id)
    cleaned = yard.clean(unmerged=True)
    assert cleaned.removed == []
    assert told(cleaned, "kept") == {("run", "ambiguous")}


@pytest.mark.spec("GIT-5")
def test_the_runs_own_files_go_if_the_settings_say_so(yard: Yard) -> None:
    (yard.root / "aiflow.toml").write_text("[clean]\nruns_after_days = 35\n")
    replaced = yard.run(days=50, state="FAILED", reason="REPLANNED", commits=False)
    last = yard.run(days=40, replaces=replaced.run_id)
    young = yard.run("RQ-2", days=30)
    still_open = yard.run("RQ-3", days=50, status="blocked", accepted_as="abc")
    cleaned = yard.clean()
    assert {item.run_id for item in cleaned.removed if item.kind is ItemKind.RUN} == {replaced.run_id, last.run_id}
    assert not (yard.root / "runs/RQ-1").exists()
    assert yard.folder(young).exists()
    assert yard.folder(still_open).exists()
    assert sorted(path.name for path in (yard.root / "runs").iterdir()) == [".gitignore", "RQ-2", "RQ-3"]
    assert yard.engine.runs.latest().keys() == {"RQ-2", "RQ-3"}
    assert (yard.root / ".aiflow/activity").exists()


# --- what has no run any more ----------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-5", "REQ-7")
def test_after_git_clean_only_what_is_saved_and_merged_goes(yard: Yard) -> None:
    merged, not_merged, unsaved, kept = (
        yard.run("RQ-1"),
        yard.run("RQ-2", merged=False),
        yard.run("RQ-3"),
        yard.run("RQ-4"),
    )
    Path(unsaved.place.path, "mine.txt").write_text("mine\n")
    yard.keep(kept)
    yard.git("add", "-A")
    yard.git("commit", "-qm", "requests")
    yard.git("clean", "-fdxq")
    young = yard.clean()  # their commits are of today
    assert {item.why for item in (*young.removed, *young.kept)} == {"young"}

    cleaned = yard.clean(days=0)

    removed = {(item.run_id, item.kind) for item in cleaned.removed}
    assert removed == {
        (merged.run_id, "worktree"),
        (merged.run_id, "branch"),
        (not_merged.run_id, "worktree"),
        (kept.run_id, "worktree"),
    }
    assert {(item.run_id, item.kind, item.why) for item in cleaned.kept} == {
        (not_merged.run_id, "branch", "not_merged"),
        (unsaved.run_id, "worktree", "unsaved"),
        (unsaved.run_id, "branch", "worktree_kept"),
        (kept.run_id, "branch", "unfinished"),
        (kept.run_id, "ref", "unfinished"),
    }
    assert Path(unsaved.place.path, "mine.txt").read_text() == "mine\n"
    assert {item.request_id for item in cleaned.removed} == {"RQ-1", "RQ-2", "RQ-4"}


@pytest.mark.spec("GIT-5", "REQ-7")
def test_what_another_checkout_of_the_repository_has_runs_of_is_not_lost(yard: Yard, tmp_path: Path) -> None:
    run = yard.run(status="blocked", merged=False)
    yard.keep(run)
    yard.clean()  # only its branch and the ref are left
    other = tmp_path / "other"
    yard.git("worktree", "add", "-q", "-b", "second", str(other))
    shutil.move(yard.root / "runs", other / "runs")
    assert yard.clean(days=0, unmerged=True).removed == []
    other.rename(tmp_path / "away")
    cleaned = yard.clean(days=0, unmerged=True)
    assert cleaned.removed == []
    assert told(cleaned, "kept") == {("branch", "checkout_away"), ("ref", "checkout_away")}
    yard.git("worktree", "prune")
    assert len(yard.clean(days=0, unmerged=True).removed) == 2


@pytest.mark.spec("GIT-5")
def test_entries_that_only_git_remembers_go_and_those_of_others_stay(yard: Yard, tmp_path: Path) -> None:
    run = yard.run()
    shutil.rmtree(run.place.path)
    yard.git("worktree", "add", "-q", "-b", "mine", str(tmp_path / "usb"))
    (tmp_path / "usb").rename(tmp_path / "not plugged in")
    assert told(yard.clean()) == {("worktree", "accepted"), ("branch", "accepted")}
    assert yard.entries() == [str(tmp_path / "usb")]


@pytest.mark.spec("GIT-5")
def test_leftovers_of_kills_go_but_not_what_may_hold_work(yard: Yard) -> None:
    run = yard.run(status="blocked")
    for name in ("gone", "merge", "aside", "aside-2"):
        (yard.trees / f"{run.run_id}.{name}").mkdir()
    yard.git("worktree", "add", "-q", "--detach", str(yard.trees / f"{run.run_id}.merge"))
    (yard.trees / f"{run.run_id}.merge/left-by-tests").write_text("x")
    (yard.trees / f"{run.run_id}.aside/work.txt").write_text("x")
    (yard.trees / f"{run.run_id}.gone/app.txt").write_text("half emptied")
    cleaned = yard.clean()
    assert told(cleaned, "kept") == {("leftover", "aside")}
    assert sorted(path.name for path in yard.trees.iterdir()) == [f"{run.run_id}.aside"]
    assert yard.entries() == []


# --- a dry run -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-5", "CLI")
@pytest.mark.parametrize("unmerged", [False, True])
def test_a_plan_changes_nothing_and_is_what_is_done(yard: Yard, unmerged: bool) -> None:
    (yard.root / "aiflow.toml").write_text("[clean]\nruns_after_days = 10\n")
    yard.keep(yard.run("RQ-1"))
    yard.keep(yard.run("RQ-2", merged=False))
    Path(yard.run("RQ-3").place.path, "mine").write_text("x")
    yard.run("RQ-4", status="blocked", state="NEEDS_INPUT")
    yard.run("RQ-5", days=1)
    shutil.rmtree(yard.root / ".aiflow", ignore_errors=True)
    before = everything_in(yard.root, yard.state)
    engine, wish = yard.engine, CleanWish(takes_unmerged=unmerged)
    rules = rules_for(engine, wish)

    plans = plan_clean_up(engine, wish, rules)

    assert everything_in(yard.root, yard.state) == before
    cleaned = clean_up(engine, plans, rules)
    assert cleaned.removed == [item for plan in plans for item in plan.going]
    assert cleaned.kept == [item for plan in plans for item in plan.kept]
    assert cleaned.failed == []
    assert len(cleaned.removed) == (9 if unmerged else 6)


@pytest.mark.spec("GIT-5")
def test_git_is_not_asked_once_per_run(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        yard.run(f"RQ-{number}", merged=False, days=3 if number else 30)
    yard.clean()
    calls: list[str] = []
    real = subprocess.run

    def counted(argv: list[str], **more: object) -> object:
        calls.append(argv[0])
        return real(argv, **more)  # type: ignore[call-overload]

    monkeypatch.setattr("aiflow.adapters.git.git_cli.subprocess.run", counted)
    engine = yard.engine
    plan_clean_up(engine, ALL, rules_for(engine, ALL))
    assert calls == ["git"] * 3


# --- at the same moment ----------------------------------------------------------------------------------------------


def _takes_lock(yard: Yard, run: Run) -> None:
    assert isinstance(yard.engine.locks.acquire_request(RequestId(run.request_id), run.run_id), LockLease)


def _goes_on(yard: Yard, run: Run) -> None:
    happened = replace(run.history[0], event="RESUMED", at=yard.engine.time.now())
    yard.engine.runs.save(replace(run, history=(*run.history, happened)))


def _is_set_ready(yard: Yard, run: Run) -> None:
    write_request(yard.root, run.request_id, None, status="blocked")


def _is_edited(yard: Yard, run: Run) -> None:
    Path(run.place.path, "mine.txt").write_text("mine\n")


def _is_forgotten(yard: Yard, run: Run) -> None:
    shutil.rmtree(yard.folder(run))


@pytest.mark.spec("GIT-5")
@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (_takes_lock, {"changed"}),
        (_goes_on, {"changed"}),
        (_is_set_ready, {"changed"}),
        (_is_edited, {"unsaved", "worktree_kept"}),
        (_is_forgotten, {"changed"}),
    ],
)
def test_what_happens_between_the_plan_and_the_deed_counts(
    yard: Yard, happens: Callable[[Yard, Run], None], why: set[str]
) -> None:
    run, other = yard.run(merged=False), yard.run("RQ-2")
    engine, wish = yard.engine, CleanWish(after_days=0, takes_unmerged=True)
    rules = rules_for(engine, wish)
    plans = plan_clean_up(engine, wish, rules)
    happens(yard, run)
    cleaned = clean_up(engine, plans, rules)
    assert {item.run_id for item in cleaned.removed if item.kind is ItemKind.BRANCH} == {other.run_id}
    assert {item.why for item in cleaned.kept} >= why
    assert run.place.branch in yard.git("branch", "--list", "aiflow/*")
    assert Path(run.place.path).is_dir() or happens is _is_set_ready  # it waits again: the worktree alone goes


@pytest.mark.spec("GIT-5")
def test_a_branch_that_moved_meanwhile_is_not_deleted(yard: Yard) -> None:
    run, other = yard.run(merged=False), yard.run("RQ-2")
    engine, wish = yard.engine, CleanWish(takes_unmerged=True)
    rules = rules_for(engine, wish)
    plans = plan_clean_up(engine, wish, rules)
    git(run.place.path, "commit", "-q", "--allow-empty", "-m", "one more")
    cleaned = clean_up(engine, plans, rules)
    (failure,) = cleaned.failed
    assert (failure.item.kind, failure.error.reason_code) == ("branch", "GIT_FAILED")
    assert run.place.branch in yard.git("branch", "--list", "aiflow/*")
    assert {item.run_id for item in cleaned.removed if item.kind is ItemKind.BRANCH} == {other.run_id}


@pytest.mark.spec("GIT-5")
def test_a_run_whose_request_is_locked_is_not_touched(yard: Yard) -> None:
    run, other = yard.run(), yard.run("RQ-2")
    (yard.trees / f"{run.run_id}.merge").mkdir()
    lease = yard.engine.locks.acquire_request(RequestId("RQ-1"), run.run_id)
    assert isinstance(lease, LockLease)
    try:
        cleaned = yard.clean(days=0, unmerged=True)
        assert {item.run_id for item in cleaned.removed} == {other.run_id}  # beside a run that is at work
        assert told(cleaned, "kept") == {("run", "locked")}
        assert (yard.trees / f"{run.run_id}.merge").is_dir()
    finally:
        lease.release()
    assert yard.clean(days=0).kept == []


@pytest.mark.spec("GIT-5")
def test_a_lock_counts_by_the_request_by_the_run_and_where_nobody_knows_whose_it_is() -> None:
    locks = {RequestId("RQ-1"): Lock(LockType.REQUEST, "RQ-1", "RUN-1")}
    found = Found("RUN-9", "RQ-1", RunStanding.ACCEPTED)
    assert is_locked(found, locks)
    assert not is_locked(replace(found, request_id="RQ-2"), locks)
    assert is_locked(replace(found, request_id="RQ-2", run_id="RUN-1"), locks)
    assert is_locked(replace(found, request_id=None), locks)
    assert not is_locked(replace(found, request_id=None), {})


# --- trouble ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-5")
def test_a_worktree_that_git_cannot_read_stays_and_keeps_no_other(yard: Yard) -> None:
    broken, other = yard.run(), yard.run("RQ-2")
    (yard.root / f".git/worktrees/{broken.run_id}/index").write_bytes(b"spoiled")
    cleaned = yard.clean(unmerged=True)
    assert told(cleaned, "kept") == {("worktree", "broken"), ("branch", "worktree_kept")}
    assert {item.run_id for item in cleaned.removed} == {other.run_id}
    assert cleaned.failed == []


@pytest.mark.spec("GIT-5")
def test_one_thing_that_resists_keeps_nothing_else(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, other = yard.run(), yard.run("RQ-2")
    real = os.rename

    def refused(old: str, new: str) -> None:
        if old == stuck.place.path:
            raise PermissionError(13, "Permission denied", old)
        real(old, new)

    monkeypatch.setattr("aiflow.adapters.git.cleaning.housekeeping.os.rename", refused)
    cleaned = yard.clean()
    (failure,) = cleaned.failed
    assert (failure.item.name, failure.error.reason_code) == (stuck.place.path, "IO_ERROR")
    assert "Permission denied" in failure.problem
    assert {item.run_id for item in cleaned.removed} == {other.run_id}
    assert stuck.place.branch in yard.git("branch", "--list", "aiflow/*")
    assert [entry["reason_code"] for entry in journal(yard) if "failed" in entry["data"]] == ["IO_ERROR"]  # type: ignore[operator]
    monkeypatch.setattr("aiflow.adapters.git.cleaning.housekeeping.os.rename", real)
    assert {item.run_id for item in yard.clean().removed} == {stuck.run_id}


@pytest.mark.spec("GIT-5")
def test_a_folder_that_cannot_be_emptied_is_told_and_tried_again(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    run = yard.run()

    def refused(path: str) -> None:
        raise OSError(16, "Device or resource busy", f"{path}/data")

    with monkeypatch.context() as patch:
        patch.setattr("aiflow.adapters.git.cleaning.housekeeping.remove_tree", refused)
        for _ in range(2):
            (failure,) = yard.clean().failed
            assert failure.error.reason_code == "IO_ERROR"
            assert f"{run.run_id}.gone/data" in failure.problem
    assert [item.why for item in yard.clean().removed] == ["leftover"]
    assert list(yard.trees.iterdir()) == []


class Killed(BaseException):
    """What a kill is to the code: nothing behind it happens."""


@pytest.mark.faults
@pytest.mark.spec("GIT-5")
def test_killed_anywhere_the_next_clean_finishes_the_rest(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change is the last one once: before it, and right behind it."""
    (yard.root / "aiflow.toml").write_text("[clean]\nruns_after_days = 10\n")
    count = 0
    while True:
        run = yard.run(f"RQ-{count}")
        yard.keep(run)
        (yard.trees / f"{run.run_id}.merge").mkdir()
        if not _clean_until(yard, monkeypatch, count):
            break
        yard.clean()
        assert (yard.refs(), yard.entries(), list(yard.trees.iterdir())) == ([], [], [])
        assert [path.name for path in (yard.root / "runs").iterdir()] == [".gitignore"]
        count += 1
    assert count >= 10


def _clean_until(yard: Yard, monkeypatch: pytest.MonkeyPatch, turn: int) -> bool:
    """Clean up and be killed at a change of the disk or of git; False if it came to its end before."""
    left = turn

    def deadly(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **more: object) -> object:
            nonlocal left
            if left == 0:
                raise Killed
            result = real(*args, **more)
            left -= 1
            if left == 0:
                raise Killed
            left -= 1
            return result

        return call

    with monkeypatch.context() as patch:
        for target, name in (
            (os, "rename"),
            (housekeeping, "forget_worktree"),
            (housekeeping, "remove_tree"),
            (LocalHousekeeping, "drop_refs"),
        ):
            patch.setattr(target, name, deadly(getattr(target, name)))
        try:
            yard.clean()
        except Killed:
            return True
    return False


# --- by itself -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-5")
def test_an_accepted_runs_worktree_goes_at_once_and_nothing_else_does(yard: Yard) -> None:
    run = yard.run(days=0, accepted_as="abc")
    other = yard.run("RQ-2", days=0, accepted_as="abc")
    engine = yard.engine
    assert clean_after_accept(engine, run)
    assert list(yard.trees.iterdir()) == [Path(other.place.path)]
    assert yard.entries() == [other.place.path]
    assert run.place.branch in yard.git("branch", "--list", "aiflow/*")
    assert not clean_after_accept(engine, run)
    (entry,) = [entry for entry in journal(yard) if entry["kind"] == "cleaned"]
    assert entry["actor"] == "engine"


@pytest.mark.spec("GIT-5")
def test_who_holds_the_lock_may_clean_after_accepting_and_nobody_else(yard: Yard) -> None:
    run = yard.run(days=0, accepted_as="abc")
    engine = yard.engine
    lease = engine.locks.acquire_request(RequestId("RQ-1"), run.run_id)
    assert isinstance(lease, LockLease)
    holder: Lease = lease
    assert not clean_after_accept(yard.engine, run)
    assert clean_after_accept(engine, run, holder)
    holder.release()
    late = yard.run("RQ-2", days=0, accepted_as="abc")
    assert not clean_after_accept(engine, late, holder)  # the lock is lost: nothing is written any more
    assert Path(late.place.path).is_dir()


@pytest.mark.spec("GIT-5")
@pytest.mark.parametrize("trouble", ["unsaved", "not accepted", "elsewhere", "no repository"])
def test_cleaning_after_an_acceptance_never_raises_and_loses_nothing(yard: Yard, trouble: str) -> None:
    run = yard.run(days=0, accepted_as=None if trouble == "not accepted" else "abc")
    Path(run.place.path, "mine.txt" if trouble == "unsaved" else "x.ignored").write_text("mine")
    if trouble == "elsewhere":
        moved = Path(run.place.path).with_name("mine")
        Path(run.place.path).rename(moved)
        run = replace(run, place=replace(run.place, path=str(moved)))
    engine = yard.engine
    if trouble == "no repository":
        (yard.root / ".git").rename(yard.root / "away")
    assert not clean_after_accept(engine, run)
    assert Path(run.place.path, "app.txt").exists()


@pytest.mark.spec("GIT-5")
def test_retention_follows_the_settings_and_keeps_its_troubles_to_itself(
    yard: Yard, capsys: pytest.CaptureFixture[str]
) -> None:
    (yard.root / "aiflow.toml").write_text("[clean]\nafter_days = 20\n")
    old, young = yard.run(), yard.run("RQ-2", days=10)
    assert {item.run_id for item in retention(yard.engine).removed} == {old.run_id}
    assert Path(young.place.path).is_dir()
    assert {entry["actor"] for entry in journal(yard) if entry["kind"] == "cleaned"} == {Actor.AUTO_RUN}
    engine = yard.engine
    (yard.root / ".git").rename(yard.root / "away")
    assert retention(engine).removed == []
    (yard.root / "requests").rename(yard.root / "gone")
    assert retention(engine).removed == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.spec("GIT-5")
def test_a_stop_that_was_asked_for_ends_it_behind_a_run(yard: Yard) -> None:
    for number in range(3):
        yard.run(f"RQ-{number}")
    engine = yard.engine
    looked: list[bool] = []

    def interrupted() -> bool:
        looked.append(True)
        return len(looked) > 1

    rules = rules_for(engine, ALL)
    cleaned = clean_up(engine.heard_by(interrupted=interrupted), plan_clean_up(engine, ALL, rules), rules)
    assert [item.kind for item in cleaned.removed] == ["worktree", "branch"]
    assert len(yard.entries()) == 2


@pytest.mark.spec("GIT-5")
def test_trouble_with_git_in_one_run_is_told_for_that_run(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, other = yard.run(), yard.run("RQ-2")
    real = LocalHousekeeping.drop_refs

    def failing(self: LocalHousekeeping, items: Sequence[Item]) -> None:
        if items[0].run_id == broken.run_id:
            raise EnvironmentProblemError(reason_code="GIT_FAILED", command="git update-ref", problem="no")
        real(self, items)

    monkeypatch.setattr(LocalHousekeeping, "drop_refs", failing)
    cleaned = yard.clean()
    assert [failure.error.reason_code for failure in cleaned.failed] == ["GIT_FAILED"]
    assert {(item.run_id, item.kind) for item in cleaned.removed} == {
        (broken.run_id, "worktree"),
        (other.run_id, "worktree"),
        (other.run_id, "branch"),
    }
