"""A real program that speaks ACP, opencode, from start to end: real changes, and each trouble in its reason code.

It takes seconds to start, so that all but one of these are among the fault tests.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from e2e.aftermath import PLANTED, assert_over
from e2e.bench import Bench
from e2e.model_server import ModelServer
from e2e.model_turns import (
    Asked,
    Cut,
    Garble,
    Hang,
    Refuse,
    Reply,
    Say,
    Script,
    Shell,
    Trouble,
    Write,
    ask,
    done,
    plan,
    story,
    verdict,
)
from e2e.real_agents import MODEL, STUB_KEY, RealHome
from waiting import wait_until

# What an agent that speaks ACP may do is tested with a scripted one (test_acp.py); that the real one speaks it so, here.
# Each call of it takes seconds of work: in the normal form a run, a question, a missing login, a kill.
pytestmark = pytest.mark.contract

OTHERS = '[agent.roles.planner]\nkind = "demo"\n[agent.roles.qa]\nkind = "demo"\n'
ONCE = f"{OTHERS}[limits]\nrole_attempts = 1\n"
MAKE = "printf 'made by the agent\\n' > made.txt"
WAIT_SECONDS = 300


def work(asked: Asked, last: Reply = done()) -> Reply:  # noqa: B008
    """Be the implementer's model, also of a session that goes on: its prompt names no role."""
    return last if asked.results else Shell(MAKE)


class Opencode:
    """A user's place of work with opencode in it; the demo agent plans and reviews unless `rest` says otherwise."""

    def __init__(self, bench: Bench, home: RealHome, models: ModelServer) -> None:
        home.install("opencode")
        self.bench, self.home, self.models = bench, home, models
        bench.aiflow.environ |= home.environ | {"OPENCODE_DISABLE_MODELS_FETCH": "1", "SPARE_TOKEN": PLANTED}
        self.configure()
        self.set_up()

    def configure(self, agent: str = "", rest: str = OTHERS) -> None:
        """Write aiflow's settings."""
        kind = 'kind = "acp"\nargv = ["opencode", "acp"]\nenv = ["OPENCODE_DISABLE_MODELS_FETCH"]\n'
        (self.bench.root / "aiflow.toml").write_text(f"[agent]\n{kind}{agent}\n{rest}\n")

    def set_up(self, **more: Any) -> None:
        """Write opencode's settings: the scripted model under two names, and these."""
        model = {"tool_call": True, "limit": {"context": 100_000, "output": 10_000}, "cost": {"input": 1, "output": 1}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{self.models.url}/v1", "apiKey": STUB_KEY},
            "models": {MODEL: model, "other-model": model},
        }
        settings = {"model": f"stub/{MODEL}", "provider": {"stub": provider}, "autoupdate": False, **more}
        self.home.write(".config/opencode/opencode.json", json.dumps(settings))

    def call(self, *args: str) -> Any:
        """Call aiflow, however long it takes."""
        out, err = self.bench.start(*args, "--json").communicate(timeout=WAIT_SECONDS)
        assert "Traceback" not in err
        return json.loads(out)

    def run(self, script: Script | None = None) -> Any:
        """`aiflow run`, with what the model does."""
        self.models.script = script or work
        return self.call("run", "RQ-1")

    def stops_with(self, code: str, script: Script, attempts: int = 1) -> Any:
        """Check that a run stops for this, and what it leaves behind."""
        result = self.run(script)
        assert code in (result["reason_code"], result["cause"]), result
        return assert_over(self.bench, planning=1, steps={"S01": {"implementer": attempts}})["error"]

    def over(self, implementer: int = 1) -> Any:
        """Check what a run leaves that is done."""
        return assert_over(self.bench, planning=1, steps={"S01": {"implementer": implementer, "qa": 1}})


@pytest.fixture
def opencode(bench: Bench, real_home: RealHome, models: ModelServer) -> Opencode:
    """Give a user's place of work with opencode in it."""
    return Opencode(bench, real_home, models)


