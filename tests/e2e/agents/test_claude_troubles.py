"""Every trouble of the real claude in its right reason code, and the way on from it."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from aiflow.domain.request import RequestId
from aiflow.messages import Texts
from aiflow.usecases.engine import Voice
from aiflow.usecases.runs.start import start_run
from aiflow.wiring import build_engine, project_at, read_settings
from e2e.aftermath import assert_over
from e2e.bench import Bench
from e2e.claude_bench import ClaudeBench, calls, sessions, usage
from e2e.model_server import ModelServer
from e2e.model_turns import (
    Cut,
    Garble,
    Hang,
    Read,
    Refuse,
    Reply,
    Say,
    Script,
    Shell,
    Trouble,
    Write,
    ask,
    at_first,
    done,
    plan,
    story,
    verdict,
    whole_run,
)
from e2e.real_agents import RealHome
from waiting import wait_until

pytestmark = pytest.mark.contract

ONCE = "[limits]\nrole_attempts = 1\n"
# A question ends a run with the first call, and is no failure of it.
ASKS = story(planner=[ask("Is that so?")])


@pytest.fixture
def claude(bench: Bench, models: ModelServer, real_home: RealHome) -> ClaudeBench:
    """Give a user who works with claude, whose roles have one attempt."""
    made = ClaudeBench(bench, models, real_home)
    made.configure(ONCE)
    return made


def always(trouble: Trouble, seconds: int = 1) -> Script:
    return lambda _: Refuse(trouble, seconds)


def fails(claude: ClaudeBench, code: int, *, planning: int = 1) -> Any:
    """Run into a planner's trouble; return what the run says of it."""
    claude.run(code=code)
    stage = assert_over(claude.bench, planning=planning)
    assert stage["state"] == "NEEDS_INPUT"
    return stage["error"]


FAILURES: dict[str, tuple[Reply, str]] = {
    "500": (Refuse(Trouble.SERVER_ERROR), "500 Internal server error"),
    "cut stream": (Cut(Say("And then there was nothing. " * 9)), "Connection to the API was lost"),
    "bad request": (Refuse(Trouble.BAD_REQUEST), "API Error: 400"),
}


@pytest.mark.spec("AGT-3", "AGT-4")
@pytest.mark.parametrize("case", ["cut stream", *(pytest.param(name) for name in ("500", "bad request"))])
def test_a_model_that_fails_is_a_failed_attempt(claude: ClaudeBench, case: str) -> None:
    reply, words = FAILURES[case]
    claude.models.script = lambda _: reply
    error = fails(claude, 5)
    assert (error["reason_code"], words in error["summary"]) == ("AGENT_FAILED", True), error


@pytest.mark.spec("AGT-4")
def test_exit_code_0_is_no_success(claude: ClaudeBench) -> None:
    """An API that fails: claude says `"subtype": "success"`, and here its exit code says so too."""
    claude.wrap('"$CLAUDE" "$@" || exit 0')
    claude.models.script = always(Trouble.SERVER_ERROR)
    error = fails(claude, 5)
    assert error["reason_code"] == "AGENT_FAILED"
    assert claude.bench.errors()["evidence"]["exit_code"] == 0


@pytest.mark.spec("AGT-3", "RUN-4")
def test_a_failed_attempt_is_repeated_in_its_session(claude: ClaudeBench) -> None:
    claude.configure()
    claude.models.script = at_first([Refuse(Trouble.SERVER_ERROR)] * 2, ASKS)
    assert claude.run(code=5)["reason_code"] == "NEEDS_CLARIFICATION"
    assert_over(claude.bench, planning=1)
    assert "AGENT_FAILED" in claude.models.turns[-1].prompt
    assert claude.said(-1).count("Body of RQ-1.") == 1


