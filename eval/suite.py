"""The tasks: a small project, a request each, hidden tests that judge the result, and a solution that passes them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
PROJECT, TASKS = HERE / "project", HERE / "tasks"
VISIBLE = ("-m", "unittest", "discover", "-s", "tests", "-t", ".")
HIDDEN = ("-m", "unittest", "hidden_tests")
# A change that never ends has not solved its task.
JUDGE_SECONDS = 120
_FAILED = re.compile(r"^(?:FAIL|ERROR): (\S+)", re.MULTILINE)
_LEFT_OUT = shutil.ignore_patterns(".git", "__pycache__", "runs", ".aiflow")


class Task(NamedTuple):
    """One request to the project."""

    name: str

    @property
    def request(self) -> str:
        """What is asked for, as a user writes it."""
        return (TASKS / self.name / "request.md").read_text(encoding="utf-8")

    @property
    def solution(self) -> Path:
        """The files that a right solution changes, as it leaves them."""
        return TASKS / self.name / "solution"

    def judge(self, tree: Path, scratch: Path) -> Judgement:
        """Judge a tree by the tests that it began with and the hidden ones, in a copy that is made in `scratch`."""
        place = scratch / f"judged-{self.name}"
        shutil.copytree(tree, place, ignore=_LEFT_OUT)
        shutil.copytree(PROJECT / "tests", place / "tests", dirs_exist_ok=True)
        shutil.copyfile(TASKS / "hidden.py", place / "hidden.py")
        shutil.copyfile(TASKS / self.name / "hidden_tests.py", place / "hidden_tests.py")
        try:
            return Judgement((*_failures(place, VISIBLE), *_failures(place, HIDDEN)))
        finally:
            shutil.rmtree(place)


class Judgement(NamedTuple):
    """The tests that a result fails."""

    failed: tuple[str, ...]

    @property
    def is_solved(self) -> bool:
        """Whether it fails none."""
        return not self.failed


class CannotBeginError(Exception):
    """What was asked for cannot be done; the message says why."""


def tasks_named(names: tuple[str, ...]) -> tuple[Task, ...]:
    """Return the tasks of these names, all if there are none."""
    known = {path.parent.name: Task(path.parent.name) for path in sorted(TASKS.glob("*/request.md"))}
    if unknown := [name for name in names if name not in known]:
        raise CannotBeginError(f"no task is called {', '.join(unknown)}; there are {', '.join(known)}")
    return tuple(known[name] for name in names or known)


def lay_out(folder: Path, more: dict[str, str] | None = None) -> Path:
    """Make the throw-away repository: the project, and files by their paths, in one commit."""
    shutil.copytree(PROJECT, folder, ignore=_LEFT_OUT)
    for path, text in (more or {}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    for arguments in (
        ("init", "-q", "-b", "main"),
        ("config", "user.name", "Eval"),
        ("config", "user.email", "eval@example.invalid"),
        ("add", "-A"),
        ("commit", "-qm", "A small program"),
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    return folder


def tree_of(repository: Path, branch: str, scratch: Path) -> Path:
    """Write a branch's files into a folder of their own."""
    target = scratch / "result"
    target.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", branch], cwd=repository, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x"], cwd=target, input=archive, check=True)
    return target


def _failures(place: Path, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Run tests and name those that fail; what an agent wrote gets no variable of ours, and no more than its time."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(place), "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=place,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        said = process.communicate(timeout=JUDGE_SECONDS)[1]
    except subprocess.TimeoutExpired:
        return (f"{arguments[-1]}: took more than {JUDGE_SECONDS} s",)
    finally:
        end_group(process)
    failed = tuple(dict.fromkeys(_FAILED.findall(said)))
    return failed or (() if process.returncode == 0 else (f"exit code {process.returncode}",))


def end_group(process: subprocess.Popen[str]) -> None:
    """End a process and what it left running in its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
