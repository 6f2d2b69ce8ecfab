"""How stopped runs go on (D34; RUN-6, RUN-7, RUN-9, RUN-10): resume, a step again, a new plan, and who is refused."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.bench import Bench, git, tree_of

WRITES_GREEN = "write('green.txt', 'g\\n'); done('made it green')"


def stop_in(bench: Bench, step: str, *steps: str) -> str:
    """Let a run stop in a step because its tests fail; it leaves `<step>.txt` and `half.txt` there."""
    bench.agent.plans(*steps or (step,))
    bench.configure('[tests]\nunit = "test ! -e half.txt || test -e green.txt"')
    bench.agent.does("implementer", "write(f'{step}.txt', 'work\\n'); write('half.txt', 'half\\n'); done()", step)
    result = bench.run(code=7)
    assert result["current_step_id"] == step
    bench.agent.forget()
    run_id: str = result["run_id"]
    return run_id


@pytest.mark.spec("RUN-6", "RUN-7", "RUN-9", "LCK-6")
def test_resume_goes_on_with_what_the_unfinished_step_left(bench: Bench) -> None:
    run_id = stop_in(bench, "S02", "S01", "S02")
    patch = (bench.folder() / "S02.patch").read_text()
    assert "+++ b/half.txt" in patch
    assert bench.files_at(f"refs/aiflow/wip/{run_id}/S02")
    log, report = bench.log(2), bench.report()
    bench.agent.does("implementer", "write('green.txt', open('half.txt').read()); done('made it green')")

    result = bench.aiflow.json("resume", "RQ-1")

    assert (result["run_id"], result["state"]) == (run_id, "DONE")
    assert bench.run_ids() == [run_id]
    assert bench.agent.roles.count("implementer S01") == 1  # no finished step is done again
    assert {"S01.txt", "S02.txt", "half.txt", "green.txt"} <= set(bench.files_at(result["branch"]))
    assert len(bench.commits(result["branch"])) == 2
    told = bench.agent.last("implementer")
    assert [each["reason_code"] for each in told["feedback"]] == ["UNIT_TEST_FAILED"]
    assert told["attempt"] == 1
    assert bench.log(2).startswith(log)  # logs and report grow, errors go at DONE
    assert len(bench.log(2)) > len(log)
    assert bench.report().startswith(report)
    assert re.search(r"^## \d{4}-\d\d-\d\dT\S+ DONE \(resume S02\)$", bench.report(), re.MULTILINE)
    assert not (bench.folder() / "errors.json").exists()
    assert not (bench.folder() / "S02.patch").exists()
    assert bench.status() == "blocked"
    assert bench.locks() == []
    moves = [(e["data"]["from"], e["data"]["to"]) for e in bench.journal() if e["kind"] == "status_changed"]
    assert moves == [("ready", "running"), ("running", "blocked"), ("blocked", "running"), ("running", "blocked")]


@pytest.mark.spec("RUN-6", "RUN-7", "RUN-9")
def test_retry_step_starts_without_what_was_left_and_keeps_it_reachable(bench: Bench) -> None:
    run_id = stop_in(bench, "S02", "S01", "S02")
    log = bench.log(2)

    result = bench.aiflow.json("retry-step", run_id)

    assert (result["run_id"], result["state"]) == (run_id, "DONE")
    assert "half.txt" not in bench.files_at(result["branch"])
    kept = bench.git("for-each-ref", "--format=%(refname)", "refs/aiflow/retried").splitlines()
    assert kept == [f"refs/aiflow/retried/{run_id}/S02-1"]
    assert "half.txt" in bench.files_at(kept[0])
    first = next(call for call in reversed(bench.agent.calls) if call["document"]["role"] == "implementer")
    assert "half.txt" not in first["files"]
    assert bench.log(2).startswith(log)
    assert "(retry_step S02)" in bench.report()
    assert bench.stage()["steps"][1]["retries"] == 1


@pytest.mark.spec("RUN-6", "RUN-9")
def test_an_earlier_step_is_done_again_and_the_later_ones_behind_it(bench: Bench) -> None:
    run_id = stop_in(bench, "S03", "S01", "S02", "S03")
    old = {step["id"]: step["commit"] for step in bench.stage()["steps"]}
    bench.agent.does("implementer", "write(f'{step}.txt', 'again\\n'); done()")

    result = bench.aiflow.json("retry-step", "RQ-1", "s02")

    branch = result["branch"]
    assert result["state"] == "DONE"
    messages = bench.commits(branch)
    assert [re.search(r"Aiflow-Step: (\w+)", text)[1] for text in messages] == ["S01", "S02", "S03"]  # type: ignore[index]
    new = {step["step_id"]: step["commit"] for step in result["steps"]}
    assert new["S01"] == old["S01"]
    assert new["S02"] != old["S02"]
    assert bench.git("show", f"{branch}:S01.txt") == "S01"
    assert bench.git("show", f"{branch}:S02.txt") == "again"
    kept = f"refs/aiflow/retried/{run_id}/S02-1"
    assert bench.git("merge-base", "--is-ancestor", str(old["S02"]), kept) == ""
    assert "half.txt" in bench.files_at(kept)
    assert bench.agent.roles.count("implementer S01") == 1
    assert bench.stage()["attempts"]["steps"]["S02"]["implementer"] == 2


@pytest.mark.spec("RUN-6")
def test_what_retry_step_and_resume_refuse(bench: Bench) -> None:
    stop_in(bench, "S01", "S01", "S02")
    before = tree_of(bench.root)
    for step in ("S02", "S09", "xyz"):
        refused = bench.aiflow.json("retry-step", "RQ-1", step, code=2)["error"]
        assert refused["reason_code"] == "INPUT_INVALID"
    for target, code in (("RQ-7", "REQUEST_NOT_FOUND"), ("RUN-20260101-000000-aaaaaa", "RUN_NOT_FOUND")):
        assert bench.aiflow.json("resume", target, code=2)["error"]["reason_code"] == code
    assert tree_of(bench.root) == before


@pytest.mark.spec("RUN-9")
def test_errors_are_overwritten_by_the_next_stop(bench: Bench) -> None:
    stop_in(bench, "S01")
    bench.agent.does("implementer", "sys.exit(9)")
    bench.aiflow.json("resume", "RQ-1", code=5)
    assert (bench.errors()["reason_code"], bench.errors()["cause"]) == ("RETRY_LIMIT_EXCEEDED", "AGENT_FAILED")
    assert bench.errors()["evidence"]["exit_code"] == 9
    assert len(re.findall(r"^## ", bench.report(), re.MULTILINE)) == 2


@pytest.mark.spec("RUN-10", "RUN-8")
@pytest.mark.parametrize("role", ["planner", "implementer", "qa"])
def test_any_role_may_ask_and_the_answer_reaches_it(bench: Bench, role: str) -> None:
    bench.agent.does(
        role, "ask('Blue or green?') if not call['answers'] else (done() if role == 'implementer' else None)"
    )
    if role != "implementer":
        code = "answer({'verdict': 'pass'})" if role == "qa" else "answer(json.loads(PLAN))"
        plan = '{"steps": [{"id": "S01", "title": "T"}]}'
        bench.agent.does(role, f"PLAN = {plan!r}\nif call['answers']: {code}\nelse: ask('Blue or green?')")
    result = bench.run(code=5)
    assert (result["state"], result["reason_code"]) == ("NEEDS_INPUT", "NEEDS_CLARIFICATION")
    assert result["question"] == "Blue or green?"
    assert result["suggested_next"]["way_on"] == "answer"
    assert "Blue or green?" in bench.report()
    assert bench.errors()["reason_code"] == "NEEDS_CLARIFICATION"
    calls = len(bench.agent.calls)

    for command in (["resume", "RQ-1"], ["resume", "RQ-1", "--answer", "  "]):
        refused = bench.aiflow.json(*command, code=5)["error"]
        assert refused["reason_code"] == "NEEDS_CLARIFICATION"
        assert refused["context"]["question"] == "Blue or green?"
    assert len(bench.agent.calls) == calls

    result = bench.aiflow.json("resume", "RQ-1", "--answer", "Green, 緑")
    assert result["state"] == "DONE"
    assert bench.agent.last(role)["answers"] == [{"question": "Blue or green?", "answer": "Green, 緑"}]
    if role == "qa":  # the work was not found wanting: it is not done again
        assert bench.agent.roles.count("implementer S01") == 1


@pytest.mark.spec("RUN-6", "REQ-5")
def test_replan_closes_the_run_and_each_names_the_other(bench: Bench) -> None:
    old = stop_in(bench, "S01")
    bench.agent.plans("S01", "S02", "S03")

    result = bench.aiflow.json("replan", "RQ-1")

    new = result["run_id"]
    assert new != old
    assert result["state"] == "DONE"
    assert (result["replaces"], bench.stage(run_id=new)["replaces"]) == (old, old)
    closed = bench.stage(run_id=old)
    assert (closed["state"], closed["replaced_by"]) == ("FAILED", new)
    assert closed["error"]["reason_code"] == "REPLANNED"
    assert closed["error"]["cause"] == "RETRY_LIMIT_EXCEEDED"
    assert new in bench.report(run_id=old)
    assert old in bench.report(run_id=new)
    assert bench.errors(run_id=old)["reason_code"] == "REPLANNED"
    planner = bench.agent.last("planner")
    assert [each["reason_code"] for each in planner["feedback"]] == ["UNIT_TEST_FAILED"]
    assert "half.txt" not in bench.files_at(result["branch"])
    assert any(e["run_id"] == old and e.get("reason_code") == "REPLANNED" for e in bench.journal())
    for run_id in (old, new):
        refused = bench.aiflow.json("resume", run_id, "--force", code=4)["error"]
        assert refused["reason_code"] == "RUN_NOT_RESUMABLE"


@pytest.mark.spec("RUN-6")
def test_done_never_resumes_and_failed_only_with_force(bench: Bench) -> None:
    stop_in(bench, "S01")
    _fail_it(bench)
    refused = bench.aiflow.json("resume", "RQ-1", code=4)["error"]
    assert refused["reason_code"] == "RUN_NOT_RESUMABLE"
    assert bench.aiflow.json("retry-step", "RQ-1", code=4)["error"]["reason_code"] == "RUN_NOT_RESUMABLE"
    bench.agent.does("implementer", WRITES_GREEN)
    assert bench.aiflow.json("resume", "RQ-1", "--force")["state"] == "DONE"
    for command in (["resume"], ["retry-step"], ["replan"]):
        for force in ([], ["--force"]) if command != ["replan"] else ([],):
            refused = bench.aiflow.json(*command, "RQ-1", *force, code=4)["error"]
            assert refused["reason_code"] == "RUN_NOT_RESUMABLE"


def _fail_it(bench: Bench) -> None:
    """Make the stopped run one that ended as FAILED, as an internal error would."""
    path = bench.folder() / "stage.json"
    path.write_text(path.read_text().replace('"state": "NEEDS_INPUT"', '"state": "FAILED"'))


@pytest.mark.spec("RUN-7", "DOC-1")
def test_uncommitted_changes_in_the_checkout_refuse_start_and_resume(bench: Bench) -> None:
    (bench.root / "app.txt").write_text("mine\n")
    refused = bench.aiflow.json("run", "RQ-1", code=6)["error"]
    assert refused["reason_code"] == "WORKTREE_DIRTY"
    assert "app.txt" in refused["context"]["detail"]
    assert bench.run_ids() == []
    assert bench.status() == "ready"
    bench.git("checkout", "-q", "app.txt")
    stop_in(bench, "S01")
    before = bench.stage()
    (bench.root / "app.txt").write_text("mine\n")

    refused = bench.aiflow.json("resume", "RQ-1", code=6)["error"]

    assert refused["reason_code"] == "WORKTREE_DIRTY"
    assert bench.stage() == before
    assert bench.errors()["reason_code"] == "WORKTREE_DIRTY"
    assert "app.txt" in bench.errors()["message"]
    assert bench.errors()["state"] == "NEEDS_INPUT"
    assert bench.errors()["suggested_next"]["way_on"] == "resume"
    assert bench.status() == "blocked"
    assert bench.locks() == []
    # force overrides advice, never a doctor's FAIL
    assert bench.aiflow.json("resume", "RQ-1", "--force", code=6)["error"]["reason_code"] == "WORKTREE_DIRTY"
    assert (bench.root / "app.txt").read_text() == "mine\n"
    text = (bench.root / "aiflow.toml").read_text()
    (bench.root / "aiflow.toml").write_text(text + '\n[git]\ndirty_checkout = "warn"\n')
    bench.agent.does("implementer", WRITES_GREEN)
    assert bench.aiflow.json("resume", "RQ-1")["state"] == "DONE"


def _edit(tree: Path) -> None:
    (tree / "app.txt").write_text("a person's edit\n")


def _add(tree: Path) -> None:
    (tree / "person.txt").write_text("a person's file\n")


def _delete(tree: Path) -> None:
    (tree / "half.txt").unlink()


@pytest.mark.spec("RUN-7")
@pytest.mark.parametrize("change", [_edit, _add, _delete])
def test_a_worktree_that_a_person_changed_refuses_until_they_say_so(
    bench: Bench, change: Callable[[Path], None]
) -> None:
    stop_in(bench, "S01")
    before = bench.stage()
    change(bench.worktree())
    seen = tree_of(bench.worktree())

    for command in ("resume", "retry-step"):
        refused = bench.aiflow.json(command, "RQ-1", code=6)["error"]
        assert refused["reason_code"] == "WORKTREE_DIRTY"
    assert bench.stage() == before
    assert bench.errors()["reason_code"] == "WORKTREE_DIRTY"
    assert str(bench.worktree()) in bench.errors()["message"]
    assert tree_of(bench.worktree()) == seen
    assert bench.status() == "blocked"
    assert bench.locks() == []

    bench.agent.does("implementer", WRITES_GREEN)
    result = bench.aiflow.json("resume", "RQ-1", "--keep-changes")
    assert result["state"] == "DONE"
    files = set(bench.files_at(result["branch"]))
    assert ("person.txt" in files) == (change is _add)
    assert ("half.txt" in files) == (change is not _delete)
    assert (bench.git("show", f"{result['branch']}:app.txt") == "a person's edit") == (change is _edit)


@pytest.mark.spec("RUN-7", "RUN-6")
def test_retry_step_with_keep_changes_keeps_a_persons_edits_reachable(bench: Bench) -> None:
    run_id = stop_in(bench, "S01")
    _add(bench.worktree())
    result = bench.aiflow.json("retry-step", "RQ-1", "--keep-changes")
    assert result["state"] == "DONE"
    assert "person.txt" not in bench.files_at(result["branch"])
    assert "person.txt" in bench.files_at(f"refs/aiflow/retried/{run_id}/S01-1")


@pytest.mark.spec("RUN-7")
def test_a_person_may_commit_what_the_step_left_themselves(bench: Bench) -> None:
    stop_in(bench, "S01")
    tree = bench.worktree()
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "Good enough")
    bench.agent.does("implementer", WRITES_GREEN)
    result = bench.aiflow.json("resume", "RQ-1")
    assert result["state"] == "DONE"
    assert [message.splitlines()[0] for message in bench.commits(result["branch"])] == ["Good enough", "Do S01"]


@pytest.mark.spec("RUN-7", "GIT-1")
@pytest.mark.parametrize("command", ["resume"])
def test_a_worktree_that_is_gone_is_made_again_with_the_unfinished_work(bench: Bench, command: str) -> None:
    stop_in(bench, "S02", "S01", "S02")
    shutil.rmtree(bench.worktree())
    bench.agent.does("implementer", WRITES_GREEN)
    result = bench.aiflow.json(command, "RQ-1")
    assert result["state"] == "DONE"
    files = set(bench.files_at(result["branch"]))
    assert {"S01.txt", "green.txt"} <= files
    assert ("half.txt" in files) == (command == "resume")


@pytest.mark.spec("RUN-7", "GIT-1")
def test_a_deleted_branch_does_not_lose_what_was_committed(bench: Bench) -> None:
    stop_in(bench, "S02", "S01", "S02")
    branch = bench.stage()["branch"]
    shutil.rmtree(bench.worktree())
    bench.git("worktree", "prune")
    bench.git("branch", "-D", branch)
    bench.agent.does("implementer", WRITES_GREEN)
    result = bench.aiflow.json("resume", "RQ-1")
    assert result["state"] == "DONE"
    assert {"S01.txt", "half.txt", "green.txt"} <= set(bench.files_at(branch))


@pytest.mark.spec("RUN-7")
def test_a_doctor_that_fails_at_resume_leaves_the_run_waiting(bench: Bench) -> None:
    stop_in(bench, "S01")
    before = bench.stage()
    bench.configure(argv=[str(bench.agent.folder / "nobody")])
    refused = bench.aiflow.json("resume", "RQ-1", code=3)["error"]
    assert refused["reason_code"] == "AGENT_NOT_FOUND"
    assert bench.stage() == before
    assert (bench.errors()["reason_code"], bench.errors()["state"]) == ("AGENT_NOT_FOUND", "NEEDS_INPUT")
    assert "nobody" in bench.errors()["message"]
    assert bench.status() == "blocked"


@pytest.mark.spec("RUN-6")
def test_a_run_that_never_got_a_plan_resumes_at_planning(bench: Bench) -> None:
    bench.agent.does("planner", "answer('no')")
    bench.run(code=5)
    bench.agent.forget()
    result = bench.aiflow.json("resume", "RQ-1")
    assert result["state"] == "DONE"
    assert bench.stage()["attempts"]["planning"] == 3
    assert [line["event"] for line in bench.stage()["history"]].count("RESUMED_AT_PLANNING") == 1


@pytest.mark.spec("RUN-6", "REQ-5")
@pytest.mark.parametrize("status", ["draft", "done", "archived"])
def test_a_request_that_a_person_put_away_does_not_resume(bench: Bench, status: str) -> None:
    stop_in(bench, "S01")
    bench.aiflow("set", "RQ-1", f"status={status}")
    before = tree_of(bench.root)
    assert bench.aiflow.json("resume", "RQ-1", code=4)["error"]["reason_code"] == "NOT_READY"
    assert {k: v for k, v in tree_of(bench.root).items() if "locks" not in k} == {
        k: v for k, v in before.items() if "locks" not in k
    }


@pytest.mark.spec("RUN-11")
def test_a_crashed_run_that_is_resumed_by_hand_goes_on_with_its_work(bench: Bench) -> None:
    process = bench.start_hanging()
    process.kill()
    process.wait()
    bench.agent.does("implementer", "write('whole.txt', open('half.txt').read()); done()")
    result = bench.aiflow.json("resume", "RQ-1")
    assert result["state"] == "DONE"
    assert {"half.txt", "whole.txt"} <= set(bench.files_at(result["branch"]))
    assert len(bench.commits(result["branch"])) == 1


@pytest.mark.spec("RUN-11", "LCK-5", "ERR-4")
def test_the_next_start_recovers_a_crashed_run_by_itself(bench: Bench) -> None:
    bench.agent.plans("S01", "S02")
    process = bench.start_hanging()
    process.kill()
    process.wait()
    assert bench.status() == "running"
    assert bench.locks() == ["request.RQ-1.lock.json"]

    result = bench.run()

    assert result["state"] == "DONE"
    assert bench.run_ids() == [result["run_id"]]
    assert bench.agent.roles.count("planner") == 1
    assert bench.agent.last("implementer")["step"]["id"] == "S02"
    assert len(bench.commits(result["branch"])) == 2
    assert "half.txt" in bench.files_at(result["branch"])  # what the interrupted step had changed is gone on with
    codes = [entry.get("reason_code") for entry in bench.journal() if entry["kind"] == "recovery"]
    assert codes == ["LOCK_STALE_RECOVERED", "PROCESS_CRASHED"]
    assert "LOCK_STALE_RECOVERED" in bench.report()
    assert "RECOVERED" in [line["event"] for line in bench.stage()["history"]]
    assert bench.status() == "blocked"
    assert bench.locks() == []