@pytest.mark.spec("AGT-1", "AGT-3", "AGT-4", "AGT-5", "SEC")
def test_a_run_with_opencode_to_its_end(opencode: Opencode, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    escape = f"{MAKE}; echo x > {outside}; echo {PLANTED}; env"
    opencode.configure(rest='[agent.roles.qa]\nmodel = "stub/other-model"\n')
    result = opencode.run(
        story(
            planner=[Shell("echo planned > planned.txt"), plan()],
            implementer=[Shell(escape), Write("notes.txt", "one\n"), done("Made two files")],
            qa=[verdict()],
        )
    )
    assert result["state"] == "DONE"
    stage = opencode.over()
    branch, bench = result["branch"], opencode.bench
    assert bench.git("show", f"{branch}:made.txt") == "made by the agent"
    assert bench.git("show", f"{branch}:notes.txt") == "one"
    # The planner only reads, and nobody writes outside the worktree.
    assert "planned.txt" not in bench.files_at(branch)
    assert not outside.exists()
    asked = {turn.role: turn.model for turn in opencode.models.turns}
    assert asked == {"planner": MODEL, "implementer": MODEL, "qa": "other-model"}
    assert all("RQ-1" in turn.prompt for turn in opencode.models.turns)
    assert stage["usage"]["calls"] == 3
    assert stage["usage"]["input_tokens"] > 0
    assert stage["usage"]["cost_usd"] > 0
    assert stage["planning_session"].startswith("ses_")
    assert {name: known[:4] for name, known in stage["steps"][0]["sessions"].items()} == {
        "implementer": "ses_",
        "qa": "ses_",
    }
    log = bench.log(1)
    assert f"> execute: {MAKE}" in log
    assert "> edit: write" in log
    assert "summary: Made two files" in log


@pytest.mark.spec("AGT-1", "RUN-10")
def test_a_permission_of_opencode_becomes_a_question(opencode: Opencode) -> None:
    opencode.configure('permissions = "ask"\n')
    opencode.set_up(permission={"bash": "ask"})
    stopped = opencode.run()
    assert stopped["question"] == f"May the agent do this? execute: {MAKE}"
    assert stopped["choices"] == ["Allow once", "Always allow", "Reject"]
    assert_over(opencode.bench, planning=1)
    result = opencode.call("resume", "RQ-1", "--answer", "allow ONCE")
    assert result["state"] == "DONE"
    assert opencode.bench.git("show", f"{result['branch']}:made.txt") == "made by the agent"
    opencode.over()
    # It went on with the same conversation: what the model is asked now holds what it was asked before.
    assert opencode.models.turns[-1].prompt.startswith("You are still")
    assert "implement step S01" in json.dumps(opencode.models.turns[-1].body)


@pytest.mark.spec("AGT-1")
def test_a_refusal_that_opencode_gives_up_for(opencode: Opencode) -> None:
    opencode.configure('permissions = "deny"\n')
    opencode.set_up(permission={"bash": "ask"})
    error = opencode.stops_with("AGENT_PERMISSION_DENIED", lambda asked: work(asked, Say("Then I cannot.")))
    assert f"execute: {MAKE}" in error["summary"]


@pytest.mark.spec("AGT-1")
def test_a_refusal_that_opencode_finds_a_way_around(opencode: Opencode) -> None:
    opencode.configure('permissions = "deny"\n')
    opencode.set_up(permission={"bash": "ask"})
    turns: list[Reply] = [Shell(MAKE), Write("made.txt", "made otherwise\n"), done()]
    result = opencode.run(lambda asked: turns[len(asked.results)])
    assert result["state"] == "DONE"
    assert opencode.bench.git("show", f"{result['branch']}:made.txt") == "made otherwise"
    opencode.over()


@pytest.mark.spec("RUN-13")
@pytest.mark.soak
def test_a_rate_limit_is_waited_for_and_the_run_goes_on(opencode: Opencode) -> None:
    refused = 0

    def script(asked: Asked) -> Reply:
        nonlocal refused
        refused += 1
        # More often than opencode itself tries.
        return Refuse(Trouble.RATE_LIMIT, 1) if refused <= 7 else work(asked)

    assert opencode.run(script)["state"] == "DONE"
    stage = opencode.over()
    events = [line["event"] for line in stage["history"]]
    assert "QUOTA_WAIT" in events
    assert "QUOTA_BACK" in events


@pytest.mark.spec("AGT-4", "RUN-13")
@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Refuse(Trouble.UNAUTHORIZED), "AGENT_AUTH_REQUIRED"),
        (Garble(done()), "AGENT_FAILED"),
        # It tries these again and again, for half a minute each.
        pytest.param(Refuse(Trouble.SERVER_ERROR), "AGENT_FAILED", marks=pytest.mark.soak),
        pytest.param(Cut(Say("Half of it. " * 9)), "AGENT_FAILED", marks=pytest.mark.soak),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_each_trouble_of_the_model_has_its_reason_code(opencode: Opencode, reply: Reply, code: str) -> None:
    opencode.configure(rest=ONCE)
    opencode.stops_with(code, lambda _: reply)


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize(
    ("limit", "reply"),
    [("idle_seconds", Hang()), ("timeout_seconds", Shell("setsid sleep 600 & sleep 600"))],
)
@pytest.mark.soak
def test_opencode_that_hangs_is_ended(opencode: Opencode, limit: str, reply: Reply) -> None:
    opencode.configure(f"{limit} = 30\n", ONCE)
    opencode.stops_with("AGENT_TIMEOUT", lambda asked: reply if asked.results else Shell("true"))


