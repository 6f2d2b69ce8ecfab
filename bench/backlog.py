"""Makes the backlogs that the bench reads: plausible files, a part of them in Japanese, some with runs.

A mix says how they are: `usual`; `dense`, with many dependencies, hardly a stamp twice and much that is ready;
`by_hand`, the same as people write it: titles as a key or in quotes, a list with an item a line.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BODY = "What should be different afterwards, and how one can tell.\n" * 12
MIXES = ("usual", "dense", "by_hand")


class Item(NamedTuple):
    """One request, before anybody wrote it down."""

    number: int
    priority: int
    status: str
    depends_on: list[str]
    labels: list[str]
    created_at: str
    updated_at: str

    @property
    def id(self) -> str:
        """Its id."""
        return f"RQ-{self.number:06d}"

    @property
    def title(self) -> str:
        """Its title: every second one is Japanese."""
        return f"要望 {self.number}: 画面を直す" if self.number % 2 else f"Request number {self.number}"


def make_items(count: int, mix: str) -> Iterator[Item]:
    """Think up a backlog, the same one at every call."""
    chance = random.Random(count)
    for number in range(count):
        yield _usual(number, count, chance) if mix == "usual" else _dense(number, count, chance)


def make_backlog(root: Path, count: int, with_runs: int, mix: str = "usual") -> None:
    """Write `count` requests, `with_runs` of them with a run each."""
    folder = root / "requests"
    folder.mkdir(parents=True)
    for item in make_items(count, mix):
        text = _by_hand(item) if mix == "by_hand" else _plain(item)
        (folder / f"{item.id}.md").write_text(text, encoding="utf-8")
    for number in range(with_runs):
        _make_run(root, f"RQ-{number * (count // with_runs):06d}", number)


def _usual(number: int, count: int, chance: random.Random) -> Item:
    wanted = [f"RQ-{chance.randrange(count):06d}" for _ in range(chance.choice((0, 0, 1, 2)))]
    day, second = chance.randrange(1, 29), chance.randrange(60)
    return Item(
        number,
        chance.randrange(4),
        chance.choice(("ready", "done", "done", "draft", "blocked")),
        wanted,
        ["backend", "ui"],
        f"2025-11-{day:02d}",
        f"2025-12-{day:02d}T10:{second:02d}:00+09:00",
    )


def _dense(number: int, count: int, chance: random.Random) -> Item:
    """Three in five depend on one to three others, 45 % are ready, and half of those wait for what is not done."""
    wanted = [f"RQ-{chance.randrange(count):06d}" for _ in range(chance.choice((0, 0, 1, 2, 3)))]
    return Item(
        number,
        chance.randrange(4),
        chance.choices(("ready", "done", "draft", "blocked"), (45, 35, 12, 8))[0],
        wanted,
        chance.sample(("api", "backend", "bug", "docs", "ops", "ui"), 2),
        _stamp(2024, chance),
        _stamp(2025, chance),
    )


def _stamp(year: int, chance: random.Random) -> str:
    month, day, hour = chance.randrange(1, 13), chance.randrange(1, 29), chance.randrange(24)
    return f"{year}-{month:02d}-{day:02d}T{hour:02d}:{chance.randrange(60):02d}:{chance.randrange(60):02d}+09:00"


def _plain(item: Item) -> str:
    return (
        "---\n"
        f"priority: P{item.priority}\n"
        f"status: {item.status}\n"
        f"depends_on: [{', '.join(item.depends_on)}]\n"
        f"labels: [{', '.join(item.labels)}]\n"
        f"created_at: {item.created_at}\n"
        f"updated_at: {item.updated_at}\n"
        f"---\n\n# {item.title}\n\n{BODY}"
    )


def _by_hand(item: Item) -> str:
    title = f'"{item.title}"' if ":" in item.title else item.title
    depends_on = "".join(f"\n  - {wanted}" for wanted in item.depends_on) or " []"
    return (
        "---\n"
        f"title: {title}\n"
        f"status: {item.status}\n"
        f"priority: P{item.priority}\n"
        f"depends_on:{depends_on}\n"
        f"created_at: {item.created_at}\n"
        f"updated_at: {item.updated_at}\n"
        f"---\n\n{BODY}"
    )


def _make_run(root: Path, request_id: str, number: int) -> None:
    run_id = f"RUN-20260101-000000-{number:06x}"
    folder = root / "runs" / request_id / run_id
    folder.mkdir(parents=True)
    stage = {
        "version": "1.0",
        "request_id": request_id,
        "run_id": run_id,
        "state": ("NEEDS_INPUT", "DONE", "FAILED")[number % 3],
        "base_branch": "main",
        "base_commit": "0" * 40,
        "current_step_index": 2,
        "current_step_id": "S03",
        "attempts": {"planning": 1, "steps": {"S01": {"implementer": 1, "qa": 1, "tests": 1}}},
        "error": {"category": "EXECUTION", "reason_code": "UNIT_TEST_FAILED", "summary": "…"},
        "history": [{"at": "2026-01-01T00:00:00Z", "event": "STEP_DONE", "step_id": "S01"}] * 6,
    }
    (folder / "stage.json").write_text(json.dumps(stage), encoding="utf-8")
