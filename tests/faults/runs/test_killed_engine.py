"""The engine killed behind every write it makes, and during every call: the next start finishes what was begun."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from glob import glob
from pathlib import Path

import pytest

from faults.kill_points import Kills, kill_everywhere
from faults.killing import KILLED, Done, Scene, git, survivors
from waiting import wait_until

pytestmark = pytest.mark.faults

STEP = ["implementer S01", "check S01", "qa S01"]
ONE_STEP = ["planner", *STEP]
DONE_TEXT = "S01 is done\n"
TWO_STEPS = [*ONE_STEP, "implementer S02", "check S02", "qa S02"]
ALL = 1000  # the other commands make the same writes
ANSWER = ("resume", "RQ-1", "--answer", "blue")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """Give a project with two steps to do."""
    scene = Scene(tmp_path, has_setup=True)
    yield scene
    scene.close()


def run_out(scene: Scene, *argv: str) -> str:
    """Call aiflow on a run that comes to its end, and return the state it ended in."""
    done = scene.aiflow(*argv)
    assert done.refusal is None, done
    assert (done.code == 0) == (done.answer["state"] == "DONE"), done
    return str(done.answer["state"])


def is_done(scene: Scene, done: Done) -> None:
    assert (done.code, done.answer["state"]) == (0, "DONE")
    scene.check_journal(scene.check_done(run_id=done.answer["run_id"]))


def start_again(scene: Scene) -> str | None:
    """Start what was killed again with `run` and return the state it came to; None if there was nothing to recover."""
    before = {run_id: scene.run(run_id) for run_id in scene.run_ids()}
    done = scene.aiflow("run", "RQ-1")
    if done.refusal is None and (done.answer["run_id"] not in before or before[done.answer["run_id"]].is_active):
        return str(done.answer["state"])
    # It had ended, and only its request had to be set right; or it is refused as what it is.
    assert done.refusal is None or (done.code, done.refusal) in ((4, "NOT_READY"), (4, "LATEST_RUN_NEEDS_INPUT")), done
    assert not any(run.is_active for run in before.values())
    assert {run_id: scene.run(run_id) for run_id in scene.run_ids()} == before
    assert scene.status() == "blocked"
    scene.check_tidy()
    return None


def finish(scene: Scene, *command: str) -> None:
    """Start again; if the kill came before the command had an effect, give the command again; then it is DONE."""
    if start_again(scene) is None and not any(scene.run(run_id).state.value == "DONE" for run_id in scene.run_ids()):
        assert run_out(scene, *command) == "DONE"


@pytest.mark.spec("RUN-1", "RUN-3", "RUN-11", "RUN-14", "RUN-17", "LCK-6", "GIT-1", "REQ-5")
def test_a_run_killed_behind_any_write_is_finished_by_the_next_start(tmp_path: Path, chance: random.Random) -> None:
    def whole(scene: Scene, done: Done) -> None:
        is_done(scene, done)
        assert scene.names() == ["setup", "check", *TWO_STEPS]

    def afterwards(scene: Scene) -> None:
        finish(scene)
        scene.check_done()
        scene.check_calls(["setup", "check", *TWO_STEPS])

    kills = Kills(("run", "RQ-1"), lambda _: None, afterwards, steps=2, has_setup=True, has_baseline=True, kinds=ALL)
    assert kill_everywhere(tmp_path, kills, whole, chance) > 150


def ask(scene: Scene) -> None:
    """Have a run that stopped with a question."""
    scene.order(ask=["S01"])
    assert run_out(scene, "run", "RQ-1") == "NEEDS_INPUT"
    scene.forget_calls()


@pytest.mark.spec("RUN-6", "RUN-10", "RUN-11")
def test_a_resume_killed_behind_any_write_is_finished_with_the_answer(tmp_path: Path, chance: random.Random) -> None:
    def whole(scene: Scene, done: Done) -> None:
        is_done(scene, done)
        assert scene.names() == STEP

    def afterwards(scene: Scene) -> None:
        finish(scene, *ANSWER)
        run = scene.check_done()
        assert run.answers == (("Which colour?", "blue"),)
        heard = [call["answers"] for call in scene.calls() if call["name"] == "implementer S01"]
        assert all(answers == [{"question": "Which colour?", "answer": "blue"}] for answers in heard)
        scene.check_calls(STEP)

    assert kill_everywhere(tmp_path, Kills(ANSWER, ask, afterwards, known_from="IMPLEMENTED"), whole, chance) > 50


def stop(scene: Scene) -> None:
    """Have a run that stopped in its last step, for a reason that is mended now."""
    scene.order(fail=["S01" if scene.steps == 1 else "S02"])
    assert run_out(scene, "run", "RQ-1") == "NEEDS_INPUT"
    scene.order(fail=[])
    scene.forget_calls()


@pytest.mark.spec("RUN-6", "RUN-11")
def test_a_retry_killed_behind_any_write_does_the_step_again_once(tmp_path: Path, chance: random.Random) -> None:
    def whole(scene: Scene, done: Done) -> None:
        is_done(scene, done)
        check_kept(scene)
        assert scene.names() == TWO_STEPS[1:]

    def check_kept(scene: Scene) -> None:
        run = scene.run()
        assert (run.steps["S01"].retries, run.steps["S02"].retries) == (1, 0)
        [ref] = git(scene.root, "for-each-ref", "--format=%(refname)", f"refs/aiflow/retried/{run.run_id}").split()
        kept = git(scene.root, "log", "--format=%s", f"main..{ref}").splitlines()
        assert "Do S01" in kept
        assert git(scene.root, "show", f"{ref}:S02.txt") == "S02 is done\n"

    def afterwards(scene: Scene) -> None:
        finish(scene, "retry-step", "RQ-1", "S01")
        scene.check_done()
        check_kept(scene)
        scene.check_calls(TWO_STEPS[1:])

    kills = Kills(("retry-step", "RQ-1", "S01"), stop, afterwards, steps=2, known_from="IMPLEMENTED")
    assert kill_everywhere(tmp_path, kills, whole, chance) > 100


@pytest.mark.spec("RUN-6", "RUN-11")
def test_a_replan_killed_behind_any_write_leaves_one_new_run_linked_with_the_old(
    tmp_path: Path, chance: random.Random
) -> None:
    def check_links(scene: Scene) -> None:
        old, new = (scene.run(run_id) for run_id in scene.run_ids())
        assert (old.state.value, old.replaced_by, new.replaces) == ("FAILED", new.run_id, old.run_id)
        assert old.error is not None
        assert old.error.reason_code == "REPLANNED"
        scene.check_files(old)
        scene.check_commits(old)
        scene.check_done(run_id=new.run_id)

    def whole(scene: Scene, done: Done) -> None:
        is_done(scene, done)
        check_links(scene)
        assert scene.names() == ONE_STEP

    def afterwards(scene: Scene) -> None:
        finish(scene, "replan", "RQ-1")
        check_links(scene)
        scene.check_calls(ONE_STEP)

    kills = Kills(("replan", "RQ-1"), stop, afterwards, known_from="PLANNING_STARTED")
    assert kill_everywhere(tmp_path, kills, whole, chance) > 80


def is_cancelled(scene: Scene, done: Done) -> None:
    assert (done.answer["state"], done.answer["reason_code"]) == ("NEEDS_INPUT", "CANCELLED")
    assert scene.status() == "blocked"
    scene.check_files(scene.run())
    scene.check_journal(scene.run())
    scene.check_tidy()


def cancel(scene: Scene) -> None:
    """Have the run cancelled while the implementer works."""
    scene.order(cancel=["implementer S01"])


@pytest.mark.spec("RUN-12", "LCK-8")
def test_a_cancelled_run_killed_behind_any_write_can_be_resumed(tmp_path: Path, chance: random.Random) -> None:
    def afterwards(scene: Scene) -> None:
        state = start_again(scene)
        if state != "DONE":  # else the process died before it had heard of it
            [code] = {run.error.reason_code for run in [scene.run()] if run.error}
            assert (scene.run().state.value, code) == ("NEEDS_INPUT", "CANCELLED")
            scene.check_files(scene.run())
            assert run_out(scene, "resume", "RQ-1") == "DONE"
        scene.check_done()
        assert [call for call in scene.calls() if call["was_done"]] == []
        assert sum((Counter(scene.names()) - Counter(ONE_STEP)).values()) <= 2

    kills = Kills(("run", "RQ-1"), cancel, afterwards, known_until='"PLANNED"')
    assert kill_everywhere(tmp_path, kills, is_cancelled, chance) > 60


def crash(scene: Scene) -> None:
    """Have a run that was killed in the implementer's first attempt."""
    scene.order(kill=["implementer S01"])
    assert scene.aiflow("run", "RQ-1").code == KILLED
    wait_until(lambda: not survivors(scene.run_ids()))


