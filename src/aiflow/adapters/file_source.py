"""Request files as the engine's request source (REQ-3, REQ-5): which run works on one, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.change import Change
from aiflow.domain.lifecycle import ENGINE_TRANSITIONS, PROJECTIONS, RequestEvent, advance
from aiflow.domain.request import Request, RequestStatus
from aiflow.errors import ConflictError, EnvironmentProblemError, NotFoundError

if TYPE_CHECKING:
    from aiflow.domain.lifecycle import RunOutcome
    from aiflow.domain.request import RequestId
    from aiflow.ports import Clock, Journal, RequestFiles

_CLAIMS = {RequestStatus.READY: RequestEvent.STARTED, RequestStatus.BLOCKED: RequestEvent.RESUMED}
_ENDS = {
    RequestStatus.BLOCKED: RequestEvent.STOPPED,
    RequestStatus.DONE: RequestEvent.ACCEPTED,
}


class FileSource:
    """The requests of one checkout, with their status kept true."""

    def __init__(self, files: RequestFiles, journal: Journal, clock: Clock) -> None:
        self._files = files
        self._journal = journal
        self._clock = clock

    def load(self, request_id: RequestId) -> Request:
        """Return one request as it is now."""
        request = self._files.read(request_id)
        if isinstance(request, Request):
            return request
        raise ConflictError(reason_code=request.reason_code, request_id=request_id, path=request.path)

    def body(self, request_id: RequestId) -> str:
        """Return a request's text without its metadata."""
        return self._files.body(request_id)

    def claim(self, request_id: RequestId, run_id: str) -> RequestStatus | None:
        """Set a request running; None if it is now, else the status a person gave it meanwhile."""
        status = self.load(request_id).status
        if status is RequestStatus.RUNNING:
            return None
        if status not in _CLAIMS:
            return status
        self._set(request_id, run_id, status, advance(ENGINE_TRANSITIONS, status, _CLAIMS[status]))
        now = self.load(request_id).status
        return None if now is RequestStatus.RUNNING else now

    def settle(self, request_id: RequestId, run_id: str, outcome: RunOutcome) -> None:
        """Set the status that an outcome means; one that a person set meanwhile stays."""
        event = _ENDS.get(PROJECTIONS[outcome].request)
        try:
            status = self.load(request_id).status
            target = ENGINE_TRANSITIONS.get((status, event)) if event else None
            if target is not None:
                self._set(request_id, run_id, status, target)
        except (NotFoundError, ConflictError):  # the file is gone or broken: there is nothing to show it on
            return
        except EnvironmentProblemError as error:  # so is the whole folder (`git clean -fdx`)
            if error.reason_code != "REQUESTS_DIR_MISSING":
                raise

    def can_resume(self, request_id: RequestId) -> bool:
        """Tell whether a stopped run of this request may go on."""
        return self.load(request_id).status in (*_CLAIMS, RequestStatus.RUNNING)

    def send_back(self, request_id: RequestId, run_id: str, comment: str) -> None:
        """Append a comment to the body and make the request ready, in one write (REQ-6)."""
        status = self.load(request_id).status
        target = ENGINE_TRANSITIONS.get((status, RequestEvent.SENT_BACK), status)
        body = self._files.body(request_id)
        changes = {"status": Change(target.value, expected=status.value)}
        self._files.edit(request_id, changes, (body, f"{body.rstrip()}\n\n{comment.strip()}\n"))
        self._record(request_id, run_id, status, target)

    def _set(self, request_id: RequestId, run_id: str, old: RequestStatus, new: RequestStatus) -> None:
        """Change the status if it still says what we read (REQ-3)."""
        try:
            self._files.edit(request_id, {"status": Change(new.value, expected=old.value)})
        except ConflictError:  # a person was faster, and is right
            return
        self._record(request_id, run_id, old, new)

    def _record(self, request_id: RequestId, run_id: str, old: RequestStatus, new: RequestStatus) -> None:
        data = {"key": "status", "from": old.value, "to": new.value}
        kind = ActivityKind.STATUS_CHANGED
        self._journal.append(Activity(self._clock(), kind, Actor.ENGINE, request_id, run_id or None, data=data))
