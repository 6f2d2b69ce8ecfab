"""What becomes of a finished run (REQ-6, GIT-3): accepted, sent back, accepted by itself, brought in line first."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aiflow.domain.request import RequestId
from aiflow.errors import ConflictError
from aiflow.messages import Texts
from aiflow.usecases.engine import Voice
from aiflow.usecases.runs.find import newest_run
from aiflow.usecases.runs.resume import ResumeWish
from aiflow.usecases.runs.update import update_run
from aiflow.wiring import build_engine, project_at, read_settings
from e2e.bench import Bench, git, tree_of
from waiting import wait_until

AUTO = ("-c", "accept=auto")
RESOLVE = "p = pathlib.Path('app.txt'); write('app.txt', 'theirs and ours\\n'); done('resolved')"


def finish(bench: Bench, *flags: str, code: int = 0) -> Any:
    """Let RQ-1's run change app.txt and come to its end."""
    bench.agent.does("implementer", "write('app.txt', 'ours\\n'); write('new.txt', 'new\\n'); done()")
    return bench.aiflow.json("run", "RQ-1", *flags, code=code)


def commit_on_base(bench: Bench, path: str, text: str) -> str:
    (bench.root / path).write_text(text)
    bench.git("add", path)
    bench.git("commit", "-qm", f"a person changes {path}")
    return bench.git("rev-parse", "HEAD")


def refs(bench: Bench) -> str:
    return bench.git("for-each-ref", "--format=%(refname) %(objectname)")


def why(bench: Bench) -> Any:
    return bench.aiflow.json("why", "RQ-1")


