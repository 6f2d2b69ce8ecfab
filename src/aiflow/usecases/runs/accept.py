"""Accept a finished run, or send it back (REQ-6): what a person decides in the morning."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import Actor, decided
from aiflow.domain.agents.plan import one_line
from aiflow.domain.backlog.metadata import MistakeError, check_text
from aiflow.domain.issue_ways import is_issue
from aiflow.domain.lifecycle import RunState
from aiflow.domain.next_action import OPEN, ActionKind, NextAction, shell
from aiflow.domain.reasons import way_to_mend
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.runs.events import sent_back
from aiflow.domain.runs.stopped import recommended
from aiflow.errors import BadInputError, ConflictError
from aiflow.messages.details import words
from aiflow.usecases.runs import claims
from aiflow.usecases.runs.ending import record_verdict
from aiflow.usecases.runs.find import newest_run_id, require_request
from aiflow.usecases.runs.locks import reclaim_locks, take_lock
from aiflow.usecases.runs.merge import bring_in
from aiflow.usecases.runs.recover import settle_orphan
from aiflow.usecases.runs.settle import settle_run
from aiflow.usecases.runs.trial import discard_merge, put_back
from aiflow.usecases.runs.undo import catch_up, finish_undo
from aiflow.usecases.runs.work import holding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aiflow.domain.request import Request
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.runs.work import Work

ACCEPTABLE = (RequestStatus.BLOCKED, RequestStatus.RUNNING, RequestStatus.DONE)
RETURNABLE = (RequestStatus.BLOCKED, RequestStatus.READY)
UNSAVED_SHOWN = 20


def accept_run(engine: Engine, run: Run) -> Run:
    """Bring a finished run into the base branch and set its request done; returns it with the reason if it cannot be.

    Beside a run of another request this is harmless, so it does not wait for one.
    """
    request_id = RequestId(run.request_id)
    reclaim_locks(engine)
    require_request(engine, run)
    _decide(engine, run, "accept")
    lease = take_lock(engine, request_id, run.run_id, beside_others=True)
    with holding(engine, lease, run) as work:
        finish_undo(work)
        require_done(engine, work.run)
        engine.voice.observe(work.run)
        if not work.run.accepted_as:
            put_back(work)
            require_saved(engine, work.run)
            bring_in(work, is_automatic=False)
        if work.run.accepted_as:
            settle_run(work, work.run)
    return work.run


def require_done(engine: Engine, run: Run) -> None:
    """Refuse what is not finished, was replaced by a newer run, or whose request a person took elsewhere."""
    request = engine.source.load(RequestId(run.request_id))
    if run.state is not RunState.DONE:
        raise refused(run, f"{run.run_id}: {run.state}")
    _require_newest(engine, run, request)
    if request.status not in ACCEPTABLE:
        raise refused(run, words("refused.status", status=request.status))


def require_saved(engine: Engine, run: Run) -> None:
    """Refuse while a person has something in the run's worktree that no commit has: it would be left out, or lost."""
    unsaved = engine.merging.has_unsaved(run.place)
    if unsaved:
        path = shlex.quote(run.place.path)
        raise ConflictError(
            reason_code="WORKTREE_DIRTY",
            request_id=run.request_id,
            run_id=run.run_id,
            detail="\n".join([f"{engine.voice.texts('accept.unsaved')} {run.place.path}", *unsaved[:UNSAVED_SHOWN]]),
            commands=tuple(shell(f"git -C {path} {what}") for what in ("status", "add -A", "commit")),
        )


def send_back(engine: Engine, run: Run, comment: str, *, is_dropped: bool = False) -> Run:
    """Close a run that waits, add the comment to its request and make it ready again (REQ-6).

    The next run continues its branch, or if it `is_dropped` starts from the base (REQ-6a). The run is closed first: a
    kill between leaves a request that is still blocked, and sending back again ends it.
    """
    if not comment.strip():
        detail = engine.voice.texts("send_back.empty")
        raise BadInputError(reason_code="INPUT_INVALID", request_id=run.request_id, detail=detail)
    request_id = RequestId(run.request_id)
    reclaim_locks(engine)
    require_request(engine, run)
    settle_orphan(engine, request_id)  # its process may have crashed while it was accepted automatically
    lease = take_lock(engine, request_id, run.run_id, beside_others=True)
    with holding(engine, lease, run) as work:
        catch_up(work)
        _require_returnable(engine, work.run)
        _decide(engine, run, "send_back")
        if not _is_told(engine, work.run, comment.strip(), is_dropped=is_dropped):
            if is_issue(run.request_id):  # what could not be posted closes nothing, and a look closes what was posted
                claims.send_back(engine, request_id, run.run_id, comment.strip())
            if not _is_sent_back(work.run):
                _close(work, comment.strip(), is_dropped=is_dropped)
            elif work.run.is_dropped is not is_dropped:
                work.save(replace(work.run, is_dropped=is_dropped))
            if not is_issue(run.request_id):
                claims.send_back(engine, request_id, run.run_id, comment.strip())
    return work.run