AUTH: dict[str, tuple[Trouble, str]] = {
    "wrong key": (Trouble.UNAUTHORIZED, "Invalid API key"),
    "no money": (Trouble.BILLING, "Credit balance is too low"),
    "not allowed": (Trouble.FORBIDDEN, "403"),
}


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize("case", ["no money", *(pytest.param(one) for one in list(AUTH)[::2])])
def test_what_only_a_person_can_mend_stops_at_once(claude: ClaudeBench, case: str) -> None:
    trouble, words = AUTH[case]
    claude.configure()
    claude.models.script = always(trouble)
    error = fails(claude, 3)
    assert (error["reason_code"], words in error["summary"]) == ("AGENT_AUTH_REQUIRED", True), error
    advice = claude.bench.errors()["actions"]
    assert advice[0] == "Log in with `claude auth login`, or set ANTHROPIC_API_KEY"
    assert not any("codex" in action or "opencode" in action for action in advice), "only of the program that was used"


@pytest.mark.spec("AGT-4")
def test_without_a_login_a_person_is_told_to_log_in(claude: ClaudeBench) -> None:
    claude.home.write(".claude/settings.json", "{}")
    error = fails(claude, 3)
    assert (error["reason_code"], "/login" in error["summary"]) == ("AGENT_AUTH_REQUIRED", True)
    assert claude.models.asked == []


@pytest.mark.spec("RUN-13")
def test_a_used_up_quota_is_waited_for_until_its_time(claude: ClaudeBench) -> None:
    """A subscription says when; the attempt is given back, and the run goes on by itself."""
    claude.home.subscribe_claude()
    claude.models.script = at_first([Refuse(Trouble.QUOTA, 1)], story(planner=[plan()], implementer=[ask("Sure?")]))
    assert claude.run(code=5)["question"] == "Sure?"
    stage = assert_over(claude.bench, planning=1)
    assert [entry["event"] for entry in stage["history"]][1:4] == ["QUOTA_WAIT", "QUOTA_BACK", "PLANNED"]
    assert "You've hit your 5-hour limit" in claude.bench.log(0)
    assert claude.said(1).count("Body of RQ-1.") == 1, "the session that met the limit goes on"


@pytest.mark.spec("RUN-13")
@pytest.mark.parametrize("trouble", [Trouble.RATE_LIMIT, Trouble.OVERLOADED])
def test_a_limit_without_a_time_is_waited_for_too(
    claude: ClaudeBench, monkeypatch: pytest.MonkeyPatch, trouble: Trouble
) -> None:
    monkeypatch.setattr("aiflow.domain.runs.quota.FIRST_SECONDS", 0.2)
    for name, value in claude.bench.aiflow.environ.items():
        monkeypatch.setenv(name, value)
    # Claude asks twice by itself, so aiflow waits twice.
    claude.models.script = at_first([Refuse(trouble)] * 4, whole_run())
    root = str(claude.bench.root)
    project = project_at(root)
    engine = build_engine(project, read_settings(root, ()), project.journal, Voice(Texts("en")))
    assert start_run(engine, RequestId("RQ-1")).state == "DONE"
    stage = assert_over(claude.bench, planning=1, steps=calls(implementer=1, qa=1))
    assert [entry["event"] for entry in stage["history"]].count("QUOTA_WAIT") == 2
    assert usage(stage)[0] == 3


@pytest.mark.spec("RUN-13")
def test_a_quota_that_is_away_too_long_stops_and_says_until_when(claude: ClaudeBench) -> None:
    claude.home.subscribe_claude()
    claude.configure("[limits]\nquota_wait_hours = 1")
    claude.models.script = always(Trouble.QUOTA, 7200)
    error = fails(claude, 3, planning=0)
    assert error["reason_code"] == "AGENT_QUOTA"
    told = datetime.fromisoformat(error["facts"]["retry_at"])
    assert abs(told - datetime.now(UTC) - timedelta(hours=2)) < timedelta(minutes=2)


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ("idle_seconds = 2", "it was silent for 2 s"),
        pytest.param("timeout_seconds = 2", "it took longer than 2 s"),
    ],
)
def test_a_claude_that_hangs_is_ended(claude: ClaudeBench, limits: str, words: str) -> None:
    claude.configure(ONCE, agent=limits)
    claude.models.script = lambda _: Hang(Say("And then there was nothing. " * 9))
    error = fails(claude, 5)
    assert (error["reason_code"], error["summary"]) == ("AGENT_TIMEOUT", words)


