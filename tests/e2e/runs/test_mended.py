"""Defects that were found by trying; each of these failed once."""

from __future__ import annotations

import json
import shutil
import signal

import pytest

from e2e.bench import Bench, git
from e2e.runs.test_limits import ALWAYS_RED
from e2e.runs.test_resume import stop_in


@pytest.mark.spec("RUN-4", "CFG")
def test_the_limits_are_settings(bench: Bench) -> None:
    bench.configure(f"{ALWAYS_RED}\n[limits]\nrole_attempts = 3\nstep_retries = 0")
    bench.run(code=7)
    assert bench.agent.roles.count("implementer S01") == 3
    refused = bench.aiflow.json("retry-step", "RQ-1", code=5)
    assert refused["error"]["reason_code"] == "RETRY_LIMIT_EXCEEDED"


@pytest.mark.spec("RUN-7")
def test_a_persons_commit_on_the_runs_branch_is_kept(bench: Bench) -> None:
    stop_in(bench, "S02", "S01", "S02")
    tree = bench.worktree()
    (tree / "green.txt").write_text("by hand\n")
    git(tree, "add", "green.txt")
    git(tree, "commit", "-qm", "Mend it by hand")

    result = bench.aiflow.json("resume", "RQ-1")

    assert result["state"] == "DONE"
    subjects = [message.splitlines()[0] for message in bench.commits(result["branch"])]
    assert subjects == ["Do S01", "Mend it by hand", "Do S02"]
    assert bench.git("show", f"{result['branch']}:green.txt") == "by hand"
    assert "half.txt" in bench.files_at(result["branch"])


@pytest.mark.spec("REQ-7", "LCK-3", "REQ-5", "RUN-2")
@pytest.mark.parametrize("seconds", [0, 1.2])
def test_git_clean_in_the_middle_ends_the_run_and_the_next_start_explains(bench: Bench, seconds: float) -> None:
    bench.agent.plans("S01", "S02")
    clean = f"sh('git clean -fdxq', cwd=ROOT); time.sleep({seconds}); write('late.txt', 'x'); done()"
    bench.agent.does("implementer", clean, "S01")

    refused = bench.aiflow.json("run", "RQ-1", code=4)["error"]

    assert refused["reason_code"] == "LOCK_LOST"
    assert not (bench.root / "runs").exists()  # nothing more was written
    assert bench.locks() == []
    assert bench.status() == "running"
    assert bench.agent.roles == ["planner", "implementer S01"]

    bench.agent.forget()
    explained = bench.aiflow.json("run", "RQ-1", code=3)["error"]
    assert explained["reason_code"] == "RUN_LOST"
    assert bench.status() == "blocked"
    assert [e.get("reason_code") for e in bench.journal() if e["kind"] == "recovery"] == ["RUN_LOST"]
    bench.aiflow("set", "RQ-1", "status=ready")
    assert bench.run()["state"] == "DONE"


@pytest.mark.spec("REQ-5", "RUN-15")
def test_a_request_that_says_running_though_nobody_works_on_it(bench: Bench) -> None:
    path = bench.root / "requests/RQ-1.md"
    path.write_text(path.read_text().replace("status: ready", "status: running"))
    assert bench.aiflow.json("run", "RQ-1", code=3)["error"]["reason_code"] == "RUN_LOST"
    assert bench.status() == "blocked"


@pytest.mark.spec("REQ-5", "RUN-1")
def test_what_is_left_of_a_lost_run_says_so_itself_and_no_second_one_is_made(bench: Bench) -> None:
    path = bench.root / "requests/RQ-1.md"
    path.write_text(path.read_text().replace("status: ready", "status: running"))
    left = bench.root / "runs/RQ-1/RUN-20260101-000000-0a0a0a"
    left.mkdir(parents=True)
    (left / "stage.json").write_text("{")
    bench.aiflow.json("auto")
    assert (bench.status(), bench.run_ids()) == ("blocked", [left.name])
    assert "RUN_LOST" in bench.aiflow("why", "RQ-1").stdout


