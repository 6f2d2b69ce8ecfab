"""Quotas and ceilings in real runs (RUN-13, AUT-3, AGT-4); only the agents answer from a script."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from aiflow.adapters.system_time import SystemTime
from aiflow.cli.terminal.lines import plain
from aiflow.cli.views.auto_summary import summary_lines
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.agents.programs import AgentProgram
from aiflow.domain.agents.usage import Usage
from aiflow.domain.request import RequestId
from aiflow.domain.runs.run import Run
from aiflow.messages import Texts
from aiflow.usecases.runs.start import start_run
from e2e.bench import Bench
from e2e.night import Answer, Night, done, reply
from waiting import PATIENCE_SECONDS


@pytest.fixture
def night(bench: Bench) -> Night:
    return Night(bench)


def soon(seconds: float = 0.3) -> datetime:
    return datetime.now().astimezone() + timedelta(seconds=seconds)


def quota(times: int, retry_at: Callable[[], datetime | None] = soon) -> Answer:
    """Answer so often that the quota is used up, and then as usual."""
    left = [times]

    def answer(call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
        left[0] -= 1
        if left[0] >= 0:
            return AgentReply(reason_code="AGENT_QUOTA", detail="429 slow down", retry_at=retry_at())
        return done(call, should_stop)

    return answer


def using(usage: Usage) -> Answer:
    return lambda call, stop: replace(done(call, stop), usage=usage)


def start(night: Night, *flags: str) -> Run:
    return start_run(night.engine(*flags), RequestId("RQ-1"))


@pytest.mark.spec("RUN-13", "RUN-4")
def test_a_quota_is_waited_for_and_the_attempt_is_given_back(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiflow.domain.runs.quota.MARGIN", timedelta())
    monkeypatch.setattr("aiflow.domain.runs.quota.FIRST_SECONDS", 0.05)
    night.bench.add_request("RQ-1")
    night.answers["RQ-1"] = quota(3)
    run = start(night)
    assert run.state == "DONE"
    assert run.steps["S01"].calls == {"implementer": 1, "qa": 1}
    assert run.usage.calls == 3
    events = [line.event for line in run.history]
    assert events.count("QUOTA_WAIT") == events.count("QUOTA_BACK") == 3
    assert {line.reason_code for line in run.history if line.event == "QUOTA_WAIT"} == {"AGENT_QUOTA"}
    assert (run.quota, run.error) == (None, None)
    assert not night.bench.locks()


@pytest.mark.spec("RUN-13")
@pytest.mark.parametrize("role", list(Role))
def test_every_role_may_run_out_of_quota(night: Night, role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiflow.domain.runs.quota.MARGIN", timedelta())
    night.bench.add_request("RQ-1")
    told: list[Role] = []
    usual = night.call

    def call(call: AgentCall, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> AgentReply:
        if call.role is role and role not in told:
            told.append(role)
            return AgentReply(reason_code="AGENT_QUOTA", detail="429", retry_at=soon(0.1))
        return usual(call, output, should_stop)

    night.call = call  # type: ignore[assignment, method-assign]
    run = start(night)
    assert (run.state, run.planning_calls, dict(run.steps["S01"].calls)) == ("DONE", 1, {"implementer": 1, "qa": 1})


@pytest.mark.spec("RUN-13")
@pytest.mark.parametrize("hours", ["0", "24"])
def test_what_would_take_too_long_stops_and_says_until_when(night: Night, hours: str) -> None:
    night.bench.add_request("RQ-1")
    night.answers["RQ-1"] = quota(1, lambda: soon(3 * 86400))
    run = start(night, f"limits.quota_wait_hours={hours}")
    assert run.error is not None
    assert (run.state, run.error.reason_code, run.quota) == ("NEEDS_INPUT", "AGENT_QUOTA", None)
    assert dict(run.error.facts)["retry_at"][:10] == f"{soon(3 * 86400):%Y-%m-%d}"
    assert run.steps["S01"].calls["implementer"] == 0


@pytest.mark.spec("RUN-13", "RUN-12", "LCK-8")
def test_a_run_that_waits_can_be_cancelled_at_once_and_shows_until_when_it_waits(night: Night) -> None:
    night.bench.add_request("RQ-1")
    night.answers["RQ-1"] = quota(1, lambda: soon(3600))
    engine = night.engine()
    found: list[Run] = []
    thread = threading.Thread(target=lambda: found.append(start_run(engine, RequestId("RQ-1"))))
    thread.start()
    stage = wait_for_stage(night, lambda stage: stage["quota"] is not None)
    assert (stage["state"], stage["quota"]["is_over"]) == ("IMPLEMENTING", False)
    shown = night.bench.aiflow.json("show", stage["run_id"])
    assert shown["waits_until"][:13] == f"{soon(3600):%Y-%m-%dT%H}"
    engine.control.ask_cancel(stage["run_id"])
    thread.join(100)  # the quota would be waited for an hour
    assert found[0].error is not None
    assert found[0].error.reason_code == "CANCELLED"
    assert found[0].steps["S01"].calls["implementer"] == 0


@pytest.mark.spec("RUN-13")
@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_makes_no_wait_longer(night: Night, hours: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiflow.domain.runs.quota.MARGIN", timedelta())
    night.bench.add_request("RQ-1")
    night.answers["RQ-1"] = quota(1, lambda: soon(1.5))
    moved = [timedelta()]
    engine = replace(night.engine(), time=SystemTime(lambda: soon(0) + moved[0]))
    found: list[Run] = []
    thread = threading.Thread(target=lambda: found.append(start_run(engine, RequestId("RQ-1"))))
    thread.start()
    wait_for_stage(night, lambda stage: stage["quota"] is not None)
    moved[0] = timedelta(hours=hours)
    thread.join(60)
    [run] = found
    assert (run.state, run.steps["S01"].calls, run.usage.calls) == ("DONE", {"implementer": 1, "qa": 1}, 3)


def wait_for_stage(night: Night, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        for path in (night.bench.root / "runs").glob("*/*/stage.json"):
            stage = json.loads(path.read_bytes())
            if is_so(stage):
                return dict(stage)
        time.sleep(0.02)
    raise AssertionError("it never came to that")


@pytest.mark.spec("RUN-13", "AUT-1")
def test_auto_run_waits_with_it_and_goes_on(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiflow.domain.runs.quota.MARGIN", timedelta())
    night.bench.add_request("RQ-1")
    night.bench.add_request("RQ-2")
    night.answers["RQ-1"] = quota(1, lambda: soon(0.3))
    summary = night.auto()
    assert [result.outcome for result in summary.session.results] == ["awaiting_acceptance"] * 2
    assert night.states == [
        "selecting",
        "running",
        "waiting",
        "running",
        "selecting",
        "running",
        "selecting",
        "completed",
    ]
    waiting = next(status for status in night.seen if status.session.state == "waiting")
    assert (waiting.waits_for, waiting.waits_until is not None) == ("AGENT_QUOTA", True)
    assert waiting.running is not None


CEILINGS = [
    ("limits.run_cost_usd=0.5", Usage(cost_usd=0.5), "COST_LIMIT_REACHED"),
    ("limits.run_tokens=100", Usage(input_tokens=60, output_tokens=40), "RUN_LIMIT_REACHED"),
    ("limits.run_agent_calls=2", Usage(), "RUN_LIMIT_REACHED"),
]


@pytest.mark.spec("AGT-4", "RUN-14")
@pytest.mark.parametrize(("flag", "usage", "code"), CEILINGS)
def test_a_run_stops_before_the_call_that_would_go_over_a_ceiling(
    night: Night, flag: str, usage: Usage, code: str
) -> None:
    night.bench.add_request("RQ-1")
    night.answers["RQ-1"] = using(usage)
    run = start(night, flag)
    assert run.error is not None
    assert (run.state, run.error.reason_code) == ("NEEDS_INPUT", code)
    assert dict(run.error.facts)["setting"] == flag.partition("=")[0]
    assert run.steps["S01"].calls == {"implementer": 1}  # qa was not called any more
    assert run.usage.calls == 2
    errors = night.bench.errors("RQ-1")
    assert flag.partition("=")[0] in errors["message"]
    assert errors["suggested_next"]["command"] == "aiflow resume RQ-1"


@pytest.mark.spec("AUT-3", "AGT-4")
@pytest.mark.parametrize(
    ("limit", "usage", "code"),
    [
        ({"session_cost_usd": 1.0}, Usage(cost_usd=0.5), "AUTO_COST_LIMIT"),
        ({"session_tokens": 200}, Usage(input_tokens=100), "AUTO_TOKENS_LIMIT"),
        ({"session_agent_calls": 6}, Usage(), "AUTO_CALLS_LIMIT"),
    ],
)
def test_auto_run_stops_at_each_ceiling_of_its_session(
    night: Night, limit: dict[str, Any], usage: Usage, code: str
) -> None:
    for name in ("RQ-1", "RQ-2", "RQ-3"):
        night.bench.add_request(name)
        night.answers[name] = using(usage)
    summary = night.auto(**limit)
    assert summary.session.reason_code == code
    assert len(summary.session.results) == 2
    assert [each.request_id for each in summary.unreached] == ["RQ-3"]
    assert summary.session.usage.calls == (6 if usage == Usage() else 5)


@pytest.mark.spec("AGT-4")
def test_what_is_left_reaches_the_call(night: Night) -> None:
    night.bench.add_request("RQ-1")
    seen: list[AgentCall] = []

    def answer(call: AgentCall, _stop: Callable[[], bool]) -> AgentReply:
        seen.append(call)
        if len(seen) == 1:
            return AgentReply(
                reason_code="AGENT_FAILED", session_id="s-1", usage=Usage(cost_usd=0.25, output_tokens=30)
            )
        return reply({"status": "done"})

    night.answers["RQ-1"] = answer
    run = start(night, "limits.run_cost_usd=1", "limits.run_tokens=100", "limits.run_minutes=10")
    assert run.state == "DONE"
    assert [(c.budget.cost_usd, c.budget.tokens, c.session_id) for c in seen] == [(1.0, 100, None), (0.75, 70, "s-1")]
    assert all(c.budget.seconds is not None and 590 < c.budget.seconds <= 600 for c in seen)
    assert (run.usage.cost_usd, run.usage.tokens) == (0.25, 30)


@pytest.mark.spec("RUN-13", "AUT-3")
@pytest.mark.parametrize("code", ["AGENT_AUTH_REQUIRED", "AGENT_QUOTA", "AGENT_NOT_FOUND"])
def test_auto_run_stops_at_once_where_every_request_would_meet_the_same(night: Night, code: str) -> None:
    for name in ("RQ-1", "RQ-2", "RQ-3"):
        night.bench.add_request(name)
        night.answers[name] = lambda _call, _stop: AgentReply(reason_code=code, detail="no", retry_at=soon(9 * 86400))
    summary = night.auto()
    assert (summary.session.reason_code, summary.session.runs) == (code, 1)
    assert [night.bench.status(name) for name in ("RQ-1", "RQ-2", "RQ-3")] == ["blocked", "ready", "ready"]


@pytest.mark.spec("AUT-3", "ERR-1")
def test_auto_run_names_the_login_of_the_agent_that_it_stopped_for(night: Night) -> None:
    night.program = AgentProgram("acp", "opencode")
    night.bench.add_request("RQ-1")
    night.answers["RQ-1"] = lambda _call, _stop: AgentReply(reason_code="AGENT_AUTH_REQUIRED", detail="no")
    shown = "\n".join(map(plain, summary_lines(night.auto(), Texts("en"), soon(), None)))
    assert "→ Log in with `opencode auth login`\n" in shown
    assert "claude" not in shown


@pytest.mark.spec("RUN-13", "AUT-3")
def test_no_quota_is_waited_for_beyond_the_end_of_the_session(night: Night) -> None:
    night.bench.add_request("RQ-1")
    night.answers["RQ-1"] = quota(1, lambda: soon(3600))
    summary = night.auto(session_minutes=30)
    assert summary.session.reason_code == "AGENT_QUOTA"
    run_id = summary.session.results[0].run_id
    assert run_id is not None
    assert night.bench.stage("RQ-1", run_id)["error"]["reason_code"] == "AGENT_QUOTA"


@pytest.mark.spec("RUN-13", "CLI")
def test_a_request_that_waits_for_its_quota_says_so(night: Night) -> None:
    night.bench.add_request("RQ-1")
    night.answers["RQ-1"] = quota(1, lambda: soon(3600))
    engine = night.engine()
    thread = threading.Thread(target=lambda: start_run(engine, RequestId("RQ-1")))
    thread.start()
    run_id = wait_for_stage(night, lambda stage: stage["quota"] is not None)["run_id"]
    assert "waits for the agent's quota until" in night.bench.aiflow("show", "RQ-1").stdout
    engine.control.ask_cancel(run_id)
    thread.join(60)


@pytest.mark.spec("AGT-1", "CLI")
def test_a_run_that_goes_on_with_another_agent_says_so_and_knows_it(night: Night) -> None:
    bench = night.bench
    bench.agent.does("implementer", "ask('Which?')")
    bench.run(code=5)
    bench.agent.forget()
    told = bench.aiflow("resume", "RQ-1", "-a", "this", "-c", "agent.roles.qa.kind=demo").stderr
    assert "command → command (qa: demo)" in told
    assert bench.stage()["agent"] == "command (qa: demo)"


@pytest.mark.spec("AGT-4", "DOC-1")
def test_a_ceiling_on_cost_that_nobody_tells_is_warned_of(night: Night) -> None:
    checks = night.bench.aiflow.json("doctor", "-c", "limits.session_cost_usd=5")["checks"]
    told = [check for check in checks if check["evidence"] == ["limits.session_cost_usd"]]
    assert [check["result"] for check in told] == ["WARN"]
    assert "implementer (command)" in told[0]["message"]
    assert "implementer (command)" in night.bench.aiflow("auto", "--max-cost", "5", "--max-runs", "1").stderr


@pytest.mark.spec("GIT-1")
def test_folders_called_runs_inside_the_project_are_not_ignored(night: Night) -> None:
    bench = night.bench
    (bench.root / ".gitignore").unlink(missing_ok=True)
    bench.git("commit", "-qam", "without .gitignore")
    bench.aiflow("init")
    bench.run()
    assert bench.git("check-ignore", "runs/x", ".aiflow/y").split() == ["runs/x", ".aiflow/y"]
    bench.git("check-ignore", "src/runs/x", code=1)
