"""What a scripted model sees and what it may answer, whichever program asks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request of a program to its model."""

    path: str
    body: Mapping[str, Any]
    # Headers that carry keys are named in `keys` and kept nowhere.
    headers: Mapping[str, str]
    keys: frozenset[str]
    model: str = ""
    tools: tuple[str, ...] = ()
    # What the program was told last, and what its tools gave since.
    prompt: str = ""
    results: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    # Where the program works, as it tells its model.
    folder: str = ""

    @property
    def role(self) -> str:
        """Which of aiflow's roles asks: by the schema of the answer, else by the word that the prompt has first."""
        if self.schema is not None:
            text = json.dumps(self.schema)
            return "planner" if '"steps"' in text else "qa" if '"verdict"' in text else "implementer"
        words = {"planner": "planner", "implementer": "implementer", "reviewer": "qa"}
        places = {role: self.prompt.find(word) for word, role in words.items()}
        return min((role for role in places if places[role] >= 0), key=lambda role: places[role], default="")

    @property
    def is_aside(self) -> bool:
        """Whether the program asks for something of its own, such as a title, and not for a turn of the work."""
        return not self.tools


@dataclass(frozen=True)
class Say:
    """Text, and the end of the turn."""

    text: str = "Done."


@dataclass(frozen=True)
class Answer:
    """A value in the form that the program asked for, keys that are missing empty; text if it did not ask for any."""

    value: Any


@dataclass(frozen=True)
class Shell:
    """Run a command with the program's own tool."""

    command: str


@dataclass(frozen=True)
class Write:
    """Make a new file with the program's own tool; a path below the program's folder, or an absolute one."""

    path: str
    text: str


@dataclass(frozen=True)
class Edit:
    """Replace text in a file with the program's own tool; claude wants it read before (`Read`)."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Read:
    """Read a file with the program's own tool."""

    path: str


@dataclass(frozen=True)
class UseTool:
    """Use any tool with any arguments, also one that does not exist."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Trouble(StrEnum):
    """What a model's API refuses with."""

    RATE_LIMIT = "rate limit"
    QUOTA = "the subscription's quota is used up"
    UNAUTHORIZED = "wrong key"
    FORBIDDEN = "not allowed"
    BILLING = "no money left"
    SERVER_ERROR = "500"
    OVERLOADED = "529"
    BAD_REQUEST = "400"
    TOO_LONG = "no room left in the context"


@dataclass(frozen=True)
class Refuse:
    """An error of the API; `seconds` is when to try again, `in_stream` says it behind a status of 200."""

    trouble: Trouble
    seconds: int = 1
    in_stream: bool = False


@dataclass(frozen=True)
class Hang:
    """No answer, until the server is closed; behind the first half of one if there is a reply."""

    first: Reply | None = None


@dataclass(frozen=True)
class Cut:
    """The connection is lost in the middle of an event."""

    reply: Reply = Say()


@dataclass(frozen=True)
class Garble:
    """Lines that are no event stand between the events."""

    reply: Reply = Say()


@dataclass(frozen=True)
class Slow:
    """The answer comes after some seconds."""

    reply: Reply
    seconds: float = 1.0


Action = Say | Answer | Shell | Write | Edit | Read | UseTool
Reply = Action | Refuse | Hang | Cut | Garble | Slow
Script = Callable[[Asked], Reply]


def story(**turns: Sequence[Reply] | Script) -> Script:
    """Give each role its turns: the first at the prompt, the next behind each tool's result, then a last word.

    Nothing is counted here, so a program that asks again after an error gets the same turn again.
    """

    def reply(asked: Asked) -> Reply:
        own = turns.get(asked.role, ())
        if callable(own):
            return own(asked)
        return own[len(asked.results)] if len(asked.results) < len(own) else Say()

    return reply


def in_order(*replies: Reply) -> Script:
    """Answer with one after the other, whoever asks; behind the last with a last word."""
    left = iter(replies)
    return lambda _: next(left, Say())


def at_first(replies: Sequence[Reply], then: Script) -> Script:
    """Answer the first requests with these, whoever asks, then by a script."""
    count = itertools.count()

    def reply(asked: Asked) -> Reply:
        number = next(count)
        return replies[number] if number < len(replies) else then(asked)

    return reply


def filled(value: Any, schema: Mapping[str, Any] | None) -> Any:
    """Add the keys that a schema requires, each empty; what is there already stays as it is, right or wrong."""
    if schema is None or not isinstance(value, (dict, list)):
        return value
    if isinstance(value, list):
        return [filled(item, schema.get("items")) for item in value]
    parts = schema.get("properties", {})
    missing = {name: _empty(parts[name]) for name in schema.get("required", ()) if name not in value}
    return {**missing, **{name: filled(item, parts.get(name)) for name, item in value.items()}}


def _empty(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    return filled({}, schema) if kind == "object" else [] if kind == "array" else ""


def plan(*step_ids: str, **more: Any) -> Answer:
    """A planner's answer with these steps."""
    steps = [
        {"id": step_id, "title": f"Do {step_id}", "instructions": f"Write {step_id}.txt", **more}
        for step_id in step_ids or ("S01",)
    ]
    return Answer({"steps": steps})


def done(summary: str = "It is done") -> Answer:
    """An implementer's answer."""
    return Answer({"status": "done", "summary": summary})


def ask(question: str) -> Answer:
    """A question to the person, of any role."""
    return Answer({"status": "needs_input", "question": question})


def verdict(*findings: str, met: int = 9, unmet: Mapping[int, str] = MappingProxyType({})) -> Answer:
    """A reviewer's answer: it passes if there are no findings; so many criteria are met, and these are not."""
    said = [(number, True, "seen") for number in range(1, met + 1) if number not in unmet]
    said += [(number, False, why) for number, why in unmet.items()]
    criteria = [dict(zip(("number", "met", "note"), each, strict=True)) for each in said]
    return Answer({"verdict": "fail" if findings else "pass", "findings": list(findings), "criteria": criteria})


def whole_run(command: str = "printf 'made by the agent\\n' > made.txt") -> Script:
    """One step, done by a shell command, and passed."""
    return story(planner=[plan()], implementer=[Shell(command), done()], qa=[verdict()])
