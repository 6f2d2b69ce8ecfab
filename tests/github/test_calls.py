"""Every call that the client makes, and what it makes of the answers: directly, by HTTP, and behind GitHub's own description."""

from __future__ import annotations

from datetime import timedelta

import pytest

from aiflow.domain.issues.issue import Account, Blocker, Right
from aiflow.errors import AiflowError
from aiflow.ports.issues import IssueHost
from github.hub import HookRow
from github.scene import RUNNER, Scene

pytestmark = pytest.mark.parametrize(
    "way", ["direct", "http", pytest.param("prism", marks=pytest.mark.contract)], indirect=True
)


def refusal(error: pytest.ExceptionInfo[AiflowError]) -> str:
    return error.value.reason_code


def test_the_client_is_what_the_port_asks_for(scene: Scene) -> None:
    host: IssueHost = scene.client()
    assert host.issues().issues == ()


def test_an_issue_is_read_with_all_that_it_says(scene: Scene) -> None:
    number = scene.hub.open_issue("Add a search", "Please.\n\n日本語", by="rita")
    scene.hub.label(number, "agent:queued", by="maya")
    scene.hub.label(number, "P1", by="maya")
    scene.hub.comment(number, "me too", by="nobody")
    issue = scene.client().issue(number)
    assert (issue.number, issue.title, issue.body) == (1, "Add a search", "Please.\n\n日本語")
    assert issue.url == "https://github.com/octo/demo/issues/1"
    assert issue.author == Account("rita", scene.hub.user("rita").id)
    assert issue.labels == ("agent:queued", "P1")
    assert (issue.is_open, issue.state_reason, issue.comment_count, issue.blocker_count) == (True, None, 1, 0)
    assert issue.created_at == issue.updated_at == scene.hub.now()


def test_a_deleted_account_is_nobody(scene: Scene) -> None:
    number = scene.hub.open_issue("Orphan")
    scene.hub.forget_author(number)
    assert scene.client().issue(number).author is None


def test_the_list_has_open_and_closed_issues_but_no_pull_requests(scene: Scene) -> None:
    first, second, third = (scene.hub.open_issue(title) for title in ("One", "Two", "Three"))
    scene.hub.open_pull_issue("Not an issue")
    scene.hub.close(second, by="maya", reason="not_planned")
    issues = scene.client().issues().issues
    assert [(issue.number, issue.is_open, issue.state_reason) for issue in issues] == [
        (first, True, None),
        (second, False, "not_planned"),
        (third, True, None),
    ]


def test_the_list_since_a_moment_has_what_was_updated_since(scene: Scene) -> None:
    old, other = scene.hub.open_issue("Old"), scene.hub.open_issue("Other")
    scene.time.sleep(60)
    moment = scene.time.now()
    scene.hub.comment(other, "news", by="rita")
    client = scene.client()
    assert [issue.number for issue in client.issues(moment).issues] == [other]
    assert [issue.number for issue in client.issues(moment - timedelta(minutes=2)).issues] == [old, other]


def test_a_thousand_issues_are_read_in_as_few_calls_as_paging_allows(scene: Scene) -> None:
    for at in range(1000):
        scene.hub.open_issue(f"Issue {at}")
    client = scene.client()
    listed = client.issues()
    assert [issue.number for issue in listed.issues] == list(range(1, 1001))
    assert len(scene.api.calls) == 10


def test_a_quiet_look_is_one_call_that_costs_nothing(scene: Scene) -> None:
    number = scene.hub.open_issue("Quiet")
    client = scene.client()
    listed = client.issues()
    left = scene.api.remaining
    again = client.issues(etag=listed.etag)
    assert (again.is_unchanged, again.issues, again.etag) == (True, (), listed.etag)
    assert (len(scene.api.calls), scene.api.remaining) == (2, left)
    scene.hub.label(number, "agent:queued", by="maya")
    news = client.issues(etag=listed.etag)
    assert not news.is_unchanged
    assert news.issues[0].labels == ("agent:queued",)
    assert news.etag != listed.etag


