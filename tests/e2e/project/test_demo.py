"""The demo as a newcomer meets it (CLI `demo`): half a minute, no agent, no key, no identity, and everything works."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from doc_examples import Reader, fenced
from e2e.bench import git

ROOT = Path(__file__).parents[3]
PROGRAM = str(Path(sys.executable).parent / "aiflow")
LIMIT_SECONDS = 30.0


class Newcomer:
    """A person at a machine with git and Python, and with nothing set up."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.home, self.temporary = folder / "home", folder / "tmp"
        self.home.mkdir()
        self.temporary.mkdir()
        # Somewhere below a repository of theirs: the demo has nothing to do with it.
        self.theirs = self.home / "project"
        self.theirs.mkdir()
        git(self.theirs, "init", "-q")
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.temporary)}
        self.environ |= {"GIT_CONFIG_NOSYSTEM": "1", "LANG": "C", **environ}

    def types(self, *command: str, code: int = 0, **environ: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.theirs,
            env=self.environ | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        assert done.stderr == "" or code
        return done.stdout

    def sees(self, *command: str, code: int = 0) -> Any:
        return json.loads(self.types(PROGRAM, *command, "--json", code=code))

    @property
    def demo(self) -> Path:
        (made,) = self.temporary.iterdir()
        assert made.name.startswith("aiflow-demo-")
        return made

    def statuses(self) -> dict[str, str]:
        listed = self.sees("-C", str(self.demo), "list", "--all")["requests"]
        return {each["request_id"].removeprefix("TODO-"): each["status"] for each in sorted(listed, key=str)}

    def has_left_nothing_running(self) -> bool:
        """Look for processes that were started below this home."""
        mark = f"HOME={self.home}\0".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*/environ"):
            try:
                found += [process] if mark in process.read_bytes() else []
            except OSError:  # it is gone, or not ours
                continue
        return not found


def worked_seconds() -> float:
    """Return how long the processors worked for what we started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def suggested(output: str) -> list[str]:
    """Return the commands under "What to try next", as printed."""
    after = re.split(r"^(?:What to try next|次に試せること)$", output, flags=re.MULTILINE)[1]
    return re.findall(r"^ {4}(\S.*)$", after, re.MULTILINE)


def shows_as_readme(output: str) -> bool:
    """Tell whether the README's first screen shows the demo as it is."""
    first_screen = next(fenced((ROOT / "README.ja.md").read_text("utf-8"), "console")).splitlines()
    assert (first_screen[0], "…" in first_screen) == ("$ make demo", True)
    return Reader().sees(first_screen[1:], output)


@pytest.mark.timing
def test_the_demo_takes_half_a_minute(tmp_path: Path, allowed: Callable[[float], float]) -> None:
    newcomer = Newcomer(tmp_path, AIFLOW_LANG="ja")
    begun, worked = time.monotonic(), worked_seconds()
    newcomer.types(PROGRAM, "demo")
    assert worked_seconds() - worked < LIMIT_SECONDS
    assert time.monotonic() - begun < allowed(LIMIT_SECONDS)


@pytest.mark.faults
@pytest.mark.spec("AGT-1", "AUT-2", "AUT-3", "REQ-6", "RUN-4", "RUN-10", "SEL-2", "SEL-5", "SEL-6")
def test_the_demo_works_and_what_to_try_next_works_as_printed(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path, AIFLOW_LANG="ja", AIFLOW_AGENT_KIND="codex", AIFLOW_ACCEPT="manual")
    output = newcomer.types(PROGRAM, "demo")
    assert newcomer.has_left_nothing_running()
    assert str(newcomer.demo) in output.splitlines()[0]
    assert shows_as_readme(output)
    assert git(newcomer.theirs, "status", "--porcelain") == ""
    look_at_the_work(newcomer)

    commands = suggested(output)
    assert commands[0] == "unset AIFLOW_ACCEPT AIFLOW_AGENT_KIND"
    for command in ("list", "why", "resume", "logs", "auto", "forecast", "set"):
        assert any(each.startswith(f"aiflow {command}") for each in commands), command
    assert commands[-1].startswith("rm -rf ")
    answered = newcomer.types("bash", "-euo", "pipefail", "-c", "\n".join(commands[:-1]))
    assert log_shows_two_attempts(answered)
    assert "家賃を払う  （期日 2025-01-31）  期限切れ\n" in answered
    assert newcomer.statuses() == {**dict.fromkeys("1234567", "done"), "8": "draft"}
    assert "html" in (newcomer.demo / "todo.py").read_text("utf-8")
    newcomer.types("bash", "-c", commands[-1])
    assert list(newcomer.temporary.iterdir()) == []
    assert list((newcomer.home / ".local/state/aiflow").iterdir()) == []
    assert newcomer.has_left_nothing_running()


def look_at_the_work(newcomer: Newcomer) -> None:
    """See what one night has brought: in the order of selection, all but what waits for a person."""
    done = dict.fromkeys("1236", "done")
    assert newcomer.statuses() == {**done, "4": "blocked", "5": "ready", "7": "ready", "8": "draft"}
    merges = git(newcomer.demo, "log", "--first-parent", "--reverse", "--format=%s").splitlines()[1:]
    assert [merge.split()[1] for merge in merges] == ["TODO-6:", "TODO-2:", "TODO-3:", "TODO-1:"]
    assert len(git(newcomer.demo, "log", "--no-merges", "--format=%s", "main").splitlines()) == 7
    assert git(newcomer.demo, "status", "--porcelain", "--", ".", ":!requests") == ""


def log_shows_two_attempts(log: str) -> bool:
    return log.index("FAILED (failures=") < log.index("implementer S01 attempt 2") < log.index("\nOK\n")


def test_a_demo_that_is_only_made_can_be_run_by_hand(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    made = newcomer.sees("demo", "a demo", "--no-run")
    root = newcomer.theirs / "a demo"
    assert (made["root"], made["auto"]) == (str(root), None)
    assert made["next"][0]["commands"][-2:] == [f"cd '{root}'", "aiflow list --all"]
    assert made["next"][1]["commands"] == ["aiflow next", "aiflow forecast", "aiflow auto"]
    chosen = newcomer.sees("-C", str(root), "next")
    assert (chosen["next"]["request_id"], chosen["stats"]["total"]) == ("TODO-6", 8)
    never = newcomer.sees("-C", str(root), "forecast")["never"]
    assert {each["request_id"] for each in never} == {"TODO-7", "TODO-8"}
    assert newcomer.sees("-C", str(root), "run", "TODO-6")["state"] == "DONE"
    assert git(root, "log", "-1", "--format=%s") == "Merge TODO-6: A number that is not in the list must not crash"


@pytest.mark.spec("ERR-3")
def test_a_folder_that_is_in_use_or_out_of_reach_is_refused(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    (newcomer.theirs / "file").write_text("mine")
    for name in (".", "file"):
        error = newcomer.sees("demo", name, code=2)["error"]
        assert error["reason_code"] == "FOLDER_IN_USE"
        assert error["context"]["path"] == str((newcomer.theirs / name).resolve())
    assert newcomer.sees("demo", "file/demo", code=3)["error"]["reason_code"] == "IO_ERROR"
    assert newcomer.sees("demo", "new", "-c", "agent.knid=x", code=2)["error"]["reason_code"] == "SETTINGS_INVALID"
    assert sorted(path.name for path in newcomer.theirs.iterdir()) == [".git", "file"]
