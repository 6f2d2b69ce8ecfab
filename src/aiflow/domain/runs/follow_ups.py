"""Follow-ups (REQ-10): further work that the agents of a run proposed, and the draft requests it became.

A draft's id comes from the run and the number of the proposal, so that making it again after a
crash gives the same one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.short_id import short_id
from aiflow.domain.request import RequestId, RequestStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.domain.agents.answers import Role
    from aiflow.domain.agents.proposals import Proposal
    from aiflow.domain.request import Request
    from aiflow.domain.runs.run import Run

MOST_IN_A_RUN = 5
_DATED_RUN = re.compile(r"RUN-(20\d{6})-")
# These no longer wait for a person: the same work proposed again is new work.
_OVER = (RequestStatus.DONE, RequestStatus.ARCHIVED)


class FollowUp(NamedTuple):
    """One proposal: who made it in which step, and the request that it is; None as long as it is none.

    `is_known` of one for which there was a request already.
    """

    number: int
    title: str
    body: str
    role: str
    step_id: str | None = None
    request_id: RequestId | None = None
    is_known: bool = False


class FollowUps(NamedTuple):
    """What the agents of a run proposed, and how much more than a run may."""

    kept: tuple[FollowUp, ...] = ()
    left_out: int = 0

    @property
    def open(self) -> tuple[FollowUp, ...]:
        """Those that are no requests yet."""
        return tuple(each for each in self.kept if each.request_id is None)


def proposed(run: Run, role: Role, proposals: Iterable[Proposal]) -> Run:
    """An agent proposes further work: each once, and at most so many in a run."""
    kept, left_out = list(run.follow_ups.kept), run.follow_ups.left_out
    known = {same_title(each.title) for each in kept}
    for each in proposals:
        if same_title(each.title) in known:
            continue
        known.add(same_title(each.title))
        if len(kept) < MOST_IN_A_RUN:
            kept.append(FollowUp(len(kept) + 1, each.title, each.body, role.value, run.current_step_id))
        else:
            left_out += 1
    return replace(run, follow_ups=FollowUps(tuple(kept), left_out))


def filed(run: Run, number: int, request_id: RequestId, *, is_known: bool) -> Run:
    """A proposal is a request now, or was one before."""
    kept = tuple(
        each._replace(request_id=request_id, is_known=is_known) if each.number == number else each
        for each in run.follow_ups.kept
    )
    return replace(run, follow_ups=run.follow_ups._replace(kept=kept))


def draft_id(run_id: str, number: int, turn: int) -> RequestId:
    """Return the id of a proposal's draft; another `turn` gives another one, where a stranger has the first."""
    dated = _DATED_RUN.match(run_id)
    return RequestId(short_id(f"{run_id}:{number}:{turn}", dated[1] if dated else None))


def same_title(title: str) -> str:
    """Return what titles are compared by: letters and blanks alike, and the full stop at the end, do not count."""
    return " ".join(title.split()).rstrip(".。").casefold()


def find_known(each: FollowUp, requests: Iterable[Request], earlier: Iterable[Run]) -> RequestId | None:
    """Return the request that a proposal was before: of an earlier run of its request, or any open one of that title.

    What a person deleted after an earlier run had proposed it counts, too: they do not want it.
    """
    title = same_title(each.title)
    for old in earlier:
        for other in old.follow_ups.kept:
            if other.request_id is not None and same_title(other.title) == title:
                return other.request_id
    return next((one.id for one in requests if one.status not in _OVER and same_title(one.title) == title), None)
