"""Prism bites: nonsense is refused in every answer and every request body that aiflow uses.

Without this test a description that Prism cannot compile would let everything pass, and the other tests prove nothing.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import pytest

from aiflow.adapters.github_issues.line import HEADERS
from aiflow.adapters.github_issues.transport import Answer, Ask
from github.prism import DESCRIPTION, USED
from github.routes import ROUTES
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
ISSUE, COMMENT = "/repos/{owner}/{repo}/issues/{issue_number}", "/repos/{owner}/{repo}/issues/comments/{comment_id}"
EVERY = [(method, path) for path, methods in USED.items() for method in methods]
# A deleted comment is answered with nothing.
EMPTY = ("delete", COMMENT)
CALLS = [each for each in EVERY if each != EMPTY]
# Where there are two good answers, the other one.
ALSO = {("post", COMMENT + "/reactions"): 200}
REFUSAL = {"message": "No", "documentation_url": "https://docs.github.com/rest"}
# A body that GitHub takes, one that it does not, by the call.
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
        kind = {"content-type": "application/json"}
        self.answer = (
            Answer(status, kind, json.dumps(document).encode()) if document is not None else Answer(status, {})
        )
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


def made_status(method: str, path: str) -> int:
    """Return the status of a call that did what was asked."""
    return 201 if method == "post" and not path.endswith("/{issue_number}/labels") else 200


def is_refused(answer: httpx2.Response) -> bool:
    """Tell whether Prism refused an answer for what it is, not the call."""
    return is_violation(answer) and any(each["location"][0] == "response" for each in answer.json()["validation"])


@functools.cache
def described() -> dict[str, dict[str, Any]]:
    """The operations of the description, by path and method."""
    found: dict[str, dict[str, Any]] = json.loads(DESCRIPTION.read_text(encoding="utf-8"))["paths"]
    return found


@pytest.mark.parametrize(("method", "path"), CALLS)
@pytest.mark.parametrize("document", [{"number": "one"}, [{"number": "one"}], 5], ids=["object", "list", "number"])
def test_a_nonsensical_answer_is_refused(
    method: str, path: str, document: object, proxy: httpx2.Client, switch: Switch
) -> None:
    body = BODIES.get((method, path), (None,))[0]
    for status in {made_status(method, path), ALSO.get((method, path), made_status(method, path))}:
        switch.api = nonsense = Nonsense(status, document)
        answer = called(proxy, method, path, body)
        assert nonsense.count == 1
        assert is_refused(answer), answer.text


@pytest.mark.parametrize(("method", "path"), EVERY)
def test_a_nonsensical_refusal_is_refused(method: str, path: str, proxy: httpx2.Client, switch: Switch) -> None:
    """Whatever GitHub describes of its 4xx is held against; what it does not describe passes, and nothing reads it."""
    body = BODIES.get((method, path), (None,))[0]
    for status in (int(each) for each in described()[path][method]["responses"] if each[0] in "45"):
        for document in ({**REFUSAL, "message": 5}, ["No"], 5):
            switch.api = Nonsense(status, document)
            assert is_refused(called(proxy, method, path, body)), (status, document)
        switch.api = Nonsense(status, REFUSAL)
        assert called(proxy, method, path, body).status_code == status


@pytest.mark.parametrize(("method", "path"), EVERY)
def test_a_good_answer_of_another_status_is_refused(
    method: str, path: str, proxy: httpx2.Client, switch: Switch
) -> None:
    """So is a 200 with a body where a comment was deleted, and a 202 anywhere."""
    body = BODIES.get((method, path), (None,))[0]
    for status in (200, 202) if (method, path) == EMPTY else (202,):
        switch.api = Nonsense(status, {"id": 1})
        assert is_refused(called(proxy, method, path, body)), status


def test_a_deleted_comment_is_answered_with_nothing(proxy: httpx2.Client, switch: Switch) -> None:
    switch.api = Nonsense(204, None)
    assert called(proxy, *EMPTY).status_code == 204


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


def test_every_call_that_the_hub_answers_is_held_against_the_description_and_no_other() -> None:
    """A call that is added to the client needs a route of the hub, this then a row of the table, this a body."""
    routes = {
        (method, path): [
            key for key in ROUTES if key[0] == method.upper() and re.fullmatch(key[1], path.format_map(NAMES))
        ]
        for method, path in EVERY
    }
    assert {each: len(found) for each, found in routes.items()} == dict.fromkeys(EVERY, 1)
    assert {found[0] for found in routes.values()} == set(ROUTES)


def test_a_call_that_the_description_does_not_know_is_refused(proxy: httpx2.Client, switch: Switch) -> None:
    switch.api = Nonsense(200, {})
    assert is_violation(called(proxy, "get", "/repos/{owner}/{repo}/nonsense"))