# --- accept ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("REQ-6", "GIT-3")
def test_accept_merges_tests_and_sets_done(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "pwd >> tested; test -e new.txt || test ! -e S01.txt"')
    base = bench.git("rev-parse", "main")
    done = finish(bench)
    assert bench.status() == "blocked"
    accepted = bench.aiflow.json("accept", "RQ-1")
    merge = bench.git("rev-parse", "main")
    assert accepted["accepted_as"] == merge == bench.stage()["accepted_as"]
    assert bench.git("rev-list", "--parents", "-1", "main").split()[1:] == [
        base,
        bench.git("rev-parse", done["branch"]),
    ]
    assert bench.git("log", "-1", "--format=%s") == f"Merge RQ-1: {bench.stage()['title']}"
    assert f"Aiflow-Run: {done['run_id']}" in bench.git("log", "-1", "--format=%b")
    assert bench.status() == "done"
    assert (bench.root / "app.txt").read_text() == "ours\n"
    assert bench.git("status", "--porcelain", "--untracked-files=no") == "M aiflow.toml\n M requests/RQ-1.md"
    assert bench.locks() == []
    assert not list(bench.state.glob("aiflow/*/worktrees/*.merge"))
    assert "acceptance, unit tests" in bench.log(1)
    assert "merged into main" in bench.report()
    assert [e["event"] for e in bench.stage()["history"]][-1] == "ACCEPTED"
    statuses = [(e["data"]["from"], e["data"]["to"]) for e in bench.journal() if e["kind"] == "status_changed"]
    assert statuses[-1] == ("blocked", "done")
    again = bench.aiflow.json("accept", "RQ-1")
    assert again["accepted_as"] == merge
    assert bench.git("rev-parse", "main") == merge


@pytest.mark.spec("GIT-3")
def test_the_merged_tree_is_tested_before_the_base_moves(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "test ! -e new.txt || test ! -e other.txt"')
    finish(bench)
    base = commit_on_base(bench, "other.txt", "each alone is fine\n")
    before = refs(bench)
    refused = bench.aiflow.json("accept", "RQ-1", code=7)
    assert (refused["state"], refused["reason_code"]) == ("DONE", "MERGE_TESTS_FAILED")
    assert refused["suggested_next"]["command"] == "aiflow resume RQ-1 --update"
    assert (bench.git("rev-parse", "main"), bench.status()) == (base, "blocked")
    assert refs(bench) == before
    assert why(bench)["stations"][0]["commands"] == ["aiflow resume RQ-1 --update"]
    assert bench.errors()["reason_code"] == "MERGE_TESTS_FAILED"
    assert not list(bench.state.glob("aiflow/*/worktrees/*.merge"))
    assert bench.locks() == []


@pytest.mark.spec("REQ-6", "GIT-3")
def test_nothing_to_merge_is_accepted_too(bench: Bench) -> None:
    bench.agent.does("implementer", "done('nothing to do')")
    bench.run()
    base = bench.git("rev-parse", "main")
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"] == base
    assert (bench.git("rev-parse", "main"), bench.status()) == (base, "done")


@pytest.mark.spec("REQ-6", "GIT-3")
def test_what_a_person_merged_by_hand_is_accepted_as_it_is(bench: Bench) -> None:
    done = finish(bench)
    bench.git("merge", "-q", "--no-ff", "-m", "by hand", done["branch"])
    merged = bench.git("rev-parse", "main")
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"] == merged
    assert bench.status() == "done"


Upset = Callable[[Bench], object]


def _on_another_branch(bench: Bench) -> None:
    bench.git("switch", "-qc", "elsewhere")


CHECKOUTS: dict[str, Upset] = {
    "clean": lambda bench: None,
    "dirty elsewhere": lambda bench: (bench.root / "other.txt").write_text("mine\n"),
    "staged elsewhere": lambda bench: ((bench.root / "x.txt").write_text("mine\n"), bench.git("add", "x.txt")),
    "another branch": _on_another_branch,
    "detached": lambda bench: bench.git("switch", "-q", "--detach"),
    "base moved on": lambda bench: commit_on_base(bench, "other.txt", "base\n"),
}


@pytest.mark.faults
@pytest.mark.spec("GIT-3")
@pytest.mark.parametrize("name", CHECKOUTS)
def test_accept_in_any_checkout_keeps_what_is_the_users(bench: Bench, name: str) -> None:
    commit_on_base(bench, "other.txt", "other\n")
    finish(bench)
    CHECKOUTS[name](bench)
    head = bench.git("rev-parse", "--abbrev-ref", "HEAD")
    own = {path: (bench.root / path).read_bytes() for path in ("other.txt", "x.txt") if (bench.root / path).exists()}
    staged = bench.git("diff", "--cached", "--name-only")
    dirty = git(bench.root, "diff", "--name-only", "--", ":!requests")
    bench.aiflow.json("accept", "RQ-1")
    assert bench.status() == "done"
    assert bench.git("show", "main:app.txt") == "ours"
    assert bench.git("rev-parse", "--abbrev-ref", "HEAD") == head
    assert {path: (bench.root / path).read_bytes() for path in own} == own
    assert bench.git("diff", "--cached", "--name-only") == staged  # nothing staged that would revert the merge
    assert git(bench.root, "diff", "--name-only", "--", ":!requests") == dirty
    is_on_base = head == "main"
    assert (bench.root / "app.txt").read_text() == ("ours\n" if is_on_base else "app\n")


IN_THE_WAY: dict[str, Upset] = {
    "dirty in the same file": lambda bench: (bench.root / "app.txt").write_text("mine\n"),
    "staged in the same file": lambda bench: (
        (bench.root / "app.txt").write_text("mine\n"),
        bench.git("add", "app.txt"),
    ),
    "an untracked file": lambda bench: (bench.root / "new.txt").write_text("mine\n"),
    "an ignored file": lambda bench: (
        (bench.root / ".git/info/exclude").write_text("new.txt\n"),
        (bench.root / "new.txt").write_text("mine\n"),
    ),
}


@pytest.mark.faults
@pytest.mark.spec("GIT-3")
@pytest.mark.parametrize("name", IN_THE_WAY)
def test_what_is_in_the_way_is_named_and_nothing_moves(bench: Bench, name: str) -> None:
    finish(bench)
    IN_THE_WAY[name](bench)
    before = (refs(bench), git(bench.root, "status", "--porcelain"), tree_of(bench.root / "requests"))
    own = {path: (bench.root / path).read_bytes() for path in ("app.txt", "new.txt") if (bench.root / path).exists()}
    refused = bench.aiflow.json("accept", "RQ-1", code=6)
    assert refused["reason_code"] == "CHECKOUT_IN_THE_WAY"
    assert ("new.txt" if "file" in name.rsplit(maxsplit=1)[-1] and "same" not in name else "app.txt") in refused[
        "summary"
    ]
    assert (refs(bench), git(bench.root, "status", "--porcelain"), tree_of(bench.root / "requests")) == before
    assert {path: (bench.root / path).read_bytes() for path in own} == own
    assert bench.status() == "blocked"
    assert bench.aiflow.json("show", "RQ-1")["runs"][0]["reason_code"] == "CHECKOUT_IN_THE_WAY"
    bench.git("checkout", "-q", "HEAD", "--", "app.txt")
    (bench.root / "new.txt").unlink(missing_ok=True)
    bench.aiflow.json("accept", "RQ-1")
    assert bench.status() == "done"


@pytest.mark.spec("GIT-3")
def test_unsaved_work_in_the_runs_worktree_is_not_left_out_silently(bench: Bench) -> None:
    finish(bench)
    (bench.worktree() / "mine.txt").write_text("mine\n")
    refused = bench.aiflow.json("accept", "RQ-1", code=6)["error"]
    assert (refused["reason_code"], "mine.txt" in json.dumps(refused)) == ("WORKTREE_DIRTY", True)
    git(bench.worktree(), "add", "-A")
    git(bench.worktree(), "commit", "-qm", "mine")
    bench.aiflow.json("accept", "RQ-1")
    assert bench.git("show", "main:mine.txt") == "mine"


@pytest.mark.spec("REQ-6")
def test_what_is_not_finished_is_not_accepted(bench: Bench) -> None:
    assert bench.aiflow.json("accept", "RQ-1", code=2)["error"]["reason_code"] == "RUN_NOT_FOUND"
    bench.agent.does("implementer", "ask('Which one?')")
    bench.run(code=5)
    refused = bench.aiflow.json("accept", "RQ-1", code=4)["error"]
    assert refused["reason_code"] == "RUN_NOT_ACCEPTABLE"
    assert bench.locks() == []
    bench.aiflow.json("set", "RQ-1", "status=draft")
    assert bench.aiflow.json("accept", "RQ-1", code=4)["error"]["reason_code"] == "RUN_NOT_ACCEPTABLE"


# --- accepted by itself ----------------------------------------------------------------------------------------------


@pytest.mark.spec("REQ-6")
def test_accept_auto_merges_and_sets_done_by_itself(bench: Bench) -> None:
    done = finish(bench, *AUTO)
    assert (done["state"], done["reason_code"]) == ("DONE", None)
    assert done["accepted_as"] == bench.git("rev-parse", "main")
    assert bench.status() == "done"
    statuses = [(e["data"]["from"], e["data"]["to"]) for e in bench.journal() if e["kind"] == "status_changed"]
    assert statuses == [("ready", "running"), ("running", "done")]


@pytest.mark.spec("REQ-6")
def test_a_run_that_changed_the_settings_is_never_accepted_by_itself(bench: Bench) -> None:
    bench.agent.does("implementer", "write('aiflow.toml', open('aiflow.toml').read() + '\\n# more\\n'); done()")
    base = bench.git("rev-parse", "main")
    done = bench.aiflow.json("run", "RQ-1", *AUTO)
    assert (done["reason_code"], done["accepted_as"]) == ("SETTINGS_CHANGED", None)
    assert (bench.git("rev-parse", "main"), bench.status()) == (base, "blocked")
    assert done["suggested_next"]["command"] == "aiflow accept RQ-1"
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"]


@pytest.mark.spec("REQ-6", "GIT-3")
def test_what_cannot_be_accepted_by_itself_waits_with_its_reason(bench: Bench) -> None:
    bench.agent.does(
        "implementer",
        "write('app.txt', 'ours\\n'); sh(f'cd {ROOT} && echo theirs > app.txt && git commit -qam theirs'); done()",
    )
    done = bench.aiflow.json("run", "RQ-1", *AUTO)
    assert (done["state"], done["reason_code"]) == ("DONE", "MERGE_CONFLICT")
    assert bench.status() == "blocked"
    listed = bench.aiflow.json("list")["requests"][0]
    assert listed["status"] == "blocked"
    assert why(bench)["stations"][0]["commands"] == ["aiflow resume RQ-1 --update"]


@pytest.mark.spec("REQ-6")
def test_a_request_that_a_person_took_away_meanwhile_is_not_accepted_by_itself(bench: Bench) -> None:
    bench.agent.does(
        "implementer",
        "write('app.txt', 'ours\\n'); path = ROOT / 'requests/RQ-1.md';"
        "path.write_text(path.read_text().replace('status: running', 'status: archived')); done()",
    )
    base = bench.git("rev-parse", "main")
    assert bench.aiflow.json("run", "RQ-1", *AUTO)["accepted_as"] is None
    assert (bench.git("rev-parse", "main"), bench.status()) == (base, "archived")


@pytest.mark.spec("REQ-6", "RUN-11")
def test_killed_in_the_middle_of_accepting_it_goes_on_with_that(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "case $PWD in *.merge) touch ../testing; sleep ${SLEEP:-60};; esac"')
    bench.agent.does("implementer", "write('app.txt', 'ours\\n'); done()")
    process = bench.start("run", "RQ-1", "--json", *AUTO)
    wait_until(lambda: list(bench.state.glob("aiflow/*/worktrees/testing")))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (bench.stage()["state"], bench.status()) == ("DONE", "running")
    bench.configure()
    done = bench.aiflow.json("run", "RQ-1", *AUTO)
    assert done["run_id"] == bench.run_ids()[0]
    assert (done["accepted_as"], bench.status()) == (bench.git("rev-parse", "main"), "done")
    assert len(bench.run_ids()) == 1
    assert not list(bench.state.glob("aiflow/*/worktrees/*.merge"))


def start_accepting(bench: Bench, *flags: str) -> subprocess.Popen[str]:
    """Start to accept RQ-1's run, by hand or by itself, and return while the merge is tested."""
    bench.configure('[tests]\nunit = "case $PWD in *.merge) touch ../testing; sleep 60;; esac"')
    bench.agent.does("implementer", "write('app.txt', 'ours\\n'); done()")
    if not flags:
        bench.run()
    process = bench.start("run" if flags else "accept", "RQ-1", "--json", *flags)
    wait_until(lambda: list(bench.state.glob("aiflow/*/worktrees/testing")))
    return process


def left_merges(bench: Bench) -> list[Path]:
    return list(bench.state.glob("aiflow/*/worktrees/*.merge"))


@pytest.mark.spec("REQ-6", "RUN-11")
@pytest.mark.parametrize("flags", [(), AUTO])
def test_killed_in_the_middle_of_accepting_it_can_be_sent_back(bench: Bench, flags: tuple[str, ...]) -> None:
    process = start_accepting(bench, *flags)
    process.kill()
    process.wait()
    base = bench.git("rev-parse", "main")
    for _ in range(2):  # typed twice it is told once
        assert bench.aiflow.json("send-back", "RQ-1", "-m", "Not like this")["reason_code"] == "SENT_BACK"
    assert (bench.root / "requests/RQ-1.md").read_text().count("Not like this") == 1
    assert (bench.git("rev-parse", "main"), bench.status(), bench.locks()) == (base, "ready", [])
    assert left_merges(bench) == []


@pytest.mark.spec("REQ-6", "DOC-2")
def test_killed_in_the_middle_of_accepting_the_doctor_says_what_it_waits_for(bench: Bench) -> None:
    process = start_accepting(bench, *AUTO)
    process.kill()
    process.wait()
    found = bench.aiflow.json("doctor", "--full")["checks"]
    assert [each["fix"] for each in found if each["reason_code"] == "PROCESS_CRASHED"] == ["aiflow why RQ-1"]
    assert why(bench)["stations"][0]["commands"] == ["aiflow accept RQ-1"]


@pytest.mark.spec("GIT-3", "RUN-11")
def test_killed_in_the_middle_of_accepting_a_conflict_leaves_no_worktree_behind(bench: Bench) -> None:
    process = start_accepting(bench)
    process.kill()
    process.wait()
    assert len(left_merges(bench)) == 1
    commit_on_base(bench, "app.txt", "theirs\n")
    assert bench.aiflow.json("accept", "RQ-1", code=6)["reason_code"] == "MERGE_CONFLICT"
    assert left_merges(bench) == []


@pytest.mark.spec("LCK-3", "GIT-3")
def test_who_lost_the_lock_while_the_merge_is_tested_touches_nothing_more(bench: Bench) -> None:
    process = start_accepting(bench)
    base = bench.git("rev-parse", "main")
    bench.aiflow.json("locks", "break", "RQ-1", "--yes")
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["error"]["reason_code"] == "LOCK_LOST"
    assert len(left_merges(bench)) == 1  # whoever has the lock now may test there
    bench.configure()
    assert bench.git("rev-parse", "main") == base
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"] == bench.git("rev-parse", "main")
    assert left_merges(bench) == []


@pytest.mark.spec("REQ-6")
def test_a_stop_while_the_merge_is_tested_leaves_it_for_later(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "case $PWD in *.merge) touch ../testing; sleep 60;; esac"')
    finish(bench)
    base = bench.git("rev-parse", "main")
    process = bench.start("accept", "RQ-1")
    wait_until(lambda: list(bench.state.glob("aiflow/*/worktrees/testing")))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert (bench.git("rev-parse", "main"), bench.status(), bench.locks()) == (base, "blocked", [])
    bench.configure()
    bench.aiflow.json("accept", "RQ-1")


@pytest.mark.spec("LCK-7", "REQ-6")
def test_accepting_does_not_wait_for_another_requests_run(bench: Bench) -> None:
    bench.add_request("RQ-2")
    finish(bench)
    bench.start_hanging("RQ-2")
    bench.aiflow.json("accept", "RQ-1")
    assert bench.status() == "done"
    assert bench.locks() == ["request.RQ-2.lock.json"]


# --- brought in line -------------------------------------------------------------------------------------------------


def conflict(bench: Bench) -> Any:
    done = finish(bench)
    commit_on_base(bench, "app.txt", "theirs\n")
    refused = bench.aiflow.json("accept", "RQ-1", code=6)
    assert (refused["reason_code"], refused["summary"]) == ("MERGE_CONFLICT", "app.txt")
    return done


@pytest.mark.spec("GIT-3")
def test_a_conflict_is_resolved_by_the_agent_with_update(bench: Bench) -> None:
    done = conflict(bench)
    assert (bench.stage()["state"], bench.status()) == ("DONE", "blocked")
    tip, base = bench.git("rev-parse", done["branch"]), bench.git("rev-parse", "main")
    bench.agent.does("implementer", f"assert '<<<<<<<' in open('app.txt').read(); {RESOLVE}")
    updated = bench.aiflow.json("resume", "RQ-1", "--update")
    assert (updated["run_id"], updated["state"], updated["reason_code"]) == (done["run_id"], "DONE", None)
    # The commit that resolves is the merge itself: none with markers stays in the history.
    assert bench.git("rev-list", "--parents", "-1", done["branch"]).split()[1:] == [tip, base]
    told = bench.agent.last("implementer")
    assert [each["reason_code"] for each in told["feedback"]] == ["MERGE_CONFLICT"]
    assert told["step"]["targets"]["paths"] == ["app.txt"]
    accepted = bench.aiflow.json("accept", "RQ-1")
    assert accepted["accepted_as"] == bench.git("rev-parse", "main")
    assert bench.git("show", "main:app.txt") == "theirs and ours"
    assert bench.git("log", "--format=%H", "-S<<<<<<<", "main") == ""


@pytest.mark.faults
@pytest.mark.spec("GIT-3")
def test_markers_that_are_left_are_a_failed_attempt(bench: Bench) -> None:
    conflict(bench)
    bench.agent.does("implementer", "write('more.txt', 'x\\n'); done()")
    stopped = bench.aiflow.json("resume", "RQ-1", "--update", code=6)
    assert (stopped["state"], stopped["reason_code"]) == ("NEEDS_INPUT", "RETRY_LIMIT_EXCEEDED")
    assert stopped["cause"] == "MERGE_CONFLICT"
    bench.agent.does("implementer", RESOLVE)
    assert bench.aiflow.json("resume", "RQ-1", "--update")["state"] == "DONE"
    bench.aiflow.json("accept", "RQ-1")
    assert bench.git("show", "main:app.txt") == "theirs and ours"


@pytest.mark.spec("GIT-3")
def test_without_a_conflict_update_only_tests_and_mends(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "test ! -e new.txt || test ! -e other.txt || test -e mended.txt"')
    finish(bench)
    commit_on_base(bench, "other.txt", "other\n")
    bench.aiflow.json("accept", "RQ-1", code=7)
    calls = len(bench.agent.roles)
    bench.agent.does("implementer", "write('mended.txt', 'x\\n'); done()")
    updated = bench.aiflow.json("resume", "RQ-1", "--update")
    assert updated["state"] == "DONE"
    assert bench.agent.roles[calls:] == ["implementer S02", "qa S02"]  # the tests failed first
    assert bench.agent.last("implementer")["feedback"][0]["reason_code"] == "UNIT_TEST_FAILED"
    bench.aiflow.json("accept", "RQ-1")
    assert bench.status() == "done"


@pytest.mark.spec("GIT-3", "REQ-6")
def test_update_is_accepted_by_itself_where_the_settings_say_so(bench: Bench) -> None:
    conflict(bench)
    bench.agent.does("implementer", RESOLVE)
    assert bench.aiflow.json("resume", "RQ-1", "--update", *AUTO)["accepted_as"] == bench.git("rev-parse", "main")
    assert bench.status() == "done"


@pytest.mark.spec("GIT-3", "REQ-6")
def test_a_conflict_that_no_marker_shows_is_never_accepted_by_itself(bench: Bench) -> None:
    bench.agent.does("implementer", "write('x.bin', '\\0ours\\n'); done()")
    bench.run()
    base = commit_on_base(bench, "x.bin", "\0theirs\n")
    assert bench.aiflow.json("accept", "RQ-1", code=6)["reason_code"] == "MERGE_CONFLICT"
    bench.agent.does("implementer", "done('nothing')")
    done = bench.aiflow.json("resume", "RQ-1", "--update", *AUTO)
    assert "x.bin" in bench.agent.last("implementer")["feedback"][0]["summary"]
    assert (done["reason_code"], done["summary"], done["accepted_as"]) == ("CONFLICT_TO_REVIEW", "x.bin", None)
    assert (bench.git("rev-parse", "main"), bench.status()) == (base, "blocked")
    assert done["suggested_next"]["command"] == "aiflow accept RQ-1"
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"] == bench.git("rev-parse", "main")


@pytest.mark.spec("GIT-3", "RUN-11")
def test_update_goes_on_after_a_kill_with_the_merge_laid_out(bench: Bench) -> None:
    done = conflict(bench)
    bench.agent.does("implementer", "(HERE / 'hangs').touch(); time.sleep(600)")
    process = bench.start("resume", "RQ-1", "--update")
    wait_until((bench.agent.folder / "hangs").exists)
    process.send_signal(signal.SIGKILL)
    process.wait()
    bench.agent.does("implementer", f"assert '<<<<<<<' in open('app.txt').read(); {RESOLVE}")
    assert bench.run()["run_id"] == done["run_id"]
    bench.aiflow.json("accept", "RQ-1")
    assert bench.git("show", "main:app.txt") == "theirs and ours"


@pytest.mark.spec("GIT-3")
def test_only_a_finished_run_is_brought_in_line(bench: Bench) -> None:
    bench.agent.does("implementer", "ask('Which one?')")
    bench.run(code=5)
    refused = bench.aiflow.json("resume", "RQ-1", "--update", code=4)["error"]
    assert refused["reason_code"] == "RUN_NOT_ACCEPTABLE"


@pytest.mark.spec("GIT-3", "LCK-7")
def test_what_is_accepted_at_the_last_moment_is_not_brought_in_line(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(bench)
    commit_on_base(bench, "other.txt", "other\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(bench.state))
    project = project_at(str(bench.root))
    engine = build_engine(project, read_settings(str(bench.root), ()), project.journal, Voice(Texts("en")))
    seen = newest_run(engine, RequestId("RQ-1"))
    assert seen is not None
    bench.aiflow.json("accept", "RQ-1")
    before = refs(bench)
    with pytest.raises(ConflictError, match="RUN_NOT_ACCEPTABLE"):
        update_run(engine, seen, ResumeWish())
    assert (refs(bench), bench.status(), bench.locks()) == (before, "done", [])


# --- sent back -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("REQ-6", "REQ-5")
def test_send_back_closes_the_run_and_tells_the_next_one(bench: Bench) -> None:
    done = finish(bench)
    before = (bench.root / "requests/RQ-1.md").read_text()
    closed = bench.aiflow.json("send-back", "RQ-1", "-m", "Keep the old name.\nAnd the tests.")
    assert (closed["state"], closed["reason_code"]) == ("FAILED", "SENT_BACK")
    text = (bench.root / "requests/RQ-1.md").read_text()
    assert text.startswith(before.replace("status: blocked", "status: ready").rstrip())
    assert text.rstrip().endswith("Keep the old name.\nAnd the tests.")
    assert "## Sent back on 20" in text
    assert bench.status() == "ready"
    assert bench.locks() == []
    again = bench.run()
    assert again["run_id"] != done["run_id"]
    told = bench.agent.last("planner")
    assert told["feedback"][0]["reason_code"] == "SENT_BACK"
    assert "Keep the old name." in told["feedback"][0]["summary"]
    assert "Keep the old name." in told["request"]["body"]
    assert bench.aiflow.json("accept", "RQ-1")["run_id"] == again["run_id"]


@pytest.mark.spec("REQ-6")
def test_a_question_can_be_sent_back_too_and_answers_are_not_asked_again(bench: Bench) -> None:
    bench.agent.does("implementer", "ask('Which one?')")
    bench.run(code=5)
    bench.aiflow.json("send-back", "RQ-1", "-m", "Forget it, do the other thing")
    assert (bench.stage()["state"], bench.status()) == ("FAILED", "ready")
    bench.agent.does("implementer", "write('x', 'x'); done()")
    assert bench.run()["state"] == "DONE"


@pytest.mark.spec("REQ-6")
def test_what_is_accepted_or_empty_is_not_sent_back(bench: Bench) -> None:
    finish(bench, *AUTO)
    assert bench.aiflow.json("send-back", "RQ-1", "-m", "x", code=4)["error"]["reason_code"] == "RUN_NOT_ACCEPTABLE"
    assert bench.status() == "done"
    assert bench.aiflow.json("send-back", "RQ-1", "-m", " \n", code=2)["error"]["reason_code"] == "INPUT_INVALID"
    told = bench.aiflow("--lang", "ja", "send-back", "RQ-1", "-m", "", code=2).stderr
    assert "コメントが空です" in told
    bench.aiflow("send-back", "RQ-1", code=2)


@pytest.mark.spec("SEL-4", "REQ-6")
def test_a_failed_run_does_not_stand_before_the_one_that_was_done_after_it(bench: Bench) -> None:
    finish(bench)
    bench.aiflow.json("send-back", "RQ-1", "-m", "again")
    stage = bench.folder() / "stage.json"
    data = json.loads(stage.read_text())
    data["error"]["reason_code"], data["error"]["cause"] = "INTERNAL_ERROR", None
    stage.write_text(json.dumps(data))
    second = bench.run()
    assert (second["state"], second["replaces"]) == ("DONE", bench.run_ids()[0])
    assert bench.stage(run_id=bench.run_ids()[0])["replaced_by"] == second["run_id"]
    assert why(bench)["stations"][0]["commands"] == ["aiflow accept RQ-1"]
    bench.aiflow.json("accept", "RQ-1")


def _pids_below(folder: Path) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.readlink(f"/proc/{name}/cwd").startswith(str(folder)):
                    found.append(int(name))
            except OSError:
                continue
    return found


@pytest.mark.faults
@pytest.mark.spec("AGT-5", "GIT-3")
def test_tests_of_a_merge_that_leave_something_running_leave_nothing(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "case $PWD in *.merge) setsid sleep 300 & sleep 0.1;; esac; true"')
    finish(bench)
    bench.aiflow.json("accept", "RQ-1")
    assert _pids_below(bench.state) == []
    assert (
        subprocess.run(["git", "worktree", "list"], cwd=bench.root, capture_output=True, check=True).stdout.count(
            b".merge"
        )
        == 0
    )


# --- what somebody changed behind our back ---------------------------------------------------------------------------


@pytest.mark.spec("GIT-3", "GIT-1")
def test_an_edited_run_file_leads_nowhere_else(bench: Bench, tmp_path: Path) -> None:
    bench.configure('[tests]\nunit = "true"')
    finish(bench)
    for name in ("docs", "docs.merge"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").write_text("mine")
    stage = bench.folder() / "stage.json"
    before = bench.worktree()
    text = stage.read_text().replace(str(before), str(tmp_path / "docs")).replace("aiflow/RQ-1/", "precious/")
    stage.write_text(text)
    bench.git("branch", "precious/x")
    accepted = bench.aiflow.json("accept", "RQ-1")
    assert accepted["accepted_as"] == bench.git("rev-parse", "main")
    assert [(tmp_path / name / "precious").read_text() for name in ("docs", "docs.merge")] == ["mine", "mine"]
    assert not before.exists()


@pytest.mark.faults
@pytest.mark.spec("GIT-3", "GIT-5")
@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
def test_changes_that_git_was_told_to_look_away_from_are_not_lost(bench: Bench, flag: str) -> None:
    finish(bench)
    tree = bench.worktree()
    git(tree, "update-index", flag, "aiflow.toml")
    (tree / "aiflow.toml").write_text("mine")
    refused = bench.aiflow.json("accept", "RQ-1", code=6)["error"]
    assert (refused["reason_code"], "aiflow.toml" in json.dumps(refused)) == ("WORKTREE_DIRTY", True)
    assert (tree / "aiflow.toml").read_text() == "mine"


@pytest.mark.spec("GIT-3")
def test_a_branch_that_was_set_back_is_not_taken_for_work_that_is_in(bench: Bench) -> None:
    done = finish(bench)
    bench.git("worktree", "remove", "--force", str(bench.worktree()))
    bench.git("branch", "-f", done["branch"], "main")
    refused = bench.aiflow.json("accept", "RQ-1", code=4)
    assert (refused["reason_code"], bench.status()) == ("RUN_NOT_ACCEPTABLE", "blocked")
    bench.git("branch", "-f", done["branch"], done["steps"][-1]["commit"])
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"]


@pytest.mark.spec("GIT-3")
def test_what_is_committed_on_the_branch_while_the_merge_is_tested_comes_in_too(bench: Bench) -> None:
    bench.configure(
        '[tests]\nunit = "case $PWD in *.merge) touch ../testing; while ! test -e ../go; do sleep 0.02; done;; esac"'
    )
    finish(bench)
    tree = bench.worktree()
    process = bench.start("accept", "RQ-1", "--json")
    wait_until((tree.parent / "testing").exists)
    (tree / "late.txt").write_text("late\n")
    git(tree, "add", "late.txt")
    git(tree, "commit", "-qm", "late")
    (tree.parent / "go").touch()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert bench.git("show", "main:late.txt") == "late"
