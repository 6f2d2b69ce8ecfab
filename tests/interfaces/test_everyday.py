"""The commands of every day (CLI), called as a process on runs that an agent worked on."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from aiflow.adapters.locks.lease import LockLease
from aiflow.adapters.locks.taking import LockTaking
from aiflow.cli.terminal.layout import display_width
from aiflow.domain.request import RequestId
from builders import write_request
from conftest import Program
from e2e.scripted_agents import Agent
from interfaces.test_cli import in_terminal

pytestmark = pytest.mark.spec("CLI")


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


class Shop:
    """A repository in which a scripted agent works in two steps."""

    def __init__(self, root: Path, agent: Agent) -> None:
        self.root = root
        self.agent = agent

    def commit(self) -> None:
        """Commit everything."""
        git(self.root, "add", ".")
        git(self.root, "commit", "-q", "-m", "Work")


@pytest.fixture
def shop(repository: Path, tmp_path: Path) -> Shop:
    """A repository with one request."""
    made = Shop(repository, Agent(tmp_path / "agent", repository, "S01", "S02"))
    text = f'base_branch = "main"\n[agent]\nkind = "command"\nargv = ["{made.agent.path}"]\n'
    (repository / "aiflow.toml").write_text(text)
    write_request(repository, "RQ-1", status="ready")
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        git(repository, "config", key, value)
    made.commit()
    return made


def test_a_diff_in_a_pipe_is_a_patch_and_on_a_terminal_commands_nothing(shop: Shop, aiflow: Program) -> None:
    shop.agent.does("implementer", "write('greet.txt', 'hello\\tthere\\n\\x1b[31mred\\n'); done()", "S01")
    shop.agent.does("implementer", "write('more.txt', 'more\\n'); done()", "S02")
    aiflow("run", "RQ-1")
    patch = aiflow("diff", "RQ-1").stdout
    assert patch == aiflow("diff").stdout
    (shop.root.parent / "it.patch").write_bytes(patch.encode())
    git(shop.root, "apply", "--check", str(shop.root.parent / "it.patch"))
    assert "more.txt" in aiflow("diff", "RQ-1", "--step", "2").stdout
    assert "greet.txt" not in aiflow("diff", "RQ-1", "--step", "S02").stdout
    assert aiflow("diff", "--stat").stdout.splitlines()[1:] == [
        "  Files changed: 2, lines added: 3, deleted: 0",
        "ADDED  DELETED  FILE",
        "+2     -0       greet.txt",
        "+1     -0       more.txt",
    ]
    shown = in_terminal(shop.root, "diff", "RQ-1")
    assert "\x1b[32m+more" in shown
    assert "\x1b[31mred" not in shown
    assert "�[31mred" in shown
    aiflow("diff", "RQ-1", "-s", "S09", code=2)
    aiflow("diff", "RQ-9", code=2)


def test_a_diff_names_what_it_cannot_show(shop: Shop, aiflow: Program) -> None:
    missing = aiflow("diff", code=2)
    assert "RUN_NOT_FOUND" in missing.stderr
    aiflow("run", "RQ-1")
    aiflow("send-back", "RQ-1", "-m", "No", "--fresh")
    aiflow("clean", "--now", "--unmerged", "-y")
    git(shop.root, "reflog", "expire", "--expire=now", "--all")
    git(shop.root, "gc", "-q", "--prune=now")
    gone = aiflow("diff", "RQ-1")
    assert gone.stdout == ""
    assert "no longer in this repository" in gone.stderr


def edited_by(shop: Shop, script: str) -> dict[str, str]:
    """An editor that does this to the file `$1`."""
    editor = shop.root.parent / "editor.sh"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o755)
    return {"EDITOR": str(editor)}


@pytest.mark.spec("REQ-3")
def test_an_edit_in_the_editor_keeps_what_was_changed_meanwhile(shop: Shop, aiflow: Program) -> None:
    path = shop.root / "requests/RQ-1.md"
    path.write_bytes(b"---\r\nid: RQ-1\r\nstatus: ready # mine\r\nowner: ada\r\n---\r\n# Title\r\n\r\nBody.\r\n")
    meanwhile = f"sed -i 's/^status: ready/status: blocked/' {path}"  # as a run does while the editor is open
    done = aiflow("edit", "RQ-1", env=edited_by(shop, f"{meanwhile}; sed -i 's/Body/Better body/; s/ada/bob/' $1"))
    assert "RQ-1 is saved." in done.stdout
    text = b"---\r\nid: RQ-1\r\nstatus: blocked # mine\r\nowner: bob\r\n---\r\n# Title\r\n\r\nBetter body.\r\n"
    assert path.read_bytes() == text
    assert list((shop.root / ".aiflow/drafts").iterdir()) == []
    assert "is unchanged" in aiflow("edit", "RQ-1", env=edited_by(shop, "true")).stdout
    last = aiflow.json("activity", "-n", "1")["activity"][0]
    assert (last["kind"], last["data"]) == ("request_edited", {"key": "text"})


@pytest.mark.spec("REQ-3")
@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [
        ("echo more >> {path}; echo mine >> $1", 4, "EDIT_CONFLICT"),
        ("sed -i s/ready/done/ {path}; sed -i s/ready/draft/ $1", 4, "EDIT_CONFLICT"),
        ("sed -i s/ready/wip/ $1", 2, "REQUEST_INVALID"),
        ("sed -i s/ready/running/ $1", 2, "STATUS_NOT_ALLOWED"),
        ("sed -i 's/status/id: RQ-2\\nstatus/' $1", 2, "REQUEST_INVALID"),
    ],
)
def test_an_edit_that_cannot_be_taken_overwrites_nothing_and_is_kept(
    shop: Shop, aiflow: Program, script: str, code: int, reason: str
) -> None:
    path = shop.root / "requests/RQ-1.md"
    failed = aiflow("edit", "RQ-1", code=code, env=edited_by(shop, f"{script.format(path=path)}; cp {path} {path}.now"))
    assert failed.stderr.startswith(reason)
    assert path.read_bytes() == Path(f"{path}.now").read_bytes()
    Path(f"{path}.now").unlink()
    (draft,) = (shop.root / ".aiflow/drafts").iterdir()
    assert f"aiflow edit RQ-1 -F .aiflow/drafts/{draft.name}" in failed.stderr
    if reason == "EDIT_CONFLICT":
        aiflow("edit", "RQ-1", "-F", str(draft))
        assert path.read_bytes() == draft.read_bytes()


def test_a_broken_request_can_be_mended_in_the_editor(shop: Shop, aiflow: Program) -> None:
    path = shop.root / "requests/RQ-1.md"
    path.write_text("---\nstatus: wip\n---\n# Title\n")
    aiflow("edit", "RQ-1", env=edited_by(shop, "sed -i s/wip/ready/ $1"))
    assert path.read_text() == "---\nstatus: ready\n---\n# Title\n"
    aiflow("edit", "RQ-9", code=2)
    assert "could not be used" in aiflow("edit", "RQ-1", code=2, env={"EDITOR": "/nonexistent"}).stderr


def finished(shop: Shop, aiflow: Program, *numbers: int) -> None:
    """Let runs finish that each write a file of their own, and the same one too."""
    shop.agent.plans("S01")
    (shop.root / "app.txt").write_text("app\n")
    for number in numbers:
        write_request(shop.root, f"RQ-{number}", status="ready")
    shop.commit()
    same = "write('app.txt', name + '\\n') if name in ('RQ-1', 'RQ-3') else None"
    shop.agent.does("implementer", f"name = call['request']['id']; write(name + '.txt', name); {same}; done()")
    for number in numbers:
        aiflow("run", f"RQ-{number}")


@pytest.mark.spec("REQ-6")
def test_everything_that_waits_is_accepted_and_what_cannot_be_stops_no_other(shop: Shop, aiflow: Program) -> None:
    assert aiflow("accept", "--all").stdout == "Nothing waits for acceptance.\n"
    for arguments in (["accept"], ["accept", "RQ-1", "--all"]):
        assert "Name one request or run, or use --all." in aiflow(*arguments, code=2).stderr
    finished(shop, aiflow, 1, 3, 2)
    shown = aiflow("accept", "--all", code=6).stdout
    lines = shown[shown.index("Accepted 2 of 3") :].splitlines()
    assert [line.split()[:2] for line in lines[2:5]] == [
        ["RQ-1", "merged"],
        ["RQ-3", "MERGE_CONFLICT"],
        ["RQ-2", "merged"],
    ]
    assert lines[5:] == ["  → aiflow resume RQ-3 --update"]
    assert {each["request_id"] for each in aiflow.json("list", "-s", "done")["requests"]} == {"RQ-1", "RQ-2"}
    again = aiflow.json("accept", "--all", code=6)
    assert (again["accepted"], [each["request_id"] for each in again["results"]]) == ([], ["RQ-3"])


@pytest.mark.spec("REQ-6", "RUN-19")
def test_a_person_at_a_terminal_sees_what_changed_and_is_asked_before_it_is_accepted(
    shop: Shop, aiflow: Program
) -> None:
    finished(shop, aiflow, 1, 2, 3)
    before = git(shop.root, "rev-parse", "main")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", in_terminal(shop.root, "accept", "RQ-1", typed=b"\n"))
    assert "Accept RQ-1 into main? [y/N]" in shown
    assert "Files changed: 2, lines added: 2, deleted: 1" in shown
    assert re.search(r"\+1 +-0 +RQ-1\.txt", shown)
    assert git(shop.root, "rev-parse", "main") == before
    shown = in_terminal(shop.root, "accept", "RQ-1", typed=b"y\n")
    assert "Accepted: merged into main as" in shown
    assert "[y/N]" not in in_terminal(shop.root, "accept", "RQ-2", "--yes")
    assert aiflow.json("show", "RQ-2")["status"] == "done"
    assert "[y/N]" not in in_terminal(shop.root, "accept", "RQ-2")  # it is accepted already
    shown = re.sub(r"\x1b\[[0-9;]*m", "", in_terminal(shop.root, "accept", "--all", typed=b"n\n"))
    assert re.search(r"RQ-3 +2 +\+2 +-1 ", shown)
    assert "Accept all of them (1)? [y/N]" in shown
    assert aiflow.json("show", "RQ-3")["status"] == "blocked"
    report = in_terminal(shop.root, "report", "RQ-3", columns=60)
    assert re.search(r"\x1b\[1mRole +Calls +Tokens +Cost +Time", report)  # its tables are drawn
    assert re.search(r"^planner +1 ", report, re.MULTILINE)
    assert "|--" not in report
    assert "|---" in aiflow("report", "RQ-3").stdout


@pytest.mark.spec("REQ-6", "LCK-7")
def test_one_that_somebody_works_on_is_named_and_the_others_are_accepted(shop: Shop, aiflow: Program) -> None:
    finished(shop, aiflow, 1, 2)
    lease = LockTaking(str(shop.root), 1800.0).acquire_request(RequestId("RQ-1"), "RUN-somebody-s")
    assert isinstance(lease, LockLease)
    try:
        shape = aiflow.json("accept", "--all", code=4)
    finally:
        lease.release()
    assert [each["request_id"] for each in shape["results"]] == ["RQ-1", "RQ-2"]
    assert shape["results"][0]["error"]["reason_code"] == "RUN_IN_PROGRESS"
    assert shape["accepted"] == ["RQ-2"]


@pytest.mark.spec("GIT-3")
def test_a_conflict_is_resolved_and_accepted_in_one_go(shop: Shop, aiflow: Program) -> None:
    finished(shop, aiflow, 1, 3)
    aiflow("accept", "RQ-1", "--update")
    assert git(shop.root, "show", "main:app.txt") == "RQ-1\n"
    shop.agent.does("implementer", "write('app.txt', 'both\\n'); done()")
    shown = aiflow("accept", "RQ-3", "--update").stdout
    assert "Accepted: merged into main as" in shown
    assert git(shop.root, "show", "main:app.txt") == "both\n"
    assert aiflow.json("show", "RQ-3")["status"] == "done"


def test_runs_are_listed_with_time_cost_and_branch(shop: Shop, aiflow: Program) -> None:
    aiflow("run", "RQ-1")
    (stage,) = (shop.root / "runs/RQ-1").glob("*/stage.json")
    run_id, kept = stage.parent.name, json.loads(stage.read_text())
    began = datetime.fromisoformat(kept["created_at"])
    kept["usage"] |= {"cost_usd": 1.25, "input_tokens": 12_000}
    for number, line in enumerate(kept["history"], 1):  # twelve minutes of work
        line["at"] = (began + timedelta(seconds=12 * 60 * number / len(kept["history"]))).isoformat()
    stage.write_text(json.dumps(kept))
    branch = f"aiflow/RQ-1/{run_id}"
    header, line = aiflow("runs").stdout.splitlines()
    assert header.split() == ["RUN", "REQUEST", "STATE", "REASON", "TOOK", "COST", "CHANGED", "BRANCH"]
    assert re.fullmatch(rf"{run_id}  RQ-1     DONE           12 min  \$1\.25  .*  {branch}", line)
    (shape,) = aiflow.json("runs")["runs"]
    assert (shape["branch"], shape["worked_seconds"], shape["cost_usd"], shape["tokens"]) == (branch, 720, 1.25, 12_000)
    costs = aiflow.json("status", "--cost")
    assert [(line["request_id"], line["cost_usd"]) for line in costs["requests"]] == [("RQ-1", 1.25)]
    assert {line["role"]: line["agent_calls"] for line in costs["roles"]} == {
        "planner": 1,
        "implementer": 2,
        "qa": 2,
        None: 0,
    }
    assert costs["months"][0] == {"month": f"{began.astimezone():%Y-%m}", **costs["total"]}
    listed = aiflow("status", "--cost").stdout
    assert re.search(r"^RQ-1 +1 +5 +12\.0k +\$1\.25 ", listed, re.MULTILINE)
    assert re.search(r"^implementer +1 +2 ", listed, re.MULTILINE)
    for language in ("en", "ja"):
        shown = re.sub(r"\x1b\[[0-9;]*m", "", in_terminal(shop.root, "--lang", language, "runs")).splitlines()
        assert max(map(display_width, shown)) <= 80
        assert branch in shown[1]


def test_a_shell_opens_in_the_worktree_and_what_was_changed_there_goes_on(shop: Shop, aiflow: Program) -> None:
    shop.agent.does("implementer", "ask('Which?')", "S02")
    aiflow("run", "RQ-1", code=5)
    place = aiflow.json("shell", "RQ-1")
    assert (place["request_id"], place["is_worked_on"], place["state"]) == ("RQ-1", False, "NEEDS_INPUT")
    assert place["branch"] == f"aiflow/RQ-1/{place['run_id']}"
    shell = shop.root.parent / "shell.sh"
    shell.write_text("#!/bin/sh\npwd; echo by hand > hand.txt; exit 3\n")
    shell.chmod(0o755)
    opened = aiflow("shell", place["run_id"], env={"SHELL": str(shell)})
    assert opened.stdout == f"{place['worktree']}\n"
    assert "aiflow resume RQ-1 --keep-changes" in opened.stderr
    shop.agent.forget()
    aiflow("resume", "RQ-1", "-a", "This", "--keep-changes")
    assert "hand.txt" in aiflow("diff", "RQ-1", "--stat").stdout
    assert "cannot be started" in aiflow("shell", "RQ-1", code=2, env={"SHELL": "/nonexistent"}).stderr
    aiflow("accept", "RQ-1")
    aiflow("clean", "--now")
    refused = aiflow("shell", "RQ-1", code=6).stderr
    assert "WORKTREE_LOST" in refused
    assert f"{place['run_id']} is accepted: its work is in main as " in refused
    assert [line.strip() for line in refused.splitlines() if "→" in line] == [f"→ aiflow diff {place['run_id']}"]
    aiflow("shell", "RQ-9", code=2)


@pytest.mark.spec("REQ-6")
def test_a_run_that_changes_the_settings_says_so_and_so_does_its_acceptance(shop: Shop, aiflow: Program) -> None:
    shop.agent.does("implementer", "write('aiflow.toml', open('aiflow.toml').read() + '# more\\n'); done()", "S01")
    ended = aiflow("run", "RQ-1").stdout
    assert "SETTINGS_CHANGED: It changes aiflow.toml" in ended
    assert "aiflow diff RQ-1" in ended
    assert "SETTINGS_CHANGED" in aiflow.json("show", aiflow.json("shell", "RQ-1")["run_id"])["warnings"]
    assert "aiflow.toml" in aiflow("report", "RQ-1").stdout
    accepted = aiflow("accept", "RQ-1", "--lang", "ja").stdout
    assert "SETTINGS_CHANGED: aiflow 自身の設定 aiflow.toml が変わりました。" in accepted


@pytest.mark.spec("REQ-6")
def test_a_run_that_leaves_the_settings_alone_says_nothing_of_them(shop: Shop, aiflow: Program) -> None:
    assert "aiflow.toml" not in aiflow("run", "RQ-1").stdout
    assert "aiflow.toml" not in aiflow("accept", "RQ-1").stdout
