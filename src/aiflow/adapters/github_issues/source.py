"""Issues as a source of requests (ISS-2): read from the mirror, claimed and settled at GitHub.

What could not be written is written by the next look: `tend` compares the runs here with what the issue shows, so the
runs themselves are the outbox (ISS-4). Until then what is known here counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.agents.call import Feedback
from aiflow.domain.claims import Dropped, Refusal, Settled
from aiflow.domain.issues.headers import holder, read_trails
from aiflow.domain.issues.requests import issue_number, said_since
from aiflow.domain.lifecycle import PROJECTIONS
from aiflow.domain.request import RequestStatus
from aiflow.errors import AiflowError, NotFoundError

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.adapters.github_issues.at_work import IssueWork
    from aiflow.adapters.github_issues.book import IssueBook
    from aiflow.domain.claims import Claimed, Comment, Lost
    from aiflow.domain.issues.issue import Story
    from aiflow.domain.lifecycle import RunOutcome
    from aiflow.domain.request import InvalidRequest, Request, RequestId
    from aiflow.domain.runs.run import Run


class GitHubIssues:
    """The issues of one repository."""

    def __init__(self, book: IssueBook, work: IssueWork, *, with_strangers: bool = False) -> None:
        self._book, self._work = book, work
        self._with_strangers = with_strangers

    @staticmethod
    def owns(request_id: RequestId) -> bool:
        """Tell an id by its form."""
        return issue_number(request_id) is not None

    def load_all(self) -> tuple[list[Request], list[InvalidRequest]]:
        """Read every issue that was seen; none of them can be broken."""
        stories = self._book.mirror.stories()
        known = {story.issue.number: story.issue for story in stories}
        return [self._book.request(story, known) for story in stories], []

    def load(self, request_id: RequestId) -> Request:
        """Return an issue as it was last seen."""
        return self._book.request(self._story(request_id))

    def body(self, request_id: RequestId) -> str:
        """Return an issue's text."""
        return self._story(request_id).issue.body

    def status(self, request_id: RequestId) -> RequestStatus | None:
        """Return an issue's status as it was last seen."""
        try:
            return self.load(request_id).status
        except NotFoundError:
            return None

    def claim(self, request_id: RequestId, run_id: str) -> Claimed | Lost:
        """Claim an issue at GitHub: it is read anew, and nothing starts without a complete answer (ISS-3)."""
        return self._work.claim(_number(request_id), run_id)

    def settle(self, request_id: RequestId, run_id: str, outcome: RunOutcome) -> Settled | Dropped:
        """Show a run's end on its issue, now or by the next look; dropped if another run has it (ISS-4)."""
        try:
            story = self._story(request_id)
        except NotFoundError:
            return Dropped(None)
        was = self._book.request(story).status
        view = self._book.view(story)
        has_it = holder(read_trails(story, view.trust))
        if run_id and has_it is not None and has_it.run_id != run_id:
            return Dropped(was, has_it.run_id)
        self._work.show_end(_number(request_id), run_id)
        return Settled(was, PROJECTIONS[outcome].request)

    def may_go_on(self, request_id: RequestId) -> Refusal | None:
        """Refuse a run that has stopped on its issue: it is tried again with a new one (ISS-6)."""
        request = self.load(request_id)
        if request.status is RequestStatus.RUNNING:
            return None
        return Refusal("ISSUE_RETRY_ONLY", (("status", request.status.value), ("path", request.where)))

    def send_back(self, request_id: RequestId, run_id: str, comment: Comment) -> Settled | Dropped:
        """Say what is missing and ask for a new run; a comment that cannot be written sends nothing back."""
        was = self.load(request_id).status
        self._work.ask_again(_number(request_id), run_id, comment.text)
        return Settled(was, RequestStatus.READY)

    def progress(self, run: Run) -> None:
        """Show how far a run is, beside its work."""
        self._work.show_progress(run)

    def feedback(self, request_id: RequestId, since: datetime | None) -> tuple[Feedback, ...]:
        """Return what people said since a moment, read anew where GitHub answers."""
        try:
            story = self._work.look(_number(request_id))
        except AiflowError:
            story = self._story(request_id)
        view = self._book.view(story or self._story(request_id))
        said = said_since(view, since, with_strangers=self._with_strangers)
        return tuple(Feedback("SENT_BACK", text) for text in said)

    def _story(self, request_id: RequestId) -> Story:
        story = self._book.mirror.story(_number(request_id))
        if story is None:
            raise NotFoundError(request_id=request_id)
        return story


def _number(request_id: RequestId) -> int:
    number = issue_number(request_id)
    if number is None:
        raise NotFoundError(request_id=request_id)
    return number
