"""Every trouble of the real codex in its right reason code, and the way on from it."""

from __future__ import annotations

import re
import shutil
import signal
from datetime import UTC, datetime, timedelta

import pytest

from e2e.aftermath import assert_over
from e2e.bench import Bench
from e2e.codex_bench import CodexBench, calls, sessions_of, usage
from e2e.model_server import ModelServer
from e2e.model_turns import (
    Asked,
    Cut,
    Garble,
    Hang,
    Refuse,
    Reply,
    Say,
    Shell,
    Trouble,
    UseTool,
    Write,
    ask,
    at_first,
    done,
    in_order,
    plan,
    story,
    verdict,
    whole_run,
)
from e2e.real_agents import RealHome
from waiting import wait_until

pytestmark = pytest.mark.contract


@pytest.fixture
def codex(bench: Bench, models: ModelServer, real_home: RealHome) -> CodexBench:
    """Give a user who works with codex."""
    return CodexBench(bench, models, real_home)


@pytest.mark.spec("RUN-13")
def test_a_rate_limit_is_waited_for(codex: CodexBench) -> None:
    """Codex asks twice and gives up; aiflow waits as long as the message says, and the attempt is given back."""
    codex.models.script = at_first([Refuse(Trouble.RATE_LIMIT, 1, in_stream=True)] * 2, whole_run())
    codex.run()
    stage = assert_over(codex.bench, planning=1, steps=calls(implementer=1, qa=1))
    assert stage["state"] == "DONE"
    events = [entry["event"] for entry in stage["history"]]
    assert events[1:4] == ["QUOTA_WAIT", "QUOTA_BACK", "PLANNED"]
    assert usage(stage)[0] == 3
    assert len(codex.threads()) == 3  # the thread that met the limit goes on


@pytest.mark.spec("RUN-13")
def test_a_used_up_plan_names_its_time(codex: CodexBench) -> None:
    codex.configure("[limits]\nquota_wait_hours = 1")
    codex.models.script = lambda _: Refuse(Trouble.QUOTA, seconds=7200)
    codex.run(code=3)
    error = assert_over(codex.bench, planning=0)["error"]
    assert error["reason_code"] == "AGENT_QUOTA"
    assert "usage limit" in error["summary"]
    told = datetime.fromisoformat(re.search(r"\d{4}-\d\d-\d\dT[\d:+-]+", str(error))[0])  # type: ignore[index]
    assert abs(told - datetime.now(UTC) - timedelta(hours=2)) < timedelta(minutes=2)


@pytest.mark.spec("RUN-13")
def test_a_run_that_waits_shows_until_when_and_can_be_cancelled(codex: CodexBench) -> None:
    codex.models.script = lambda _: Refuse(Trouble.QUOTA, seconds=3600)
    process = codex.bench.start("run", "RQ-1", "--json")
    wait_until(lambda: codex.bench.run_ids() and codex.bench.stage()["quota"])
    until = datetime.fromisoformat(codex.bench.stage()["quota"]["until"])
    assert timedelta(minutes=59) < until - datetime.now(UTC) < timedelta(minutes=62)
    codex.bench.aiflow("cancel", "RQ-1")
    process.communicate(timeout=60)
    assert assert_over(codex.bench, planning=0)["error"]["reason_code"] == "CANCELLED"


AUTH: dict[str, tuple[Trouble, str]] = {
    "wrong key": (Trouble.UNAUTHORIZED, "401 Unauthorized"),
    "no money": (Trouble.BILLING, "billing"),
    "not allowed": (Trouble.FORBIDDEN, "403 Forbidden"),
}


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize("case", ["wrong key", "no money", pytest.param("not allowed")])
def test_what_only_a_person_can_mend_stops_at_once(codex: CodexBench, case: str) -> None:
    trouble, words = AUTH[case]
    codex.models.script = lambda _: Refuse(trouble)
    codex.run(code=3)
    error = assert_over(codex.bench, planning=1)["error"]
    assert error["reason_code"] == "AGENT_AUTH_REQUIRED"
    assert words in error["summary"]
    advice = codex.bench.errors()["actions"]
    assert advice[0] == "Log in with `codex login`, or set CODEX_API_KEY"
    assert not any("claude" in action or "opencode" in action for action in advice), "only of the program that was used"


@pytest.mark.spec("AGT-4")
def test_a_missing_variable_is_named_with_its_cure(codex: CodexBench) -> None:
    config = codex.home.folder / ".codex/config.toml"
    config.write_text(config.read_text().replace("requires_openai_auth = true", 'env_key = "MY_MODEL_KEY"'))
    codex.models.script = whole_run()
    environ = {"MY_MODEL_KEY": "mine-4711-secret"}
    codex.run(code=3, env=environ)
    error = assert_over(codex.bench, planning=1)["error"]
    assert error["reason_code"] == "AGENT_AUTH_REQUIRED"
    assert "MY_MODEL_KEY" in error["summary"]
    assert "agent.env" in error["summary"]
    codex.configure(agent='env = ["MY_MODEL_KEY"]')
    codex.bench.aiflow("resume", "RQ-1", env=environ)
    assert assert_over(codex.bench, planning=2, steps=calls(implementer=1, qa=1))["state"] == "DONE"


