"""The labels of a repository (ISS-1): made where they are missing, and never changed where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import IssueLabel

if TYPE_CHECKING:
    from aiflow.messages import Texts
    from aiflow.ports.issues import IssueHost

COLOURS = {
    IssueLabel.QUEUED: "1d76db",
    IssueLabel.RUNNING: "0e8a16",
    IssueLabel.BLOCKED: "d93f0b",
    IssueLabel.RETRY: "fbca04",
}


def make_labels(host: IssueHost, texts: Texts) -> list[tuple[str, bool]]:
    """Make the labels that are missing; returns each with whether it was made now."""
    known = {name.lower() for name in host.labels()}
    made = []
    for label, colour in COLOURS.items():
        is_missing = label.value not in known
        if is_missing:
            host.create_label(label.value, colour, texts(f"issues.label.{label.value.partition(':')[2]}"))
        made.append((label.value, is_missing))
    return made
