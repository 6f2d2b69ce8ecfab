"""What is known of issues without a call (ISS-2, ISS-10): the mirror, whose word counts, and what was remembered."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.issues.issue import Account, Right
from aiflow.domain.issues.requests import request_id_of, request_of
from aiflow.domain.issues.trust import SeenText, Trust
from aiflow.domain.issues.view import IssueMemory, IssueRules, IssueView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aiflow.adapters.github_issues.mirror import IssueMirror
    from aiflow.domain.issues.issue import Issue, Story
    from aiflow.domain.issues.view import OwnRun
    from aiflow.domain.request import Request, RequestId
    from aiflow.ports.issues import IssueHost
    from aiflow.ports.time import Time

# Somebody whose permission was taken away is believed no longer than this.
RIGHTS_FOR = timedelta(minutes=5)
_ACCOUNTS, _RIGHTS = "accounts", "rights"


class IssueTerms(NamedTuple):
    """What the settings say: the rules, and the logins of runner accounts besides our own, and of bots that count."""

    rules: IssueRules = IssueRules()
    runners: tuple[str, ...] = ()
    bots: tuple[str, ...] = ()


class IssueBook:
    """Everything that this checkout knows of a repository's issues."""

    def __init__(
        self,
        repo: str,
        mirror: IssueMirror,
        time: Time,
        own_runs: Callable[[RequestId], tuple[OwnRun, ...]],
        terms: IssueTerms,
    ) -> None:
        self.repo, self.mirror, self.time, self.rules = repo, mirror, time, terms.rules
        self._own_runs = own_runs
        self._listed = terms

    def view(self, story: Story) -> IssueView:
        """Look at an issue with all that is known here."""
        accounts = self.mirror.note(_ACCOUNTS)
        return IssueView(
            story,
            self._trust(accounts),
            self.time.now(),
            self.rules,
            self._own_runs(request_id_of(story.issue.number)),
            memory=self.memory(story.issue.number),
            me=_account(accounts.get("me")),
        )

    def request(self, story: Story, known: Mapping[int, Issue] | None = None) -> Request:
        """Return an issue as a request; `known` are all issues by their numbers."""
        issues = known if known is not None else self.issues()
        return request_of(self.view(story), self.repo, issues)

    def issues(self) -> dict[int, Issue]:
        """Return all issues by their numbers."""
        return {story.issue.number: story.issue for story in self.mirror.stories()}

    def learn(self, host: IssueHost, story: Story) -> None:
        """Learn who we are, and what those who did something on an issue may do; asked again when that is old."""
        accounts = dict(self.mirror.note(_ACCOUNTS))
        if _account(accounts.get("me")) is None:
            accounts["me"] = list(host.account())
        wanted = {login.lower() for login in (*self._listed.runners, *self._listed.bots)}
        for account in _accounts_of(story):
            # A login may be given to somebody else one day: the id that it had first is the one that is meant.
            if account.login.lower() in wanted:
                accounts.setdefault(f"id:{account.login.lower()}", account.id)
        accounts.setdefault("since", self.time.now().isoformat())
        self._put(_ACCOUNTS, accounts)
        self._learn_rights(host, story)

    def memory(self, number: int) -> IssueMemory:
        """Return what is remembered of an issue."""
        noted, since = self.mirror.note(f"memory-{number}"), self.mirror.note(_ACCOUNTS).get("since")
        seen, reacted, attempts = noted.get("seen_text"), noted.get("reacted"), noted.get("attempts")
        return IssueMemory(
            attempts if isinstance(attempts, int) else 0,
            frozenset(reacted) if isinstance(reacted, list) else frozenset(),
            SeenText(*map(str, seen)) if isinstance(seen, list) and len(seen) == 2 else None,
            datetime.fromisoformat(since) if isinstance(since, str) else None,
        )

    def remember(self, number: int, **changed: object) -> None:
        """Remember something of an issue: `attempts`, `reacted`, `seen_text`."""
        memory = self.memory(number)._replace(**changed)  # type: ignore[arg-type]
        seen = list(memory.seen_text) if memory.seen_text else None
        self._put(
            f"memory-{number}",
            {"attempts": memory.attempts, "reacted": sorted(memory.reacted), "seen_text": seen},
        )

    def _trust(self, accounts: Mapping[str, object]) -> Trust:
        me = _account(accounts.get("me"))
        rights = {int(key): Right(facts[0]) for key, facts in self._rights().items()}
        listed = {
            name: frozenset((login.lower(), account_id) for login in logins if (account_id := _id(accounts, login)))
            for name, logins in (("runners", self._listed.runners), ("bots", self._listed.bots))
        }
        own = {(me.login.lower(), me.id)} if me else set()
        return Trust(rights, listed["runners"] | own, listed["bots"])

    def _learn_rights(self, host: IssueHost, story: Story) -> None:
        now, rights = self.time.now(), self._rights()
        fresh = {
            key: facts
            for key, facts in rights.items()
            if timedelta() <= now - datetime.fromisoformat(facts[1]) < RIGHTS_FOR
        }
        for account in _accounts_of(story):
            if str(account.id) not in fresh and not account.is_bot:
                fresh[str(account.id)] = (int(host.right(account.login)), now.isoformat())
        if fresh != rights:
            self._put(_RIGHTS, {key: list(facts) for key, facts in {**rights, **fresh}.items()})

    def _rights(self) -> dict[str, tuple[int, str]]:
        noted = self.mirror.note(_RIGHTS)
        return {key: (int(facts[0]), str(facts[1])) for key, facts in noted.items() if isinstance(facts, list)}

    def _put(self, name: str, facts: Mapping[str, object]) -> None:
        if self.mirror.note(name) != facts:
            self.mirror.put_note(name, facts)


def _accounts_of(story: Story) -> Iterator[Account]:
    """Yield everybody who did something on an issue, each once."""
    did = (story.issue.author, *(each.author for each in story.comments), *(each.actor for each in story.events))
    return (account for account in dict.fromkeys(did) if account is not None)


def _account(noted: object) -> Account | None:
    return (
        Account(str(noted[0]), int(noted[1]), bool(noted[2])) if isinstance(noted, list) and len(noted) == 3 else None
    )


def _id(accounts: Mapping[str, object], login: str) -> int | None:
    known = accounts.get(f"id:{login.lower()}")
    return known if isinstance(known, int) else None
