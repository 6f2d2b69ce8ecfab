"""Runs with the real claude: what it does, what it is told, what it may, and what is kept of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import without_landlock
from aiflow.adapters.processes import confine
from e2e.aftermath import PLANTED, assert_over
from e2e.bench import Bench
from e2e.claude_bench import ClaudeBench, calls, sessions, usage
from e2e.leaks import leaks
from e2e.model_server import ModelServer
from e2e.model_turns import (
    Answer,
    Asked,
    Edit,
    Read,
    Reply,
    Say,
    Shell,
    UseTool,
    Write,
    ask,
    done,
    plan,
    story,
    verdict,
    whole_run,
)
from e2e.real_agents import STUB_KEY, RealHome

needs_landlock = pytest.mark.skipif(not confine.is_available(), reason="this kernel has no Landlock")


@pytest.fixture
def claude(bench: Bench, models: ModelServer, real_home: RealHome) -> ClaudeBench:
    """Give a user who works with claude."""
    return ClaudeBench(bench, models, real_home)


@pytest.mark.spec("AGT-1", "AGT-4", "SEC")
def test_a_run_comes_to_its_end_with_real_changes(claude: ClaudeBench) -> None:
    claude.configure(agent='model = "sonnet"\n[agent.roles.qa]\nmodel = "haiku"')
    (claude.bench.root / "CLAUDE.md").write_text("Write short files.\n")
    (claude.bench.root / "AGENTS.md").write_text("Use tabs.\n")
    (claude.bench.root / "token.txt").write_text(PLANTED)
    claude.bench.commit()
    parent = "tr '\\0' '\\n' < /proc/$CLAUDE_PID/environ"
    claude.models.script = story(
        planner=[Read("app.txt"), plan()],
        implementer=[
            Shell(f"printf 'one\\n' > new.txt; env; cat token.txt; {parent}"),
            Write("deep/er.txt", "two\n"),
            Read("app.txt"),
            Edit("app.txt", "app", "App"),
            done(f"Wrote two files, not {PLANTED}"),
        ],
        qa=[verdict()],
    )
    claude.home.write(".claude/settings.json", json.dumps({"env": {"ENABLE_TOOL_SEARCH": "false"}}))
    key = {"ANTHROPIC_API_KEY": STUB_KEY, "ANTHROPIC_BASE_URL": claude.models.url, "OTHER_SECRET": "never-to-be-seen"}
    claude.run(env=key)
    stage = assert_over(claude.bench, planning=1, steps=calls(implementer=1, qa=1))
    assert stage["state"] == "DONE"
    branch = stage["branch"]
    assert {"new.txt", "deep/er.txt"} <= set(claude.bench.files_at(branch))
    assert claude.bench.git("show", f"{branch}:app.txt") == "App"

    by_role = {asked.role: asked for asked in claude.models.turns}
    models = {role: asked.model.split("-")[1] for role, asked in by_role.items()}
    assert models == {"planner": "sonnet", "implementer": "sonnet", "qa": "haiku"}
    assert "Body of RQ-1." in by_role["planner"].prompt
    assert "+App" in by_role["qa"].prompt
    # What claude knows without us is not said: the form of its answer, and what it reads by itself.
    for asked in by_role.values():
        assert asked.schema is not None
        assert "additionalProperties" not in asked.prompt
        assert "`AGENTS.md`" in asked.prompt
        assert "`CLAUDE.md`" not in asked.prompt
        assert asked.prompt.count("Body of RQ-1.") == 1
    assert ("Bash" in by_role["qa"].tools) is confine.is_available()
    assert all("Write short files." in claude.said(number) for number in range(len(claude.models.turns)))
    calls_made, tokens_in, tokens_out, cost = usage(stage)
    assert (calls_made, tokens_in, tokens_out) == (3, 800, 56)
    assert cost > 0
    assert {*sessions(stage)} == {"implementer", "qa"}
    assert stage["planning_session"]

    log = claude.bench.log(1)
    assert "$ printf 'one\\n' > new.txt" in log
    assert "Write deep/er.txt" in log
    assert "summary: Wrote two files, not ***" in log
    assert leaks(claude.bench, STUB_KEY, PLANTED, "never-to-be-seen") == []
    told = next(asked.results[0] for asked in claude.models.turns if asked.role == "implementer" and asked.results)
    assert told.count("ANTHROPIC_API_KEY=") == 1, "claude itself has it, its commands have not"
    assert PLANTED in told


@pytest.mark.faults
@pytest.mark.spec("RUN-4", "AGT-4")
def test_a_second_attempt_goes_on_in_the_same_session(claude: ClaudeBench) -> None:
    def implement(asked: Asked) -> Reply:
        if "UNIT_TEST_FAILED" in asked.prompt:
            return ask("Why is it broken?")
        return done() if asked.results else Shell("touch broken")

    claude.configure('[tests]\nunit = "test ! -e broken"')
    claude.models.script = story(planner=[plan()], implementer=implement)
    assert claude.run(code=5)["question"] == "Why is it broken?"
    stage = assert_over(claude.bench, planning=1, steps=calls(implementer=1))
    again = claude.models.turns[-1]
    told = json.dumps(again.body["messages"])
    assert "touch broken" in told, "the session knows what it did before"
    assert told.count("Body of RQ-1.") == 1, "and is not told everything again"
    assert usage(stage)[:3] == (3, 400, 28), "what a resumed session used before is not counted again"


@pytest.mark.faults
@pytest.mark.spec("RUN-10", "RUN-4")
def test_a_persons_answer_reaches_the_session_that_asked(claude: ClaudeBench) -> None:
    claude.models.script = story(
        planner=lambda asked: ask("Sure?" if "rather red" in asked.prompt else "Which colour?")
    )
    assert claude.run(code=5)["question"] == "Which colour?"
    before = assert_over(claude.bench, planning=0)
    claude.bench.aiflow("resume", "RQ-1", "--answer", "rather red", code=5)
    after = assert_over(claude.bench, planning=0)
    assert after["error"]["summary"] == "Sure?"
    assert after["planning_session"].partition("+")[0] == before["planning_session"].partition("+")[0]
    told = claude.said(-1)
    assert "Which colour?" in told
    assert told.count("Body of RQ-1.") == 1


@pytest.mark.faults
@pytest.mark.spec("RUN-10")
@pytest.mark.parametrize("is_lost", [False, True])
def test_an_implementer_goes_on_with_a_persons_answer(claude: ClaudeBench, is_lost: bool) -> None:
    """Where claude no longer knows the session, a new one is told everything, and no attempt is lost."""
    claude.models.script = story(
        planner=[plan()],
        implementer=lambda asked: done("Red it is") if "rather red" in asked.prompt else ask("Which colour?"),
        qa=[verdict()],
    )
    assert claude.run(code=5)["question"] == "Which colour?"
    stopped = assert_over(claude.bench, planning=1)
    assert stopped["error"]["reason_code"] == "NEEDS_CLARIFICATION"
    if is_lost:
        claude.forget_sessions()
    claude.bench.aiflow("resume", "RQ-1", "--answer", "rather red")
    stage = assert_over(claude.bench, planning=1, steps=calls(implementer=1, qa=1))
    assert stage["state"] == "DONE"
    assert ("AGENT_SESSION_LOST" in stage["warnings"]) is is_lost
    ids = {sessions(each)["implementer"].partition("+")[0] for each in (stage, stopped)}
    assert (len(ids) == 2) is is_lost
    answered = next(asked for asked in claude.models.turns if "rather red" in asked.prompt)
    told = json.dumps(answered.body["messages"])
    assert told.count("Body of RQ-1.") == 1
    assert ("StructuredOutput" in told) is not is_lost


def attempts(claude: ClaudeBench, outside: Path) -> list[Reply]:
    """What somebody tries who may only read."""
    task = {"description": "write", "prompt": "Write made.txt", "subagent_type": "general-purpose"}
    cell = {"notebook_path": "made.ipynb", "new_source": "x", "edit_mode": "insert", "cell_type": "code"}
    return [
        Shell(f"echo x > made.txt; echo x > {outside}/made.txt"),
        Write("made.txt", "x\n"),
        Write(str(outside / "made.txt"), "x\n"),
        Read("app.txt"),
        Edit("app.txt", "app", "made"),
        UseTool("NotebookEdit", cell),
        UseTool("Task", task),
        UseTool("WebFetch", {"url": claude.models.url, "prompt": "x"}),
    ]


@pytest.mark.faults
@needs_landlock
@pytest.mark.spec("AGT-4", "SEC")
def test_each_role_writes_where_it_may_also_when_it_is_resumed(claude: ClaudeBench) -> None:
    """A planner and a reviewer nowhere, whatever the user's permissions allow; an implementer in its worktree.

    Its commands are kept in by the kernel, which the user's settings of claude cannot lift; their hooks do not run.
    """
    outside = claude.home.folder / "outside"
    outside.mkdir()
    own = claude.home.folder / ".claude"
    hook = {"hooks": [{"type": "command", "command": f"touch {outside}/hook; exit 2"}]}
    events = {event: [{"matcher": "*", **hook}] for event in ("SessionStart", "PreToolUse", "Stop", "SessionEnd")}
    allowed = {"allow": ["Bash", "Edit", "Write", "WebFetch"], "defaultMode": "acceptEdits"}
    claude.set_up(hooks=events, permissions=allowed, env={"CLAUDE_CODE_SHELL_PREFIX": ""})
    settings = (own / "settings.json").read_bytes()
    targets = (outside / "a", claude.bench.root / "b", own / "CLAUDE.md", own / "settings.json", "../c", ".git/../../d")
    commands = "; ".join(f"(echo x >> {target}) 2>&1 | sed 's/.*: //'" for target in targets)
    tries = attempts(claude, outside)

    def read_only(asked: Asked, answer: Answer) -> Reply:
        if asked.role == "planner" and "Feedback" not in asked.prompt:
            return Say("I am not sure yet.")
        return tries[len(asked.results)] if len(asked.results) < len(tries) else answer

    claude.models.script = story(
        planner=lambda asked: read_only(asked, plan()),
        implementer=[
            Shell(f"{commands}; git commit -qm x --allow-empty; touch $TMPDIR/t new.txt && echo fine"),
            done(),
        ],
        qa=lambda asked: read_only(asked, verdict()),
    )
    claude.run()
    stage = assert_over(claude.bench, planning=2, steps=calls(implementer=1, qa=1))
    assert stage["state"] == "DONE"
    readers = [asked for asked in claude.models.turns if len(asked.results) == len(tries)]
    assert [asked.role for asked in readers] == ["planner", "qa"]
    for asked in readers:
        # A reviewer has commands, which the kernel keeps from writing; all else there is not, but for reading.
        has_commands = asked.role == "qa"
        refused = [result for result in asked.results if "No such tool available" in result]
        assert len(refused) == len(tries) - 1 - has_commands, asked.results
        assert asked.results[0].count("Permission denied") == 2 * has_commands, asked.results[0]
    told = next(asked.results[0] for asked in claude.models.turns if asked.role == "implementer" and asked.results)
    assert told.count("Permission denied") == len(targets), told
    assert "fine" in told
    assert [*outside.iterdir()] == []
    assert (own / "settings.json").read_bytes() == settings
    assert not (claude.bench.root / "b").exists()
    assert len(claude.bench.commits(stage["branch"])) == 1
    assert {*claude.bench.files_at(stage["branch"])} - {*claude.bench.files_at("main")} == {"new.txt"}


@pytest.mark.faults
@pytest.mark.spec("SEC")
def test_settings_that_an_agent_wrote_reach_nobody(claude: ClaudeBench) -> None:
    """An implementer that points claude to another model: the reviewer still asks the user's."""
    evil = json.dumps({"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}})
    claude.models.script = whole_run(f"mkdir .claude; d=.claude; echo '{evil}' > $d/settings.json; touch made.txt")
    claude.run()
    stage = assert_over(claude.bench, planning=1, steps=calls(implementer=1, qa=1))
    assert stage["state"] == "DONE"
    assert ".claude/settings.json" in claude.bench.files_at(stage["branch"])
    assert claude.models.turns[-1].role == "qa"


@pytest.mark.faults
@pytest.mark.spec("AGT-4")
def test_tools_that_the_settings_add_are_there(claude: ClaudeBench) -> None:
    claude.configure('[limits]\nrole_attempts = 1\n[agent.roles.planner]\ntools = ["Bash(git log:*)"]')
    claude.models.script = story(planner=[Shell("git log --oneline"), Shell("touch made.txt"), ask("Is that so?")])
    assert claude.run(code=5)["question"] == "Is that so?"
    assert_over(claude.bench, planning=0)
    logged, touched = claude.models.turns[-1].results
    assert "first" in logged
    assert "denied" in touched
    assert "it was not allowed: Bash touch made.txt" in claude.bench.log(0)


_SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    tool = {"name": "greet", "description": "greets", "inputSchema": {"type": "object", "properties": {}}}
    given = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}},
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [{"type": "text", "text": "greetings"}]},
    }
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": given.get(asked["method"], {})}), flush=True)
"""


@pytest.mark.faults
@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize("is_named", [False, True])
def test_a_server_of_the_users_is_there_only_if_the_settings_name_it(claude: ClaudeBench, is_named: bool) -> None:
    script = claude.home.write("server.py", _SERVER)
    servers = {"hello": {"type": "stdio", "command": sys.executable, "args": ["-IS", str(script)]}}
    claude.home.write(".claude.json", json.dumps({"mcpServers": servers}))
    claude.configure('[agent.roles.planner]\ntools = ["mcp__hello"]' if is_named else "")
    claude.models.script = story(planner=[UseTool("mcp__hello__greet"), ask("Is that so?")])
    claude.run(code=5)
    assert_over(claude.bench, planning=0)
    told = claude.models.turns[-1].results[0]
    assert ("greetings" in told, "No such tool available" in told) == (is_named, not is_named), told


@needs_landlock
@pytest.mark.faults
@pytest.mark.spec("AGT-4", "SEC")
def test_where_the_kernel_confines_nobody_claudes_own_rules_hold(claude: ClaudeBench) -> None:
    """Its file tools write in the worktree only; its commands are not kept in, and the log says so."""
    outside = claude.home.folder / "outside.txt"
    claude.models.script = story(
        planner=[Shell(f"touch {outside}"), Write("made.txt", "x"), plan()],
        implementer=[Shell("env | grep -c STUB; env"), Write("made.txt", "x"), Write(str(outside), "x"), done()],
    )
    argv = [sys.executable, without_landlock.__file__, sys.executable, "-m", "aiflow", "run", "RQ-1", "--json"]
    claude.bench.start(argv=argv).communicate(timeout=60)
    stage = assert_over(claude.bench, planning=1, steps=calls(implementer=1))
    assert stage["error"]["reason_code"] == "AGENT_PERMISSION_DENIED"
    assert stage["error"]["summary"] == f"denied: Write {outside}"
    assert not outside.exists()
    assert "no sandbox on this machine" in claude.bench.log(1)
    told = next(asked.results[0] for asked in claude.models.turns if asked.role == "implementer" and asked.results)
    assert "ANTHROPIC_API_KEY" not in told
