"""GitHub fails at each call of a life's second half (ISS-4, ISS-9, ISS-11): send-back, push, pull requests, accept, close.

The first run waits with its pull request. What comes behind it is played again and again; each time another one of its
calls goes wrong. In the end there is one result a run, no open pull request, and an issue that was closed once.
"""

from __future__ import annotations

import random

import pytest

from aiflow.adapters.github_issues.transport import Ask
from aiflow.domain.issues.marks import MarkKind, find_mark
from aiflow.domain.lifecycle import RunOutcome, RunState
from aiflow.domain.reasons import CATALOGUE
from aiflow.domain.request import RequestStatus
from aiflow.domain.runs.run import Run
from aiflow.errors import AiflowError
from aiflow.usecases.runs.accept import accept_run
from forms import is_soak
from github.outages import OUTAGE_SECONDS, TROUBLES, Wire, settled, slow
from github.scene import Scene
from github.yard import Yard

SETTINGS: dict[str, bool | str] = {"git.push": True, "github.pull_request": True, "github.accept_closes": True}


def begun() -> Yard:
    """Return a checkout whose run is done and shown, with a pull request, and a person who sends it back."""
    yard = Yard(Scene(), settings=SETTINGS)
    yard.queued()
    assert yard.look() == []
    assert yard.run().outcome is RunOutcome.AWAITING_ACCEPTANCE
    yard.pause(60)
    assert yard.look() == []
    assert [pull.is_open for pull in yard.scene.hub.pulls] == [True]
    yard.scene.hub.comment(1, "/retry in UTC", "maya")
    yard.pause(60)
    return yard


def newest(yard: Yard) -> Run:
    """Return the newest run of the issue."""
    return [run for _, run in sorted(yard.checkout.runs.runs.items()) if run is not None][-1]


def live(yard: Yard) -> list[AiflowError]:
    """Play the second half: what a person typed and was refused is typed again a while later."""
    told = yard.look()
    for act in (yard.run, lambda: accepted(yard)):
        for _ in range(2):
            try:
                act()
                break
            except AiflowError as error:
                told.append(error)
                yard.pause(OUTAGE_SECONDS + 10)
        yard.pause(60)
        told += yard.look()
    return told


def accepted(yard: Yard) -> None:
    """Accept what the second run made, if it made something."""
    run = newest(yard)
    if run.outcome is RunOutcome.AWAITING_ACCEPTANCE and len(yard.checkout.runs.runs) > 1:
        accept_run(yard.engine, run)


def go_on(yard: Yard) -> None:
    """Now that GitHub is back a person has a blocked issue done once more, and accepts what waits."""
    assert yard.status() in (RequestStatus.READY, RequestStatus.BLOCKED, RequestStatus.DONE)
    is_done = newest(yard).outcome in (RunOutcome.AWAITING_ACCEPTANCE, RunOutcome.ACCEPTED)
    if yard.status() is RequestStatus.BLOCKED and not is_done:
        yard.scene.hub.comment(1, "/retry once more", "maya")
        yard.pause(60)
        assert yard.look() == []
    if yard.status() is RequestStatus.READY:
        yard.run()
        yard.pause(60)
        assert yard.look() == []
    accepted(yard)
    yard.pause(60)
    assert yard.look() == []


def check(yard: Yard, wire: Wire) -> None:
    """Hold what must be true of an issue that was accepted, whatever happened on the way."""
    hub, row = yard.scene.hub, yard.scene.hub.rows[1]
    assert len(wire.posted) == len(set(wire.posted)), wire.posted
    assert (row.is_open, row.reason, yard.labels()) == (False, "completed", [])
    assert [event.kind for event in row.events].count("closed") == 1
    assert yard.status() is RequestStatus.DONE
    runs = [run for _, run in sorted(yard.checkout.runs.runs.items()) if run is not None]
    stopped = [run for run in runs[1:-1] if run.outcome is not RunOutcome.SENT_BACK or run.state is not RunState.DONE]
    assert (runs[0].outcome, runs[-1].outcome) == (RunOutcome.SENT_BACK, RunOutcome.ACCEPTED)
    assert len(runs) == 2 + len(stopped)
    assert stopped == [] or not wire.trouble.is_brief
    assert yard.kinds().count("result") == 2
    assert hub.open_pulls() == []
    for pull in hub.pulls:
        marks = [find_mark(comment.body) for comment in hub.rows[pull.number].comments]
        assert len(marks) == 1, (pull.number, marks)
    # What was accepted before its result could be written needs no pull request.
    shown = sum("pull" in mark.facts for _, mark in yard.marks() if mark.kind is MarkKind.RESULT)
    assert len({pull.head for pull in hub.pulls}) == len(hub.pulls) == shown


def calls_of_the_second_half() -> list[Ask]:
    yard = begun()
    made = len(yard.scene.api.calls)
    wire = Wire(yard)
    slow(yard)
    assert live(yard) == []
    calls = yard.scene.api.calls[made:]
    settled(yard, wire)
    check(yard, wire)
    return calls


def which(calls: list[Ask], chance: random.Random) -> list[int]:
    """Return which calls go wrong: each in the long form, else one of each kind."""
    if is_soak():
        return [*range(1, len(calls) + 1)]
    kinds: dict[str, list[int]] = {}
    for at, ask in enumerate(calls, 1):
        kinds.setdefault(str(ask), []).append(at)
    return [chance.choice(each) for each in kinds.values()]


@pytest.mark.contract
@pytest.mark.spec("ISS-4", "ISS-9", "ISS-11")
@pytest.mark.parametrize("kind", TROUBLES)
def test_whichever_call_behind_a_result_fails_the_issue_is_accepted_and_closed_once(
    kind: str, chance: random.Random
) -> None:
    calls = calls_of_the_second_half()
    for at in which(calls, chance):
        yard = begun()
        wire = Wire(yard, at, TROUBLES[kind]())
        slow(yard)
        told: list[AiflowError] = []
        try:
            told = live(yard)
            assert all(error.reason_code in CATALOGUE and error.reason_code != "INTERNAL_ERROR" for error in told)
            settled(yard, wire)
            go_on(yard)
            check(yard, wire)
        except AssertionError as error:
            said = f"{kind} at call {at} ({calls[at - 1]}): {error}; {told} {yard.labels()} {yard.said()}"
            raise AssertionError(said) from error
