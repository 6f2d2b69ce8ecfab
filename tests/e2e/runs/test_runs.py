"""Runs from start to end, as a user sees them: files, commits, statuses, and what is never touched."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from e2e.bench import Bench, is_alive, tree_of
from e2e.scripted_agents import plan_of

RUN_ID = re.compile(r"RUN-\d{8}-\d{6}-[0-9a-f]{6}")
D34_FIELDS = [
    "version",
    "request_id",
    "run_id",
    "state",
    "current_step_index",
    "current_step_id",
    "attempts",
    "error",
    "history",
]


@pytest.mark.spec("RUN-1", "RUN-2", "RUN-3", "GIT-1", "LCK-6", "ERR-4", "REQ-5", "REQ-6", "REQ-7", "AGT-1")
def test_a_run_to_its_end_leaves_files_commits_status_and_journal(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "test -e S01.txt"')
    bench.agent.plans("S01", "S02", targets={"paths": ["S01.txt"]}, tests=["unit"])
    before = (bench.root / "requests/RQ-1.md").read_text()

    result = bench.run()

    run_id = result["run_id"]
    assert RUN_ID.fullmatch(run_id)
    assert bench.run_ids() == [run_id]
    assert (result["request_id"], result["state"], result["reason_code"]) == ("RQ-1", "DONE", None)
    assert [step["is_done"] for step in result["steps"]] == [True, True]
    _check_stage(bench.stage(), run_id)
    _check_files(bench, run_id)
    _check_commits(bench, result)
    _check_journal(bench, run_id)
    assert bench.locks() == []
    # Only the line of the status changed, and nothing of the run is in the request.
    assert (bench.root / "requests/RQ-1.md").read_text() == before.replace("status: ready", "status: blocked")
    assert bench.agent.roles == ["planner", "implementer S01", "qa S01", "implementer S02", "qa S02"]


def _check_stage(stage: Any, run_id: str) -> None:
    assert list(stage)[: len(D34_FIELDS)] == D34_FIELDS
    assert stage["version"] == "1.0"
    assert (stage["request_id"], stage["run_id"], stage["state"]) == ("RQ-1", run_id, "DONE")
    assert (stage["current_step_index"], stage["current_step_id"]) == (1, "S02")
    counts = {"implementer": 1, "qa": 1, "tests": 1}
    assert stage["attempts"] == {"planning": 1, "steps": {"S01": counts, "S02": counts}}
    assert stage["error"] is None
    moments = [datetime.fromisoformat(line["at"]) for line in stage["history"]]
    assert moments == sorted(moments)
    assert all(moment.utcoffset() is not None for moment in moments)
    assert [(line["event"], line.get("step_id")) for line in stage["history"]] == [
        ("PLANNING_STARTED", None),
        ("PLANNED", None),
        ("IMPLEMENTED", "S01"),
        ("STEP_DONE", "S01"),
        ("IMPLEMENTED", "S02"),
        ("STEP_DONE", "S02"),
        ("REPORTED", "S02"),
    ]
    assert {"pid", "host"} <= set(stage["lock"])


def _check_files(bench: Bench, run_id: str) -> None:
    files = {str(path.relative_to(bench.folder())) for path in bench.folder().rglob("*") if path.is_file()}
    logs = {f"logs/step-{number}.{kind}" for number in (0, 1, 2) for kind in ("log", "marks")}
    assert files == {"stage.json", "planning.json", "request.json", "report.md", *logs}
    planning = json.loads((bench.folder() / "planning.json").read_text())
    assert planning["steps"] == plan_of("S01", "S02", targets={"paths": ["S01.txt"]}, tests=["unit"])["steps"]
    assert (planning["request_id"], planning["run_id"]) == ("RQ-1", run_id)
    assert "planner" in bench.log(0)
    assert "implementer S02 attempt 1" in bench.log(2)
    report = bench.report()
    assert run_id in report
    assert " DONE\n" in report
    assert "| S01 | Do S01 | done |" in report


def _check_commits(bench: Bench, result: Any) -> None:
    branch, run_id = result["branch"], result["run_id"]
    assert branch == f"aiflow/RQ-1/{run_id}"
    assert bench.commits(branch) == [
        f"Do {step}\n\nwrote {step}.txt\n\nAiflow-Request: RQ-1\nAiflow-Run: {run_id}\nAiflow-Step: {step}"
        for step in ("S01", "S02")
    ]
    trailers = bench.git("log", "-1", "--format=%(trailers:key=Aiflow-Step,valueonly)", branch)
    assert trailers == "S02"
    assert {"S01.txt", "S02.txt"} <= set(bench.files_at(branch))
    assert [step["commit"] for step in result["steps"]] == [
        bench.git("rev-parse", f"{branch}~1"),
        bench.git("rev-parse", branch),
    ]


def _check_journal(bench: Bench, run_id: str) -> None:
    entries = bench.journal()
    assert {entry["run_id"] for entry in entries} == {run_id}
    transitions = [entry for entry in entries if entry["kind"] == "transition"]
    history = bench.stage()["history"]
    assert [(each["at"], each["data"]["event"]) for each in transitions] == [(h["at"], h["event"]) for h in history]
    ends = [(each["data"]["from"], each["data"]["to"]) for each in transitions]
    assert ends[0][0] == "INIT"
    assert ends[-1] == ("REPORTING", "DONE")
    assert [here[1] for here in ends[:-1]] == [after[0] for after in ends[1:]]
    statuses = [(e["data"]["from"], e["data"]["to"]) for e in entries if e["kind"] == "status_changed"]
    assert statuses == [("ready", "running"), ("running", "blocked")]


@pytest.mark.spec("REQ-5", "RUN-1", "LCK-1", "LCK-6")
def test_while_a_run_works_its_request_is_running_and_locked(bench: Bench) -> None:
    seen = "(HERE / 'seen').write_text((ROOT / 'requests/RQ-1.md').read_text()); "
    lock = "(HERE / 'lock').write_text((ROOT / '.aiflow/locks/request.RQ-1.lock.json').read_text()); "
    stage = "(HERE / 'stage').write_text(next((ROOT / 'runs/RQ-1').glob('*/stage.json')).read_text()); done()"
    bench.agent.does("implementer", seen + lock + stage)

    result = bench.run()

    assert "status: running\n" in (bench.agent.folder / "seen").read_text()
    held = json.loads((bench.agent.folder / "lock").read_text())
    assert (held["version"], held["lock_type"], held["request_id"]) == ("1.0", "request", "RQ-1")
    assert held["run_id"] == result["run_id"]
    saved = json.loads((bench.agent.folder / "stage").read_text())
    assert (saved["state"], saved["current_step_id"]) == ("IMPLEMENTING", "S01")
    assert saved["attempts"]["steps"]["S01"]["implementer"] == 1  # counted before the agent was launched
    assert (saved["lock"]["pid"], saved["lock"]["fence"]) == (held["pid"], held["fence"])


@pytest.mark.spec("GIT-1")
def test_the_users_own_checkout_is_untouched_byte_for_byte(bench: Bench) -> None:
    root = bench.root
    (root / "app.txt").write_text("stashed\n")
    bench.git("stash")
    bench.git("checkout", "-q", "--detach")
    (root / "requests/RQ-2.md").write_text("---\nstatus: draft\n---\n# Later\n")
    (root / "requests/RQ-1.md").write_text((root / "requests/RQ-1.md").read_text() + "An edit of mine.\n")
    (root / "untracked.txt").write_text("mine\n")
    (root / "junk.ignored").write_text("mine too\n")
    bench.configure('[git]\ndirty_checkout = "fail"')
    (root / "aiflow.toml").write_text('base_branch = "main"\n' + (root / "aiflow.toml").read_text())
    hook = root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    before = _of_the_user(bench)

    result = bench.run()

    assert result["state"] == "DONE"
    assert result["base_branch"] == "main"
    after = _of_the_user(bench)
    assert after == before
    assert bench.git("stash", "list").count("stash@") == 1
    assert bench.git("rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
    assert set(bench.git("branch", "--format=%(refname)").splitlines()[1:]) == {
        f"refs/heads/{result['branch']}",
        "refs/heads/main",
    }
    # An edit of the request that was not committed still reaches the agent, but no run's branch.
    assert "An edit of mine." in bench.agent.documents[0]["request"]["body"]
    assert "An edit of mine." not in bench.git("show", f"{result['branch']}:requests/RQ-1.md")


def _of_the_user(bench: Bench) -> dict[str, str]:
    """Everything that is the user's: files, index, HEAD, stash and branches, but not what aiflow adds of its own."""
    text = (bench.root / "requests/RQ-1.md").read_text()
    files = {
        path: digest
        for path, digest in tree_of(bench.root).items()
        if not path.startswith((".aiflow", "runs", ".git/objects", ".git/worktrees"))
        and not re.match(r"\.git(/logs)?/refs/heads/aiflow|\.git/refs/aiflow", path)
        and path not in ("requests/RQ-1.md", ".git")
    }
    return {**files, "request": re.sub(r"^status: \w+$", "", text, flags=re.MULTILINE)}


