"""One issue of a hub, two checkouts that run it, people who interfere, and what must hold whatever they do (ISS-10).

All on played time and in one thread. What happens between two calls of a runner, a trap does: before so many calls of
its next deed, somebody else acts, or its process dies.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from aiflow.adapters.github_issues.at_work import IssueWork
from aiflow.adapters.github_issues.book import IssueBook, IssueTerms
from aiflow.adapters.github_issues.here import Here
from aiflow.adapters.github_issues.mirror import IssueMirror
from aiflow.adapters.github_issues.source import GitHubIssues
from aiflow.adapters.github_issues.transport import Ask
from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.domain.claims import Claimed
from aiflow.domain.issues.headers import RunHeader
from aiflow.domain.issues.labels import agent_labels
from aiflow.domain.issues.marks import CommentMark, MarkKind, find_mark, write_mark
from aiflow.domain.issues.pulls import NoPull
from aiflow.domain.issues.standing import Reading, stand
from aiflow.domain.issues.tending import tend
from aiflow.domain.issues.view import (
    CancelRun,
    ClosePull,
    CloseRun,
    IssueRules,
    IssueView,
    OwnRun,
    Post,
    Relabel,
    RunDeed,
    Unsay,
)
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.runs.run import Run
from aiflow.errors import AiflowError
from github.hub import CommentRow, Hub, IssueRow, User
from github.scene import RUNNER, Scene

GH_1, NUMBER, RETRIES = RequestId("GH-1"), 1, 2
OTHER_RUNNER = "aiflow-two"
BEAT_SECONDS = 300
# What goes on beside a run looks less often than it wants to: a history is hours, and each look costs as much as a deed.
TURN_SECONDS = 150.0
PEOPLES = ("label", "unlabel", "comment", "close", "reopen", "edit", "delete", "gone")
_WAITING = (RunOutcome.NEEDS_INPUT, RunOutcome.CANCELLED, RunOutcome.AWAITING_ACCEPTANCE)


def quick_folder() -> Path:
    """Make a folder for thousands of small files, in memory where that is possible."""
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="aiflow-issues-", dir=in_memory))


class CrashError(BaseException):
    """A process is killed: nothing of it catches that."""


@dataclass
class Trap:
    """What happens before a runner's call, so many calls like this from now; None is its own death."""

    calls: int
    deed: Callable[[], None] | None
    where: str = ""


