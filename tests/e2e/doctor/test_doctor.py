"""The doctor (DOC-1, DOC-2): every check passes, warns or fails for its reason, and looking changes nothing."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from e2e.bench import Bench, tree_of
from waiting import wait_until

QUICK = ["file_system", "disk", "repository", "base_branch", "identity", "checkout", "origin", "agent", "tests"]


def checks(bench: Bench, *args: str, code: int = 0, env: dict[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """The doctor's checks by id; of several with one id the worst."""
    answer = json.loads(bench.aiflow(*args, "--json", code=code, env=env).stdout)
    assert set(answer) == {"mode", "result", "checks"}
    order = ["PASS", "WARN", "FAIL"]
    assert answer["result"] == max((each["result"] for each in answer["checks"]), key=order.index)
    found: dict[str, dict[str, Any]] = {}
    for each in answer["checks"]:
        assert set(each) == {"id", "result", "reason_code", "message", "evidence", "fix"}
        assert each["message"]
        if each["id"] not in found or order.index(each["result"]) > order.index(found[each["id"]]["result"]):
            found[each["id"]] = each
    return found


@pytest.mark.spec("DOC-1")
def test_a_healthy_checkout_passes_every_check(bench: Bench) -> None:
    bench.git("remote", "add", "origin", "git@github.com:o/n.git")
    bench.configure('[tests]\nunit = "true"')
    found = checks(bench, "doctor")
    assert list(found) == QUICK
    assert {each["result"] for each in found.values()} == {"PASS"}
    assert re.search(r" (?:\d+\.\d G|\d+ M)B", found["disk"]["message"])
    full = checks(bench, "doctor", "--full")
    assert list(full) == [*QUICK, "git", "locks", "runs", "requests"]
    assert {each["result"] for each in full.values()} == {"PASS"}


@pytest.mark.spec("DOC-1", "REQ-2")
def test_code_in_the_folder_of_the_requests_is_warned_of(bench: Bench) -> None:
    (bench.root / "requests/README.md").write_text("# What we want\n")
    (bench.root / "requests/adapters.py").write_text("x = 1\n")
    assert checks(bench, "doctor", "--full")["requests"]["result"] == "PASS"
    bench.commit()
    found = checks(bench, "doctor", "--full")["requests"]
    assert (found["result"], found["reason_code"]) == ("WARN", "REQUESTS_DIR_IN_USE")
    assert found["evidence"] == ["requests/adapters.py"]


@pytest.mark.spec("DOC-1", "GIT-2")
def test_what_only_warns(bench: Bench) -> None:
    (bench.root / ".gitmodules").write_text("")
    (bench.root / ".gitattributes").write_text("*.bin filter=lfs\n")
    bench.add_request("RQ-2", created_at="", updated_at="")
    (bench.root / "requests/RQ-3.md").write_text("---\nstatus: [\n---\n")
    bench.configure('[tests]\nunit = "no-such-test-program --all"')
    found = checks(bench, "doctor", "--full")
    expected = {"submodules", "lfs", "origin", "tests", "requests"}
    assert {name for name, each in found.items() if each["result"] == "WARN"} == expected
    assert found["origin"]["reason_code"] == "ORIGIN_MISSING"
    assert "no-such-test-program" in found["tests"]["message"]
    assert "RQ-3" in json.dumps(found["requests"])
    bench.git("remote", "add", "origin", "https://example.com/o/n")
    bench.configure()
    again = checks(bench, "doctor")
    assert again["origin"]["reason_code"] == "REMOTE_NOT_GITHUB"
    assert again["tests"]["result"] == "WARN"


@pytest.mark.spec("DOC-1", "SEC")
def test_a_notification_program_that_is_missing_only_warns_and_the_command_stays_unsaid(bench: Bench) -> None:
    assert "notify" not in checks(bench, "doctor")
    assert checks(bench, "doctor", env={"AIFLOW_NOTIFY_COMMAND": "cat > note"})["notify"]["result"] == "PASS"
    found = checks(bench, "doctor", env={"AIFLOW_NOTIFY_COMMAND": "no-such-notifier https://hooks.example/T0/s3cret"})
    assert found["notify"]["result"] == "WARN"
    assert "no-such-notifier" in found["notify"]["message"]
    assert "s3cret" not in json.dumps(found)
    assert found["notify"]["fix"] == "aiflow settings"