@pytest.mark.spec("GIT-2")
@pytest.mark.parametrize(
    ("origin", "warnings"),
    [
        ("git@github.com:owner/name.git", []),
        ("https://user:hunter2secret@github.com/owner/name", []),
        ("https://example.com/owner/name", ["REMOTE_NOT_GITHUB"]),
    ],
)
def test_the_compare_url_is_derived_from_origin(bench: Bench, origin: str, warnings: list[str]) -> None:
    bench.git("remote", "add", "origin", origin)
    result = bench.run()
    url = f"https://github.com/owner/name/compare/main...{result['branch']}" if not warnings else None
    assert (result["compare_url"], result["warnings"]) == (url, warnings)
    assert bench.stage()["compare_url"] == url
    assert (url or "nothing") in bench.report() or url is None
    assert "hunter2secret" not in json.dumps(bench.stage()) + bench.report()


@pytest.mark.spec("RUN-3")
def test_a_step_that_changes_nothing_is_done_without_a_commit_and_noted(bench: Bench) -> None:
    bench.agent.plans("S01", "S02", "S03")
    bench.agent.does("implementer", "done('nothing to do')", step="S02")
    result = bench.run()
    assert [bool(step["commit"]) for step in result["steps"]] == [True, False, True]
    assert len(bench.commits(result["branch"])) == 2
    assert "| S02 | Do S02 | done | no changes |" in bench.report()
    note = next(line for line in bench.stage()["history"] if line.get("step_id") == "S02" and "DONE" in line["event"])
    assert note["note"] == "no changes"