FAILURES: dict[str, tuple[Reply, str]] = {
    "500": (Refuse(Trouble.SERVER_ERROR), "high demand"),
    "cut stream": (Cut(), "stream disconnected"),
    "garbage": (Garble(), "stream disconnected"),
    "bad request": (Refuse(Trouble.BAD_REQUEST), "Invalid value"),
}


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize("case", ["cut stream", *(pytest.param(one) for one in ("500", "garbage", "bad request"))])
def test_a_model_that_fails_is_a_failed_attempt(codex: CodexBench, case: str) -> None:
    reply, words = FAILURES[case]
    codex.models.script = lambda _: reply
    codex.run(code=5)
    error = assert_over(codex.bench, planning=2)["error"]
    assert (error["reason_code"], error["cause"]) == ("RETRY_LIMIT_EXCEEDED", "AGENT_FAILED")
    assert words in error["summary"]


@pytest.mark.spec("AGT-3")
def test_a_model_that_is_not_there_is_not_waited_for_for_ever(codex: CodexBench) -> None:
    codex.configure("[limits]\nrole_attempts = 1")
    codex.models.close()
    codex.run(code=5)
    assert "Connection failed" in assert_over(codex.bench, planning=1)["error"]["summary"]


@pytest.mark.spec("RUN-13")
def test_a_model_at_capacity_is_a_quota(codex: CodexBench) -> None:
    codex.configure("[limits]\nquota_wait_hours = 0")
    codex.models.script = lambda _: Refuse(Trouble.OVERLOADED)
    codex.run(code=3)
    assert assert_over(codex.bench, planning=0)["error"]["reason_code"] == "AGENT_QUOTA"


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize("limit", ["idle_seconds = 10", pytest.param("timeout_seconds = 15", marks=pytest.mark.soak)])
def test_a_hanging_model_is_a_timeout(codex: CodexBench, limit: str) -> None:
    codex.configure(f"[agent.roles.implementer]\n{limit}\n[limits]\nrole_attempts = 1")
    codex.models.script = story(
        planner=[plan()], implementer=[Shell("echo x > half.txt; (setsid sleep 600 &)"), Hang()]
    )
    codex.run(code=5)
    stage = assert_over(codex.bench, planning=1, steps=calls(implementer=1))
    assert stage["error"]["reason_code"] == "AGENT_TIMEOUT"
    assert stage["steps"][0]["sessions"]["implementer"].startswith(codex.threads()[1])


@pytest.mark.spec("AGT-4")
def test_a_refused_tool_and_no_answer_is_a_denied_permission(codex: CodexBench) -> None:
    escalated = {"cmd": "id", "sandbox_permissions": "require_escalated", "justification": "please"}
    codex.models.script = story(
        planner=[plan()],
        implementer=[
            Write("../outside.txt", "x\n"),
            UseTool("exec_command", escalated),
            Shell("rm -rf build"),
            Say("I am not allowed to."),
        ],
    )
    codex.run(code=5)
    error = assert_over(codex.bench, planning=1, steps=calls(implementer=1))["error"]
    assert error["reason_code"] == "AGENT_PERMISSION_DENIED"
    for words in ("writing outside of the project", "escalated permissions", "rm -f style commands"):
        assert words in error["summary"]
        assert "refused: " in codex.bench.log(1)


@pytest.mark.spec("AGT-4")
def test_a_refused_tool_is_forgiven_where_the_work_was_done(codex: CodexBench) -> None:
    codex.models.script = story(
        planner=[Write("x.txt", "x\n"), plan()],
        implementer=[Shell("rm -rf x"), Shell("echo y > y.txt"), done()],
        qa=[verdict()],
    )
    codex.run()
    assert assert_over(codex.bench, planning=1, steps=calls(implementer=1, qa=1))["state"] == "DONE"


@pytest.mark.spec("AGT-3")
def test_words_in_place_of_an_answer_are_no_answer(codex: CodexBench) -> None:
    codex.models.script = story(planner=[Say("Here is my plan: do it.")])
    codex.run(code=5)
    error = assert_over(codex.bench, planning=2)["error"]
    assert (error["reason_code"], error["cause"]) == ("RETRY_LIMIT_EXCEEDED", "JSON_PARSE_ERROR")


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_codex_is_a_failed_attempt_and_goes_on(codex: CodexBench, how: signal.Signals) -> None:
    def implement(asked: Asked) -> Reply:
        return done() if "Feedback" in asked.prompt else Hang() if asked.results else Shell("echo x > x.txt")

    codex.models.script = story(planner=[plan()], implementer=implement, qa=[verdict()])
    process = codex.bench.start("run", "RQ-1", "--json")
    codex.wait_until_asked(3)
    codex.kill(how)
    process.communicate(timeout=60)
    stage = assert_over(codex.bench, planning=1, steps=calls(implementer=2, qa=1))
    assert stage["state"] == "DONE"
    feedback = next(asked.prompt for asked in codex.models.turns if "Feedback" in asked.prompt)
    assert "AGENT_FAILED" in feedback
    assert sessions_of(stage)["implementer"] == codex.threads()[1]


