"""The agent labels of an issue (ISS-1, ISS-2, ISS-10): what they mean, and which of them are added and removed.

Drawn from the tables of `lifecycle.py`. Single labels are added and removed, the new one first, so that an issue on its
way from one to the other is never without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import ISSUE_TRANSITIONS, IssueEvent, IssueLabel
from aiflow.domain.request import Priority, RequestStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

STATUSES: Mapping[IssueLabel, RequestStatus] = {
    IssueLabel.NONE: RequestStatus.DRAFT,
    IssueLabel.QUEUED: RequestStatus.READY,
    IssueLabel.RETRY: RequestStatus.READY,
    IssueLabel.RUNNING: RequestStatus.RUNNING,
    IssueLabel.BLOCKED: RequestStatus.BLOCKED,
}
# With these a person asks for a run.
ASKING = (IssueLabel.QUEUED, IssueLabel.RETRY)
AGENT_LABELS: Mapping[str, IssueLabel] = {label.value: label for label in IssueLabel if label}
_COMPLETED = (None, "completed")


class LabelChange(NamedTuple):
    """One label to add or remove; the event is its row of the table, None if it repairs something."""

    label: IssueLabel
    is_added: bool
    event: IssueEvent | None


def agent_labels(names: Iterable[str]) -> frozenset[IssueLabel]:
    """Return the agent labels among an issue's labels; GitHub ignores case in labels."""
    return frozenset(AGENT_LABELS[name.lower()] for name in names if name.lower() in AGENT_LABELS)


def agent_label(name: str | None) -> IssueLabel | None:
    """Return the agent label of a name, if it is one."""
    return AGENT_LABELS.get((name or "").lower())


def priority_of(names: Iterable[str]) -> Priority | None:
    """Return the most urgent priority among an issue's labels (P0 to P3)."""
    known = {name.upper() for name in names}
    return next((priority for priority in Priority if priority.value in known), None)


def closed_status(state_reason: str | None) -> RequestStatus:
    """Return what closing an issue means: done if it was completed, archived otherwise (ISS-2).

    A GitHub that gives no reason knows of no other one.
    """
    return RequestStatus.DONE if state_reason in _COMPLETED else RequestStatus.ARCHIVED


def label_changes(
    present: frozenset[IssueLabel], target: IssueLabel, *, is_closed: bool = False
) -> Iterator[LabelChange]:
    """Yield what leads from the labels that are there to the one that should be."""
    event = _event(present, target, is_closed=is_closed)
    if target and target not in present:
        yield LabelChange(target, is_added=True, event=event)
    for label in IssueLabel:
        if label in present and label is not target:
            yield LabelChange(label, is_added=False, event=event)


def _event(present: frozenset[IssueLabel], target: IssueLabel, *, is_closed: bool) -> IssueEvent | None:
    before = [label for label in IssueLabel if label in present and label is not target] or [IssueLabel.NONE]
    events = [event for label in before for event in IssueEvent if ISSUE_TRANSITIONS.get((label, event)) is target]
    is_end = IssueEvent.CLOSED if is_closed else IssueEvent.WITHDRAWN
    return next((event for event in events if target or event is is_end), None)