@pytest.mark.spec("DOC-1", "CLI")
def test_what_fails_names_its_reason_evidence_and_remedy(bench: Bench) -> None:
    bench.configure(argv=["no-such-agent"])
    (bench.root / "app.txt").write_text("mine\n")
    bench.git("config", "--unset", "user.name")
    bench.git("config", "user.useConfigOnly", "true")
    found = checks(bench, "-c", "base_branch=nowhere", "doctor", code=6)
    failed = {name: each["reason_code"] for name, each in found.items() if each["result"] == "FAIL"}
    assert failed == {
        "base_branch": "BASE_BRANCH_MISSING",
        "identity": "GIT_IDENTITY_MISSING",
        "checkout": "WORKTREE_DIRTY",
        "agent": "AGENT_NOT_FOUND",
    }
    assert found["checkout"]["evidence"] == ["app.txt"]
    assert all(found[name]["fix"] for name in failed)
    only_agent = checks(bench, "-c", "git.dirty_checkout=warn", "doctor", code=6)
    assert only_agent["checkout"]["result"] == "WARN"


@pytest.mark.spec("DOC-1")
def test_a_repository_that_git_cannot_read_fails(bench: Bench) -> None:
    (bench.root / ".git/HEAD").write_text("nonsense\n")
    found = checks(bench, "doctor", code=6)
    assert found["repository"]["result"] == "FAIL"


@pytest.mark.spec("DOC-1")
def test_an_agent_that_this_version_does_not_drive_fails(bench: Bench) -> None:
    (bench.root / "aiflow.toml").write_text('[agent]\nkind = "codex"\n')
    found = checks(bench, "doctor", code=3)
    assert found["agent"]["result"] == "FAIL"
    assert bench.aiflow.json("run", "RQ-1", code=3)["error"]["reason_code"] == "AGENT_NOT_FOUND"


@pytest.mark.spec("DOC-2", "LCK-5", "RUN-11", "REQ-5")
def test_full_reclaims_stale_locks_and_marks_crashed_runs_and_says_so(bench: Bench) -> None:
    process = bench.start_hanging()
    alive = checks(bench, "doctor", "--full")
    assert alive["locks"]["result"] == alive["runs"]["result"] == "PASS"
    assert bench.status() == "running"
    process.kill()
    process.wait()
    wait_until(lambda: not list((bench.root / ".aiflow/guards").iterdir()))  # its guard ends what it left
    before = {**tree_of(bench.root), **tree_of(bench.state)}
    checks(bench, "doctor")
    assert {**tree_of(bench.root), **tree_of(bench.state)} == before

    found = checks(bench, "doctor", "--full")

    run_id = bench.run_ids()[0]
    assert (found["locks"]["result"], found["locks"]["reason_code"]) == ("WARN", "LOCK_STALE_RECOVERED")
    assert found["locks"]["evidence"] == ["RQ-1"]
    assert (found["runs"]["result"], found["runs"]["reason_code"]) == ("WARN", "PROCESS_CRASHED")
    assert found["runs"]["evidence"] == [f"RQ-1 {run_id}"]
    assert found["runs"]["fix"] == "aiflow resume RQ-1"
    assert bench.locks() == []
    stage = bench.stage()
    assert (stage["state"], stage["error"]["reason_code"]) == ("NEEDS_INPUT", "PROCESS_CRASHED")
    assert bench.status() == "blocked"
    assert "half.txt" in (bench.folder() / "S01.patch").read_text()
    assert bench.agent.roles.count("implementer S01") == 1  # full only marks
    assert "LOCK_STALE_RECOVERED" in bench.report()
    again = checks(bench, "doctor", "--full")
    assert again["locks"]["result"] == again["runs"]["result"] == "PASS"
    bench.agent.does("implementer", "done(open('half.txt').read())")
    assert bench.aiflow.json("resume", "RQ-1")["state"] == "DONE"


READING = [
    ["doctor"],
    ["doctor", "--json"],
    ["runs"],
    ["runs", "RQ-1", "--json"],
    ["show", "RQ-1"],
    ["logs", "RQ-1"],
    ["logs", "RQ-1", "-f"],
    ["logs", "RQ-1", "--json"],
    ["report", "RQ-1"],
    ["report", "RQ-1", "--json"],
    ["locks"],
    ["locks", "--json"],
    ["why", "RQ-1"],
    ["next", "--json"],
    ["list"],
    ["forecast"],
]


