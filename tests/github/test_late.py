"""Lists that lag behind, and starts that were cut short (ISS-1, ISS-3): nothing is lost, nothing begins twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.files.atomic_files import STATE_DIR
from aiflow.adapters.files.guard_files import is_held
from aiflow.adapters.github_issues.mirror import IssueMirror
from aiflow.adapters.github_issues.transport import Answer, Ask
from aiflow.domain.claims import Claimed, Lost
from aiflow.domain.issues.marks import find_mark
from aiflow.domain.issues.view import OwnRun
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.request import RequestStatus
from aiflow.errors import AiflowError
from github.scene import Scene
from github.test_source import GH_1, Checkout, queued, shown


@pytest.fixture
def here(scene: Scene, tmp_path: Path) -> Checkout:
    return Checkout(scene, tmp_path / "here")


@pytest.fixture
def there(scene: Scene, tmp_path: Path) -> Checkout:
    return Checkout(scene, tmp_path / "there")


def withdrawn(scene: Scene, number: int) -> list[bool]:
    """Whether each header of an issue says that it is withdrawn."""
    marks = [find_mark(comment.body) for comment in scene.hub.rows[number].comments]
    return [mark.facts["withdrawn"] for mark in marks if mark is not None and mark.kind == "run-header"]


def blocked(scene: Scene, here: Checkout) -> int:
    number = queued(scene)
    here.sync()
    here.source.claim(GH_1, "RUN-1")
    scene.time.sleep(60)
    here.runs["RUN-1"] = OwnRun("RUN-1", RunOutcome.NEEDS_INPUT, "UNIT_TEST_FAILED", attempt=1)
    here.source.settle(GH_1, "RUN-1", RunOutcome.NEEDS_INPUT)
    scene.time.sleep(60)
    return number


@pytest.mark.spec("ISS-1", "ISS-10")
def test_a_comment_that_a_lagging_list_did_not_have_is_read_though_nothing_else_happens(
    scene: Scene, here: Checkout
) -> None:
    number = blocked(scene, here)
    here.sync()
    scene.hub.lag_calls = 2
    scene.hub.comment(number, "/retry", "maya")
    scene.hub.lag_calls = 0
    for _ in range(3):
        scene.time.sleep(30)
        here.sync()
    assert here.source.load(GH_1).status is RequestStatus.READY
    here.runs.clear()
    here.sync()
    scene.api.calls.clear()
    here.sync()
    assert len(scene.api.calls) == 1


@pytest.mark.spec("ISS-1", "ISS-2")
def test_a_label_whose_event_comes_late_counts_when_it_has_come(scene: Scene, here: Checkout) -> None:
    scene.hub.event_lag_calls = 2
    queued(scene)
    here.sync()
    kept = here.source.load(GH_1).kept
    assert kept is not None
    assert kept.reason_code == "LABEL_NOT_PERMITTED"
    for _ in range(2):
        scene.time.sleep(30)
        here.sync()
    assert here.source.load(GH_1).kept is None
    assert shown(scene, 1)[1] == []


@pytest.mark.spec("ISS-3")
def test_a_header_that_was_never_seen_in_the_list_is_withdrawn_all_the_same(scene: Scene, here: Checkout) -> None:
    number = queued(scene)
    here.sync()
    scene.hub.lag_calls = 1000
    with pytest.raises(AiflowError):
        here.source.claim(GH_1, "RUN-1")
    assert withdrawn(scene, number) == [True]
    scene.hub.rows[number].comments[0].unseen = scene.hub.lag_calls = 0
    scene.time.sleep(30)
    here.sync()
    assert here.source.load(GH_1).status is RequestStatus.READY
    assert here.source.claim(GH_1, "RUN-2") == Claimed(RequestStatus.READY)


@pytest.mark.spec("ISS-3", "ISS-10")
def test_a_start_that_came_to_nothing_is_withdrawn_by_the_next_look(scene: Scene, here: Checkout) -> None:
    """Its header is there, GitHub fell silent before it could be read back, and no run was ever made of it."""
    number = queued(scene)
    here.sync()

    def fall_silent(ask: Ask) -> None:
        if ask.method == "POST":
            scene.api.down()

    scene.api.before = fall_silent
    scene.api.loses(r"POST .*/comments")
    with pytest.raises(AiflowError):
        here.source.claim(GH_1, "RUN-1")
    scene.api.before = lambda _ask: None
    scene.api.down(is_down=False)
    scene.time.sleep(30)
    assert withdrawn(scene, number) == [False]
    here.work.sync()
    assert here.work.pending() == (number,)
    here.sync()
    assert withdrawn(scene, number) == [True]
    assert here.source.load(GH_1).status is RequestStatus.READY
    assert here.source.claim(GH_1, "RUN-2") == Claimed(RequestStatus.READY)


@pytest.mark.spec("ISS-3")
def test_a_start_cut_short_reads_everything_back_before_it_goes_on(
    scene: Scene, here: Checkout, there: Checkout
) -> None:
    """Its header is there and the other's, which is lower, lags: it has the issue only as far as it can see."""
    number = queued(scene)
    here.sync()
    there.sync()
    is_first = [True]

    def race(ask: Ask) -> None:
        if ask.method == "POST" and is_first:
            is_first.clear()
            assert there.source.claim(GH_1, "RUN-2") == Claimed(RequestStatus.READY)
            scene.api.answers(rf"GET .*/issues/{number}$", 422)

    scene.api.before = race
    with pytest.raises(AiflowError):
        here.source.claim(GH_1, "RUN-1")
    assert withdrawn(scene, number) == [False, False]
    scene.hub.rows[number].comments[0].unseen = 2
    assert here.source.claim(GH_1, "RUN-1") == Lost(RequestStatus.RUNNING, "RUN-2")


