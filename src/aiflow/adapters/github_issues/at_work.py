"""What is done at GitHub about one issue (ISS-3, ISS-4, ISS-9, ISS-10): claimed, tended, its progress shown."""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import TYPE_CHECKING

from aiflow.adapters.github_issues import start
from aiflow.adapters.github_issues.deeds import IssueDeeds
from aiflow.adapters.github_issues.own_labels import ensure_labels
from aiflow.adapters.github_issues.progress import ProgressComments
from aiflow.adapters.github_issues.start import IssueStart
from aiflow.adapters.github_issues.sync import refresh_issue, sync_issues
from aiflow.adapters.github_issues.writing import post_once
from aiflow.domain.claims import Claimed, Refusal, Settled
from aiflow.domain.issue_ways import request_id_of
from aiflow.domain.issues.again import unbegun, why_not_begin
from aiflow.domain.issues.progress import stale_progress
from aiflow.domain.issues.results import current_run
from aiflow.domain.issues.standing import stand
from aiflow.domain.issues.tending import stop_all, tend
from aiflow.domain.issues.unstarted import unstarted_post
from aiflow.domain.issues.view import CancelRun, RunDeed
from aiflow.domain.request import RequestStatus
from aiflow.errors import AiflowError, EnvironmentProblemError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from aiflow.adapters.github_issues.book import IssueBook
    from aiflow.adapters.github_issues.here import Here, IssueWords
    from aiflow.domain.claims import Lost, NotStarted
    from aiflow.domain.issues.issue import Story
    from aiflow.domain.issues.repository import Synced
    from aiflow.domain.issues.view import IssueView
    from aiflow.domain.runs.run import Run
    from aiflow.ports.issues import IssueHost


ROUNDS = 3
LOOKED = "looked"