def test_all_pages_of_comments_are_read_in_the_order_of_their_ids(scene: Scene) -> None:
    number = scene.hub.open_issue("Talked about")
    for at in range(250):
        scene.hub.comment(number, f"comment {at}", by="rita")
    client = scene.client()
    comments = client.comments(number)
    assert [comment.body for comment in comments] == [f"comment {at}" for at in range(250)]
    assert [comment.id for comment in comments] == sorted(comment.id for comment in comments)
    assert len(scene.api.calls) == 3
    scene.time.sleep(60)
    scene.hub.edit_comment(comments[7].id, "edited")
    assert [comment.body for comment in client.comments(number, since=scene.time.now())] == ["edited"]


def test_a_list_of_comments_may_lag_behind_what_the_issue_counts(scene: Scene) -> None:
    number = scene.hub.open_issue("Raced")
    client = scene.client()
    scene.hub.lag_calls = 2
    client.comment(number, "mine")
    assert client.issue(number).comment_count == 1
    assert [len(client.comments(number)) for _ in range(3)] == [0, 0, 1]
    scene.time.sleep(60)
    scene.hub.lag_calls, scene.hub.lag_seconds = 0, 5
    client.comment(number, "late")
    assert len(client.comments(number)) == 1
    scene.time.sleep(5)
    assert len(client.comments(number)) == 2


def test_the_history_says_who_labelled_and_when(scene: Scene) -> None:
    number = scene.hub.open_issue("Labelled")
    scene.hub.label(number, "agent:queued", by="maya")
    scene.time.sleep(10)
    scene.hub.unlabel(number, "agent:queued", by="theo")
    scene.hub.edit(number, by="rita", title="Renamed", body="new")
    scene.hub.close(number, by="maya")
    scene.hub.reopen(number, by="mel")
    events = scene.client().events(number)
    assert [(event.kind, event.actor and event.actor.login, event.label) for event in events] == [
        ("labeled", "maya", "agent:queued"),
        ("unlabeled", "theo", "agent:queued"),
        ("renamed", "rita", None),
        ("closed", "maya", None),
        ("reopened", "mel", None),
    ]
    assert events[1].at - events[0].at == timedelta(seconds=10)


def test_a_long_history_is_read_to_its_end(scene: Scene) -> None:
    number = scene.hub.open_issue("Restless")
    for _ in range(60):
        scene.hub.label(number, "agent:queued", by="maya")
        scene.hub.unlabel(number, "agent:queued", by="maya")
    assert len(scene.client().events(number)) == 120


def test_blockers_are_read_also_closed_ones_and_those_of_another_repository(scene: Scene) -> None:
    number, open_one, closed_one = (scene.hub.open_issue(title) for title in ("Waits", "First", "Second"))
    scene.hub.block(number, open_one)
    scene.hub.block(number, closed_one)
    scene.hub.close(closed_one, by="maya", reason="not_planned")
    scene.hub.elsewhere["octo/other", 7] = (False, "completed")
    scene.hub.block(number, 7, repo="octo/other")
    client = scene.client()
    issue = client.issue(number)
    assert (issue.blocker_count, issue.open_blocker_count) == (3, 1)
    found = client.blockers(number) or ()
    assert found[1].updated_at == client.issue(closed_one).updated_at
    assert tuple(each._replace(updated_at=None) for each in found) == (
        Blocker("octo/demo", open_one, is_open=True),
        Blocker("octo/demo", closed_one, is_open=False, state_reason="not_planned"),
        Blocker("octo/other", 7, is_open=False, state_reason="completed"),
    )


def test_an_older_github_knows_no_blockers(scene: Scene) -> None:
    number = scene.hub.open_issue("Old server")
    scene.hub.has_dependencies = False
    client = scene.client()
    assert client.issue(number).blocker_count == 0
    assert client.blockers(number) is None


