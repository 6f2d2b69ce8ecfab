"""PRF-1's peer: microbeads, which keeps one JSON file per issue and answers `ready` from a cache file of its own.

It gets a venv of its own below `.bench`, and the same backlog. Where it cannot be had, the bench says so and goes on.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from backlog import BODY, Item, make_items

NAME = "microbeads==0.3.0"
VENV = Path(__file__).parents[1] / ".bench" / NAME.replace("==", "-")
PROGRAM = VENV / "bin" / "mb"
ASK = (str(PROGRAM), "--json", "ready")
_STATUS = {"ready": "open", "done": "closed"}  # it has no drafts: what is neither is blocked


def is_there() -> bool:
    """Install it if need be, and tell whether it can be asked."""
    uv = Path(sys.executable).with_name("uv")
    steps = (
        (uv, "venv", "--quiet", "--clear", "--python", sys.executable, VENV),
        (uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", VENV / "bin" / "python", NAME),
    )
    if not PROGRAM.exists() and any(subprocess.run(step, check=False).returncode for step in steps):
        print(f"{NAME} cannot be installed here: nothing is measured beside it.")
    return PROGRAM.exists()


def make(root: Path, count: int, mix: str) -> None:
    """Write the same backlog as its issues, and let it make its cache."""
    root.mkdir()
    for arguments in (
        ("init", "-q", "-b", "main"),
        ("config", "user.name", "bench"),
        ("config", "user.email", "bench@localhost"),
        ("commit", "-q", "--allow-empty", "-m", "bench"),
    ):
        subprocess.run(("git", *arguments), cwd=root, check=True)
    subprocess.run((PROGRAM, "init"), cwd=root, stdout=subprocess.DEVNULL, check=True)
    issues = root / ".git" / "microbeads-worktree" / ".microbeads" / "issues"
    for item in make_items(count, mix):
        folder = issues / ("closed" if item.status == "done" else "active")
        (folder / f"{item.id}.json").write_text(_issue(item), encoding="utf-8")
    subprocess.run(ASK, cwd=root, stdout=subprocess.DEVNULL, check=True)


def _issue(item: Item) -> str:
    fields = {
        "id": item.id,
        "title": item.title,
        "description": BODY,
        "status": _STATUS.get(item.status, "blocked"),
        "priority": item.priority,
        "type": "task",
        "dependencies": item.depends_on,
        "labels": item.labels,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "closed_at": None,
        "closed_reason": None,
        "acceptance_criteria": "",
        "design": "",
        "notes": "",
    }
    return json.dumps(fields, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