class IssueWork:
    """Writes to the issues of one repository, one look at a time."""

    def __init__(self, book: IssueBook, connect: Callable[[], IssueHost], words: IssueWords, here: Here) -> None:
        self._book, self._connect, self._words, self._here = book, connect, words, here
        self._progress = ProgressComments(book, connect, words.progress, here.journal, self._turn)
        self._deeds = IssueDeeds(book, connect, words, here)
        self._taken_up: set[str] = set()
        self._posted_at: dict[str, float] = {}
        self._busy: set[int] = set()

    def look(self, number: int) -> Story | None:
        """Read an issue again, and who did something there; None if it is no more."""
        host = self._connect()
        story = refresh_issue(host, self._book.mirror, number)
        if story is not None:
            self._book.learn(host, story)
        return story

    def claim(self, number: int, run_id: str) -> Claimed | Lost:
        """Claim an issue for a run; one that has it already is being taken up again."""
        with self._alone(number):
            starting = self._start(number)
            answer = starting.claim(number, run_id)
        if isinstance(answer, Claimed) and starting.posted_at is not None:
            self._posted_at[run_id] = starting.posted_at
        if isinstance(answer, Claimed) and answer.was is RequestStatus.RUNNING:
            self._taken_up.add(run_id)
        return answer

    def confirm(self, number: int, run_id: str) -> Refusal | None:
        """Look once more before the first agent call (ISS-3): why a run may not begin after all."""
        self._let_settle(run_id)
        with self._alone(number):
            story = self.look(number)
            if story is None:
                return Refusal("GITHUB_GONE", (("repo", self._book.repo), ("call", f"GET …/issues/{number}")))
            if not story.has_all_comments:
                raise EnvironmentProblemError(reason_code="GITHUB_LAGGING", request_id=request_id_of(number))
            refusal = why_not_begin(self._book.view(story), run_id)
            if refusal is not None and refusal.reason_code == "LOCK_MISMATCH":
                self._start(number).withdraw(story, run_id)
            self._book.remember(number, started=None)
        return refusal

    def not_started(self, number: int, why: NotStarted) -> Settled | None:
        """Post that no run could begin if GitHub answers; else the next try does. What is posted already costs none."""
        story = self._book.mirror.story(number)
        if story is None or unstarted_post(self._book.view(story), why) is None:
            return None
        try:
            with self._alone(number):
                post = unstarted_post(self._book.view(self._there(number)), why)
                if post is None:
                    return None
                post_once(self._connect(), number, self._words.comment(number, post))
                self.look(number)
            if not why.is_blocking:
                return None
            self.tend(number)
        except AiflowError:
            pass
        return Settled(RequestStatus.READY, RequestStatus.BLOCKED) if self.wish(number) is None else None

    def _let_settle(self, run_id: str) -> None:
        """Wait until what others wrote before our header can be seen: the count of comments may lag, too."""
        time, posted_at = self._book.time, self._posted_at.pop(run_id, None)
        left = posted_at + start.SETTLED_SECONDS - time.monotonic() if posted_at is not None else 0.0
        if left > 0:
            time.sleep(left)

    def sync(self, *, is_full: bool = False) -> Synced:
        """Read what changed since the last time, or everything; and what those who did something there may do."""
        host = self._connect()
        self._book.begin()
        try:
            synced = sync_issues(host, self._book.mirror, self._book.time, is_full=is_full)
            self._learn(host, synced.changed)
        except AiflowError:
            self._book.put_off_learning()
            raise
        if synced.is_full or self._book.is_learning_due:
            self._learn(host, self._book.to_learn())
            self._book.put_off_learning(is_due=False)
        if synced.is_full:
            ensure_labels(self._book.mirror, host, self._book.time.now(), self._here.make_labels)
        self._book.mirror.put_note(LOOKED, {"at": self._book.time.now().isoformat()})
        return synced

    def looked_at(self) -> datetime | None:
        """Return when somebody of this checkout read what changed for the last time."""
        at = self._book.mirror.note(LOOKED).get("at")
        try:
            return datetime.fromisoformat(at) if isinstance(at, str) else None
        except ValueError:
            return None

    def wish(self, number: int) -> str | None:
        """Return the id of what asks for a run of an issue now, as last seen."""
        story = self._book.mirror.story(number)
        standing = stand(self._book.view(story)) if story is not None else None
        is_asked = standing is not None and standing.status is RequestStatus.READY and standing.kept is None
        return standing.wish.id if is_asked and standing is not None and standing.wish is not None else None

    def pending(self) -> tuple[int, ...]:
        """Return the issues for which something is to be done, as far as is known without a call."""
        return tuple(story.issue.number for story in self._book.mirror.stories() if self._is_pending(story))

    def tend(self, number: int) -> tuple[RunDeed, ...]:
        """Look at an issue and do what is to be done there; what concerns its runs is left to the caller."""
        with self._alone(number):
            story = self.look(number)
            if story is None:
                return tuple(stop_all(self._book.runs(number)))
            wanted: list[RunDeed] = []
            # What was done may call for something else: a new pull request for the end of the old one.
            for _ in range(ROUNDS):
                view = self._book.asked_view(self._start(number).without_unbegun(story))
                deeds = tend(view)
                wanted += [done for deed in deeds for done in self._deeds.do(number, deed)]
                is_written = self._show(number, view)
                if not is_written and all(isinstance(deed, RunDeed) for deed in deeds):
                    break
                story = self.look(number)
                if story is None:
                    break
        return tuple(dict.fromkeys(wanted))

    def show_end(self, number: int, run_id: str) -> None:
        """Show a run's end, if GitHub answers now; else the next look does."""
        run = self._progress.end(run_id)
        self._taken_up.discard(run_id)
        try:
            if run is not None:
                self._write_now(number, run)
            self.tend(number)
        except AiflowError:
            return

    def ask_again(self, number: int, run_id: str, text: str) -> str | None:
        """Write a person's words as a comment that asks for a new run; returns the run that has the issue instead."""
        try:
            with self._alone(number):
                current = current_run(self._book.view(self._there(number)))
                if current is not None and current != run_id:
                    return current
                self._deeds.say_once(number, self._words.answer(text), lambda: self._book.view(self._there(number)))
                self.look(number)
        except AiflowError as error:  # who wrote it has to know that, and has it still
            error.context.update(unposted="yes", words=text)
            raise
        self.show_end(number, run_id)
        return None

    def show_progress(self, run: Run) -> None:
        """Hear of a run that was saved; it is shown beside its work, and the issue is looked at meanwhile.

        One that was taken up again shows itself first: until then others may take it for lost.
        """
        is_new = self._progress.hear(run)
        if is_new and run.run_id in self._taken_up:
            with contextlib.suppress(AiflowError):  # its next turn tries again
                self._write_now(_number(run), run)

    def _turn(self, run: Run) -> None:
        """Show how a run at work stands, and obey what people want of it; not while this process is at the issue."""
        number = _number(run)
        if number in self._busy:
            return
        for deed in self.tend(number):
            if isinstance(deed, CancelRun) and deed.run_id == run.run_id:
                self._here.ask_cancel(run.run_id)

    def _write_now(self, number: int, run: Run) -> None:
        with self._alone(number):
            story = self.look(number)
            if story is not None and self._progress.write(number, run, self._book.view(story)):
                self.look(number)

    def _show(self, number: int, view: IssueView) -> bool:
        """Show the progress of a run that is at work here, or has ended without showing it; returns whether it was."""
        run = self._progress.at_work(number)
        if run is not None:
            return run.is_active and self._progress.is_due(run) and self._progress.write(number, run, view)
        ended = stale_progress(view)
        stored = self._here.load_run(request_id_of(number), ended) if ended else None
        return stored is not None and self._progress.write(number, stored, view)

    def _learn(self, host: IssueHost, numbers: Iterable[int]) -> None:
        for number in numbers:
            story = self._book.mirror.story(number)
            if story is not None and story.events:
                self._book.learn(host, story)

    def _is_pending(self, story: Story) -> bool:
        view = self._book.view(story)
        return bool(tend(view)) or stale_progress(view) is not None or unbegun(view) is not None

    def _start(self, number: int) -> IssueStart:
        return IssueStart(self._book, self._connect(), lambda: self._there(number), self._words, self._here)

    @contextlib.contextmanager
    def _alone(self, number: int) -> Iterator[None]:
        """Be the only one of this checkout at an issue; what runs beside a run does not wait for that."""
        with self._book.mirror.alone(number):
            self._busy.add(number)
            try:
                yield
            finally:
                self._busy.discard(number)

    def _there(self, number: int) -> Story:
        story = self.look(number)
        if story is None:
            raise NotFoundError(request_id=request_id_of(number))
        return story


def _number(run: Run) -> int:
    return int(run.request_id.partition("-")[2])
