"""Runs with agents that speak ACP, as a user starts them: each trouble in its reason code, and nothing left behind.

The agents are scripted, to be quick and to do what no real one can be made to do; `test_acp_opencode.py` has a real one.
"""

from __future__ import annotations

import json
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from e2e.acp_agent import AcpAgent
from e2e.aftermath import PLANTED, assert_over
from e2e.bench import Bench, is_alive
from e2e.real_agents import without_extra
from waiting import wait_until

# Each call takes a second of the processor to load the protocol's library: only the most telling ones are done each time.
faults = pytest.mark.faults
OTHERS = '[agent.roles.planner]\nkind = "demo"\n[agent.roles.qa]\nkind = "demo"\n'


class Desk:
    """A user's place of work with a scripted ACP agent; the demo agent plans and reviews unless `all_roles`."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.agent = AcpAgent(folder / "acp")
        self.configure()

    def configure(self, agent: str = "", rest: str = OTHERS) -> None:
        """Write the settings."""
        argv = json.dumps([str(self.agent.path)])
        # It writes down what it hears, in a folder of its own.
        own = f"writable = [{json.dumps(str(self.agent.folder))}]\n"
        (self.bench.root / "aiflow.toml").write_text(f'[agent]\nkind = "acp"\nargv = {argv}\n{own}{agent}\n{rest}\n')

    def run(self, code: int = 0, *args: str) -> Any:
        """`aiflow run`."""
        return self.bench.aiflow.json("run", "RQ-1", *args, code=code)

    def stops_with(self, code: str, attempts: int, exit_code: int = 5) -> Any:
        """Check that a run stops for this, and its aftermath; a limit that was reached names it as its cause."""
        result = self.run(exit_code)
        stage = assert_over(self.bench, planning=1, steps={"S01": {"implementer": attempts}} if attempts else None)
        assert code in (result["reason_code"], result["cause"]), result
        return stage["error"]


@pytest.fixture
def desk(bench: Bench, tmp_path: Path) -> Desk:
    """Give a desk."""
    return Desk(bench, tmp_path)


@pytest.mark.spec("AGT-1", "AGT-3", "AGT-4", "AGT-5")
def test_a_run_to_its_end_in_every_role(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.configure(rest='[agent.roles.qa]\nmodel = "large"\n')
    desk.agent.does(
        "session/new",
        """reply(sessionId=f"session-{os.getpid()}", models={"currentModelId": "small",
            "availableModels": [{"modelId": "small"}, {"modelId": "large"}]})""",
    )
    usage = {"inputTokens": 1000, "outputTokens": 20, "cachedReadTokens": 500}
    cost = 'update("usage_update", used=1, size=9, cost={"amount": 0.25, "currency": "USD"})'
    made = f'write("made.txt", "made\\n"); print({PLANTED!r}, file=sys.stderr); say({PLANTED!r}); tool({PLANTED!r})'
    answer = f'{cost}; say(json.dumps({{"status": "done", "summary": "ok"}})); stop(usage={usage})'
    desk.agent.does("implementer", f"{made}; {answer}")
    desk.bench.aiflow.environ["PLANTED_TOKEN"] = "planted-and-never-seen"
    result = desk.run()
    stage = assert_over(desk.bench, planning=1, steps={"S01": {"implementer": 1, "qa": 1}})
    assert result["state"] == "DONE"
    assert desk.bench.git("show", f"{result['branch']}:made.txt") == "made"
    usage = stage["usage"]
    assert (usage["calls"], usage["input_tokens"], usage["output_tokens"], usage["cached_tokens"]) == (3, 1500, 20, 500)
    assert usage["cost_usd"] == 0.25
    # The reviewer's model is its own, the others keep that of the agent.
    assert [one["modelId"] for one in desk.agent.requests("session/set_model")] == ["large"]
    prompts = [prompt["prompt"][0]["text"] for prompt in desk.agent.requests("session/prompt")]
    assert [text.partition(" in aiflow")[0] for text in prompts] == [
        "You are the planner",
        "You are the implementer",
        "You are the reviewer",
    ]
    assert all("Do RQ-1" in text or "RQ-1" in text for text in prompts)
    environ = desk.agent.heard[0]["environ"]
    assert "PLANTED_TOKEN" not in environ
    assert Path(environ["TMPDIR"]).name == "tmp"
    assert not Path(environ["TMPDIR"]).exists()
    assert "[acp] scripted 1" in desk.bench.log(1)


@faults
@pytest.mark.spec("AGT-4", "SEC")
def test_nothing_outside_the_worktree_can_be_written_and_readers_write_nowhere(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    attempt = f"""
tried = {{}}
for path in ({str(outside)!r}, "inside.txt"):
    try: write(path, "x"); tried[path] = True
    except OSError: tried[path] = False
