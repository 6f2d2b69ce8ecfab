"""Request files as a request source (REQ-3, REQ-5): which run works on one, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from aiflow.domain.request import InvalidRequest, Request, RequestStatus
from aiflow.errors import AiflowError, ConflictError, EnvironmentProblemError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from aiflow.domain.agents.call import Feedback
    from aiflow.domain.backlog.metadata import Change
    from aiflow.domain.claims import Claimed, Comment, Dropped, Lost, NotStarted, Refusal, Settled
    from aiflow.domain.issues.telling import StoryLine
    from aiflow.domain.lifecycle import RunOutcome
    from aiflow.domain.request import RequestId, Value
    from aiflow.domain.runs.run import Run

# From these a run may begin or continue; `running` is one that continues after a crash.
_CLAIMABLE = (RequestStatus.READY, RequestStatus.BLOCKED, RequestStatus.RUNNING)


class RequestTexts(Protocol):
    """The files themselves: `requests/*.md`, or texts in memory."""

    def load(self) -> tuple[list[Request], list[InvalidRequest]]:
        """Read every request; a broken one stops nothing."""

    def read(self, request_id: RequestId) -> Request | InvalidRequest:
        """Read one request as it is now, without looking at the others."""

    def body(self, request_id: RequestId) -> str:
        """Return a request's text without its metadata."""

    def edit(
        self, request_id: RequestId, changes: Mapping[str, Change], body: tuple[str, str] | None = None
    ) -> dict[str, tuple[Value, Value]]:
        """Change keys (and the body), return key -> (old, new) of what really changed."""