@pytest.mark.spec("AUT-3", "REQ-5", "SEL-5", "SEL-7")
@pytest.mark.parametrize("by", [("auto",), ("run", "RQ-1"), ("queue", "add", "RQ-1"), ("doctor", "--full")])
def test_why_says_the_same_of_a_lost_run_before_and_after_and_its_advice_works(
    bench: Bench, by: tuple[str, ...]
) -> None:
    path = bench.root / "requests/RQ-1.md"
    path.write_text(path.read_text().replace("status: ready", "status: running"))

    def told() -> tuple[list[str], list[str]]:
        station = bench.aiflow.json("why", "RQ-1")["stations"][0]
        return [each["reason_code"] for each in station["barriers"]], station["commands"]

    before = told()
    assert before == (["NOT_READY", "RUN_LOST"], ["aiflow set RQ-1 status=ready"])
    assert "RUN_LOST" in bench.aiflow("list").stdout
    assert "aiflow set RQ-1 status=ready" in bench.aiflow("next").stdout
    assert "RUN_LOST" in bench.aiflow("why", "RQ-1").stdout
    assert bench.status() == "running"  # asking changes nothing
    said = bench.aiflow(*by, code=3 if "RQ-1" in by else 0)
    assert "RUN_LOST" in said.stdout + said.stderr
    assert "Interrupted when" not in said.stdout
    if by == ("auto",):
        assert "RUN_LOST: the run of RQ-1 can no longer be found" in said.stdout
    assert (bench.status(), told()) == ("blocked", before)
    assert "RUN_LOST, " in bench.aiflow("list").stdout
    bench.aiflow(*before[1][0].split()[1:])
    assert bench.run()["state"] == "DONE"


@pytest.mark.spec("REQ-5", "RUN-6")
@pytest.mark.parametrize("command", [("replan",), ("resume", "--force")])
def test_a_lost_run_goes_on_by_a_new_plan_or_by_force(bench: Bench, command: tuple[str, ...]) -> None:
    path = bench.root / "requests/RQ-1.md"
    path.write_text(path.read_text().replace("status: ready", "status: running"))
    bench.aiflow("run", "RQ-1", code=3)
    assert bench.aiflow.json(command[0], "RQ-1", *command[1:])["state"] == "DONE"


@pytest.mark.spec("RUN-16", "REQ-5")
@pytest.mark.parametrize("state", ["IMPLEMENTING", "NEEDS_INPUT"])
def test_a_stage_with_a_state_but_nothing_else_is_resumed(bench: Bench, state: str) -> None:
    bench.agent.does("implementer", "ask('?')")
    bench.run(code=5)
    bench.agent.forget()
    (bench.folder() / "stage.json").write_text(json.dumps({"version": "1.0", "state": state}))
    assert bench.aiflow.json("resume", "RQ-1")["state"] == "DONE"
    assert len(bench.run_ids()) == 1


@pytest.mark.spec("AGT-4", "SEC")
def test_a_secret_in_a_test_command_is_masked_in_stage_and_errors(bench: Bench) -> None:
    secret = "s3cr3t-value-of-a-token"
    bench.configure(f'[tests]\nunit = "echo {secret}; exit 1"')
    bench.aiflow("run", "RQ-1", code=7, env={"MY_TOKEN": secret})
    leaks = [path.name for path in bench.folder().rglob("*") if path.is_file() and secret in path.read_text()]
    assert leaks == []


@pytest.mark.spec("RUN-1", "ERR-1")
def test_an_error_from_git_is_told_once_and_names_its_command(bench: Bench) -> None:
    bench.git("branch", "aiflow/RQ-1")  # leaves no room for aiflow/RQ-1/…
    bench.run(code=6)
    message = bench.errors()["message"]
    assert not message.startswith(" ")
    assert message.count("git worktree add") == 1


