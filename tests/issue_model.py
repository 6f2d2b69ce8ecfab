"""A tiny GitHub of one issue, and checkouts that tend it, on virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aiflow.domain.issues.headers import RunHeader, StartVerdict, judge_start
from aiflow.domain.issues.issue import Account, HistoryEvent, Issue, IssueComment, Story
from aiflow.domain.issues.marks import CommentMark, MarkKind, find_mark, write_mark
from aiflow.domain.issues.requests import request_of, start_header
from aiflow.domain.issues.standing import Reading
from aiflow.domain.issues.tending import tend
from aiflow.domain.issues.trust import Trust
from aiflow.domain.issues.view import (
    CancelRun,
    CloseRun,
    Deed,
    IssueMemory,
    IssueRules,
    IssueView,
    JudgeMerge,
    OwnRun,
    Post,
    React,
    Relabel,
    RememberText,
    RunDeed,
    TakeUp,
    Unsay,
)
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.request import RequestStatus
from issue_stories import START, TRUST, WRITER, issue

BEAT = timedelta(minutes=10)


@dataclass
class OneIssue:
    """GitHub with one issue."""

    now: datetime = START
    issue: Issue = field(default_factory=issue)
    comments: dict[int, IssueComment] = field(default_factory=dict)
    events: list[HistoryEvent] = field(default_factory=list)
    last_id: int = 100
    keys: list[str] = field(default_factory=list)

    def tick(self, seconds: float = 1) -> None:
        """Let a moment pass."""
        self.now += timedelta(seconds=seconds)

    def _change(self, **fields: object) -> None:
        self.issue = self.issue._replace(updated_at=self.now, **fields)  # type: ignore[arg-type]

    def event(self, kind: str, by: Account, label: str | None = None) -> None:
        """Write something into the history."""
        self.last_id += 1
        self.events.append(HistoryEvent(self.last_id, kind, by, self.now, label))

    def set_label(self, name: str, by: Account, *, is_added: bool) -> None:
        """Add or remove a label; nothing happens if it is so already."""
        if (name in self.issue.labels) is not is_added:
            rest = tuple(each for each in self.issue.labels if each != name)
            self.event("labeled" if is_added else "unlabeled", by, name)
            self._change(labels=(*rest, name) if is_added else rest)

    def comment(self, body: str, by: Account) -> int:
        """Write a comment."""
        self.last_id += 1
        self.comments[self.last_id] = IssueComment(self.last_id, by, body, self.now, self.now)
        mark = find_mark(body)
        if mark is not None and mark.kind is not MarkKind.PROGRESS:
            self.keys.append(mark.key)
        self._change(comment_count=len(self.comments))
        return self.last_id

    def edit(self, comment_id: int, body: str) -> None:
        """Change a comment, if it is there."""
        if comment_id in self.comments:
            self.comments[comment_id] = self.comments[comment_id]._replace(body=body, updated_at=self.now)
            self._change()

    def delete(self, comment_id: int) -> None:
        """Delete a comment."""
        del self.comments[comment_id]
        self._change(comment_count=len(self.comments))

    def write(self, body: str) -> None:
        """Change the issue's text."""
        self._change(body=body)

    def close(self, by: Account = WRITER, reason: str = "completed") -> None:
        """Close the issue."""
        if self.issue.is_open:
            self.event("closed", by)
            self._change(is_open=False, state_reason=reason)

    def reopen(self, by: Account = WRITER) -> None:
        """Open it again."""
        if not self.issue.is_open:
            self.event("reopened", by)
            self._change(is_open=True, state_reason="reopened")