class FileSource:
    """The requests of one checkout, with their status kept true.

    What only a run needs is imported when it is needed: `aiflow next` reads a backlog and nothing else (PRF-1).
    """

    def __init__(self, files: RequestTexts) -> None:
        self._files = files

    @staticmethod
    def owns(request_id: RequestId) -> bool:  # noqa: ARG004 - see the next line
        """Any id may be a file's."""
        return True

    def load_all(self) -> tuple[list[Request], list[InvalidRequest]]:
        """Read every request; a broken one stops nothing."""
        return self._files.load()

    def load(self, request_id: RequestId) -> Request:
        """Return one request as it is now."""
        request = self._files.read(request_id)
        if isinstance(request, InvalidRequest):
            raise ConflictError(reason_code=request.reason_code, request_id=request_id, path=request.where)
        return request

    def body(self, request_id: RequestId) -> str:
        """Return a request's text without its metadata."""
        return self._files.body(request_id)

    def status(self, request_id: RequestId) -> RequestStatus | None:
        """Return a request's status as it is now; None if there is no file that can be read."""
        try:
            return self.load(request_id).status
        except AiflowError:
            return None

    def claim(self, request_id: RequestId, run_id: str) -> Claimed | Lost:  # noqa: ARG002 - no run id is written (REQ-7)
        """Set a request running, unless a person took it elsewhere."""
        from aiflow.domain.claims import Claimed, Lost
        from aiflow.domain.lifecycle import ENGINE_TRANSITIONS, RequestEvent, advance

        status = self.load(request_id).status
        if status is RequestStatus.RUNNING:
            return Claimed(status)
        if status not in _CLAIMABLE:
            return Lost(status)
        event = RequestEvent.STARTED if status is RequestStatus.READY else RequestEvent.RESUMED
        if self._set(request_id, status, advance(ENGINE_TRANSITIONS, status, event)):
            return Claimed(status)
        return Lost(self.load(request_id).status)

    @staticmethod
    def not_started(request_id: RequestId, why: NotStarted) -> Settled | None:  # noqa: ARG004
        """Keep a file as it is: the person who starts it sees why it did not."""
        return None

    @staticmethod
    def confirm(request_id: RequestId, run_id: str) -> Refusal | None:  # noqa: ARG004
        """Refuse nothing: to end a file's run, a person cancels it."""
        return None

    def settle(self, request_id: RequestId, run_id: str, outcome: RunOutcome) -> Settled | Dropped:  # noqa: ARG002
        """Set the status that an outcome means; one that a person set meanwhile stays."""
        from aiflow.domain.claims import Dropped

        try:
            return self._settle(request_id, outcome)
        except (NotFoundError, ConflictError):  # the file is gone or broken: there is nothing to show it on
            return Dropped(None)
        except EnvironmentProblemError as error:  # so is the whole folder (`git clean -fdx`)
            if error.reason_code != "REQUESTS_DIR_MISSING":
                raise
            return Dropped(None)

    def _settle(self, request_id: RequestId, outcome: RunOutcome) -> Settled | Dropped:
        from aiflow.domain.claims import Dropped, Settled
        from aiflow.domain.lifecycle import ENGINE_TRANSITIONS, PROJECTIONS, RequestEvent

        ends = {RequestStatus.BLOCKED: RequestEvent.STOPPED, RequestStatus.DONE: RequestEvent.ACCEPTED}
        shown = PROJECTIONS[outcome].request
        status = self.load(request_id).status
        event = ends.get(shown)
        target = ENGINE_TRANSITIONS.get((status, event)) if event else None
        if target is None:
            return Settled(status, status) if status is shown else Dropped(status)
        if self._set(request_id, status, target):
            return Settled(status, target)
        return Dropped(self.load(request_id).status)

    def may_go_on(self, request_id: RequestId) -> Refusal | None:
        """Refuse what a person put away."""
        from aiflow.domain.claims import Refusal
        from aiflow.messages.details import words

        status = self.load(request_id).status
        if status in _CLAIMABLE:
            return None
        return Refusal("NOT_READY", (("status", status.value), ("detail", words("refused.status", status=status))))

    def send_back(self, request_id: RequestId, run_id: str, comment: Comment) -> Settled:  # noqa: ARG002
        """Append a comment to the body, below a heading, and make the request ready, in one write (REQ-6)."""
        from aiflow.domain.backlog.metadata import Change
        from aiflow.domain.claims import Settled
        from aiflow.domain.lifecycle import ENGINE_TRANSITIONS, RequestEvent

        status = self.load(request_id).status
        target = ENGINE_TRANSITIONS.get((status, RequestEvent.SENT_BACK), status)
        body = self._files.body(request_id)
        changes = {"status": Change(target.value, expected=status.value)}
        more = f"{body.rstrip()}\n\n## {comment.title}\n\n{comment.text.strip()}\n"
        self._files.edit(request_id, changes, (body, more))
        return Settled(status, target)

    def undo(self, request_id: RequestId, run_id: str) -> Settled | Dropped:  # noqa: ARG002
        """Block a request that is done; one that a person took elsewhere stays there."""
        from aiflow.domain.claims import Dropped, Settled
        from aiflow.domain.lifecycle import ENGINE_TRANSITIONS, RequestEvent

        status = self.load(request_id).status
        target = ENGINE_TRANSITIONS.get((status, RequestEvent.UNDONE))
        if status is RequestStatus.BLOCKED:  # shown already
            return Settled(status, status)
        if target is not None and self._set(request_id, status, target):
            return Settled(status, target)
        return Dropped(self.load(request_id).status)

    @staticmethod
    def progress(run: Run) -> None:
        """Show nothing: what a run does is in its own files."""

    @staticmethod
    def feedback(request_id: RequestId, since: datetime | None) -> tuple[Feedback, ...]:  # noqa: ARG004
        """Return nothing: people write their comments on a file into it."""
        return ()

    @staticmethod
    def story(request_id: RequestId) -> tuple[StoryLine, ...]:  # noqa: ARG004
        """Return nothing: git has the story of a file."""
        return ()

    def _set(self, request_id: RequestId, old: RequestStatus, new: RequestStatus) -> bool:
        """Change the status if it still says what we read (REQ-3)."""
        from aiflow.domain.backlog.metadata import Change

        try:
            self._files.edit(request_id, {"status": Change(new.value, expected=old.value)})
        except ConflictError:  # a person was faster, and is right
            return False
        return True