(HERE / "tried.jsonl").open("a").write(json.dumps([role, *tried.values()]) + "\\n")
"""
    for role in ("planner", "implementer", "qa"):
        desk.agent.does(role, attempt + desk.agent.code(role))
    desk.configure(rest="")
    assert desk.run()["state"] == "DONE"
    tried = [json.loads(line) for line in (desk.agent.folder / "tried.jsonl").read_text().splitlines()]
    assert tried == [["planner", False, False], ["implementer", False, True], ["qa", False, False]]
    assert not outside.exists()


# --- sessions and questions


@pytest.mark.faults
@pytest.mark.spec("AGT-1", "RUN-4")
def test_the_second_attempt_goes_on_with_the_session_of_the_first(desk: Desk) -> None:
    desk.agent.does(
        "implementer",
        """
if prompt.startswith("You are still"): write("made.txt", "made"); done()
say("I forgot the form."); stop()
""",
    )
    result = desk.run()
    assert result["state"] == "DONE"
    stage = assert_over(desk.bench, planning=1, steps={"S01": {"implementer": 2, "qa": 1}})
    first, second = desk.agent.requests("session/prompt")
    assert desk.agent.requests("session/load")[0]["sessionId"] == first["sessionId"] == second["sessionId"]
    assert stage["steps"][0]["sessions"]["implementer"].partition("+")[0] == first["sessionId"]
    assert "JSON_PARSE_ERROR" in second["prompt"][0]["text"]
    assert len(second["prompt"][0]["text"]) < len(first["prompt"][0]["text"])


@faults
@pytest.mark.spec("AGT-1", "RUN-10")
def test_a_session_that_is_gone_is_begun_anew_in_the_same_attempt(desk: Desk) -> None:
    desk.agent.does("session/load", "fail(-32602, 'Session not found')")
    desk.agent.does(
        "implementer",
        """
if "Which colour?" in prompt: write("made.txt", "made"); done()
answer({"status": "needs_input", "question": "Which colour?"})
""",
    )
    assert desk.run(5)["question"] == "Which colour?"
    result = desk.bench.aiflow.json("resume", "RQ-1", "--answer", "Blue")
    assert (result["state"], "AGENT_SESSION_LOST" in result["warnings"]) == ("DONE", True)
    assert_over(desk.bench, planning=1, steps={"S01": {"implementer": 1, "qa": 1}})
    prompts = [prompt["prompt"][0]["text"] for prompt in desk.agent.requests("session/prompt")]
    assert [text.startswith("You are") for text in prompts] == [True, True]
    assert "Blue" in prompts[1]


@pytest.mark.faults
@pytest.mark.spec("AGT-1", "RUN-10")
def test_a_permission_becomes_a_question_and_its_answer_is_used(desk: Desk) -> None:
    desk.configure('permissions = "ask"\n')
    desk.agent.does("implementer", 'write("made.txt", str(may("npm install left-pad"))); done()')
    stopped = desk.run(5)
    assert (stopped["reason_code"], stopped["choices"]) == (
        "NEEDS_CLARIFICATION",
        ["Allow once", "Always allow", "Reject"],
    )
    assert stopped["question"] == "May the agent do this? execute: npm install left-pad"
    assert_over(desk.bench, planning=1)
    result = desk.bench.aiflow.json("resume", "RQ-1", "--answer", "1")
    assert result["state"] == "DONE"
    assert desk.bench.git("show", f"{result['branch']}:made.txt") == "once"
    assert_over(desk.bench, planning=1, steps={"S01": {"implementer": 1, "qa": 1}})
    assert len({prompt["sessionId"] for prompt in desk.agent.requests("session/prompt")}) == 1


@faults
@pytest.mark.spec("AGT-1")
def test_an_agent_that_gives_up_for_a_refusal_stops_the_run(desk: Desk) -> None:
    desk.configure('permissions = "deny"\n')
    desk.agent.does("implementer", 'may("rm -rf build"); say("Then I cannot."); stop()')
    error = desk.stops_with("AGENT_PERMISSION_DENIED", 1)
    assert "execute: rm -rf build" in error["summary"]


# --- troubles


@pytest.mark.spec("AGT-4", "RUN-13", "RUN-4")
@pytest.mark.parametrize(
    ("code", "reason", "attempts", "exit_code"),
    [
        ('fail(-32000, "Please log in")', "AGENT_AUTH_REQUIRED", 1, 3),
        ("os.kill(os.getpid(), 9)", "AGENT_FAILED", 2, 5),
        pytest.param('fail(-32603, "Internal error", {"details": "500"})', "AGENT_FAILED", 2, 5, marks=faults),
        pytest.param('stop("max_turn_requests")', "AGENT_FAILED", 2, 5, marks=faults),
        pytest.param('answer({"status": "maybe"})', "JSON_SCHEMA_INVALID", 2, 5, marks=faults),
    ],
)
def test_each_trouble_has_its_reason_code(desk: Desk, code: str, reason: str, attempts: int, exit_code: int) -> None:
    desk.agent.does("implementer", code)
    error = desk.stops_with(reason, attempts, exit_code)
    if reason == "AGENT_AUTH_REQUIRED":
        assert "Run `scripted login`" in error["summary"]
        assert "with the agent's own program" in desk.bench.errors()["actions"][0], "it is none that we know"


@faults
@pytest.mark.spec("AGT-1")
def test_a_mode_that_the_agent_does_not_have_is_a_mistake_in_the_settings(desk: Desk) -> None:
    desk.configure('mode = "plan"\n')
    assert "agent.mode" in desk.stops_with("SETTINGS_INVALID", 1, 2)["summary"]


@pytest.mark.faults
@pytest.mark.spec("AGT-4", "RUN-14")
@pytest.mark.parametrize("limit", ["timeout_seconds", pytest.param("idle_seconds", marks=pytest.mark.soak)])
def test_an_agent_that_hangs_is_ended_with_all_it_started(desk: Desk, limit: str) -> None:
    desk.configure(f"{limit} = 10\n", f"{OTHERS}[limits]\nrole_attempts = 1\n")
    talk = 'say("still here")' if limit == "timeout_seconds" else "pass"
    child = "subprocess.Popen(['sleep', '600'], start_new_session=True)"
    desk.agent.does("implementer", f"{child}\nwhile True: {talk}; time.sleep(0.2)")
    desk.stops_with("AGENT_TIMEOUT", 1)


@faults
@pytest.mark.spec("AGT-4")
def test_an_agent_that_does_not_go_behind_its_answer_has_succeeded(desk: Desk) -> None:
    stay = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    code = f"""{stay}