@pytest.mark.spec("RUN-3", "REQ-8")
def test_own_commits_are_folded_branches_taken_back_and_requests_restored(bench: Bench) -> None:
    bench.agent.plans("S01", "S02", "S03")
    commit = "git -c user.name=X -c user.email=x@y commit -qm"
    bench.agent.does(
        "implementer", f"write('a', '1'); sh('git add a && {commit} own1'); write('b', '2'); done()", "S01"
    )
    bench.agent.does(
        "implementer", f"write('c', '3'); sh('git switch -qc other && git add c && {commit} x'); done()", "S02"
    )
    bench.agent.does(
        "implementer",
        "write('requests/RQ-1.md', 'gone'); write('requests/RQ-9.md', 'new'); write('d', '4'); done()",
        "S03",
    )
    base = bench.git("show", "main:requests/RQ-1.md")

    result = bench.run()

    branch = result["branch"]
    assert [message.splitlines()[0] for message in bench.commits(branch)] == ["Do S01", "Do S02", "Do S03"]
    assert {"a", "b", "c", "d"} <= set(bench.files_at(branch))
    assert bench.git("log", "-1", "--format=%an", branch) == "Ada"
    assert bench.git("show", f"{branch}:requests/RQ-1.md") == base
    assert "requests/RQ-9.md" not in bench.files_at(branch)
    assert "Folded in the agent's own commits" in bench.log(1)
    assert "Switched back" in bench.log(2)
    assert "requests/RQ-1.md" in bench.log(3)
    assert "requests/RQ-9.md" in bench.log(3)


