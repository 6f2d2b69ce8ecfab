"""An acceptance that was killed behind the move of the base, before its record: asking says so (SEL-7, REQ-6)."""

from __future__ import annotations

import json

import pytest

from e2e.bench import Bench


@pytest.fixture
def cut_off(bench: Bench) -> Bench:
    """A run whose merge is in the base, with nothing that says so but the commit it was to be merged as."""
    bench.run()
    stage, request = bench.folder() / "stage.json", bench.root / "requests/RQ-1.md"
    waiting = json.loads(stage.read_text()), request.read_text()
    accepted = bench.aiflow.json("accept", "RQ-1")["accepted_as"]
    stage.write_text(json.dumps(waiting[0] | {"merging_as": accepted}))
    request.write_text(waiting[1])
    return bench


@pytest.mark.spec("SEL-7", "REQ-6")
def test_asking_says_that_the_work_is_in_the_base_already(cut_off: Bench) -> None:
    base, stage = cut_off.git("rev-parse", "main"), (cut_off.folder() / "stage.json").read_bytes()
    listed = cut_off.aiflow("list").stdout
    assert "merged already, not recorded: aiflow accept RQ-1" in listed
    assert "AWAITING_ACCEPTANCE" not in listed
    why = " ".join(cut_off.aiflow("why", "RQ-1").stdout.split())
    assert f"Its work is already in the base branch, as {base[:12]}" in why
    assert "→ aiflow accept RQ-1" in why
    assert "すでにベースブランチにあります" in cut_off.aiflow("--lang", "ja", "why", "RQ-1").stdout
    assert (cut_off.folder() / "stage.json").read_bytes() == stage
    cut_off.aiflow("accept", "RQ-1")
    assert (cut_off.status(), cut_off.git("rev-parse", "main")) == ("done", base)


@pytest.mark.spec("SEL-7", "REQ-6")
def test_a_merge_that_never_reached_the_base_still_waits_for_acceptance(bench: Bench) -> None:
    bench.run()
    stage = bench.folder() / "stage.json"
    kept = json.loads(stage.read_text())
    stage.write_text(json.dumps(kept | {"merging_as": bench.git("rev-parse", f"aiflow/RQ-1/{kept['run_id']}")}))
    assert "AWAITING_ACCEPTANCE" in bench.aiflow("list").stdout
    assert "already" not in bench.aiflow("why", "RQ-1").stdout
