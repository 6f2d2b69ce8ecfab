"""GitHub as a watch sees it, in memory: how often it was asked, and what goes wrong there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.issues.repository import Synced
from aiflow.domain.issues.view import RunDeed
from aiflow.errors import AiflowError, EnvironmentProblemError


def trouble(code: str = "GITHUB_UNREACHABLE", **facts: object) -> AiflowError:
    """Make an error as the adapter raises it."""
    return EnvironmentProblemError(reason_code=code, repo="octo/demo", call="GET /issues", **facts)


@dataclass
class Care:
    """Counts looks; `wrong` are troubles by what is asked: "sync", or an issue's number."""

    time: PlayedTime
    wrong: dict[object, AiflowError] = field(default_factory=dict)
    due: tuple[int, ...] = ()
    deeds: dict[int, tuple[RunDeed, ...]] = field(default_factory=dict)
    wishes: dict[int, str] = field(default_factory=dict)
    synced: list[float] = field(default_factory=list)
    tended: list[int] = field(default_factory=list)
    others_looked: datetime | None = None
    meanwhile: Callable[[], None] = lambda: None
    _own: datetime | None = None

    def sync(self, *, is_full: bool = False) -> Synced:
        self.synced.append(self.time.seconds)
        self.meanwhile()
        self._raise("sync")
        self._own = self.time.now()
        return Synced(is_full=is_full)

    def looked_at(self) -> datetime | None:
        return max(filter(None, (self._own, self.others_looked)), default=None)

    def pending(self) -> tuple[int, ...]:
        return self.due

    def tend(self, number: int) -> tuple[RunDeed, ...]:
        self.tended.append(number)
        self._raise(number)
        return self.deeds.get(number, ())

    def wish(self, number: int) -> str | None:
        return self.wishes.get(number)

    def _raise(self, what: object) -> None:
        if what in self.wrong:
            raise self.wrong[what]
