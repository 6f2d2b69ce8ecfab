"""What is done at GitHub about one issue (ISS-3, ISS-4, ISS-9, ISS-10): claimed, tended, its progress shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from aiflow.adapters.github_issues.start import IssueStart
from aiflow.adapters.github_issues.sync import refresh_issue, sync_issues
from aiflow.adapters.github_issues.writing import marked_comment, post_once, relabel
from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.issues.marks import find_mark
from aiflow.domain.issues.requests import request_id_of
from aiflow.domain.issues.tending import tend
from aiflow.domain.issues.view import CancelRun, Post, React, Relabel, RememberText, RunDeed, Unsay
from aiflow.errors import AiflowError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.adapters.github_issues.book import IssueBook
    from aiflow.domain.claims import Claimed, Lost
    from aiflow.domain.issues.headers import RunHeader
    from aiflow.domain.issues.issue import Story
    from aiflow.domain.issues.repository import Synced
    from aiflow.domain.issues.view import Deed
    from aiflow.domain.runs.run import Run
    from aiflow.ports import Journal
    from aiflow.ports.issues import IssueHost
    from aiflow.ports.time import Beside


class IssueWords(Protocol):
    """The words of comments, in the language of the checkout."""

    def header(self, header: RunHeader) -> str:
        """Write a Run Header."""

    def progress(self, run: Run) -> str:
        """Write how a run stands."""

    def comment(self, number: int, post: Post) -> str:
        """Write any other comment."""

    def answer(self, text: str) -> str:
        """Write what a person answered elsewhere."""


class Here(NamedTuple):
    """This checkout, as far as issues see it: its journal, its machine's name, and asking a run of it to end."""

    journal: Journal
    runner: str
    ask_cancel: Callable[[str], None]


class IssueWork:
    """Writes to the issues of one repository, one look at a time."""

    def __init__(self, book: IssueBook, connect: Callable[[], IssueHost], words: IssueWords, here: Here) -> None:
        self._book, self._connect, self._words, self._here = book, connect, words, here
        self._shown: dict[str, str] = {}
        self._run: Run | None = None
        self._beside: Beside | None = None

    def look(self, number: int) -> Story | None:
        """Read an issue anew, and who did something there; None if it is no more."""
        host = self._connect()
        story = refresh_issue(host, self._book.mirror, number)
        if story is not None:
            self._book.learn(host, story)
        return story

    def claim(self, number: int, run_id: str) -> Claimed | Lost:
        """Claim an issue for a run."""
        with self._book.mirror.alone(number):
            look = lambda: self._there(number)  # noqa: E731
            start = IssueStart(self._book, self._connect(), look, self._words, self._here.runner)
            return start.claim(number, run_id)

    def sync(self, *, is_full: bool = False) -> Synced:
        """Read what changed since the last time, or everything; and what those who did something there may do."""
        host, mirror = self._connect(), self._book.mirror
        synced = sync_issues(host, mirror, self._book.time, is_full=is_full)
        for number in synced.changed:
            story = mirror.story(number)
            if story is not None and story.events:
                self._book.learn(host, story)
        return synced

    def pending(self) -> tuple[int, ...]:
        """Return the issues for which something is to be done, as far as is known without a call."""
        return tuple(story.issue.number for story in self._book.mirror.stories() if tend(self._book.view(story)))

    def tend(self, number: int) -> tuple[RunDeed, ...]:
        """Look at an issue and do what is to be done there; what concerns its runs is left to the caller."""
        with self._book.mirror.alone(number):
            story = self.look(number)
            if story is None:
                return ()
            deeds = tend(self._book.view(story))
            for deed in deeds:
                self._do(number, deed)
            if any(not isinstance(deed, RunDeed) for deed in deeds):
                self.look(number)
        return tuple(deed for deed in deeds if isinstance(deed, RunDeed))

    def show_end(self, number: int, run_id: str) -> None:
        """Show a run's end, if GitHub answers now; else the next look does."""
        self._stop_beside(run_id)
        try:
            if self._run is not None and self._run.run_id == run_id:
                self._write_progress(self._run)
            self.tend(number)
        except AiflowError:
            return

    def ask_again(self, number: int, run_id: str, text: str) -> None:
        """Write a person's words as a comment that asks for a new run."""
        with self._book.mirror.alone(number):
            story = self._there(number)
            self._connect().comment(number, self._words.answer(text))
            self.look(story.issue.number)
        self.show_end(number, run_id)

    def show_progress(self, run: Run) -> None:
        """Hear of a run that was saved; it is shown beside its work, and the issue is looked at meanwhile."""
        self._run = run
        if not run.is_active:
            return
        if self._beside is None:
            self._beside = self._book.time.beside("github", self._turn)
            self._beside.start()
        else:
            self._beside.poke()

    def _turn(self) -> float:
        """Show the progress of the run at work, and obey what people want of it."""
        run, wait = self._run, self._book.rules.lock_ttl.total_seconds() / 3
        if run is not None and run.is_active:
            number = int(run.request_id.partition("-")[2])
            self._write_progress(run)
            for deed in self.tend(number):
                if isinstance(deed, CancelRun) and deed.run_id == run.run_id:
                    self._here.ask_cancel(run.run_id)
        return min(wait, 30.0)

    def _stop_beside(self, run_id: str) -> None:
        if self._beside is not None and self._run is not None and self._run.run_id == run_id:
            self._beside.close()
            self._beside = None

    def _write_progress(self, run: Run) -> None:
        """Write the one comment that shows how a run goes on, if it would say something else than it does."""
        number, body = int(run.request_id.partition("-")[2]), self._words.progress(run)
        if self._shown.get(run.run_id) == body:
            return
        host, mark = self._connect(), find_mark(body)
        assert mark is not None
        story = self._book.mirror.story(number)
        there = marked_comment(self._book, story, mark.key) if story else None
        if there is None:
            post_once(host, number, body)
        else:
            host.edit_comment(there.id, body)
        self._shown[run.run_id] = body
        self.look(number)

    def _there(self, number: int) -> Story:
        story = self.look(number)
        if story is None:
            raise NotFoundError(request_id=request_id_of(number))
        return story

    def _do(self, number: int, deed: Deed) -> None:
        host = self._connect()
        match deed:
            case Post():
                post_once(host, number, self._words.comment(number, deed))
            case Relabel():
                relabel(host, number, deed.change)
                self._record(number, deed)
            case Unsay():
                host.delete_comment(deed.comment_id)
            case React():
                host.react(deed.comment_id, deed.reaction.value)
                reacted = self._book.memory(number).reacted | {deed.comment_id}
                self._book.remember(number, reacted=reacted)
            case RememberText():
                self._book.remember(number, seen_text=deed.seen)
            case _:
                pass

    def _record(self, number: int, deed: Relabel) -> None:
        """Record a change of labels with its run and the time (ISS-10)."""
        label, change = deed.change.label.value, deed.change
        data = {"key": "labels", "from": None if change.is_added else label, "to": label if change.is_added else None}
        if change.event is not None:
            data["event"] = change.event.value
        kind, now = ActivityKind.STATUS_CHANGED, self._book.time.now()
        self._here.journal.append(Activity(now, kind, Actor.ENGINE, request_id_of(number), deed.run_id, data=data))