@pytest.mark.spec("ISS-3", "ISS-7")
def test_a_run_that_has_ended_is_not_begun_again_by_a_retry_of_others(
    scene: Scene, here: Checkout, there: Checkout
) -> None:
    number = blocked(scene, here)
    scene.hub.comment(number, "/retry", "maya")
    scene.time.sleep(60)
    there.sync()
    here.sync()
    before = shown(scene, number)[1]
    assert isinstance(here.source.claim(GH_1, "RUN-1"), Lost)
    assert shown(scene, number)[1] == before
    assert withdrawn(scene, number) == [False]


@pytest.mark.spec("ISS-3")
def test_who_looked_before_another_run_came_and_went_does_not_run_it_again(
    scene: Scene, here: Checkout, there: Checkout
) -> None:
    number = queued(scene)
    here.sync()
    there.sync()
    is_first = [True]

    def slow(ask: Ask) -> None:
        if ask.method == "POST" and is_first:
            is_first.clear()
            assert there.source.claim(GH_1, "RUN-2") == Claimed(RequestStatus.READY)
            there.runs["RUN-2"] = OwnRun("RUN-2", RunOutcome.AWAITING_ACCEPTANCE, attempt=1)
            there.source.settle(GH_1, "RUN-2", RunOutcome.AWAITING_ACCEPTANCE)

    scene.api.before = slow
    assert isinstance(here.source.claim(GH_1, "RUN-1"), Lost)
    assert withdrawn(scene, number) == [False, True]
    assert shown(scene, number)[0] == ["agent:running"]
    here.sync()
    assert here.source.load(GH_1).status is RequestStatus.BLOCKED


@pytest.mark.spec("ISS-6", "ISS-10")
def test_what_is_asked_after_the_first_look_is_answered_though_that_found_nothing(scene: Scene, here: Checkout) -> None:
    scene.hub.open_issue("Say hello", by="maya")
    here.sync()
    scene.time.sleep(600)
    scene.hub.label(1, "agent:queued", "maya")
    scene.hub.comment(1, "/status", "maya")
    scene.time.sleep(20)
    here.sync()
    assert len(shown(scene, 1)[1]) == 2


