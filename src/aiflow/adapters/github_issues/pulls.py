"""Pull requests at GitHub (ISS-9): one for a run, looked for before it is opened; closed with a word about why.

Nothing is kept here: a pull request is known by its branch, and a comment on it by its mark. So whatever was cut off
is finished by the next look, and nothing is done twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.adapters.github_issues.writing import LOST_ANSWER, post_once
from aiflow.domain.issues.marks import find_mark
from aiflow.domain.issues.pulls import NoPull
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from aiflow.domain.issues.pulls import PullDraft
    from aiflow.domain.issues.repository import Pull
    from aiflow.ports.issues import IssueHost

# GitHub will not open it, today or tomorrow: the result says so instead. Everything else waits for the next look.
_REFUSED = ("GITHUB_REFUSED", "GITHUB_RIGHTS", "GITHUB_GONE")


def pull_facts(host: IssueHost, draft: PullDraft | NoPull) -> dict[str, object]:
    """Open a run's pull request unless it is there; return what its result says about it, or why there is none."""
    found = draft if isinstance(draft, NoPull) else _pull_of(host, draft)
    if isinstance(found, NoPull):
        return {"no_pull": found.reason_code, "problem": found.problem}
    return {"pull": found.number, "pull_url": found.url}


def open_pull_facts(host: IssueHost, branch: str) -> dict[str, object]:
    """Return what a result says about a pull request that is open already; nothing if none is, or none may be seen."""
    try:
        found = next((pull for pull in host.pulls(branch) if pull.is_open), None)
    except AiflowError as error:
        if error.reason_code not in _REFUSED:
            raise
        return {}
    return {"pull": found.number, "pull_url": found.url} if found is not None else {}


def close_with_word(host: IssueHost, branch: str, number: int, body: str) -> None:
    """Close a pull request of ours that is open, and say why there; one that is merged, closed or gone stays so."""
    if not any(pull.number == number and pull.is_open for pull in host.pulls(branch)):
        return
    mark = find_mark(body)
    assert mark is not None, "every comment of aiflow's has a mark"
    said = (find_mark(comment.body) for comment in host.comments(number))
    if not any(each is not None and each.key == mark.key for each in said):
        post_once(host, number, body)
    host.close_pull(number)


def merge_of(host: IssueHost, branch: str) -> Pull | None:
    """Return the pull request by which a branch was merged on GitHub, if it was; who may not see them knows of none."""
    try:
        return next((pull for pull in host.pulls(branch) if pull.is_merged and pull.merge_commit), None)
    except AiflowError as error:
        if error.reason_code not in _REFUSED:
            raise
        return None


def _pull_of(host: IssueHost, draft: PullDraft) -> Pull | NoPull:
    """Return the pull request from a branch; one that somebody closed meanwhile is not opened again."""
    there = host.pulls(draft.head)
    if there:
        return there[0]
    try:
        return host.open_pull(*draft)
    except AiflowError as error:
        if error.reason_code not in (LOST_ANSWER, *_REFUSED):
            raise
        there = host.pulls(draft.head) if error.reason_code in (LOST_ANSWER, "GITHUB_REFUSED") else ()
        if there:  # the answer was lost, or a list that lagged behind did not have it yet
            return there[0]
        if error.reason_code == LOST_ANSWER:
            raise
        return NoPull(error.reason_code, str(error.context.get("problem") or ""))
