"""What a run may not change, or did not change at all, as people meet it: request files, submodules, nothing (REQ-6, 8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.bench import Bench, git

TOUCH_REQUEST = "write('requests/RQ-1.md', 'mine\\n'); write('requests/RQ-9.md', 'new\\n'); done()"


@pytest.mark.spec("REQ-8", "RUN-4")
def test_a_step_that_only_changes_requests_is_told_and_then_stops(bench: Bench) -> None:
    before = (bench.root / "requests/RQ-1.md").read_text()
    bench.agent.does("implementer", TOUCH_REQUEST)
    stopped = bench.run(code=5)
    assert (stopped["state"], stopped["reason_code"], stopped["cause"]) == (
        "NEEDS_INPUT",
        "RETRY_LIMIT_EXCEEDED",
        "CHANGES_REFUSED",
    )
    assert stopped["suggested_next"]["command"] == "aiflow retry-step RQ-1"
    told = bench.agent.last("implementer")["feedback"]
    assert [each["reason_code"] for each in told] == ["CHANGES_REFUSED"]
    assert "requests/RQ-1.md, requests/RQ-9.md" in told[0]["summary"]
    assert not (bench.worktree() / "requests/RQ-9.md").exists()
    assert "status: ready" in (bench.worktree() / "requests/RQ-1.md").read_text()
    assert "変更できないファイル" in bench.aiflow("--lang", "ja", "show", stopped["run_id"]).stdout
    # The second attempt may mend it.
    bench.agent.forget()
    bench.agent.does("implementer", TOUCH_REQUEST, attempt=1)
    done = bench.aiflow.json("retry-step", "RQ-1")
    assert done["state"] == "DONE"
    assert bench.files_at(done["branch"]).count("S01.txt") == 1
    assert before.replace("status: ready", "status: blocked") == (bench.root / "requests/RQ-1.md").read_text()


@pytest.mark.spec("REQ-8")
def test_what_is_left_of_a_step_stands_and_the_reviewer_is_told_what_was_undone(bench: Bench) -> None:
    bench.agent.does("implementer", f"write('S01.txt', 'x\\n'); {TOUCH_REQUEST}")
    done = bench.run()
    assert done["state"] == "DONE"
    assert bench.git("diff", "--name-only", f"main...{done['branch']}") == "S01.txt"
    told = bench.agent.last("qa")["feedback"]
    assert [(each["reason_code"], "requests/RQ-9.md" in each["summary"]) for each in told] == [
        ("CHANGES_REFUSED", True)
    ]
    assert "were undone: requests/RQ-1.md, requests/RQ-9.md" in bench.log(1)


@pytest.mark.spec("REQ-8")
@pytest.mark.parametrize("ignores_case", [False, True])
def test_no_spelling_brings_a_file_where_aiflow_keeps_its_own(bench: Bench, ignores_case: bool) -> None:
    bench.git("rm", "--quiet", ".gitignore")
    bench.git("commit", "--quiet", "-m", "ignore nothing")
    bench.git("config", "core.ignorecase", str(ignores_case).lower())
    bench.agent.does("implementer", "write('.AIFLOW/locks/x', 'x'); write('Runs/RQ-1/x', 'x'); write('a', 'a'); done()")
    done = bench.run()
    brought = ["a"] if ignores_case else ["Runs/RQ-1/x", "a"]
    assert bench.git("diff", "--name-only", f"main...{done['branch']}").split() == brought
    told = bench.agent.last("qa")["feedback"][0]["summary"]
    assert (".AIFLOW/locks/x" in told, "Runs/RQ-1/x" in told) == (True, ignores_case)
    assert not (bench.worktree() / ".AIFLOW").exists()
    assert (bench.worktree() / "Runs").exists() != ignores_case
    bench.git("config", "core.ignorecase", "true")
    refused = bench.aiflow("accept", "RQ-1", code=0 if ignores_case else 4)
    assert ("Runs/RQ-1/x" in refused.stdout) != ignores_case


PLANTED = {
    "filter.x.clean": "run('git', 'config', 'filter.x.clean', 'cat')",
    "core.attributesfile": "run('git', 'config', 'core.attributesFile', '/tmp/a')",
    "core.fsmonitor": "run('git', 'config', 'core.fsmonitor', 'true')",
    "include.path": "run('git', 'config', '--add', 'include.path', '/tmp/b')",
    "info/attributes": "(ROOT / '.git/info').mkdir(exist_ok=True); (ROOT / '.git/info/attributes').write_text('* filter=x')",
}


@pytest.mark.spec("REQ-8", "SEC")
@pytest.mark.parametrize("what", PLANTED)
def test_a_run_stops_where_what_git_obeys_was_changed_while_its_agent_worked(bench: Bench, what: str) -> None:
    run = "run = lambda *line: subprocess.run(line, check=True); "
    bench.agent.does("implementer", f"{run}{PLANTED[what]}; write('a', 'a'); done()", attempt=1)
    stopped = bench.run(code=5)
    assert (stopped["state"], stopped["reason_code"]) == ("NEEDS_INPUT", "CHANGES_REFUSED")
    assert stopped["summary"] == f"no run may change git's configuration: {what}"
    shown = bench.aiflow("show", stopped["run_id"]).stdout
    assert what in shown
    assert "It was not undone" in " ".join(shown.split())
    # A person has judged it.
    bench.agent.forget()
    assert bench.aiflow.json("retry-step", "RQ-1")["state"] == "DONE"


@pytest.mark.spec("REQ-8", "SEC")
@pytest.mark.parametrize("is_merge", [False, True])
def test_nor_may_a_test_change_it_that_the_agent_wrote(bench: Bench, is_merge: bool) -> None:
    where = "test ! -e other.txt || " if is_merge else ""
    bench.configure(f'[tests]\nunit = "{where}git config core.attributesFile x"')
    if not is_merge:
        stopped = bench.run(code=5)
        assert (stopped["reason_code"], stopped["summary"][-19:]) == ("CHANGES_REFUSED", "core.attributesfile")
        return
    bench.run()
    (bench.root / "other.txt").write_text("x")
    bench.git("add", "other.txt")
    bench.git("commit", "--quiet", "-m", "another")
    refused = bench.aiflow.json("accept", "RQ-1", code=7)
    assert (refused["reason_code"], refused["accepted_as"]) == ("MERGE_TESTS_FAILED", None)
    assert refused["summary"] == "no run may change git's configuration: core.attributesfile"
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"]  # a person has judged it


@pytest.mark.spec("REQ-8", "SEC")
def test_what_a_person_changes_in_git_meanwhile_that_git_does_not_obey_stops_nothing(bench: Bench) -> None:
    lines = (
        *("git config branch.x.remote origin", "git config user.signature x", "git config core.abbrev 9"),
        *("git remote add other ../other", "git branch another", "git tag here"),
    )
    bench.agent.does(
        "implementer", f"[subprocess.run(l.split(), check=True) for l in {lines}]; write('a', 'a'); done()"
    )
    assert bench.run()["state"] == "DONE"


@pytest.mark.spec("REQ-6", "RUN-3")
@pytest.mark.parametrize("accept", ["manual", "auto"])
def test_a_run_that_changed_nothing_says_so_and_waits_for_a_person(bench: Bench, accept: str) -> None:
    bench.agent.does("implementer", "done('It was there already.')")
    done = bench.aiflow.json("-c", f"accept={accept}", "run", "RQ-1")
    assert (done["state"], done["reason_code"], done["accepted_as"]) == ("DONE", "NOTHING_CHANGED", None)
    assert done["suggested_next"] == {"way_on": "accept", "command": "aiflow accept RQ-1"}
    assert bench.status() == "blocked"
    for command in (
        ["list"],
        ["why", "RQ-1"],
        ["show", "RQ-1"],
        ["runs"],
        ["show", done["run_id"]],
        ["report", "RQ-1"],
    ):
        assert "NOTHING_CHANGED" in bench.aiflow(*command).stdout, command
    assert "変更はありません" in bench.aiflow("--lang", "ja", "show", done["run_id"]).stdout
    base = bench.git("rev-parse", "main")
    told = bench.aiflow("accept", "RQ-1").stdout
    assert "there was nothing to merge into main" in told
    assert "merged into main as" not in told
    assert (bench.status(), bench.git("rev-parse", "main")) == ("done", base)
    assert "nothing to merge into main" in bench.report()
    assert bench.aiflow.json("show", done["run_id"])["reason_code"] is None


@pytest.mark.spec("REQ-6")
def test_what_a_person_commits_on_the_branch_of_an_empty_run_is_merged(bench: Bench) -> None:
    bench.agent.does("implementer", "done()")
    bench.run()
    tree = bench.worktree()
    (tree / "mine.txt").write_text("mine\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "By hand")
    assert "merged into main as" in bench.aiflow("accept", "RQ-1").stdout
    assert "mine.txt" in bench.files_at("main")


@pytest.mark.spec("REQ-6")
def test_steps_that_undo_each_other_are_not_accepted_automatically(bench: Bench) -> None:
    bench.agent.plans("S01", "S02")
    bench.agent.does("implementer", "os.unlink('S01.txt'); done()", step="S02")
    done = bench.aiflow.json("-c", "accept=auto", "run", "RQ-1")
    assert (done["state"], done["reason_code"], bench.status()) == ("DONE", "NOTHING_CHANGED", "blocked")


@pytest.fixture
def vendored(bench: Bench, tmp_path: Path) -> Bench:
    """A repository with a submodule, which set-up fills."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "main")
    (other / "lib.txt").write_text("lib\n")
    (other / ".gitignore").write_text("*.o\n")
    git(other, "add", "-A")
    git(other, "-c", "user.name=O", "-c", "user.email=o@example.com", "commit", "-qm", "lib")
    bench.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "vendor/lib")
    fill = "git -c protocol.file.allow=always submodule --quiet update --init && touch vendor/lib/made-by-set-up"
    bench.configure(f'[worktree]\nsetup = "{fill}"\n[tests]\nunit = "touch vendor/lib/left-by-tests vendor/lib/x.o"')
    bench.commit()
    return bench


