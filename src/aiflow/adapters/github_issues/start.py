"""Start a run of an issue (ISS-3, FR-101): header, complete read-back, the lowest wins, then the label.

Failures as in the seed's §8: a comment that fails changes no label; a label that fails is tried once more and then the
issue is blocked. A lost answer is looked for before anything is posted again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.adapters.github_issues.writing import marked_comment, post_once, relabel
from aiflow.domain.claims import Claimed, Lost
from aiflow.domain.issues.headers import StartVerdict, holder, judge_start, read_trails
from aiflow.domain.issues.labels import agent_labels, label_changes
from aiflow.domain.issues.marks import MarkKind
from aiflow.domain.issues.requests import start_header
from aiflow.domain.issues.standing import stand
from aiflow.domain.issues.view import Post
from aiflow.domain.lifecycle import IssueLabel, RunOutcome
from aiflow.domain.reasons import CATALOGUE
from aiflow.domain.request import RequestStatus
from aiflow.errors import AiflowError, EnvironmentProblemError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.adapters.github_issues.at_work import IssueWords
    from aiflow.adapters.github_issues.book import IssueBook
    from aiflow.domain.issues.headers import RunHeader
    from aiflow.domain.issues.issue import Story
    from aiflow.ports.issues import IssueHost

# A list of comments that lags behind is asked again, so often and so far apart.
LOOKS, SECONDS_BETWEEN = 6, 2.0


class IssueStart:
    """One start of one issue."""

    def __init__(
        self,
        book: IssueBook,
        host: IssueHost,
        look: Callable[[], Story],
        words: IssueWords,
        runner: str,
    ) -> None:
        self._book, self._host = book, host
        self._look, self._words, self._runner = look, words, runner

    def claim(self, number: int, run_id: str) -> Claimed | Lost:
        """Claim an issue for a run, or say who has it, or what it is instead of ready."""
        story = self._look()
        view = self._book.view(story)
        has_it, standing = holder(read_trails(story, view.trust)), stand(view)
        if has_it is not None and has_it.run_id == run_id:
            self._label(number, story)
            return Claimed(RequestStatus.RUNNING)
        if has_it is not None:
            return Lost(RequestStatus.RUNNING, has_it.run_id)
        if standing.status is not RequestStatus.READY or standing.kept is not None:
            return Lost(standing.status)
        header = start_header(view, run_id, self._runner)
        post_once(self._host, number, self._words.header(header))
        return self._judged(number, header)

    def _judged(self, number: int, header: RunHeader) -> Claimed | Lost:
        """Read everything back: the lowest header that is not withdrawn wins."""
        verdict, rival, story = StartVerdict.UNSURE, None, None
        for look in range(LOOKS):
            if look:
                self._book.time.sleep(SECONDS_BETWEEN)
            story = self._look()
            verdict, rival = judge_start(story, self._book.view(story).trust, header.run_id)
            if verdict is not StartVerdict.UNSURE:
                break
        assert story is not None
        if verdict is StartVerdict.WON:
            try:
                self._label(number, story)
            except AiflowError as error:
                return self._blocked(number, header, error)
            self._book.remember(number, attempts=max(header.attempt, self._book.memory(number).attempts))
            return Claimed(RequestStatus.READY)
        self._withdraw(story, header)
        if verdict is StartVerdict.UNSURE:
            raise EnvironmentProblemError(reason_code="GITHUB_LAGGING", request_id=f"GH-{number}", run_id=header.run_id)
        return Lost(RequestStatus.RUNNING, rival.run_id if rival else None)

    def _blocked(self, number: int, header: RunHeader, error: AiflowError) -> Lost:
        """Block an issue whose label could not be set twice (seed §8); if that fails, too, it is lost by the TTL."""
        row = CATALOGUE[error.reason_code]
        facts = {"run_id": header.run_id, "attempt": header.attempt, "of": header.of, "reason_code": error.reason_code}
        facts |= {"blocked_reason": row.blocked_reason.value if row.blocked_reason else "environment_failure"}
        facts |= {"ended": RunOutcome.NEEDS_INPUT.value, "label": IssueLabel.BLOCKED.value}
        post_once(
            self._host, number, self._words.comment(number, Post(MarkKind.BLOCKED, f"end:{header.run_id}", facts))
        )
        story = self._look()
        for change in label_changes(agent_labels(story.issue.labels), IssueLabel.BLOCKED):
            relabel(self._host, number, change)
        self._look()
        return Lost(RequestStatus.BLOCKED)

    def _withdraw(self, story: Story, header: RunHeader) -> None:
        """Mark our own header as withdrawn; where that fails it has lost all the same, as everybody's reading says."""
        comment = marked_comment(self._book, story, header.mark.key)
        if comment is None:
            return
        try:
            self._host.edit_comment(comment.id, self._words.header(header._replace(withdrawn=True)))
        except AiflowError:
            return

    def _label(self, number: int, story: Story) -> None:
        """Show that it is at work: the new label first, so that it never has none."""
        for change in label_changes(agent_labels(story.issue.labels), IssueLabel.RUNNING):
            relabel(self._host, number, change)
