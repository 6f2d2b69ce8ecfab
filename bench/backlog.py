"""Makes the backlogs that the bench reads: plausible files, a part of them in Japanese, some with runs."""

from __future__ import annotations

import json
import random
from pathlib import Path

BODY = "What should be different afterwards, and how one can tell.\n" * 12


def make_backlog(root: Path, count: int, with_runs: int) -> None:
    """Write `count` requests, the first `with_runs` of them with a run each."""
    chance = random.Random(count)
    folder = root / "requests"
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"RQ-{number:06d}.md").write_text(_request(number, count, chance), encoding="utf-8")
    for number in range(with_runs):
        _make_run(root, f"RQ-{number * (count // with_runs):06d}", number)


def _request(number: int, count: int, chance: random.Random) -> str:
    wanted = ", ".join(f"RQ-{chance.randrange(count):06d}" for _ in range(chance.choice((0, 0, 1, 2))))
    day, second = chance.randrange(1, 29), chance.randrange(60)
    title = f"要望 {number}: 画面を直す" if number % 2 else f"Request number {number}"
    return (
        "---\n"
        f"priority: P{chance.randrange(4)}\n"
        f"status: {chance.choice(('ready', 'done', 'done', 'draft', 'blocked'))}\n"
        f"depends_on: [{wanted}]\n"
        "labels: [backend, ui]\n"
        f"created_at: 2025-11-{day:02d}\n"
        f"updated_at: 2025-12-{day:02d}T10:{second:02d}:00+09:00\n"
        f"---\n\n# {title}\n\n{BODY}"
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
        "current_step_index": 2,
        "current_step_id": "S03",
        "attempts": {"planning": 1, "steps": {"S01": {"implementer": 1, "qa": 1, "tests": 1}}},
        "error": {"category": "EXECUTION", "reason_code": "UNIT_TEST_FAILED", "summary": "…"},
        "history": [{"at": "2026-01-01T00:00:00Z", "event": "STEP_DONE", "step_id": "S01"}] * 6,
    }
    (folder / "stage.json").write_text(json.dumps(stage), encoding="utf-8")