@pytest.mark.spec("CLI", "DOC-1", "SEL-7")
def test_commands_that_only_read_change_nothing(bench: Bench) -> None:
    for command in (["doctor"], ["runs"], ["locks"], ["list"]):  # also before aiflow ever wrote anything
        before = tree_of(bench.root)
        bench.aiflow(*command)
        assert tree_of(bench.root) == before, command
    bench.agent.does("implementer", "ask('?')")
    bench.run(code=5)
    before = {**tree_of(bench.root), **tree_of(bench.state)}
    for command in READING:
        bench.aiflow(*command)
        assert {**tree_of(bench.root), **tree_of(bench.state)} == before, command


PLACEHOLDER = re.compile(r"\{\w+\}|\b(?:check|doctor|event|run|runs|role|report|locks|verdict|column|fact)\.[a-z_.]+\b")


def assert_worded(text: str) -> None:
    """No key of a text and no placeholder is left in what a person reads."""
    without_files = re.sub(r"\S*/\S*|\S+\.(?:json|md|toml|txt|log|py)\b|`[^`]*`", "", text)
    assert not PLACEHOLDER.search(without_files), PLACEHOLDER.findall(without_files)


@pytest.mark.spec("DOC-1", "ERR-1", "CLI")
@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_doctor_speaks_both_languages(bench: Bench, language: str) -> None:
    (bench.root / ".gitmodules").write_text("")
    (bench.root / ".gitattributes").write_text("*.bin filter=lfs\n")
    (bench.root / "requests/RQ-3.md").write_text("---\nstatus: [\n---\n")
    bench.add_request("RQ-2", created_at="", updated_at="")
    bench.configure('[tests]\nunit = "no-such-program"\ne2e = "true"')
    warned = bench.aiflow("doctor", "--full", "--lang", language).stdout
    (bench.root / "app.txt").write_text("mine\n")
    bench.configure(argv=["no-such-agent"])
    bench.git("config", "--unset", "user.name")
    bench.git("config", "user.useConfigOnly", "true")
    failed = bench.aiflow("-c", "base_branch=x", "doctor", "--lang", language, code=6).stdout
    bench.git("update-ref", "-d", "HEAD")
    empty = bench.aiflow("doctor", "--lang", language, code=6).stdout
    for text in (warned, failed, empty):
        assert_worded(text)
        assert bool(re.search(r"[ぁ-んァ-ン一-龠]", text)) == (language == "ja")
    assert "app.txt" in failed


@pytest.mark.spec("DOC-1", "RUN-7", "ERR-3")
def test_a_state_directory_that_cannot_be_written_is_named_before_anything_changes(bench: Bench) -> None:
    file = bench.root.parent / "a-file"
    file.write_text("no folder")
    env = {"XDG_STATE_HOME": str(file / "state")}
    found = checks(bench, "doctor", code=3, env=env)["state"]
    assert (found["result"], found["reason_code"]) == ("FAIL", "IO_ERROR")
    assert str(file) in found["message"]
    bench.add_request("RQ-1")
    before = tree_of(bench.root)
    error = bench.aiflow.json("run", "RQ-1", code=3, env=env)["error"]
    assert (error["reason_code"], error["context"]["path"]) == ("IO_ERROR", str(file))
    assert error["context"]["problem"] == "Not a directory"
    after = tree_of(bench.root)
    assert {name: after.get(name) for name in before if name.startswith("requests/")} == {
        name: text for name, text in before.items() if name.startswith("requests/")
    }
    assert not any(name.startswith("runs/RQ-1") for name in after)


@pytest.mark.spec("DOC-2", "LCK-4", "AUT-1")
def test_full_counts_the_queue_lock_and_it_is_broken_by_the_name_it_is_listed_under(bench: Bench) -> None:
    bench.agent.does("implementer", "(HERE / 'hangs').touch(); time.sleep(600)")
    process = bench.start("auto", "--json")
    wait_until(lambda: (bench.agent.folder / "hangs").exists() or process.poll() is not None)
    assert bench.locks() == ["queue.lock.json", "request.RQ-1.lock.json"]
    assert "Locks held: 2" in bench.aiflow("doctor", "--full").stdout
    assert "queue" in bench.aiflow("locks", "break", "queue", "--yes").stdout
    assert bench.locks() == ["request.RQ-1.lock.json"]
    assert bench.aiflow.json("locks", "break", "queue", "--yes", code=2)["error"]["reason_code"] == "LOCK_NOT_FOUND"
    process.kill()
    process.communicate()
