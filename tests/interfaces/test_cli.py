"""The command line (CLI): called as a process, as its users do."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import forked
from aiflow import __version__
from aiflow.cli.main import COMMANDS
from aiflow.cli.terminal.layout import display_width
from aiflow.domain.backlog.selection import describe_holder
from aiflow.domain.lock import Lock
from builders import write_request
from conftest import Program
from real_engine import engine_at

REQUESTS = {
    "RQ-1": {"status": "ready", "priority": "P1", "updated_at": "2025-12-14T00:30:00+09:00"},
    "RQ-2": {"status": "ready", "priority": "P1", "updated_at": "2025-12-13T16:00:00Z"},
    "RQ-3": {"status": "ready", "priority": "P1", "updated_at": "2025-12-13"},
    "RQ-4": {"status": "blocked", "priority": "P0"},
    "RQ-5": {"status": "ready", "priority": "P0", "depends_on": "[RQ-4]"},
    "RQ-6": {"status": "ready", "priority": "P0", "depends_on": "[RQ-99]"},
    "RQ-7": {"status": "draft"},
    "RQ-8": {"status": "done"},
}
# More than any system counts to: no process has it.
NOBODY = 2**22 + 1


@pytest.fixture
def project(repository: Path) -> Path:
    for request_id, keys in REQUESTS.items():
        write_request(repository, request_id, **keys)
    stage = {
        "state": "NEEDS_INPUT",
        "error": {"category": "EXECUTION", "reason_code": "UNIT_TEST_FAILED"},
        "history": [{"at": "2025-12-14T00:00:00Z", "event": "NEEDS_INPUT"}],
    }
    folder = repository / "runs/RQ-4/RUN-20251214-000000-abcdef"
    folder.mkdir(parents=True)
    (folder / "stage.json").write_text(json.dumps(stage))
    return repository


def fingerprint(root: Path) -> dict[str, tuple[str, int, int]]:
    """Every file and folder below a root with its content, mode and time of change."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = (content, status.st_mode, status.st_mtime_ns)
    return found


# --- next ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("SEL-3", "CLI")
def test_next_is_the_seeds_result_to_the_letter(project: Path, aiflow: Program) -> None:
    assert aiflow.json("next") == {
        "next": {
            "request_id": "RQ-3",
            "priority": "P1",
            "status": "ready",
            "title": "RQ-3",
            "path": "requests/RQ-3.md",
        },
        "stats": {"total": 8, "ready": 5, "runnable": 3},
        "excluded": [
            {"request_id": "RQ-5", "reason_code": "DEPENDS_NOT_DONE", "detail": "depends_on: RQ-4 is not done"},
            {"request_id": "RQ-6", "reason_code": "DEPENDS_NOT_FOUND", "detail": "depends_on: RQ-99 does not exist"},
        ],
    }
    codes = [each["reason_code"] for each in aiflow.json("next", "--all")["excluded"]]
    assert codes == ["NOT_READY", "DEPENDS_NOT_DONE", "DEPENDS_NOT_FOUND", "NOT_READY", "NOT_READY"]


@pytest.mark.spec("SEL-3")
def test_next_is_null_when_nothing_is_runnable(repository: Path, aiflow: Program) -> None:
    write_request(repository, "RQ-1", status="draft")
    assert aiflow.json("next") == {"next": None, "stats": {"total": 1, "ready": 0, "runnable": 0}, "excluded": []}
    assert "Nothing is runnable." in aiflow("next").stdout
    assert "実行可能な Request はありません。" in aiflow("next", "--lang", "ja").stdout


@pytest.mark.spec("SEL-1", "SEL-3")
def test_locks_show_in_next_and_list(project: Path, aiflow: Program) -> None:
    locks = project / ".aiflow/locks"
    locks.mkdir(parents=True)
    (locks / "request.RQ-3.lock.json").write_text(json.dumps({"run_id": "RUN-1", "pid": NOBODY, "host": "127.0.0.1"}))
    answer = aiflow.json("next")
    assert answer["next"]["request_id"] == "RQ-1"
    assert {
        "request_id": "RQ-3",
        "reason_code": "REQUEST_LOCKED",
        "detail": f"locked by RUN-1, pid {NOBODY}, 127.0.0.1; the lock is stale, and the next start reclaims it",
    } in answer["excluded"]
    (locks / "queue.lock.json").write_text("")
    answer = aiflow.json("next")
    assert answer["next"]["request_id"] == "RQ-1"
    assert [e["request_id"] for e in answer["excluded"] if e["reason_code"] == "QUEUE_LOCKED"] == ["RQ-1", "RQ-2"]


@pytest.mark.spec("LCK-4", "QUE-5")
@pytest.mark.parametrize("written", ["", "{", json.dumps({"pid": 1, "host": "elsewhere", "token": "x", "fence": 1})])
def test_a_turn_that_nobody_gives_back_is_broken_by_its_name(project: Path, aiflow: Program, written: str) -> None:
    turn = project / ".aiflow/locks/turn.lock.json"
    turn.parent.mkdir(parents=True)
    turn.write_text(written)
    assert aiflow("locks").stdout.splitlines()[1].split()[0] == "turn"
    assert aiflow.json("locks", "break", "queue", code=2)["error"]["reason_code"] == "LOCK_NOT_FOUND"
    assert "Lock of turn broken" in aiflow("locks", "break", "turn", "--yes").stdout
    assert not turn.exists()
    assert aiflow.json("locks", "break", "turn", code=2)["error"]["reason_code"] == "LOCK_NOT_FOUND"
    assert '"asked":"break"' in (project / ".aiflow/activity/00000001.jsonl").read_text().replace(" ", "")


@pytest.mark.spec("SEL-7", "QUE-5")
def test_whoever_is_about_to_start_something_is_named_by_all_who_say_what_is_next(
    project: Path, aiflow: Program
) -> None:
    turn = engine_at(project).locks.acquire_turn()
    assert not isinstance(turn, Lock)
    try:
        holder = describe_holder(turn.lock)
        told = f"a runner ({holder}) is about to start a run; no other run starts until that one has ended"
        for command in (("next",), ("why", "RQ-1")):
            assert f"RUN_IN_PROGRESS  {told}" in " ".join(aiflow(*command).stdout.split("\n    ")), command
        assert {"reason_code": "RUN_IN_PROGRESS", "detail": told} in aiflow.json("why", "RQ-1")["warnings"]
        assert f"  A runner ({holder}) is about to start a run" in aiflow("status").stdout.splitlines()
        assert aiflow.json("status")["turn"]["pid"] == os.getpid()
    finally:
        turn.release()
    assert "about to start" not in aiflow("next").stdout + aiflow("status").stdout + aiflow("why", "RQ-1").stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("run",), "INPUT_INVALID: 指定が必要です: 引数 'REQUEST'。\n"),
        (("logs", "RQ-1", "-n", "x"), "INPUT_INVALID: '-n' の値が正しくありません: 'x' は数値ではありません。\n"),
    ],
)
def test_mistyped_commands_are_explained_in_japanese(aiflow: Program, args: tuple[str, ...], told: str) -> None:
    assert aiflow("--lang", "ja", *args, code=2).stderr.startswith(told)