@pytest.mark.spec("AGT-4")
def test_a_thread_that_is_gone_is_begun_anew(codex: CodexBench) -> None:
    codex.models.script = story(
        planner=[plan()],
        implementer=lambda asked: done() if "This one" in asked.prompt else ask("Which?"),
        qa=[verdict()],
    )
    codex.run(code=5)
    for left in (codex.home.folder / ".codex").glob("*.sqlite*"):
        left.unlink()
    shutil.rmtree(codex.home.folder / ".codex/sessions")
    codex.bench.aiflow("resume", "RQ-1", "--answer", "This one")
    stage = assert_over(codex.bench, planning=1, steps=calls(implementer=1, qa=1))
    assert stage["state"] == "DONE"
    assert "AGENT_SESSION_LOST" in stage["warnings"]
    assert "no rollout found" in codex.bench.log(1)
    prompt = next(asked.prompt for asked in codex.models.turns if "This one" in asked.prompt)
    assert "Body of RQ-1." in prompt  # a new thread is told everything


@pytest.mark.spec("AGT-4")
def test_a_codex_that_will_not_go_after_its_end_has_succeeded(codex: CodexBench) -> None:
    codex.configure(agent="linger_seconds = 1")
    codex.wrap('"$CODEX" "$@"; test -e "$HOME/slept" || { touch "$HOME/slept"; sleep 600; }')
    codex.models.script = story(planner=[plan()], implementer=[done()], qa=[verdict()])
    codex.run()
    assert assert_over(codex.bench, planning=1, steps=calls(implementer=1, qa=1))["state"] == "DONE"


@pytest.mark.spec("AGT-4")
def test_exit_code_0_without_the_closing_event_is_a_failure(codex: CodexBench) -> None:
    codex.configure("[limits]\nrole_attempts = 1")
    codex.wrap('"$CODEX" "$@" | grep -v turn.completed; exit 0')
    codex.models.script = whole_run()
    codex.run(code=5)
    error = assert_over(codex.bench, planning=1)["error"]
    assert error["reason_code"] == "AGENT_FAILED"
    assert "closing event" in error["summary"]


@pytest.mark.spec("AGT-4")
def test_garbage_among_the_events_is_shown_and_does_no_harm(codex: CodexBench) -> None:
    codex.wrap(
        'printf "npm notice: {\\"new\\" version\\n\\377\\000{\\n"; echo "[1]"; "$CODEX" "$@"; code=$?; printf "{cut"; exit $code'
    )
    codex.models.script = whole_run()
    codex.run()
    assert assert_over(codex.bench, planning=1, steps=calls(implementer=1, qa=1))["state"] == "DONE"
    assert 'npm notice: {"new" version' in codex.bench.log(0)


@pytest.mark.spec("AGT-4")
def test_settings_that_codex_cannot_read_are_told_in_its_words(codex: CodexBench) -> None:
    codex.configure("[limits]\nrole_attempts = 1")
    config = codex.home.folder / ".codex/config.toml"
    config.write_text(f"model_reasoning_effort = 7\n{config.read_text()}")
    codex.run(code=5)
    error = assert_over(codex.bench, planning=1)["error"]
    assert error["reason_code"] == "AGENT_FAILED"
    assert "model_reasoning_effort" in error["summary"]


@pytest.mark.spec("AGT-4")
def test_a_call_that_runs_away_is_ended_at_the_ceiling(codex: CodexBench) -> None:
    """Codex has no limit of turns; tokens are counted while it works."""
    codex.configure("[limits]\nrun_tokens = 1000")
    codex.models.script = story(
        planner=[plan()], implementer=lambda asked: Shell(f"echo {len(asked.results)}; sleep 0.1")
    )
    codex.run(code=4)
    stage = assert_over(codex.bench, planning=1, steps=calls(implementer=1))
    assert stage["error"]["reason_code"] == "RUN_LIMIT_REACHED"
    assert 1000 < stage["usage"]["tokens"] < 10_000


@pytest.mark.spec("AGT-4")
def test_ceilings_on_calls_hold_by_themselves(codex: CodexBench) -> None:
    codex.configure("[limits]\nrun_agent_calls = 2")
    codex.models.script = whole_run()
    codex.run(code=4)
    stage = assert_over(codex.bench, planning=1, steps=calls(implementer=1))
    assert stage["error"]["reason_code"] == "RUN_LIMIT_REACHED"
    assert usage(stage) == (2, 300, 21, 0.0)


@pytest.mark.spec("AGT-4")
def test_what_a_failed_call_used_is_counted(codex: CodexBench) -> None:
    codex.configure("[limits]\nrole_attempts = 1")
    codex.models.script = in_order(plan(), Shell("true"), *[Refuse(Trouble.SERVER_ERROR)] * 9)
    codex.run(code=5)
    assert usage(assert_over(codex.bench, planning=1, steps=calls(implementer=1))) == (2, 200, 14, 0.0)
