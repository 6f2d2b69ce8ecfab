"""A happy path against GitHub's emulator of another hand: nobody who wrote our hub or our client had a say in it.

It knows neither reactions nor blockers, sends no tags, and is wrong about rights: those are tried elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from aiflow.adapters.github_issues.client import GitHubClient
from aiflow.adapters.github_issues.connect import connect
from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.toml_settings import load_settings
from aiflow.domain.issues.issue import Right
from aiflow.errors import AiflowError
from e2e.bench import Bench
from github.emulator import OWNER, OWNER_TOKEN, REPO, RUNNER, RUNNER_TOKEN, emulator

pytestmark = pytest.mark.contract


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with emulator(tmp_path) as found:
        yield found


@pytest.fixture
def bench(url: str, repository: Path, tmp_path: Path) -> Bench:
    """A checkout whose settings name the emulator's repository."""
    made = Bench(repository, tmp_path)
    made.aiflow.environ["GITHUB_TOKEN"] = RUNNER_TOKEN
    made.configure(f'[github]\nrepo = "{REPO}"\napi_url = "{url}"\n')
    made.commit()
    return made


@pytest.fixture
def client(url: str) -> Iterator[GitHubClient]:
    settings = load_settings(Path("/nowhere"), {}, (f"github.repo={REPO}", f"github.api_url={url}"))
    made = connect(Path("/nowhere"), settings, {"GITHUB_TOKEN": RUNNER_TOKEN}, PlayedTime())
    yield made
    made.disconnect()


@pytest.fixture
def owner(url: str) -> Iterator[httpx2.Client]:
    """The repository's owner, at a browser."""
    with httpx2.Client(base_url=f"{url}/repos/{REPO}", headers={"Authorization": f"Bearer {OWNER_TOKEN}"}) as found:
        yield found


@pytest.mark.timeout(300)  # two whole runs, with a second between two writes
@pytest.mark.spec("ISS-3", "ISS-6", "ISS-9")
def test_the_program_takes_an_issue_from_its_label_to_its_result(owner: httpx2.Client, bench: Bench) -> None:
    """The happy path as a user has it: nothing of ours but the program, and a repository of another hand."""
    assert owner.put(f"/collaborators/{RUNNER}", json={"permission": "push"}).is_success
    assert owner.post("/issues", json={"title": "Say hello", "body": "Please."}).is_success
    bench.aiflow.json("issues", "labels")
    assert {"agent:queued", "agent:running"} <= {each["name"] for each in owner.get("/labels").json()}
    assert owner.post("/issues/1/labels", json={"labels": ["agent:queued"]}).is_success
    assert bench.aiflow.json("issues", "sync")["changed"] == ["GH-1"]
    assert bench.run("GH-1")["state"] == "DONE"

    comments = owner.get("/issues/1/comments").json()
    assert [each["body"].split("**")[1] for each in comments] == [
        "aiflow is working on this issue",
        "Finished",
        "aiflow finished",
    ]
    assert {each["user"]["login"] for each in comments} == {RUNNER}
    assert [each["name"] for each in owner.get("/issues/1").json()["labels"]] == ["agent:running"]
    assert owner.post("/issues/1/comments", json={"body": "/retry Shorter, please."}).is_success
    bench.aiflow.json("issues", "sync")
    assert bench.run("GH-1")["state"] == "DONE"
    assert owner.patch("/issues/1", json={"state": "closed", "state_reason": "completed"}).is_success
    bench.aiflow.json("issues", "sync")
    assert bench.aiflow.json("show", "GH-1")["status"] == "done"
    assert owner.get("/issues/1").json()["labels"] == []


def test_an_issue_lives_from_its_label_to_its_end(owner: httpx2.Client, client: GitHubClient) -> None:
    assert owner.put(f"/collaborators/{RUNNER}", json={"permission": "push"}).is_success
    assert owner.post("/issues", json={"title": "Add a search", "body": "Please"}).is_success
    assert owner.post("/issues/1/labels", json={"labels": ["agent:queued"]}).is_success

    assert client.account().login == RUNNER
    repository = client.repository()
    assert (repository.name, repository.default_branch, repository.right) == (REPO, "main", Right.WRITE)
    assert client.right(OWNER) is Right.WRITE
    (issue,) = client.issues().issues
    assert (issue.title, issue.labels, issue.author and issue.author.login) == (
        "Add a search",
        ("agent:queued",),
        OWNER,
    )

    posted = client.comment(1, "header")
    client.edit_comment(posted.id, "edited")
    assert [(comment.id, comment.body) for comment in client.comments(1)] == [(posted.id, "edited")]
    assert client.issue(1).comment_count == 1

    for name in ("agent:running", "agent:running", "agent:blocked"):
        client.create_label(name, "ededed", "made by aiflow")
    assert {"agent:queued", "agent:running", "agent:blocked"} <= set(client.labels())
    client.add_label(1, "agent:running")
    assert client.remove_label(1, "agent:queued") == ("agent:running",)
    assert client.remove_label(1, "agent:queued") == ("agent:running",)
    changes = [
        (event.kind, event.label, event.actor and event.actor.login) for event in client.events(1) if event.label
    ]
    assert changes == [
        ("labeled", "agent:queued", OWNER),
        ("labeled", "agent:running", RUNNER),
        ("unlabeled", "agent:queued", RUNNER),
    ]

    opened = client.open_pull("aiflow/GH-1", "main", "Add a search", "Closes #1")
    assert [pull.number for pull in client.pulls("aiflow/GH-1")] == [opened.number]
    assert not client.close_pull(opened.number).is_open
    closed = client.close(1)
    assert (closed.is_open, closed.state_reason) == (False, "completed")
    # The pull request is an issue, too, for GitHub: not for us.
    assert [each.number for each in client.issues().issues] == [1]
    assert client.rate().limit == 5000
    with pytest.raises(AiflowError) as caught:
        client.issue(99)
    assert caught.value.reason_code == "GITHUB_GONE"


def test_many_issues_come_by_pages_of_another_hand(owner: httpx2.Client, client: GitHubClient) -> None:
    for at in range(105):
        assert owner.post("/issues", json={"title": f"Issue {at}"}).is_success
    assert [issue.number for issue in client.issues().issues] == list(range(1, 106))