@pytest.mark.spec("REQ-4")
@pytest.mark.parametrize(
    ("metadata", "english", "japanese"),
    [
        ("title: a: b", "a value that contains ': ' needs quotes", "コロンと空白を含む値は引用符で囲み"),
        ("title: 'abc", "a quotation mark is not closed", "引用符が閉じられていません"),
        ("labels: [a, b", "a bracket is not closed", "かっこが閉じられていません"),
        ("title: @x", "begins with @", "「@」「`」「%」やタブで始まる値"),
        ("title: x\n\tpriority: P1", "with spaces, not tabs", "タブではなく空白"),
        ("title: [a] b", "did not find expected key", "did not find expected key"),
    ],
)
def test_the_usual_mistakes_in_metadata_are_told_in_plain_words(
    project: Path, aiflow: Program, metadata: str, english: str, japanese: str
) -> None:
    write_request(project, "RQ-9", f"---\n{metadata}\n---\n# Title\n")
    assert english in aiflow("show", "RQ-9").stdout
    assert japanese in aiflow("--lang", "ja", "show", "RQ-9").stdout


@pytest.mark.spec("RUN-11")
def test_next_tells_what_was_interrupted_from_what_runs(project: Path, aiflow: Program) -> None:
    write_request(project, "RQ-9", "---\nstatus: running\n---\n# Nobody works on it\n")
    folder = project / "runs/RQ-9/RUN-20251214-000000-abcdef"
    folder.mkdir(parents=True)
    (folder / "stage.json").write_text('{"state": "TESTING"}')
    assert "RQ-9 was interrupted, and nothing is working on it:  aiflow run RQ-9" in aiflow("next").stdout
    shutil.rmtree(folder)
    lost = "RQ-9 was running, but its run can no longer be found:  aiflow set RQ-9 status=ready"
    assert lost in aiflow("next").stdout


@pytest.mark.spec("SEL-1", "SEL-2")
def test_the_answer_is_the_same_on_every_machine(
    project: Path, aiflow: Program, aiflow_in: Callable[[Path], Program]
) -> None:
    expected = [
        aiflow(command, *more).stdout
        for command, *more in (("next", "--json", "--all"), ("list", "--json"), ("forecast", "--json"))
    ]
    environments = [
        {"TZ": "Asia/Tokyo"},
        {"TZ": "America/Los_Angeles", "LC_ALL": "C"},
        {"LANG": "ja_JP.UTF-8", "PYTHONHASHSEED": "1"},
        {"AIFLOW_LANG": "ja", "PYTHONUTF8": "0", "LC_ALL": "POSIX"},
    ]
    for number, environment in enumerate(environments):
        other = project.parent / f"other-{number}"
        (other / "requests").mkdir(parents=True)
        names = sorted(os.listdir(project / "requests"))
        random.Random(number).shuffle(names)
        for name in names:  # another order of creation is another order in the directory
            shutil.copy(project / "requests" / name, other / "requests" / name)
        shutil.copytree(project / "runs", other / "runs")
        shutil.copytree(project / ".git", other / ".git")
        program = aiflow_in(other)
        found = [
            program(command, *more, env=environment).stdout
            for command, *more in (("next", "--json", "--all"), ("list", "--json"), ("forecast", "--json"))
        ]
        assert found == expected


@pytest.mark.spec("SEL-7", "CLI")
@pytest.mark.parametrize("is_json", [False, True])
def test_commands_that_only_read_change_nothing(project: Path, aiflow: Program, is_json: bool) -> None:
    (project / "requests/broken.md").write_text("---\n[\n---\n")
    (project / "aiflow.toml").write_text('language = "ja"\n')
    before = fingerprint(project)
    more = ["--json"] if is_json else []
    for command in (
        ["list"],
        ["status"],
        ["activity"],
        ["next"],
        ["next", "--all"],
        ["why", "RQ-5"],
        ["forecast"],
        ["show", "RQ-4"],
        ["show", "broken"],
        ["settings"],
        ["completion", "bash"],
        ["--help"],
        ["--version"],
    ):
        aiflow(*command, *(more if not command[0].startswith("-") else []))
    aiflow("show", "RQ-99", code=2)
    assert fingerprint(project) == before


# --- list, show, why, forecast ---------------------------------------------------------------------------------------


@pytest.mark.spec("CLI")
def test_list_is_in_selection_order_with_the_apis_shape(project: Path, aiflow: Program) -> None:
    (project / "requests/RQ-0.md").write_text("---\npriority: P9\n---\n")
    answer = aiflow.json("list", "--all")
    assert [each["request_id"] for each in answer["requests"]] == [f"RQ-{n}" for n in (4, 5, 6, 3, 1, 2, 7, 8)]
    first = answer["requests"][0]
    assert first["latest_run"]["reason_code"] == "UNIT_TEST_FAILED"
    assert {
        "request_id",
        "title",
        "status",
        "priority",
        "depends_on",
        "path",
        "labels",
        "created_at",
        "updated_at",
    } <= set(first)
    assert [each["is_next"] for each in answer["requests"]].index(True) == 3
    assert answer["invalid"] == [
        {
            "request_id": "RQ-0",
            "path": "requests/RQ-0.md",
            "reason_code": "REQUEST_INVALID",
            "problems": [{"line": 2, "message": "'P9' is not a priority: use one of P0, P1, P2, P3"}],
        }
    ]


@pytest.mark.spec("CLI")
def test_list_leaves_out_what_is_done_or_archived_unless_it_is_asked_for(project: Path, aiflow: Program) -> None:
    write_request(project, "RQ-9", status="archived")

    def listed(*options: str) -> set[str]:
        return {each["request_id"] for each in aiflow.json("list", *options)["requests"]}

    closed = {"RQ-8", "RQ-9"}
    assert listed("--all") - listed() == closed
    assert listed("-p", "P3") & closed == set()
    assert (listed("-s", "done"), listed("-s", "done", "-s", "archived")) == ({"RQ-8"}, closed)
    shown = aiflow("list").stdout
    assert "RQ-8" not in shown
    assert "\n7 of 9 shown, 3 runnable\n2 done or archived: aiflow list --all\n" in shown
    assert "--all" not in aiflow("list", "--all").stdout
    for request_id in REQUESTS:
        aiflow("set", request_id, "status=done")
    assert aiflow("list").stdout == "0 of 9 shown, 0 runnable\n9 done or archived: aiflow list --all\n"


def test_list_can_be_filtered(project: Path, aiflow: Program) -> None:
    write_request(project, "RQ-9", status="ready", labels="[ui, x]")
    assert [r["request_id"] for r in aiflow.json("list", "-l", "ui")["requests"]] == ["RQ-9"]
    assert [r["request_id"] for r in aiflow.json("list", "-s", "draft", "-s", "done")["requests"]] == ["RQ-7", "RQ-8"]
    assert [r["request_id"] for r in aiflow.json("list", "-p", "P0", "-s", "ready")["requests"]] == ["RQ-5", "RQ-6"]


