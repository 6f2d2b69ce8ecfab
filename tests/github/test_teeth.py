"""Prism bites: nonsense is refused in every answer and every request body that aiflow uses.

Without this test a description that Prism cannot compile would let everything pass, and the other tests prove nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import httpx2
import pytest

from aiflow.adapters.github_issues.line import HEADERS
from aiflow.adapters.github_issues.transport import Answer, Ask
from github.prism import USED
from github.scene import Switch

pytestmark = pytest.mark.contract

NAMES = {
    "owner": "octo",
    "repo": "demo",
    "issue_number": "1",
    "comment_id": "2",
    "name": "bug",
    "username": "maya",
    "hook_id": "3",
    "pull_number": "4",
    "installation_id": "5",
}
# A deleted comment is answered with nothing.
EMPTY = ("delete", "/repos/{owner}/{repo}/issues/comments/{comment_id}")
CALLS = [(method, path) for path, methods in USED.items() for method in methods if (method, path) != EMPTY]
# A body that GitHub takes, one that it does not, by the call.
ISSUE, COMMENT = "/repos/{owner}/{repo}/issues/{issue_number}", "/repos/{owner}/{repo}/issues/comments/{comment_id}"
BODIES: dict[tuple[str, str], tuple[object, object]] = {
    ("patch", ISSUE): ({"state": "closed", "state_reason": "completed"}, {"state": "sideways"}),
    ("post", ISSUE + "/comments"): ({"body": "x"}, {"body": 5}),
    ("post", ISSUE + "/labels"): ({"labels": ["bug"]}, {"labels": "bug"}),
    ("patch", COMMENT): ({"body": "x"}, {"text": "x"}),
    ("post", COMMENT + "/reactions"): ({"content": "eyes"}, {"content": "shrug"}),
    ("post", "/repos/{owner}/{repo}/labels"): ({"name": "bug", "color": "ededed"}, {"color": "ededed"}),
    ("post", "/repos/{owner}/{repo}/pulls"): ({"title": "x", "head": "a", "base": "b", "body": ""}, {"head": "a"}),
    ("patch", "/repos/{owner}/{repo}/pulls/{pull_number}"): ({"state": "closed"}, {"state": "merged"}),
    ("post", "/app/installations/{installation_id}/access_tokens"): ({"repositories": ["demo"]}, {"repositories": [7]}),
}


@pytest.fixture(scope="module")
def proxy(prism_url: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=prism_url, timeout=60) as made:
        yield made


class Nonsense:
    """Answers every call with the same status and document, and counts them."""

    def __init__(self, status: int, document: object) -> None:
        self.answer = Answer(status, {"content-type": "application/json"}, json.dumps(document).encode())
        self.count = 0

    def send(self, ask: Ask, headers: Mapping[str, str]) -> Answer:
        self.count += 1
        return self.answer

    def close(self) -> None:
        """Keep nothing."""


def called(proxy: httpx2.Client, method: str, path: str, body: object = None) -> httpx2.Response:
    headers = {**HEADERS, "Authorization": "Bearer x", **({} if body is None else {"Content-Type": "application/json"})}
    data = None if body is None else json.dumps(body).encode()
    return proxy.request(method.upper(), path.format_map(NAMES), headers=headers, content=data)


def is_violation(answer: httpx2.Response) -> bool:
    return "problem+json" in answer.headers["content-type"] and "stoplight.io/prism" in str(answer.json()["type"])


@pytest.mark.parametrize(("method", "path"), CALLS)
@pytest.mark.parametrize("document", [{"number": "one"}, [{"number": "one"}], 5], ids=["object", "list", "number"])
def test_a_nonsensical_answer_is_refused(
    method: str, path: str, document: object, proxy: httpx2.Client, switch: Switch
) -> None:
    body = BODIES.get((method, path), (None,))[0]
    is_made = method == "post" and not path.endswith("/{issue_number}/labels")
    switch.api = nonsense = Nonsense(201 if is_made else 200, document)
    answer = called(proxy, method, path, body)
    assert nonsense.count == 1
    assert is_violation(answer), answer.text
    assert any(each["location"][0] == "response" for each in answer.json()["validation"])


@pytest.mark.parametrize(("method", "path"), BODIES)
def test_a_nonsensical_request_is_refused(method: str, path: str, proxy: httpx2.Client, switch: Switch) -> None:
    switch.api = nonsense = Nonsense(200, {})
    answer = called(proxy, method, path, BODIES[method, path][1])
    assert is_violation(answer), answer.text
    assert answer.status_code == 422
    assert answer.json()["validation"][0]["location"][0] == "body"
    assert nonsense.count == 0


def test_every_call_that_writes_has_a_body_to_bite_into() -> None:
    assert {(method, path) for method, path in CALLS if method in ("post", "patch", "put")} == set(BODIES)


def test_a_call_that_the_description_does_not_know_is_refused(proxy: httpx2.Client, switch: Switch) -> None:
    switch.api = Nonsense(200, {})
    assert is_violation(called(proxy, "get", "/repos/{owner}/{repo}/nonsense"))