@pytest.mark.spec("AGT-4", "AGT-5")
@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, *(pytest.param(each, marks=pytest.mark.soak) for each in (signal.SIGINT, signal.SIGTERM))],
)
def test_opencode_that_is_killed_has_failed(opencode: Opencode, number: int) -> None:
    opencode.configure(rest=ONCE)
    opencode.models.script = lambda _: Hang(Say("Working on it. " * 9))
    process = opencode.bench.start("run", "RQ-1", "--json")
    wait_until(lambda: opencode.models.turns or process.poll() is not None, WAIT_SECONDS)
    killed = [pid for pid in _pids_of("opencode") if opencode.home.folder.as_posix() in _environ(pid)]
    assert killed
    os.kill(killed[0], number)
    result = json.loads(process.communicate(timeout=WAIT_SECONDS)[0])
    assert result["reason_code"] == "AGENT_FAILED"
    assert_over(opencode.bench, planning=1, steps={"S01": {"implementer": 1}})


@pytest.mark.spec("AGT-1")
@pytest.mark.soak
def test_a_session_that_opencode_forgot_is_begun_anew(opencode: Opencode) -> None:
    assert opencode.run(lambda _: ask("Which colour?"))["question"] == "Which colour?"
    shutil.rmtree(opencode.home.folder / ".local/share/opencode")
    opencode.models.script = work
    assert opencode.call("resume", "RQ-1", "--answer", "Blue")["state"] == "DONE"
    assert "AGENT_SESSION_LOST" in opencode.over()["warnings"]
    # Who begins anew is told everything, and the answer.
    assert opencode.models.turns[-1].prompt.startswith("You are")
    assert "Blue" in opencode.models.turns[-1].prompt


@pytest.mark.spec("AGT-1", "RUN-4")
def test_the_second_attempt_goes_on_with_the_first_one(opencode: Opencode) -> None:
    def script(asked: Asked) -> Reply:
        return work(asked) if "JSON_PARSE_ERROR" in asked.prompt else Say("I forgot the form.")

    opencode.run(script)
    assert "AGENT_SESSION_LOST" not in opencode.over(2)["warnings"]
    assert "I forgot the form." in json.dumps(opencode.models.turns[-1].body)


@pytest.mark.spec("AGT-1")
def test_a_model_that_opencode_does_not_offer_is_a_mistake_in_the_settings(opencode: Opencode) -> None:
    opencode.configure('model = "stub/none"\n')
    error = opencode.stops_with("SETTINGS_INVALID", work)
    assert "agent.model: the agent does not offer stub/none, only:" in error["summary"]


def _pids_of(name: str) -> list[int]:
    found = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for pid in found if name in _words(pid)[:1]]


def _words(pid: int) -> list[str]:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []
    return [os.path.basename(word.decode(errors="replace")) for word in words]


def _environ(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return ""
