"""The engine killed behind every write of an acceptance: typed again, the work is in the base branch once (REQ-6)."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from faults.accepting import MARKER, check_accepted, check_tidy, commit_on_base
from faults.kill_points import Kills, kill_everywhere
from faults.killing import Done, Scene, git

pytestmark = pytest.mark.faults

ONE_STEP = ["planner", "implementer S01", "check S01", "qa S01"]
AUTO = ("run", "RQ-1", "-c", "accept=auto")
ACCEPT = ("accept", "RQ-1")
COMMENT = "Keep the old name.\n\nAnd the tests."


def finish(scene: Scene) -> None:
    """Have a run that is DONE and waits."""
    assert scene.aiflow("run", "RQ-1").answer["state"] == "DONE"
    scene.forget_calls()


def type_again(scene: Scene, *command: str, refusals: tuple[str, ...] = ()) -> Done:
    """Type a command once more; what had been done before the kill may be the reason why it is refused."""
    done = scene.aiflow(*command)
    assert done.refusal in (None, *refusals), done
    assert (done.code == 0) == (done.refusal is None), done
    return done


@pytest.mark.spec("REQ-6", "GIT-3", "RUN-11")
def test_a_run_accepted_by_itself_is_in_the_base_once(tmp_path: Path, chance: random.Random) -> None:
    def whole(scene: Scene, done: Done) -> None:
        assert (done.code, done.answer["state"], done.answer["reason_code"]) == (0, "DONE", None)
        scene.check_journal(check_accepted(scene))
        assert scene.names() == [*ONE_STEP, "check merge"]

    def afterwards(scene: Scene) -> None:
        was_done = bool(scene.run_ids()) and scene.status() == "done"
        done = type_again(scene, *AUTO, refusals=("NOT_READY",) if was_done else ())
        assert was_done or done.answer["accepted_as"]
        check_accepted(scene)
        scene.check_calls([*ONE_STEP, "check merge"])

    kills = Kills(AUTO, lambda _: None, afterwards, is_on_base=True, known_until="REPORTING")
    assert kill_everywhere(tmp_path, kills, whole, chance) > 100


@pytest.mark.spec("REQ-6", "GIT-3", "RUN-11")
@pytest.mark.parametrize("is_on_base", [True, False])
def test_an_accept_killed_behind_any_write_is_ended_by_the_next(
    tmp_path: Path, is_on_base: bool, chance: random.Random
) -> None:
    def whole(scene: Scene, done: Done) -> None:
        assert (done.code, done.answer["reason_code"]) == (0, None)
        scene.check_journal(check_accepted(scene))
        assert scene.names() == ["check merge"]

    def afterwards(scene: Scene) -> None:
        assert type_again(scene, *ACCEPT).answer["accepted_as"]
        assert not Path(check_accepted(scene).place.path).exists()
        scene.check_calls(["check merge"])

    kills = Kills(ACCEPT, finish, afterwards, is_on_base=is_on_base, kinds=1000 if is_on_base else 12)
    assert kill_everywhere(tmp_path, kills, whole, chance) > 40


def accepted(scene: Scene) -> None:
    """Have a run that is accepted."""
    finish(scene)
    assert scene.aiflow(*ACCEPT).answer["accepted_as"]
    scene.forget_calls()


def check_undone(scene: Scene) -> None:
    """Check that a run's work is out of the base by one commit, that it waits with its branch, and that all is tidy."""
    run = scene.run()
    assert (run.state.value, scene.status(), run.accepted_as) == ("DONE", "blocked", None)
    assert (run.error and run.error.reason_code, [line.event for line in run.history].count("UNDONE")) == (
        "ACCEPTANCE_UNDONE",
        1,
    )
    titles = git(scene.root, "log", "--first-parent", "--format=%s", f"{scene.first_commit}..main").splitlines()
    assert titles == [f'Revert "Merge RQ-1: {run.title}"', f"Merge RQ-1: {run.title}"]
    assert git(scene.root, "diff", "--name-only", scene.first_commit, "main") == ""
    assert git(scene.root, "rev-parse", run.place.branch).strip() == run.tip
    check_tidy(scene)