write("made.txt", "made")
say(json.dumps({{"status": "done"}}))
send(id=current, result={{"stopReason": "end_turn"}})
time.sleep(600)"""
    desk.agent.does("implementer", code)
    assert desk.run()["state"] == "DONE"
    assert_over(desk.bench, planning=1, steps={"S01": {"implementer": 1, "qa": 1}})


@faults
@pytest.mark.spec("RUN-12", "AGT-5")
@pytest.mark.parametrize("how", ["cancel", "client"])
def test_a_call_that_is_ended_from_outside_leaves_nothing(desk: Desk, how: str) -> None:
    desk.configure("", f"{OTHERS}[limits]\nrole_attempts = 1\n")
    desk.agent.does("implementer", "(HERE / 'hangs').touch(); time.sleep(600)")
    process = desk.bench.start("run", "RQ-1", "--json")
    wait_until(lambda: (desk.agent.folder / "hangs").exists() or process.poll() is not None)
    pid = desk.agent.heard[-1]["pid"]
    if how == "cancel":
        desk.bench.aiflow("cancel", "RQ-1")
    else:  # our client, the agent's parent
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(parent, signal.SIGKILL)
    result = json.loads(process.communicate(timeout=60)[0])
    assert result["reason_code"] == ("CANCELLED" if how == "cancel" else "AGENT_FAILED")
    wait_until(lambda: not is_alive(pid))
    assert_over(desk.bench, planning=1, steps={"S01": {"implementer": 1}})


@pytest.mark.spec("AGT-1", "DOC-1")
def test_a_program_that_cannot_be_started_is_named_before_a_run(desk: Desk) -> None:
    desk.agent.path.chmod(stat.S_IRUSR)
    refused = desk.bench.aiflow.json("run", "RQ-1", code=3)["error"]
    assert "AGENT_NOT_FOUND" in json.dumps(refused)
    assert "is not executable" in json.dumps(refused)


@pytest.mark.spec("AGT-1", "DOC-1")
def test_without_the_extra_it_is_said_how_to_install_it(desk: Desk, tmp_path: Path) -> None:
    refused = desk.bench.aiflow("run", "RQ-1", code=3, env={"PYTHONPATH": without_extra(tmp_path)}).stderr
    # The tests use a clone; what fits other installations is in tests/contracts/test_extras.py.
    assert f'bin/pip install -e "{Path(__file__).parents[3]}[acp]"' in refused
