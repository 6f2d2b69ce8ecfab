"""Issues as a source of requests (ISS-2): read from the mirror, claimed and settled at GitHub.

What could not be written is written by the next look: `tend` compares the runs here with what the issue shows, so the
runs themselves are the outbox (ISS-4). Until then what is known here counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.adapters.github_issues import start
from aiflow.domain.agents.call import Feedback
from aiflow.domain.claims import Dropped, Refusal, Settled
from aiflow.domain.issue_ways import issue_number
from aiflow.domain.issues.headers import holder, read_trails
from aiflow.domain.issues.requests import said_since
from aiflow.domain.issues.results import shown_pull
from aiflow.domain.issues.standing import stand
from aiflow.domain.issues.telling import tell
from aiflow.domain.lifecycle import PROJECTIONS
from aiflow.domain.request import RequestStatus
from aiflow.errors import AiflowError, NotFoundError

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.adapters.github_issues.at_work import IssueWork
    from aiflow.adapters.github_issues.book import IssueBook
    from aiflow.domain.claims import Claimed, Comment, Lost, NotStarted
    from aiflow.domain.issues.issue import Story
    from aiflow.domain.issues.telling import StoryLine
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
        """Recognize an id by its form."""
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
        """Claim an issue at GitHub: it is read again, and nothing starts without a complete answer (ISS-3)."""
        return self._work.claim(_number(request_id), run_id)

    def not_started(self, request_id: RequestId, why: NotStarted) -> Settled | None:
        """Say on an issue, once for each cause, that no run of it could begin; without a run id it is blocked."""
        return self._work.not_started(_number(request_id), why)

    def confirm(self, request_id: RequestId, run_id: str) -> Refusal | None:
        """Look at an issue once more just before the first agent call of its run (ISS-3)."""
        return self._work.confirm(_number(request_id), run_id)

    def settle(self, request_id: RequestId, run_id: str, outcome: RunOutcome) -> Settled | Dropped:
        """Show a run's end on its issue, now or by the next look; dropped if another run has it (ISS-4)."""
        try:
            story = self._now(request_id)
        except NotFoundError:
            return Dropped(None)
        was = self._book.request(story).status
        view = self._book.view(story)
        has_it = holder(read_trails(story, view.trust))
        if run_id and has_it is not None and has_it.run_id != run_id:
            return Dropped(was, has_it.run_id)
        self._work.show_end(_number(request_id), run_id)
        return Settled(was, PROJECTIONS[outcome].request, self._pull_url(request_id, run_id))

    def may_go_on(self, request_id: RequestId) -> Refusal | None:
        """Refuse a run that has stopped on its issue: it is tried again with a new one (ISS-6)."""
        request = self.load(request_id)
        if request.status is RequestStatus.RUNNING:
            return None
        return Refusal("ISSUE_RETRY_ONLY", (("status", request.status.value), ("path", request.where)))

    def send_back(self, request_id: RequestId, run_id: str, comment: Comment) -> Settled | Dropped:
        """Say what is missing and ask for a new run; a comment that cannot be written sends nothing back."""
        was = self.load(request_id).status
        other = self._work.ask_again(_number(request_id), run_id, comment.text)
        if other is not None:
            return Dropped(self.load(request_id).status, other)
        return Settled(was, RequestStatus.READY)

    def undo(self, request_id: RequestId, run_id: str) -> Settled | Dropped:  # noqa: ARG002
        """Change nothing: a closed issue is opened again by a person (`usecases.runs.undo` refuses it before)."""
        return Dropped(self.load(request_id).status)

    def progress(self, run: Run) -> None:
        """Show how far a run is, beside its work."""
        self._work.show_progress(run)

    def feedback(self, request_id: RequestId, since: datetime | None) -> tuple[Feedback, ...]:
        """Return what people said since a moment or the last stop, read again where GitHub answers.

        A run that has stopped is closed only after somebody asked for a new one, and may be another checkout's: what
        they said is older than that, or than anything here. Before the first run nothing was said to one.
        """
        view = self._book.view(self._whole(request_id))
        stop = stand(view).stop
        since = min(filter(None, (since, stop.at if stop else None)), default=None)
        if since is None:
            return ()
        said = said_since(view, since, with_strangers=self._with_strangers)
        return tuple(Feedback("SENT_BACK", text) for text in said)

    def _whole(self, request_id: RequestId) -> Story:
        """Return an issue with every comment that it counts, as far as GitHub's list catches up in time."""
        for look in range(start.LOOKS):
            if look:
                self._book.time.sleep(start.SECONDS_BETWEEN)
            story = self._now(request_id)
            if story.has_all_comments:
                break
        return story

    def _now(self, request_id: RequestId) -> Story:
        """Return an issue read again, or as it was last seen where GitHub does not answer."""
        try:
            story = self._work.look(_number(request_id))
        except AiflowError:
            story = None
        return story or self._story(request_id)

    def _pull_url(self, request_id: RequestId, run_id: str) -> str | None:
        """Return the pull request that the issue names as a run's."""
        story = self._book.mirror.story(_number(request_id))
        return shown_pull(self._book.view(story), run_id) if story is not None else None

    def story(self, request_id: RequestId) -> tuple[StoryLine, ...]:
        """Return an issue's story as it was last seen."""
        story = self._story(request_id)
        return tell(story, self._book.view(story).trust)

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
