"""What an agent says it used, where it does: tokens with the turn's end, money as it goes (AGT-4).

The protocol counts money for the whole session, of which earlier calls may have paid a part.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from aiflow.domain.agents.usage import Usage

MAX_TOKENS = 10**12
MAX_COST = 10**6


class Spent:
    """Adds up what one call used; `paid_usd` is what was counted of its session before, None if it begins one."""

    def __init__(self, paid_usd: float | None = None) -> None:
        self.usage = Usage()
        self._paid_usd = paid_usd
        self._base: float | None = None

    def update(self, update: dict[str, Any], *, is_replay: bool) -> None:
        """Take how much money the session has used so far; what was counted before the turn is not this call's."""
        cost = update.get("cost")
        if not isinstance(cost, dict) or cost.get("currency") != "USD":
            return
        amount = _amount(cost.get("amount"))
        if self._base is None and amount:
            # Less than was counted already: this program starts at zero with every call.
            is_whole = self._paid_usd is not None and amount >= self._paid_usd
            self._base = self._paid_usd if is_whole else amount if is_replay else 0.0
        spent = round(amount - (self._base or 0.0), 6)
        self.usage = replace(self.usage, cost_usd=max(self.usage.cost_usd, spent))

    def close(self, usage: dict[str, Any], meta: dict[str, Any]) -> None:
        """Take the tokens of the turn: as the protocol has them, or as Gemini's program reports them."""
        quota = meta.get("quota")
        counted = quota.get("token_count") if isinstance(quota, dict) else None
        told = counted if isinstance(counted, dict) and not usage else {}
        cached = _count(usage.get("cachedReadTokens"))
        written = _count(usage.get("cachedWriteTokens"))
        self.usage = replace(
            self.usage,
            input_tokens=_count(usage.get("inputTokens")) + cached + written + _count(told.get("input_tokens")),
            cached_tokens=cached,
            output_tokens=_count(usage.get("outputTokens"))
            + _count(usage.get("thoughtTokens"))
            + _count(told.get("output_tokens")),
        )


def _count(value: object) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return min(max(value, 0), MAX_TOKENS) if is_count and isinstance(value, int) else 0


def _amount(value: object) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return min(max(float(value), 0.0), MAX_COST) if is_number and _is_finite(value) else 0.0  # type: ignore[arg-type]


def _is_finite(value: object) -> bool:
    try:
        return math.isfinite(float(value))  # type: ignore[arg-type]
    except (OverflowError, ValueError, TypeError):
        return False