class Behind:
    """A way to the hub on which the comments of others, and their count, come late: a copy of it, with own writes."""

    def __init__(self, scene: Scene, seconds: float) -> None:
        self.scene, self.seconds = scene, seconds
        self.own: set[int] = set()

    def send(self, ask: Ask, headers: Mapping[str, str]) -> Answer:
        answer = self.scene.api.send(ask, headers)
        document: Any = json.loads(answer.body) if answer.body else None
        if ask.method == "POST" and ask.path.endswith("/comments"):
            self.own.add(document["id"])
        elif ask.method == "GET" and ask.path.endswith("/comments"):
            document = [each for each in document if each["id"] not in self._late()]
        elif ask.method == "GET" and ask.path.endswith("/issues/1"):
            document["comments"] -= len(self._late())
        return answer._replace(body=json.dumps(document).encode()) if ask.method == "GET" else answer

    def _late(self) -> set[int]:
        now = self.scene.time.now()
        comments = self.scene.hub.rows[1].comments
        return {
            each.id
            for each in comments
            if each.id not in self.own and (now - each.created_at).total_seconds() < self.seconds
        }

    def close(self) -> None:
        """Keep nothing."""


@pytest.mark.spec("ISS-3")
def test_two_that_both_see_their_own_header_alone_are_told_apart_before_any_agent_is_called(
    scene: Scene, here: Checkout, there: Checkout
) -> None:
    """The count lags with the list, so nothing is missing to either of them when it looks for the first time."""
    number = queued(scene)
    for checkout in (here, there):
        checkout.sync()
        checkout.client._line._transport = Behind(scene, 3.5)
    claims = []

    def before(ask: Ask) -> None:
        if ask.method == "POST" and ask.path.endswith("/comments"):
            scene.api.before = lambda _ask: None
            claims.append(there.source.claim(GH_1, "RUN-2"))

    scene.api.before = before
    claims.append(here.source.claim(GH_1, "RUN-1"))
    assert claims == [Claimed(RequestStatus.READY), Claimed(RequestStatus.READY)], "nobody could know"
    refusal = here.source.confirm(GH_1, "RUN-1")
    assert refusal is not None
    assert refusal.reason_code == "LOCK_MISMATCH"
    assert there.source.confirm(GH_1, "RUN-2") is None
    assert withdrawn(scene, number) == [False, True]


@pytest.mark.spec("ISS-3")
def test_no_agent_is_called_while_a_comment_is_counted_that_is_not_listed_yet(scene: Scene, here: Checkout) -> None:
    number = queued(scene)
    here.sync()
    assert here.source.claim(GH_1, "RUN-1") == Claimed(RequestStatus.READY)
    here.runs["RUN-1"] = OwnRun("RUN-1", RunOutcome.ACTIVE, attempt=1, is_working=True)
    scene.hub.lag_calls = 1
    scene.hub.comment(number, "/cancel", "maya")  # or the header of another checkout
    with pytest.raises(AiflowError) as trouble:
        here.source.confirm(GH_1, "RUN-1")
    assert trouble.value.reason_code == "GITHUB_LAGGING"
    refusal = here.source.confirm(GH_1, "RUN-1")
    assert refusal is not None
    assert refusal.reason_code == "CANCELLED"


@pytest.mark.spec("ISS-1")
def test_a_list_that_passes_over_an_issue_while_it_changes_has_it_the_next_time(scene: Scene, here: Checkout) -> None:
    number, other = (scene.hub.open_issue(title, by="maya") for title in ("One", "Other"))
    here.sync()
    scene.time.sleep(60)
    scene.hub.label(number, "agent:queued", "maya")
    scene.hub.rows[number].gone = "not in the list yet"
    scene.time.sleep(5)
    scene.hub.comment(other, "Newer than what the list does not have yet.", "maya")
    here.sync()
    assert here.source.status(GH_1) is RequestStatus.DRAFT
    scene.hub.rows[number].gone = ""
    scene.time.sleep(30)
    here.sync()
    assert here.source.status(GH_1) is RequestStatus.READY


@pytest.mark.spec("ISS-10")
def test_two_processes_of_a_checkout_are_at_one_issue_one_after_the_other(tmp_path: Path) -> None:
    guards = tmp_path / STATE_DIR / "github" / "octo" / "demo" / "guards"
    one, other = (IssueMirror(tmp_path, "Octo/demo") for _ in range(2))
    with one.alone(1):
        with other.alone(2):
            assert (is_held(guards / "1"), is_held(guards / "2")) == (True, True)
        assert (is_held(guards / "1"), is_held(guards / "2")) == (True, False)
    assert not is_held(guards / "1")
