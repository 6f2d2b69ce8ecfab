"""What the requirements ask of issues (FR-101 to FR-106, and their failures), each through the adapter.

| asked | shown by |
|---|---|
| two start requests at once make one run | `test_two_starts.py`; `test_source.py::test_of_two_checkouts_one_has_it` |
| `/retry` and `agent:retry` make a new run_id | `test_a_retry_is_a_new_run_id` |
| … and a clean start, with the person's words | `test_a_retry_starts_clean_with_the_persons_words`; `test_two_starts.py::check_clean_start` |
| a label alone is no decision | `test_a_label_without_a_decision_goes_back_and_says_so_once` |
| after the last retry `agent:blocked`, `retry_condition_unmet` | `test_the_sixth_retry_is_given_up` |
| … by the command and by the label, though headers were deleted, and in another checkout | the same |
| `/retry` without permission is ignored with the reason, once | `test_a_retry_without_permission_is_ignored_and_told_why_once` |
| a comment fails: no label changes | `test_source.py::test_a_comment_that_fails_changes_no_label…` |
| a label fails: once more, then `agent:blocked` | `test_source.py::test_a_label_that_fails_is_tried_once_more…` |
| no run_id can be made: `agent:blocked`, with the reason, once | `test_unstarted.py` |
| what else keeps a run from starting is told once for each cause | `test_unstarted.py` |
| a stale run_id's update is dropped and recorded | `test_what_a_replaced_run_writes_is_dropped_and_recorded` |
| 24 hours blocked: one reminder | `test_a_day_without_a_decision_is_reminded_of_once` |
| events twice, out of order, late or lost | `test_hints.py` |
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall
from aiflow.domain.claims import Claimed, Dropped, Lost
from aiflow.domain.issues.marks import CommentMark, find_mark
from aiflow.domain.issues.view import CloseRun, OwnRun
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.request import RequestStatus
from aiflow.usecases.runs.claims import settle
from github.scene import Scene
from github.test_source import GH_1, Checkout, queued, shown
from github.yard import Yard

DAY = 24 * 3600


@pytest.fixture
def here(scene: Scene, tmp_path: Path) -> Checkout:
    return Checkout(scene, tmp_path / "here")


@pytest.fixture
def there(scene: Scene, tmp_path: Path) -> Checkout:
    return Checkout(scene, tmp_path / "there")


def run(scene: Scene, checkout: Checkout, run_id: str, outcome: RunOutcome = RunOutcome.NEEDS_INPUT) -> object:
    """Let a checkout start an issue that is ready, and its run come to an end."""
    checkout.sync()
    for each in checkout.runs.values():
        checkout.runs[each.run_id] = each._replace(outcome=RunOutcome.SENT_BACK)
    answer = checkout.source.claim(GH_1, run_id)
    if isinstance(answer, Claimed):
        scene.time.sleep(60)
        code = "UNIT_TEST_FAILED" if outcome is RunOutcome.NEEDS_INPUT else None
        checkout.runs[run_id] = OwnRun(run_id, outcome, code, attempt=len(checkout.runs) + 1)
        checkout.source.settle(GH_1, run_id, outcome)
    scene.time.sleep(60)
    return answer


def marks(scene: Scene, kind: str = "") -> list[CommentMark]:
    every = [find_mark(comment.body) for comment in scene.hub.rows[1].comments]
    return [mark for mark in every if mark is not None and kind in ("", mark.kind.value)]


def ask(scene: Scene, how: str) -> None:
    """Ask for a retry as a person with write permission does."""
    if how == "agent:retry":
        scene.hub.comment(1, "Use UTC.", "maya")
        scene.time.sleep(5)
        scene.hub.label(1, "agent:retry", "maya")
    else:
        scene.hub.comment(1, how, "maya")
    scene.time.sleep(60)


@pytest.mark.spec("ISS-6")
@pytest.mark.parametrize("how", ["/retry", "agent:retry"])
def test_a_retry_is_a_new_run_id(scene: Scene, here: Checkout, how: str) -> None:
    queued(scene)
    assert run(scene, here, "RUN-1") == Claimed(RequestStatus.READY)
    assert isinstance(here.source.claim(GH_1, "RUN-2"), Lost)
    assert here.source.may_go_on(GH_1) is not None
    ask(scene, how)
    here.work.sync()
    assert here.work.tend(1) == (CloseRun("RUN-1"),)
    assert shown(scene, 1)[0] == ["agent:retry"]
    assert run(scene, here, "RUN-2") == Claimed(RequestStatus.READY)
    headers = [(mark.facts["run_id"], mark.facts["attempt"], mark.facts["of"]) for mark in marks(scene, "run-header")]
    assert headers == [("RUN-1", 1, 6), ("RUN-2", 2, 6)]


@pytest.mark.spec("ISS-6")
@pytest.mark.parametrize("how", ["/retry Use UTC.", "agent:retry"])
def test_a_retry_starts_clean_with_the_persons_words(scene: Scene, how: str) -> None:
    yard = Yard(scene)
    seen: list[tuple[AgentCall, set[str]]] = []
    yard.before_call = lambda call: seen.append((call, {*yard.checkout.repository.worktrees[call.cwd].files}))
    yard.queued()
    yard.look()
    former = yard.run()
    assert "GH-1.txt" in seen[-1][1]
    seen.clear()
    yard.pause(60)
    ask(scene, how)
    assert yard.look() == []
    made = yard.run()
    call, files = seen[0]
    assert (call.role, call.plan, call.session_id, call.continues) == (Role.PLANNER, (), None, None)
    assert "GH-1.txt" not in files
    assert (made.place.base_commit, made.place.branch) == (yard.checkout.base, f"aiflow/GH-1/{made.run_id}")
    assert made.run_id != former.run_id
    assert "Use UTC." in [told.summary for told in made.feedback]


@pytest.mark.spec("ISS-6")
def test_a_label_without_a_decision_goes_back_and_says_so_once(scene: Scene, here: Checkout) -> None:
    queued(scene)
    run(scene, here, "RUN-1")
    for _ in range(2):
        scene.hub.label(1, "agent:retry", "maya")
        scene.time.sleep(60)
        here.sync()
        assert isinstance(here.source.claim(GH_1, "RUN-2"), Lost)
        assert shown(scene, 1)[0] == ["agent:blocked"]
    assert [mark.facts["reason_code"] for mark in marks(scene, "refusal")] == ["ISSUE_DECISION_MISSING"]


@pytest.mark.spec("ISS-7")
@pytest.mark.parametrize(("how", "headers"), [("/retry", "kept"), ("/retry", "deleted"), ("agent:retry", "kept")])
def test_the_sixth_retry_is_given_up(scene: Scene, here: Checkout, there: Checkout, how: str, headers: str) -> None:
    queued(scene)
    for attempt in range(1, 7):
        assert run(scene, here, f"RUN-{attempt}") == Claimed(RequestStatus.READY)
        if headers == "deleted":
            here.sync()
            for comment in [c for c in scene.hub.rows[1].comments if "run-header" in c.body]:
                scene.hub.delete_comment(comment.id)
        ask(scene, how)
    for checkout in (there, here):
        assert isinstance(run(scene, checkout, "RUN-7"), Lost)
        assert shown(scene, 1)[0] == ["agent:blocked"]
    limit = marks(scene, "blocked")[-1]
    assert (limit.facts["blocked_reason"], limit.facts["reason_code"]) == ("retry_condition_unmet", "ISSUE_RETRY_LIMIT")
    assert [mark.key for mark in marks(scene)].count(limit.key) == 1
    assert not any(mark.facts["run_id"] == "RUN-7" for mark in marks(scene, "run-header"))


@pytest.mark.spec("ISS-6")
def test_a_retry_without_permission_is_ignored_and_told_why_once(scene: Scene, here: Checkout) -> None:
    queued(scene)
    run(scene, here, "RUN-1")
    for by in ("theo", "rita", "theo"):
        scene.hub.comment(1, "/retry", by)
        scene.time.sleep(60)
        here.sync()
        assert here.source.load(GH_1).status is RequestStatus.BLOCKED
        assert isinstance(here.source.claim(GH_1, "RUN-2"), Lost)
    refused = [(mark.facts["reason_code"], mark.facts["actor"]) for mark in marks(scene, "refusal")]
    assert refused == [("COMMAND_NOT_PERMITTED", "theo"), ("COMMAND_NOT_PERMITTED", "rita")]
    said = [comment.reactions for comment in scene.hub.rows[1].comments if comment.body == "/retry"]
    assert said == [[("aiflow-runner", "confused")]] * 3


@pytest.mark.spec("ISS-4")
@pytest.mark.parametrize("has_looked", [True, False])
def test_what_a_replaced_run_writes_is_dropped_and_recorded(
    scene: Scene, here: Checkout, there: Checkout, *, has_looked: bool
) -> None:
    """Its process was silent for longer than the TTL, so another checkout called it lost and ran the issue anew."""
    queued(scene)
    here.sync()
    here.source.claim(GH_1, "RUN-1")
    here.runs["RUN-1"] = OwnRun("RUN-1", RunOutcome.ACTIVE, attempt=1, is_working=True)
    scene.time.sleep(3600)
    there.sync()
    assert shown(scene, 1)[0] == ["agent:blocked"]
    ask(scene, "/retry")
    there.sync()
    assert there.source.claim(GH_1, "RUN-2") == Claimed(RequestStatus.READY)
    there.runs["RUN-2"] = OwnRun("RUN-2", RunOutcome.ACTIVE, attempt=1, is_working=True)
    if has_looked:
        here.sync()
    before = shown(scene, 1)
    here.runs["RUN-1"] = here.runs["RUN-1"]._replace(outcome=RunOutcome.AWAITING_ACCEPTANCE, is_working=False)
    engine: Any = SimpleNamespace(source=here.source, journal=here.journal, time=scene.time)
    assert settle(engine, GH_1, "RUN-1", RunOutcome.AWAITING_ACCEPTANCE) == Dropped(RequestStatus.RUNNING, "RUN-2")
    assert here.journal.entries[-1].reason_code == "LOCK_MISMATCH"
    assert (here.journal.entries[-1].run_id, shown(scene, 1)) == ("RUN-1", before)


@pytest.mark.spec("ISS-8")
def test_a_day_without_a_decision_is_reminded_of_once(scene: Scene, here: Checkout, there: Checkout) -> None:
    queued(scene)
    run(scene, here, "RUN-1")
    scene.time.sleep(DAY - 300)
    here.sync()
    assert marks(scene, "reminder") == []
    scene.time.sleep(600)
    for _ in range(3):
        here.sync()
        there.sync()
        assert len(marks(scene, "reminder")) == 1
        scene.time.sleep(DAY)
    ask(scene, "/retry")
    run(scene, here, "RUN-2")
    scene.hub.comment(1, "I look into it.", "maya")
    scene.time.sleep(2 * DAY)
    here.sync()
    assert len(marks(scene, "reminder")) == 1
