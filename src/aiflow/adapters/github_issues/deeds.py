"""Doing what an issue needs (ISS-4, ISS-9, ISS-10): comments, pull requests, and labels, whose changes are recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.adapters.github_issues.pulls import close_with_word, merge_of, open_pull_facts, pull_facts
from aiflow.adapters.github_issues.writing import LOST_ANSWER, LabelWriter, post_once
from aiflow.domain.issue_ways import request_id_of
from aiflow.domain.issues.standing import stand
from aiflow.domain.issues.view import (
    AcceptMerged,
    Amend,
    CloseIssue,
    ClosePull,
    JudgeMerge,
    Post,
    PullDeed,
    React,
    Relabel,
    RememberText,
    RunDeed,
    Unsay,
)
from aiflow.domain.runs.worktree import branch_name
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiflow.adapters.github_issues.book import IssueBook
    from aiflow.adapters.github_issues.here import Here, IssueWords
    from aiflow.domain.issues.view import Deed, IssueView
    from aiflow.ports.issues import IssueHost


class IssueDeeds:
    """Does deeds at GitHub, one after the other."""

    def __init__(self, book: IssueBook, connect: Callable[[], IssueHost], words: IssueWords, here: Here) -> None:
        self._book, self._connect, self._words, self._here = book, connect, words, here

    def say_once(self, number: int, body: str, look: Callable[[], IssueView]) -> None:
        """Post a person's words, which have no mark: what was posted since the last stop is not posted again."""
        if _is_said(look(), body):
            return
        try:
            self._connect().comment(number, body)
        except AiflowError as error:
            if error.reason_code != LOST_ANSWER or not _is_said(look(), body):
                raise

    def do(self, number: int, deed: Deed) -> Iterator[RunDeed]:
        """Do a deed; what is to be done about a run is given to the caller."""
        if isinstance(deed, RunDeed):
            yield deed
        elif isinstance(deed, JudgeMerge):
            yield from self._judge(number, deed)
        elif isinstance(deed, PullDeed):
            self._go_on(number, deed)
        else:
            self._write(number, deed)

    def _judge(self, number: int, deed: JudgeMerge) -> Iterator[AcceptMerged]:
        """Ask whether a waiting run was merged on GitHub; that it was not is remembered, that it was is its record."""
        pull = merge_of(self._connect(), branch_name(request_id_of(number), deed.run_id))
        if pull is not None:
            yield AcceptMerged(deed.run_id, pull.merge_commit, pull.url)
        else:
            self._book.remember(number, judged=deed.key)

    def _go_on(self, number: int, deed: Amend | CloseIssue | ClosePull) -> None:
        """Show what came of a result: accepted, replaced."""
        host = self._connect()
        match deed:
            case Amend():
                host.edit_comment(deed.comment_id, self._words.comment(number, deed.post))
            case CloseIssue():
                host.close(number)
            case ClosePull():
                branch = branch_name(request_id_of(number), deed.run_id)
                close_with_word(host, branch, deed.number, self._words.pull_closed(number, deed))
                settled = self._book.memory(number).settled_pulls | {deed.number}
                self._book.remember(number, settled_pulls=settled)

    def _write(self, number: int, deed: Deed) -> None:
        host = self._connect()
        match deed:
            case Post():
                post_once(host, number, self._words.comment(number, self._with_pull(host, number, deed)))
            case Relabel():
                LabelWriter(self._book, host, self._here.journal, number).change(deed.change, deed.run_id)
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

    def _with_pull(self, host: IssueHost, number: int, post: Post) -> Post:
        """Have the pull request of a result that asks for one: its comment names it (ISS-9)."""
        run_id = str(post.facts.get("run_id"))
        if post.opens_pull:
            facts = pull_facts(host, self._words.pull(number, run_id))
        elif post.finds_pull:
            facts = open_pull_facts(host, branch_name(request_id_of(number), run_id))
        else:
            return post
        return post._replace(facts={**post.facts, **facts})


def _is_said(view: IssueView, body: str) -> bool:
    stop = stand(view).stop
    return any(
        comment.author == view.me and comment.body.split() == body.split()
        for comment in view.story.comments
        if not comment.is_gone and (stop is None or comment.created_at >= stop.at)
    )
