"""A webhook's delivery (ISS-1): only what GitHub signed is taken, and only the number of our issue is believed."""

from __future__ import annotations

import json

import pytest

from aiflow.domain.issues.webhook import hinted_issue, is_signed

SECRET, BODY = "It's a Secret to Everybody", b"Hello, World!"
SIGNATURE = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


@pytest.mark.spec("ISS-1")
def test_githubs_own_example_is_signed() -> None:
    assert is_signed(SECRET, BODY, SIGNATURE)


@pytest.mark.spec("ISS-1")
@pytest.mark.parametrize(
    ("secret", "body", "signature"),
    [
        (SECRET, BODY + b"!", SIGNATURE),
        (SECRET[:-1], BODY, SIGNATURE),
        (SECRET, BODY, ""),
        (SECRET, BODY, SIGNATURE.upper()),
        (SECRET, BODY, SIGNATURE.removeprefix("sha256=")),
        (SECRET, BODY, "sha1=" + SIGNATURE[7:]),
        (SECRET, BODY, SIGNATURE + " "),
        (SECRET, BODY, "sha256=é\udcff"),
        # What an empty secret signs is known to everybody.
        ("", BODY, "sha256=2bbcfa9524f3218c7a34b30e6936f8b1a4516cb097f1a85a1c7d98b5977ec769"),
    ],
)
def test_anything_else_is_forged(secret: str, body: bytes, signature: str) -> None:
    assert not is_signed(secret, body, signature)


def delivery(**parts: object) -> bytes:
    return json.dumps({"issue": {"number": 7}, "repository": {"full_name": "octo/demo"}, **parts}).encode()


@pytest.mark.spec("ISS-1")
def test_a_delivery_is_a_hint_at_one_issue_of_ours() -> None:
    assert hinted_issue(delivery(), "octo/demo") == 7
    assert hinted_issue(delivery(), "Octo/Demo") == 7
    assert (
        hinted_issue(delivery(action="deleted", sender={"login": "x"}, label={"name": "agent:queued"}), "octo/demo")
        == 7
    )


@pytest.mark.spec("ISS-1")
@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"null", b"[]", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"zen": "Keep it logically awesome."}'),
        delivery(repository={"full_name": "octo/other"}),
        delivery(repository="octo/demo"),
        delivery(repository=None),
        delivery(issue=None),
        delivery(issue={"number": "7"}),
        delivery(issue={"number": True}),
        delivery(issue={"number": -7}),
        delivery(issue={"number": 7.5}),
        delivery(issue={"number": 7, "pull_request": {"url": "x"}}),
    ],
)
def test_nothing_else_is_believed(body: bytes) -> None:
    assert hinted_issue(body, "octo/demo") is None
