"""Pull requests of issues (ISS-9): what one says, or why a run has none, and what GitHub closes by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.runs.run import NOTHING_CHANGED, PUSH_FAILED

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run

NEEDS_PUSH = "PULL_NEEDS_PUSH"


class PullDraft(NamedTuple):
    """A pull request that is to be: from which branch into which, and what it says."""

    head: str
    base: str
    title: str
    body: str


class NoPull(NamedTuple):
    """Why a finished run has no pull request: a reason code, and what was wrong, in the words of git or GitHub."""

    reason_code: str
    problem: str = ""


def lack_of_pull(run: Run) -> NoPull | None:
    """Say why no pull request can be opened for a run; None if one can."""
    if not run.has_commits:
        return NoPull(NOTHING_CHANGED)
    if run.is_pushed:
        return None
    return NoPull(PUSH_FAILED, run.push.note or "") if run.push is not None else NoPull(NEEDS_PUSH)
