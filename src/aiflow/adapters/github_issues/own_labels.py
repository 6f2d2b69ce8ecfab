"""aiflow's labels in the repository (ISS-1): made once where they are missing, as far as the account may."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.adapters.github_issues.mirror import IssueMirror
    from aiflow.ports.issues import IssueHost

# A deleted label, or a new right of the account to make one, is noticed this much later.
AGAIN_AFTER = timedelta(days=1)
_NOTE = "labels"
_NOT_ALLOWED = ("GITHUB_RIGHTS", "GITHUB_REFUSED", "GITHUB_GONE")


def ensure_labels(mirror: IssueMirror, host: IssueHost, now: datetime, make: Callable[[IssueHost], object]) -> None:
    """Make the labels that are missing, if that was not checked for a day; a missing right is noted for the doctor."""
    at = mirror.note(_NOTE).get("at")
    if isinstance(at, str) and timedelta() <= now - datetime.fromisoformat(at) < AGAIN_AFTER:
        return
    is_refused = False
    try:
        make(host)
    except AiflowError as error:
        is_refused = error.reason_code in _NOT_ALLOWED
        if not is_refused:  # GitHub is away: the next full pass tries again
            return
    mirror.put_note(_NOTE, {"at": now.isoformat(), "is_refused": is_refused})


def are_labels_refused(mirror: IssueMirror) -> bool:
    """Return whether the account might not make the labels when it was last tried."""
    return mirror.note(_NOTE).get("is_refused") is True
