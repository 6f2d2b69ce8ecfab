"""Runs with the real codex: what it does, what it is told, what it may, and what is kept of it."""

from __future__ import annotations

import sys

import pytest

from e2e.aftermath import PLANTED, assert_over, assert_untold
from e2e.bench import Bench
from e2e.codex_bench import CodexBench, calls, sessions_of, text_of, usage
from e2e.model_server import ModelServer
from e2e.model_turns import (
    Answer,
    Asked,
    Edit,
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


@pytest.fixture
def codex(bench: Bench, models: ModelServer, real_home: RealHome) -> CodexBench:
    """Give a user who works with codex."""
    return CodexBench(bench, models, real_home)


@pytest.mark.spec("AGT-1")
def test_a_run_comes_to_its_end_with_real_changes(codex: CodexBench) -> None:
    codex.configure(agent='model = "stub-model"\n[agent.roles.qa]\nmodel = "strict-model"')
    (codex.bench.root / "AGENTS.md").write_text("Write short files.\n")
    codex.bench.commit()
    codex.models.script = story(
        planner=[Shell("ls"), plan()],
        implementer=[
            Shell("printf 'one\\n' > new.txt"),
            Write("deep/er.txt", "two\n"),
            Edit("app.txt", "app", "App"),
            done(),
        ],
        qa=[verdict()],
    )
    codex.run()
    stage = assert_over(codex.bench, planning=1, steps=calls(implementer=1, qa=1))
    assert stage["state"] == "DONE"
    branch = stage["branch"]
    assert {"new.txt", "deep/er.txt"} <= set(codex.bench.files_at(branch))
    assert codex.bench.git("show", f"{branch}:app.txt") == "App"
    by_role = {asked.role: asked for asked in codex.models.turns}
    assert {role: asked.model for role, asked in by_role.items()} == {
        "planner": "stub-model",
        "implementer": "stub-model",
        "qa": "strict-model",
    }
    assert "Body of RQ-1." in by_role["planner"].prompt
    assert "AGENTS.md" in by_role["planner"].prompt
    assert all(asked.schema and "additionalProperties" not in asked.prompt for asked in by_role.values())
    assert usage(stage) == (3, 700, 49, 0.0)
    assert len(codex.threads()) == 3
    assert sessions_of(stage) == {"implementer": codex.threads()[1], "qa": codex.threads()[2]}
    log = codex.bench.log(1)
    assert "$ printf 'one\\n' > new.txt" in log
    assert "files: add deep/er.txt" in log
    assert "summary: It is done" in log


@pytest.mark.faults
@pytest.mark.spec("RUN-4")
def test_a_second_attempt_goes_on_in_the_same_thread(codex: CodexBench) -> None:
    def implement(asked: Asked) -> Reply:
        if "Feedback" not in asked.prompt:
            return Answer({"state": "finished"}) if len(asked.results) > 1 else Shell("echo half >> half.txt")
        return done()

    codex.models.script = story(planner=[plan()], implementer=implement, qa=[verdict()])
    codex.run()
    stage = assert_over(codex.bench, planning=1, steps=calls(implementer=2, qa=1))
    assert stage["state"] == "DONE"
    assert len(codex.threads()) == 3  # one a role, though one role had two calls
    again = next(asked for asked in codex.models.turns if "Feedback" in asked.prompt)
    assert "JSON_SCHEMA_INVALID" in again.prompt
    assert "echo half" in text_of(again.body["input"])  # the thread knows what it did before
    # Codex counts a thread, so the second call's own use is the difference: six requests in all.
    assert usage(stage) == (4, 600, 42, 0.0)


@pytest.mark.spec("RUN-10")
def test_an_answer_reaches_the_thread_that_asked(codex: CodexBench) -> None:
    codex.models.script = story(
        planner=[plan()],
        implementer=lambda asked: done("Red it is") if "rather red" in asked.prompt else ask("Which colour?"),
        qa=[verdict()],
    )
    assert codex.run(code=5)["question"] == "Which colour?"
    stopped = assert_over(codex.bench, planning=1)
    assert stopped["error"]["reason_code"] == "NEEDS_CLARIFICATION"
    codex.bench.aiflow("resume", "RQ-1", "--answer", "rather red")
    stage = assert_over(codex.bench, planning=1, steps=calls(implementer=1, qa=1))
    assert stage["state"] == "DONE"
    assert sessions_of(stage)["implementer"] == sessions_of(stopped)["implementer"] == codex.threads()[1]


@pytest.mark.spec("AGT-4")
def test_a_reader_stays_a_reader_when_it_is_resumed(codex: CodexBench) -> None:
    """Codex forgets a thread's sandbox; a planner and a reviewer that are called again may still not write.

    Nor if the user's own settings give codex, in their newer form, the run of the whole machine.
    """
    codex.add_settings("", 'default_permissions = ":danger-full-access"')
    made = list[str]()
    tries: list[Reply] = [
        Shell("echo x > made.txt; echo $?; touch $TMPDIR/t"),
        Write("made.txt", "x\n"),
        Shell("test -e made.txt"),
    ]

    def attempt(asked: Asked, answer: Reply) -> Reply:
        made.extend(name for name in ("made.txt",) if (codex.bench.worktree() / name).exists())
        if "Feedback" not in asked.prompt:
            return Say("I am not sure yet.")
        return tries[len(asked.results)] if len(asked.results) < len(tries) else answer

    codex.models.script = story(
        planner=lambda asked: attempt(asked, plan()),
        implementer=[done()],
        qa=lambda asked: attempt(asked, verdict()),
    )
    codex.run()
    stage = assert_over(codex.bench, planning=2, steps=calls(implementer=1, qa=2))
    assert (stage["state"], made) == ("DONE", [])
    assert len(codex.threads()) == 3
    tried = [asked for asked in codex.models.turns if len(asked.results) == len(tries)]
    assert [asked.role for asked in tried] == ["planner", "qa"]
    for asked in tried:
        shell, patch, seen = asked.results
        assert shell.count("Read-only file system") == 2
        assert "blocked by read-only sandbox" in patch
        assert "exited with code 1" in seen


@pytest.mark.spec("AGT-4")
def test_an_implementer_writes_in_its_worktree_only(codex: CodexBench) -> None:
    bench, home = codex.bench, codex.home.folder
    secret = codex.home.write("secret.txt", "x")
    paths = [
        "../out.txt",
        f"{bench.root}/out.txt",
        f"{home}/out.txt",
        "/tmp/aiflow-out.txt",
        ".git/x",
        f"{bench.root}/.git/hooks/post-commit",
    ]
    shell = "; ".join(f"(echo x > {path}) 2>/dev/null && echo WROTE {path}" for path in paths)
    codex.models.script = story(
        planner=[plan()],
        implementer=[
            Shell(f"{shell}; echo inside > in.txt; echo t > $TMPDIR/t && rm {secret}; git commit -aqm mine; true"),
            Write(f"{bench.root}/patched.txt", "x\n"),
            Shell("curl -s -m 2 $MODEL_URL/ && echo REACHED; true"),
            done(),
        ],
        qa=[verdict()],
    )
    before = bench.git("rev-parse", "main")
    codex.run(env={"MODEL_URL": codex.models.url})
    stage = assert_over(bench, planning=1, steps=calls(implementer=1, qa=1))
    assert stage["state"] == "DONE"
    assert secret.exists()
    assert not any((bench.root / name).exists() for name in ("out.txt", "patched.txt"))
    assert bench.git("rev-parse", "main") == before
    first, patch, net = next(asked.results for asked in reversed(codex.models.turns) if len(asked.results) == 3)
    assert "WROTE" not in first
    assert "writing outside of the project" in patch
    assert "REACHED" not in net
    assert set(bench.git("show", "--name-only", "--format=", stage["branch"]).split()) == {"in.txt"}


@pytest.mark.spec("AGT-4")
def test_commands_see_no_keys_and_nothing_tells_them(codex: CodexBench) -> None:
    codex.configure(agent='env = ["MY_MODEL_KEY", "PLAIN"]')
    (codex.bench.root / "token.txt").write_text(f"token: {PLANTED}\n")
    codex.bench.commit()
    look = "env; cat token.txt; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"
    codex.models.script = story(planner=[Shell(look), plan()], implementer=[Shell(look), done(PLANTED)], qa=[verdict()])
    environ = {
        "OPENAI_API_KEY": STUB_KEY,
        "MY_MODEL_KEY": "mine-4711-secret",
        "GITHUB_TOKEN": PLANTED,
        "PLAIN": "plain-word",
    }
    codex.run(env=environ)
    stage = assert_over(codex.bench, planning=1, steps=calls(implementer=1, qa=1))
    assert stage["steps"][0]["summary"] == "***"
    assert_untold(codex.bench, "mine-4711-secret")
    seen = [asked.results[0] for asked in codex.models.turns if asked.results]
    assert seen
    for environment in seen:
        assert "plain-word" in environment
        assert STUB_KEY not in environment
        assert "mine-4711-secret" not in environment
        assert f"GITHUB_TOKEN={PLANTED}" not in environment
    assert "token: ***" in codex.bench.log(1)


@pytest.mark.faults
@pytest.mark.spec("AGT-4")
def test_nothing_of_the_users_own_runs_outside_the_sandbox(codex: CodexBench) -> None:
    """MCP servers, a notifier, rules that let commands out of the sandbox, and settings of the branch itself."""
    bench, home = codex.bench, codex.home
    ran = home.folder / "ran"
    program = home.write("program.sh", f'#!/bin/sh\necho "$0 $*" >> {ran}\nsleep 5\n')
    program.chmod(0o755)
    server = f'[mcp_servers.%s]\ncommand = "{program}"\n'
    codex.add_settings(
        server % "mine" + f'[projects."{bench.root}"]\ntrust_level = "trusted"\n[sandbox_workspace_write]\n'
        f'writable_roots = ["{home.folder}"]\nnetwork_access = true\n',
        top=f'notify = ["{program}"]\ndefault_permissions = ":danger-full-access"\nsandbox_mode = "danger-full-access"\n',
    )
    home.write(".codex/rules/default.rules", 'prefix_rule(pattern=["touch"], decision="allow")\n')
    (bench.root / ".codex").mkdir()
    (bench.root / ".codex/config.toml").write_text(server % "ofthebranch")
    bench.commit()
    codex.models.script = story(
        planner=[plan()],
        implementer=[
            Shell(f"touch {home.folder}/touched"),
            Shell(f"echo x > {home.folder}/out; echo > in.txt"),
            done(),
        ],
        qa=[verdict()],
    )
    codex.run()
    assert assert_over(bench, planning=1, steps=calls(implementer=1, qa=1))["state"] == "DONE"
    assert not ran.exists()
    assert not (home.folder / "touched").exists()
    assert not (home.folder / "out").exists()
    assert {tool for asked in codex.models.turns for tool in asked.tools} <= {
        "exec_command",
        "write_stdin",
        "request_user_input",
        "view_image",
    }


MCP_SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    tool = {"name": "find", "description": "Find", "inputSchema": {"type": "object", "properties": {}}}
    results = {
        "initialize": lambda: {
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "docs", "version": "1"},
        },
        "tools/list": lambda: {"tools": [tool]},
        "tools/call": lambda: {"content": [{"type": "text", "text": "FOUND IT"}]},
    }
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]()}), flush=True)
"""


@pytest.mark.faults
@pytest.mark.spec("AGT-4")
def test_the_settings_can_let_it_do_more(codex: CodexBench) -> None:
    home = codex.home.folder
    server = codex.home.write("server.py", MCP_SERVER)
    codex.add_settings(f'[mcp_servers.docs]\ncommand = "{sys.executable}"\nargs = ["-IS", "{server}"]')
    (home / "cache").mkdir()
    codex.configure(agent='env = ["MODEL_URL"]\nwritable = ["~/cache"]\ntools = ["network", "mcp__docs"]')
    codex.models.script = story(
        planner=[Shell("echo x > ~/cache/planned"), plan()],
        implementer=[
            Shell(
                "curl -s -o /dev/null --noproxy '*' -m 5 $MODEL_URL/ && echo REACHED; echo x > ~/cache/x; echo x > x.txt"
            ),
            UseTool("mcp__docs::find"),
            done(),
        ],
        qa=[verdict()],
    )
    codex.run(env={"MODEL_URL": codex.models.url})
    stage = assert_over(codex.bench, planning=1, steps=calls(implementer=1, qa=1))
    assert stage["state"] == "DONE"
    reached, found = next(asked.results for asked in reversed(codex.models.turns) if len(asked.results) == 2)
    assert "REACHED" in reached
    assert "FOUND IT" in found
    assert (home / "cache/x").exists()
    assert not (home / "cache/planned").exists()
    assert "tool docs.find: completed" in codex.bench.log(1)


@pytest.mark.faults
@pytest.mark.spec("AGT-4")
def test_without_a_sandbox_it_may_do_what_the_user_may(codex: CodexBench) -> None:
    """For a machine, a container for example, in which codex cannot set its sandbox up."""
    codex.configure(agent='sandbox = "off"')
    codex.models.script = whole_run("echo x > ~/out.txt; echo x > x.txt")
    codex.run()
    assert assert_over(codex.bench, planning=1, steps=calls(implementer=1, qa=1))["state"] == "DONE"
    assert (codex.home.folder / "out.txt").exists()