def close_for_retry(engine: Engine, run: Run, comment: str) -> None:
    """Close a run that waits because its source was asked for a new one; one that is closed stays as it is."""
    lease = take_lock(engine, RequestId(run.request_id), run.run_id, beside_others=True)
    with holding(engine, lease, run) as work:
        is_over = work.run.is_active or work.run.accepted_as or work.run.replaced_by or _is_sent_back(work.run)
        if not is_over:
            _close(work, comment)


class LineComment(NamedTuple):
    """What a person says about one line of a change; `quote` is that line."""

    path: str
    line: int
    text: str
    quote: str = ""


MAX_QUOTE = 200


def whole_comment(run: Run, comment: str, lines: Iterable[LineComment]) -> str:
    """Write a comment and the remarks on single lines as one text, each remark with its place.

    A number alone means nothing once the base is merged in: the line is quoted, or the commit named that it counts in.
    """
    kept = None if run.work.is_done else run.work.kept
    placed = "\n".join(_placed(each, kept or run.tip) for each in lines)
    text = "\n\n".join(filter(None, (comment.strip(), placed)))
    try:
        check_text(text)
    except MistakeError:
        raise BadInputError(detail=words("api.not_text")) from None
    return text


def _placed(said: LineComment, commit: str) -> str:
    quote = one_line(said.quote).replace("`", "'")
    shown = quote if len(quote) <= MAX_QUOTE else f"{quote[:MAX_QUOTE]}…"
    meant = f"at `{shown}`" if shown else f"in {commit[:12]}"
    return f"{said.path}:{said.line}: {said.text.strip()} ({meant})"


def _require_returnable(engine: Engine, run: Run) -> None:
    request = engine.source.load(RequestId(run.request_id))
    if run.is_active or run.accepted_as or run.replaced_by:
        state = "accepted" if run.accepted_as else "replaced" if run.replaced_by else run.state
        raise refused(run, f"{run.run_id}: {state}")
    _require_newest(engine, run, request)
    if request.status not in RETURNABLE:
        raise refused(run, words("refused.status", status=request.status))


def _require_newest(engine: Engine, run: Run, request: Request) -> None:
    """Refuse a run that has a later one: here, or elsewhere as its source shows (ISS-4)."""
    newest = newest_run_id(engine, RequestId(run.request_id)) or run.run_id
    if newest > run.run_id:
        raise refused(run, words("refused.newer", newer=newest, run_id=run.run_id))
    if request.run_elsewhere is not None:
        raise refused(run, words("refused.newer", newer=request.run_elsewhere, run_id=run.run_id))


def _is_sent_back(run: Run) -> bool:
    return run.error is not None and run.error.reason_code == "SENT_BACK"


def _is_told(engine: Engine, run: Run, comment: str, *, is_dropped: bool) -> bool:
    """Return whether the request has this comment: it comes with the status `ready`, in one write."""
    is_ready = engine.source.load(RequestId(run.request_id)).status is RequestStatus.READY
    is_closed = _is_sent_back(run) and run.is_dropped is is_dropped
    return is_ready and is_closed and run.error is not None and run.error.summary == comment


def _close(work: Work, comment: str, *, is_dropped: bool = False) -> None:
    record_verdict(work, sent_back(work.run, comment, work.engine.time.now(), is_dropped=is_dropped))
    work.engine.control.clear(work.run.run_id)
    discard_merge(work)


def refused(run: Run, detail: str) -> ConflictError:
    """Say why a run cannot be accepted, sent back or brought in line, and what can be done with it."""
    return ConflictError(
        reason_code="RUN_NOT_ACCEPTABLE",
        request_id=run.request_id,
        run_id=run.run_id,
        detail=detail,
        commands=tuple(_open_ways(run)),
    )


def _open_ways(run: Run) -> Iterator[NextAction]:
    """Yield what a person can do with a run as it stands, be it only to look."""
    if run.is_active:
        yield NextAction(ActionKind.LOGS, run.request_id)
        yield NextAction(ActionKind.CANCEL, run.request_id)
    elif run.state is not RunState.DONE and run.error is not None and not (run.replaced_by or _is_sent_back(run)):
        way = way_to_mend(run.error.reason_code, run.request_id, run.error.cause, recommended(run))
        yield from (way,) if way else ()
        yield NextAction(ActionKind.SEND_BACK, run.request_id, options=(("message", OPEN),))
    yield NextAction(ActionKind.SHOW, run.request_id)
    yield NextAction(ActionKind.WHY, run.request_id)


def _decide(engine: Engine, run: Run, what: str) -> None:
    """Record a person's decision."""
    engine.journal.append(decided(engine.time.now(), Actor.PERSON, run, decided=what))