@pytest.mark.spec("RUN-9")
def test_words_of_an_agent_cannot_keep_a_section_out_of_the_report(bench: Bench) -> None:
    bench.agent.does("implementer", "ask('<!-- aiflow:end 2 -->')")
    bench.run(code=5)
    bench.agent.forget()
    bench.aiflow("resume", "RQ-1", "-a", "go on")
    assert " DONE" in bench.report()


@pytest.mark.spec("RUN-7")
def test_a_worktree_that_a_person_changed_while_planning_waits_refuses_too(bench: Bench) -> None:
    bench.agent.does("planner", "ask('?')")
    bench.run(code=5)
    bench.agent.forget()
    (bench.worktree() / "person.txt").write_text("mine")
    refused = bench.aiflow.json("resume", "RQ-1", "-a", "x", code=6)["error"]
    assert refused["reason_code"] == "WORKTREE_DIRTY"


@pytest.mark.spec("RUN-7", "RUN-11")
def test_a_recovery_asks_the_doctor_first(bench: Bench) -> None:
    process = bench.start_hanging()
    process.kill()
    process.wait()
    bench.configure(argv=["no-such-agent"])
    bench.aiflow("run", "RQ-1", code=3)
    assert bench.stage()["attempts"]["steps"]["S01"]["implementer"] == 1
    bench.configure()
    assert bench.run()["state"] == "DONE"


@pytest.mark.spec("RUN-7", "GIT-1")
def test_a_step_is_retried_though_its_worktree_is_gone(bench: Bench) -> None:
    run_id = stop_in(bench, "S02", "S01", "S02")
    shutil.rmtree(bench.worktree())
    result = bench.aiflow.json("retry-step", "RQ-1")
    assert result["state"] == "DONE"
    assert "half.txt" not in bench.files_at(result["branch"])
    kept = bench.git("for-each-ref", "--format=%(refname)", "refs/aiflow").splitlines()
    assert any("half.txt" in bench.files_at(ref) for ref in kept), (run_id, kept)


# --- found by a new user and by a breaker ---------------------------------------------------------------------------


@pytest.mark.spec("SEL-4", "RUN-6")
def test_a_replaced_run_no_longer_speaks_for_its_request(bench: Bench) -> None:
    stop_in(bench, "S01")
    new = bench.aiflow.json("replan", "RQ-1")
    assert new["state"] == "DONE"
    listed = next(r for r in bench.aiflow.json("list")["requests"] if r["request_id"] == "RQ-1")
    assert listed["latest_run"]["run_id"] == new["run_id"]
    assert "AWAITING_ACCEPTANCE" in bench.aiflow("list").stdout
    assert bench.aiflow.json("report", "RQ-1")["run_id"] == new["run_id"]


