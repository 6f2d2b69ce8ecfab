"""Ceilings (AGT-4): what a person lets agents use, in one run and in one auto-run session, and what is left of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiflow.domain.agents.usage import Usage


class Ceiling(StrEnum):
    """What a ceiling can be on; the names are those of the settings after `run_` and `session_`."""

    COST = "cost_usd"
    TOKENS = "tokens"
    CALLS = "agent_calls"
    TIME = "minutes"


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The most that may be used; 0 is no ceiling."""

    cost_usd: float = 0.0
    tokens: int = 0
    agent_calls: int = 0
    minutes: float = 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """What one call may still use; None is as much as it likes."""

    cost_usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None


def reached(usage: Usage, ceilings: Ceilings) -> Ceiling | None:
    """Return the first ceiling that is reached, or None if more may be used."""
    used: dict[Ceiling, tuple[float, float]] = {
        Ceiling.COST: (usage.cost_usd, ceilings.cost_usd),
        Ceiling.TOKENS: (usage.tokens, ceilings.tokens),
        Ceiling.CALLS: (usage.calls, ceilings.agent_calls),
        Ceiling.TIME: (usage.seconds / 60, ceilings.minutes),
    }
    return next((which for which, (value, limit) in used.items() if 0 < limit <= value), None)


def left(usage: Usage, ceilings: Ceilings) -> Budget:
    """Return what is left below the ceilings."""
    return Budget(
        cost_usd=max(0.0, ceilings.cost_usd - usage.cost_usd) if ceilings.cost_usd else None,
        tokens=max(0, ceilings.tokens - usage.tokens) if ceilings.tokens else None,
        seconds=max(0.0, ceilings.minutes * 60 - usage.seconds) if ceilings.minutes else None,
    )


def tighter(one: Budget, other: Budget) -> Budget:
    """Return what two budgets both allow."""

    def least(first: float | None, second: float | None) -> float | None:
        known = [value for value in (first, second) if value is not None]
        return min(known) if known else None

    tokens = least(one.tokens, other.tokens)
    return Budget(
        cost_usd=least(one.cost_usd, other.cost_usd),
        tokens=None if tokens is None else int(tokens),
        seconds=least(one.seconds, other.seconds),
    )
