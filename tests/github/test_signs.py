"""Signs of life, wishes and events (ISS-3, ISS-8, ISS-10), through the whole adapter: what counts, and how often."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from aiflow.adapters.memory.queue import MemoryStore
from aiflow.adapters.toml_settings import load_settings
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.errors import EnvironmentProblemError
from aiflow.wiring.issues import IssueRoom
from github.scene import Scene
from github.yard import Yard, killed_at_call
from task_builders import ME, a_task, later

TTL = timedelta(minutes=30).total_seconds()
DAY = timedelta(hours=24).total_seconds()


@pytest.fixture
def here(scene: Scene) -> Yard:
    return Yard(scene)


@pytest.fixture
def there(here: Yard) -> Yard:
    return Yard(here.scene, "there")


def blocked(yard: Yard) -> str:
    """Let a run of the issue stop for a person; returns its id."""
    yard.queued()
    yard.look()
    yard.before_call = lambda call: yard.checkout.wishes.cancelled.add(call.run_id)
    run = yard.run()
    yard.before_call = lambda _call: None
    yard.pause(60)
    yard.look()
    assert yard.labels() == ["agent:blocked"]
    return run.run_id


# --- a task in the shared store --------------------------------------------------------------------------------------


@pytest.mark.spec("ISS-3")
@pytest.mark.parametrize("answer", ["running", "silence", "none"])
def test_a_silent_run_is_live_while_its_task_runs_or_the_store_cannot_be_asked(
    here: Yard, there: Yard, answer: str
) -> None:
    asked: list[tuple[RequestId, str]] = []

    def has_task(request_id: RequestId, run_id: str) -> bool:
        asked.append((request_id, run_id))
        if answer == "silence":
            raise EnvironmentProblemError(reason_code="STORE_UNREACHABLE")
        return answer == "running"

    there.has_task = has_task
    here.queued()
    here.look()
    there.look()
    killed_at_call(here)
    there.pause(60)
    there.look()
    assert asked == []  # its header is fresh
    there.pause(2 * TTL)
    there.look()
    there.look()
    [run_id] = {run_id for _, run_id in asked}
    if answer == "none":
        assert (there.labels(), there.status()) == (["agent:blocked"], RequestStatus.BLOCKED)
        assert f"end:{run_id}" in there.said()
    else:
        assert (there.labels(), there.status()) == (["agent:running"], RequestStatus.RUNNING)
        assert there.kinds() == ["run-header"]
    has_answered = len(asked)
    there.source.load_all()
    assert len(asked) == has_answered  # whoever only reads asks no store


@pytest.mark.spec("ISS-3")
def test_without_a_shared_store_nothing_is_opened_and_with_one_the_requests_own_task_is_asked(tmp_path: Path) -> None:
    gh_1, repo = RequestId("GH-1"), "github.repo=octo/demo"
    local = IssueRoom(str(tmp_path), load_settings(tmp_path, {}, (repo,)), {})
    assert not local.has_running_task(gh_1, "RUN-1")
    assert "_queue" not in vars(local)
    shared = IssueRoom(str(tmp_path), load_settings(tmp_path, {}, (repo, "queue.store=https://store.example")), {})
    queue = MemoryStore().queue("shop")
    vars(shared)["_queue"] = queue
    assert not shared.has_running_task(gh_1, "RUN-1")
    queue.enqueue(a_task(request_id=gh_1))
    assert not shared.has_running_task(gh_1, "RUN-1")
    task = queue.claim(ME, later(9))
    assert task is not None
    queue.note_run(task, "RUN-1", later(10))
    assert (shared.has_running_task(gh_1, "RUN-1"), shared.has_running_task(gh_1, "RUN-2")) == (True, False)


# --- a reminder, and /cancel -----------------------------------------------------------------------------------------


@pytest.mark.spec("ISS-8")
def test_a_blocked_issue_is_reminded_of_once_after_a_day_and_not_if_somebody_decided(here: Yard) -> None:
    blocked(here)
    here.pause(DAY - 600)
    here.look()
    assert here.kinds().count("reminder") == 0
    for _ in range(3):
        here.pause(1200)
        assert here.look() == []
        here.restart()
    assert here.kinds().count("reminder") == 1
    reminder = here.marks()[-1][0].body
    assert "/cancel" in reminder
    assert "/retry" in reminder
    here.scene.hub.comment(1, "I will look at it.", "maya")
    here.pause(3 * DAY)
    here.look()
    assert here.kinds().count("reminder") == 1


@pytest.mark.spec("ISS-8")
def test_nobody_is_reminded_of_what_they_decided(here: Yard) -> None:
    blocked(here)
    here.pause(3600)
    here.scene.hub.comment(1, "Not before Friday.", "maya")
    here.pause(3 * DAY)
    here.look()
    assert here.kinds().count("reminder") == 0


@pytest.mark.spec("ISS-8", "ISS-9")
def test_cancel_stops_a_running_issue_and_takes_the_label_off_a_queued_or_blocked_one(here: Yard) -> None:
    hub = here.scene.hub
    first = here.queued()
    here.look()
    hub.comment(first, "/cancel", "rita")
    here.pause(30)
    here.look()
    assert (here.labels(), here.kinds()) == (["agent:queued"], ["refusal"])
    hub.comment(first, "/cancel", "maya")
    here.pause(30)
    here.look()
    assert (here.labels(), here.status()) == ([], RequestStatus.DRAFT)

    def cancel(call: AgentCall) -> None:
        if call.role is Role.PLANNER:
            here.pause(60)
            hub.comment(second, "/cancel", "maya")
            here.pause(60)

    second = here.queued()
    here.look()
    here.before_call = cancel
    run = here.run(second)
    assert run.error is not None
    assert (run.error.reason_code, [call.role for call in here.calls]) == ("CANCELLED", [Role.PLANNER])
    here.pause(30)
    here.look()
    assert (here.labels(second), here.status(second)) == ([], RequestStatus.DRAFT)
    [command] = [comment for comment in hub.rows[second].comments if comment.body == "/cancel"]
    assert "eyes" in str(command.reactions)


@pytest.mark.spec("ISS-8")
def test_cancel_of_a_blocked_issue_makes_it_a_draft(here: Yard) -> None:
    blocked(here)
    here.scene.hub.comment(1, "/cancel", "maya")
    here.pause(30)
    here.look()
    assert (here.labels(), here.status()) == ([], RequestStatus.DRAFT)
    made = len(here.scene.api.writes)
    here.pause(2 * DAY)
    here.look()
    assert len(here.scene.api.writes) == made


# --- events twice, out of order, by hand -----------------------------------------------------------------------------


@pytest.mark.spec("ISS-10")
def test_the_same_event_twice_or_late_changes_nothing(here: Yard, there: Yard) -> None:
    here.queued()
    here.look()
    here.run()
    here.pause(60)
    here.look()
    said, labels, made = here.said(), here.labels(), len(here.scene.api.writes)
    for _ in range(3):  # a hint is only a reason to look
        here.work.tend(1)
        there.look()
        there.work.tend(1)
    here.restart()
    here.look()
    assert (here.said(), here.labels(), len(here.scene.api.writes)) == (said, labels, made)


@pytest.mark.spec("ISS-10")
def test_labels_that_contradict_the_runs_are_repaired_and_a_persons_are_obeyed(here: Yard) -> None:
    hub = here.scene.hub
    run_id = blocked(here)
    hub.label(1, "agent:running", "theo")  # may label, may not decide
    here.pause(300)
    here.look()
    assert here.labels() == ["agent:blocked"]
    hub.unlabel(1, "agent:blocked", "maya")
    here.pause(300)
    here.look()
    assert (here.labels(), here.status()) == ([], RequestStatus.DRAFT)
    hub.label(1, "agent:queued", "maya")
    hub.comment(1, "Go on, please.", "maya")
    here.pause(300)
    here.look()
    assert here.status() is RequestStatus.READY
    entries = [e for e in here.checkout.journal.entries if e.data and e.data.get("key") == "labels"]
    assert entries
    assert all(e.at.utcoffset() is not None and e.request_id == "GH-1" for e in entries)
    assert run_id in {e.run_id for e in entries}


@pytest.mark.spec("ISS-10")
def test_a_running_label_without_a_live_run_is_taken_up_here_and_blocked_elsewhere(here: Yard, there: Yard) -> None:
    here.queued()
    here.look()
    there.look()
    killed_at_call(here)
    here.pause(60)
    assert here.look() == []  # it is this checkout's run: it goes on
    assert here.kinds().count("result") == 1
    here.queued()
    here.look()
    there.look()
    killed_at_call(here, 2)
    there.pause(2 * TTL)
    there.look()
    assert there.labels(2) == ["agent:blocked"]
    assert here.look() == []
    assert not any(run and run.is_active for run in here.checkout.runs.runs.values())
    assert (here.labels(2), here.kinds(2).count("blocked")) == (["agent:blocked"], 1)
    transitions = [e for e in here.checkout.journal.entries if e.run_id and e.at.utcoffset() is not None]
    assert {e.run_id for e in transitions} == {run_id for _, run_id in here.checkout.runs.runs}
