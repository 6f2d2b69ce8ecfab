"""What keeps the store of this machine from running (QUE-2): facts; the words are in `messages/`."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ObstacleKind(StrEnum):
    """What can be in the way of DynamoDB Local."""

    NPM_SAID = "npm_said"
    NPM_LEFT = "npm_left"
    TOO_SLOW = "too_slow"
    OTHER_CONTENT = "other_content"
    NOT_WHOLE = "not_whole"


class Obstacle(NamedTuple):
    """One thing that is in the way, with the facts that its text needs."""

    kind: ObstacleKind
    facts: tuple[tuple[str, str], ...] = ()


class Obstacles(NamedTuple):
    """All that is in the way."""

    each: tuple[Obstacle, ...]

    def __str__(self) -> str:
        """Name them for logs and for developers; people are told in words of their language."""
        return "; ".join(" ".join([one.kind.replace("_", " "), *dict(one.facts).values()]) for one in self.each)