@pytest.mark.spec("RUN-3")
def test_what_a_failing_test_leaves_is_in_no_commit(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "echo x > left-by-tests; test -e green.txt"')
    bench.agent.does("implementer", "write('work.txt', 'work'); done()", attempt=1)
    bench.agent.does("implementer", "write('green.txt', 'ok'); done()", attempt=2)
    branch = bench.run()["branch"]
    assert {"work.txt", "green.txt"} <= set(bench.files_at(branch))
    assert "left-by-tests" not in bench.files_at(branch)
    assert git(bench.worktree(), "status", "--porcelain") == ""


@pytest.mark.spec("RUN-7")
def test_a_commit_on_the_branch_is_kept_though_the_worktree_is_gone(bench: Bench) -> None:
    stop_in(bench, "S02", "S01", "S02")
    place, branch = bench.worktree(), bench.stage()["branch"]
    bench.git("worktree", "remove", "--force", str(place))
    bench.git("worktree", "add", "-q", str(bench.root.parent / "own"), branch)
    (bench.root.parent / "own/users.txt").write_text("mine\n")
    git(bench.root.parent / "own", "add", "users.txt")
    git(bench.root.parent / "own", "commit", "-qm", "The user's own")
    bench.git("worktree", "remove", "--force", str(bench.root.parent / "own"))
    assert bench.aiflow.json("resume", "RQ-1")["state"] == "DONE"
    assert "users.txt" in bench.files_at(branch)
    assert "The user's own" in "\n".join(bench.commits(branch))


@pytest.mark.spec("RUN-7")
def test_edits_that_are_kept_while_planning_are_part_of_the_first_step(bench: Bench) -> None:
    bench.agent.does(
        "planner", "ask('which?') if not call['answers'] else answer({'steps': [{'id': 'S01', 'title': 'x'}]})"
    )
    bench.run(code=5)
    bench.agent.forget()
    (bench.worktree() / "mine.txt").write_text("mine\n")
    assert bench.aiflow.json("resume", "RQ-1", "-a", "x", code=6)["error"]["reason_code"] == "WORKTREE_DIRTY"
    branch = bench.aiflow.json("resume", "RQ-1", "-a", "x", "--keep-changes")["branch"]
    assert "mine.txt" in bench.files_at(branch)


@pytest.mark.spec("RUN-7")
def test_a_commit_made_while_planning_stays_a_commit(bench: Bench) -> None:
    bench.agent.does("planner", "ask('which?')")
    bench.run(code=5)
    bench.agent.forget()
    (bench.worktree() / "mine.txt").write_text("mine\n")
    git(bench.worktree(), "add", "mine.txt")
    git(bench.worktree(), "commit", "-qm", "The user's own")
    branch = bench.aiflow.json("resume", "RQ-1", "-a", "x")["branch"]
    assert bench.commits(branch)[0].startswith("The user's own")


@pytest.mark.spec("RUN-3", "RUN-7")
def test_an_unfinished_step_is_not_staged_for_a_person(bench: Bench) -> None:
    stop_in(bench, "S01")
    (bench.worktree() / "own.txt").write_text("mine\n")
    git(bench.worktree(), "add", "own.txt")
    git(bench.worktree(), "commit", "-qm", "The user's own")
    assert git(bench.worktree(), "show", "--name-only", "--format=", "HEAD") == "own.txt"


@pytest.mark.spec("RUN-2", "RUN-12", "DOC-2")
@pytest.mark.parametrize("command", [("cancel", "RQ-1"), ("doctor", "--full"), ("replan", "RQ-1")])
def test_a_damaged_worktree_of_a_crashed_run_stops_nobody(bench: Bench, command: tuple[str, ...]) -> None:
    process = bench.start_hanging()
    process.kill()
    process.wait()
    folder = bench.root / f".git/worktrees/{bench.worktree().name}"
    (folder / "HEAD").write_text("")
    bench.agent.forget()
    bench.aiflow(*command)
    assert bench.stage(run_id=bench.run_ids()[0])["state"] in ("NEEDS_INPUT", "FAILED")
    assert bench.locks() == []
    aside = [path for path in bench.worktree().parent.glob("*") if (path / "half.txt").exists()]
    assert aside, "what the agent had written is still there"


@pytest.mark.spec("RUN-5", "RUN-8")
def test_the_advice_is_one_that_is_open(bench: Bench) -> None:
    stop_in(bench, "S01")
    bench.agent.does("implementer", "write('half.txt', 'again'); done()")
    again = bench.aiflow.json("retry-step", "RQ-1", code=7)
    assert again["suggested_next"] == {"way_on": "replan", "command": "aiflow replan RQ-1"}
    assert "aiflow replan RQ-1" in bench.aiflow("why", "RQ-1").stdout
    refused = bench.aiflow.json("retry-step", "RQ-1", code=4)["error"]
    assert refused["actions"] == ["aiflow replan RQ-1", "aiflow retry-step RQ-1 --force"]
    (bench.worktree() / "green.txt").write_text("mended\n")
    assert bench.aiflow.json("resume", "RQ-1", "--keep-changes")["state"] == "DONE"


@pytest.mark.spec("RUN-15", "ERR-1")
def test_what_is_refused_before_there_is_a_run_says_run(bench: Bench) -> None:
    (bench.root / "tracked.txt").write_text("x")
    bench.commit()
    (bench.root / "tracked.txt").write_text("changed")
    actions = bench.aiflow.json("run", "RQ-1", code=6)["error"]["actions"]
    assert any("aiflow run RQ-1" in action for action in actions)
    assert not any("aiflow resume" in action for action in actions if "--keep" not in action)


@pytest.mark.spec("RUN-15", "CLI")
def test_a_run_refused_for_a_stopped_one_names_the_way_on(bench: Bench) -> None:
    bench.agent.does("implementer", "ask('which?')")
    bench.run(code=5)
    assert bench.aiflow.json("run", "RQ-1", code=4)["error"]["actions"] == ['aiflow resume RQ-1 --answer "…"']


@pytest.mark.spec("CLI")
def test_inside_a_runs_worktree_the_project_is_pointed_to(bench: Bench) -> None:
    bench.run()
    error = bench.aiflow.json("-C", str(bench.worktree()), "list", code=3)["error"]
    assert error["actions"] == [f"cd {bench.root}"]


@pytest.mark.spec("RUN-12", "RUN-11")
def test_a_cancel_survives_the_crash_of_whom_it_was_meant_for(bench: Bench) -> None:
    process = bench.start_hanging()
    process.send_signal(signal.SIGSTOP)
    bench.aiflow("cancel", "RQ-1", "--no-wait")
    process.kill()
    process.wait()
    bench.agent.forget()
    assert bench.run(code=4)["reason_code"] == "CANCELLED"


@pytest.mark.spec("CLI")
def test_a_question_of_several_lines_is_shown_as_it_is(bench: Bench) -> None:
    bench.agent.does("implementer", "ask('Which one?\\n  a) tabs\\n  b) spaces')")
    shown = bench.aiflow("run", "RQ-1", code=5).stdout
    assert "\ufffd" not in shown
    assert "a) tabs\n" in shown


@pytest.mark.spec("CFG", "CLI")
def test_a_setting_may_stand_behind_the_command(bench: Bench) -> None:
    bench.configure(argv=["./no-such-agent"])
    assert bench.aiflow.json("doctor", "-c", "agent.kind=demo")["result"] != "FAIL"


@pytest.mark.spec("CFG", "DOC-1")
def test_every_setting_has_an_effect_by_now(bench: Bench) -> None:
    checks = bench.aiflow.json("doctor", "-c", "limits.issue_retries=5")["checks"]
    assert [check["evidence"] for check in checks if check["id"] == "settings"] == []


@pytest.mark.spec("DOC-1")
def test_a_branch_that_leaves_no_room_for_ours_is_named(bench: Bench) -> None:
    bench.git("branch", "aiflow")
    error = bench.aiflow.json("run", "RQ-1", code=6)["error"]
    assert error["reason_code"] == "BRANCH_IN_THE_WAY"
    bench.git("branch", "-m", "aiflow", "aiflow-branch")
    assert bench.run()["state"] == "DONE"


@pytest.mark.spec("CFG", "RUN-12")
def test_a_mistake_in_the_settings_does_not_keep_a_person_from_a_run_at_work(bench: Bench) -> None:
    bench.start_hanging()
    (bench.root / "aiflow.toml").write_text("nonsense = 1\n")
    assert bench.aiflow.json("locks")["locks"][0]["request_id"] == "RQ-1"
    bench.aiflow("logs", "RQ-1")
    assert bench.aiflow.json("cancel", "RQ-1")["reason_code"] == "CANCELLED"
    assert bench.aiflow.json("resume", "RQ-1", code=2)["error"]["reason_code"] == "SETTINGS_INVALID"


@pytest.mark.spec("REQ-7")
def test_runs_are_never_offered_to_git(bench: Bench) -> None:
    (bench.root / ".gitignore").unlink(missing_ok=True)
    bench.git("add", "-A")
    bench.git("commit", "-qm", "without .gitignore", "--allow-empty")
    bench.run()
    assert "runs/" not in bench.git("status", "--porcelain", "--untracked-files=all")