@pytest.mark.spec("SEL-5")
def test_why_names_every_barrier_and_follows_to_the_roots(project: Path, aiflow: Program) -> None:
    write_request(project, "RQ-9", status="draft", depends_on="[RQ-5, RQ-98]")
    text = aiflow("why", "RQ-9").stdout
    assert "NOT_READY" in text
    assert "DEPENDS_NOT_FOUND" in text
    assert "DEPENDS_NOT_DONE" in text
    assert "RQ-5 waits for RQ-4, which is blocked: UNIT_TEST_FAILED, " in text
    assert "d ago" in text
    assert "→ aiflow retry-step RQ-4" in text
    assert "RQ-9 waits for RQ-98, which does not exist" in text
    answer = aiflow.json("why", "RQ-9")
    assert [(s["request_id"], s["depth"], s["waited_for_by"]) for s in answer["stations"]] == [
        ("RQ-9", 0, None),
        ("RQ-5", 1, "RQ-9"),
        ("RQ-4", 2, "RQ-5"),
        ("RQ-98", 1, "RQ-9"),
    ]
    assert answer["stations"][2]["commands"] == ["aiflow retry-step RQ-4"]


@pytest.mark.spec("SEL-5")
def test_why_of_a_runnable_request_says_its_place(project: Path, aiflow: Program) -> None:
    assert "RQ-3 runs next." in aiflow("why", "RQ-3").stdout
    assert "number 2 in the queue" in aiflow("why", "RQ-1").stdout
    assert "RQ-8 is done." in aiflow("why", "RQ-8").stdout
    assert aiflow.json("why", "RQ-3")["is_runnable"] is True


@pytest.mark.spec("SEL-5")
def test_why_of_a_request_a_draft_waits_for_is_mended_by_what_it_says(project: Path, aiflow: Program) -> None:
    command = aiflow.json("why", "RQ-7")["stations"][0]["commands"][0]
    assert command == "aiflow set RQ-7 status=ready"
    aiflow(*command.split()[1:])
    assert aiflow.json("why", "RQ-7")["is_runnable"] is True
    command = aiflow.json("why", "RQ-6")["stations"][0]["commands"][0]
    aiflow(*command.split()[1:])
    assert aiflow.json("why", "RQ-6")["is_runnable"] is True


@pytest.mark.spec("SEL-5", "REQ-4")
def test_files_that_share_an_id_are_found_under_every_name_they_have(project: Path, aiflow: Program) -> None:
    write_request(project, "copy", id="RQ-8", status="ready")
    for name in ("RQ-8", "copy"):
        assert "DUPLICATE_ID" in aiflow("why", name).stdout
        assert "requests/copy.md" in aiflow("show", name).stdout
    assert aiflow("why", "RQ-8").stdout.count("DUPLICATE_ID") == 2
    write_request(project, "RQ-9", status="archived")
    assert "→" not in aiflow("why", "RQ-9").stdout


@pytest.mark.spec("SEL-6")
def test_forecast_shows_order_and_what_is_never_reached(project: Path, aiflow: Program) -> None:
    write_request(project, "RQ-9", status="ready", priority="P0", depends_on="[RQ-1]")
    write_request(project, "RQ-a", status="running")
    answer = aiflow.json("forecast")
    assert [each["request_id"] for each in answer["running"]] == ["RQ-a"]
    assert [each["request_id"] for each in answer["order"]] == ["RQ-3", "RQ-1", "RQ-9", "RQ-2"]
    assert {each["request_id"]: each["reason_code"] for each in answer["never"]} == {
        "RQ-4": "NOT_READY",
        "RQ-5": "DEPENDS_NOT_DONE",
        "RQ-6": "DEPENDS_NOT_FOUND",
        "RQ-7": "NOT_READY",
    }
    assert "Not without you:" in aiflow("forecast").stdout


def test_show_has_metadata_runs_and_body(project: Path, aiflow: Program) -> None:
    answer = aiflow.json("show", "RQ-4")
    assert answer["runs"][0]["run_id"] == "RUN-20251214-000000-abcdef"
    assert answer["body"] == "\n# RQ-4\n\nBody of RQ-4.\n"
    text = aiflow("show", "RQ-4", "--lang", "ja").stdout
    assert "RUN-20251214-000000-abcdef  NEEDS_INPUT  UNIT_TEST_FAILED" in text
    assert "blocked（対応待ち）" in text


# --- init, new, set --------------------------------------------------------------------------------------------------


def test_init_makes_a_project_and_keeps_what_is_there(repository: Path, aiflow: Program) -> None:
    (repository / "deep/er").mkdir(parents=True)
    program = Program(repository / "deep/er")
    assert program.json("init")["made"] == ["aiflow.toml", "requests/EXAMPLE-1.md", "requests/EXAMPLE-2.md"]
    before = fingerprint(repository)
    again = aiflow.json("init")
    assert again["made"] == []
    assert fingerprint(repository) == before
    assert aiflow.json("next")["stats"] == {"total": 2, "ready": 0, "runnable": 0}
    assert aiflow.json("list")["invalid"] == []
    assert subprocess.run(["git", "status", "--porcelain"], cwd=repository, capture_output=True, text=True, check=True).stdout.split() == [
        "??", "aiflow.toml", "??", "requests/"
    ]  # fmt: skip


@pytest.mark.spec("CFG")
def test_init_says_what_it_chose_what_to_commit_and_which_root_it_takes(repository: Path, aiflow: Program) -> None:
    (repository / "services/api").mkdir(parents=True)
    (repository / "services/api/go.mod").write_text("module api\n")
    (repository / ".gitignore").write_text("/ignored/\n")
    (repository / "package.json").write_text("{}")
    inside = Program(repository / "services/api")
    shown = inside("init").stdout
    for line in (
        f"You are in services/api. aiflow works on the whole repository, so its files are in the root: {repository}",
        "Base branch: main",
        "Tests: cd services/api && go test ./...  (from services/api/go.mod)",
        "Set-up: cd services/api && go mod download  (from services/api/go.mod)",
        "Change any of this in aiflow.toml. `aiflow settings` lists all settings.",
        '  git add ../../aiflow.toml ../../requests && git commit -m "Set up aiflow" -- ../../aiflow.toml ../../requests',
    ):
        assert line in shown.splitlines()
    assert (repository / ".gitignore").read_text() == "/ignored/\n"
    assert "You are in" not in aiflow("init").stdout
    again = aiflow("init", "--tests", "make test")
    assert 'aiflow.toml already exists and was kept. Set tests.unit = "make test" there yourself.' in again.stderr
    (repository / "aiflow.toml").unlink()
    answer = inside.json("init", "--base", "dev", "--setup", "", "-c", "accept=auto")
    assert answer["settings"] == {
        **({"agent.kind": answer["agent"]["kind"]} if answer["agent"] else {}),
        "base_branch": "dev",
        "tests.unit": "cd services/api && go test ./...",
        "worktree.setup": "",
        "accept": "auto",
    }
    assert answer["found_by"] == {"tests.unit": "services/api/go.mod"}
    assert answer["commit"] == 'git add ../../aiflow.toml && git commit -m "Set up aiflow" -- ../../aiflow.toml'
    assert aiflow.json("settings", "accept")["settings"][0]["value"] == "auto"
    (repository / "aiflow.toml").unlink()
    commit = Program(repository.parent).json("-C", str(repository / "services"), "init")["commit"]
    assert (
        commit == f'git -C {repository} add aiflow.toml && git -C {repository} commit -m "Set up aiflow" -- aiflow.toml'
    )


