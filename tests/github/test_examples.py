"""What GitHub's webhooks really send (`@octokit/webhooks-examples`): every issue, comment and label in it is read."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from aiflow.adapters.github_issues import read
from aiflow.domain.issues.webhook import hinted_issue
from github.prism import NODE_MODULES

pytestmark = pytest.mark.contract

EXAMPLES = NODE_MODULES / "@octokit/webhooks-examples"


@functools.cache
def examples() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Every payload by its event, each with the GitHub it is of: the public one, and Enterprise servers."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for path in sorted(EXAMPLES.glob("*/index.json")):
        for event in json.loads(path.read_text(encoding="utf-8")):
            found.setdefault(event["name"], []).extend((path.parent.name, each) for each in event["examples"])
    return found


def payloads(*events: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for event in events:
        yield from examples()[event]


def test_every_issue_is_read() -> None:
    seen = 0
    for where, payload in payloads("issues", "issue_comment"):
        said = payload["issue"]
        issue = read.issue_of(said)
        if "pull_request" in said:
            assert issue is None, where
            continue
        assert issue is not None, where
        seen += 1
        assert (issue.number, issue.title, issue.body) == (said["number"], said["title"], said["body"] or ""), where
        assert (issue.is_open, issue.comment_count) == (said.get("state", "open") == "open", said["comments"]), where
        assert issue.labels == tuple(label["name"] for label in said.get("labels", ())), where
        assert issue.author is not None, where
        assert (issue.author.login, issue.author.id) == (said["user"]["login"], said["user"]["id"]), where
        assert issue.created_at.year > 2000, where
        assert issue.updated_at >= issue.created_at, where
    assert seen > 50


def test_every_comment_is_read() -> None:
    seen = 0
    for where, payload in payloads("issue_comment"):
        said = payload["comment"]
        comment = read.comment_of(said)
        assert comment is not None, where
        assert (comment.id, comment.body, comment.url) == (said["id"], said["body"], said["html_url"]), where
        assert comment.author is not None, where
        assert comment.author.is_bot == (said["user"]["type"] == "Bot"), where
        seen += 1
    assert seen > 10


def test_every_label_is_read() -> None:
    names = [read.label_of(payload["label"]) for _, payload in payloads("issues", "label") if "label" in payload]
    assert len(names) > 10
    assert all(names)


def test_every_delivery_is_a_hint_at_its_own_repositorys_issue_only() -> None:
    seen = 0
    for where, payload in payloads("issues", "issue_comment"):
        body, repo = json.dumps(payload).encode(), payload["repository"]["full_name"]
        expected = None if "pull_request" in payload["issue"] else payload["issue"]["number"]
        assert hinted_issue(body, repo) == expected, where
        assert hinted_issue(body, "somebody/else") is None, where
        seen += 1
    assert seen > 50


@pytest.mark.parametrize("event", ["push", "pull_request", "ping", "label", "star", "installation"])
def test_no_other_delivery_is_a_hint(event: str) -> None:
    found = list(payloads(event))
    assert found
    for where, payload in found:
        repo = payload.get("repository", {}).get("full_name", "octo/demo")
        assert hinted_issue(json.dumps(payload).encode(), repo) is None, where
