"""A webhook's delivery (ISS-1): whether GitHub sent it, and which issue it is about. Nothing else in it is believed."""

from __future__ import annotations

import hashlib
import hmac
import json
import re

SIGNATURE_HEADER = "X-Hub-Signature-256"
_FORM = "sha256="
_SIGNATURE = re.compile(rf"{_FORM}[0-9a-f]{{64}}")


def is_signed(secret: str, body: bytes, signature: str) -> bool:
    """Return whether a body was signed with the secret; without a secret nothing is."""
    expected = _FORM + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return bool(secret) and hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))


def is_signature(text: str) -> bool:
    """Return whether a text has the form of a signature, true or not."""
    return _SIGNATURE.fullmatch(text) is not None


def hinted_issue(body: bytes, repo: str) -> int | None:
    """Return the number of the issue of our repository that a delivery is about; None if it is about no such."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    issue, name = _inside(document, "issue"), _inside(_inside(document, "repository"), "full_name")
    number = _inside(issue, "number")
    is_ours = isinstance(name, str) and name.casefold() == repo.casefold()
    is_number = isinstance(number, int) and not isinstance(number, bool) and number > 0
    return number if is_ours and is_number and _inside(issue, "pull_request") is None else None  # type: ignore[return-value]


def _inside(document: object, key: str) -> object:
    return document.get(key) if isinstance(document, dict) else None