@pytest.mark.spec("REQ-2")
def test_init_refuses_a_folder_that_holds_code_and_says_how_to_choose_another(
    repository: Path, aiflow: Program
) -> None:
    (repository / "requests").mkdir()
    (repository / "requests/__init__.py").write_text("")
    subprocess.run(["git", "add", "."], cwd=repository, check=True)
    before = fingerprint(repository)
    error = aiflow.json("init", code=2)["error"]
    assert error["reason_code"] == "REQUESTS_DIR_IN_USE"
    assert "requests/__init__.py" in aiflow("init", code=2).stderr
    assert fingerprint(repository) == before
    advised = re.findall("`aiflow (.*)`", error["actions"][0])[0]
    assert advised == "init --requests-dir backlog"
    assert aiflow.json(*advised.split())["made"][1] == "backlog/EXAMPLE-1.md"
    assert aiflow.json("list")["requests"][0]["path"] == "backlog/EXAMPLE-1.md"


@pytest.mark.spec("REQ-2")
def test_another_folder_of_requests_is_meant_by_every_command(repository: Path, aiflow: Program) -> None:
    (repository / "aiflow.toml").write_text('requests_dir = "docs/backlog"\n')
    assert aiflow.json("next", code=3)["error"]["reason_code"] == "REQUESTS_DIR_MISSING"
    assert aiflow.json("new", "T", "--id", "A", "-b", "x")["path"] == "docs/backlog/A.md"
    (repository / "docs/backlog/README.md").write_text("# How we write requests\n")
    assert [each["request_id"] for each in aiflow.json("list")["requests"]] == ["A"]
    aiflow("set", "docs/backlog/A.md", "status=ready")
    aiflow("set", "requests/A.md", "status=draft", code=2)
    assert aiflow.json("next")["next"]["path"] == "docs/backlog/A.md"
    assert aiflow.json("-c", "requests_dir=other", "next", code=3)["error"]["reason_code"] == "REQUESTS_DIR_MISSING"
    assert "README" in aiflow("new", "T", "--id", "ReadMe", "-b", "x", code=2).stderr


@pytest.mark.spec("REQ-2")
def test_new_makes_a_missing_folder(repository: Path, aiflow: Program) -> None:
    assert aiflow.json("new", "T", "--id", "A", "-b", "x")["path"] == "requests/A.md"
    assert aiflow.json("list")["requests"][0]["request_id"] == "A"


def test_init_sets_the_agent_that_a_flag_names(repository: Path, aiflow: Program) -> None:
    assert aiflow.json("init", "-c", "agent.kind=demo")["agent"]["kind"] == "demo"
    assert 'kind = "demo"' in (repository / "aiflow.toml").read_text()


def test_init_speaks_japanese(repository: Path, aiflow: Program) -> None:
    assert "次にすること" in aiflow("init", env={"LANG": "ja_JP.UTF-8"}).stdout
    assert "例: README にあいさつを書く" in (repository / "requests/EXAMPLE-1.md").read_text(encoding="utf-8")
    assert aiflow.json("list")["invalid"] == []


def test_init_outside_a_repository_is_refused(tmp_path: Path) -> None:
    assert Program(tmp_path).json("init", code=6)["error"]["reason_code"] == "NOT_A_REPOSITORY"
    assert os.listdir(tmp_path) == []


def test_new_creates_a_draft_with_everything_in_it(repository: Path, aiflow: Program) -> None:
    aiflow("init")
    made = aiflow.json(
        "new", "Fix: the [login] #page", "-p", "P0", "-d", "EXAMPLE-1,EXAMPLE-2", "-l", "a b", "-b", "Do it.\n"
    )
    assert made["request_id"].startswith("RQ-20")
    shown = aiflow.json("show", made["request_id"])
    assert (shown["title"], shown["status"], shown["priority"]) == ("Fix: the [login] #page", "draft", "P0")
    assert (shown["depends_on"], shown["labels"]) == (["EXAMPLE-1", "EXAMPLE-2"], ["a b"])
    assert shown["body"] == "\n# Fix: the [login] #page\n\nDo it.\n"
    assert shown["created_at"] == shown["updated_at"]
    assert aiflow.json("new", "Again", "-b", "x")["request_id"].endswith("-002")
    assert aiflow.json("new", "From stdin", "-F", "-", "--ready")["status"] == "ready"


def test_new_in_an_editor(repository: Path, aiflow: Program) -> None:
    aiflow("init")
    editor = repository.parent / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/priority: P2/priority: P0/; s/^# .*/# Written in the editor/' \"$1\"\n")
    editor.chmod(0o755)
    made = json.loads(aiflow("new", "--edit", "--json", env={"EDITOR": str(editor)}).stdout)
    assert made["priority"] == "P0"
    assert aiflow.json("show", made["request_id"])["title"] == "Written in the editor"


