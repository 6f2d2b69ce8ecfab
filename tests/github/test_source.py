"""Issues as a source of requests (ISS-2, ISS-3): from a label to a run, and what the issue shows meanwhile."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aiflow.adapters.github_issues.at_work import IssueWork
from aiflow.adapters.github_issues.book import IssueBook, IssueTerms
from aiflow.adapters.github_issues.here import Here
from aiflow.adapters.github_issues.mirror import IssueMirror
from aiflow.adapters.github_issues.source import GitHubIssues
from aiflow.adapters.github_issues.sync import sync_issues
from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.domain.claims import Claimed, Lost, Settled
from aiflow.domain.issues.headers import RunHeader
from aiflow.domain.issues.pulls import NoPull
from aiflow.domain.issues.repository import Synced
from aiflow.domain.issues.view import ClosePull, OwnRun, Post
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.runs.run import Run
from aiflow.errors import AiflowError
from aiflow.messages import Texts
from aiflow.usecases.issues.comments import answer_comment, comment_of, header_comment, progress_comment
from aiflow.usecases.issues.pulls import closing_comment
from aiflow.usecases.runs.claims import claim
from github.scene import Scene

GH_1, GH_2 = RequestId("GH-1"), RequestId("GH-2")


class Words:
    texts = Texts("en")

    def header(self, header: RunHeader) -> str:
        return header_comment(header, self.texts)

    def progress(self, run: Run) -> str:
        return progress_comment(run, self.texts)

    def comment(self, number: int, post: Post) -> str:
        return comment_of(post, None, self.texts)

    def answer(self, text: str) -> str:
        return answer_comment(text, self.texts)

    def pull(self, number: int, run_id: str) -> NoPull:
        return NoPull("RUN_NOT_FOUND")

    def pull_closed(self, number: int, deed: ClosePull) -> str:
        return closing_comment(deed, None, self.texts)


class Checkout:
    """One checkout that watches the repository."""

    def __init__(self, scene: Scene, folder: Path, login: str = "aiflow-runner") -> None:
        folder.mkdir(exist_ok=True)
        self.runs: dict[str, OwnRun] = {}
        self.client = scene.client(login)
        self.mirror = IssueMirror(folder, scene.hub.repo)
        own = lambda _request_id: tuple(self.runs.values())  # noqa: E731
        self.book = IssueBook(scene.hub.repo, self.mirror, scene.time, own, IssueTerms(runners=("aiflow-runner",)))
        self.journal = MemoryJournal()
        self.cancelled: list[str] = []
        office = Here(self.journal, folder.name, self.cancelled.append)
        self.work = IssueWork(self.book, lambda: self.client, Words(), office)
        self.source = GitHubIssues(self.book, self.work)
        self.time, self.folder = scene.time, folder

    def sync(self) -> None:
        self.work.sync()
        for number in self.work.pending():
            self.work.tend(number)


@pytest.fixture
def here(scene: Scene, tmp_path: Path) -> Checkout:
    return Checkout(scene, tmp_path / "here")


@pytest.fixture
def there(scene: Scene, tmp_path: Path) -> Checkout:
    return Checkout(scene, tmp_path / "there")


def queued(scene: Scene, by: str = "maya") -> int:
    number = scene.hub.open_issue("Say hello", "Please.")
    scene.time.sleep(5)
    scene.hub.label(number, "agent:queued", by)
    scene.time.sleep(5)
    return number


def shown(scene: Scene, number: int) -> tuple[list[str], list[str]]:
    """The issue's labels, and the first lines of its comments."""
    row = scene.hub.rows[number]
    return row.label_names(), [comment.body.splitlines()[0] for comment in row.comments]


@pytest.mark.spec("ISS-1", "ISS-2", "ISS-3")
def test_a_labelled_issue_is_a_ready_request_that_a_run_claims(scene: Scene, here: Checkout) -> None:
    number = queued(scene)
    here.sync()
    [request] = here.source.load_all()[0]
    assert (request.id, request.title, request.status) == (GH_1, "Say hello", RequestStatus.READY)
    assert here.source.claim(GH_1, "RUN-1") == Claimed(RequestStatus.READY)
    labels, comments = shown(scene, number)
    assert (labels, comments) == (["agent:running"], ["**aiflow is working on this issue** · attempt 1 of 6"])
    here.runs["RUN-1"] = OwnRun("RUN-1", RunOutcome.ACTIVE, attempt=1, is_working=True)
    assert here.source.claim(GH_1, "RUN-1") == Claimed(RequestStatus.RUNNING)
    assert here.source.load(GH_1).status is RequestStatus.RUNNING