def test_comments_are_posted_edited_and_reacted_to(scene: Scene) -> None:
    number = scene.hub.open_issue("Written to")
    client = scene.client()
    posted = client.comment(number, "run header\n<!-- aiflow:run-header v1 {} -->")
    assert (posted.author and posted.author.login, posted.body[:10]) == (RUNNER, "run header")
    assert posted.url == f"https://github.com/octo/demo/issues/1#issuecomment-{posted.id}"
    scene.time.sleep(30)
    edited = client.edit_comment(posted.id, "withdrawn")
    assert (edited.id, edited.body) == (posted.id, "withdrawn")
    assert edited.updated_at > edited.created_at
    client.react(posted.id, "eyes")
    client.react(posted.id, "eyes")
    assert scene.hub.rows[number].comments[0].reactions == [(RUNNER, "eyes")]


def test_a_comment_is_deleted_and_one_that_is_gone_stays_gone(scene: Scene) -> None:
    number = scene.hub.open_issue("Tidied")
    client = scene.client()
    kept, posted = client.comment(number, "kept"), client.comment(number, "posted twice")
    client.delete_comment(posted.id)
    client.delete_comment(posted.id)
    client.react(posted.id, "eyes")  # its author was quicker than our look
    assert client.comments(number) == (kept,)
    assert client.issue(number).comment_count == 1


def test_single_labels_are_added_and_removed_and_others_stay(scene: Scene) -> None:
    number = scene.hub.open_issue("Labels", labels=("bug",))
    client = scene.client()
    assert client.add_label(number, "agent:queued") == ("bug", "agent:queued")
    assert client.add_label(number, "agent:queued") == ("bug", "agent:queued")
    assert client.remove_label(number, "agent:queued") == ("bug",)
    assert client.remove_label(number, "agent:queued") == ("bug",)
    assert client.add_label(number, "needs 日本語/review?") == ("bug", "needs 日本語/review?")
    assert client.remove_label(number, "needs 日本語/review?") == ("bug",)


def test_labels_are_made_once(scene: Scene) -> None:
    client = scene.client()
    assert client.labels() == ()
    client.create_label("agent:queued", "fbca04", "aiflow starts it")
    client.create_label("agent:queued", "000000", "another")
    assert client.labels() == ("agent:queued",)
    assert scene.hub.labels["agent:queued"].color == "fbca04"
    with pytest.raises(AiflowError) as caught:
        client.create_label("agent:running", "blue", "no such color")
    assert refusal(caught) == "GITHUB_REFUSED"
    assert caught.value.context["problem"] == "Validation Failed: color invalid"


def test_rights_are_what_github_says_and_none_where_it_knows_nobody(scene: Scene) -> None:
    scene.hub.person("helper[bot]", "write", is_bot=True)
    client = scene.client()
    rights = {login: client.right(login) for login in ("owner", "mel", "maya", "theo", "rita", "helper[bot]", "ghost")}
    assert rights == {
        "owner": Right.WRITE,
        "mel": Right.WRITE,
        "maya": Right.WRITE,
        "theo": Right.READ,
        "rita": Right.READ,
        "helper[bot]": Right.NONE,
        "ghost": Right.NONE,
    }


def test_who_we_are_and_where(scene: Scene) -> None:
    client = scene.client()
    assert client.account() == Account(RUNNER, scene.hub.user(RUNNER).id)
    repository = client.repository()
    assert (repository.name, repository.default_branch, repository.has_issues) == ("octo/demo", "main", True)
    assert repository.right is Right.WRITE
    assert scene.client("rita").repository().right is Right.READ


def test_the_rate_is_told_by_githubs_clock_and_costs_nothing(scene: Scene) -> None:
    client = scene.client()
    client.labels()
    rate = client.rate()
    assert (rate.limit, rate.remaining) == (5000, 4999)
    assert rate.now == scene.hub.now()
    assert rate.resets_at - rate.now == timedelta(hours=1)
    assert client.rate().remaining == 4999


