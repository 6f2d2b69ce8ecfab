"""What keeps the store of this machine from running (QUE-2): facts; the words are in `messages/`."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ObstacleKind(StrEnum):
    """What can be in the way of DynamoDB Local."""

    NO_JAVA = "no_java"
    OLD_JAVA = "old_java"
    BROKEN_JAVA = "broken_java"
    SILENT_JAVA = "silent_java"
    NO_NPM = "no_npm"
    NO_DOCKER = "no_docker"
    NO_ENGINE = "no_engine"
    RAN_BY_JAVA = "ran_by_java"
    RAN_BY_DOCKER = "ran_by_docker"
    NPM_SAID = "npm_said"
    NPM_LEFT = "npm_left"
    TOO_SLOW = "too_slow"
    OTHER_CONTENT = "other_content"
    NOT_WHOLE = "not_whole"
    PROCESS_GONE = "process_gone"
    CONTAINER_GONE = "container_gone"
    NOT_REACHED = "not_reached"
    NOT_DYNAMODB = "not_dynamodb"
    OTHER_ANSWER = "other_answer"
    STRANGER = "stranger"
    MOVED = "moved"
    WAITED = "waited"
    LEFT = "left"
    LEFT_SILENT = "left_silent"
    LAST_LINE = "last_line"
    DOCKER_SAID = "docker_said"
    DOCKER_LEFT = "docker_left"
    NO_PORT = "no_port"
    DATA_IN_USE = "data_in_use"


class Obstacle(NamedTuple):
    """One thing that is in the way, with the facts that its text needs."""

    kind: ObstacleKind
    facts: tuple[tuple[str, str], ...] = ()


class Obstacles(NamedTuple):
    """All that is in the way."""

    each: tuple[Obstacle, ...]

    @property
    def facts(self) -> dict[str, str]:
        """What is known of them all, by which the advice that fits is chosen."""
        return {name: value for one in self.each for name, value in one.facts}

    def has(self, kind: ObstacleKind) -> bool:
        """Return whether one of a kind is among them."""
        return any(one.kind is kind for one in self.each)

    @classmethod
    def of(cls, kind: ObstacleKind, **facts: object) -> Obstacles:
        """Name the only one there is."""
        return cls((Obstacle(kind, tuple((name, str(value)) for name, value in facts.items())),))

    def and_also(self, kind: ObstacleKind, **facts: object) -> Obstacles:
        """Name one more."""
        return Obstacles((*self.each, *Obstacles.of(kind, **facts).each))

    def __str__(self) -> str:
        """Name them for logs and for developers; people read them in their language."""
        return "; ".join(" ".join([one.kind.replace("_", " "), *dict(one.facts).values()]) for one in self.each)
