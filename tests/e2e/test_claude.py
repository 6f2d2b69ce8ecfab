"""Runs with the real claude: what it does, what it is told, what it may, and what is kept of it."""

from __future__ import annotations

import json

import pytest

from aiflow.adapters.processes import confine
from e2e.aftermath import PLANTED, assert_over
from e2e.bench import Bench, tree_of
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


@pytest.mark.spec("RUN-4", "AGT-4")
def test_a_second_attempt_goes_on_in_the_same_session(claude: ClaudeBench) -> None:
    def implement(asked: Asked) -> Reply:
        if "UNIT_TEST_FAILED" in asked.prompt:
            return done() if asked.results else Shell("rm broken")
        return done() if asked.results else Shell("touch broken new")

    claude.configure('[tests]\nunit = "test ! -e broken"')
    claude.models.script = story(planner=[plan()], implementer=implement, qa=[verdict()])
    claude.run()
    stage = assert_over(claude.bench, planning=1, steps=calls(implementer=2, qa=1))
    assert stage["state"] == "DONE"
    again = next(asked for asked in claude.models.turns if "UNIT_TEST_FAILED" in asked.prompt)
    told = json.dumps(again.body["messages"])
    assert "touch broken new" in told, "the session knows what it did before"
    assert told.count("Body of RQ-1.") == 1, "and is not told everything again"
    assert usage(stage)[:3] == (4, 600, 42), "what a resumed session used before is not counted again"


@pytest.mark.spec("RUN-10", "RUN-4")
@pytest.mark.parametrize("is_lost", [False, pytest.param(True, marks=pytest.mark.faults)])
def test_an_answer_reaches_the_session_that_asked(claude: ClaudeBench, is_lost: bool) -> None:
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
    assert (sessions(stage)["implementer"] != sessions(stopped)["implementer"]) is is_lost
    answered = next(asked for asked in claude.models.turns if "rather red" in asked.prompt)
    told = json.dumps(answered.body["messages"])
    assert told.count("Body of RQ-1.") == 1
    assert ("StructuredOutput" in told) is not is_lost


@pytest.mark.spec("AGT-4", "SEC")
def test_who_only_reads_writes_nowhere_also_when_it_is_resumed(claude: ClaudeBench) -> None:
    """Neither the user's own permissions nor a second call give a planner or a reviewer a tool that writes."""
    outside = claude.home.folder / "outside"
    outside.mkdir()
    task = {"description": "write", "prompt": "Write made.txt", "subagent_type": "general-purpose"}
    cell = {"notebook_path": "made.ipynb", "new_source": "x", "edit_mode": "insert", "cell_type": "code"}
    tries: list[Reply] = [
        Shell(f"echo x > made.txt; echo x > {outside}/made.txt"),
        Write("made.txt", "x\n"),
        Write(str(outside / "made.txt"), "x\n"),
        Read("app.txt"),
        Edit("app.txt", "app", "made"),
        UseTool("NotebookEdit", cell),
        UseTool("Task", task),
        UseTool("WebFetch", {"url": claude.models.url, "prompt": "x"}),
    ]

    def attempt(asked: Asked, answer: Answer) -> Reply:
        if "Feedback" not in asked.prompt and asked.role == "planner":
            return Say("I am not sure yet.")
        return tries[len(asked.results)] if len(asked.results) < len(tries) else answer

    claude.set_up(permissions={"allow": ["Bash", "Edit", "Write", "WebFetch"], "defaultMode": "acceptEdits"})
    claude.models.script = story(
        planner=lambda asked: attempt(asked, plan()),
        implementer=[done()],
        qa=lambda asked: attempt(asked, verdict()),
    )
    before = tree_of(claude.bench.root / "requests")
    claude.run()
    stage = assert_over(claude.bench, planning=2, steps=calls(implementer=1, qa=1))
    assert stage["state"] == "DONE"
    tried = [asked for asked in claude.models.turns if len(asked.results) == len(tries)]
    assert [asked.role for asked in tried] == ["planner", "qa"]
    for asked in tried:
        refused = [result for result in asked.results if "No such tool available" in result]
        assert len(refused) == len(tries) - 1, asked.results
    assert claude.bench.files_at(stage["branch"]) == claude.bench.files_at("main")
    assert claude.bench.git("status", "--porcelain", "--ignored", "--", "made.txt") == ""
    assert [*outside.iterdir()] == []
    assert tree_of(claude.bench.root / "requests").keys() == before.keys()


@needs_landlock
@pytest.mark.spec("AGT-4", "SEC")
def test_an_implementer_writes_in_its_worktree_only(claude: ClaudeBench) -> None:
    """Its commands are kept in by the kernel; its hooks, its sandbox and its settings lift nothing."""
    outside = claude.home.folder / "outside"
    outside.mkdir()
    own = claude.home.folder / ".claude"
    hook = {"hooks": [{"type": "command", "command": f"touch {outside}/hook"}]}
    events = {event: [{"matcher": "*", **hook}] for event in ("SessionStart", "PreToolUse", "Stop", "SessionEnd")}
    claude.set_up(hooks=events, env={"CLAUDE_CODE_SHELL_PREFIX": ""}, sandbox={"enabled": True})
    targets = (outside / "a", claude.bench.root / "b", own / "CLAUDE.md", own / "settings.json", "../c", ".git/../../d")
    commands = "; ".join(f"(echo x >> {target}) 2>&1 | sed 's/.*: //'" for target in targets)
    claude.models.script = story(
        planner=[plan()],
        implementer=[
            Shell(f"{commands}; git commit -qm x --allow-empty; touch $TMPDIR/t made.txt && echo fine"),
            done(),
        ],
        qa=[verdict()],
    )
    settings = (own / "settings.json").read_bytes()
    claude.run()
    stage = assert_over(claude.bench, planning=1, steps=calls(implementer=1, qa=1))
    assert stage["state"] == "DONE"
    told = next(asked.results[0] for asked in claude.models.turns if asked.role == "implementer" and asked.results)
    assert told.count("Permission denied") == len(targets), told
    assert "fine" in told
    assert [*outside.iterdir()] == []
    assert (own / "settings.json").read_bytes() == settings
    assert not (claude.bench.root / "b").exists()
    assert len(claude.bench.commits(stage["branch"])) == 1


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