def test_a_request_broken_in_the_editor_is_kept_and_reported(repository: Path, aiflow: Program) -> None:
    aiflow("init")
    editor = repository.parent / "editor"
    editor.write_text("#!/bin/sh\nprintf -- '---\\npriority: P9\\n---\\nlong text\\n' > \"$1\"\n")
    editor.chmod(0o755)
    done = aiflow("new", "Title", "--edit", code=2, env={"EDITOR": str(editor)})
    assert "REQUEST_INVALID" in done.stderr
    assert "'P9' is not a priority" in done.stderr
    kept = [path for path in (repository / "requests").iterdir() if path.name.startswith("RQ-")]
    assert "long text" in kept[0].read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["new", "", "-b", "x", "--no-edit"], 2, "INPUT_INVALID"),
        (["new", "x" * 301, "-b", "x"], 2, "INPUT_INVALID"),
        (["new", "T", "--id", "../x", "-b", "x"], 2, "INPUT_INVALID"),
        (["new", "T", "--id", "RQ-1", "-b", "x"], 4, "REQUEST_EXISTS"),
        (["new", "T", "-d", "a b", "-b", "x"], 2, "INPUT_INVALID"),
        (["new", "T", "-b", "x", "-F", "-"], 2, "INPUT_INVALID"),
        (["new", "T", "-F", "/no/such/file"], 3, "IO_ERROR"),
        (["new", "T", "-p", "P9", "-b", "x"], 2, "INPUT_INVALID"),
        (["set", "RQ-1", "status=running"], 2, "STATUS_NOT_ALLOWED"),
        (["set", "RQ-1", "status=wip"], 2, "INPUT_INVALID"),
        (["set", "RQ-1", "status="], 2, "INPUT_INVALID"),
        (["set", "RQ-1", "priority=P9"], 2, "INPUT_INVALID"),
        (["set", "RQ-1", "updated_at=soon"], 2, "INPUT_INVALID"),
        (["set", "RQ-1", "depends_on=../x"], 2, "INPUT_INVALID"),
        (["set", "RQ-1", "title=a\nb"], 2, "INPUT_INVALID"),
        (["set", "RQ-1", "id=RQ-2"], 2, "INPUT_INVALID"),
        (["set", "RQ-1", "owner=me"], 2, "INPUT_INVALID"),
        (["set", "RQ-1", "status"], 2, "INPUT_INVALID"),
        (["set", "RQ-1"], 2, "INPUT_INVALID"),
        (["set", "RQ-99", "status=ready"], 2, "REQUEST_NOT_FOUND"),
        (["set", "../RQ-1", "status=ready"], 2, "REQUEST_NOT_FOUND"),
        (["set", "RQ-1", "status=ready", "--expect", "draft"], 4, "EDIT_CONFLICT"),
        (["set", "RQ-1", "priority=P0", "--expect", "P2"], 4, "EDIT_CONFLICT"),
        (["why", "RQ-99"], 2, "REQUEST_NOT_FOUND"),
        (["show", ""], 2, "INPUT_INVALID"),
        (["show", "\udc80"], 2, "REQUEST_NOT_FOUND"),
        (["nxt"], 2, "INPUT_INVALID"),
        (["next", "--nonsense"], 2, "INPUT_INVALID"),
        (["-c", "agent.knid=demo", "next"], 2, "SETTINGS_INVALID"),
        (["-C", "/no/such/folder", "next"], 3, "IO_ERROR"),
        (["-C", "/etc/passwd", "next"], 3, "PROJECT_NOT_FOUND"),
    ],
)
@pytest.mark.spec("ERR-1", "ERR-2", "ERR-3", "REQ-5", "CLI")
def test_bad_input_gets_a_reason_code_and_changes_nothing(
    project: Path, aiflow: Program, arguments: list[str], code: int, reason: str
) -> None:
    if "--expect" in arguments and "status=ready" in arguments:
        write_request(project, "RQ-1", status="blocked", priority="P1")
    before = fingerprint(project / "requests")
    error = aiflow.json(*arguments, code=code)["error"]
    assert error["reason_code"] == reason
    assert set(error) == {"category", "reason_code", "message", "detail", "context", "actions"}
    for language in ("en", "ja"):
        done = aiflow(*arguments, "--lang", language, code=code)
        assert done.stdout == ""
        assert done.stderr.startswith(f"{reason}: ")
        assert "→ " in done.stderr
        assert "<" not in done.stderr.replace("<id>", "").replace("<ID>", "")
    assert fingerprint(project / "requests") == before


@pytest.mark.spec("REQ-3", "REQ-5")
def test_set_changes_one_key_and_nothing_else(project: Path, aiflow: Program) -> None:
    path = project / "requests/RQ-1.md"
    path.write_bytes(b"\xef\xbb\xbf---\r\nstatus: ready # c\r\nx: [1,  2]\r\n---\r\nbody")
    assert aiflow.json("set", "RQ-1", "status=archived") == {
        "request_id": "RQ-1",
        "key": "status",
        "changed": True,
        "from": "ready",
        "to": "archived",
    }
    assert path.read_bytes() == b"\xef\xbb\xbf---\r\nstatus: archived # c\r\nx: [1,  2]\r\n---\r\nbody"
    assert aiflow.json("set", "RQ-1", "status", "archived")["changed"] is False
    assert aiflow.json("set", "RQ-1", "status=", "archived")["changed"] is False
    aiflow("set", "RQ-1", "depends_on", "[RQ-2, RQ-3]")
    aiflow("set", "RQ-1", "labels=")
    assert b"depends_on: [RQ-2, RQ-3]\r\nlabels: []\r\n---\r\nbody" in path.read_bytes()
    entries = [json.loads(line) for line in (project / ".aiflow/activity/00000001.jsonl").read_text().splitlines()]
    assert [(e["kind"], e["actor"], e["request_id"], e["data"]["key"]) for e in entries] == [
        ("status_changed", "person", "RQ-1", "status"),
        ("request_edited", "person", "RQ-1", "depends_on"),
        ("request_edited", "person", "RQ-1", "labels"),
    ]


@pytest.mark.spec("REQ-8")
def test_aiflow_edits_request_files_but_never_commits_or_stages_them(project: Path, aiflow: Program) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=project, capture_output=True, text=True, check=True
        ).stdout

    aiflow("init")
    git("add", ".")
    git("commit", "-qm", "start")
    (project / "requests/RQ-2.md").write_text("---\nstatus: draft\n---\n")
    git("add", "requests/RQ-2.md")
    before = git("rev-parse", "HEAD"), git("ls-files", "--stage"), git("stash", "list"), git("branch", "--list")
    aiflow("set", "RQ-1", "status=blocked")
    aiflow("set", "RQ-2", "status=ready")
    aiflow("new", "Another", "-b", "x", "--id", "RQ-new")
    assert (
        git("rev-parse", "HEAD"),
        git("ls-files", "--stage"),
        git("stash", "list"),
        git("branch", "--list"),
    ) == before
    changed = sorted(line for line in git("status", "--porcelain").splitlines())
    assert changed == [" M requests/RQ-1.md", "?? requests/RQ-new.md", "MM requests/RQ-2.md"]


@pytest.mark.spec("REQ-7")
def test_after_git_clean_everything_counts_as_never_run_and_goes_on(project: Path, aiflow: Program) -> None:
    aiflow("init")
    aiflow("set", "RQ-4", "status=ready")
    assert aiflow.json("next")["excluded"][0]["reason_code"] == "LATEST_RUN_NEEDS_INPUT"
    (project / "runs/.gitignore").write_text("*\n")  # as a run writes it
    subprocess.run(["git", "add", "."], cwd=project, check=True)
    subprocess.run(["git", "clean", "-fdxq"], cwd=project, check=True)
    assert not (project / "runs").exists()
    assert not (project / ".aiflow").exists()
    assert aiflow.json("next")["next"]["request_id"] == "RQ-4"
    assert aiflow.json("show", "RQ-4")["runs"] == []
    aiflow("set", "RQ-4", "status=done")
    assert aiflow.json("next")["next"]["request_id"] == "RQ-5"


@pytest.mark.spec("CFG")
def test_the_language_can_be_set_by_a_flag_like_any_setting(aiflow: Program) -> None:
    assert "使い方:" in aiflow("-c", "language=ja", "--help").stdout


def test_a_nested_repository_is_a_project_of_its_own(project: Path) -> None:
    (project / "aiflow.toml").write_text("")
    inner = project / "vendor/inner"
    (inner / "requests").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=inner, check=True)
    assert Program(inner).json("next")["stats"]["total"] == 0
    assert Program(project / "vendor").json("next")["stats"]["total"] == 8


