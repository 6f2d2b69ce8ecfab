"""What is to be done about an issue now (ISS-6 to ISS-10): `tend` looks at all of it and answers with deeds.

The contract for adapters.

Facts they give, in an `IssueView`:

- `story`: the issue, read before its comments and events, with every page of both. Comments with a mark stay in it
  (`is_gone`) after they were deleted. If fewer comments were read than the issue counts, there are no deeds.
- `trust`: the rights of every account that the story names, read from GitHub; the runner accounts (our own,
  `github.service_account`, `github.runners`) and `github.bots`, each by login and id. `me` is our own account.
- `runs`: the issue's runs in `runs/`, with their attempts. A run that lost its start is not among them.
  `running_tasks`: run ids whose task is RUNNING in the shared store, in this project's namespace; asked for only where
  a run of others gives no other sign of life. While the store does not answer, such a run counts as live.
- `memory`: the highest attempt ever known, comments reacted to, the text last seen, since when it is watched, and the
  run whose header was posted and that has not begun yet.

Who looks: the watch for every issue that changed, has an agent label, or is blocked; the worker on a run, for
that run's issue, at least every third of the locks' TTL. A run that another checkout works on is tended there: here the
answer is empty.

Deeds, in their order; after one that fails the rest waits for the next look (a comment fails → no label change):

- `Post` a comment of a kind, with `write_mark(CommentMark(kind, key, facts))` as its last line. Its key is looked for
  in the story first, and again after a lost answer. `end:<run id>` is a run's end: BLOCKED, RESULT, or NOTE if the
  issue is a draft now. Any other NOTE has `about`: `status`, `help` or `waiting`. With `opens_pull` the run's pull
  request is looked for, and opened if there is none, before: the facts get `pull` and `pull_url`, or `no_pull`. With
  `finds_pull` it is only looked for.
- `Relabel` adds or removes one label and is recorded with its event, run id and time.
- `CancelRun`, `CloseRun`, `TakeUp` are about runs of this checkout; each is safe to repeat. A run that is taken up
  writes its progress comment first: until then others may take it for lost.
- `Amend` edits a comment of our own. `NotePull` is about a run, too. `JudgeMerge` is answered with the pull requests
  from the run's branch: a merged one makes it `AcceptMerged`, else its key is remembered. A pull request that is closed
  by `ClosePull` is remembered. These two and `CloseIssue` come last.
- `RememberText` is kept until the next one. `React`, and remember the comment. `Unsay` deletes a comment of our own.

Doing all of them and looking again gives none, unless something happened meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.issue_ways import request_id_of
from aiflow.domain.issues.commands import CommandName
from aiflow.domain.issues.labels import label_changes
from aiflow.domain.issues.marks import MarkKind
from aiflow.domain.issues.results import after_results, last_deeds
from aiflow.domain.issues.standing import IssueStanding, Reading, stand
from aiflow.domain.issues.trust import last_event
from aiflow.domain.issues.view import CancelRun, CloseRun, Post, React, Reaction, Relabel, RememberText, Unsay
from aiflow.domain.issues.wishes import asking_comments, refusal_key
from aiflow.domain.lifecycle import IssueLabel, RunOutcome
from aiflow.domain.request import RequestStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aiflow.domain.issues.issue import IssueComment
    from aiflow.domain.issues.view import Deed, IssueView, OwnRun

# A run that stopped, or waits for acceptance, would keep a new one from starting.
_WAITING = (RunOutcome.NEEDS_INPUT, RunOutcome.CANCELLED, RunOutcome.AWAITING_ACCEPTANCE)
_ANSWERED = (CommandName.STATUS, CommandName.HELP)


def tend(view: IssueView) -> tuple[Deed, ...]:
    """Decide what is to be done about an issue now."""
    if not view.story.has_all_comments:
        return ()
    standing = stand(view)
    if standing.is_elsewhere:
        return standing.run_deeds
    read = Reading(view)
    posts = (*standing.posts, *_answers(read, standing), *_reminder(read, standing), *_nobody_starts(read, standing))
    said: dict[str, Post] = {post.key: post for post in reversed(posts) if post.key not in read.keys}
    return (
        *_remember(view, standing),
        *reversed(said.values()),
        *after_results(view),
        *standing.run_deeds,
        *_relabel(read, standing),
        *_close(read, standing),
        *_react(read, said),
        *_unsay(view),
        *last_deeds(view, standing),
    )


def stop_all(runs: Iterable[OwnRun]) -> Iterator[CancelRun]:
    """Yield what is to be done about the runs of an issue that is no more: no one would see what they do."""
    return (
        CancelRun(run.run_id, "CANCELLED") for run in runs if run.outcome is RunOutcome.ACTIVE and not run.is_stopping
    )


def _relabel(read: Reading, standing: IssueStanding) -> Iterator[Relabel]:
    if standing.label is not None:
        is_closed = not read.view.story.issue.is_open
        for change in label_changes(read.labels, standing.label, is_closed=is_closed):
            yield Relabel(change, standing.run_id)


def _close(read: Reading, standing: IssueStanding) -> Iterator[CloseRun]:
    """Close what stopped before, once a new run is wanted and may begin, or has begun meanwhile, here or elsewhere."""
    is_wanted = standing.status is RequestStatus.READY and standing.kept is None
    followed = [trail.run_id for trail in read.trails if not trail.is_withdrawn][:-1]
    for run in read.view.runs:
        if run.outcome in _WAITING and (is_wanted or run.run_id in followed):
            yield CloseRun(run.run_id)


def _remember(view: IssueView, standing: IssueStanding) -> Iterator[RememberText]:
    if standing.seen is not None and standing.seen != view.memory.seen_text:
        yield RememberText(standing.seen)


def _reminder(read: Reading, standing: IssueStanding) -> Iterator[Post]:
    key = overdue_since(read, standing)
    if key is not None:
        facts = {"run_id": standing.run_id or "", "reason_code": standing.stop.reason_code if standing.stop else None}
        yield Post(MarkKind.REMINDER, f"reminder:{key}", facts)


def overdue_since(read: Reading, standing: IssueStanding) -> str | None:
    """Return what a blocked issue has waited for a day for (ISS-8); None if it is not blocked, or somebody decided."""
    view, stop = read.view, standing.stop
    event = last_event(view.story, "labeled", IssueLabel.BLOCKED)
    if standing.label is not IssueLabel.BLOCKED or IssueLabel.BLOCKED not in read.labels or event is None:
        return None
    since = stop.at if stop is not None and stop.label is IssueLabel.BLOCKED else event.at
    is_decided = any(view.trust.decisions(view.story, since))
    if is_decided or view.now - max(event.at, since) < view.rules.remind_after:
        return None
    return str(stop.id) if stop is not None and stop.id else f"label:{event.id}"


def _nobody_starts(read: Reading, standing: IssueStanding) -> Iterator[Post]:
    """Say once that nothing would start a ready issue (ISS-12)."""
    is_ready = standing.status is RequestStatus.READY and standing.kept is None and standing.wish is not None
    if is_ready and standing.wish is not None and not read.view.rules.is_started:
        facts = {"about": "waiting", "request_id": request_id_of(read.view.story.issue.number)}
        yield Post(MarkKind.NOTE, f"waiting:{standing.wish.id}", facts)


def _answers(read: Reading, standing: IssueStanding) -> Iterator[Post]:
    """Answer commands: questions get answers, people without the right one note, and a closed issue is not retried."""
    view = read.view
    for comment, commands in asking_comments(view.story, view.trust, view.memory.since):
        names = {command.name for command in commands}
        if not view.trust.may_decide(comment.author):
            yield _not_permitted(comment)
            continue
        for name in _ANSWERED:
            if name in names:
                facts = {"about": name.value, "status": standing.status.value, "run_id": standing.run_id or ""}
                runs = {"attempts": read.attempts, "of": view.rules.of}
                yield Post(MarkKind.NOTE, f"{name}:{comment.id}", {**facts, **runs})
        if not view.story.issue.is_open and _is_after_close(view, comment) and CommandName.RETRY in names:
            facts = {"reason_code": "NOT_READY", "status": standing.status.value}
            yield Post(MarkKind.REFUSAL, refusal_key(f"comment:{comment.id}"), facts)


def _not_permitted(comment: IssueComment) -> Post:
    """Say why a command is ignored, once to each person, however often they write it."""
    who = comment.author.id if comment.author is not None else 0
    facts = {"reason_code": "COMMAND_NOT_PERMITTED", "blocked_reason": "policy_denied"}
    actor = comment.author.login if comment.author is not None else "?"
    return Post(MarkKind.REFUSAL, f"refusal:account:{who}", {**facts, "actor": actor, "comment_id": comment.id})


def _is_after_close(view: IssueView, comment: IssueComment) -> bool:
    closed = [event.at for event in view.story.events if event.kind == "closed"]
    return bool(closed) and comment.created_at >= closed[-1]


def _react(read: Reading, said: dict[str, Post]) -> Iterator[React]:
    """Acknowledge every command once: seen, or refused."""
    view = read.view
    for comment, _ in asking_comments(view.story, view.trust, view.memory.since):
        if comment.id not in view.memory.reacted:
            keys = {refusal_key(f"comment:{comment.id}"), f"limit:comment:{comment.id}"}
            is_refused = not view.trust.may_decide(comment.author) or not keys.isdisjoint({*read.keys, *said})
            yield React(comment.id, Reaction.REFUSED if is_refused else Reaction.SEEN)


def _unsay(view: IssueView) -> Iterator[Unsay]:
    """Take back what two runners said at the same moment: the lower comment stays."""
    said: set[str] = set()
    for comment, mark in view.trust.marks(view.story):
        if comment.is_gone:
            continue
        if mark.key in said and comment.author == view.me:
            yield Unsay(comment.id)
        said.add(mark.key)