@pytest.mark.spec("AGT-4")
def test_what_an_ended_call_cost_is_counted_with_the_next_in_its_session(claude: ClaudeBench) -> None:
    """Claude tells what a call cost at its end only: one that is ended from outside tells nothing."""
    claude.configure("[agent.roles.planner]\nidle_seconds = 20")
    claude.models.script = at_first([Read("a.txt"), Read("a.txt"), Hang()], ASKS)
    claude.run(code=5)
    stage = assert_over(claude.bench, planning=1)
    calls, read, written, cost = usage(stage)
    assert (calls, read, written) == (2, 300, 21)
    assert cost == pytest.approx(3 * 0.00054), "two turns of the first call, and one of the second"


@pytest.mark.spec("AGT-4")
def test_a_claude_that_hangs_behind_its_answer_has_answered(claude: ClaudeBench) -> None:
    claude.configure(ONCE, agent="linger_seconds = 1")
    claude.wrap('trap "" TERM; "$CLAUDE" "$@"; setsid sleep 600 & sleep 600')
    claude.models.script = ASKS
    assert claude.run(code=5)["question"] == "Is that so?"
    assert_over(claude.bench, planning=0)


@pytest.mark.spec("AGT-4")
def test_lines_that_are_no_events_do_not_matter(claude: ClaudeBench) -> None:
    noise = (
        """echo "Warning: old node"; echo '{"type":"result","is_error":fal'; printf '\\377\\376\\n'; echo "oh no" >&2"""
    )
    claude.wrap(f'{noise}; "$CLAUDE" "$@"; echo "[1]+ Done"')
    claude.models.script = lambda _: Garble(ask("Is that so?"))
    assert claude.run(code=5)["question"] == "Is that so?"
    assert_over(claude.bench, planning=0)
    log = claude.bench.log(0)
    assert "Warning: old node\nclaude: an event that cannot be read (31 bytes)\n" in log
    assert "oh no" in log


@pytest.mark.spec("AGT-4")
def test_a_closing_event_that_cannot_be_read_is_none(claude: ClaudeBench) -> None:
    claude.wrap(""""$CLAUDE" "$@" | sed 's/^.*"type":"result".*$/{"type":"resu/' """)
    claude.models.script = ASKS
    error = fails(claude, 5)
    assert error["reason_code"] == "AGENT_FAILED"
    assert error["summary"] == "it ended without its closing event"


@pytest.mark.spec("AGT-4")
def test_an_implementer_that_was_denied_has_not_done_its_work(claude: ClaudeBench) -> None:
    outside = claude.home.folder / "outside.txt"
    claude.models.script = story(planner=[plan()], implementer=[Write(str(outside), "x"), done()])
    claude.run(code=5)
    stage = assert_over(claude.bench, planning=1, steps=calls(implementer=1))
    assert stage["error"]["reason_code"] == "AGENT_PERMISSION_DENIED"
    assert stage["error"]["summary"] == f"denied: Write {outside}"
    assert not outside.exists()


@pytest.mark.spec("AGT-4")
def test_a_call_has_only_so_many_turns(claude: ClaudeBench) -> None:
    claude.configure(ONCE, agent="max_turns = 1")
    claude.models.script = story(planner=[Read("app.txt"), plan()])
    error = fails(claude, 5)
    assert (error["reason_code"], error["summary"]) == ("AGENT_FAILED", "Reached maximum number of turns (1)")


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (done(), "JSON_SCHEMA_INVALID"),
        pytest.param(Say("I have planned it all."), "JSON_PARSE_ERROR"),
    ],
)
def test_an_answer_of_another_shape_is_none(claude: ClaudeBench, reply: Reply, code: str) -> None:
    claude.models.script = lambda _: reply
    assert fails(claude, 5)["reason_code"] == code


