"""Limits (RUN-4, RUN-5, RUN-14): a run that gets nowhere stops exactly where it should, and no restart resets a count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from e2e.bench import Bench
from e2e.scripted_agents import plan_of
from run_builders import ERRORS_KEYS
from waiting import wait_until

ALWAYS_RED = '[tests]\nunit = "echo red; exit 1"'


def error_of(bench: Bench) -> tuple[str, str | None]:
    error = bench.stage()["error"]
    return error["reason_code"], error["cause"]


@pytest.mark.spec("RUN-4", "RUN-1", "RUN-8", "CLI")
def test_a_step_whose_tests_always_fail_stops_behind_two_calls(bench: Bench) -> None:
    bench.configure(ALWAYS_RED)

    result = bench.run(code=7)

    assert (result["state"], result["reason_code"], result["cause"]) == (
        "NEEDS_INPUT",
        "RETRY_LIMIT_EXCEEDED",
        "UNIT_TEST_FAILED",
    )
    assert result["suggested_next"] == {"way_on": "retry_step", "command": "aiflow retry-step RQ-1"}
    assert bench.agent.roles == ["planner", "implementer S01", "implementer S01"]
    assert [document["attempt"] for document in bench.agent.documents[1:]] == [1, 2]
    assert [each["reason_code"] for each in bench.agent.documents[2]["feedback"]] == ["UNIT_TEST_FAILED"]
    assert "red" in bench.agent.documents[2]["feedback"][0]["detail"]
    stage = bench.stage()
    assert stage["attempts"] == {"planning": 1, "steps": {"S01": {"implementer": 2, "qa": 0, "tests": 2}}}
    last = stage["history"][-1]
    assert (last["event"], last["step_id"], last["reason_code"]) == ("NEEDS_INPUT", "S01", "RETRY_LIMIT_EXCEEDED")
    assert {"category", "reason_code", "summary"} <= set(stage["error"])
    assert bench.commits(result["branch"]) == []  # a failing step is never committed
    _check_errors(bench, result["run_id"])
    assert "RETRY_LIMIT_EXCEEDED" in bench.report()
    assert "UNIT_TEST_FAILED" in bench.report()
    assert bench.status() == "blocked"
    assert bench.locks() == []


def _check_errors(bench: Bench, run_id: str) -> None:
    errors = bench.errors()
    assert list(errors) == ERRORS_KEYS
    assert (errors["request_id"], errors["run_id"], errors["state"]) == ("RQ-1", run_id, "NEEDS_INPUT")
    assert (errors["category"], errors["cause"]) == ("EXECUTION", "UNIT_TEST_FAILED")
    assert all(errors["actions"])
    log = f"runs/RQ-1/{run_id}/logs/step-1.log"
    assert errors["evidence"] == {
        "failed_at_state": "TESTING",
        "step_id": "S01",
        "command": "echo red; exit 1",
        "exit_code": 1,
        "stderr_snippet": "red",
        "log_paths": [log],
    }
    assert (bench.root / log).exists()


@pytest.mark.spec("RUN-4")
@pytest.mark.parametrize(
    ("role", "first", "second", "expected"),
    [
        ("planner", "answer('no')", "answer('no')", ("RETRY_LIMIT_EXCEEDED", "JSON_PARSE_ERROR")),
        ("planner", "answer('no')", "answer({'steps': []})", ("JSON_SCHEMA_INVALID", None)),
        ("implementer", "sys.exit(3)", "answer('no')", ("JSON_PARSE_ERROR", None)),
        ("implementer", "sys.exit(3)", "sys.exit(4)", ("RETRY_LIMIT_EXCEEDED", "AGENT_FAILED")),
        ("qa", "answer('no')", "answer('no')", ("RETRY_LIMIT_EXCEEDED", "JSON_PARSE_ERROR")),
        ("qa", "answer('no')", "answer({'verdict': 'maybe'})", ("JSON_SCHEMA_INVALID", None)),
    ],
)
def test_a_role_is_called_twice_and_the_last_or_the_common_reason_counts(
    bench: Bench, role: str, first: str, second: str, expected: tuple[str, str | None]
) -> None:
    bench.agent.does(role, first, attempt=1)
    bench.agent.does(role, second, attempt=2)
    assert bench.run(code=5)["state"] == "NEEDS_INPUT"
    assert error_of(bench) == expected
    assert [name.split()[0] for name in bench.agent.roles].count(role) == 2
    assert bench.agent.last(role)["feedback"][-1]["reason_code"] in ("JSON_PARSE_ERROR", "AGENT_FAILED")


@pytest.mark.spec("RUN-4")
def test_a_reviewers_own_failure_does_not_repeat_the_implementers_work(bench: Bench) -> None:
    bench.agent.does("qa", "answer('garbage')", attempt=1)
    assert bench.run()["state"] == "DONE"
    assert bench.agent.roles == ["planner", "implementer S01", "qa S01", "qa S01"]


@pytest.mark.spec("RUN-4")
def test_tests_then_review_fail_and_the_last_reason_is_told(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "test -e two"')
    bench.agent.does("implementer", "write('one', '1'); done()", attempt=1)
    bench.agent.does("implementer", "write('two', '2'); done()", attempt=2)
    bench.agent.does("qa", "answer({'verdict': 'fail', 'findings': ['ugly']})")
    result = bench.run(code=5)
    assert error_of(bench) == ("QA_REJECTED", None)
    assert result["suggested_next"]["way_on"] == "retry_step"
    assert bench.agent.roles.count("implementer S01") == 2


@pytest.mark.spec("RUN-3", "RUN-5")
@pytest.mark.parametrize("change", ["write('f', 'x\\n' * 11)", "write('app.txt', 'x\\n' * 10)"])
def test_a_step_with_too_many_lines_is_too_large(bench: Bench, change: str) -> None:
    bench.configure("[limits]\nstep_lines = 10")
    bench.agent.does("implementer", f"{change}; done()")
    assert bench.run(code=5)["reason_code"] == "STEP_TOO_LARGE"


@pytest.mark.spec("RUN-5", "RUN-3")
def test_a_step_that_is_too_large_stops_at_once_and_needs_a_new_plan(bench: Bench) -> None:
    bench.configure("[limits]\nstep_files = 3")
    bench.agent.does("implementer", "[write(f'f{n}', 'x') for n in range(4)]; done()")

    result = bench.run(code=5)

    assert result["reason_code"] == "STEP_TOO_LARGE"
    assert result["suggested_next"]["way_on"] == "replan"
    assert bench.agent.roles == ["planner", "implementer S01"]
    for command in (["resume", "RQ-1"], ["retry-step", "RQ-1", "S01"]):
        refused = bench.aiflow.json(*command, code=4)["error"]
        assert refused["reason_code"] == "REPLAN_REQUIRED"
        assert "aiflow replan RQ-1" in json.dumps(refused["actions"])
    assert len(bench.agent.calls) == 2
    bench.agent.forget()
    assert (
        bench.aiflow.json("resume", "RQ-1", "--force", code=5)["reason_code"] == "STEP_TOO_LARGE"
    )  # its work is there
    assert bench.aiflow.json("replan", "RQ-1")["state"] == "DONE"


@pytest.mark.spec("RUN-5", "RUN-4")
def test_the_same_reason_twice_in_a_row_needs_a_new_plan_unless_forced(bench: Bench) -> None:
    bench.configure(ALWAYS_RED)
    bench.run(code=7)
    assert bench.aiflow.json("resume", "RQ-1", code=7)["cause"] == "UNIT_TEST_FAILED"
    calls = len(bench.agent.calls)
    for command in ("resume", "retry-step"):
        assert bench.aiflow.json(command, "RQ-1", code=4)["error"]["reason_code"] == "REPLAN_REQUIRED"
    assert len(bench.agent.calls) == calls
    assert bench.stage()["attempts"]["steps"]["S01"]["implementer"] == 4
    bench.configure('[tests]\nunit = "true"')
    assert bench.aiflow.json("resume", "RQ-1", "--force")["state"] == "DONE"


@pytest.mark.spec("RUN-4", "RUN-14", "RUN-8")
@pytest.mark.parametrize("ways", [("retry-step",) * 3, ("resume",) * 3, ("resume", "retry-step", "resume")])
def test_a_failed_step_is_done_again_three_times_however_that_is_asked_for(bench: Bench, ways: tuple[str, ...]) -> None:
    bench.configure(ALWAYS_RED)
    bench.run(code=7)
    for number, way in enumerate(ways, 1):
        assert bench.aiflow.json(way, "RQ-1", "--force", code=7)["cause"] == "UNIT_TEST_FAILED"
        assert bench.stage()["steps"][0]["retries"] == number
        assert bench.stage()["attempts"]["steps"]["S01"]["implementer"] == 2 * (number + 1)
    bench.aiflow("doctor", "--full")
    assert bench.aiflow.json("why", "RQ-1")["stations"][0]["commands"] == ["aiflow replan RQ-1"]
    for way in ("retry-step", "resume"):
        refused = bench.aiflow.json(way, "RQ-1", code=5)["error"]
        assert refused["reason_code"] == "RETRY_LIMIT_EXCEEDED"
        assert refused["actions"][:2] == ["aiflow replan RQ-1", f"aiflow {way} RQ-1 --force"]
    assert bench.agent.roles.count("implementer S01") == 8
    assert bench.stage()["steps"][0]["retries"] == 3
    assert bench.aiflow.json(ways[0], "RQ-1", "--force", code=7)["cause"] == "UNIT_TEST_FAILED"
    assert bench.stage()["steps"][0]["retries"] == 4
    bench.configure('[tests]\nunit = "true"')
    assert bench.aiflow.json("replan", "RQ-1")["state"] == "DONE"


@pytest.mark.spec("RUN-4")
@pytest.mark.parametrize("way", ["retry-step", "resume"])
def test_planning_counts_as_a_step(bench: Bench, way: str) -> None:
    bench.configure("[limits]\nstep_retries = 2")
    bench.agent.does("planner", "answer('no')")
    bench.run(code=5)
    for _ in range(2):
        assert bench.aiflow.json(way, "RQ-1", code=5)["cause"] == "JSON_PARSE_ERROR"
    assert bench.stage()["error"]["way_on"] == "replan"
    refused = bench.aiflow.json(way, "RQ-1", code=5)["error"]
    assert (refused["reason_code"], refused["context"]["advice"]) == ("RETRY_LIMIT_EXCEEDED", "replan")
    assert bench.agent.roles == ["planner"] * 6
    bench.agent.forget()
    assert bench.aiflow.json(way, "RQ-1", "--force")["state"] == "DONE"


@pytest.mark.spec("RUN-4", "RUN-10", "RUN-12")
def test_going_on_behind_a_question_does_not_count(bench: Bench) -> None:
    bench.configure("[limits]\nstep_retries = 1")
    bench.agent.does("implementer", "ask('?')")
    bench.run(code=5)
    for way in (("resume", "-a", "x"), ("retry-step",), ("resume", "-a", "y")):
        asked = bench.aiflow.json(way[0], "RQ-1", *way[1:], code=5)
        assert asked["reason_code"] == "NEEDS_CLARIFICATION"
    step = bench.stage()["steps"][0]
    assert (step["retries"], step["restarts"]) == (0, 1)


@pytest.mark.spec("RUN-4", "RUN-7")
def test_what_a_person_mended_by_hand_goes_on_behind_the_limit_too(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "test -e green"\n[limits]\nstep_retries = 0')
    bench.run(code=7)
    for more in ((), ("--keep-changes",)):  # nothing was mended
        refused = bench.aiflow.json("resume", "RQ-1", *more, code=5)["error"]
        assert refused["reason_code"] == "RETRY_LIMIT_EXCEEDED"
    (bench.worktree() / "green").write_text("by hand\n")
    assert bench.aiflow.json("resume", "RQ-1", "--keep-changes")["state"] == "DONE"
    assert bench.stage()["steps"][0]["retries"] == 0


@pytest.mark.spec("RUN-14", "RUN-11", "RUN-4")
def test_a_killed_call_counts_and_a_second_crash_in_the_step_stops_the_run(bench: Bench) -> None:
    process = bench.start_hanging()
    process.kill()
    process.wait()  # until then its lock is that of somebody who lives
    process = _recovering(bench)
    assert bench.stage()["attempts"]["steps"]["S01"]["implementer"] == 2
    process.kill()
    process.wait()

    result = bench.run(code=3)

    assert (result["state"], result["reason_code"]) == ("NEEDS_INPUT", "PROCESS_CRASHED")
    assert bench.agent.roles.count("implementer S01") == 2  # no third call
    assert bench.stage()["attempts"]["steps"]["S01"]["implementer"] == 2
    assert bench.status() == "blocked"
    assert bench.locks() == []


def _recovering(bench: Bench) -> Any:
    """Start a run again whose step hangs again."""
    bench.agent.does("implementer", "(HERE / 'again').touch(); time.sleep(600)")
    process = bench.start("run", "RQ-1", "--json")
    wait_until(lambda: (bench.agent.folder / "again").exists() or process.poll() is not None)
    bench.agent.forget()
    return process


@pytest.mark.spec("RUN-14", "RUN-4")
def test_a_crash_and_a_failure_of_one_visit_are_two_attempts(bench: Bench) -> None:
    bench.configure(ALWAYS_RED)
    process = bench.start_hanging()
    process.kill()
    process.wait()
    assert bench.run(code=7)["reason_code"] == "UNIT_TEST_FAILED"
    assert bench.agent.roles.count("implementer S01") == 2
    assert bench.agent.last("implementer")["attempt"] == 2


@pytest.mark.spec("RUN-4", "RUN-10")
def test_a_question_is_not_an_attempt(bench: Bench) -> None:
    bench.configure(ALWAYS_RED)
    bench.agent.does("implementer", "ask('which one?')", attempt=1)
    for answer in ("a", "b"):
        assert bench.run(code=5)["reason_code"] == "NEEDS_CLARIFICATION" if answer == "a" else True
        assert bench.stage()["attempts"]["steps"]["S01"]["implementer"] == 0
        assert bench.aiflow.json("resume", "RQ-1", "-a", answer, code=5)["reason_code"] == "NEEDS_CLARIFICATION"
    bench.agent.forget()
    assert bench.aiflow.json("resume", "RQ-1", "-a", "c", code=7)["reason_code"] == "RETRY_LIMIT_EXCEEDED"
    assert bench.stage()["attempts"]["steps"]["S01"]["implementer"] == 2
    answers = bench.agent.last("implementer")["answers"]
    assert [each["answer"] for each in answers] == ["a", "b", "c"]


@pytest.mark.spec("RUN-4", "RUN-10")
def test_a_question_behind_a_failure_gives_its_own_call_back_only(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "test -e good"')
    bench.agent.does("implementer", "write('bad', 'b'); done()", attempt=1)
    bench.agent.does("implementer", "ask('how?')", attempt=2)
    bench.run(code=5)
    assert bench.stage()["attempts"]["steps"]["S01"] == {"implementer": 1, "qa": 0, "tests": 1}
    bench.agent.forget()
    bench.agent.does("implementer", "write('good', 'g'); done()")
    assert bench.aiflow.json("resume", "RQ-1", "-a", "like this")["state"] == "DONE"


@pytest.mark.spec("RUN-4")
def test_each_step_begins_a_visit_of_its_own(bench: Bench) -> None:
    bench.agent.plans("S01", "S02")
    bench.agent.does("implementer", "sys.exit(1)", attempt=1)
    assert bench.run()["state"] == "DONE"
    assert bench.agent.roles.count("implementer S01") == bench.agent.roles.count("implementer S02") == 2
    assert bench.agent.last("implementer")["feedback"][0]["reason_code"] == "AGENT_FAILED"
    assert len(bench.agent.last("implementer")["feedback"]) == 1  # nothing of the step before


@pytest.mark.spec("RUN-5")
def test_a_broad_step_whose_diff_explodes_needs_a_new_plan(bench: Bench) -> None:
    bench.agent.plans_exactly(plan_of("S01", targets={"paths": ["."]}))
    bench.configure('[tests]\nunit = "test ! -e f"\ne2e = "test ! -e g"')
    bench.agent.does("implementer", "write('f', 'x\\n' * 10); done()")
    bench.run(code=7)
    bench.agent.forget()
    bench.agent.does("implementer", "os.unlink('f'); write('g', 'x\\n' * 30); done()", attempt=1)
    bench.agent.does("implementer", "write('g', 'x\\n' * 30); done()", attempt=2)
    assert bench.aiflow.json("resume", "RQ-1", code=7)["cause"] == "E2E_TEST_FAILED"
    assert bench.aiflow.json("resume", "RQ-1", code=4)["error"]["reason_code"] == "REPLAN_REQUIRED"


@pytest.mark.spec("RUN-1", "RUN-6", "ERR-4")
def test_history_and_journal_tell_a_resume_from_a_step_done_again(bench: Bench) -> None:
    bench.agent.does("implementer", "ask('?')")
    bench.run(code=5)
    shown = bench.aiflow("retry-step", "RQ-1", code=5).stdout
    assert "S01 again, from its start" in shown
    bench.agent.forget()
    shown = bench.aiflow("resume", "RQ-1", "-a", "x").stdout
    assert "Resumed at S01" in shown
    assert "S01 done, the last one" in shown
    notes = [(line["event"], line.get("note")) for line in bench.stage()["history"]]
    told = [
        (entry["data"]["event"], entry["data"].get("mode")) for entry in bench.journal() if "event" in entry["data"]
    ]
    for lines in (notes, told):
        ways = [line for line in lines if line[0].startswith("RESUMED")]
        assert ways == [("RESUMED_AT_STEP", "retry_step"), ("RESUMED_AT_STEP", "resume")]
    assert ("STEP_DONE", None) in notes
