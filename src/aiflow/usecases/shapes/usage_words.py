"""What agents used, in words, the same for reports and displays (AGT-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.settings import ROLES

if TYPE_CHECKING:
    from aiflow.domain.agents.usage import Usage
    from aiflow.messages import Texts
    from aiflow.settings import Settings


def usage_text(usage: Usage, texts: Texts) -> str:
    """Say what agents used, as far as they report it: money, and tokens in a number one can take in."""
    return spent_text(usage.cost_usd, usage.tokens, texts)


def spent_text(cost_usd: float, tokens: int, texts: Texts) -> str:
    """Say what money and how many tokens that is; what is nothing is not said."""
    shown = [texts("usage.cost", cost=money(cost_usd))] if cost_usd else []
    if tokens:
        shown.append(texts("usage.tokens", tokens=short_number(tokens)))
    return texts("auto.limit.between").join(shown)


# The one kind that always says what it cost; an ACP program may or may not.
TELLS_COST = frozenset({"claude-code", "acp"})


def untold_cost(settings: Settings) -> tuple[str, ...]:
    """Name the roles whose agents never say what they cost, so that no ceiling on cost sees them."""
    kinds = ((role, str(settings.for_role(role, "kind"))) for role in ROLES)
    return tuple(f"{role} ({kind})" for role, kind in kinds if kind not in TELLS_COST)


def money(amount: float) -> str:
    """Write a sum of money: in cents, and what is less than ten of them more exactly."""
    return f"${amount:.2f}" if amount >= 0.1 or not amount else f"${amount:.4f}"


def short_number(number: int) -> str:
    """Write a large number with three digits: 987, 12.3k, 1.2M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}" if number < 100 * size else f"{number / size:.0f}{unit}"
    return str(number)


def use_of(usage: Usage, texts: Texts) -> str:
    """Say all that is known of it: calls and working time too; nothing if no agent was called."""
    if not usage.calls:
        return ""
    calls, minutes = texts("usage.calls", calls=usage.calls), texts("usage.time", time=clock_text(usage.seconds))
    return texts("auto.limit.between").join(filter(None, (calls, minutes, usage_text(usage, texts))))


def clock_text(seconds: float) -> str:
    """Write a time as a stop watch shows it."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
