"""Issues for tests, written as one tells of them: `told("queued by writer", "retry? by writer")` and by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from aiflow.domain.issues.issue import Account, HistoryEvent, Issue, IssueComment, Right, Story
from aiflow.domain.issues.marks import CommentMark, MarkKind, write_mark
from aiflow.domain.issues.trust import Trust

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
WRITER = Account("maintainer", 1)
STRANGER = Account("passer-by", 2)
RUNNER = Account("aiflow-runner", 3)
OTHER_RUNNER = Account("aiflow-other", 4)
BOT = Account("helper[bot]", 5, is_bot=True)
TRUST = Trust(
    rights={WRITER.id: Right.WRITE, STRANGER.id: Right.READ, BOT.id: Right.WRITE},
    runners=frozenset({("aiflow-runner", 3), ("aiflow-other", 4)}),
)


def at(minutes: float) -> datetime:
    """So many minutes into the story."""
    return START + timedelta(minutes=minutes)


def issue(**fields: Any) -> Issue:
    """An open issue without labels, by a writer."""
    usual = Issue(7, "Fix it", "Please.", "https://github.example/o/r/issues/7", WRITER, True, None, (), START, START)
    return usual._replace(**fields)


class Teller:
    """Tells an issue's story: each thing takes a minute unless it says when."""

    def __init__(self, author: Account = WRITER, body: str = "Please.") -> None:
        self.issue = issue(author=author, body=body)
        self.comments: list[IssueComment] = []
        self.events: list[HistoryEvent] = []
        self.minute = 0.0

    def wait(self, minutes: float) -> Teller:
        """Let time pass."""
        self.minute += minutes
        return self

    def _next(self) -> datetime:
        self.minute += 1
        moment = at(self.minute)
        self.issue = self.issue._replace(updated_at=moment)
        return moment

    def event(self, kind: str, by: Account | None = WRITER, label: str | None = None) -> Teller:
        """Add something to the history."""
        self.events.append(HistoryEvent(len(self.events) + 1, kind, by, self._next(), label))
        return self

    def label(self, name: str, by: Account | None = WRITER) -> Teller:
        """Set a label."""
        self.event("labeled", by, name)
        self.issue = self.issue._replace(labels=(*self.issue.labels, name))
        return self

    def unlabel(self, name: str, by: Account | None = WRITER) -> Teller:
        """Take a label away."""
        self.event("unlabeled", by, name)
        self.issue = self.issue._replace(labels=tuple(each for each in self.issue.labels if each != name))
        return self

    def close(self, reason: str = "completed", by: Account = WRITER) -> Teller:
        """Close the issue."""
        self.event("closed", by)
        self.issue = self.issue._replace(is_open=False, state_reason=reason)
        return self

    def reopen(self, by: Account = WRITER) -> Teller:
        """Open it again."""
        self.event("reopened", by)
        self.issue = self.issue._replace(is_open=True, state_reason="reopened")
        return self

    def comment(self, body: str, by: Account | None = WRITER) -> Teller:
        """Write a comment."""
        moment = self._next()
        self.comments.append(IssueComment(101 + len(self.comments), by, body, moment, moment))
        self.issue = self.issue._replace(comment_count=self.issue.comment_count + 1)
        return self

    def mark(self, kind: MarkKind, key: str, by: Account = RUNNER, **facts: Any) -> Teller:
        """Write a comment as aiflow does."""
        return self.comment(f"words\n\n{write_mark(CommentMark(kind, key, facts))}", by)

    def header(self, run_id: str, attempt: int = 1, by: Account = RUNNER, **facts: Any) -> Teller:
        """Post a Run Header."""
        return self.mark(MarkKind.RUN_HEADER, f"run-header:{run_id}", by, run_id=run_id, attempt=attempt, **facts)

    def ended(self, run_id: str, outcome: str = "needs_input", by: Account = RUNNER, **facts: Any) -> Teller:
        """Post the comment of a run's end, with the label changes that belong to it."""
        kind = MarkKind.RESULT if outcome == "awaiting_acceptance" else MarkKind.BLOCKED
        self.mark(kind, f"end:{run_id}", by, run_id=run_id, ended=outcome, **facts)
        if kind is MarkKind.BLOCKED and "agent:running" in self.issue.labels:
            self.label("agent:blocked", by).unlabel("agent:running", by)
        return self

    def ran(
        self, run_id: str = "RUN-1", attempt: int = 1, outcome: str | None = "needs_input", by: Account = RUNNER
    ) -> Teller:
        """Let a run start, and end unless there is no outcome."""
        self.header(run_id, attempt, by).label("agent:running", by)
        for name in ("agent:queued", "agent:retry", "agent:blocked"):
            if name in self.issue.labels:
                self.unlabel(name, by)
        return self.ended(run_id, outcome, by) if outcome else self

    def forget(self, index: int) -> Teller:
        """Delete a comment that was read once."""
        self.comments[index] = self.comments[index]._replace(is_gone=True)
        self.issue = self.issue._replace(comment_count=self.issue.comment_count - 1)
        return self

    @property
    def story(self) -> Story:
        """The issue with all of it."""
        return Story(self.issue, tuple(self.comments), tuple(self.events))