@pytest.mark.spec("RUN-12", "LCK-8")
def test_a_cancel_of_a_dead_run_killed_behind_any_write_is_completed(tmp_path: Path, chance: random.Random) -> None:
    def afterwards(scene: Scene) -> None:
        was_active = scene.run().is_active
        done = scene.aiflow("cancel", "RQ-1")
        assert done.refusal == (None if was_active else "RUN_NOT_ACTIVE"), done
        assert start_again(scene) is None
        run = scene.run()
        assert run.error is not None
        assert (run.state.value, run.error.reason_code) == ("NEEDS_INPUT", "CANCELLED")
        scene.check_files(run)
        assert run_out(scene, "resume", "RQ-1") == "DONE"
        scene.check_done()
        assert scene.names() == ["planner", "implementer S01", *STEP]

    assert kill_everywhere(tmp_path, Kills(("cancel", "RQ-1"), crash, afterwards), is_cancelled, chance) > 15


def fail(scene: Scene) -> None:
    """Have a step that never passes its tests."""
    scene.order(fail=["S01"])


@pytest.mark.spec("RUN-4", "RUN-11", "RUN-14")
def test_a_stop_killed_behind_any_write_comes_to_the_same_end(tmp_path: Path, chance: random.Random) -> None:
    limit = ("RETRY_LIMIT_EXCEEDED", "UNIT_TEST_FAILED")

    def expected(scene: Scene) -> tuple[str, str | None]:
        """Say how the run must end: a call that was lost has been an attempt, with a reason of its own."""
        if not scene.run_ids() or scene.run().visit.calling != "implementer":
            return limit
        return ("UNIT_TEST_FAILED", None) if scene.run().visit.calls["implementer"] == 1 else ("PROCESS_CRASHED", None)

    def check_end(scene: Scene, end: tuple[str, str | None]) -> None:
        run = scene.run()
        assert run.error is not None
        assert (run.state.value, run.error.reason_code, run.error.cause) == ("NEEDS_INPUT", *end)
        assert scene.status() == "blocked"
        scene.check_files(run)
        scene.check_commits(run)
        scene.check_tidy()
        assert (run.steps["S01"].calls["implementer"], run.has_commits) == (2, False)
        assert run.work.kept is not None
        kept = git(scene.root, "show", f"{run.work.kept}:S01.txt")
        # A second call that was lost may have died while it wrote; what it left is kept as it is.
        assert kept in ((DONE_TEXT, "half", "") if end[0] == "PROCESS_CRASHED" else (DONE_TEXT,))
        patch = (scene.stage_path(run.run_id).parent / "S01.patch").read_text().splitlines()
        added = [line[1:] for line in patch if line.startswith("+") and not line.startswith("+++")]
        assert added == kept.splitlines()

    def whole(scene: Scene, done: Done) -> None:
        check_end(scene, limit)
        assert done.code == 7
        assert scene.names() == ["planner", *(2 * STEP[:2])]

    def afterwards(scene: Scene) -> None:
        end = expected(scene)
        start_again(scene)
        check_end(scene, end)
        scene.check_calls(["planner", *(2 * STEP[:2])])
        # A person lets it go on, and what was kept is what it goes on with.
        scene.order(fail=[])
        assert run_out(scene, "resume", "RQ-1") == "DONE"
        scene.check_done()

    kills = Kills(("run", "RQ-1"), fail, afterwards, known_until='"PLANNED"')
    assert kill_everywhere(tmp_path, kills, whole, chance) > 80