@pytest.mark.spec("REQ-6", "GIT-3", "RUN-11")
@pytest.mark.parametrize("is_on_base", [True, False])
def test_an_undo_killed_behind_any_write_is_ended_by_the_next(
    tmp_path: Path, is_on_base: bool, chance: random.Random
) -> None:
    undo = ("undo", "RQ-1")

    def whole(scene: Scene, done: Done) -> None:
        assert (done.code, done.answer["reason_code"]) == (0, "ACCEPTANCE_UNDONE")
        check_undone(scene)
        assert scene.names() == ["check merge"]

    def afterwards(scene: Scene) -> None:
        assert type_again(scene, *undo).answer["undone_as"] == git(scene.root, "rev-parse", "main").strip()
        check_undone(scene)
        assert type_again(scene, *ACCEPT).answer["accepted_as"]
        assert git(scene.root, "diff", "--name-only", scene.first_commit, "main") != ""

    kills = Kills(undo, accepted, afterwards, is_on_base=is_on_base, kinds=12)
    assert kill_everywhere(tmp_path, kills, whole, chance) > 10


def conflict(scene: Scene) -> None:
    """Have a run that is not accepted for a conflict; the base has changed elsewhere, too."""
    finish(scene)
    commit_on_base(scene, {"S01.txt": "theirs\n", "base": "new\n", "theirs": "theirs\n"})
    assert scene.aiflow(*ACCEPT).answer["reason_code"] == "MERGE_CONFLICT"


def check_updated(scene: Scene) -> None:
    """Check that the run is DONE with the base's changes and its own, and that no conflict is in its history."""
    run = scene.run()
    assert (run.state.value, [step.id for step in run.plan]) == ("DONE", ["S01", "S02"])
    scene.check_files(run)
    tree = {path: git(scene.root, "show", f"{run.place.branch}:{path}") for path in ("base", "theirs", "S01.txt")}
    assert tree == {"base": "new\n", "theirs": "theirs\n", "S01.txt": "both\n"}
    parents = git(scene.root, "rev-list", "--parents", "-1", run.place.branch).split()[1:]
    assert parents == [run.steps["S01"].commit, git(scene.root, "rev-parse", "main").strip()]
    assert git(scene.root, "log", "--format=%H", f"-S{MARKER}", run.place.branch) == ""


@pytest.mark.spec("GIT-3", "REQ-6", "RUN-11")
@pytest.mark.parametrize("way_on", ["run", "resume"])
def test_an_update_killed_behind_any_write_resolves_the_conflict_once(
    tmp_path: Path, way_on: str, chance: random.Random
) -> None:
    update = ("resume", "RQ-1", "--update")
    calls = ["implementer S02", "check S02", "qa S02"]

    def whole(scene: Scene, done: Done) -> None:
        assert (done.code, done.answer["state"]) == (0, "DONE")
        check_updated(scene)
        scene.check_journal(scene.run())
        assert scene.names() == calls

    def afterwards(scene: Scene) -> None:
        run = scene.run()
        if run.is_active:
            assert type_again(scene, way_on, "RQ-1").answer["state"] == "DONE"
        else:
            assert MARKER not in git(scene.root, "show", f"{run.place.branch}:S01.txt")
            type_again(scene, way_on, "RQ-1", refusals=("NOT_READY", "RUN_NOT_RESUMABLE"))
        if len(scene.run().plan) == 1:
            assert type_again(scene, *update).answer["state"] == "DONE"
        check_updated(scene)
        assert type_again(scene, *ACCEPT).answer["accepted_as"]
        check_accepted(scene)
        assert {call["found"]["base"] for call in scene.calls()} == {"new\n"}
        assert [call for call in scene.calls() if call["was_done"]] == []
        assert sum((Counter(scene.names()) - Counter([*calls, "check merge"])).values()) <= 1, scene.names()

    assert kill_everywhere(tmp_path, Kills(update, conflict, afterwards), whole, chance) > 80


@pytest.mark.spec("REQ-6", "RUN-11")
def test_a_send_back_killed_behind_any_write_tells_its_comment_once(tmp_path: Path, chance: random.Random) -> None:
    send_back = ("send-back", "RQ-1", "-m", COMMENT)

    def check(scene: Scene) -> None:
        run = scene.run()
        assert run.error is not None
        assert (run.state.value, run.error.reason_code, run.error.summary) == ("FAILED", "SENT_BACK", COMMENT)
        scene.check_files(run)
        text = (scene.root / "requests/RQ-1.md").read_text()
        assert re.fullmatch(
            r"---\ntitle: Request 1\nstatus: ready\npriority: P2\n---\n\nDo it.\n\n## Sent back on [-0-9]{10}\n\n"
            + re.escape(COMMENT)
            + r"\n",
            text,
        ), text
        check_tidy(scene)

    def whole(scene: Scene, done: Done) -> None:
        assert (done.code, done.answer["reason_code"]) == (0, "SENT_BACK")
        check(scene)
        scene.check_journal(scene.run())

    def afterwards(scene: Scene) -> None:
        type_again(scene, *send_back)
        check(scene)

    assert kill_everywhere(tmp_path, Kills(send_back, finish, afterwards), whole, chance) > 20