@dataclass
class Checkout:
    """A checkout that watches the issue, and works on its runs."""

    github: OneIssue
    account: Account
    trust: Trust = TRUST
    rules: IssueRules = field(default_factory=IssueRules)
    memory: IssueMemory = field(default_factory=IssueMemory)
    runs: dict[str, OwnRun] = field(default_factory=dict)
    seen: dict[int, IssueComment] = field(default_factory=dict)
    progress: dict[str, int] = field(default_factory=dict)
    starting: str | None = None
    header: tuple[int, RunHeader] | None = None

    def look(self) -> IssueView:
        """Read the issue, and remember its marks."""
        self.seen |= {each.id: each for each in self.github.comments.values() if find_mark(each.body)}
        gone = [each._replace(is_gone=True) for number, each in self.seen.items() if number not in self.github.comments]
        comments = sorted([*self.github.comments.values(), *gone])
        story = Story(self.github.issue, tuple(comments), tuple(self.github.events))
        runs = tuple(self.runs.values())
        view = IssueView(story, self.trust, self.github.now, self.rules, runs, memory=self.memory, me=self.account)
        self.memory = self.memory._replace(attempts=Reading(view).attempts)
        return view._replace(memory=self.memory)

    def tend(self) -> tuple[Deed, ...]:
        """Look, and do what is to be done."""
        deeds = tend(self.look())
        for deed in deeds:
            self._do(deed)
        return deeds

    def _do(self, deed: Deed) -> None:
        match deed:
            case Post(kind, key, facts):
                self.github.comment(f"words\n\n{write_mark(CommentMark(kind, key, facts))}", self.account)
            case Relabel(change):
                self.github.set_label(change.label.value, self.account, is_added=change.is_added)
            case Unsay(comment_id):
                self.github.delete(comment_id)
            case React(comment_id):
                self.memory = self.memory._replace(reacted=self.memory.reacted | {comment_id})
            case JudgeMerge():
                self.memory = self.memory._replace(judged=deed.key)
            case RememberText(seen):
                self.memory = self.memory._replace(seen_text=seen)
            case CancelRun() | CloseRun() | TakeUp():
                self._lead(deed)

    def _lead(self, deed: RunDeed) -> None:
        """Do something about a run; what nobody works on, or is not ours any more, ends at once."""
        run = self.runs[deed.run_id]
        if isinstance(deed, CancelRun):
            run = run._replace(reason_code=deed.reason_code, is_stopping=True)
            over = run._replace(outcome=RunOutcome.CANCELLED, is_working=False)
            run = over if deed.reason_code == "LOCK_LOST" or not run.is_working else run
        elif isinstance(deed, CloseRun):
            run = run._replace(outcome=RunOutcome.SENT_BACK)
        else:
            run = run._replace(is_working=True)
        self.runs[deed.run_id] = run
        self.beat()

    @property
    def working(self) -> OwnRun | None:
        """The run that is worked on here."""
        return next((run for run in self.runs.values() if run.is_working), None)

    def start(self) -> None:
        """Begin a start, if the issue is ready and nothing runs here; or bring one that has begun to its end."""
        view = self.look()
        if self.starting is not None:
            self._confirm(view, self.starting)
            return
        request = request_of(view, "o/r", {})
        is_waiting = any(run.outcome is RunOutcome.NEEDS_INPUT for run in self.runs.values())
        if request.status is RequestStatus.READY and request.kept is None and not self.working and not is_waiting:
            self.starting = f"RUN-{self.account.login}-{self.github.last_id}"
            header = start_header(view, self.starting, self.account.login)
            self.header = self.github.comment(f"run\n\n{write_mark(header.mark)}", self.account), header

    def _confirm(self, view: IssueView, run_id: str) -> None:
        verdict, _ = judge_start(view.story, view.trust, run_id)
        assert verdict is not StartVerdict.UNSURE
        assert self.header is not None
        comment_id, header = self.header
        self.starting = None
        if verdict is StartVerdict.WON:
            self.runs[run_id] = OwnRun(run_id, RunOutcome.ACTIVE, None, header.attempt, is_working=True)
            self.github.set_label("agent:running", self.account, is_added=True)
            for label in ("agent:queued", "agent:retry", "agent:blocked"):
                self.github.set_label(label, self.account, is_added=False)
        else:
            self.github.edit(comment_id, f"run\n\n{write_mark(header._replace(withdrawn=True).mark)}")

    def finish(self, outcome: RunOutcome) -> None:
        """Let the run come to an end; one that was asked to stop has been cancelled."""
        run = self.working
        if run is not None:
            ended = RunOutcome.CANCELLED if run.is_stopping else outcome
            code = "CANCELLED" if run.is_stopping else {"needs_input": "UNIT_TEST_FAILED"}.get(outcome.value)
            self.runs[run.run_id] = run._replace(outcome=ended, reason_code=code, is_working=False, is_stopping=False)

    def crash(self) -> None:
        """Let the process die."""
        self.starting = None
        if self.working is not None:
            self.runs[self.working.run_id] = self.working._replace(is_working=False, is_stopping=False)

    def beat(self) -> None:
        """Show that the run is still worked on: one sticky comment, posted again if somebody deleted it."""
        run = self.working
        if run is None:
            return
        body = f"progress\n\n{write_mark(CommentMark(MarkKind.PROGRESS, f'progress:{run.run_id}', {'run_id': run.run_id}))}"
        if self.progress.get(run.run_id) in self.github.comments:
            self.github.edit(self.progress[run.run_id], body)
        else:
            self.progress[run.run_id] = self.github.comment(body, self.account)
