"""What a new user meets first (CLI): guesses, advice and refusals that have to hold as they are printed."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from aiflow.cli.views.auto_lines import runs_text
from aiflow.messages import Texts
from builders import write_request
from conftest import Program

pytestmark = pytest.mark.spec("CLI")


DEMO = "agent.kind=demo"
ASKS = "\n```ask\nWhich colour?\n```\n"


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def shop(repository: Path) -> Path:
    """A repository with requests, and settings whose agent is not installed."""
    text = 'base_branch = "main"\n[agent]\nkind = "command"\nargv = ["/no/such/agent"]\n'
    (repository / "aiflow.toml").write_text(text)
    write_request(repository, "RQ-1", status="ready")
    write_request(repository, "ASK", status="ready")
    with (repository / "requests/ASK.md").open("a") as file:
        file.write(ASKS)
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        git(repository, "config", key, value)
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "Work")
    return repository


def advised(text: str, words: str) -> list[str]:
    """Return the words of the one command that is advised and has these in it."""
    found = re.findall(r"(?:→ |`|^ {4})aiflow ([^`\n]*)", text, re.MULTILINE)
    (line,) = dict.fromkeys(each for each in found if words in each)
    return shlex.split(line)


def test_the_advice_of_a_call_repeats_its_settings(shop: Path, aiflow: Program) -> None:
    way = advised(aiflow("-c", DEMO, "run", "ASK", code=5).stdout, "--answer")
    assert way == ["-c", DEMO, "resume", "ASK", "--answer", "…"]
    refused = aiflow("resume", "ASK", "-c", DEMO, code=5)
    assert advised(refused.stderr, "--answer") == way
    missing = aiflow("resume", "ASK", "--answer", "red", code=3).stderr
    assert advised(missing, DEMO) == ["-c", DEMO, "resume", "ASK"]
    aiflow(*way)
    assert advised(aiflow("run", "RQ-1", code=3).stderr, DEMO) == ["-c", DEMO, "run", "RQ-1"]


def test_what_waits_is_told_with_all_that_an_answer_needs(shop: Path, aiflow: Program) -> None:
    with (shop / "requests/RQ-1.md").open("a") as file:
        file.write("\n```ask\nWhich colour?\n- red\n- blue\n```\n")
    aiflow("run", "RQ-1", "-c", DEMO, code=5)
    told = aiflow("resume", "RQ-1", "-c", DEMO, code=5).stderr
    assert "  Which colour?\n    1. red\n    2. blue\n  → " in told
    aiflow("resume", "RQ-1", "-c", DEMO, "--answer", "2")
    assert re.search(r"^  RQ-1  NOTHING_CHANGED  \S", aiflow("status").stdout, re.MULTILINE)


def test_the_summary_of_an_auto_run_repeats_its_settings(shop: Path, aiflow: Program) -> None:
    way = advised(aiflow("auto", "-c", DEMO).stdout, "--answer")
    assert way == ["-c", DEMO, "resume", "ASK", "--answer", "…"]
    assert advised(aiflow("auto", "--last").stdout, "--answer") == ["resume", "ASK", "--answer", "…"]


@pytest.mark.spec("CFG", "GIT-4")
def test_init_installs_a_package_that_is_in_src(repository: Path, aiflow: Program) -> None:
    (repository / "src/mylib").mkdir(parents=True)
    (repository / "src/mylib/__init__.py").write_text("")
    (repository / "tests").mkdir()
    (repository / "tests/test_mylib.py").write_text("import mylib\n")
    (repository / "pyproject.toml").write_text('[project]\nname = "mylib"\nversion = "1"\n')
    settings = aiflow.json("init")["settings"]
    assert settings["worktree.setup"] == "python3 -m venv .venv && .venv/bin/python -m pip install -q -e ."
    assert settings["tests.unit"] == ".venv/bin/python -m unittest discover -q -s tests"


@pytest.mark.spec("REQ-6")
def test_what_is_new_in_a_worktree_is_committed_as_advised(shop: Path, aiflow: Program) -> None:
    aiflow("run", "RQ-1", "-c", DEMO)
    worktree = Path(aiflow.json("shell", "RQ-1")["worktree"])
    shell = shop.parent / "shell.sh"
    shell.write_text("#!/bin/sh\necho by hand > new.txt\n")
    shell.chmod(0o755)
    left = aiflow("shell", "RQ-1", env={"SHELL": str(shell)}).stderr.splitlines()[-1]
    assert left.endswith("then: aiflow accept RQ-1")
    assert "--keep-changes" not in left
    refused = aiflow("accept", "RQ-1", code=6).stderr
    lines = [f"git -C {worktree} {what}" for what in ("status", "add -A", "commit")]
    assert re.findall("→ (.*)", refused) == lines
    for line in lines[1:]:
        subprocess.run(
            shlex.split(line), check=True, capture_output=True, env={**aiflow.environ, "GIT_EDITOR": "echo Hand >"}
        )
    aiflow("accept", "RQ-1")
    assert git(shop, "show", "main:new.txt") == "by hand\n"
    aiflow("run", "ASK", "-c", DEMO, code=5)
    assert (
        "If you changed something, continue with it: aiflow resume ASK --keep-changes"
        in aiflow("shell", "ASK", env={"SHELL": "/bin/true"}).stderr
    )


@pytest.mark.spec("SEL-5")
def test_who_makes_ready_what_waits_is_told_how_it_goes_on(shop: Path, aiflow: Program) -> None:
    aiflow("run", "ASK", "-c", DEMO, code=5)
    for _ in range(2):  # also where it was ready already
        noted = aiflow("set", "ASK", "status=ready").stdout
        assert "ASK will not run (aiflow why ASK)" in noted
        assert advised(noted, "--answer") == ["resume", "ASK", "--answer", "…"]
    assert "Note" not in aiflow("set", "RQ-1", "status=ready").stdout
    assert "Note" not in aiflow("set", "ASK", "status=draft").stdout


@pytest.mark.spec("RUN-4", "RUN-5", "RUN-6")
def test_a_second_failure_in_a_row_advises_no_mere_repetition(shop: Path, aiflow: Program) -> None:
    failing = ("-c", DEMO, "-c", "tests.baseline=false", "-c", "tests.unit=false")
    aiflow(*failing, "run", "RQ-1", code=7)
    again = aiflow(*failing, "retry-step", "RQ-1", code=7).stdout
    assert advised(again, "replan") == [*failing, "replan", "RQ-1"]
    assert "retry-step" not in again
    assert "retry-step" not in aiflow("report", "RQ-1").stdout.split("RETRY_LIMIT_EXCEEDED")[-1]
    assert "REPLAN_REQUIRED" in aiflow("retry-step", "RQ-1", "S01", code=4).stderr
    unknown = aiflow("retry-step", "RQ-1", "S09", code=2).stderr
    assert "S09" in unknown
    assert "REPLAN_REQUIRED" not in unknown


@pytest.mark.spec("SEL-5")
def test_a_link_that_is_no_request_is_named_as_a_link(shop: Path, aiflow: Program) -> None:
    (shop / "requests/OUT.md").symlink_to("/etc/hostname")
    told = aiflow("why", "OUT").stdout
    assert "replace the link requests/OUT.md with the file itself" in told
    assert "editor" not in told


@pytest.mark.spec("ERR-1")
def test_a_mistake_in_a_call_is_named_as_it_was_made(shop: Path, aiflow: Program) -> None:
    assert "No run was found for RUN-nope" in aiflow("logs", "RUN-nope", code=2).stderr
    empty = aiflow("show", "", code=2).stderr
    assert "INPUT_INVALID" in empty
    assert "The id is empty." in empty
    missing = aiflow("locks", "break", "RQ-1", code=2)
    assert missing.stderr.startswith("LOCK_NOT_FOUND")
    assert missing.stdout == ""
    assert "[break" not in aiflow("locks", "nope", code=2).stderr
    outside = aiflow("init", "--requests-dir", "/tmp", code=2).stderr
    assert outside.startswith("INPUT_INVALID: --requests-dir: has to be a folder below the repository's root")
    assert "aiflow.toml" not in outside
    assert "-c: requests_dir" in aiflow("init", "-c", "requests_dir=/tmp", code=2).stderr
    edited = aiflow("edit", "RQ-1", code=2, env={"EDITOR": "false", "VISUAL": "false"}).stderr
    assert "or give the text with -F." in edited
    assert aiflow("new", code=2).stderr.startswith("INPUT_INVALID: Give a title")
    assert "use -F -." in aiflow("new", "It", "-b", "-", code=2).stderr
    shells = aiflow("completion", code=2).stderr.splitlines()
    assert shells[0].endswith("Choose from: bash, zsh, fish, man")


def test_one_run_is_one_run() -> None:
    assert [runs_text(count, Texts("en")) for count in (0, 1, "1/2")] == ["0 runs", "1 run", "1/2 runs"]


def test_what_click_and_the_views_say_is_japanese(shop: Path, aiflow: Program) -> None:
    edited = aiflow("--lang", "ja", "edit", "RQ-1", code=2, env={"EDITOR": "false", "VISUAL": "false"}).stderr
    assert "エディターを使えませんでした（false: 編集に失敗しました）" in edited
    aiflow("run", "RQ-1", "-c", DEMO)
    assert re.search("受け入れ待ちです（.*前）", aiflow("--lang", "ja", "why", "RQ-1").stdout)


@pytest.mark.spec("GIT-1")
def test_a_head_without_a_branch_is_told_in_the_persons_language(shop: Path, aiflow: Program) -> None:
    git(shop, "checkout", "-q", "--detach")
    (shop / "aiflow.toml").write_text('[agent]\nkind = "demo"\n')
    shown = {language: aiflow("--lang", language, "doctor", code=6).stdout for language in ("en", "ja")}
    assert "HEAD (detached)" in shown["en"]
    assert "HEAD（ブランチ以外）" in shown["ja"]
    assert "detached" not in shown["ja"]
