"""What is known of issues without a call (ISS-2, ISS-10): the mirror, whose word counts, and what was remembered."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.issue_ways import request_id_of
from aiflow.domain.issues.again import silent_run
from aiflow.domain.issues.deciders import deciders
from aiflow.domain.issues.issue import Account, Right
from aiflow.domain.issues.labels import agent_labels
from aiflow.domain.issues.requests import request_of, unmet
from aiflow.domain.issues.trust import SeenText, Trust
from aiflow.domain.issues.view import IssueMemory, IssueRules, IssueView
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from aiflow.adapters.github_issues.mirror import IssueMirror
    from aiflow.domain.claims import Refusal
    from aiflow.domain.issues.issue import Issue, Story
    from aiflow.domain.issues.view import OwnRun
    from aiflow.domain.request import Request, RequestId
    from aiflow.ports.issues import IssueHost
    from aiflow.ports.time import Time

# Somebody whose permission was taken away is believed no longer than this.
RIGHTS_FOR = timedelta(minutes=5)
_ACCOUNTS, _RIGHTS, _LEARNING = "accounts", "rights", "learning"


def no_task(_request_id: RequestId, _run_id: str) -> bool:
    """Know of no store with tasks."""
    return False


class IssueTerms(NamedTuple):
    """What the settings say: the rules, and the logins of runner accounts besides our own, and of bots that count.

    `has_running_task` asks the shared store, where there is one, whether a run's task is RUNNING there.
    """

    rules: IssueRules = IssueRules()
    runners: tuple[str, ...] = ()
    bots: tuple[str, ...] = ()
    has_running_task: Callable[[RequestId, str], bool] = no_task


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
        self._own_runs, self._listed = own_runs, terms
        self._asked: dict[str, bool] = {}

    def view(self, story: Story) -> IssueView:
        """Look at an issue with all that is known here, without a call: of tasks what was found out before."""
        accounts = self.mirror.note(_ACCOUNTS)
        return IssueView(
            story,
            self._trust(accounts),
            self.time.now(),
            self.rules,
            self._own_runs(request_id_of(story.issue.number)),
            frozenset(run_id for run_id, is_running in self._asked.items() if is_running),
            self.memory(story.issue.number),
            _account(accounts.get("me")),
        )

    def asked_view(self, story: Story) -> IssueView:
        """Look at an issue, and ask the shared store about a run of others whose sign of life is old (ISS-3).

        While the store does not answer, such a run counts as live: a run too many is worse than one that waits.
        """
        view = self.view(story)
        silent = silent_run(view._replace(running_tasks=frozenset()))
        if silent is None:
            return view
        try:
            self._asked[silent] = self._listed.has_running_task(request_id_of(story.issue.number), silent)
        except AiflowError:
            self._asked[silent] = True
        return self.view(story)

    def runs(self, number: int) -> tuple[OwnRun, ...]:
        """Return the runs of an issue in this checkout, also of one that is no more."""
        return self._own_runs(request_id_of(number))

    def request(self, story: Story, known: Mapping[int, Issue] | None = None) -> Request:
        """Return an issue as a request; `known` are all issues by their numbers, where they were read already."""
        issues = known if known is not None else _MirroredIssues(self.mirror)
        return request_of(self.view(story), self.repo, issues)

    def unmet(self, story: Story) -> Refusal | None:
        """Say what an issue that was just read waits for, if it does."""
        return unmet(story, self.repo, _MirroredIssues(self.mirror))

    def learn(self, host: IssueHost, story: Story) -> None:
        """Learn who we are, and what those may do whose word counts on an issue; asked again when that is old."""
        accounts = dict(self.mirror.note(_ACCOUNTS))
        if _account(accounts.get("me")) is None:
            accounts["me"] = list(host.account())
        wanted = {login.lower() for login in (*self._listed.runners, *self._listed.bots)}
        for account in _accounts_of(story):
            # A login may be given to somebody else one day: the id that it had first is the one that is meant.
            if account.login.lower() in wanted:
                accounts.setdefault(f"id:{account.login.lower()}", account.id)
        # GitHub's times are whole seconds: what is asked in this very one is asked of us.
        accounts.setdefault("since", self.time.now().replace(microsecond=0).isoformat())
        self._put(_ACCOUNTS, accounts)
        self._learn_rights(host, story)

    def to_learn(self) -> list[int]:
        """Return the issues on which the word of somebody unknown counts, and those with an agent label."""
        accounts = self.mirror.note(_ACCOUNTS)
        trust = self._trust(accounts)
        return [
            story.issue.number
            for story in self.mirror.stories()
            if _account(accounts.get("me")) is None
            or agent_labels(story.issue.labels)
            or any(each.id not in trust.rights for each in deciders(story, trust))
        ]

    @property
    def is_learning_due(self) -> bool:
        """Whether issues were read of whose people nothing is known, because GitHub fell silent."""
        return self.mirror.note(_LEARNING).get("is_due") is True

    def put_off_learning(self, *, is_due: bool = True) -> None:
        """Remember that what people may do has to be learnt yet, or was."""
        if self.is_learning_due is not is_due:
            self.mirror.put_note(_LEARNING, {"is_due": is_due})

    def begin(self) -> None:
        """Note since when the repository is watched, at the first sync: what people ask from then on is answered."""
        accounts = self.mirror.note(_ACCOUNTS)
        if "since" not in accounts:
            self._put(_ACCOUNTS, {**accounts, "since": self.time.now().replace(microsecond=0).isoformat()})

    def memory(self, number: int) -> IssueMemory:
        """Return what is remembered of an issue."""
        noted, since = self.mirror.note(f"memory-{number}"), self.mirror.note(_ACCOUNTS).get("since")
        seen, reacted, attempts = noted.get("seen_text"), noted.get("reacted"), noted.get("attempts")
        pulls, judged = noted.get("settled_pulls"), noted.get("judged")
        started = noted.get("started")
        return IssueMemory(
            attempts if isinstance(attempts, int) else 0,
            frozenset(reacted) if isinstance(reacted, list) else frozenset(),
            SeenText(*map(str, seen)) if isinstance(seen, list) and len(seen) == 2 else None,
            datetime.fromisoformat(since) if isinstance(since, str) else None,
            started if isinstance(started, str) else None,
            frozenset(pulls) if isinstance(pulls, list) else frozenset(),
            judged if isinstance(judged, str) else "",
        )

    def remember(self, number: int, **changed: object) -> None:
        """Remember something of an issue, by the names of its memory."""
        memory = self.memory(number)._replace(**changed)  # type: ignore[arg-type]
        seen = list(memory.seen_text) if memory.seen_text else None
        facts = {"attempts": memory.attempts, "reacted": sorted(memory.reacted), "seen_text": seen}
        facts |= {"started": memory.started, "settled_pulls": sorted(memory.settled_pulls), "judged": memory.judged}
        self._put(f"memory-{number}", facts)

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
        """Learn what the author may do first: who else counts depends on it."""
        self._ask_rights(host, filter(None, (story.issue.author,)))
        self._ask_rights(host, deciders(story, self._trust(self.mirror.note(_ACCOUNTS))))

    def _ask_rights(self, host: IssueHost, accounts: Iterable[Account]) -> None:
        now, rights = self.time.now(), self._rights()
        fresh = {
            key: facts
            for key, facts in rights.items()
            if timedelta() <= now - datetime.fromisoformat(facts[1]) < RIGHTS_FOR
        }
        for account in accounts:
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


class _MirroredIssues(Mapping[int, "Issue"]):
    """The issues by their numbers, each read when it is asked for: one request needs few of them."""

    def __init__(self, mirror: IssueMirror) -> None:
        self._mirror = mirror

    def __getitem__(self, number: int) -> Issue:
        story = self._mirror.story(number)
        if story is None:
            raise KeyError(number)
        return story.issue

    def __iter__(self) -> Iterator[int]:
        return iter(self._mirror.numbers())

    def __len__(self) -> int:
        return len(self._mirror.numbers())


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