class Words:
    """The least that comments can say: their marks."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def header(self, header: RunHeader) -> str:
        return f"run\n\n{write_mark(header.mark)}"

    def progress(self, run: Run) -> str:
        mark = CommentMark(MarkKind.PROGRESS, f"progress:{run.run_id}", {"run_id": run.run_id})
        return f"beat {int(self._now() // BEAT_SECONDS)}\n\n{write_mark(mark)}"

    def comment(self, number: int, post: Post) -> str:
        return f"{number}\n\n{write_mark(CommentMark(post.kind, post.key, post.facts))}"

    def answer(self, text: str) -> str:
        return f"/retry {text}"

    def pull(self, number: int, run_id: str) -> NoPull:
        return NoPull(f"{number}:{run_id}")

    def pull_closed(self, number: int, deed: ClosePull) -> str:
        return f"{number}:{deed.number}"


class HeardHub(Hub):
    """A hub that tells which comments it lists, and which one is written: the world knows who listens and writes."""

    on_listed: Callable[[list[CommentRow]], None] = staticmethod(lambda _listed: None)
    on_written: Callable[[CommentRow], None] = staticmethod(lambda _comment: None)

    def listed_comments(self, row: IssueRow, reader: User | None = None) -> list[CommentRow]:
        listed = super().listed_comments(row, reader)
        self.on_listed(listed)
        return listed

    def comment(self, number: int, body: str, by: str) -> CommentRow:
        written = super().comment(number, body, by)
        self.on_written(written)
        return written


class RunnerTime:
    """The time of one process: what it does beside its work waits while it is at work, as a thread would."""

    def __init__(self, runner: Runner) -> None:
        self._runner, self._time = runner, runner.world.scene.time

    def __getattr__(self, name: str) -> Any:
        return getattr(self._time, name)

    def beside(self, name: str, act: Callable[[], float]) -> Any:
        made = self._time.beside(name, lambda: self._turn(act))
        self._runner.besides.append(made)
        return made

    def _turn(self, act: Callable[[], float]) -> float:
        waits: list[float] = []
        self._runner.act(lambda: waits.append(act()), is_deed=False)
        return max(waits[0], TURN_SECONDS) if waits else 1.0


class Runner:
    """A checkout with a process that looks after the issue and runs it, as the engine does."""

    def __init__(self, world: World, folder: Path, login: str) -> None:
        folder.mkdir()
        self.world, self.folder, self.login = world, folder, login
        self.runs: dict[str, OwnRun] = {}
        self.draft = ""
        self.trap: Trap | None = None
        self.is_acting = False
        # The keys of what aiflow had said when this process last read the comments, in what it does now.
        self.heard: set[str] | None = None
        # Whether a run began or ended in its last deed.
        self.has_changed = False
        self.confirmed: set[str] = set()
        self.besides: list[Any] = []
        self.begin()

    def begin(self) -> None:
        """Begin a process: it knows what is in the folder."""
        scene = self.world.scene
        scene.api.before = self.world.before
        self.client = scene.client(self.login)
        self.mirror = IssueMirror(self.folder, scene.hub.repo)
        own = lambda _request_id: tuple(self.runs.values())  # noqa: E731
        terms = IssueTerms(IssueRules(retries=RETRIES), runners=(RUNNER, OTHER_RUNNER))
        self.book = IssueBook(scene.hub.repo, self.mirror, cast("Any", RunnerTime(self)), own, terms)
        here = Here(MemoryJournal(), self.folder.name, self._stop)
        self.work = IssueWork(self.book, lambda: self.client, Words(scene.time.monotonic), here)
        self.source = GitHubIssues(self.book, self.work)

    def act(self, deed: Callable[[], object], *, is_deed: bool = True) -> None:
        """Do something as this process: GitHub's troubles end it, and a crash the process."""
        if self.is_acting:
            return
        self.has_changed = self.has_changed and not is_deed
        self.is_acting, before, self.heard = True, self.world.acting, None
        self.world.acting = self if is_deed else None
        self.world.speakers.append(self)
        try:
            deed()
        except AiflowError:
            pass
        except CrashError:
            self.die()
        finally:
            self.is_acting, self.world.acting = False, before
            self.world.speakers.pop()
            self.trap = None if is_deed else self.trap

    def die(self) -> None:
        """Let the process die: what is in memory is gone, and nobody works on its run."""
        for each in self.besides:
            each.close()
        for run in self.runs.values():
            self.runs[run.run_id] = run._replace(is_working=False)
        self.confirmed.clear()
        self.begin()

    # -- what the engine does

    def look_after(self) -> None:
        synced = self.work.sync()
        for number in (*self.work.pending(), *synced.gone):
            self.lead(self.work.tend(number))

    def lead(self, deeds: tuple[RunDeed, ...]) -> None:
        """Do what an issue asks of its runs here."""
        for deed in deeds:
            if isinstance(deed, CancelRun):
                is_lost = deed.reason_code == "LOCK_LOST" and self.runs[deed.run_id].is_working
                assert not is_lost, "a run at work, with signs of life, was taken for lost"
                self._cancel(deed.run_id)
            elif isinstance(deed, CloseRun):
                self._change(deed.run_id, outcome=RunOutcome.SENT_BACK)

    def start(self) -> None:
        """Continue what was interrupted, or start the issue if it is ready."""
        crashed = next((r for r in self.runs.values() if r.outcome is RunOutcome.ACTIVE and not r.is_working), None)
        if self.working is not None:
            self._confirm(self.working.run_id)
            return
        if crashed is not None:
            self._take_up(crashed)
        elif self.draft and self.source.status(GH_1) is RequestStatus.RUNNING:
            self._claim(self.draft)
        else:
            self._start_new()

    def _start_new(self) -> None:
        try:
            request = self.source.load(GH_1)
        except AiflowError:
            return
        is_waiting = any(run.outcome in _WAITING for run in self.runs.values())
        if request.status is RequestStatus.READY and request.kept is None and not is_waiting:
            self.world.started += 1
            self.draft = f"RUN-{self.world.started}"
            self._claim(self.draft)

    def _claim(self, run_id: str) -> None:
        if isinstance(self.source.claim(GH_1, run_id), Claimed):
            self.world.won()
            attempt = 1 + len(self.runs)
            self.runs[run_id] = OwnRun(run_id, RunOutcome.ACTIVE, None, attempt, is_working=True)
            self.draft = ""
            self._show(run_id)
            self._confirm(run_id)
        self.draft = ""

    def _confirm(self, run_id: str) -> None:
        """Look once more before the first agent call; where GitHub does not answer, the next start asks again."""
        if run_id in self.confirmed or self.runs[run_id].is_stopping:
            return
        refusal = self.source.confirm(GH_1, run_id)
        if refusal is None:
            self.confirmed.add(run_id)
            self.has_changed = True
            return
        is_cancelled = refusal.reason_code == "CANCELLED"
        outcome = RunOutcome.CANCELLED if is_cancelled else RunOutcome.NEEDS_INPUT
        self._ended(run_id, outcome, refusal.reason_code)

    def _take_up(self, run: OwnRun) -> None:
        if not isinstance(self.source.claim(GH_1, run.run_id), Claimed):
            self._ended(run.run_id, RunOutcome.NEEDS_INPUT, "PROCESS_CRASHED")
        elif run.is_stopping:
            self._ended(run.run_id, RunOutcome.CANCELLED, "CANCELLED")
        else:
            self._change(run.run_id, is_working=True)
            self._show(run.run_id)
            self._confirm(run.run_id)

    def finish(self, outcome: RunOutcome) -> None:
        run = self.working
        if run is not None and not run.is_stopping and run.run_id not in self.confirmed:
            self._confirm(run.run_id)
            return
        if run is not None and run.is_stopping:
            self._ended(run.run_id, RunOutcome.CANCELLED, "CANCELLED")
        elif run is not None:
            self._ended(run.run_id, outcome, "UNIT_TEST_FAILED" if outcome is RunOutcome.NEEDS_INPUT else None)

    @property
    def working(self) -> OwnRun | None:
        return next((run for run in self.runs.values() if run.is_working), None)

    def _show(self, run_id: str) -> None:
        self.source.progress(cast("Run", SimpleNamespace(run_id=run_id, request_id=GH_1, is_active=True)))

    def _stop(self, run_id: str) -> None:
        if run_id in self.runs:
            self._change(run_id, is_stopping=True)

    def _cancel(self, run_id: str) -> None:
        run = self.runs.get(run_id)
        if run is not None and run.outcome is RunOutcome.ACTIVE:
            self._change(run_id, is_stopping=True)
            if not run.is_working:
                self._ended(run_id, RunOutcome.CANCELLED, "CANCELLED")

    def _ended(self, run_id: str, outcome: RunOutcome, code: str | None) -> None:
        self._change(run_id, outcome=outcome, reason_code=code, is_working=False, is_stopping=False)
        self.source.settle(GH_1, run_id, outcome)
        self.has_changed = True

    def _change(self, run_id: str, **fields: Any) -> None:
        self.runs[run_id] = self.runs[run_id]._replace(**fields)

    def view(self) -> IssueView | None:
        story = self.mirror.story(NUMBER)
        return self.book.view(story) if story is not None else None