@pytest.mark.spec("AGT-4", "SEC")
def test_agents_and_tests_get_a_minimal_environment_and_no_terminal(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "env > env.ignored; tty || true"\nenv = ["FOR_TESTS"]', 'env = ["WANTED"]')
    outside = {"WANTED": "yes", "FOR_TESTS": "yes", "UNWANTED": "no", "GITHUB_TOKEN": "t0ps3cret-value"}
    assert bench.run(env=outside)["state"] == "DONE"
    for call in bench.agent.calls:
        environ = call["environ"]
        assert environ["WANTED"] == "yes"
        assert not {"UNWANTED", "GITHUB_TOKEN", "FOR_TESTS", "AIFLOW_LANG"} & set(environ)
        assert environ["PATH"]
        assert not call["has_terminal"]
    seen = (bench.worktree() / "env.ignored").read_text()
    assert "FOR_TESTS=yes" in seen
    assert "WANTED" not in seen
    assert "t0ps3cret" not in seen
    assert "not a tty" in bench.log(1)


@pytest.mark.spec("AGT-2", "AGT-3")
def test_an_agent_gets_its_document_and_variables_exactly(bench: Bench) -> None:
    bench.add_request("RQ-1", priority="P0", labels="[api, ui]")
    bench.configure('[tests]\nunit = "test -e second"')
    plan = plan_of("S01", targets={"paths": ["src"]}, tests=["unit"])
    bench.agent.plans_exactly(plan)
    bench.agent.does("implementer", "write('first', '1'); print('says why'); done('first try')", attempt=1)
    bench.agent.does("implementer", "write('second', '2'); done('second try')", attempt=2)

    run_id = bench.run()["run_id"]

    planner, first, second, qa = bench.agent.documents
    request = {
        "id": "RQ-1",
        "title": "RQ-1",
        "body": "\n# RQ-1\n\nBody of RQ-1.\n",
        "priority": "P0",
        "labels": ["api", "ui"],
    }
    common = {"version": "1.0", "request": request, "run_id": run_id, "answers": [], "former": None}
    common |= {"tests": {"unit": "test -e second"}, "done": {}, "review": None}
    assert planner == {**common, "role": "planner", "step": None, "planning": None, "attempt": 1, "feedback": []}
    in_step = {**common, "step": plan["steps"][0], "planning": plan}
    assert first == {**in_step, "role": "implementer", "attempt": 1, "feedback": []}
    feedback = second.pop("feedback")
    assert second == {**in_step, "role": "implementer", "attempt": 2}
    assert [set(each) for each in feedback] == [{"reason_code", "summary", "detail"}]
    assert feedback[0]["reason_code"] == "UNIT_TEST_FAILED"
    assert feedback[0]["summary"] == "test -e second: exit code 1"
    review = qa.pop("review")
    assert (review["summary"], review["is_last"], review["criteria"]) == ("second try", True, [])
    assert review["base"] == bench.git("rev-parse", "main").strip()
    assert {**qa, "feedback": [], "review": None} == {**in_step, "role": "qa", "attempt": 1, "feedback": []}

    for call, role, step, attempt in zip(
        bench.agent.calls,
        ("planner", "implementer", "implementer", "qa"),
        ("", "S01", "S01", "S01"),
        "1121",
        strict=True,
    ):
        own = {name: value for name, value in call["environ"].items() if name.startswith("AIFLOW_")}
        result = own.pop("AIFLOW_RESULT")
        assert own == {
            "AIFLOW_ROLE": role,
            "AIFLOW_REQUEST_ID": "RQ-1",
            "AIFLOW_RUN_ID": run_id,
            "AIFLOW_STEP_ID": step,
            "AIFLOW_ATTEMPT": attempt,
        }
        worktree = bench.worktree()
        assert call["cwd"] == str(worktree)
        assert worktree not in Path(result).parents
        assert bench.root not in Path(result).parents
        assert not Path(result).exists()


@pytest.mark.spec("AGT-1")
def test_each_role_can_have_its_own_program(bench: Bench) -> None:
    reviewer = bench.agent.folder / "reviewer.sh"
    reviewer.write_text('#!/bin/sh\necho reviewing; cat > /dev/null\necho \'{"verdict": "pass"}\' > "$AIFLOW_RESULT"\n')
    reviewer.chmod(0o755)
    bench.configure(f'[agent.roles.qa]\nargv = ["{reviewer}"]\n[agent.roles.planner]\nkind = "demo"')
    assert bench.run()["state"] == "DONE"
    assert bench.agent.roles == ["implementer S01"]
    assert "reviewing" in bench.log(1)
    assert "[demo] 1 step(s)" in bench.log(0)


@pytest.mark.spec("AGT-2")
def test_an_agent_of_the_repository_itself_is_found_from_the_project(bench: Bench) -> None:
    link = bench.root / "tools/agent"
    link.parent.mkdir()
    link.write_text(f'#!/bin/sh\nexec {bench.agent.path} "$@"\n')
    link.chmod(0o755)
    bench.configure(argv=["tools/agent", "--flag"])
    assert bench.run()["state"] == "DONE"  # it is untracked: the worktree does not have it
    assert bench.agent.calls[0]["argv"][1:] == ["--flag"]


@pytest.mark.spec("RUN-3", "AGT-3")
def test_a_rejected_step_is_implemented_again_with_the_findings(bench: Bench) -> None:
    bench.agent.does("qa", "answer({'verdict': 'fail', 'findings': ['no test', {'line': 3}]})", attempt=1)
    result = bench.run()
    assert result["state"] == "DONE"
    assert bench.agent.roles == ["planner", "implementer S01", "qa S01", "implementer S01", "qa S01"]
    told = bench.agent.last("implementer")["feedback"]
    assert [each["reason_code"] for each in told] == ["QA_REJECTED"]
    assert "no test" in told[0]["summary"]
    assert "line" in told[0]["summary"]
    assert len(bench.commits(result["branch"])) == 1


@pytest.mark.spec("RUN-3")
def test_e2e_tests_run_behind_the_unit_tests_and_a_step_chooses(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "echo unit >> order.ignored"\ne2e = "echo e2e >> order.ignored"')
    steps = plan_of("S01", "S02", "S03")["steps"]
    steps[1]["tests"] = ["e2e"]
    steps[2]["tests"] = []
    bench.agent.plans_exactly({"steps": steps})
    assert bench.run()["state"] == "DONE"
    assert (bench.worktree() / "order.ignored").read_text().split() == ["unit", "e2e", "e2e"]
    counts = bench.stage()["attempts"]["steps"]
    assert [counts[step]["tests"] for step in ("S01", "S02", "S03")] == [1, 1, 0]


@pytest.mark.spec("RUN-3")
def test_what_tests_leave_behind_is_not_committed_with_the_next_step(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "echo x > coverage.txt; echo broken > app.txt"')
    bench.agent.plans("S01", "S02")
    result = bench.run()
    assert result["state"] == "DONE"
    files = set(bench.files_at(result["branch"]))
    assert {"S01.txt", "S02.txt"} <= files
    assert "coverage.txt" not in files
    assert bench.git("show", f"{result['branch']}:app.txt") == "app"


@pytest.mark.spec("REQ-3", "REQ-5")
@pytest.mark.parametrize("status", ["draft", "done", "archived"])
def test_a_status_that_a_person_sets_during_a_run_stays(bench: Bench, status: str) -> None:
    change = f"p = ROOT / 'requests/RQ-1.md'; p.write_text(p.read_text().replace('running', '{status}')); done()"
    bench.agent.does("implementer", change)
    assert bench.run()["state"] == "DONE"
    assert bench.status() == status


@pytest.mark.spec("REQ-3", "REQ-8")
def test_a_request_file_that_is_deleted_during_a_run_stays_deleted(bench: Bench) -> None:
    bench.agent.plans("S01", "S02")
    bench.agent.does("implementer", "(ROOT / 'requests/RQ-1.md').unlink(); write('a', 'a'); done()", "S01")
    assert bench.run()["state"] == "DONE"
    assert not (bench.root / "requests/RQ-1.md").exists()
    assert bench.agent.documents[-1]["request"]["body"] == "\n# RQ-1\n\nBody of RQ-1.\n"  # as it was at the start
    assert bench.locks() == []


@pytest.mark.spec("AGT-5")
def test_nothing_that_an_agent_started_is_left_running(bench: Bench) -> None:
    bench.agent.does(
        "implementer",
        "p = subprocess.Popen(['sleep', '300'], start_new_session=True, stdin=0, stdout=1); "
        "(HERE / 'child').write_text(str(p.pid)); done()",
    )
    assert bench.run()["state"] == "DONE"
    assert not is_alive(int((bench.agent.folder / "child").read_text()))


@pytest.mark.spec("AGT-4")
def test_output_reaches_the_log_while_the_agent_works(bench: Bench) -> None:
    bench.agent.does(
        "implementer",
        "print('live', flush=True); log = next((ROOT / 'runs/RQ-1').glob('*/logs/step-1.log'))\n"
        "for _ in range(200):\n    if 'live' in log.read_text(): break\n    time.sleep(0.02)\n"
        "else: sys.exit(1)\ndone()",
    )
    assert bench.run()["state"] == "DONE"


@pytest.mark.spec("GIT-4")
def test_a_worktree_is_set_up_and_gets_copies_that_are_never_committed(bench: Bench) -> None:
    (bench.root / ".env").write_text("PORT=1\n")
    (bench.root / "local").mkdir()
    (bench.root / "local/conf.txt").write_text("conf\n")
    setup = "cat .env > setup.ignored && echo installed"
    copied = '[".env", "local", "missing.txt"]'
    bench.configure(f'[worktree]\nsetup = "{setup}"\ncopy = {copied}\n[tests]\nunit = "grep -q PORT=1 .env"')
    bench.agent.does("implementer", "write('env.txt', open('.env').read() + open('local/conf.txt').read()); done()")

    result = bench.run()

    assert result["state"] == "DONE"
    assert "installed" in bench.log(0)
    assert bench.git("show", f"{result['branch']}:env.txt") == "PORT=1\nconf"
    assert not {".env", "local/conf.txt", "setup.ignored"} & set(bench.files_at(result["branch"]))
    assert {".env", "local", "setup.ignored"} <= set(bench.agent.calls[0]["files"])


@pytest.mark.spec("AGT-4", "AGT-3")
@pytest.mark.parametrize(
    "summary",
    ["sends Authorization: Bearer $TOKEN", "see http://localhost", "clones https://me:pw12345678@example.com/x"],
)
def test_masking_does_not_spoil_an_answer(bench: Bench, summary: str) -> None:
    code = f"answer(json.dumps({{'summary': {summary!r}, 'mail': 'a@b.c', 'status': 'done'}}, separators=(',', ':')))"
    bench.agent.does("implementer", f"write('a', 'a'); {code}")
    assert bench.run()["state"] == "DONE"
    assert bench.stage()["steps"][0]["summary"]


@pytest.mark.spec("AGT-4", "SEC")
def test_a_secret_in_a_very_long_line_is_masked(bench: Bench) -> None:
    secret = "s3cr3t-value-of-a-token"
    bench.agent.does(
        "implementer", f"sys.stdout.write('x' * 63_990 + {secret!r} + 'y' * 1000); sys.stdout.flush(); done()"
    )
    bench.run(env={"MY_TOKEN": secret})
    assert secret not in bench.log(1)
