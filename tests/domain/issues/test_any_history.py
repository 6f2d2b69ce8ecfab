"""Whatever people and two runners do to an issue, in any order: issue and runs agree in the end (ISS-10)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.domain.issues.deciders import deciders
from aiflow.domain.issues.issue import Account
from aiflow.domain.issues.labels import agent_labels
from aiflow.domain.issues.marks import find_mark
from aiflow.domain.issues.standing import Reading, stand
from aiflow.domain.issues.tending import tend
from aiflow.domain.issues.view import CancelRun, IssueRules, IssueView
from aiflow.domain.lifecycle import RunOutcome
from forms import is_soak, rounds
from issue_model import BEAT, Checkout, OneIssue
from issue_stories import OTHER_RUNNER, RUNNER, STRANGER, WRITER, issue

if TYPE_CHECKING:
    from collections.abc import Callable

LABELS = ("agent:queued", "agent:retry", "agent:running", "agent:blocked")
PEOPLE = (WRITER, STRANGER, RUNNER)
WORDS = ("/retry", "/retry use plan B", "/cancel", "/status", "I decided.", "`/retry`")
MINE = st.integers(0, 1)
DEEDS = st.one_of(
    st.tuples(st.just("label"), st.sampled_from(PEOPLE), st.sampled_from(LABELS)),
    st.tuples(st.just("label"), st.just(WRITER), st.sampled_from(LABELS[:2])),
    st.tuples(st.just("unlabel"), st.sampled_from(PEOPLE), st.sampled_from(LABELS)),
    st.tuples(st.just("comment"), st.sampled_from(PEOPLE), st.sampled_from(WORDS)),
    st.tuples(st.just("close"), st.sampled_from(PEOPLE), st.just("")),
    st.tuples(st.just("reopen"), st.just(WRITER), st.just("")),
    st.tuples(st.just("write"), st.just(STRANGER), st.sampled_from(["one", "two"])),
    st.tuples(st.just("delete"), st.integers(0, 30), st.just("")),
    st.tuples(st.just("wait"), st.sampled_from([1, 5 * 60, 40 * 60, 25 * 3600]), st.just("")),
    st.tuples(st.just("tend"), MINE, st.just("")),
    st.tuples(st.just("tend"), MINE, st.just("")),
    st.tuples(st.just("start"), MINE, st.just("")),
    st.tuples(st.just("start"), MINE, st.just("")),
    st.tuples(st.just("finish"), MINE, st.sampled_from([RunOutcome.NEEDS_INPUT, RunOutcome.AWAITING_ACCEPTANCE, RunOutcome.FAILED])),
    st.tuples(st.just("crash"), MINE, st.just("")),
    st.tuples(st.just("run"), MINE, st.sampled_from(["agent:queued", "agent:retry", "/retry"])),
    st.tuples(st.just("run"), MINE, st.just("/retry")),
    st.tuples(st.just("end"), MINE, st.sampled_from([RunOutcome.NEEDS_INPUT, RunOutcome.AWAITING_ACCEPTANCE])),
)  # fmt: skip


class World:
    """One issue, two checkouts, and what must always hold."""

    def __init__(self, author: Account) -> None:
        self.github = OneIssue(issue=issue(author=author))
        rules = IssueRules(retries=2)
        self.checkouts = [Checkout(self.github, account, rules=rules) for account in (RUNNER, OTHER_RUNNER)]
        self.attempts = [0, 0]

    def do(self, what: str, who: Any, which: Any) -> None:
        self.github.tick(1)
        if isinstance(who, Account):
            self._by_person(what, who, which)
        elif what in ("delete", "wait"):
            (self._delete if what == "delete" else self._wait)(who)
        else:
            self._by_checkout(what, self.checkouts[who], which)
        self.check()

    def _by_person(self, what: str, who: Account, which: str) -> None:
        deeds: dict[str, Callable[[], object]] = {
            "label": lambda: self.github.set_label(which, who, is_added=True),
            "unlabel": lambda: self.github.set_label(which, who, is_added=False),
            "comment": lambda: self.github.comment(which, who),
            "close": lambda: self.github.close(who),
            "reopen": lambda: self.github.reopen(who),
            "write": lambda: self.github.write(which),
        }
        deeds[what]()

    def _by_checkout(self, what: str, checkout: Checkout, which: Any) -> None:
        deeds: dict[str, Callable[[], object]] = {
            "tend": lambda: self.tend(checkout),
            "start": checkout.start,
            "crash": checkout.crash,
            "finish": lambda: checkout.finish(which),
            "run": lambda: self._run(checkout, which),
            "end": lambda: self._end(checkout, which),
        }
        deeds[what]()

    def _end(self, checkout: Checkout, outcome: RunOutcome) -> None:
        checkout.finish(outcome)
        self.tend(checkout)

    def tend(self, checkout: Checkout) -> None:
        """Tend, and find nothing more to do, unless a run that nobody worked on has been ended by it."""
        deeds = checkout.tend()
        has_ended = any(isinstance(deed, CancelRun) for deed in deeds)
        deeds = checkout.tend() if has_ended else deeds
        assert tend(checkout.look()) == (), deeds

    def _run(self, checkout: Checkout, asked: str) -> None:
        """Let a writer ask for a run, and a checkout start it."""
        if asked.startswith("/"):
            self.github.comment(asked, WRITER)
        else:
            self.github.set_label(asked, WRITER, is_added=True)
        self.tend(checkout)
        checkout.start()
        self.check()
        checkout.start()

    def _delete(self, number: int) -> None:
        ids = list(self.github.comments)
        for checkout in self.checkouts:
            checkout.look()
        if ids:
            self.github.delete(ids[number % len(ids)])

    def _wait(self, seconds: int) -> None:
        end = self.github.now + timedelta(seconds=seconds)
        while self.github.now < end:
            self.github.now = min(end, self.github.now + BEAT)
            for checkout in self.checkouts:
                checkout.beat()

    def check(self) -> None:
        working = [checkout.working for checkout in self.checkouts if checkout.working]
        assert len(working) <= 1, working
        assert len(self.github.keys) == len(set(self.github.keys)), sorted(self.github.keys)
        for number, checkout in enumerate(self.checkouts):
            view = checkout.look()
            attempts = Reading(view).attempts
            if is_soak():
                self._check_deciders(view)
            assert attempts >= self.attempts[number]
            assert attempts <= 3, "a limit of two retries"
            self.attempts[number] = attempts

    @staticmethod
    def _check_deciders(view: IssueView) -> None:
        """Whoever is asked for no right would change nothing with it."""
        ids = {account.id for account in deciders(view.story, view.trust)}
        rights = {key: right for key, right in view.trust.rights.items() if key in ids}
        lean = view._replace(trust=view.trust._replace(rights=rights))
        assert (stand(lean), tend(lean)) == (stand(view), tend(view))

    def settle(self) -> None:
        """Let the events come in, and everybody look twice; then nothing is left to do, and all agree."""
        self._wait(5 * 60)
        for _ in range(2):
            for checkout in self.checkouts:
                if checkout.starting:
                    checkout.start()
                self.tend(checkout)
                self.check()
        standings = [stand(checkout.look()) for checkout in self.checkouts]
        for checkout, standing in zip(self.checkouts, standings, strict=True):
            assert tend(checkout.look()) == ()
            self._check_deciders(checkout.look())
            present = agent_labels(self.github.issue.labels)
            assert standing.label is None or present == ({standing.label} if standing.label else set())
        is_held = any(each.is_elsewhere or each.run_deeds or each.status == "running" for each in standings)
        assert is_held or len({(each.status, each.label) for each in standings}) == 1, standings
        self._posted_for_everyone()

    def _posted_for_everyone(self) -> None:
        """An issue whose run works shows it, unless it was asked to stop."""
        for checkout in self.checkouts:
            run = checkout.working
            if run is not None and not run.is_stopping:
                assert agent_labels(self.github.issue.labels) == {"agent:running"}


@pytest.mark.longer
@pytest.mark.spec("ISS-3", "ISS-7", "ISS-10")
@settings(max_examples=rounds(150, 5000))
@given(st.sampled_from([WRITER, STRANGER]), st.lists(DEEDS, min_size=10, max_size=40))
def test_issue_and_runs_agree_in_the_end(author: Account, deeds: list[tuple[str, Any, Any]]) -> None:
    world = World(author)
    for deed in deeds:
        world.do(*deed)
    world.settle()


def test_the_histories_reach_what_matters() -> None:
    """The same world, led by hand: a run, a block, a retry, an end."""
    world = World(WRITER)
    for deed in [
        ("label", WRITER, "agent:queued"), ("tend", 0, ""), ("start", 0, ""), ("start", 1, ""), ("start", 1, ""), ("start", 0, ""),
        ("finish", 0, RunOutcome.NEEDS_INPUT), ("tend", 0, ""), ("comment", WRITER, "/retry"), ("tend", 1, ""), ("tend", 0, ""),
        ("start", 1, ""), ("start", 1, ""), ("finish", 1, RunOutcome.AWAITING_ACCEPTANCE), ("tend", 1, ""), ("close", WRITER, ""),
    ]:  # fmt: skip
        world.do(*deed)
    world.settle()
    kinds = [mark.kind.value for each in world.github.comments.values() if (mark := find_mark(each.body))]
    assert kinds == ["run-header", "blocked", "run-header", "result"]
    assert world.github.issue.labels == ()
    assert world.attempts == [2, 2]
