"""GitHub's webhook (ISS-1, SEC): its signature is all that counts, and a number is all that is believed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aiflow.domain.server.guard import MAX_OPEN_BODY_BYTES, MAX_WEBHOOK_BYTES
from github.places import SECRET, delivery, signed
from server_yard import Answer, Served, served

PATH = "/api/github/webhook"
REPO = "octo/demo"
SETTINGS = f'[github]\nrepo = "{REPO}"\n'
Hints = Callable[[], list[int]]
pytestmark = pytest.mark.spec("ISS-1", "SEC")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give a server of a checkout whose settings name a repository; nothing looks at its issues."""
    root = tmp_path_factory.mktemp("webhook")
    (root / ".git").mkdir()
    (root / "aiflow.toml").write_text(SETTINGS)
    with pytest.MonkeyPatch.context() as patch, served(root) as given:
        patch.setenv("GITHUB_WEBHOOK_SECRET", SECRET)
        yield given


@pytest.fixture
def new_hints(up: Served) -> Hints:
    """Give what was hinted at since the test began."""
    before = up.server.issues.hinted
    return lambda: [number for number in up.server.issues.hinted if number not in before]


def post(up: Served, body: bytes, signature: str | None = None, **more: str) -> Answer:
    """Post a delivery; signed as GitHub does unless said otherwise."""
    sent = {"Content-Type": "application/json", "X-GitHub-Event": "issues"}
    sent |= {"X-Hub-Signature-256": signed(body) if signature is None else signature, **more}
    return up.call("POST", PATH, sent, body)


def test_what_is_signed_is_a_hint_without_session_token_or_origin(up: Served, new_hints: Hints) -> None:
    for _ in range(3):
        answer = post(up, delivery(REPO, 17))
        assert (answer.status, answer.json) == (202, {"event": "issues", "request_id": "GH-17"})
    assert post(up, delivery(REPO, 18), Origin="https://github.com").status == 202
    assert new_hints() == [17, 18]


@pytest.mark.parametrize("signature", ["", "sha256=", signed(b"another body"), signed(delivery(REPO, 17), "guessed")])
def test_what_is_forged_does_nothing(up: Served, signature: str, new_hints: Hints) -> None:
    answer = post(up, delivery(REPO, 27), signature)
    assert (answer.status, answer.reason) == (401, "SIGNATURE_INVALID")
    answer = post(up, delivery(REPO, 27), signature, **up.bearer)  # not even who may do everything else
    assert answer.reason == "SIGNATURE_INVALID"
    assert new_hints() == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"zen": "Keep it logically awesome.", "hook_id": 1}',
        delivery("octo/other", 7),
        delivery(REPO, 27, issue={"number": 27, "pull_request": {}}),
        b"no json",
        b"[" * 10_000,
    ],
)
def test_what_is_about_no_issue_of_ours_is_taken_and_left(up: Served, body: bytes, new_hints: Hints) -> None:
    answer = post(up, body)
    assert (answer.status, answer.json["request_id"]) == (202, None)
    assert new_hints() == []


def test_without_a_secret_or_a_repository_it_is_closed(
    up: Served, monkeypatch: pytest.MonkeyPatch, new_hints: Hints
) -> None:
    body = delivery(REPO, 47)
    monkeypatch.setenv("GITHUB_WEBHOOK_SECRET", "")
    for signature in (signed(body, ""), signed(body)):
        answer = post(up, body, signature)
        assert (answer.status, answer.reason) == (503, "WEBHOOK_NOT_SET")
    monkeypatch.setenv("GITHUB_WEBHOOK_SECRET", SECRET)
    settings = Path(up.server.record.root, "aiflow.toml")
    settings.write_text("")
    assert post(up, body).reason == "WEBHOOK_NOT_SET"
    settings.write_text(SETTINGS)
    assert new_hints() == []


def test_another_host_and_another_kind_of_body_are_refused(up: Served, new_hints: Hints) -> None:
    body = delivery(REPO, 57)
    assert post(up, body, Host="evil.example").reason == "HOST_REFUSED"
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert post(up, body, **kind).reason == "CONTENT_TYPE_REFUSED"
    assert up.call("GET", PATH, up.bearer).reason == "METHOD_NOT_ALLOWED"
    assert new_hints() == []


def test_the_largest_delivery_about_an_issue_is_taken_and_more_is_not_read(up: Served) -> None:
    text = "\U0001f600" * 32_768  # 65,536 characters as GitHub counts, twelve bytes each as JSON escapes them
    largest = json.dumps(
        {
            "issue": {"number": 67, "body": text},
            "comment": {"body": text},
            "changes": {"body": {"from": text}},
            "repository": {"full_name": REPO},
        }
    ).encode()
    assert post(up, largest).status == 202
    sent = {"Content-Type": "application/json", "X-Hub-Signature-256": signed(b"")}
    for size in (MAX_WEBHOOK_BYTES + 1, 10_000_000):
        answer = up.call("POST", PATH, {**sent, "Content-Length": str(size)})  # refused by what it says alone
        assert (answer.status, answer.reason) == (413, "BODY_TOO_LARGE")
    unsigned = {"Content-Type": "application/json", "Content-Length": str(MAX_OPEN_BODY_BYTES + 1)}
    assert up.call("POST", PATH, unsigned).reason == "BODY_TOO_LARGE"


def test_what_comes_in_pieces_is_counted_too(up: Served) -> None:
    head = f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{up.port}\r\nContent-Type: application/json\r\n"
    head += f"X-Hub-Signature-256: {signed(b'')}\r\nTransfer-Encoding: chunked\r\n\r\n"
    opened = up.raw(head.encode())
    piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    with contextlib.suppress(ConnectionError):  # it answers before all of it is sent
        for _ in range(MAX_WEBHOOK_BYTES // 65_536 + 1):
            opened.sendall(piece)
    assert b"413" in opened.recv(65_536).splitlines()[0]