class World:
    """The issue, its people and its runners, and what must hold after every deed."""

    def __init__(self, author: str, *, logins: tuple[str, str] = (RUNNER, OTHER_RUNNER)) -> None:
        self.scene = Scene(make_hub=HeardHub)
        self.hub, self.api = self.scene.hub, self.scene.api
        self.hub.person(OTHER_RUNNER, "write")
        self.acting: Runner | None = None
        # Who calls GitHub now: the last of these; None is a person.
        self.speakers: list[Runner | None] = []
        assert isinstance(self.hub, HeardHub)
        self.hub.on_listed, self.hub.on_written = self._heard, self._written
        self.started, self.asked, self.asked_before, self.runs_won = 0, 0, 0, 0
        self.folder = quick_folder()
        self.runners = [Runner(self, self.folder / str(n), login) for n, login in enumerate(logins)]
        self.attempts = [0, 0]
        self.by_hand: set[int] = set()
        self.deleted: set[str] = set()
        self.said: list[str] = []
        self.has_interfered = False
        self.hub.open_issue("Say hello", "Please.", by=author)
        for runner in self.runners:
            runner.act(runner.look_after)

    def close(self) -> None:
        shutil.rmtree(self.folder)

    def before(self, ask: Ask) -> None:
        """Spring the trap of whoever calls, when its time has come."""
        runner = self.acting
        if runner is None or runner.trap is None or not re.search(runner.trap.where, str(ask)):
            return
        runner.trap.calls -= 1
        if runner.trap.calls > 0:
            return
        deed, runner.trap = runner.trap.deed, None
        if deed is None:
            raise CrashError
        self.acting, self.has_interfered = None, True
        self.speakers.append(None)
        try:
            deed()
        finally:
            self.acting = runner
            self.speakers.pop()

    def won(self) -> None:
        """A run begins: somebody must have asked for it since the last one began."""
        assert self.asked > self.asked_before, "a run that nobody asked for"
        self.asked_before = self.asked
        self.runs_won += 1

    # -- deeds

    def do(self, what: str, who: Any, which: Any) -> None:
        self.scene.time.sleep(1)
        if self.is_gone and what in PEOPLES:
            return
        was_calm, self.has_interfered = self._is_calm, False
        getattr(self, f"_{what}")(who, which)
        self.check()
        if was_calm and self._is_calm and not self.has_interfered and not self.is_gone:
            self._check_shown(what, who)

    def _label(self, who: str, which: str) -> None:
        if which not in self.hub.rows[NUMBER].label_names():
            self.asked += which in ("agent:queued", "agent:retry") and who != "theo"
            self.hub.label(NUMBER, which, who)
            self.by_hand.add(self.hub.rows[NUMBER].events[-1].id)

    def _unlabel(self, who: str, which: str) -> None:
        self.hub.unlabel(NUMBER, which, who)

    def _comment(self, who: str, which: str) -> None:
        self.asked += which.startswith("/retry") and who != "theo"
        self.hub.comment(NUMBER, which, who)

    def _close(self, who: str, which: str) -> None:
        self.hub.close(NUMBER, who, which)

    def _reopen(self, who: str, _which: str) -> None:
        self.hub.reopen(NUMBER, who)

    def _edit(self, who: str, which: str) -> None:
        self.hub.edit(NUMBER, who, body=which)

    def _delete(self, who: int, _which: str) -> None:
        """Delete a comment that everybody has read."""
        for runner in self.runners:
            runner.act(lambda runner=runner: runner.work.look(NUMBER))  # type: ignore[misc]
        if self.is_gone:
            return
        comments = self.hub.rows[NUMBER].comments
        seen = [c for c in comments if all(self._knows(runner, c.id) for runner in self.runners)]
        if seen:
            chosen = seen[who % len(seen)]
            mark = find_mark(chosen.body)
            self.deleted |= {mark.key} if mark is not None else set()
            self.hub.delete_comment(chosen.id)
            self._look(who % 2, "")

    def _knows(self, runner: Runner, comment_id: int) -> bool:
        story = runner.mirror.story(NUMBER)
        return story is not None and any(each.id == comment_id for each in story.comments)

    def _wait(self, who: int, _which: str) -> None:
        """Let time pass; no run takes a day, and its signs of life would."""
        is_working = any(runner.working for runner in self.runners)
        self.scene.time.sleep(min(who, 2400) if is_working else who)

    def _look(self, who: int, _which: str) -> None:
        self.runners[who].act(self.runners[who].look_after)

    def _start(self, who: int, _which: str) -> None:
        self.runners[who].act(self.runners[who].start)

    def _finish(self, who: int, which: RunOutcome) -> None:
        self.runners[who].act(lambda: self.runners[who].finish(which))

    def _run(self, who: int, which: str) -> None:
        """Let a writer ask for a run, and a runner start it."""
        self._ask(which)
        self._look(who, "")
        self._start(who, "")

    def _ask(self, how: str) -> None:
        if not self.is_gone:
            (self._comment if how.startswith("/") else self._label)("maya", how)

    def _race(self, who: int, which: tuple[int, str, int, bool]) -> None:
        """Let a writer ask for a run, and between two calls of one runner's start the other one start it, or run it."""
        calls, how, lag, is_to_the_end = which
        self._ask(how)
        for number in (0, 1):
            self._look(number, "")

        def rival() -> None:
            self.hub.lag_for_others = lag
            self._start(1 - who, "")
            if is_to_the_end:
                self._finish(1 - who, RunOutcome.AWAITING_ACCEPTANCE)

        self.runners[who].trap = Trap(calls, rival)
        self._start(who, "")
        self.hub.lag_for_others = 0

    def _together(self, who: int, which: tuple[int, str]) -> None:
        """Let somebody ask something, and one runner look just as the other is about to answer."""
        calls, word = which
        if not self.is_gone:
            self._comment("theo" if word.startswith("/retry") else "maya", word)
        self.runners[who].trap = Trap(calls, lambda: self._look(1 - who, ""), "POST .*/comments")
        self._look(who, "")
        self.runners[who].trap = None

    def _crash(self, who: int, which: int) -> None:
        """Die now, or before a call of the next deed."""
        if which:
            self.runners[who].trap = Trap(which, None)
        else:
            self.runners[who].die()

    def _meanwhile(self, who: int, which: tuple[int, tuple[str, Any, Any]]) -> None:
        """Before a call of a runner's next deed, let something else happen."""
        calls, (what, other, how) = which
        self.runners[who].trap = Trap(calls, lambda: self._unless_gone(what, other, how))

    def _unless_gone(self, what: str, who: Any, how: Any) -> None:
        if not self.is_gone or what not in PEOPLES:
            getattr(self, f"_{what}")(who, how)

    def _fault(self, who: str, which: str) -> None:
        kinds: dict[str, Callable[[str], None]] = {
            "lost": self.api.loses,
            "unsent": self.api.unsent,
            "500": lambda where: self.api.answers(where, 502),
            "422": lambda where: self.api.answers(where, 422),
        }
        kinds[which](who)

    def _lag(self, who: int, which: int) -> None:
        self.hub.lag_calls, self.hub.lag_seconds = who, which

    def _hint(self, who: int, _which: str) -> None:
        """A webhook's delivery: look at that issue now."""
        runner = self.runners[who]
        runner.act(lambda: runner.lead(runner.work.tend(NUMBER)))

    def _gone(self, _who: str, which: str) -> None:
        (self.hub.transfer if which == "transferred" else self.hub.delete)(NUMBER)

    @property
    def is_gone(self) -> bool:
        return bool(self.hub.rows[NUMBER].gone)

    # -- what must hold

    def check(self) -> None:
        working = [(n, r.working) for n, r in enumerate(self.runners) if r.working and not r.working.is_stopping]
        assert len(working) <= 1, working
        self._check_told()
        for number, runner in enumerate(self.runners):
            view = runner.view()
            if view is None and self.is_gone:
                continue
            attempts = Reading(view).attempts if view is not None else 0
            assert attempts >= self.attempts[number], "an attempt was forgotten"
            assert attempts <= 1 + RETRIES, "the limit was passed over"
            self.attempts[number] = attempts

    def _check_told(self) -> None:
        """What aiflow blocked says why: the comment comes before the label."""
        row = self.hub.rows[NUMBER]
        event = next((e for e in reversed(row.events) if e.label and e.label.name == "agent:blocked"), None)
        if event is None or event.kind != "labeled" or event.id in self.by_hand or event.actor is None:
            return
        marks = [find_mark(comment.body) for comment in row.comments if comment.id < event.id]
        assert any(mark is not None and mark.kind is MarkKind.BLOCKED for mark in marks) or self.deleted, row.events

    def _heard(self, listed: list[CommentRow]) -> None:
        runner = self.speakers[-1] if self.speakers else None
        if runner is not None:
            runner.heard = {mark.key for each in listed if self._is_runner(each) and (mark := find_mark(each.body))}

    def _written(self, comment: CommentRow) -> None:
        """Whoever says something has read what was said, and it is not among that.

        This leaves one way to say a thing twice: the other one says it between that look and this comment, or said it
        before and the list does not show it yet. GitHub has no comment that is posted only if nobody else did, so that
        cannot be avoided; the higher of the two is taken back by the next look of who wrote it (`_check_shown`).
        """
        runner, mark = self.speakers[-1] if self.speakers else None, find_mark(comment.body)
        if runner is None or mark is None:
            return
        assert runner.heard is not None, f"said without a look: {mark.key}"
        assert mark.key not in runner.heard, f"said again: {mark.key}"
        assert mark.kind is MarkKind.PROGRESS or mark.key not in self.deleted, f"said again once deleted: {mark.key}"
        runner.heard.add(mark.key)
        self.said.append(mark.key)

    def twice(self) -> list[CommentRow]:
        """The comments that say what one before them says."""
        seen: set[str] = set()
        twice: list[CommentRow] = []
        for comment in self.hub.rows[NUMBER].comments:
            mark = find_mark(comment.body) if self._is_runner(comment) else None
            if mark is not None:
                twice += [comment] if mark.key in seen else []
                seen.add(mark.key)
        return twice

    def _check_shown(self, what: str, who: Any) -> None:
        """Whoever has looked at the issue, begun or ended a run, undisturbed, leaves it as it should be."""
        runner = self.runners[who] if what in ("look", "hint", "start", "finish", "run") else None
        if runner is None or (what not in ("look", "hint") and not runner.has_changed):
            return
        view = runner.view()
        assert view is not None
        assert not [each for each in self.twice() if each.author and each.author.login == runner.login]
        assert not any(isinstance(deed, Relabel | Unsay) for deed in tend(view)), tend(view)
        label, present = stand(view).label, agent_labels(self.hub.rows[NUMBER].label_names())
        assert label is None or present == ({label} if label else set()), (label, present)

    @property
    def _is_calm(self) -> bool:
        """Whether nothing is under way that keeps a look from its end."""
        return not (self.api.faults or self._is_lagging or any(runner.trap for runner in self.runners))

    @property
    def _is_lagging(self) -> bool:
        hub, comments = self.hub, self.hub.rows[NUMBER].comments
        is_late = any(comment.unseen or comment.unseen_by_others for comment in comments)
        return bool(hub.lag_calls or hub.lag_for_others or hub.lag_seconds or is_late)

    def settle(self, waits: tuple[int, ...] = (400, 1, 1, 700)) -> None:
        """Let GitHub be well and everybody look until nobody finds anything to do; then all agree."""
        self.api.faults.clear()
        self.hub.lag_calls, self.hub.lag_for_others, self.hub.lag_seconds = 0, 0, 0.0
        for comment in self.hub.rows[NUMBER].comments:
            comment.unseen = comment.unseen_by_others = 0
        for runner in self.runners:
            runner.trap = None
        for wait in waits:
            self.scene.time.sleep(wait)
            for runner in self.runners:
                runner.act(lambda runner=runner: runner.start() if self._is_interrupted(runner) else None)  # type: ignore[misc]
                runner.act(runner.look_after)
                self.check()
        if not self.is_gone:
            self._check_agreed()
            return
        for runner in self.runners:
            assert runner.view() is None
            assert runner.working is None or runner.working.is_stopping, "a run of an issue that is no more"

    def _is_interrupted(self, runner: Runner) -> bool:
        return any(run.outcome is RunOutcome.ACTIVE for run in runner.runs.values()) or bool(runner.draft)

    def _check_agreed(self) -> None:
        row = self.hub.rows[NUMBER]
        keys = [mark.key for comment in row.comments if self._is_runner(comment) and (mark := find_mark(comment.body))]
        assert len(keys) == len(set(keys)), sorted(keys)
        views = [view for runner in self.runners if (view := runner.view())]
        standings = [stand(view) for view in views]
        present = agent_labels(row.label_names())
        for view, standing in zip(views, standings, strict=True):
            assert tend(view) == (), (tend(view), standing)
            assert standing.label is None or present == ({standing.label} if standing.label else set())
        is_held = any(each.is_elsewhere or each.run_deeds or each.status == "running" for each in standings)
        is_held |= any(runner.working for runner in self.runners)  # asked to stop, on an issue that is closed already
        assert is_held or len({(each.status, each.label) for each in standings}) <= 1, standings
        for runner in self.runners:
            if runner.working is not None and not runner.working.is_stopping:
                assert present == {"agent:running"}, present

    @staticmethod
    def _is_runner(comment: Any) -> bool:
        return comment.author is not None and re.fullmatch("aiflow-.*", comment.author.login) is not None
