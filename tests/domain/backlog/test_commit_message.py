"""The title of a commit that aiflow makes of a request file (REQ-8)."""

from __future__ import annotations

import pytest

from aiflow.domain.backlog.metadata import commit_message
from aiflow.domain.request import Value

pytestmark = pytest.mark.spec("REQ-8")


def test_a_commit_of_a_request_says_what_changed_in_it() -> None:
    assert commit_message("RQ-1", {"status": ("ready", "running")}) == "RQ-1: status ready -> running\n"
    both: dict[str, tuple[Value, Value]] = {"priority": (None, "P0"), "labels": (("a", "b"), ())}
    assert commit_message("RQ-1", both) == "RQ-1: priority - -> P0, labels a, b -> -\n"
    assert commit_message("RQ-1", {}) == "RQ-1: text\n"
    assert commit_message("RQ-1", None) == "RQ-1: new request\n"