@pytest.mark.spec("RUN-11", "RUN-14")
def test_a_recovery_killed_behind_any_write_is_finished_or_stops(tmp_path: Path, chance: random.Random) -> None:
    """The second crash in the same step stops the run; a person can let it go on."""

    def whole(scene: Scene, done: Done) -> None:
        is_done(scene, done)
        assert scene.names() == ["planner", "implementer S01", *STEP]

    def afterwards(scene: Scene) -> None:
        is_second = scene.run().is_active and scene.run().visit.crashes > 0
        before = scene.names()
        state = start_again(scene)
        if is_second:
            run = scene.run()
            assert run.error is not None
            assert (state, run.error.reason_code) == ("NEEDS_INPUT", "PROCESS_CRASHED")
            assert (scene.names(), scene.status()) == (before, "blocked")
            scene.check_files(run)
            scene.check_tidy()
            assert run_out(scene, "resume", "RQ-1") == "DONE"
        scene.check_done()
        assert [call for call in scene.calls() if call["was_done"]] == []
        implemented = [call["attempt"] for call in scene.calls() if call["name"] == "implementer S01"]
        # The first attempt was killed on the way here; behind a person's resume the count begins anew.
        assert implemented in ([1, 2], [1, 2, 1], [1, 1] if is_second else [1, 2])

    assert kill_everywhere(tmp_path, Kills(("run", "RQ-1"), crash, afterwards), whole, chance) > 50


