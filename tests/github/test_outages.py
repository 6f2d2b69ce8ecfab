"""GitHub fails at each call of a run's life (ISS-3, ISS-4, ISS-11): nothing is lost, nothing is doubled, all is told.

The life of an issue is played again and again; each time another one of its calls goes wrong, in every way there is.
Afterwards GitHub is back, and a few looks must lead to a clear state.
"""

from __future__ import annotations

import pytest

from aiflow.domain.issues.headers import read_trails
from aiflow.domain.issues.marks import MarkKind
from aiflow.domain.issues.standing import stand
from aiflow.domain.lifecycle import RunState
from aiflow.domain.reasons import CATALOGUE
from aiflow.domain.request import RequestStatus
from aiflow.errors import AiflowError
from github.outages import OUTAGE_SECONDS, TROUBLES, Wire, settled, slow
from github.scene import Scene
from github.yard import Yard


def live(yard: Yard) -> list[AiflowError]:
    """Play an issue's life: seen, started (typed again if that fails), worked on with a pause in each call, shown."""
    told: list[AiflowError] = yard.look()
    for _ in range(2):
        try:
            yard.run()
            break
        except AiflowError as error:
            told.append(error)
            assert yard.checkout.runs.runs == {}, "a run that began is not given up for GitHub's sake"
            yard.pause(OUTAGE_SECONDS + 10)
    yard.pause(60)
    return [*told, *yard.look()]


def check(yard: Yard, wire: Wire) -> None:
    """Hold what must be true of an issue whatever happened to it."""
    said = yard.said()
    assert len(wire.posted) == len(set(wire.posted)), wire.posted
    assert {*said} == {*wire.posted}
    story = yard.mirror.story(1)
    assert story is not None
    view = yard.book.view(story)
    trails = read_trails(story, view.trust)
    assert sum(trail.is_open for trail in trails) <= 1
    standing = stand(view)
    assert standing.label is not None
    assert [name for name in yard.labels() if name.startswith("agent:")] == [standing.label.value]
    runs = [run for run in yard.checkout.runs.runs.values() if run is not None]
    assert all(not run.is_active for run in runs), "a run that nobody works on"
    for run in runs:
        ended = [mark for _, mark in yard.marks() if mark.key == f"end:{run.run_id}"]
        assert len(ended) == 1 or run.run_id in {t.run_id for t in trails if t.is_withdrawn}, run.run_id
        assert run.state is RunState.DONE or (run.error is not None and run.error.reason_code in CATALOGUE)
        shown = [m.text("outcome") for _, m in yard.marks() if m.kind is MarkKind.PROGRESS]
        assert shown in ([], [run.outcome.value])
        assert run.state is RunState.DONE or not wire.trouble.is_brief
    assert "RUN_LOST" not in [mark.text("reason_code") for _, mark in yard.marks()]
    if standing.status is RequestStatus.BLOCKED:
        kinds = yard.kinds()
        assert kinds.count("blocked") + kinds.count("result") == 1
    else:
        assert standing.status is RequestStatus.READY
        assert standing.kept is None
        assert runs == []


def go_on(yard: Yard) -> None:
    """What is ready starts; what is blocked starts again when a person says so; both come to a good end."""
    if yard.status() is RequestStatus.BLOCKED and yard.kinds().count("result") == 0:
        yard.scene.hub.comment(1, "/retry once more", "maya")
        yard.pause(60)
        assert yard.look() == []
    if yard.status() is RequestStatus.READY:
        assert yard.run().state is RunState.DONE
        yard.pause(60)
        assert yard.look() == []
    assert yard.kinds().count("result") == 1
    assert len(yard.said()) == len(set(yard.said()))
    assert yard.labels() == ["agent:running"]


def calls_of_a_life() -> int:
    yard = Yard(Scene(), "calm")
    yard.queued()
    wire = Wire(yard)
    slow(yard)
    assert live(yard) == []
    count = wire.count
    settled(yard, wire)
    check(yard, wire)
    go_on(yard)
    return count


@pytest.mark.contract
@pytest.mark.spec("ISS-3", "ISS-4", "ISS-10", "ISS-11")
@pytest.mark.parametrize("kind", TROUBLES)
def test_whichever_call_of_a_life_fails_all_comes_to_a_clear_end(kind: str) -> None:
    most = calls_of_a_life()
    for at in range(1, most + 1):
        yard = Yard(Scene())
        yard.queued()
        wire = Wire(yard, at, TROUBLES[kind]())
        slow(yard)
        try:
            told = live(yard)
            assert all(error.reason_code in CATALOGUE and error.reason_code != "INTERNAL_ERROR" for error in told)
            settled(yard, wire)
            check(yard, wire)
            go_on(yard)
        except AssertionError as error:
            ask = yard.scene.api.calls[at - 1] if at <= len(yard.scene.api.calls) else "?"
            raise AssertionError(f"{kind} at call {at} ({ask}): {error}; {yard.labels()} {yard.said()}") from error