CHANGES = {
    "inside": "write('vendor/lib/lib.txt', 'changed\\n')",
    "new file": "write('vendor/lib/new.txt', 'new\\n')",
    "moved": "sh('cd vendor/lib && git -c user.name=A -c user.email=a@b commit -q --allow-empty -m mine')",
    "removed": "sh('git rm -qf --ignore-unmatch vendor/lib')",
}


@pytest.mark.spec("RUN-3", "REQ-8")
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_submodule_stops_the_step_with_its_own_reason(vendored: Bench, change: str) -> None:
    vendored.agent.does("implementer", f"write('S01.txt', 'x\\n'); {CHANGES[change]}; done()")
    stopped = vendored.run(code=6)
    assert (stopped["reason_code"], stopped["cause"]) == ("RETRY_LIMIT_EXCEEDED", "SUBMODULE_CHANGED")
    assert "vendor/lib" in stopped["summary"]
    assert stopped["suggested_next"]["command"] == "aiflow retry-step RQ-1"
    assert [each["reason_code"] for each in vendored.agent.last("implementer")["feedback"]] == ["SUBMODULE_CHANGED"]
    assert "サブモジュール" in vendored.aiflow("--lang", "ja", "show", stopped["run_id"]).stdout


@pytest.mark.spec("RUN-3")
def test_a_submodule_that_set_up_and_tests_touched_stops_nothing(vendored: Bench) -> None:
    vendored.agent.plans("S01", "S02")
    done = vendored.run()
    assert done["state"] == "DONE"
    assert vendored.git("diff", "--name-only", f"main...{done['branch']}").splitlines() == ["S01.txt", "S02.txt"]


@pytest.mark.spec("RUN-3")
def test_files_written_into_a_submodule_that_nobody_filled_are_not_lost_silently(vendored: Bench) -> None:
    vendored.configure()
    vendored.commit()
    vendored.agent.does("implementer", "write('vendor/lib/lib.txt', 'x\\n'); done()")
    assert vendored.run(code=6)["cause"] == "SUBMODULE_CHANGED"
