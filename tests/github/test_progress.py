"""The progress of a run on its issue (ISS-9, ISS-4): a sign of life for others, right in the end, nobody else's."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from aiflow.adapters.system_time import SystemTime
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, Brief
from aiflow.domain.agents.plan import PlanStep
from aiflow.domain.claims import Claimed, Lost
from aiflow.domain.issues.marks import CommentMark, MarkKind, find_mark, write_mark
from aiflow.domain.issues.view import IssueRules
from aiflow.domain.lifecycle import RunOutcome, RunState
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.runs.run import Happening
from aiflow.messages import Texts
from aiflow.usecases.issues.comments import progress_comment
from github.scene import RUNNER, Scene
from github.yard import Yard, killed_at_call
from run_builders import new_run
from waiting import wait_until

GH_1 = RequestId("GH-1")
TTL = timedelta(minutes=30)
MOST_CHARACTERS = 65_536


@pytest.fixture
def here(scene: Scene) -> Yard:
    return Yard(scene)


@pytest.fixture
def there(here: Yard) -> Yard:
    return Yard(here.scene, "there")


@pytest.mark.spec("ISS-9", "ISS-3")
def test_a_step_longer_than_the_ttl_never_looks_dead_to_another_checkout(here: Yard, there: Yard) -> None:
    here.queued()
    assert (here.look(), there.look()) == ([], [])
    signs: list[timedelta] = []

    def work_long(call: AgentCall) -> None:
        if call.role is not Role.IMPLEMENTER:
            return
        for _ in range(2 * 30):
            here.pause(60)
            signs.append(here.scene.hub.now() - here.progress().updated_at)
        assert there.look() == []
        assert there.source.claim(GH_1, "RUN-9") == Lost(RequestStatus.RUNNING, call.run_id)

    here.before_call = work_long
    assert here.run().state is RunState.DONE
    assert max(signs) <= TTL / 3
    assert here.said() == there.said()
    assert len(set(here.said())) == len(here.said()) == 3
    assert "Finished" in here.progress().body


@pytest.mark.spec("ISS-9", "ISS-10")
def test_a_progress_comment_that_a_lagging_list_does_not_have_is_not_written_twice(here: Yard) -> None:
    here.queued()
    here.look()
    counts: list[int] = []

    def lag(call: AgentCall) -> None:
        if call.role is Role.IMPLEMENTER:
            here.pause(60)
            shown = here.progress()
            shown.unseen = 1000
            for _ in range(15):
                here.pause(60)
            counts.append(here.kinds().count("progress"))
            shown.unseen = 0

    here.before_call = lag
    assert here.run().state is RunState.DONE
    assert counts == [1]
    assert "Finished" in here.progress().body


@pytest.mark.spec("ISS-9")
def test_each_step_is_shown_when_it_ends_and_nothing_is_written_after_the_run(here: Yard) -> None:
    here.queued()
    here.look()
    shown: list[str] = []

    def wait(call: AgentCall) -> None:
        here.pause(1)
        shown.append(here.progress().body.splitlines()[0])

    here.before_call = wait
    run = here.run()
    assert [line.split("**")[1] for line in shown] == ["Planning.", "Step 1 of 1: Do S01", "Step 1 of 1: Do S01"]
    assert f'"event": "{run.history[-1].event}"' in here.progress().body
    assert here.progress().body.count('"step_id": "S01"') == sum(line.step_id == "S01" for line in run.history) > 0
    assert here.scene.time.besides == []  # type: ignore[attr-defined]
    made = len(here.scene.api.calls)
    here.pause(3 * TTL.total_seconds())
    assert len(here.scene.api.calls) == made
    assert f"progress:{run.run_id}" in here.said()


@pytest.mark.spec("ISS-9", "ISS-6", "ISS-3")
def test_a_run_that_is_taken_up_after_a_crash_shows_itself_before_it_works_on(here: Yard) -> None:
    here.queued()
    here.look()
    killed_at_call(here)
    here.pause(2 * TTL.total_seconds())
    ages: list[timedelta] = []
    here.before_call = lambda _call: ages.append(here.scene.hub.now() - here.progress().updated_at)
    run = here.run()
    assert run.state is RunState.DONE
    assert ages[0] < timedelta(minutes=1)
    assert here.said().count(f"run-header:{run.run_id}") == 1


@pytest.mark.spec("ISS-4", "ISS-9", "ISS-11")
def test_a_github_that_is_away_stops_no_run_and_shows_the_truth_when_it_is_back(here: Yard) -> None:
    here.queued()
    here.look()

    def lose_github(call: AgentCall) -> None:
        here.scene.api.down()
        here.pause(2 * TTL.total_seconds())

    here.before_call = lose_github
    run = here.run()
    assert run.state is RunState.DONE
    assert here.kinds() == ["run-header"]
    here.scene.api.down(is_down=False)
    here.restart()
    here.pause(60)
    assert here.look() == []
    assert sorted(here.kinds()) == ["progress", "result", "run-header"]
    assert "Finished" in here.progress().body
    assert here.work.pending() == ()


@pytest.mark.spec("ISS-4", "ISS-9")
def test_a_comment_that_still_says_running_is_set_right_by_the_next_look(here: Yard) -> None:
    here.queued()
    here.look()

    def lose_github(call: AgentCall) -> None:
        here.pause(60)
        if call.role is Role.QA:
            here.scene.api.down()

    here.before_call = lose_github
    here.run()
    assert "testing and review" in here.progress().body
    here.scene.api.down(is_down=False)
    here.restart()
    here.pause(60)
    here.look()
    assert "Finished" in here.progress().body
    assert here.work.pending() == ()


@pytest.mark.spec("ISS-4")
def test_a_run_that_another_checkout_called_lost_writes_no_more_and_ends(here: Yard) -> None:
    here.queued()
    here.look()

    def call_it_lost(call: AgentCall) -> None:
        if call.role is not Role.PLANNER:
            return
        here.pause(60)
        facts = {"run_id": call.run_id, "ended": "needs_input", "label": "agent:blocked", "reason_code": "RUN_LOST"}
        mark = CommentMark(MarkKind.BLOCKED, f"end:{call.run_id}", facts)
        here.scene.hub.comment(1, f"Lost.\n\n{write_mark(mark)}", RUNNER)
        before = here.progress().body
        here.pause(2 * TTL.total_seconds())
        assert here.progress().body == before

    here.before_call = call_it_lost
    run = here.run()
    assert [call.role for call in here.calls] == [Role.PLANNER]
    assert not run.is_active
    entries = [entry for entry in here.checkout.journal.entries if entry.reason_code == "LOCK_MISMATCH"]
    assert [entry.run_id for entry in entries] == [run.run_id]
    here.pause(300)
    here.look()
    assert (here.labels(), here.said().count(f"end:{run.run_id}")) == (["agent:blocked"], 1)


@pytest.mark.contract
@pytest.mark.spec("ISS-9")
def test_a_real_thread_gives_signs_of_life_and_ends_with_the_run() -> None:
    scene = Scene(time=SystemTime())
    yard = Yard(scene, rules=IssueRules(lock_ttl=timedelta(seconds=0.6)))
    scene.hub.open_issue("Say hello", by="maya", labels=("agent:queued",))
    yard.work.sync()
    run = replace(new_run(), request_id="GH-1")
    assert yard.source.claim(GH_1, run.run_id) == Claimed(RequestStatus.READY)
    yard.runs.create(run, Brief("GH-1", "Say hello", "", "P2"))
    yard.source.progress(run)
    edits = scene.api.calls
    wait_until(lambda: sum(ask.method == "PATCH" for ask in list(edits)) >= 2)
    assert [each.name for each in threading.enumerate()].count("github") == 1
    stopped = replace(run, state=RunState.NEEDS_INPUT)
    yard.runs.save(stopped)
    yard.source.progress(stopped)
    yard.source.settle(GH_1, run.run_id, RunOutcome.NEEDS_INPUT)
    assert "github" not in [each.name for each in threading.enumerate()]
    assert (yard.labels(), yard.kinds()) == (["agent:blocked"], ["run-header", "progress", "blocked"])
    assert "Stopped" in yard.progress().body


@pytest.mark.spec("ISS-9")
def test_a_long_log_and_a_long_plan_stay_below_githubs_limit_and_can_be_read() -> None:
    run = new_run()
    steps = tuple(PlanStep(f"S{number:03}", "A title that says a lot " * 20) for number in range(900))
    long = replace(run, plan=steps, history=(Happening(run.created_at, "STEP_DONE", "S001", "QA_REJECTED"),) * 5000)
    body = progress_comment(long, Texts("ja"))
    assert len(body) <= MOST_CHARACTERS
    assert body.count("```") % 2 == 0
    assert body.count("<details>") == body.count("</details>")
    mark = find_mark(body)
    assert mark is not None
    assert mark.key == f"progress:{run.run_id}"
    assert '"event"' in body
