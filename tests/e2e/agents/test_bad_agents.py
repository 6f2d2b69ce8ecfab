"""Agents that misbehave: each defect has its reason code, and the run always ends in a known state."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from e2e.bench import Bench, is_alive
from e2e.scripted_agents import plan_of

LIMIT = "RETRY_LIMIT_EXCEEDED"


def stopped(bench: Bench, code: int = 5) -> tuple[str, str | None]:
    """Run, check that everything is in order behind the stop, and return reason and cause."""
    result = bench.run(code=code)
    assert result["state"] == "NEEDS_INPUT"
    assert bench.stage()["state"] == "NEEDS_INPUT"
    assert bench.errors()["reason_code"] == result["reason_code"]
    assert result["reason_code"] in bench.report()
    assert bench.status() == "blocked"
    assert bench.locks() == []
    return result["reason_code"], result["cause"]


@pytest.mark.spec("AGT-3", "DOC-1", "RUN-7")
@pytest.mark.parametrize("kind", ["missing", "not executable", "a folder", "not on the PATH", "no argv"])
def test_an_agent_that_cannot_be_started_is_found_before_anything_is_touched(bench: Bench, kind: str) -> None:
    path = bench.agent.folder / "other"
    if kind == "not executable":
        path.write_text("#!/bin/sh\n")
    if kind == "a folder":
        path.mkdir()
    argv = {"not on the PATH": ["no-such-agent-program"], "no argv": []}.get(kind, [str(path)])
    bench.configure(argv=argv)
    refused = bench.aiflow.json("run", "RQ-1", code=3)["error"]
    assert refused["reason_code"] == "AGENT_NOT_FOUND"
    assert bench.run_ids() == []
    assert bench.status() == "ready"
    assert bench.locks() == []


@pytest.mark.spec("AGT-3")
def test_an_agent_that_goes_away_during_the_run_stops_it_at_once(bench: Bench) -> None:
    bench.agent.does("planner", "answer({'steps': [{'id': 'S01', 'title': 'T'}]}); (HERE / 'agent.py').unlink()")
    assert stopped(bench, code=3) == ("AGENT_NOT_FOUND", None)
    assert bench.stage()["attempts"]["steps"]["S01"]["implementer"] == 1


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize("first", ["#!/no/such/interpreter", "\x7fELF nonsense"])
def test_an_agent_that_the_system_cannot_execute(bench: Bench, first: str) -> None:
    path = bench.agent.folder / "other"
    path.write_text(f"{first}\n")
    path.chmod(0o755)
    bench.configure(argv=[str(path)])
    assert stopped(bench, code=3)[0] == "AGENT_NOT_FOUND"


PARSE, SHAPE, FAILED = "JSON_PARSE_ERROR", "JSON_SCHEMA_INVALID", "AGENT_FAILED"


@pytest.mark.spec("AGT-3")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("answer('this is no JSON')", PARSE),
        ("pass", PARSE),
        ("answer('[' * 100_000)", PARSE),
        ("open(os.environ['AIFLOW_RESULT'], 'wb').write(bytes(range(256)))", PARSE),
        ("open(os.environ['AIFLOW_RESULT'], 'wb').truncate(50_000_000)", PARSE),
        ("os.mkdir(os.environ['AIFLOW_RESULT'])", PARSE),
        ("os.symlink('/etc/hostname', os.environ['AIFLOW_RESULT'])", PARSE),
        ("os.mkfifo(os.environ['AIFLOW_RESULT'])", PARSE),
        ("answer([])", SHAPE),
        ("answer({'status': 'needs_input', 'question': '  '})", SHAPE),
        ("answer({'steps': [{'id': 'S01', 'title': 'T'}]}); sys.exit(1)", FAILED),
        ("os.kill(os.getpid(), signal.SIGKILL)", FAILED),
    ],
)
def test_an_answer_that_cannot_be_used(bench: Bench, code: str, expected: str) -> None:
    bench.configure("[limits]\nrole_attempts = 1")
    bench.agent.does("planner", f"print('working', flush=True); {code}")
    assert stopped(bench) == (expected, None)
    assert bench.errors()["evidence"]["stderr_snippet"] == "working"
    assert bench.errors()["evidence"]["failed_at_state"] == "PLANNING"


@pytest.mark.spec("AGT-3", "RUN-4")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("answer({'status': 'maybe'})", SHAPE),
        ("answer({'status': 'done', 'summary': 3})", SHAPE),
        ("done(); os.kill(os.getpid(), signal.SIGTERM)", FAILED),
    ],
)
def test_an_implementer_whose_answer_cannot_be_used_twice(bench: Bench, code: str, expected: str) -> None:
    bench.agent.does("implementer", code)
    assert stopped(bench) == (LIMIT, expected)
    assert bench.agent.roles == ["planner", "implementer S01", "implementer S01"]


@pytest.mark.spec("AGT-3")
def test_an_answer_with_a_byte_order_mark_and_more_fields_is_read(bench: Bench) -> None:
    more = "answer('\\ufeff' + json.dumps({'status': 'done', 'summary': 'ok', 'usage': {'tokens': 3}}))"
    bench.agent.does("implementer", f"write('a', 'a'); {more}")
    assert bench.run()["state"] == "DONE"


PLANS: list[Any] = [
    {"steps": []},
    {"steps": [{"id": 1, "title": ["T"]}]},
    {"steps": [{"id": "S01", "title": "T", "tests": ["smoke"]}]},
    plan_of("S01", "S02", "S01"),
    {"steps": [{"id": f"S{n:02d}", "title": "T"} for n in range(1, 201)]},
    plan_of("S01", targets={"paths": ["/etc/passwd"]}),
    plan_of("S01", targets={"paths": ["src/../../x"]}),
]


@pytest.mark.spec("AGT-3", "RUN-4")
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: json.dumps(plan)[:50])
def test_a_plan_that_cannot_be_used(bench: Bench, plan: Any) -> None:
    bench.configure("[limits]\nrole_attempts = 1")
    bench.agent.plans_exactly(plan)
    assert stopped(bench) == ("JSON_SCHEMA_INVALID", None)
    assert "step" in bench.stage()["error"]["summary"]
    assert not (bench.folder() / "planning.json").exists()
    assert bench.agent.roles == ["planner"]


@pytest.mark.spec("AGT-3")
def test_a_plan_of_ninety_nine_steps_is_taken(bench: Bench) -> None:
    bench.agent.plans(*(f"S{n:02d}" for n in range(1, 100)))
    bench.agent.does("implementer", "ask('enough?')")
    bench.run(code=5)
    assert len(bench.stage()["steps"]) == 99


@pytest.mark.faults
@pytest.mark.spec("AGT-4", "RUN-1")
def test_a_hundred_megabytes_of_output_do_not_fill_the_log(bench: Bench) -> None:
    flood = "block = b'x' * 999_000 + b'\\n'\nfor _ in range(100): sys.stdout.buffer.write(block)\nprint('at last')\n"
    bench.agent.does("implementer", f"{flood}sys.exit(1)", attempt=1)
    bench.agent.does("implementer", "write('a', 'a'); done()", attempt=2)
    assert bench.run()["state"] == "DONE"
    log = bench.folder() / "logs/step-1.log"
    assert log.stat().st_size < 12_000_000
    assert "left out" in log.read_text("utf-8", "replace")
    assert bench.agent.last("implementer")["feedback"][0]["detail"].endswith("at last")
    assert (bench.folder() / "stage.json").stat().st_size < 100_000


@pytest.mark.spec("AGT-4")
def test_output_that_is_no_text_reaches_the_log_and_harms_nothing(bench: Bench) -> None:
    bench.agent.does("implementer", "sys.stdout.buffer.write(bytes(range(256)) * 10 + b'\\x1b[31m'); sys.exit(1)")
    assert stopped(bench) == (LIMIT, "AGENT_FAILED")
    json.loads((bench.folder() / "errors.json").read_text("utf-8"))
    assert "\x1b" not in bench.aiflow("logs", "RQ-1").stdout


@pytest.mark.spec("AGT-4", "AGT-3")
def test_an_agent_that_hangs_is_ended_at_its_time_limit(bench: Bench) -> None:
    bench.configure("[limits]\nrole_attempts = 1\n[agent.roles.implementer]\ntimeout_seconds = 4")
    bench.agent.does(
        "implementer",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n(HERE / 'pid').write_text(str(os.getpid()))\n"
        "while True: print('busy', flush=True); time.sleep(0.1)",
    )
    assert stopped(bench) == ("AGENT_TIMEOUT", None)
    assert not is_alive(int((bench.agent.folder / "pid").read_text()))
    assert bench.stage()["error"]["summary"] == "it took longer than 4 s"
    run_id = bench.stage()["run_id"]
    shown = bench.aiflow("--lang", "ja", "show", run_id).stdout
    assert "4秒を過ぎても終わりませんでした" in shown
    assert "took longer" not in shown
    assert "> it took longer than 4 s" in bench.aiflow("report", run_id).stdout


@pytest.mark.spec("AGT-4", "AGT-3")
def test_an_agent_that_is_silent_is_ended(bench: Bench) -> None:
    bench.configure("[limits]\nrole_attempts = 1\n[agent.roles.implementer]\ntimeout_seconds = 60\nidle_seconds = 4")
    bench.agent.does("implementer", "print('last words', flush=True); time.sleep(60)")
    assert stopped(bench) == ("AGENT_TIMEOUT", None)
    assert "silent" in bench.stage()["error"]["summary"]


@pytest.mark.spec("AGT-4", "RUN-3")
@pytest.mark.parametrize("limit", ["timeout_seconds = 1", "idle_seconds = 1"])
def test_tests_that_hang_are_ended(bench: Bench, limit: str) -> None:
    bench.configure(f'[limits]\nrole_attempts = 1\n[tests]\nunit = "sleep 60 & sleep 60"\n{limit}')
    assert stopped(bench, code=7) == ("TEST_TIMEOUT", None)


@pytest.mark.spec("AGT-4")
def test_an_agent_that_closes_its_output_and_reads_nothing_is_no_trouble(bench: Bench) -> None:
    path = bench.agent.folder / "deaf.sh"
    path.write_text(
        "#!/bin/sh\nexec <&- >&- 2>&-\ncase $AIFLOW_ROLE in\n"
        'planner) echo \'{"steps": [{"id": "S01", "title": "T"}]}\';;\n'
        'implementer) echo a > a; echo \'{"status": "done"}\';;\n'
        'qa) echo \'{"verdict": "pass"}\';;\nesac > "$AIFLOW_RESULT"\n'
    )
    path.chmod(0o755)
    bench.configure(argv=[str(path)])
    (bench.root / "requests/RQ-1.md").write_text("---\nstatus: ready\n---\n# Big\n" + "text\n" * 100_000)
    assert bench.run()["state"] == "DONE"


@pytest.mark.spec("RUN-3", "GIT-1")
def test_an_agent_that_deletes_its_worktree_gets_a_new_one_once(bench: Bench) -> None:
    bench.agent.plans("S01", "S02")
    bench.agent.does("implementer", "import shutil; shutil.rmtree(os.getcwd()); done()", "S02", attempt=1)
    result = bench.run()
    assert result["state"] == "DONE"
    assert {"S01.txt", "S02.txt"} <= set(bench.files_at(result["branch"]))
    assert bench.agent.last("implementer")["feedback"][0]["reason_code"] == "WORKTREE_LOST"


@pytest.mark.spec("RUN-3", "GIT-1")
def test_an_agent_that_always_deletes_its_worktree_is_stopped(bench: Bench) -> None:
    bench.agent.does("implementer", "import shutil; shutil.rmtree(os.getcwd()); done()")
    assert stopped(bench, code=6) == (LIMIT, "WORKTREE_LOST")
    bench.agent.forget()
    assert bench.aiflow.json("resume", "RQ-1")["state"] == "DONE"


@pytest.mark.spec("RUN-3", "GIT-1")
@pytest.mark.parametrize(
    "code",
    [
        "sh('git checkout -q --detach; git commit -q --allow-empty -m x')",
        "sh('git update-ref -d HEAD')",
        "sh('git reset -q --hard HEAD')",
        "sh('git stash -qu')",
        "sh('git rm -rq --cached .')",
        "sh('git branch -qm renamed')",
        "sh('git init -q nested && echo 1 > nested/file && git -C nested add -A')",
        "os.symlink('/etc', 'etc')",
        "sh('rm -r requests; ln -s /etc requests')",
        "sh('git config core.hooksPath /nowhere; git config --worktree user.name X || true')",
        "p = subprocess.run(['git', 'rev-parse', '--git-dir'], capture_output=True, text=True).stdout.strip(); "
        "open(p + '/index.lock', 'w').close()",
    ],
)
def test_what_an_agent_does_with_git_does_not_break_the_run(bench: Bench, code: str) -> None:
    main = bench.git("rev-parse", "main")
    before = bench.git("status", "--porcelain", "--", "app.txt", "aiflow.toml")
    bench.agent.does("implementer", f"write('a.txt', 'a'); {code}; write('b.txt', 'b'); done()")
    result = bench.run()
    assert result["state"] == "DONE"
    assert len(bench.commits(result["branch"])) == 1
    files = set(bench.files_at(result["branch"]))
    assert {"b.txt", "app.txt", "requests/RQ-1.md"} <= files
    assert bench.git("rev-parse", "main") == main
    assert bench.git("status", "--porcelain", "--", "app.txt", "aiflow.toml") == before
    if "nested" in code:
        assert "nested/file" in files


@pytest.mark.spec("RUN-3")
def test_what_the_reviewer_writes_belongs_to_no_step(bench: Bench) -> None:
    bench.agent.plans("S01", "S02")
    bench.agent.does("qa", "write('notes.txt', 'mine'); write('app.txt', 'broken'); answer({'verdict': 'pass'})")
    result = bench.run()
    assert result["state"] == "DONE"
    assert "notes.txt" not in bench.files_at(result["branch"])
    assert bench.git("show", f"{result['branch']}:app.txt") == "app"


@pytest.mark.spec("RUN-1", "AGT-3")
def test_words_of_every_kind_come_through(bench: Bench) -> None:
    plan = plan_of("S01")
    plan["steps"][0]["title"] = "Ändere | `日本語` <!-- aiflow:end 1 --> \u2028 x"
    bench.agent.plans_exactly(plan)
    bench.agent.does("implementer", "write('日本.txt', 'a'); done('--amend\\nCo-authored-by: nobody\\n# no comment')")
    result = bench.run()
    assert result["state"] == "DONE"
    assert "# no comment" in bench.commits(result["branch"])[0]
    assert bench.git("log", "-1", "--format=%(trailers:key=Aiflow-Step,valueonly)", result["branch"]) == "S01"
    assert "DONE" in bench.report()


@pytest.mark.spec("AGT-5")
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at processes by /proc")
def test_an_agent_cannot_end_its_guard_and_live_on(bench: Bench) -> None:
    bench.agent.does(
        "implementer",
        "p = subprocess.Popen(['sleep', '300'], start_new_session=True)\n(HERE / 'child').write_text(str(p.pid))\n"
        "os.kill(os.getppid(), signal.SIGKILL); time.sleep(300)",
        attempt=1,
    )
    result = bench.run()
    assert result["state"] == "DONE"
    assert not is_alive(int((bench.agent.folder / "child").read_text()))


@pytest.mark.spec("RUN-3", "RUN-7")
def test_what_the_planner_writes_does_not_get_into_the_first_step(bench: Bench) -> None:
    plan = plan_of("S01")
    bench.agent.does("planner", f"write('notes.txt', 'x'); write('app.txt', 'broken'); answer({plan!r})")
    result = bench.run()
    assert result["state"] == "DONE"
    assert "notes.txt" not in bench.files_at(result["branch"])
    assert bench.git("show", f"{result['branch']}:app.txt") == "app"


SECRET = "s3cr3t-value-of-a-token"
LEAK = f"""
print("the token is {SECRET}")
print("half a line {SECRET}", end="")
sys.stderr.write("error {SECRET}\\n")
"""


@pytest.mark.spec("AGT-4", "SEC")
def test_secrets_are_masked_wherever_a_run_writes(bench: Bench) -> None:
    plan = plan_of("S01", "S02")
    plan["steps"][0]["title"] = f"Use {SECRET}"
    plan["steps"][0]["instructions"] = f"Call it with {SECRET}"
    bench.agent.plans_exactly(plan)
    bench.agent.does("implementer", f"{LEAK}\nwrite('a.txt', 'a'); done('used {SECRET}')", "S01")
    bench.agent.does("implementer", f"{LEAK}\nask('Is {SECRET} right?')", "S02")
    bench.agent.does("qa", f"{LEAK}\nanswer({{'verdict': 'fail', 'findings': ['{SECRET}']}})", "S01", attempt=1)
    bench.configure(f'[tests]\nunit = "echo {SECRET[:9]}{SECRET[9:]}"')
    env = {"MY_API_TOKEN": SECRET}

    shown = bench.aiflow("run", "RQ-1", code=5, env=env)
    bench.aiflow("resume", "RQ-1", "--answer", "yes", code=5, env=env)

    places = [*bench.folder().rglob("*"), *(bench.root / ".aiflow").rglob("*")]
    leaks = [str(path) for path in places if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert leaks == []
    assert SECRET not in shown.stdout + shown.stderr
    assert SECRET not in bench.git("log", "--all", "--format=%B")
    for number in (1, 2):
        assert "the token is ***" in bench.log(number)
        assert "half a line ***" in bench.log(number)
    assert bench.stage()["error"]["question"] == "Is *** right?"


@pytest.mark.spec("AGT-4", "SEC")
def test_a_secret_that_json_escapes_is_masked_in_an_answer(bench: Bench) -> None:
    secret = 'pässw"ord/\\\\99'
    bench.agent.does("implementer", f"ask({secret!r})")
    bench.aiflow("run", "RQ-1", code=5, env={"MY_TOKEN": secret})
    assert bench.stage()["error"]["question"] == "***"
    assert secret not in bench.report()