@pytest.mark.spec("RUN-11", "RUN-14", "AGT-5", "LCK-4")
@pytest.mark.parametrize("name", ["setup", *TWO_STEPS])
def test_a_run_killed_during_a_call_goes_on_with_that_call(scene: Scene, name: str) -> None:
    scene.order(kill=[name])
    assert scene.aiflow("run", "RQ-1").code == KILLED
    assert scene.run().is_active
    assert scene.status() == "running"
    assert run_out(scene, "run", "RQ-1") == "DONE"
    run = scene.check_done()
    scene.check_journal(run)
    whole = ["setup", *TWO_STEPS]
    at = whole.index(name)
    assert scene.names() == [*whole[: at + 1], *whole[at:]]
    again = [call["attempt"] for call in scene.calls() if call["name"] == name]
    assert again == ([1, 2] if again[0] else [0, 0])
    assert [line.event for line in run.history].count("RECOVERED") == 1


@pytest.mark.spec("RUN-4", "RUN-11", "RUN-14")
@pytest.mark.parametrize("name", ["planner", "implementer S01", "qa S02"])
def test_the_second_crash_stops_without_a_third_call_and_no_kill_resets_a_count(scene: Scene, name: str) -> None:
    scene.order(kill=[name, name])
    for attempts in ([1], [1, 2]):
        assert scene.aiflow("run", "RQ-1").code == KILLED
        assert [call["attempt"] for call in scene.calls() if call["name"] == name] == attempts
    done = scene.aiflow("run", "RQ-1")
    assert (done.answer["state"], done.answer["reason_code"]) == ("NEEDS_INPUT", "PROCESS_CRASHED")
    assert scene.names().count(name) == 2
    run = scene.run()
    assert run.visit.calls[name.partition(" ")[0]] == 2
    assert scene.status() == "blocked"
    scene.check_files(run)
    scene.check_tidy()
    # Nothing starts it again by itself.
    assert start_again(scene) is None
    assert scene.names().count(name) == 2
    assert run_out(scene, "resume", "RQ-1") == "DONE"
    scene.check_done()
    assert [call for call in scene.calls() if call["was_done"]] == []


@pytest.mark.spec("RUN-1", "LCK-2")
def test_what_others_read_of_a_run_is_whole_at_every_instant(scene: Scene) -> None:
    is_over = threading.Event()
    seen, torn = Counter[str](), list[str]()
    names = ("runs/RQ-1/*/*.json", ".aiflow/locks/*.json")

    def watch() -> None:
        while not is_over.is_set():
            # `glob` of the module: the one of a path raises for a folder that is renamed while it is looked through.
            for path in [Path(each) for name in names for each in glob(name, root_dir=scene.root)]:
                try:
                    text = (scene.root / path).read_text()
                except FileNotFoundError:  # a lock that was given back
                    continue
                try:
                    seen[str(json.loads(text).get("state", path.name))] += 1
                except ValueError:
                    torn.append(f"{path.name}: {text}")

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        assert run_out(scene, "run", "RQ-1") == "DONE"
    finally:
        is_over.set()
        watcher.join()
    assert torn == []
    assert {"PLANNING", "IMPLEMENTING", "TESTING", "request.RQ-1.lock.json"} <= set(seen)
