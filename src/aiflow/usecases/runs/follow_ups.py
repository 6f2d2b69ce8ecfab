"""Make draft requests of what a run's agents proposed (REQ-10), each once, however often the process crashes between.

A draft is made before the run says that it is there. Its id is always the same, so what a kill left is recognized
by its id and by what it says about itself.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from aiflow.domain.request import DEFAULT_PRIORITY, Request, RequestId
from aiflow.domain.runs.follow_ups import draft_id, filed, find_known, proposed, same_title
from aiflow.errors import AiflowError, NotFoundError
from aiflow.usecases.backlog.create import NewRequest, create_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.agents.answers import Role
    from aiflow.domain.agents.proposals import Proposal
    from aiflow.domain.runs.follow_ups import FollowUp
    from aiflow.domain.runs.run import Run
    from aiflow.ports import StepLog
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.runs.work import Work


def take_proposals(work: Work, role: Role, proposals: tuple[Proposal, ...], log: StepLog) -> None:
    """Remember what an agent proposed; it is saved with whatever comes of its call."""
    mask = work.engine.mask
    before = work.run.follow_ups
    masked = (each._replace(title=mask(each.title), body=mask(each.body)) for each in proposals)
    work.run = proposed(work.run, role, masked)
    for each in work.run.follow_ups.kept[len(before.kept) :]:
        log.say(f"[aiflow] proposes further work: {each.title}")
    if left_out := work.run.follow_ups.left_out - before.left_out:
        log.say(f"[aiflow] left out {left_out} more: a run may propose {len(work.run.follow_ups.kept)}")


def file_proposals(work: Work, run: Run) -> Run:
    """Make a draft of whatever a run proposed and is no request yet; returns the run as it knows them.

    A failure is reported, and keeps no run from ending: the run still has the proposal, and it is tried again.
    """
    open_ones = run.follow_ups.open
    if not open_ones:
        return run
    try:
        known = _WhatThereIs(work.engine, run)
        for each in open_ones:
            with work.lease.writing():
                request_id, is_known = _file(work.engine, run, each, known)
            run = filed(run, each.number, request_id, is_known=is_known)
        work.save(replace(work.run, follow_ups=run.follow_ups))
    except (AiflowError, OSError) as error:
        if isinstance(error, AiflowError) and error.reason_code == "LOCK_LOST":
            raise
        titles = ", ".join(each.title for each in run.follow_ups.open)
        work.engine.voice.warn(work.engine.voice.texts("follow_ups.not_filed", titles=titles, problem=str(error)))
    return run


class _WhatThereIs:
    """What there is already: the requests, and what earlier runs of the same request proposed."""

    def __init__(self, engine: Engine, run: Run) -> None:
        self.requests: tuple[Request, ...] = ()
        with contextlib.suppress(AiflowError):  # a source that cannot be asked now keeps no draft from being made
            self.requests = tuple(engine.source.load_all()[0])
        self.earlier = tuple(_earlier(engine, run))


def _earlier(engine: Engine, run: Run) -> Iterator[Run]:
    """Yield the other runs of a run's request."""
    request_id = RequestId(run.request_id)
    for each in engine.runs.all_of(request_id):
        old = engine.runs.load(request_id, each.run_id) if each.run_id != run.run_id else None
        if old is not None:
            yield old


def _file(engine: Engine, run: Run, each: FollowUp, known: _WhatThereIs) -> tuple[RequestId, bool]:
    """Return the request that a proposal is: one there was before, what a kill left of this very one, or a new one."""
    ids = (draft_id(run.run_id, each.number, turn) for turn in count())
    looked = ((request_id, _is_ours(engine, run, each, request_id)) for request_id in ids)
    request_id, is_there = next(found for found in looked if found[1] is not False)
    if is_there:
        return request_id, False
    if same := find_known(each, known.requests, known.earlier):
        return same, True
    new = NewRequest(each.title, each.body, DEFAULT_PRIORITY, request_id=request_id, found_in=run.request_id)
    create_request(new, engine.editor, engine.journal, engine.time.now)
    return request_id, False


def _is_ours(engine: Engine, run: Run, each: FollowUp, request_id: RequestId) -> bool | None:
    """Return whether the request of an id is the draft of this proposal; None if there is no such request."""
    try:
        there = engine.source.load(request_id)
    except NotFoundError:
        return None
    except AiflowError as error:
        return None if error.reason_code == "REQUESTS_DIR_MISSING" else False
    return there.found_in == run.request_id and same_title(there.title) == same_title(each.title)
