"""What `aiflow up` does next, by what it sees (API-1): every decision as a row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aiflow.domain.server.supervision import (
    GIVE_UP_SECONDS,
    LONGEST_PAUSE_SECONDS,
    MOST_TRIES,
    WELL_SECONDS,
    Known,
    Left,
    MoveKind,
    UpSight,
    Wish,
    decide,
    started,
)

NIGHT = Left("auto 1", ("auto", "--continue"))
RUN = Left("run RQ-1 S01", ("run", "--", "RQ-1"), "RQ-1")
SEEN = UpSight(at=100.0)
pytestmark = pytest.mark.spec("API-1")


def kinds(seen: UpSight, known: Known | None = None) -> list[str]:
    """Return what is done, in order."""
    return [move.kind.value for move in decide(seen, known or Known())[0]]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"left": (NIGHT,)}, ["start_worker"]),
        ({"left": (RUN, NIGHT)}, ["start_worker"]),
        ({"left": (RUN,), "is_busy": True}, []),
        ({"left": (RUN,), "workers": (7,)}, []),
        ({"is_runner_wanted": True}, ["start_runner"]),
        ({"is_runner_wanted": True, "is_runner_working": True}, []),
        ({"is_runner_wanted": True, "left": (RUN,)}, ["start_runner", "start_worker"]),
        ({"is_runner_working": True}, ["release_runner"]),
        ({"wish": Wish.AFTER_WORK}, ["leave"]),
        ({"wish": Wish.AFTER_WORK, "left": (RUN,), "is_runner_wanted": True}, ["leave"]),
        ({"wish": Wish.AFTER_WORK, "is_busy": True}, ["leave"]),  # somebody else's: it is none of our business
        ({"wish": Wish.AFTER_WORK, "workers": (7,)}, []),
        ({"wish": Wish.AFTER_WORK, "workers": (7,), "auto_pid": 7}, ["ask_auto"]),
        ({"wish": Wish.AFTER_WORK, "workers": (7,), "auto_pid": 8}, []),
        ({"wish": Wish.AFTER_WORK, "is_runner_working": True}, ["release_runner"]),
        ({"wish": Wish.NOW, "workers": (7,), "auto_pid": 7}, ["end_worker"]),
        ({"wish": Wish.NOW, "workers": (7, 8)}, ["end_worker", "end_worker"]),
        ({"wish": Wish.NOW, "is_runner_working": True}, ["release_runner", "end_runner"]),
        ({"wish": Wish.NOW}, ["leave"]),
        ({"wish": Wish.LEAVE, "workers": (7,), "auto_pid": 7}, ["leave"]),
        ({"wish": Wish.LEAVE, "is_runner_working": True}, ["release_runner", "leave"]),
    ],
)
def test_what_is_done_follows_from_what_is_seen(changes: dict[str, Any], expected: list[str]) -> None:
    assert kinds(SEEN._replace(**changes)) == expected


@pytest.mark.parametrize("wish", [Wish.AFTER_WORK, Wish.NOW])
def test_everybody_is_asked_once(wish: Wish) -> None:
    seen = SEEN._replace(wish=wish, workers=(7,), auto_pid=7, is_runner_working=True)
    _, known = decide(seen, Known())
    assert kinds(seen, known) == []
    assert kinds(seen._replace(workers=(), is_runner_working=False), known) == ["leave"]


def test_ctrl_c_twice_ends_what_was_asked_to_end_after_its_run() -> None:
    seen = SEEN._replace(wish=Wish.AFTER_WORK, workers=(7,), auto_pid=7)
    _, known = decide(seen, Known())
    assert kinds(seen._replace(wish=Wish.NOW), known) == ["end_worker"]


def test_who_does_not_end_now_is_left_in_the_end() -> None:
    seen = SEEN._replace(wish=Wish.NOW, workers=(7,))
    _, known = decide(seen, Known())
    assert kinds(seen._replace(at=SEEN.at + GIVE_UP_SECONDS - 1), known) == []
    assert kinds(seen._replace(at=SEEN.at + GIVE_UP_SECONDS), known) == ["leave"]


@pytest.mark.spec("RUN-11")
def test_a_worker_that_is_killed_is_started_again_but_not_for_ever() -> None:
    known, starts = Known(), 0
    while kinds(SEEN._replace(left=(RUN,)), known) == ["start_worker"]:
        starts += 1
        known = started(known, RUN, starts)
        _, known = decide(SEEN._replace(ended={starts: -9}), known)
        assert starts <= MOST_TRIES
    assert starts == MOST_TRIES
    further = RUN._replace(key="run RQ-1 S02")
    assert kinds(SEEN._replace(left=(further,)), known) == ["start_worker"], "it got further: that is another crash"


@pytest.mark.spec("RUN-11")
def test_what_a_worker_refused_is_not_tried_again() -> None:
    _, known = decide(SEEN._replace(ended={7: 3}), started(Known(), RUN, 7))
    assert kinds(SEEN._replace(left=(RUN, NIGHT)), known) == ["start_worker"]
    assert decide(SEEN._replace(left=(RUN, NIGHT)), known)[0][0].left == NIGHT
    assert kinds(SEEN._replace(left=(RUN,)), known) == []


def test_a_runner_that_dies_is_started_again_with_pauses_that_grow() -> None:
    known, at, pauses = Known(), 0.0, list[float]()
    for _ in range(9):
        moves, known = decide(UpSight(at=at, is_runner_wanted=True), known)
        assert [move.kind for move in moves] == [MoveKind.START_RUNNER]
        [died], known = decide(UpSight(at=at, is_runner_wanted=True), known)
        assert died.kind is MoveKind.RUNNER_DIED
        pauses.append(died.seconds)
        assert decide(UpSight(at=at + died.seconds - 0.1, is_runner_wanted=True), known)[0] == []
        at += died.seconds
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == LONGEST_PAUSE_SECONDS
    _, known = decide(UpSight(at=at, is_runner_wanted=True), known)
    [died], _ = decide(UpSight(at=at + WELL_SECONDS, is_runner_wanted=True), known)
    assert died.seconds == 1, "it was well for a while"


def test_a_runner_that_was_let_go_did_not_die_and_may_come_back() -> None:
    _, known = decide(SEEN._replace(is_runner_wanted=True), Known())
    _, known = decide(SEEN._replace(is_runner_working=True), known)
    moves, known = decide(SEEN, known)
    assert moves == []
    assert kinds(SEEN._replace(is_runner_wanted=True), known) == ["start_runner"]
    assert known.runner == replace(known.runner, is_started=False, is_released=False)