# --- bad projects ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("REQ-4", "ERR-3")
def test_no_requests_folder_and_no_project(tmp_path: Path, repository: Path, aiflow: Program) -> None:
    for command in (
        ["next"],
        ["list"],
        ["forecast"],
        ["why", "X"],
        ["show", "X"],
        ["set", "X", "status=ready"],
    ):
        assert aiflow.json(*command, code=3)["error"]["reason_code"] == "REQUESTS_DIR_MISSING"
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        assert Program(elsewhere).json(*command, code=3)["error"]["reason_code"] == "PROJECT_NOT_FOUND"
    assert os.listdir(elsewhere) == []


@pytest.mark.spec("REQ-4")
def test_every_kind_of_broken_file_is_listed_and_the_rest_goes_on(project: Path, aiflow: Program) -> None:
    folder = project / "requests"
    write_request(project, "yaml", "---\nstatus: [\n---\n")
    write_request(project, "tab", "---\nstatus: ready\n\tpriority: P1\n---\n")
    write_request(project, "renamed", id="RQ-77", status="ready")
    write_request(project, "a b", status="ready")
    write_request(project, "slash", id="a/b")
    write_request(project, "dots", id="..")
    write_request(project, "copy", id="RQ-8", status="ready")
    write_request(project, "self", status="ready", depends_on="[self]")
    write_request(project, "c1", status="ready", depends_on="[c2]")
    write_request(project, "c2", status="ready", depends_on="[c3]")
    write_request(project, "c3", status="ready", depends_on="[c1]")
    write_request(project, "status", status="wip")
    write_request(project, "p9", priority="P9")
    write_request(project, "string", depends_on="RQ-1")
    write_request(project, "empty", "")
    write_request(project, "binary", b"\x00\x01")
    (folder / "link.md").symlink_to("/etc/hostname")
    (folder / "x.md").mkdir()
    answer = aiflow.json("next")
    assert answer["next"]["request_id"] == "RQ-3"
    found = {each["request_id"]: (each["reason_code"], each["detail"]) for each in answer["excluded"]}
    invalid = {i for i, (code, _) in found.items() if code == "REQUEST_INVALID"}
    assert invalid == {
        "yaml",
        "tab",
        "renamed",
        "a b",
        "slash",
        "dots",
        "status",
        "p9",
        "string",
        "empty",
        "binary",
        "link",
        "x",
    }
    assert found["RQ-8"] == ("DUPLICATE_ID", "requests/copy.md: the same id is used by requests/RQ-8.md")
    assert found["self"] == ("DEPENDS_CYCLE", "depends_on forms a cycle: self -> self")
    assert found["c2"] == ("DEPENDS_CYCLE", "depends_on forms a cycle: c2 -> c3 -> c1 -> c2")
    assert found["tab"][1].startswith("requests/tab.md: line 3: ")
    assert found["string"][1] == "requests/string.md: line 2: depends_on has to be a list: write [RQ-1]"
    for language in ("en", "ja"):
        text = aiflow("list", "--lang", language).stdout
        assert "invalid" in text
        assert aiflow("show", "p9", "--lang", language).stdout
        assert aiflow("why", "p9", "--lang", language).stdout


@pytest.mark.spec("CFG")
def test_settings_are_checked_by_every_command(project: Path, aiflow: Program) -> None:
    (project / "aiflow.toml").write_text("[agent]\nkind = 'x'\n")
    for command in (
        ["next"],
        ["list"],
        ["set", "RQ-1", "status=done"],
        ["new", "T", "-b", "x"],
        ["init"],
        ["settings"],
    ):
        done = aiflow(*command, code=2)
        assert "aiflow.toml:2: agent.kind: 'x' is not one of" in done.stderr


@pytest.mark.spec("CFG")
def test_the_settings_command_says_where_each_comes_from(project: Path, aiflow: Program) -> None:
    (project / "aiflow.toml").write_text("[limits]\nstep_files = 3\n")
    answer = aiflow.json("-c", "git.push=true", "settings", "--changed", env={"AIFLOW_ACCEPT": "auto"})["settings"]
    assert {each["name"]: (each["value"], each["source"]) for each in answer} == {
        "accept": ("auto", "environment"),
        "limits.step_files": (3, "file"),
        "git.push": (True, "flag"),
    }
    assert "AIFLOW_LANG" in {each["environment"] for each in aiflow.json("settings")["settings"]}


# --- a terminal, a pipe, a closed pipe -------------------------------------------------------------------------------


def in_terminal(
    cwd: Path, *arguments: str, columns: int = 80, env: dict[str, str] | None = None, typed: bytes = b""
) -> str:
    """Run the program with a terminal of its own, in which something is typed, and return what it showed."""
    program = Program(cwd)
    main, terminal = pty.openpty()
    os.write(main, typed)
    environ = {**program.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), **(env or {})}
    assert forked.can_fork(environ)
    process = forked.Process([*arguments], str(cwd), environ, stdin=terminal, out=terminal)
    shown = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([main], [], [], 0.1)
        try:
            chunk = os.read(main, 65536) if ready else b""
        except OSError:
            break
        shown += chunk
        if not chunk and process.poll() is not None:
            break
    process.wait(timeout=60)
    os.close(main)
    return shown.decode()


@pytest.mark.spec("CLI")
@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_tables_fit_a_terminal(project: Path, columns: int, language: str) -> None:
    write_request(project, "RQ-title", "---\nstatus: ready\n---\n# " + "とても長い題名" * 20 + "\n")
    shown = in_terminal(project, "--lang", language, "list", columns=columns)
    assert "\x1b[" in shown
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert max(display_width(line) for line in lines) <= columns
    assert "Traceback" not in shown


@pytest.mark.spec("ERR-4", "CLI")
def test_the_journal_is_shown_newest_last_and_by_what_it_is_about(project: Path, aiflow: Program) -> None:
    aiflow("set", "RQ-1", "priority=P0")
    aiflow("set", "RQ-2", "status=draft")
    aiflow("set", "RQ-1", "status=draft")
    lines = aiflow("activity").stdout.splitlines()
    assert [re.sub(r"^[-\d]{10} [:\d]{8}  ", "", line) for line in lines] == [
        "person        RQ-1  priority: P1 → P0",
        "person        RQ-2  status: ready → draft",
        "person        RQ-1  status: ready → draft",
    ]
    assert aiflow("activity", "-n", "1").stdout.splitlines() == lines[-1:]
    assert aiflow("activity", "RQ-1").stdout.splitlines() == [lines[0], lines[2]]
    assert aiflow("activity", "-k", "request_edited").stdout.splitlines() == lines[:1]
    assert aiflow("activity", "-a", "runner").stdout == "Nothing is recorded.\n"
    first = aiflow.json("activity", "-n", "2")
    assert [each["request_id"] for each in first["activity"]] == ["RQ-1", "RQ-2"]
    rest = aiflow.json("activity", "--before", first["next_cursor"])
    assert ([each["kind"] for each in rest["activity"]], rest["is_end"]) == (["request_edited"], True)


