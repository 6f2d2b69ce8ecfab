"""The agent labels: what they mean and how they change."""

from __future__ import annotations

import itertools

import pytest

from aiflow.domain.issues.labels import agent_labels, closed_status, label_changes, priority_of
from aiflow.domain.lifecycle import IssueLabel
from aiflow.domain.request import Priority, RequestStatus

NONE, QUEUED, RUNNING, BLOCKED, RETRY = IssueLabel


@pytest.mark.spec("ISS-2")
def test_labels_are_read_whatever_their_case_and_other_labels_mean_nothing() -> None:
    assert agent_labels(("bug", "Agent:Queued", "agent:retry", "agent:done", "")) == {QUEUED, RETRY}


@pytest.mark.spec("ISS-2")
@pytest.mark.parametrize(
    ("labels", "priority"),
    [(("P1",), Priority.P1), (("p2", "P0"), Priority.P0), (("priority:P1", "P4", "P"), None), ((), None)],
)
def test_a_priority_is_a_label_of_that_name(labels: tuple[str, ...], priority: Priority | None) -> None:
    assert priority_of(labels) is priority


@pytest.mark.spec("ISS-2")
@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("completed", "done"),
        (None, "done"),
        ("not_planned", "archived"),
        ("duplicate", "archived"),
        ("new", "archived"),
    ],
)
def test_what_closing_means(reason: str | None, status: str) -> None:
    assert closed_status(reason) == RequestStatus(status)


@pytest.mark.spec("ISS-1", "ISS-10")
def test_changes_lead_from_any_labels_to_one_and_never_through_none() -> None:
    every = [frozenset(some) for n in range(5) for some in itertools.combinations([QUEUED, RUNNING, BLOCKED, RETRY], n)]
    for present, target in itertools.product(every, IssueLabel):
        now = set(present)
        for change in label_changes(present, target):
            assert (change.label in now) is not change.is_added, "nothing is written that is there already"
            (now.add if change.is_added else now.remove)(change.label)
            assert now or not target
        assert now == ({target} if target else set())
        assert list(label_changes(frozenset(now), target)) == []


@pytest.mark.spec("ISS-10")
@pytest.mark.parametrize(
    ("present", "target", "event"),
    [
        ([QUEUED], RUNNING, "started"),
        ([RETRY, BLOCKED], RUNNING, "started"),
        ([RUNNING], BLOCKED, "blocked"),
        ([BLOCKED], RETRY, "retried"),
        ([QUEUED], NONE, "withdrawn"),
        ([BLOCKED], RUNNING, None),
        ([], RUNNING, None),
    ],
)
def test_a_change_names_its_row_of_the_table(present: list[IssueLabel], target: IssueLabel, event: str | None) -> None:
    assert {change.event for change in label_changes(frozenset(present), target)} == {event}


@pytest.mark.spec("ISS-9")
def test_labels_that_go_with_a_closed_issue_say_so() -> None:
    assert [change.event for change in label_changes(frozenset({RUNNING}), NONE, is_closed=True)] == ["closed"]
