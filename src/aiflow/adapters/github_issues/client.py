"""GitHub's REST API (ISS-1), as far as issues need it: one method per call, whole lists, our own values.

A redirect is never followed: the token goes to one address only, and a renamed repository or a transferred issue is not
the one that the settings name. Of a `Link` only its query is taken.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlsplit

from aiflow.adapters.github_issues import read
from aiflow.adapters.github_issues.limits import server_time
from aiflow.adapters.github_issues.line import RATE
from aiflow.adapters.github_issues.transport import Ask
from aiflow.adapters.github_issues.troubles import MOVED
from aiflow.domain.issues.issue import Right
from aiflow.domain.issues.repository import Listed
from aiflow.errors import AiflowError, NotFoundError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from aiflow.adapters.github_issues.auth import Credentials
    from aiflow.adapters.github_issues.line import CallLine
    from aiflow.adapters.github_issues.shared_pace import SharedPace
    from aiflow.adapters.github_issues.transport import Answer, Query
    from aiflow.domain.issues.issue import Account, Blocker, HistoryEvent, Issue, IssueComment
    from aiflow.domain.issues.repository import CallRate, Delivery, Hook, Pull, Repository

_PAGE = ("per_page", "100")
_NEXT = re.compile(r"<([^>]*)>[^,]*?;\s*rel=\"?next\"?")


class GitHubClient:
    """One repository on GitHub, for any number of threads; an `IssueHost`."""

    def __init__(self, line: CallLine, credentials: Credentials) -> None:
        self._line = line
        self._credentials = credentials
        self._root = f"/repos/{line.place.repo}"

    def share(self, pace: SharedPace) -> None:
        """Keep one pace with the other processes that use the same account; before the first call."""
        self._line.share(pace)

    def disconnect(self) -> None:
        """Close the connections that are kept: this was the last call."""
        self._line.close()

    # -- reading issues

    def issues(self, since: datetime | None = None, etag: str = "") -> Listed:
        """List all issues, or those updated since a moment; one call if nothing is new since a tag.

        Newest first: what changes while pages are read comes twice rather than never.
        """
        query = (("state", "all"), ("sort", "updated"), ("direction", "desc"), *_since(since), _PAGE)
        ask = Ask("GET", f"{self._root}/issues", query)
        first = self._call(ask, takes=(304,), tag=etag)
        if first.status == 304:
            return Listed((), etag, is_unchanged=True)
        found = {issue.number: issue for issue in read.each_of(self._items(ask, first), read.issue_of)}
        return Listed(tuple(found[number] for number in sorted(found)), first.headers.get("etag", ""))

    def issue(self, number: int) -> Issue:
        """Return one issue as it is now."""
        ask = Ask("GET", self._issue(number))
        return self._as_issue(ask, self._call(ask))

    def comments(self, number: int, since: datetime | None = None) -> tuple[IssueComment, ...]:
        """Return an issue's comments in the order of their ids: all, or those updated since a moment."""
        documents = self._all(f"{self._issue(number)}/comments", *_since(since))
        found = {comment.id: comment for comment in read.each_of(documents, read.comment_of)}
        return tuple(found[key] for key in sorted(found))

    def events(self, number: int) -> tuple[HistoryEvent, ...]:
        """Return an issue's whole history in the order of its ids."""
        documents = self._all(f"{self._issue(number)}/events")
        found = {event.id: event for event in read.each_of(documents, read.event_of)}
        return tuple(found[key] for key in sorted(found))

    def blockers(self, number: int) -> tuple[Blocker, ...] | None:
        """Return what blocks an issue by GitHub's own relation; None where GitHub does not know or show it."""
        ask = Ask("GET", f"{self._issue(number)}/dependencies/blocked_by", (_PAGE,))
        first = self._call(ask, takes=(403, 404, 410, *MOVED))
        return None if first.status >= 300 else read.each_of(self._items(ask, first), read.blocker_of)

    def right(self, login: str) -> Right:
        """Return what an account may do in the repository; an App has no such right."""
        ask = Ask("GET", f"{self._root}/collaborators/{quote(login, safe='')}/permission")
        answer = self._call(ask, takes=(404,))
        return Right.NONE if answer.status == 404 else read.right_of(self._line.document(ask, answer))

    def labels(self) -> tuple[str, ...]:
        """Return the names of the repository's labels."""
        return tuple(filter(None, map(read.label_of, self._all(f"{self._root}/labels"))))

    # -- writing

    def comment(self, number: int, body: str) -> IssueComment:
        """Post a comment."""
        return self._as_comment(Ask("POST", f"{self._issue(number)}/comments", body={"body": body}))

    def edit_comment(self, comment_id: int, body: str) -> IssueComment:
        """Replace a comment's text."""
        return self._as_comment(Ask("PATCH", f"{self._root}/issues/comments/{comment_id}", body={"body": body}))

    def delete_comment(self, comment_id: int) -> None:
        """Delete a comment; one that is gone already is no mistake, while the repository can be seen."""
        with contextlib.suppress(NotFoundError):
            self._call(Ask("DELETE", f"{self._root}/issues/comments/{comment_id}"))

    def react(self, comment_id: int, content: str) -> None:
        """Add a reaction to a comment; one that is there already stays, and a comment that is gone needs none."""
        path = f"{self._root}/issues/comments/{comment_id}/reactions"
        with contextlib.suppress(NotFoundError):
            self._call(Ask("POST", path, body={"content": content}))

    def add_label(self, number: int, name: str) -> tuple[str, ...]:
        """Add a label, return the issue's labels; one that is there already stays."""
        ask = Ask("POST", f"{self._issue(number)}/labels", body={"labels": [name]})
        return self._as_labels(ask, self._call(ask))

    def remove_label(self, number: int, name: str) -> tuple[str, ...]:
        """Take a label off, return the issue's labels; one that is not there is no mistake."""
        ask = Ask("DELETE", f"{self._issue(number)}/labels/{quote(name, safe='')}")
        answer = self._call(ask, takes=(404,))
        # Either the label is not there, or the issue: a look at the issue finds out.
        return self.issue(number).labels if answer.status == 404 else self._as_labels(ask, answer)

    def create_label(self, name: str, color: str, description: str) -> None:
        """Make a label of the repository; one of that name stays as it is."""
        ask = Ask("POST", f"{self._root}/labels", body={"name": name, "color": color, "description": description})
        answer = self._call(ask, takes=(422,))
        # Not every GitHub says why: that there is one of that name is seen.
        if answer.status == 422 and name.casefold() not in map(str.casefold, self.labels()):
            raise self._line.place.refused(ask, answer)

    def close(self, number: int, reason: str = "completed") -> Issue:
        """Close an issue."""
        ask = Ask("PATCH", self._issue(number), body={"state": "closed", "state_reason": reason})
        return self._as_issue(ask, self._call(ask))

    # -- the repository and its surroundings

    def account(self) -> Account:
        """Return the account that we are."""
        return self._credentials.account(self._line)

    def account_of(self, login: str) -> Account | None:
        """Return the account of a login; None if there is none."""
        ask = Ask("GET", f"/users/{quote(login, safe='')}")
        answer = self._signed(ask, takes=(404,))
        return None if answer.status == 404 else read.known_account(self._line.document(ask, answer))

    def repository(self) -> Repository:
        """Return the repository; GITHUB_NOT_FOUND or GITHUB_MOVED if this account is shown none."""
        ask = Ask("GET", self._root)
        answer = self._signed(ask, takes=(404, *MOVED))
        if answer.status >= 300:
            code = "GITHUB_NOT_FOUND" if answer.status == 404 else "GITHUB_MOVED"
            raise self._line.place.problem(code, ask, status=answer.status)
        return read.repository_of(self._line.document(ask, answer))

    def rate(self) -> CallRate:
        """Return how many calls are left; this one is free."""
        answer = self._signed(RATE)
        return read.rate_of(self._line.document(RATE, answer), server_time(answer, self._line.time.now()))

    def hooks(self) -> tuple[Hook, ...]:
        """Return the repository's webhooks; GITHUB_RIGHTS if we may not see them."""
        ask = Ask("GET", f"{self._root}/hooks", (_PAGE,))
        answer = self._call(ask, takes=(404,))
        if answer.status == 404:
            raise self._line.place.problem("GITHUB_RIGHTS", ask, problem=words("github_problem.hooks"))
        return tuple(map(read.hook_of, self._items(ask, answer)))

    def deliveries(self, hook_id: int) -> tuple[Delivery, ...]:
        """Return the newest deliveries of a webhook, newest first."""
        ask = Ask("GET", f"{self._root}/hooks/{hook_id}/deliveries", (_PAGE,))
        return tuple(map(read.delivery_of, self._documents(ask, self._call(ask))))

    def pulls(self, head: str) -> tuple[Pull, ...]:
        """Return the pull requests from a branch of this repository, open and closed, newest first."""
        owner = self._line.place.repo.partition("/")[0]
        found = map(read.pull_of, self._all(f"{self._root}/pulls", ("state", "all"), ("head", f"{owner}:{head}")))
        # GitHub leaves out a filter that it does not understand.
        return tuple(sorted((pull for pull in found if pull.head == head), key=lambda pull: -pull.number))

    def open_pull(self, head: str, base: str, title: str, body: str) -> Pull:
        """Open a pull request."""
        return self._as_pull(
            Ask("POST", f"{self._root}/pulls", body={"head": head, "base": base, "title": title, "body": body})
        )

    def close_pull(self, number: int) -> Pull:
        """Close a pull request without merging it."""
        return self._as_pull(Ask("PATCH", f"{self._root}/pulls/{number}", body={"state": "closed"}))

    # -- calls

    def _issue(self, number: int) -> str:
        return f"{self._root}/issues/{number}"

    def _call(self, ask: Ask, takes: tuple[int, ...] = (), tag: str = "") -> Answer:
        """Make a call about something in the repository; it is only gone if the repository is not."""
        try:
            return self._signed(ask, takes, tag)
        except NotFoundError:
            if not self.repository().has_issues and "/issues" in ask.path:
                problem = words("github_problem.issues_off")
                raise self._line.place.problem("GITHUB_REFUSED", ask, problem=problem) from None
            raise

    def _signed(self, ask: Ask, takes: tuple[int, ...] = (), tag: str = "") -> Answer:
        """Make a call as who we are; an App's token that is refused is renewed, once: nothing has happened."""
        conditional = {"If-None-Match": tag} if tag else {}
        try:
            return self._line.exchange(ask, {**self._credentials.headers(), **conditional}, takes)
        except AiflowError as error:
            if error.reason_code != "GITHUB_TOKEN_INVALID" or not self._credentials.forget():
                raise
        return self._line.exchange(ask, {**self._credentials.headers(), **conditional}, takes)

    def _all(self, path: str, *query: tuple[str, str]) -> Iterator[object]:
        """Give what every page of a list has."""
        ask = Ask("GET", path, (*query, _PAGE))
        return self._items(ask, self._call(ask))

    def _items(self, ask: Ask, answer: Answer) -> Iterator[object]:
        """Give what a page has, and every page after it."""
        seen = {ask.query}
        while True:
            yield from self._documents(ask, answer)
            query = _next_query(answer)
            if query is None or query in seen:
                return
            seen.add(query)
            ask = ask._replace(query=query)
            answer = self._call(ask)

    def _documents(self, ask: Ask, answer: Answer) -> list[object]:
        documents = self._line.document(ask, answer)
        if isinstance(documents, list):
            return documents
        raise self._strange(ask)

    def _as_issue(self, ask: Ask, answer: Answer) -> Issue:
        document = self._line.document(ask, answer)
        issue = read.issue_of(document)
        if issue is None and read.inside(document, "pull_request") is not None:
            raise self._line.place.problem("GITHUB_GONE", ask, status=answer.status)
        if issue is None:
            raise self._strange(ask)
        return issue

    def _as_comment(self, ask: Ask) -> IssueComment:
        comment = read.comment_of(self._line.document(ask, self._call(ask)))
        if comment is None:
            raise self._strange(ask)
        return comment

    def _as_labels(self, ask: Ask, answer: Answer) -> tuple[str, ...]:
        return tuple(filter(None, map(read.label_of, self._documents(ask, answer))))

    def _as_pull(self, ask: Ask) -> Pull:
        return read.pull_of(self._line.document(ask, self._call(ask)))

    def _strange(self, ask: Ask) -> AiflowError:
        return self._line.place.failed(ask, words("github_problem.not_json"), may_have_happened=True)


def _since(moment: datetime | None) -> Query:
    from datetime import UTC

    return () if moment is None else (("since", moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")),)


def _next_query(answer: Answer) -> Query | None:
    """Return the query of the page after this one; where it points to is not followed."""
    found = _NEXT.search(answer.headers.get("link", ""))
    return tuple(parse_qsl(urlsplit(found[1]).query)) if found else None
