"""GitHub fails at each call of a run's life (ISS-3, ISS-4, ISS-11): nothing is lost, nothing is doubled, all is told.

The life of an issue is played again and again; each time another one of its calls goes wrong, in every way there is.
Afterwards GitHub is back, and a few looks must lead to a clear state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from aiflow.adapters.github_issues.transport import Ask, NotSentError
from aiflow.domain.agents.call import AgentCall
from aiflow.domain.issues.headers import read_trails
from aiflow.domain.issues.marks import MarkKind, find_mark
from aiflow.domain.issues.standing import stand
from aiflow.domain.lifecycle import RunState
from aiflow.domain.reasons import CATALOGUE
from aiflow.domain.request import RequestStatus
from aiflow.errors import AiflowError
from github.answering import Fault
from github.hub import CommentRow
from github.scene import RUNNER, Scene
from github.yard import Yard

OUTAGE_SECONDS = 90.0
LIMIT = "You have exceeded a secondary rate limit"


@dataclass
class Trouble:
    """What goes wrong at one call, and for how long GitHub is away from then on; `is_brief` if that passes by itself."""

    first: Fault | None = None
    then_down: float = 0.0
    is_revoked: bool = False
    is_brief: bool = True


def answer(status: int, message: str = "No", **headers: str) -> Fault:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault("", "answer", 1, status, named, message)


TROUBLES: dict[str, Callable[[], Trouble]] = {
    "down": lambda: Trouble(then_down=OUTAGE_SECONDS),
    "lost": lambda: Trouble(Fault("", "lost")),
    "lost, then down": lambda: Trouble(Fault("", "lost"), then_down=OUTAGE_SECONDS),
    "500": lambda: Trouble(answer(500)),
    "403 until": lambda: Trouble(answer(403, "API rate limit exceeded", x_ratelimit_remaining="0"), is_brief=False),
    "403 retry-after": lambda: Trouble(answer(403, LIMIT, retry_after="40")),
    "429": lambda: Trouble(answer(429, LIMIT)),
    "403": lambda: Trouble(answer(403, "Resource not accessible"), is_brief=False),
    "404": lambda: Trouble(answer(404, "Not Found"), is_brief=False),
    "410": lambda: Trouble(answer(410, "This issue was deleted"), is_brief=False),
    "422": lambda: Trouble(answer(422, "Validation Failed"), is_brief=False),
    "401": lambda: Trouble(is_revoked=True, is_brief=False),
}


@dataclass
class Wire:
    """Counts the calls, and lets trouble come at one of them."""

    yard: Yard
    at: int = 0
    trouble: Trouble = field(default_factory=Trouble)
    count: int = 0
    down_until: float = 0.0

    posted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.yard.scene.api.before = self.pass_on
        hub = self.yard.scene.hub
        comment = hub.comment

        def noted(number: int, body: str, by: str) -> CommentRow:
            mark = find_mark(body)
            self.posted += [mark.key] if mark is not None else []
            return comment(number, body, by)

        hub.comment = noted  # type: ignore[method-assign]

    def pass_on(self, _ask: Ask) -> None:
        api, now = self.yard.scene.api, self.yard.scene.time.monotonic()
        self.count += 1
        if now < self.down_until:
            raise NotSentError("nobody listens")
        if self.count != self.at:
            return
        if self.trouble.is_revoked:
            self.yard.scene.hub.revoke(RUNNER)
        if self.trouble.then_down:
            self.down_until = now + self.trouble.then_down
        if self.trouble.first is not None:
            api.faults.append(self.trouble.first)
        elif self.trouble.then_down:
            raise NotSentError("nobody listens")

    def heal(self) -> None:
        """Let GitHub be there again, whatever was."""
        self.at = 0
        self.down_until = 0.0
        self.yard.scene.api.faults.clear()
        self.yard.scene.api.remaining = 5000
        self.yard.scene.hub.person(RUNNER, "write")


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


def slow(yard: Yard) -> None:
    def wait(_call: AgentCall) -> None:
        yard.pause(20)

    yard.before_call = wait


def settled(yard: Yard, wire: Wire) -> None:
    """Let GitHub be back and a new process look, until nothing is left to do."""
    wire.heal()
    yard.restart()
    for _ in range(4):
        yard.pause(700)
        assert yard.look() == []
    made = len(yard.scene.api.writes)
    assert yard.look() == []
    assert (yard.work.pending(), len(yard.scene.api.writes)) == ((), made)


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
