"""What came of it, as a table for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from aiflow.domain.agents.usage import Usage
from ways import Outcome

_HEADS = ("solved", "calls", "tokens", "cost", "time")
_WIDTHS = (6, 5, 9, 8, 7)


class Row(NamedTuple):
    """One task done one way."""

    agent: str
    task: str
    way: str
    outcome: Outcome


def document(rows: Sequence[Row]) -> dict[str, Any]:
    """Write everything as one JSON document: each result, and the sums of each agent and way."""
    sums = [
        {"agent": agent, "way": way, "tasks": len(found), "solved": _solved(found), **_usage(_used(found))}
        for agent, way in dict.fromkeys((row.agent, row.way) for row in rows)
        if (found := [row for row in rows if (row.agent, row.way) == (agent, way)])
    ]
    return {"version": "1.0", "sums": sums, "results": [_result(row) for row in rows]}


def _result(row: Row) -> dict[str, Any]:
    ended, usage, judgement = row.outcome
    told = {"agent": row.agent, "task": row.task, "way": row.way, "solved": judgement.is_solved, "ended": ended}
    return {**told, "failed": list(judgement.failed), **_usage(usage)}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "calls": usage.calls,
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
        "seconds": round(usage.seconds, 1),
    }


def lines(agent: str, rows: Sequence[Row]) -> Iterator[str]:
    """Write one agent's results, the ways side by side, and below them what a person should look at."""
    ways = tuple(dict.fromkeys(row.way for row in rows))
    width = max(map(len, [agent, *(row.task for row in rows)]))
    across = sum(_WIDTHS) + len(_WIDTHS) - 1
    yield "  ".join((f"{agent:<{width}}", *(f"{f' {way} ':-^{across}}" for way in ways)))
    yield "  ".join((" " * width, *(_cells(_HEADS) for _ in ways)))
    for task in dict.fromkeys(row.task for row in rows):
        found = {row.way: row for row in rows if row.task == task}
        cells = (_cells(_shown(found[way])) if way in found else " " * across for way in ways)
        yield "  ".join((f"{task:<{width}}", *cells))
    sums = ([row for row in rows if row.way == way] for way in ways)
    yield "  ".join(
        (f"{'all':<{width}}", *(_cells((f"{_solved(each)}/{len(each)}", *_costs(_used(each)))) for each in sums))
    )
    for row in rows:
        if not row.outcome.judgement.is_solved:
            yield f"{row.task}, {row.way}: {row.outcome.ended}; fails {', '.join(row.outcome.judgement.failed)}"


def _shown(row: Row) -> tuple[str, ...]:
    return ("yes" if row.outcome.judgement.is_solved else "NO", *_costs(row.outcome.usage))


def _costs(usage: Usage) -> tuple[str, ...]:
    minutes, seconds = divmod(round(usage.seconds), 60)
    cost = f"${usage.cost_usd:.3f}" if usage.cost_usd else "-"
    return (str(usage.calls), f"{usage.tokens:,}", cost, f"{minutes}:{seconds:02}")


def _cells(cells: Iterable[str]) -> str:
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))


def _solved(rows: Iterable[Row]) -> int:
    return sum(row.outcome.judgement.is_solved for row in rows)


def _used(rows: Iterable[Row]) -> Usage:
    return sum((row.outcome.usage for row in rows), Usage())
