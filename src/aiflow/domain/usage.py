"""What agents use up (AGT-4), and the ceilings a person sets on it: of one run, and of one auto-run session.

An account at a flat rate reports no cost, so each ceiling holds by itself: money, tokens, calls and time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used: agent calls, tokens (`cached_tokens` is a part of `input_tokens`), money, working time."""

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """All tokens, read and written."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            round(self.cost_usd + other.cost_usd, 6),
            round(self.seconds + other.seconds, 3),
        )


class Ceiling(StrEnum):
    """What a ceiling can be on; the names are those of the settings behind `run_` and `session_`."""

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
