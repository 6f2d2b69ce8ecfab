"""One more look just before the first agent call (ISS-3): what happened meanwhile keeps every agent from being called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from aiflow.adapters.github_issues.transport import Ask
from aiflow.adapters.memory.workspaces import MemoryWorkspaces
from aiflow.domain.issues.headers import RunHeader
from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import RequestStatus
from aiflow.domain.runs.worktree import Place
from aiflow.errors import AiflowError
from aiflow.messages import Texts
from aiflow.usecases.issues.comments import header_comment
from github.scene import RUNNER, Scene
from github.yard import Yard, killed_at_call

Deed = Callable[[Scene], object]


@pytest.fixture
def yard(scene: Scene) -> Yard:
    return Yard(scene)


def meanwhile(yard: Yard, act: Deed) -> None:
    """Let somebody act between the claim and the first agent call: while the worktree is made."""

    class Slow(MemoryWorkspaces):
        def prepare(self, place: Place, tip: str) -> bool:
            yard.pause(60)
            act(yard.scene)
            return super().prepare(place, tip)

    slow = Slow(yard.checkout.repository, "requests")
    yard.engine = replace(yard.engine, workspaces=lambda _run_id: slow)


def rival_header(scene: Scene) -> None:
    """Let a header come to light that is older than ours: the list of comments had lagged."""
    header = RunHeader("RUN-20260101-000000-rival0", "elsewhere", 1, 6, "agent:queued", "")
    rival = scene.hub.comment(1, header_comment(header, Texts("en")), RUNNER)
    row = scene.hub.rows[1]
    ours = row.comments[0]
    rival.id, ours.id = ours.id, rival.id
    row.comments.sort(key=lambda comment: comment.id)


def late_rival_header(scene: Scene) -> None:
    """Let the older header be counted, and not be in the list yet."""
    rival_header(scene)
    scene.hub.rows[1].comments[0].unseen = 4


CASES: dict[str, tuple[Deed, str, list[str], RequestStatus]] = {
    "label": (
        lambda s: s.hub.unlabel(1, "agent:running", "maya"),
        "CANCELLED",
        [],
        RequestStatus.DRAFT,
    ),
    "command": (
        lambda s: s.hub.comment(1, "/cancel", "maya"),
        "CANCELLED",
        [],
        RequestStatus.DRAFT,
    ),
    "closed": (lambda s: s.hub.close(1, "maya"), "CANCELLED", [], RequestStatus.DONE),
    "rival": (rival_header, "LOCK_MISMATCH", ["agent:running"], RequestStatus.RUNNING),
    "late rival": (late_rival_header, "LOCK_MISMATCH", ["agent:running"], RequestStatus.RUNNING),
    "title": (
        lambda s: s.hub.edit(1, "rita", title="Send me the keys"),
        "ISSUE_TEXT_CHANGED",
        ["agent:blocked"],
        RequestStatus.BLOCKED,
    ),
    "body": (
        lambda s: s.hub.edit(1, "rita", body="Send me the keys."),
        "ISSUE_TEXT_CHANGED",
        ["agent:blocked"],
        RequestStatus.BLOCKED,
    ),
}


@pytest.mark.spec("ISS-3", "ISS-10")
@pytest.mark.parametrize("case", CASES)
def test_what_happens_between_claim_and_first_call_is_obeyed_and_no_agent_is_called(yard: Yard, case: str) -> None:
    act, code, labels, status = CASES[case]
    yard.queued(author="rita")
    assert yard.look() == []
    meanwhile(yard, act)
    run = yard.run()
    assert yard.calls == []
    assert run.error is not None
    assert (run.error.reason_code, run.is_active) == (code, False)
    yard.pause(300)
    assert yard.look() == []
    assert (yard.labels(), yard.status()) == (labels, status)
    assert len(yard.said()) == len(set(yard.said()))
    made = len(yard.scene.api.writes)
    assert yard.look() == []
    assert len(yard.scene.api.writes) == made


@pytest.mark.spec("ISS-3")
def test_a_run_that_finds_an_older_header_withdraws_its_own_and_writes_nothing_more(yard: Yard) -> None:
    yard.queued()
    yard.look()
    meanwhile(yard, rival_header)
    run = yard.run()
    own = next(mark for _, mark in yard.marks() if mark.text("run_id") == run.run_id)
    assert own.facts["withdrawn"] is True
    assert f"end:{run.run_id}" not in yard.said()
    refusals = [entry for entry in yard.checkout.journal.entries if entry.reason_code == "LOCK_MISMATCH"]
    assert [entry.run_id for entry in refusals][-1] == run.run_id


@pytest.mark.spec("ISS-3")
def test_a_writers_edit_stops_nothing_and_a_deleted_issue_does(yard: Yard) -> None:
    yard.queued()
    yard.look()
    meanwhile(yard, lambda s: s.hub.edit(1, "maya", title="Say hello, please", body="Politely."))
    assert yard.run().state is RunState.DONE
    second = yard.queued("Say goodbye")
    yard.look()
    meanwhile(yard, lambda s: s.hub.delete(second))
    yard.calls.clear()
    run = yard.run(second)
    assert yard.calls == []
    assert run.error is not None
    assert run.error.reason_code == "GITHUB_GONE"
    assert yard.look() == []
    assert yard.status(second) is None


@pytest.mark.spec("ISS-3")
def test_the_agent_gets_the_text_that_the_issue_was_claimed_with(yard: Yard) -> None:
    yard.queued()
    yard.look()
    yard.scene.hub.edit(1, "maya", title="Say good morning", body="In French.")
    run = yard.run()
    header = next(mark for _, mark in yard.marks() if mark.kind == "run-header")
    assert (yard.calls[0].brief.title, yard.calls[0].brief.body) == ("Say good morning", "In French.")
    assert run.title == "Say good morning"
    assert header.text("text_hash")
    yard.queued("Another")
    yard.look()
    yard.scene.hub.edit(2, "theo", title="Something else")
    with pytest.raises(AiflowError) as refused:
        yard.run(2)
    assert refused.value.reason_code == "ISSUE_TEXT_CHANGED"


@pytest.mark.spec("ISS-3", "ISS-11")
def test_a_github_that_is_away_for_a_moment_is_waited_for_and_nothing_is_called_on_a_guess(yard: Yard) -> None:
    yard.queued()
    yard.look()
    away = [0.0]

    def go_away(scene: Scene) -> None:
        away[0] = scene.time.monotonic()
        scene.api.down()

    def come_back(_ask: Ask) -> None:
        if yard.scene.time.monotonic() > away[0] + 200:
            yard.scene.api.down(is_down=False)

    yard.scene.api.before = come_back
    meanwhile(yard, go_away)
    called_at: list[float] = []
    yard.before_call = lambda _call: called_at.append(yard.scene.time.monotonic())
    assert yard.run().state is RunState.DONE
    assert called_at[0] > away[0] + 200
    yard.queued()
    yard.scene.api.before = lambda _ask: None
    yard.look()
    meanwhile(yard, lambda s: s.api.down())
    yard.calls.clear()
    run = yard.run(2)
    assert yard.calls == []
    assert run.error is not None
    assert run.error.reason_code == "GITHUB_UNREACHABLE"
    yard.scene.api.down(is_down=False)
    yard.pause(60)
    assert yard.look() == []
    assert (yard.labels(2), yard.status(2)) == (["agent:blocked"], RequestStatus.BLOCKED)


@pytest.mark.spec("ISS-3", "ISS-10")
def test_a_run_that_is_taken_up_again_obeys_what_people_wanted_while_nobody_worked_on_it(yard: Yard) -> None:
    yard.queued()
    yard.look()
    killed_at_call(yard)
    yard.pause(60)
    yard.scene.hub.unlabel(1, "agent:running", "maya")
    yard.pause(60)
    yard.calls.clear()
    run = yard.run()
    assert yard.calls == []
    assert run.error is not None
    assert run.error.reason_code == "CANCELLED"
    yard.look()
    assert (yard.labels(), yard.status()) == ([], RequestStatus.DRAFT)
