"""What claude uses (AGT-4): tokens as they flow, and at the end of a call what it says that the call used.

Pure. A resumed session's `total_cost_usd` and `modelUsage` are those of the whole session: every call would count the
ones before it again. Only the total's increase is taken, for that is what no call could report.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aiflow.adapters.agents.call.json_fields import count_of, number_of, part_of, text_of
from aiflow.domain.agents.usage import Usage

if TYPE_CHECKING:
    from aiflow.adapters.agents.call.json_fields import Fields


_SINCE = "model_usage_since_last_result"


@dataclass(slots=True)
class Meter:
    """Counts one call: `ended` is what closing events said, `flowing` what came since, message by message.

    `paid_usd` is what was counted of the session before, None if the call begins one.
    """

    paid_usd: float | None = None
    ended: Usage = field(default_factory=Usage)
    flowing: dict[str, Usage] = field(default_factory=dict)
    _current: str = ""

    @property
    def usage(self) -> Usage:
        """What was used by now."""
        return self.ended + _sum(self.flowing)

    def hear_message(self, message: Fields) -> None:
        """Take a message of the model, begun or whole."""
        if text_of(message, "model") != "<synthetic>":
            self._current = text_of(message, "id")
            self._take(part_of(message, "usage"))

    def hear_delta(self, event: Fields) -> None:
        """Take what the current message has used so far."""
        self._take(part_of(event, "usage"))

    def hear_end(self, result: Fields) -> None:
        """Take a closing event; where it says less than was seen flowing, what was seen counts."""
        flowed = _sum(self.flowing)
        self.ended += _larger(_of_result(result), flowed)
        if self.paid_usd is not None and _SINCE in result:  # older programs count the call alone, or do not say which
            untold = round(number_of(result, "total_cost_usd") - self.paid_usd, 6)
            self.ended = replace(self.ended, cost_usd=max(self.ended.cost_usd, untold))
        self.flowing.clear()

    def _take(self, usage: Fields) -> None:
        known = self.flowing.get(self._current, Usage())
        self.flowing[self._current] = _larger(known, _of_message(usage))


def _of_message(usage: Fields) -> Usage:
    read, made = count_of(usage, "cache_read_input_tokens"), count_of(usage, "cache_creation_input_tokens")
    return Usage(
        input_tokens=count_of(usage, "input_tokens") + read + made,
        cached_tokens=read,
        output_tokens=count_of(usage, "output_tokens"),
    )


def _of_result(result: Fields) -> Usage:
    models = part_of(result, _SINCE)
    used = [_of_model(model) for name in models if (model := part_of(models, name))]
    if used or _SINCE in result:
        return _sum(dict(enumerate(used)))
    # Older programs: the main conversation's tokens, and the money of everything.
    return replace(_of_message(part_of(result, "usage")), cost_usd=number_of(result, "total_cost_usd"))


def _of_model(model: Fields) -> Usage:
    read, made = count_of(model, "cacheReadInputTokens"), count_of(model, "cacheCreationInputTokens")
    return Usage(
        input_tokens=count_of(model, "inputTokens") + read + made,
        cached_tokens=read,
        output_tokens=count_of(model, "outputTokens"),
        cost_usd=number_of(model, "costUSD"),
    )


def _larger(one: Usage, other: Usage) -> Usage:
    return Usage(
        input_tokens=max(one.input_tokens, other.input_tokens),
        cached_tokens=max(one.cached_tokens, other.cached_tokens),
        output_tokens=max(one.output_tokens, other.output_tokens),
        cost_usd=max(one.cost_usd, other.cost_usd),
    )


def _sum(usages: dict[str, Usage] | dict[int, Usage]) -> Usage:
    return sum(usages.values(), Usage())
