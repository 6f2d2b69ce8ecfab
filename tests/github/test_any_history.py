"""Whatever two runners, people and GitHub do to an issue, in any order and between any two calls (ISS-3 to ISS-10)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.domain.lifecycle import RunOutcome
from forms import rounds
from github.histories import NUMBER, World
from github.scene import RUNNER

LABELS = ("agent:queued", "agent:retry", "agent:running", "agent:blocked")
PEOPLE = ("maya", "theo", RUNNER)
WORDS = ("/retry", "/retry use plan B", "/cancel", "/status", "I decided.", "`/retry`")
MINE, CALLS, NONE = st.integers(0, 1), st.integers(1, 25), st.just("")
ENDS = st.sampled_from([RunOutcome.NEEDS_INPUT, RunOutcome.AWAITING_ACCEPTANCE, RunOutcome.FAILED])
BY_PEOPLE = st.one_of(
    st.tuples(st.just("label"), st.sampled_from(PEOPLE), st.sampled_from(LABELS)),
    st.tuples(st.just("unlabel"), st.sampled_from(PEOPLE), st.sampled_from(LABELS)),
    st.tuples(st.just("comment"), st.sampled_from(PEOPLE), st.sampled_from(WORDS)),
    st.tuples(st.just("close"), st.just("maya"), st.sampled_from(["completed", "not_planned"])),
    st.tuples(st.just("reopen"), st.just("maya"), NONE),
    st.tuples(st.just("edit"), st.just("rita"), st.sampled_from(["one", "two"])),
)
BY_RUNNERS = st.one_of(
    st.tuples(st.sampled_from(["look", "hint"]), MINE, NONE),
    st.tuples(st.just("start"), MINE, NONE),
    st.tuples(st.just("run"), MINE, st.sampled_from(["agent:queued", "agent:retry", "/retry"])),
    st.tuples(st.just("finish"), MINE, ENDS),
    st.tuples(st.just("crash"), MINE, st.just(0)),
)
WHERE = st.sampled_from(
    [r"POST .*/comments", r"PATCH .*", r"(POST|DELETE) .*/labels", r"GET .*/comments", r"(POST|GET|PATCH)"]
)
RACES = st.tuples(
    st.just("race"),
    MINE,
    st.tuples(st.integers(3, 6), st.sampled_from(["agent:queued", "/retry"]), st.integers(0, 3), st.booleans()),
)
TOGETHER = st.tuples(
    st.just("together"), MINE, st.tuples(st.integers(1, 2), st.sampled_from(["/status", "/help", "/retry"]))
)
DEEDS = st.one_of(
    BY_PEOPLE,
    BY_RUNNERS,
    BY_RUNNERS,
    st.tuples(st.just("run"), MINE, st.just("/retry")),
    RACES,
    RACES,
    TOGETHER,
    TOGETHER,
    st.tuples(st.just("delete"), st.integers(0, 30), NONE),
    st.tuples(st.just("wait"), st.sampled_from([1, 5 * 60, 40 * 60, 25 * 3600]), NONE),
    st.tuples(st.just("crash"), MINE, CALLS),
    st.tuples(st.just("meanwhile"), MINE, st.tuples(CALLS, st.one_of(BY_PEOPLE, BY_RUNNERS, BY_RUNNERS))),
    st.tuples(st.just("fault"), WHERE, st.sampled_from(["lost", "unsent", "500", "422"])),
    st.tuples(st.just("lag"), st.integers(0, 4), st.sampled_from([0, 5])),
)  # fmt: skip


def play(author: str, logins: tuple[str, str], deeds: list[tuple[str, Any, Any]]) -> World:
    world = World(author, logins=logins)
    try:
        for deed in deeds:
            world.do(*deed)
        world.settle()
    finally:
        world.close()
    return world


# Deleted or moved to another repository, between two deeds or between two calls of one.
AWAY = st.tuples(st.just("gone"), st.just("owner"), st.sampled_from(["transferred", "deleted"]))
GONE = st.one_of(AWAY, st.tuples(st.just("meanwhile"), MINE, st.tuples(CALLS, AWAY)))
# The first race is on an issue to which nothing has happened, as most are.
HISTORIES = st.builds(
    lambda first, rest, end: [*first, *rest, *end],
    st.lists(RACES, max_size=2),
    st.lists(DEEDS, min_size=4, max_size=16),
    st.one_of(st.just([]), st.just([]), st.builds(lambda gone, rest: [gone, *rest], GONE, st.lists(DEEDS, max_size=4))),
)
LOGINS = st.sampled_from([(RUNNER, "aiflow-two"), (RUNNER, RUNNER)])


@pytest.mark.contract
@pytest.mark.longer
@pytest.mark.spec("ISS-3", "ISS-4", "ISS-6", "ISS-7", "ISS-10")
@settings(max_examples=rounds(60, 3000))
@given(st.sampled_from(["maya", "rita"]), LOGINS, HISTORIES)
def test_issue_and_runs_agree_in_the_end(author: str, logins: tuple[str, str], deeds: list[Any]) -> None:
    play(author, logins, deeds)


def test_the_histories_reach_what_matters() -> None:
    """The same world, led by hand: a race, a crash in the middle of a start, a block, a retry, an end."""
    world = play("maya", (RUNNER, "aiflow-two"), [
        ("label", "maya", "agent:queued"), ("look", 0, ""), ("look", 1, ""),
        ("meanwhile", 0, (6, ("start", 1, ""))), ("start", 0, ""), ("start", 0, ""),
        ("finish", 0, RunOutcome.NEEDS_INPUT), ("finish", 1, RunOutcome.NEEDS_INPUT), ("comment", "maya", "/retry"),
        ("crash", 0, 8), ("look", 1, ""), ("look", 0, ""), ("start", 0, ""), ("look", 0, ""), ("start", 0, ""), ("start", 1, ""),
        ("finish", 0, RunOutcome.AWAITING_ACCEPTANCE), ("finish", 1, RunOutcome.AWAITING_ACCEPTANCE), ("close", "maya", "completed"),
    ])  # fmt: skip
    assert world.runs_won == 2
    assert world.hub.rows[NUMBER].label_names() == []


@pytest.mark.spec("ISS-10")
@pytest.mark.parametrize("logins", [(RUNNER, "aiflow-two"), (RUNNER, RUNNER)], ids=["two accounts", "one account"])
@pytest.mark.parametrize("is_running", [False, True], ids=["ready", "running"])
def test_what_two_say_at_the_same_moment_is_taken_back(logins: tuple[str, str], is_running: bool) -> None:
    world = World("maya", logins=logins)
    try:
        world.do("run" if is_running else "label", *((0, "agent:queued") if is_running else ("maya", "agent:queued")))
        for who in (0, 1):
            world.do("look", who, "")
        world.do("together", 0, (1, "/status"))
        said = [key for key in world.said if key.startswith("status:")]
        assert len(said) == (1 if is_running else 2)  # of a run that one has, that one alone speaks
        assert world.twice() == []
        world.settle()
    finally:
        world.close()
