"""GitHub's JSON, whatever it is: nothing that is missing, unknown or odd breaks the reading of the rest."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.adapters.github_issues import read
from aiflow.domain.issues.issue import Right

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["id", "number", "title", "body", "user", "actor", "labels", "label", "name", "state", "state_reason", "created_at",
     "updated_at", "comments", "repository_url", "event", "permission", "permissions", "head", "config", "events",
     "issue_dependencies_summary", "html_url", "login", "type"]
)  # fmt: skip
READERS = [
    *(read.issue_of, read.comment_of, read.event_of, read.blocker_of, read.label_of, read.right_of, read.hook_of),
    *(read.repository_of, read.delivery_of, read.pull_of, read.account_of, read.known_account),
]


@settings(max_examples=50)
@given(document=JSON | st.dictionaries(KEYS, JSON | st.integers(1, 9) | st.just("2026-01-01T00:00:00Z")))
def test_nothing_that_json_can_be_breaks_a_reader(document: Any) -> None:
    for reader in READERS:
        reader(document)


def test_what_is_missing_does_no_harm() -> None:
    issue = read.issue_of({"number": 3})
    assert issue is not None
    assert (issue.title, issue.body, issue.author, issue.labels) == ("", "", None, ())
    assert issue.created_at == datetime(1970, 1, 1, tzinfo=UTC)
    assert read.issue_of({"title": "no number"}) is None
    assert read.issue_of({"number": True}) is None
    assert read.right_of({"permission": "superuser"}) is Right.NONE
    assert read.right_of({}) is Right.NONE
    assert [read.right_of({"permission": name}) for name in ("triage", "maintain")] == [Right.READ, Right.WRITE]


def test_labels_are_named_also_where_they_are_texts() -> None:
    issue = read.issue_of({"number": 3, "labels": ["a", {"name": "b"}, {}, None, {"name": None}]})
    assert issue is not None
    assert issue.labels == ("a", "b")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T12:04:05+09:00", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("yesterday", datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_every_moment_has_an_offset(text: str, moment: datetime) -> None:
    assert read.time_in({"at": text}, "at") == moment
