"""`aiflow next --json` is answered without click (PRF-1); the answer, and every refusal, is the command's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from builders import write_request

HEAVY = ("click", "inspect", "dataclasses", "aiflow.cli.main", "aiflow.domain.reasons", "pathlib", "yaml", "subprocess")


@pytest.fixture
def project(repository: Path) -> Path:
    write_request(repository, "RQ-1", status="ready", depends_on="[RQ-9]")
    write_request(repository, "RQ-2", status="ready", title='"直す: 画面"')
    write_request(repository, "RQ-3", status="ready")
    stage = {"state": "NEEDS_INPUT", "error": {"category": "EXECUTION", "reason_code": "UNIT_TEST_FAILED"}}
    folder = repository / "runs/RQ-3/RUN-20251214-000000-abcdef"
    folder.mkdir(parents=True)
    (folder / "stage.json").write_text(json.dumps(stage))
    return repository


def ask(folder: Path, *words: str) -> tuple[int, bytes, bytes]:
    done = subprocess.run([sys.executable, "-m", "aiflow", *words], cwd=folder, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


def as_it_is(root: Path) -> None:
    """Change nothing."""


def broken_request(root: Path) -> None:
    (root / "requests/RQ-4.md").write_text("---\nstatus: [ready\n---\n")


def mistaken_settings(root: Path) -> None:
    (root / "aiflow.toml").write_text('no_such = "setting"\n')


def another_folder(root: Path) -> None:
    (root / "aiflow.toml").write_text('requests_dir = "backlog"\nlanguage = "ja"\n')
    (root / "requests").rename(root / "backlog")


def no_requests(root: Path) -> None:
    (root / "requests").rename(root / "elsewhere")


def held_queue(root: Path) -> None:
    """Leave the lock of an auto-run whose process is gone."""
    (root / ".aiflow/locks").mkdir(parents=True)
    lock = {"lock_type": "queue", "pid": 2**22 + 1, "host": os.uname().nodename, "token": "x"}
    (root / ".aiflow/locks/queue.lock.json").write_text(json.dumps(lock))


@pytest.mark.spec("PRF-1", "SEL-3")
@pytest.mark.parametrize(
    "change",
    [as_it_is, broken_request, mistaken_settings, another_folder, no_requests, held_queue],
    ids=lambda change: change.__name__,
)
def test_the_short_way_says_what_the_long_one_says(project: Path, change: Callable[[Path], None]) -> None:
    change(project)
    assert ask(project, "next", "--json") == ask(project, "--json", "next")


@pytest.mark.spec("PRF-1", "PRF-6")
def test_the_answer_needs_neither_click_nor_what_only_runs_need(project: Path) -> None:
    script = (
        "import os, sys\n"
        "def leave(code):\n"
        "    print(*sys.modules, file=sys.stderr)\n"
        "    sys.exit(code)\n"
        "os._exit = leave\n"
        "sys.argv[1:] = ['next', '--json']\n"
        "from aiflow.cli.entry import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=project, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["next"]["request_id"] == "RQ-2"
    assert set(HEAVY) & set(done.stderr.split()) == set()


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&-", "| true"])
def test_a_stream_that_is_closed_is_no_trouble(project: Path, redirection: str) -> None:
    asked = (f"{sys.executable} -m aiflow {words} {redirection}" for words in ("next --json", "--json next"))
    short, long = (
        subprocess.run(["bash", "-c", line], cwd=project, capture_output=True, check=False) for line in asked
    )
    assert (short.returncode, short.stdout, short.stderr) == (long.returncode, long.stdout, long.stderr)
