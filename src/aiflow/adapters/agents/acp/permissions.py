"""Permission requests of an agent (AGT-1): allowed, refused, or a question to a person, as the settings say.

Pure: whether a path lies in the agent's folders is asked of the caller.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.agents.choices import picked
from aiflow.domain.untrusted import reveal_plain

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_WORDS = 500
# What a reader does. `fetch` reads too, if not here.
_READING = frozenset({"read", "search", "think", "fetch"})
_WRITING = frozenset({"edit", "delete", "move"})


class Where(StrEnum):
    """Where a path leads: what the call works on, what the agent's program keeps for itself, or neither."""

    INSIDE = "inside"
    OWN = "own"
    OUTSIDE = "outside"


class Policy(StrEnum):
    """The setting `agent.permissions`."""

    AUTO = "auto"
    ASK = "ask"
    DENY = "deny"


class PermissionVerdict(StrEnum):
    """What becomes of a request."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    ASKED = "asked"


@dataclass(frozen=True, slots=True)
class Option:
    """One of the ways in which the agent lets its request be answered."""

    id: str
    name: str
    kind: str

    @property
    def is_allowing(self) -> bool:
        """Whether the agent may continue with this."""
        return self.kind.startswith("allow")


@dataclass(frozen=True, slots=True)
class PermissionWish:
    """What the agent asks to be allowed: in its words, of which kind, where, and with which options.

    `mask` takes secrets out of what is shown, before anything is cut: half a secret is not recognized.
    """

    title: str
    kind: str
    paths: tuple[str, ...]
    options: tuple[Option, ...]
    mask: Callable[[str], str] = str

    @property
    def what(self) -> str:
        """The request in one line, the same whenever the same is asked."""
        unnamed = [path for path in self.paths if path not in self.title]
        # What a person could not see, they could not have allowed.
        words = reveal_plain(self.mask(" ".join(f"{self.kind}: {self.title} {' '.join(unnamed)}".split())))
        if len(words) <= MOST_WORDS:
            return words
        # What is cut off counts too: allowing one text does not allow another with the same beginning.
        digest = hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return f"{words[:MOST_WORDS]}… ({digest})"


@dataclass(frozen=True, slots=True)
class PermissionRules:
    """By what a request is judged: the setting, the role, the kernel's confinement, a person's answers before.

    A reader that `may_run` gets commands: the kernel keeps them from writing.
    """

    policy: Policy
    is_reader: bool
    is_confined: bool = False
    answers: tuple[tuple[str, str], ...] = ()
    may_run: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What is answered: an option of the agent's (None is none of them), and why."""

    verdict: PermissionVerdict
    option_id: str | None
    why: str


def decide(wish: PermissionWish, rules: PermissionRules, find: Callable[[str], Where]) -> Decision:
    """Decide one request."""
    if rules.policy is Policy.DENY:
        return _refused(wish, 'agent.permissions = "deny"')
    if rules.policy is Policy.ASK:
        return _by_person(wish, rules.answers)
    if wish.kind == "switch_mode":
        return _refused(wish, "the settings choose the agent's mode")
    if rules.is_reader and wish.kind not in _READING and not (rules.may_run and wish.kind == "execute"):
        return _refused(wish, "this role only reads")
    for path in wish.paths:
        if why := _barrier(find(path), wish.kind, rules):
            return _refused(wish, f"{path} {why}")
    return _allowed(wish)


def _barrier(where: Where, kind: str, rules: PermissionRules) -> str | None:
    """Say why something may not be done at a place, or None if it may.

    Reading is free everywhere, as it is without asking; what else a command does outside the kernel stops, if it can.
    """
    if where is Where.OWN:
        return "is the agent's own"
    if where is Where.INSIDE or kind in _READING or (rules.is_confined and kind not in _WRITING):
        return None
    return "is outside the worktree"


def _by_person(wish: PermissionWish, answers: tuple[tuple[str, str], ...]) -> Decision:
    """Answer as a person did the same request, or ask; words that are no option are a refusal with a reason."""
    said = next((answer for what, answer in reversed(answers) if what == wish.what), None)
    if said is None:
        return Decision(PermissionVerdict.ASKED, None, "a person is asked")
    name = picked(said, [option.name for option in wish.options])
    option = next((option for option in wish.options if option.name == name), None)
    if option is None:
        return _refused(wish, "a person answered something else")
    return Decision(
        PermissionVerdict.ALLOWED if option.is_allowing else PermissionVerdict.REFUSED, option.id, "a person said so"
    )


def _allowed(wish: PermissionWish) -> Decision:
    """Allow it this once: what is allowed for ever would outlive the run."""
    option = next((option for option in wish.options if option.kind == "allow_once"), None)
    if option is None:
        return _refused(wish, "the agent asks to be allowed for ever")
    return Decision(PermissionVerdict.ALLOWED, option.id, "")


def _refused(wish: PermissionWish, why: str) -> Decision:
    kinds = ("reject_once", "reject_always")
    option = next((option for kind in kinds for option in wish.options if option.kind == kind), None)
    return Decision(PermissionVerdict.REFUSED, option.id if option else None, why)
