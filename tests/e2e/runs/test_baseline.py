"""The tests of the base and a quick run as a user meets them (RUN-17, RUN-18): real git, real processes."""

from __future__ import annotations

import pytest

from e2e.bench import Bench, git

TESTED = """
[tests]
unit = "test -e deps.ignored && echo looked && test ! -e red"
baseline = true
[worktree]
setup = "echo made >> deps.ignored"
"""


def redden(bench: Bench) -> None:
    """Commit what makes the tests fail."""
    (bench.root / "red").touch()
    bench.commit()


def mend(bench: Bench) -> None:
    """Commit what lets them pass."""
    (bench.root / "red").unlink()
    bench.commit()


@pytest.mark.spec("RUN-17", "GIT-4")
def test_a_red_base_stops_the_run_and_a_mended_one_is_what_it_goes_on_with(bench: Bench) -> None:
    bench.configure(TESTED)
    redden(bench)
    stopped = bench.run(code=7)
    assert (stopped["state"], stopped["reason_code"]) == ("NEEDS_INPUT", "BASE_TESTS_FAILED")
    assert bench.agent.calls == []
    assert "looked\n" in bench.aiflow("logs", "RQ-1", "--step", "baseline").stdout
    shown = bench.aiflow("show", "RQ-1").stdout
    assert "aiflow resume RQ-1" in shown
    assert "looked" not in bench.log(0)

    mend(bench)
    base = git(bench.root, "rev-parse", "HEAD")
    done = bench.aiflow.json("resume", "RQ-1")
    assert (done["run_id"], done["state"]) == (stopped["run_id"], "DONE")
    assert git(bench.root, "merge-base", "HEAD", done["branch"]) == base
    assert "red" not in git(bench.root, "ls-tree", "--name-only", done["branch"])
    assert bench.aiflow("logs", "RQ-1", "--step", "baseline").stdout.count("looked\n") == 2

    bench.add_request("RQ-2")
    bench.commit()
    bench.aiflow.json("run", "RQ-2", "--quick", "--no-baseline")
    assert bench.agent.roles == ["planner", "implementer S01", "qa S01", "implementer S01"]
    stage = bench.stage("RQ-2")
    assert stage["course"] == {"has_baseline": False, "has_plan": False, "has_review": False, "base_tested": None}
    assert [step["title"] for step in stage["steps"]] == ["RQ-2"]


@pytest.mark.spec("RUN-17", "AUT-3")
def test_auto_run_ends_with_a_red_base(bench: Bench) -> None:
    bench.configure(TESTED)
    bench.add_request("RQ-2")
    redden(bench)
    summary = bench.aiflow.json("auto", code=7)
    assert (summary["reason_code"], summary["runs"]) == ("BASE_TESTS_FAILED", 1)
    assert sorted(bench.status(name) for name in ("RQ-1", "RQ-2")) == ["blocked", "ready"]
    assert bench.agent.calls == []
