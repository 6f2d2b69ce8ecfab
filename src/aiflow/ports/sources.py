"""Where requests come from and where their outcome goes: files, issues, or several of them as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from aiflow.domain.agents.call import Feedback
    from aiflow.domain.backlog.metadata import Change
    from aiflow.domain.claims import Claimed, Comment, Dropped, Lost, NotStarted, Refusal, Settled
    from aiflow.domain.issues.telling import StoryLine
    from aiflow.domain.lifecycle import RunOutcome
    from aiflow.domain.request import InvalidRequest, Problem, Request, RequestId, RequestStatus, Value
    from aiflow.domain.runs.run import Run


class RequestSource(Protocol):
    """A source of truth for what is to be done; the engine never asks which one it has.

    A source may be remote: each call may take its time, and nothing is asked twice where once will do.
    """

    def owns(self, request_id: RequestId) -> bool:
        """Return, by its form alone, whether an id is one of this source's."""

    def load_all(self) -> tuple[list[Request], list[InvalidRequest]]:
        """Read every request; a broken one stops nothing."""

    def load(self, request_id: RequestId) -> Request:
        """Return one request as it is now, or raise that there is none or that it cannot be read."""

    def body(self, request_id: RequestId) -> str:
        """Return a request's text without its metadata."""

    def status(self, request_id: RequestId) -> RequestStatus | None:
        """Return a request's status as it is now; None if there is none that can be read."""

    def claim(self, request_id: RequestId, run_id: str) -> Claimed | Lost:
        """Show that a run works on a request; claiming again what this run has claimed already changes nothing."""

    def not_started(self, request_id: RequestId, why: NotStarted) -> Settled | None:
        """Hear that no run of a request could begin; what is shown of it, and how often, is the source's business.

        Returns the status it has now if that changed. Whatever goes wrong with saying so is not raised.
        """

    def confirm(self, request_id: RequestId, run_id: str) -> Refusal | None:
        """Look once more just before a run's first agent call: why it may not begin after all; None if it may.

        If the source cannot be asked, that is raised: nothing is known, and the caller may ask again.
        """

    def settle(self, request_id: RequestId, run_id: str, outcome: RunOutcome) -> Settled | Dropped:
        """Show what a run's end means to its request; what a person set meanwhile stays (REQ-3).

        Without a run id it is the end of whichever run of this checkout had it: that one is lost.
        """

    def may_go_on(self, request_id: RequestId) -> Refusal | None:
        """Return why a stopped run of this request may not continue; None if it may."""

    def send_back(self, request_id: RequestId, run_id: str, comment: Comment) -> Settled | Dropped:
        """Add a comment to a request and make it ready again, both at once (REQ-6)."""

    def undo(self, request_id: RequestId, run_id: str) -> Settled | Dropped:
        """Show that a run's acceptance was undone: a request that is done is blocked, another status stays."""

    def progress(self, run: Run) -> None:
        """Hear of a run that has just been saved; what is shown of it, and how often, is the source's business."""

    def feedback(self, request_id: RequestId, since: datetime | None) -> tuple[Feedback, ...]:
        """Return what people said about a request since a moment, beside its body, for the agents of the next run."""

    def story(self, request_id: RequestId) -> tuple[StoryLine, ...]:
        """Return what people and aiflow said and did where a request is kept, in order, as it was last seen."""


class RequestEditor(Protocol):
    """Requests that aiflow itself can write: files. What is kept elsewhere is edited there, as a refusal says."""

    def edit(
        self,
        request_id: RequestId,
        changes: Mapping[str, Change],
        body: tuple[str, str] | None = None,
        before: str | None = None,
    ) -> dict[str, tuple[Value, Value]]:
        """Change keys (and the body), return key -> (old, new) of what really changed.

        With `before`, only if the whole text is still that.
        """

    def create(self, propose: Callable[[frozenset[str]], RequestId], text: str, values: Mapping[str, Value]) -> str:
        """Create a request under an id that is free, from a text and values for its keys; return where it is."""

    def require_free(self, request_id: str | None) -> None:
        """Refuse an id that is taken, and a place that is not there, before anybody writes a text for it."""

    def whole_text(self, request_id: RequestId) -> str:
        """Return a request's whole text, metadata and all, to be edited as a whole."""

    def rewrite(self, request_id: RequestId, before: str, after: str) -> None:
        """Replace the whole text that a person began with; keys that were changed meanwhile stay as they are now.

        Where both changed the same key, or the body was changed meanwhile, it is a conflict and nothing is written.
        """

    def check_text(self, text: str, request_id: RequestId | None = None) -> Request | InvalidRequest:
        """Read a text as if it were a request, a new one or that of an id."""

    def misspelt_keys(self, request_id: RequestId) -> list[Problem]:
        """Name a request's own keys that were most likely meant as one of ours; none where it cannot have any."""