@pytest.mark.spec("AGT-4", "AGT-5")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_claude_that_somebody_kills_has_failed_and_leaves_nothing(claude: ClaudeBench, how: signal.Signals) -> None:
    """Its commands are its own children, in sessions of their own: the guard ends them all the same."""
    claude.models.script = story(planner=[plan()], implementer=[Shell("setsid sleep 600 & sleep 600")])
    process = claude.bench.start("run", "RQ-1", "--json")
    wait_until(lambda: process.poll() is not None or "$ setsid" in _log(claude.bench))
    claude.kill(how)
    assert process.wait(60) == 5, process.communicate()
    stage = assert_over(claude.bench, planning=1, steps=calls(implementer=1))
    assert stage["error"]["reason_code"] == "AGENT_FAILED"
    assert sessions(stage)["implementer"]


def _log(bench: Bench) -> str:
    path = bench.folder() / "logs/step-1.log" if bench.run_ids() else None
    return path.read_text() if path and path.exists() else ""


@pytest.mark.spec("RUN-10", "RUN-4")
def test_a_session_that_claude_no_longer_knows_begins_anew(claude: ClaudeBench) -> None:
    claude.models.script = ASKS
    claude.run(code=5)
    before = claude.bench.stage()["planning_session"]
    claude.forget_sessions()
    claude.bench.aiflow("resume", "RQ-1", "--answer", "rather red", code=5)
    stage = assert_over(claude.bench, planning=0)
    assert stage["error"]["reason_code"] == "NEEDS_CLARIFICATION"
    assert "AGENT_SESSION_LOST" in stage["warnings"]
    assert stage["planning_session"].partition("+")[0] != before.partition("+")[0]
    last = claude.models.turns[-1].prompt
    assert "rather red" in last
    assert "Body of RQ-1." in last
    assert "a new session begins" in claude.bench.log(0)


@pytest.mark.spec("AGT-4", "AUT-3")
def test_tokens_are_counted_as_they_flow(claude: ClaudeBench) -> None:
    claude.configure("[limits]\nrun_tokens = 150")
    claude.models.script = story(planner=[Read("app.txt"), Hang(Say("And then there was nothing. " * 9))])
    claude.run(code=4)
    stage = assert_over(claude.bench, planning=1)
    assert stage["error"]["reason_code"] == "RUN_LIMIT_REACHED"
    assert stage["usage"]["tokens"] == 214


@pytest.mark.spec("AGT-4")
def test_claude_itself_keeps_to_what_a_run_may_cost(claude: ClaudeBench) -> None:
    claude.configure("[limits]\nrun_cost_usd = 0.001")
    claude.models.script = story(planner=lambda _: Read("app.txt"))
    claude.run(code=4)
    stage = assert_over(claude.bench, planning=1)
    assert stage["error"]["reason_code"] == "COST_LIMIT_REACHED"
    assert len(claude.models.turns) == 2


@pytest.mark.spec("RUN-12")
def test_a_cancelled_claude_leaves_nothing(claude: ClaudeBench) -> None:
    claude.models.script = story(planner=[plan()], implementer=[Shell("setsid sleep 600 & sleep 600")], qa=[verdict()])
    process = claude.bench.start("run", "RQ-1", "--json")
    wait_until(lambda: process.poll() is not None or "$ setsid" in _log(claude.bench))
    claude.bench.aiflow("cancel", "RQ-1")
    process.communicate(timeout=60)
    stage = assert_over(claude.bench, planning=1, steps=calls(implementer=1))
    assert stage["error"]["reason_code"] == "CANCELLED"


@pytest.mark.spec("AGT-1")
def test_a_claude_that_is_not_installed_is_named(claude: ClaudeBench) -> None:
    (claude.home.bin / "claude").unlink()
    refused = claude.run(code=3)["error"]
    assert refused["reason_code"] == "AGENT_NOT_FOUND"
    assert "claude is not on the PATH" in str(refused)
    assert claude.bench.run_ids() == []
