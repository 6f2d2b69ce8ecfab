"""The progress comment: whose end it shows (ISS-4, ISS-9)."""

from __future__ import annotations

import pytest

from aiflow.domain.issues.marks import MarkKind
from aiflow.domain.issues.progress import is_current, stale_progress
from aiflow.domain.issues.view import IssueView, OwnRun
from aiflow.domain.lifecycle import RunOutcome
from issue_stories import OTHER_RUNNER, TRUST, Teller, at

STOPPED = OwnRun("RUN-1", RunOutcome.NEEDS_INPUT, attempt=1)


def view(teller: Teller) -> IssueView:
    """Look at a story as the checkout whose run has stopped."""
    return IssueView(teller.story, TRUST, at(60), runs=(STOPPED,))


@pytest.mark.spec("ISS-4", "ISS-9")
def test_an_end_that_the_progress_does_not_show_is_shown_until_another_run_began() -> None:
    teller = Teller().label("agent:queued").header("RUN-1")
    teller.mark(MarkKind.PROGRESS, "progress:RUN-1", run_id="RUN-1", outcome="active").ended("RUN-1")
    assert stale_progress(view(teller)) == "RUN-1"
    teller.comment("/retry").header("RUN-2", 2, OTHER_RUNNER)
    assert stale_progress(view(teller)) is None
    assert not is_current(view(teller), "RUN-1", is_active=False)


@pytest.mark.spec("ISS-4")
def test_a_header_that_was_withdrawn_takes_nobodys_place() -> None:
    teller = Teller().header("RUN-1").ended("RUN-1").header("RUN-2", 2, OTHER_RUNNER, withdrawn=True)
    assert is_current(view(teller), "RUN-1", is_active=False)
    assert not is_current(view(teller), "RUN-2", is_active=False)
