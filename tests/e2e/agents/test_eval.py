"""The plumbing of `make eval` with the real claude and codex: each way is called, counted and judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evaluate
import stub
from e2e.model_turns import Asked, Reply, Say, done, plan, verdict

pytestmark = pytest.mark.contract


def test_the_stub_solves_a_task_in_every_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main(["--tasks", "forgotten-criterion", "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    told = {
        (each["agent"], each["way"]): (each["solved"], each["ended"], each["calls"], each["input_tokens"])
        for each in found["results"]
    }
    assert told == {
        (agent, way): (True, ended, calls, tokens)
        for agent in ("claude-code", "codex")
        for way, ended, calls, tokens in (
            ("quick", "DONE", 1, 200),
            ("normal", "DONE", 3, 400),
            ("plain", "ended", 1, 200),
        )
    }
    assert [each["cost_usd"] > 0 for each in found["results"]] == [True] * 3 + [False] * 3
    assert all(each["seconds"] > 0 for each in found["results"])
    shown = capsys.readouterr().out
    assert shown.count("forgotten-criterion     yes") == 2
    assert "NO" not in shown


def test_an_agent_that_only_says_that_it_is_done_has_solved_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def boast(asked: Asked) -> Reply:
        return {"planner": plan(), "qa": verdict(), "implementer": done()}.get(asked.role, Say("I have done it."))

    monkeypatch.setattr(stub.Stub, "knows", lambda self, _task: setattr(self._models, "script", boast))
    assert evaluate.main(["--tasks", "bug", "--ways", "quick plain"]) == 1
    shown = capsys.readouterr().out
    assert shown.count("NOT SOLVED") == 4
    assert (
        "bug, quick: DONE NOTHING_CHANGED; fails test_every_month_is_its_own_days, test_the_command_shows_it" in shown
    )