@pytest.mark.spec("ERR-4", "CLI")
def test_the_journal_is_followed(project: Path, aiflow: Program) -> None:
    aiflow("set", "RQ-1", "priority=P0")
    arguments = [sys.executable, "-m", "aiflow", "activity", "-f", "RQ-1", "--json"]
    with subprocess.Popen(
        arguments, cwd=project, env=aiflow.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        shown = [json.loads(process.stdout.readline())]
        aiflow("set", "RQ-2", "priority=P3")
        aiflow("set", "RQ-1", "priority=P3")
        shown.append(json.loads(process.stdout.readline()))
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("", "")  # quietly, as `tail -f`
        assert process.returncode == 0
    assert [each["data"]["to"] for each in shown] == ["P0", "P3"]


@pytest.mark.spec("CLI")
@pytest.mark.parametrize("language", ["en", "ja"])
def test_status_is_one_screen_however_much_there_is(project: Path, language: str) -> None:
    for number in range(20):
        for status in ("blocked", "ready"):
            write_request(project, f"RQ-{status}-{number}", f"---\nstatus: {status}\n---\n# {'とても長い題名' * 20}\n")
        shutil.copytree(project / "runs/RQ-4", project / f"runs/RQ-blocked-{number}")
    shown = in_terminal(project, "--lang", language, "status")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert len(lines) <= 20  # a run at work and an auto-run take three more
    assert max(display_width(line) for line in lines) <= 80
    for words in ("RQ-4", "aiflow retry-step RQ-4", "aiflow list -s blocked", "RQ-3"):
        assert words in shown


@pytest.mark.spec("CLI")
def test_ids_status_and_notes_are_never_cut_at_80_columns(project: Path) -> None:
    for number in (1, 2):
        write_request(
            project, f"RQ-20261116-00{number}", "---\nstatus: ready\npriority: P0\n---\n# " + "A long title " * 20
        )
    write_request(project, "RQ-20261116-003", status="blocked", depends_on="[RQ-20261116-001, RQ-20261116-002]")
    write_request(project, "ADHOC-01JCQ2N4M5T6W7X8Y9Z0A1B2C3", "---\nstatus: ready\n---\n# A prompt\n")
    shown = in_terminal(project, "list")
    for words in ("RQ-20261116-001", "RQ-20261116-003", "blocked", "▶ next", "#2", "ADHOC-01JCQ2N4M5T6W7X8Y9Z0A1B2C3"):
        assert words in shown


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_no_colours_where_none_are_wanted(project: Path, env: dict[str, str]) -> None:
    for command in ("list", "next", "forecast"):
        assert "\x1b[3" not in in_terminal(project, command, env=env)


def test_plain_text_in_a_pipe(project: Path, aiflow: Program) -> None:
    for command in (["list"], ["status"], ["next"], ["forecast"], ["why", "RQ-5"], ["show", "RQ-1"], ["settings"]):
        assert "\x1b" not in aiflow(*command).stdout


def test_texts_from_files_cannot_command_the_terminal(project: Path) -> None:
    write_request(
        project, "RQ-evil", "---\nstatus: ready\n---\n# \x1b]0;owned\x07\x1b[2J title\n\n\x1b[31mred\x1b[0m\n"
    )
    for command in (["list"], ["status"], ["next"], ["show", "RQ-evil"], ["why", "RQ-evil"], ["forecast"]):
        shown = in_terminal(project, *command)
        assert "\x1b]0;" not in shown
        assert "\x1b[2J" not in shown


def test_a_reader_that_leaves_is_no_error(project: Path) -> None:
    for number in range(300):
        write_request(project, f"RX-{number}", status="ready")
    program = Program(project)
    process = subprocess.Popen(
        [sys.executable, "-m", "aiflow", "list", "--json"],
        cwd=project,
        env=program.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0
    process.stderr.close()


@pytest.mark.spec("ERR-3")
def test_a_full_output_is_reported_without_a_traceback(project: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "aiflow", "list"],
            cwd=project,
            env=Program(project).environ,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert "DISK_FULL" in done.stderr
    assert "Traceback" not in done.stderr


# --- help, completion, language --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["init", "new", "list", "show", "next", "why", "forecast", "set", "settings", "completion"]
)
def test_help_is_there_in_both_languages(aiflow: Program, command: str) -> None:
    english, japanese = aiflow(command, "--help").stdout, aiflow("--lang", "ja", command, "-h").stdout
    assert english.startswith("Usage: aiflow ")
    assert japanese.startswith("使い方: aiflow ")
    for word in ("Options:", "Show this help", "option.", "cli."):
        assert word not in japanese
    assert "option." not in english


def test_help_lists_every_command(aiflow: Program) -> None:
    text = aiflow("--help").stdout
    assert re.findall(r"^  ([a-z][a-z-]+)  ", text, re.MULTILINE) == list(COMMANDS)
    assert len(text.split()) < 250
    assert "\nWhen a run stops or finishes:\n  resume " in text
    assert "\nバックログ:\n  new " in aiflow("--help", "--lang", "ja").stdout
    assert aiflow("--version").stdout == f"aiflow, version {__version__}\n"


def test_options_of_every_command_are_shown_once(aiflow: Program) -> None:
    for option in ("--lang", "--json", "-c KEY=VALUE"):
        assert option in aiflow("--help").stdout
        assert f"\n  {option}" not in aiflow("list", "--help").stdout
    assert "`aiflow --help`" in aiflow("list", "--help").stdout


def test_words_that_people_type_as_well_mean_a_command(repository: Path, aiflow: Program) -> None:
    assert aiflow("init").returncode == 0
    shown = aiflow("new", "Sort the list", "-b", "By title.", "--json")
    request_id = json.loads(shown.stdout)["request_id"]
    assert aiflow("ready", request_id).returncode == 0
    assert '"status": "ready"' in aiflow("show", request_id, "--json").stdout
    for alias, command in {"config": "settings", "reject": "send-back", "update": "resume", "store": "store"}.items():
        assert re.match(rf"Usage: aiflow (queue )?{command} ", aiflow(alias, "--help").stdout), alias
    assert "Did you mean 'ready'?" in aiflow("redy", request_id, code=2).stderr


def test_the_projects_language_holds_for_errors_and_help(repository: Path, aiflow: Program) -> None:
    (repository / "aiflow.toml").write_text('language = "ja"\n')
    assert "使い方:" in aiflow("--help").stdout
    assert "'lst' はありません。'list' のことですか？" in aiflow("lst", code=2).stderr
    assert "'queue lst' はありません。'list' のことですか？" in aiflow("queue", "lst", code=2).stderr
    assert "REQUESTS_DIR_MISSING" in aiflow("next", code=3).stderr
    assert "使い方" not in aiflow("--help", "--lang", "en").stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("aiflow why RQ-", {"RQ-1", "RQ-8"}),
        ("aiflow f", {"forecast"}),
        ("aiflow set RQ-1 st", {"status="}),
        ("aiflow set RQ-1 status=re", {"status=ready"}),  # zsh and fish
        ("aiflow set RQ-1 status = re", {"ready"}),  # bash cuts words at the =
        ("aiflow set RQ-1 status =", {"ready", "draft"}),
        ("aiflow set RQ-1 depends_on=RQ-2,RQ-", {"depends_on=RQ-2,RQ-3"}),
        ("aiflow set RQ-1 labels = t", set()),
        ("aiflow settings agent.k", {"agent.kind"}),
        ("aiflow list --st", {"--status"}),
    ],
)
def test_the_shell_completes_commands_options_and_requests(
    project: Path, aiflow: Program, words: str, expected: set[str]
) -> None:
    env = {"_AIFLOW_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = aiflow(env=env)
    offered = {line.split(",", 1)[1] for line in done.stdout.splitlines() if line}
    assert expected <= offered
    assert bool(offered) == bool(expected)


def test_without_a_command_the_help_is_shown(aiflow: Program) -> None:
    assert aiflow().stdout.strip() == aiflow("--help").stdout.strip()


def test_a_command_of_a_later_version_is_told_as_such(aiflow: Program) -> None:
    assert "'mcp' comes in a later version" in aiflow("mcp", code=2).stderr
    assert "今後のバージョン" in aiflow("--lang", "ja", "mcp", code=2).stderr


@pytest.mark.spec("CLI")
def test_json_may_stand_before_the_command(project: Path, aiflow: Program) -> None:
    assert json.loads(aiflow("--json", "next").stdout) == aiflow.json("next")


def test_an_unknown_id_gets_a_suggestion_and_a_file_is_as_good_as_an_id(project: Path, aiflow: Program) -> None:
    for command in (["show", "rq-3"], ["why", "RQ3"], ["set", "rq-3", "status=done"]):
        assert "Did you mean 'RQ-3'?" in aiflow(*command, code=2).stderr
    assert aiflow.json("show", "requests/RQ-3.md")["request_id"] == "RQ-3"
    assert "RQ-3 runs next." in aiflow("why", "RQ-3.md").stdout


def test_a_key_that_was_most_likely_misspelt_is_named(project: Path, aiflow: Program) -> None:
    write_request(project, "RQ-9", status="ready", depends="[RQ-1]", Priority="P0", owner="me")
    for command in ("why", "show"):
        text = aiflow(command, "RQ-9").stdout
        assert "line 3: 'depends' is not used by aiflow; did you mean depends_on?" in text
        assert "line 4: 'Priority' is not used by aiflow; did you mean priority?" in text
        assert "owner" not in text.split("Body")[0]


def test_a_dependency_that_can_never_be_met_is_told_at_once(project: Path, aiflow: Program) -> None:
    assert "Note: depends_on: NOPE does not exist" in aiflow("set", "RQ-1", "depends_on=NOPE").stdout
    assert "Note: depends_on forms a cycle" in aiflow("set", "RQ-1", "depends_on=RQ-1").stdout
    assert "Note" in aiflow("new", "T", "-b", "x", "-d", "NOPE").stdout
    assert "Note" not in aiflow("set", "RQ-1", "depends_on=RQ-8").stdout


def test_a_stamp_can_be_set_to_now(project: Path, aiflow: Program) -> None:
    aiflow("set", "RQ-3", "updated_at=now")
    assert aiflow.json("next")["next"]["request_id"] == "RQ-1"


def test_an_id_that_differs_only_in_case_is_taken(project: Path, aiflow: Program) -> None:
    error = aiflow.json("new", "T", "--id", "rq-1", "-b", "x", code=4)["error"]
    assert error["context"] == {"request_id": "RQ-1", "path": "requests/RQ-1.md"}


def test_what_was_written_in_the_editor_is_never_lost(project: Path, aiflow: Program) -> None:
    editor = project.parent / "editor"
    editor.write_text("#!/bin/sh\necho 'long work' >> \"$1\"\nexit 1\n")
    editor.chmod(0o755)
    done = aiflow("new", "Title", "--edit", code=2, env={"EDITOR": str(editor)})
    kept = next((project / ".aiflow/drafts").iterdir())
    assert f"What you wrote is kept in .aiflow/drafts/{kept.name}" in done.stderr
    assert "long work" in kept.read_text()
    assert "VISUAL or EDITOR" in aiflow("new", "T", "--edit", code=2, env={"EDITOR": "/no/such"}).stderr
    # Before the editor is opened, it is clear whether the id is free.
    editor.write_text("#!/bin/sh\ntouch opened\n")
    assert "REQUEST_EXISTS" in aiflow("new", "T", "--id", "RQ-1", "--edit", code=4, env={"EDITOR": str(editor)}).stderr
    assert not (project / "opened").exists()


def test_new_without_a_title_outside_a_terminal_is_refused(project: Path, aiflow: Program) -> None:
    for command in (["new"], ["new", ""], ["new", "-F", "-"], ["new", "--json"]):
        aiflow(*command, code=2, env={"EDITOR": f"touch {project}/opened"})
    assert not (project / "opened").exists()


def test_settings_can_be_asked_for_by_name(project: Path, aiflow: Program) -> None:
    assert aiflow("settings", "agent.kind").stdout.startswith('agent.kind  "claude-code"  (default)\n')
    shown = aiflow(
        "-c", "agent.kind=demo", "-c", "agent.roles.qa.model=m", "settings", "agent", "agent.roles.planner.kind"
    )
    assert 'agent.roles.planner.kind  "demo"' in shown.stdout  # what counts for the role, not the table's default
    roles = [line.split()[0] for line in shown.stdout.splitlines() if line.startswith("agent.roles.")]
    assert sorted(roles) == ["agent.roles.planner.kind", "agent.roles.qa.model"]
    assert {each["name"].split(".")[0] for each in aiflow.json("settings", "limits")["settings"]} == {"limits"}
    assert "There is no setting 'nope'." in aiflow("settings", "nope", code=2).stderr
    assert aiflow("settings", "--changed").stdout == "All settings are at their defaults.\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_printed(aiflow: Program, shell: str) -> None:
    assert "_AIFLOW_COMPLETE" in aiflow("completion", shell).stdout


def test_bash_accepts_the_completion_script(aiflow: Program) -> None:
    script = aiflow("completion", "bash").stdout
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.mark.spec("ERR-3")
def test_a_defect_of_our_own_is_reported_as_such(repository: Path, aiflow: Program) -> None:
    script = (
        "import sys\nimport aiflow.cli.session as session\n"
        "session.CliSession.project = property(lambda self: 1 / 0)\n"
        "sys.argv = ['aiflow', 'next']\nfrom aiflow.cli.main import main\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=repository, env=aiflow.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 9
    assert done.stderr.startswith("INTERNAL_ERROR: ")
    assert "ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.spec("ERR-3")
@pytest.mark.parametrize("call", [["-m", "aiflow"], [str(Path(sys.executable).parent / "aiflow")]])
def test_ctrl_c_while_it_still_imports_just_ends_it(aiflow: Program, tmp_path: Path, call: list[str]) -> None:
    (tmp_path / "click.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    environ = {**aiflow.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, *call, "next"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == -signal.SIGINT


@pytest.mark.spec("ERR-3")
def test_ctrl_c_before_its_command_has_begun_is_said_in_a_line(repository: Path, aiflow: Program) -> None:
    script = (
        "import os, signal, sys\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\nimport aiflow.cli.main as main\n"
        "main._require_platform = lambda: os.kill(os.getpid(), signal.SIGINT)\nmain.main(['next'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=repository, env=aiflow.environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Aborted.\n")