def test_webhooks_and_their_deliveries(scene: Scene) -> None:
    at = scene.hub.now()
    hook = HookRow(31, "https://aiflow.example/api/github/webhook", ["issues", "issue_comment"])
    hook.deliveries = [(1, "issues", at, 200), (2, "issue_comment", at, 502)]
    scene.hub.hooks.append(hook)
    client = scene.client("owner")
    (seen,) = client.hooks()
    assert (seen.id, seen.url, seen.events, seen.is_active) == (31, hook.url, ("issues", "issue_comment"), True)
    assert [(each.id, each.event, each.status, each.is_ok) for each in client.deliveries(31)] == [
        (2, "issue_comment", 502, False),
        (1, "issues", 200, True),
    ]
    with pytest.raises(AiflowError) as caught:
        scene.client("maya").hooks()
    assert refusal(caught) == "GITHUB_RIGHTS"


@pytest.mark.parametrize("reason", ["completed", "not_planned"])
def test_an_issue_is_closed(scene: Scene, reason: str) -> None:
    number = scene.hub.open_issue("Done")
    closed = scene.client().close(number, reason)
    assert (closed.is_open, closed.state_reason) == (False, reason)


def test_pull_requests_are_opened_found_by_their_branch_and_closed(scene: Scene) -> None:
    scene.hub.branches |= {"aiflow/GH-1", "other"}
    client = scene.client()
    assert client.pulls("aiflow/GH-1") == ()
    opened = client.open_pull("aiflow/GH-1", "main", "Add a search", "Closes #1")
    assert (opened.head, opened.base, opened.title, opened.is_open) == ("aiflow/GH-1", "main", "Add a search", True)
    client.open_pull("other", "main", "Other", "")
    assert client.pulls("aiflow/GH-1") == (opened,)
    with pytest.raises(AiflowError) as caught:
        client.open_pull("aiflow/GH-1", "main", "Again", "")
    assert refusal(caught) == "GITHUB_REFUSED"
    assert "already exists" in str(caught.value.context["problem"])
    assert not client.close_pull(opened.number).is_open
    assert [(pull.number, pull.is_open, pull.is_merged) for pull in client.pulls("aiflow/GH-1")] == [
        (opened.number, False, False)
    ]


@pytest.mark.parametrize("deed", ["deleted", "never there"])
def test_what_is_gone_is_gone_while_the_repository_is_seen(scene: Scene, deed: str) -> None:
    number = scene.hub.open_issue("Short-lived")
    scene.hub.rows[number].gone = deed if deed != "never there" else ""
    if deed == "never there":
        del scene.hub.rows[number]
    client = scene.client()
    for ask in (client.issue, client.comments):
        with pytest.raises(AiflowError) as caught:
            ask(number)
        assert refusal(caught) == "GITHUB_GONE"
    assert client.issues().issues == ()
    scene.hub.is_private = True
    scene.hub.person(RUNNER, "none")
    with pytest.raises(AiflowError) as caught:
        client.issue(number)
    assert refusal(caught) == "GITHUB_NOT_FOUND"


def test_a_pull_request_is_no_issue(scene: Scene) -> None:
    number = scene.hub.open_pull_issue("A pull request")
    with pytest.raises(AiflowError) as caught:
        scene.client().issue(number)
    assert refusal(caught) == "GITHUB_GONE"


def test_what_may_not_be_done_is_said_as_a_missing_right(scene: Scene) -> None:
    number = scene.hub.open_issue("Closed to readers")
    with pytest.raises(AiflowError) as caught:
        scene.client("rita").close(number)
    assert refusal(caught) == "GITHUB_RIGHTS"
    assert caught.value.context["problem"] == "Resource not accessible by personal access token"
    assert scene.hub.rows[number].is_open


def test_what_github_cannot_take_is_refused_with_its_words(scene: Scene) -> None:
    number = scene.hub.open_issue("Long")
    with pytest.raises(AiflowError) as caught:
        scene.client().comment(number, "x" * 65_537)
    assert refusal(caught) == "GITHUB_REFUSED"
    assert "too long" in str(caught.value.context["problem"])
    assert scene.hub.rows[number].comments == []
