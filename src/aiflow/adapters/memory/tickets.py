"""Requests that are no files, in memory: tickets with a URL, held by name, started again and never resumed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiflow.domain.agents.call import Feedback
from aiflow.domain.claims import Claimed, Dropped, Lost, Refusal, Settled
from aiflow.domain.issues.telling import StoryKind, StoryLine
from aiflow.domain.lifecycle import PROJECTIONS
from aiflow.domain.request import Request, RequestId, RequestStatus
from aiflow.errors import NotFoundError

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.claims import Comment, NotStarted
    from aiflow.domain.lifecycle import RunOutcome
    from aiflow.domain.request import InvalidRequest
    from aiflow.domain.runs.run import Run

_ID = re.compile(r"MEM-\d+")
_R = RequestStatus
_CLAIMABLE = (_R.READY, _R.BLOCKED, _R.RUNNING)
_SETTLED_FROM = {_R.BLOCKED: (_R.RUNNING,), _R.DONE: (_R.RUNNING, _R.BLOCKED)}


@dataclass
class Ticket:
    """One request: what it asks for, which run holds it, and what was said about it."""

    request: Request
    text: str = ""
    holder: str | None = None
    comments: list[Comment] = field(default_factory=list)
    said: list[tuple[datetime, str]] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    not_started: list[NotStarted] = field(default_factory=list)


@dataclass
class MemoryTickets:
    """A source of truth that is not files: ids `MEM-1`, each with a URL as its place."""

    address: str = "https://tickets.example"
    tickets: dict[RequestId, Ticket] = field(default_factory=dict)

    def add(self, number: int, title: str, text: str = "", **fields: Any) -> RequestId:
        """Add a ticket and return its id; it is ready unless the fields say otherwise."""
        request_id = RequestId(f"MEM-{number}")
        request = Request(request_id, f"{self.address}/{number}", title, status=_R.READY)
        self.tickets[request_id] = Ticket(request._replace(**fields), text)
        return request_id

    def hold_elsewhere(self, request_id: RequestId, run_id: str) -> None:
        """Let a run that is not of this checkout have a ticket."""
        ticket = self._ticket(request_id)
        ticket.holder = run_id
        ticket.request = ticket.request._replace(
            status=_R.RUNNING, kept=Refusal("REQUEST_LOCKED", (("holder", run_id),))
        )

    def set_status(self, request_id: RequestId, status: RequestStatus) -> None:
        """Give a ticket another status, as a person does where it is kept."""
        ticket = self._ticket(request_id)
        ticket.request = ticket.request._replace(status=status, kept=None)

    def owns(self, request_id: RequestId) -> bool:
        """Recognize an id by its form."""
        return _ID.fullmatch(request_id) is not None

    def load_all(self) -> tuple[list[Request], list[InvalidRequest]]:
        """Read every ticket; none of them can be broken."""
        return [ticket.request for ticket in self.tickets.values()], []

    def load(self, request_id: RequestId) -> Request:
        """Return one ticket as it is now."""
        return self._ticket(request_id).request

    def body(self, request_id: RequestId) -> str:
        """Return a ticket's text."""
        return self._ticket(request_id).text

    def status(self, request_id: RequestId) -> RequestStatus | None:
        """Return a ticket's status; None if there is none."""
        ticket = self.tickets.get(request_id)
        return ticket.request.status if ticket else None

    def claim(self, request_id: RequestId, run_id: str) -> Claimed | Lost:
        """Write the run's name on a ticket; one that another run has is lost."""
        ticket = self._ticket(request_id)
        was = ticket.request.status
        if was not in _CLAIMABLE:
            return Lost(was)
        if was is _R.RUNNING and ticket.holder != run_id:
            return Lost(was, ticket.holder)
        ticket.holder = run_id
        self.set_status(request_id, _R.RUNNING)
        return Claimed(was)

    def not_started(self, request_id: RequestId, why: NotStarted) -> Settled | None:
        """Note why a ticket could not be started; one that a person has to decide about is blocked."""
        ticket = self._ticket(request_id)
        ticket.not_started.append(why)
        if not why.is_blocking:
            return None
        was = ticket.request.status
        self.set_status(request_id, _R.BLOCKED)
        return Settled(was, _R.BLOCKED)

    def confirm(self, request_id: RequestId, run_id: str) -> Refusal | None:
        """Refuse a run whose ticket another one has by now, or a person gave another status."""
        ticket = self._ticket(request_id)
        if ticket.holder != run_id:
            return Refusal("LOCK_MISMATCH", (("holder", ticket.holder or "-"),))
        return None if ticket.request.status is _R.RUNNING else Refusal("CANCELLED")

    def settle(self, request_id: RequestId, run_id: str, outcome: RunOutcome) -> Settled | Dropped:
        """Show what came of a run, if the ticket is still its own."""
        ticket = self.tickets.get(request_id)
        if ticket is None:
            return Dropped(None)
        was, shown = ticket.request.status, PROJECTIONS[outcome].request
        if ticket.request.is_held_elsewhere or (run_id and ticket.holder != run_id):
            return Dropped(was, ticket.holder)
        if was is not shown and was not in _SETTLED_FROM.get(shown, ()):
            return Dropped(was)
        self.set_status(request_id, shown)
        return Settled(was, shown)

    def may_go_on(self, request_id: RequestId) -> Refusal | None:
        """Refuse every stopped run: a ticket is tried again with a new one."""
        request = self.load(request_id)
        return Refusal("ISSUE_RETRY_ONLY", (("status", request.status.value), ("path", request.where)))

    def send_back(self, request_id: RequestId, run_id: str, comment: Comment) -> Settled | Dropped:
        """Add a comment to a ticket and make it ready again."""
        ticket = self._ticket(request_id)
        was = ticket.request.status
        if ticket.holder not in (None, run_id):
            return Dropped(was, ticket.holder)
        ticket.comments.append(comment)
        self.set_status(request_id, _R.READY)
        return Settled(was, _R.READY)

    def undo(self, request_id: RequestId, run_id: str) -> Settled | Dropped:
        """Block a ticket that is done."""
        ticket = self._ticket(request_id)
        was = ticket.request.status
        if ticket.holder not in (None, run_id):
            return Dropped(was, ticket.holder)
        if was not in (_R.DONE, _R.BLOCKED):
            return Dropped(was)
        self.set_status(request_id, _R.BLOCKED)
        return Settled(was, _R.BLOCKED)

    def progress(self, run: Run) -> None:
        """Write down how far a run is, if the ticket is its own."""
        ticket = self.tickets.get(RequestId(run.request_id))
        if ticket is not None and ticket.holder == run.run_id:
            ticket.states.append(run.state.value)

    def feedback(self, request_id: RequestId, since: datetime | None) -> tuple[Feedback, ...]:
        """Return what people said since a moment."""
        said = self._ticket(request_id).said
        return tuple(Feedback("SENT_BACK", text) for at, text in said if since is None or at > since)

    def story(self, request_id: RequestId) -> tuple[StoryLine, ...]:
        """Return what people said."""
        said = self._ticket(request_id).said
        return tuple(StoryLine(at, StoryKind.COMMENT, "somebody", text) for at, text in said)

    def _ticket(self, request_id: RequestId) -> Ticket:
        try:
            return self.tickets[request_id]
        except KeyError:
            raise NotFoundError(request_id=request_id) from None
