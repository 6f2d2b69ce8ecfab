"""Start a run of an issue (ISS-3, FR-101): header, complete read-back, the lowest wins, then the label.

Failures as in the seed's §8: a comment that fails changes no label; a label that fails is tried once more and then the
issue is blocked. A lost answer is looked for before anything is posted again.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from aiflow.adapters.github_issues.writing import LOST_ANSWER, LabelWriter, marked_comment, post_once
from aiflow.domain.claims import Claimed, Lost, Refusal
from aiflow.domain.issues.again import as_own, unbegun
from aiflow.domain.issues.causes import blocked_facts
from aiflow.domain.issues.headers import StartVerdict, header_key, holder, judge_start, read_header, read_trails
from aiflow.domain.issues.labels import agent_labels, label_changes
from aiflow.domain.issues.marks import MarkKind
from aiflow.domain.issues.requests import start_header, title_of
from aiflow.domain.issues.results import awaits_acceptance
from aiflow.domain.issues.standing import stand
from aiflow.domain.issues.view import Post
from aiflow.domain.lifecycle import IssueLabel, RunOutcome
from aiflow.domain.request import RequestStatus
from aiflow.errors import AiflowError, EnvironmentProblemError
from aiflow.messages.details import as_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.adapters.github_issues.book import IssueBook
    from aiflow.adapters.github_issues.here import Here, IssueWords
    from aiflow.domain.issues.headers import RunHeader, RunTrail
    from aiflow.domain.issues.issue import IssueComment, Story
    from aiflow.ports.issues import IssueHost

# A list of comments that lags behind is asked again, so often and so far apart.
LOOKS, SECONDS_BETWEEN = 6, 2.0
# The count of comments may lag together with their list, and nothing shows it. So the look before the first agent call
# is no sooner after our own header than this: the later of two at once sees the earlier one by then.
SETTLED_SECONDS = 2.0


class IssueStart:
    """One start of one issue."""

    def __init__(
        self,
        book: IssueBook,
        host: IssueHost,
        look: Callable[[], Story],
        words: IssueWords,
        here: Here,
    ) -> None:
        self._book, self._host = book, host
        self._look, self._words, self._here = look, words, here
        self.posted_at: float | None = None

    def claim(self, number: int, run_id: str) -> Claimed | Lost:
        """Claim an issue for a run, or say who has it, or what it is instead of ready."""
        story = self.without_unbegun(self._look(), run_id)
        view = self._book.view(story)
        trails, standing = read_trails(story, view.trust), stand(view)
        has_it = holder(trails)
        if has_it is not None and has_it.run_id == run_id:
            return self._begun(number, run_id)
        if has_it is None and awaits_acceptance(
            standing, run_id
        ):  # it continues only to be merged: the base is brought into it
            return Claimed(standing.status)
        if has_it is not None or any(trail.run_id == run_id for trail in trails):
            return Lost(standing.status, has_it.run_id if has_it else None)
        # What blocks it was read with it: that may be news to who selected it.
        kept = standing.kept or self._book.unmet(story)
        if standing.status is not RequestStatus.READY or kept is not None:
            return Lost(standing.status, refusal=kept)
        header = start_header(view, run_id, self._here.runner)
        self._book.remember(number, started=run_id)
        try:
            posted = post_once(self._host, number, self._words.header(header))
        except AiflowError as error:
            if error.reason_code != LOST_ANSWER:
                raise
            self.posted_at = self._book.time.monotonic()
            return self._judged(number, header, None, error)  # the list may lag behind a header that was posted
        self.posted_at = self._book.time.monotonic()
        return self._judged(number, header, posted)

    def withdraw(self, story: Story, run_id: str, posted: IssueComment | None = None) -> None:
        """Mark our own header as withdrawn; where that fails it has lost anyway, as everybody's reading says."""
        comment = posted or marked_comment(self._book, story, header_key(run_id))
        header = read_header(comment.body) if comment is not None else None
        if comment is None or header is None:
            return
        with contextlib.suppress(AiflowError):
            self._host.edit_comment(comment.id, self._words.header(header._replace(withdrawn=True)))

    def without_unbegun(self, story: Story, but: str = "") -> Story:
        """Withdraw the header of a start of ours that came to nothing, and read the issue again."""
        cut_off = unbegun(self._book.view(story))
        if cut_off is None or cut_off == but:
            return story
        self.withdraw(story, cut_off)
        return self._look()

    def _begun(self, number: int, run_id: str) -> Claimed | Lost:
        """Continue with a run whose header is there: a start that was cut short has not read everything back yet."""
        verdict, rival, story = self._read_back(run_id)
        if verdict is StartVerdict.UNSURE:
            raise _lagging(number, run_id)
        if verdict is StartVerdict.LOST:
            return Lost(RequestStatus.RUNNING, rival.run_id if rival else None)
        self._label(number, story, run_id)
        return Claimed(RequestStatus.RUNNING)

    def _judged(
        self, number: int, header: RunHeader, posted: IssueComment | None, problem: AiflowError | None = None
    ) -> Claimed | Lost:
        """Judge a header that was posted: the winner shows the label, everybody else withdraws."""
        verdict, rival, story = self._read_back(header.run_id)
        if verdict is StartVerdict.WON:
            try:
                self._label(number, story, header.run_id)
            except AiflowError as error:
                return self._blocked(number, header, error)
            self._book.remember(number, attempts=max(header.attempt, self._book.memory(number).attempts))
            return Claimed(RequestStatus.READY, (title_of(story.issue), story.issue.body))
        self.withdraw(story, header.run_id, posted)
        if verdict is StartVerdict.UNSURE:
            raise problem or _lagging(number, header.run_id)
        return Lost(RequestStatus.RUNNING, rival.run_id if rival else None)

    def _read_back(self, run_id: str) -> tuple[StartVerdict, RunTrail | None, Story]:
        """Read everything back: the lowest header that is not withdrawn wins."""
        for look in range(LOOKS):
            if look:
                self._book.time.sleep(SECONDS_BETWEEN)
            story = self._look()
            verdict, rival = judge_start(story, self._book.view(story).trust, run_id)
            if verdict is not StartVerdict.UNSURE:
                break
        return verdict, rival, story

    def _blocked(self, number: int, header: RunHeader, error: AiflowError) -> Lost:
        """Block an issue whose label could not be set twice (seed §8); if that fails, too, it is lost by the TTL."""
        facts = {
            "run_id": header.run_id,
            "attempt": header.attempt,
            "of": header.of,
            **blocked_facts(error.reason_code),
        }
        facts |= {"ended": RunOutcome.NEEDS_INPUT.value, "label": IssueLabel.BLOCKED.value}
        post_once(
            self._host, number, self._words.comment(number, Post(MarkKind.BLOCKED, f"end:{header.run_id}", facts))
        )
        self._set_label(number, self._look(), IssueLabel.BLOCKED, header.run_id)
        self._look()
        told = tuple((name, as_text(fact)) for name, fact in error.context.items() if fact is not None)
        return Lost(RequestStatus.BLOCKED, refusal=Refusal(error.reason_code, told), was=RequestStatus.READY)

    def _label(self, number: int, story: Story, run_id: str) -> None:
        """Show that it is at work: the new label first, so that it never has none; who took it away wants none."""
        standing = stand(as_own(self._book.view(story), run_id))
        if standing.label is IssueLabel.RUNNING:
            self._set_label(number, story, IssueLabel.RUNNING, run_id)

    def _set_label(self, number: int, story: Story, label: IssueLabel, run_id: str) -> None:
        """Replace the agent labels that an issue has by one, each change recorded with the run."""
        labels = LabelWriter(self._book, self._host, self._here.journal, number)
        for change in label_changes(agent_labels(story.issue.labels), label):
            labels.change(change, run_id)


def _lagging(number: int, run_id: str) -> EnvironmentProblemError:
    return EnvironmentProblemError(reason_code="GITHUB_LAGGING", request_id=f"GH-{number}", run_id=run_id)
