"""Trouble that comes at one call of many, in every way there is, and how it is over (ISS-11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from aiflow.adapters.github_issues.transport import Ask, NotSentError
from aiflow.domain.agents.call import AgentCall
from aiflow.domain.issues.marks import find_mark
from github.answering import Fault
from github.hub import CommentRow
from github.scene import RUNNER
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