@pytest.mark.spec("ISS-3")
def test_of_two_checkouts_one_has_it(scene: Scene, here: Checkout, there: Checkout) -> None:
    queued(scene)
    here.sync()
    there.sync()
    assert here.source.claim(GH_1, "RUN-1") == Claimed(RequestStatus.READY)
    assert there.source.claim(GH_1, "RUN-2") == Lost(RequestStatus.RUNNING, "RUN-1")
    assert there.source.load(GH_1).is_held_elsewhere


@pytest.mark.spec("ISS-5", "ISS-4")
def test_a_run_that_stops_blocks_its_issue_and_says_why(scene: Scene, here: Checkout) -> None:
    number = queued(scene)
    here.sync()
    here.source.claim(GH_1, "RUN-1")
    scene.time.sleep(60)
    here.runs["RUN-1"] = OwnRun("RUN-1", RunOutcome.NEEDS_INPUT, "UNIT_TEST_FAILED", attempt=1)
    settled = here.source.settle(GH_1, "RUN-1", RunOutcome.NEEDS_INPUT)
    assert settled == Settled(RequestStatus.BLOCKED, RequestStatus.BLOCKED)
    labels, comments = shown(scene, number)
    assert (labels, comments[-1]) == (["agent:blocked"], "**aiflow stopped and needs you** · attempt 1 of 6")
    here.sync()
    assert shown(scene, number)[1] == comments
    scene.time.sleep(60)
    scene.hub.comment(number, "/retry use UTC", "maya")
    scene.time.sleep(60)
    here.sync()
    assert here.source.load(GH_1).status is RequestStatus.READY
    [said] = here.source.feedback(GH_1, None)
    assert said.summary == "use UTC"
    assert here.source.claim(GH_1, "RUN-2") == Claimed(RequestStatus.READY)
    assert shown(scene, number)[1][-1] == "**aiflow is working on this issue** · attempt 2 of 6"


def calls(scene: Scene) -> int:
    """How many calls came since the last time this was asked."""
    count = len(scene.api.calls)
    scene.api.calls.clear()
    return count


@pytest.mark.spec("ISS-1")
def test_a_quiet_poll_is_one_call_and_a_full_pass_is_one_for_each_page(scene: Scene, here: Checkout) -> None:
    for number in range(250):
        scene.hub.open_issue(f"Issue {number}")
        scene.time.sleep(10)
    here.sync()
    assert (calls(scene), len(here.source.load_all()[0])) == (3, 250)
    here.sync()  # the moment from which on it lists has moved
    assert calls(scene) == 1
    here.sync()
    assert calls(scene) == 1
    assert sync_issues(here.client, here.mirror, here.time) == Synced()


@pytest.mark.spec("ISS-7")
def test_what_is_deleted_stays_known_and_an_issue_that_is_gone_does_not(scene: Scene, here: Checkout) -> None:
    number = queued(scene)
    here.sync()
    here.source.claim(GH_1, "RUN-1")
    header = scene.hub.rows[number].comments[0]
    scene.hub.delete_comment(header.id)
    scene.time.sleep(700)
    here.sync()
    story = here.mirror.story(number)
    assert story is not None
    assert [comment.is_gone for comment in story.comments if comment.id == header.id] == [True]
    scene.hub.delete(number)
    scene.time.sleep(700)
    here.sync()
    assert here.source.load_all()[0] == []


@pytest.mark.spec("ISS-1")
def test_an_issue_that_nobody_asked_about_and_that_is_gone_is_missed_by_the_next_full_pass(
    scene: Scene, here: Checkout
) -> None:
    number = scene.hub.open_issue("Only an idea", by="maya")
    here.sync()
    scene.hub.delete(number)
    scene.time.sleep(60)
    assert here.work.sync().gone == ()  # what changed since then does not show it
    scene.time.sleep(600)
    assert here.work.sync().gone == (number,)
    assert here.source.load_all()[0] == []


@pytest.mark.spec("ISS-3")
def test_a_list_of_comments_that_lags_starts_nothing_until_it_is_whole(scene: Scene, here: Checkout) -> None:
    number = queued(scene)
    here.sync()
    scene.hub.lag_calls = 3
    assert here.source.claim(GH_1, "RUN-1") == Claimed(RequestStatus.READY)
    assert shown(scene, number)[0] == ["agent:running"]
    scene.hub.lag_calls = 0
    queued(scene)
    here.sync()
    scene.hub.lag_calls = 1000
    with pytest.raises(AiflowError) as lagging:
        here.source.claim(GH_2, "RUN-2")
    assert lagging.value.reason_code == "GITHUB_LAGGING"
    assert scene.hub.rows[2].label_names() == ["agent:queued"]


