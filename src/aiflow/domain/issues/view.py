"""One look at an issue (ISS-10): all that is known of it here and now, and what may be done about it."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from aiflow.domain.issues.headers import LifeSigns
from aiflow.domain.lifecycle import RunOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from aiflow.domain.issues.issue import Account, Story
    from aiflow.domain.issues.labels import LabelChange
    from aiflow.domain.issues.marks import MarkKind
    from aiflow.domain.issues.trust import SeenText, Trust


class OwnRun(NamedTuple):
    """A run of the issue in this checkout's `runs/`.

    `is_working` if a process works on it now, `is_stopping` if that one has been asked to stop. One that is not
    `is_made` is about to begin, or was when its process crashed: it counts if the issue shows it.
    """

    run_id: str
    outcome: RunOutcome
    reason_code: str | None = None
    attempt: int = 0
    is_working: bool = False
    is_stopping: bool = False
    is_made: bool = True
    pull_url: str | None = None


class IssueRules(NamedTuple):
    """The settings that count: retries an issue may have, the locks' TTL, when a block is overdue, who starts.

    `is_started` is False where nothing starts a ready issue while the watch is on (ISS-12). `opens_pulls` and
    `accept_closes` are the settings for finished and accepted runs (ISS-9).
    """

    retries: int = 5
    lock_ttl: timedelta = timedelta(minutes=30)
    remind_after: timedelta = timedelta(hours=24)
    is_started: bool = True
    opens_pulls: bool = False
    accept_closes: bool = False

    @property
    def of(self) -> int:
        """How many runs an issue may have: the first one and its retries."""
        return 1 + self.retries


class IssueMemory(NamedTuple):
    """What this checkout remembers of an issue.

    The highest attempt it ever knew of, the comments it reacted to, the text it saw at the last approval, and since
    when the repository is watched: what people asked before that is not answered. `started` is the run whose header it
    posted, until that begins. And what GitHub need not be asked again: the pull requests that are closed, and what was
    last judged to be no merge.
    """

    attempts: int = 0
    reacted: frozenset[int] = frozenset()
    seen_text: SeenText | None = None
    since: datetime | None = None
    started: str | None = None
    settled_pulls: frozenset[int] = frozenset()
    judged: str = ""


class IssueView(NamedTuple):
    """An issue, whose word counts, what time it is, and what is known here; `me` is the account aiflow writes with."""

    story: Story
    trust: Trust
    now: datetime
    rules: IssueRules = IssueRules()
    runs: tuple[OwnRun, ...] = ()
    running_tasks: frozenset[str] = frozenset()
    memory: IssueMemory = IssueMemory()
    me: Account | None = None

    @property
    def signs(self) -> LifeSigns:
        """What shows that a run is live."""
        active = frozenset(run.run_id for run in self.runs if run.outcome is RunOutcome.ACTIVE and run.is_working)
        return LifeSigns(self.now, self.rules.lock_ttl, active, self.running_tasks)

    def own(self, run_id: str | None) -> OwnRun | None:
        """Return this checkout's run of that id."""
        return next((run for run in self.runs if run.run_id == run_id), None)


class Reaction(StrEnum):
    """How a command is acknowledged."""

    SEEN = "eyes"
    REFUSED = "confused"


class Post(NamedTuple):
    """Post a comment of a kind, at most once for its key; the facts go into its mark and its words.

    With `opens_pull` the run's pull request comes first, and the facts name it, or why there is none. With `finds_pull`
    they name one that is open already: it was opened, and then the result could not be posted.
    """

    kind: MarkKind
    key: str
    facts: Mapping[str, Any]
    opens_pull: bool = False
    finds_pull: bool = False


class Amend(NamedTuple):
    """Write our own comment again, because what it is about has progressed."""

    comment_id: int
    post: Post


class Relabel(NamedTuple):
    """Add or remove one label, for a run if it is about one; recorded in the journal."""

    change: LabelChange
    run_id: str | None = None


class Unsay(NamedTuple):
    """Delete a comment of our own that says what another one said before."""

    comment_id: int


class React(NamedTuple):
    """Acknowledge a command."""

    comment_id: int
    reaction: Reaction


class CancelRun(NamedTuple):
    """End a run of this checkout: it becomes NEEDS_INPUT for this reason, CANCELLED or LOCK_LOST."""

    run_id: str
    reason_code: str


class CloseRun(NamedTuple):
    """Close a stopped run of this checkout as SENT_BACK: a new one takes its place."""

    run_id: str


class TakeUp(NamedTuple):
    """Continue an interrupted run of this checkout (RUN-11)."""

    run_id: str


class NotePull(NamedTuple):
    """Write into a run of this checkout which pull request shows its work."""

    run_id: str
    url: str


class JudgeMerge(NamedTuple):
    """Ask whether a run of this checkout that waits was merged on GitHub; then it is accepted (`AcceptMerged`).

    `closed_by` is the event that closed the issue.
    """

    run_id: str
    closed_by: str

    @property
    def key(self) -> str:
        """What is remembered where it was not."""
        return f"{self.run_id} {self.closed_by}"


class AcceptMerged(NamedTuple):
    """A run of this checkout was merged on GitHub, by this commit of its base branch."""

    run_id: str
    commit: str
    url: str


class CloseIssue(NamedTuple):
    """Close an issue as completed: its run was accepted."""

    run_id: str


class ClosePull(NamedTuple):
    """Close a pull request of ours, saying why (`replaced` or `accepted`) and where to look instead."""

    number: int
    run_id: str
    why: str
    url: str


class RememberText(NamedTuple):
    """Remember the text that an approval was seen with."""

    seen: SeenText


RunDeed = CancelRun | CloseRun | TakeUp | NotePull | AcceptMerged
PullDeed = Amend | JudgeMerge | CloseIssue | ClosePull
Deed = Post | Relabel | Unsay | React | RememberText | PullDeed | RunDeed