@pytest.mark.spec("ISS-3", "ISS-4")
def test_a_comment_that_fails_changes_no_label_and_one_whose_answer_is_lost_is_not_posted_twice(
    scene: Scene, here: Checkout
) -> None:
    number = queued(scene)
    here.sync()
    scene.api.answers(r"POST .*/comments", 500, times=9)
    with pytest.raises(AiflowError):
        here.source.claim(GH_1, "RUN-1")
    assert shown(scene, number) == (["agent:queued"], [])
    scene.api.faults.clear()
    scene.api.loses(r"POST .*/comments")
    assert here.source.claim(GH_1, "RUN-1") == Claimed(RequestStatus.READY)
    labels, comments = shown(scene, number)
    assert (labels, len(comments)) == (["agent:running"], 1)


@pytest.mark.spec("ISS-4")
def test_an_end_that_cannot_be_written_waits_for_the_next_look(scene: Scene, here: Checkout) -> None:
    number = queued(scene)
    here.sync()
    here.source.claim(GH_1, "RUN-1")
    scene.time.sleep(60)
    here.runs["RUN-1"] = OwnRun("RUN-1", RunOutcome.AWAITING_ACCEPTANCE, attempt=1)
    scene.api.down()
    assert here.source.settle(GH_1, "RUN-1", RunOutcome.AWAITING_ACCEPTANCE).now is RequestStatus.BLOCKED  # type: ignore[union-attr]
    scene.api.down(is_down=False)
    assert len(shown(scene, number)[1]) == 1
    assert here.work.pending() == (number,)
    here.work.tend(number)
    assert shown(scene, number)[1][-1] == "**aiflow finished** · attempt 1 of 6"
    assert here.work.pending() == ()


@pytest.mark.spec("ISS-4", "ISS-5")
def test_an_end_whose_answer_is_lost_is_shown_at_once_with_its_label_and_not_twice(
    scene: Scene, here: Checkout
) -> None:
    number = queued(scene)
    here.sync()
    here.source.claim(GH_1, "RUN-1")
    scene.time.sleep(60)
    here.runs["RUN-1"] = OwnRun("RUN-1", RunOutcome.NEEDS_INPUT, "UNIT_TEST_FAILED", attempt=1)
    scene.api.loses(r"POST .*/comments")
    here.source.settle(GH_1, "RUN-1", RunOutcome.NEEDS_INPUT)
    labels, comments = shown(scene, number)
    assert labels == ["agent:blocked"]
    assert comments[1:] == ["**aiflow stopped and needs you** · attempt 1 of 6"]
    assert here.work.pending() == ()


@pytest.mark.spec("ISS-6", "ISS-2")
def test_a_strangers_label_starts_nothing_and_is_told_once(scene: Scene, here: Checkout) -> None:
    queued(scene)
    here.sync()
    number = queued(scene, by="theo")
    here.sync()
    request = here.source.load(GH_2)
    assert request.kept is not None
    assert request.kept.reason_code == "LABEL_NOT_PERMITTED"
    assert isinstance(here.source.claim(GH_2, "RUN-1"), Lost)
    scene.time.sleep(60)
    here.sync()
    here.work.tend(number)
    assert len(shown(scene, number)[1]) == 1


@pytest.mark.spec("ISS-3", "ISS-10")
def test_a_label_that_fails_is_tried_once_more_and_then_the_issue_is_blocked(scene: Scene, here: Checkout) -> None:
    number = queued(scene)
    here.sync()
    scene.api.answers(r"POST .*/labels", 422)
    assert here.source.claim(GH_1, "RUN-1") == Claimed(RequestStatus.READY)
    assert shown(scene, number)[0] == ["agent:running"]
    assert [(entry.run_id, entry.data["event"]) for entry in here.journal.entries] == [("RUN-1", "started")] * 2
    second = queued(scene)
    here.sync()
    scene.api.answers(r"POST .*/labels", 422, times=2)
    here.journal.entries.clear()
    engine: Any = SimpleNamespace(source=here.source, journal=here.journal, time=scene.time)
    assert claim(engine, GH_2, "RUN-2") == Lost(RequestStatus.BLOCKED)
    told = [(entry.run_id, *(entry.data[name] for name in ("key", "from", "to"))) for entry in here.journal.entries]
    assert told == [
        ("RUN-2", "labels", None, "agent:blocked"),
        ("RUN-2", "labels", "agent:queued", None),
        ("RUN-2", "status", "ready", "blocked"),
    ]
    assert all(entry.request_id == GH_2 and entry.at.tzinfo for entry in here.journal.entries)
    labels, comments = shown(scene, second)
    assert (labels, comments[-1]) == (["agent:blocked"], "**aiflow stopped and needs you** · attempt 1 of 6")
    assert here.source.load(GH_2).status is RequestStatus.BLOCKED
