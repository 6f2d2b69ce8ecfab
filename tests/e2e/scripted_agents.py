"""Scripted agents: programs that do in each call what a table says, and that write down how they were called."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

# What the agent does in a call is a piece of Python, run in its worktree with these words at hand.
_PROGRAM = """#!{python} -IS
import _json, os, sys, time


class json:  # what the module does by default; that takes longer to import than Python to start
    strict, parse_float, parse_int, parse_constant = True, float, int, float
    object_hook = object_pairs_hook = None

    @classmethod
    def loads(cls, text):
        text = text.decode() if isinstance(text, bytes) else text
        return _json.make_scanner(cls)(text, len(text) - len(text.lstrip()))[0]

    @classmethod
    def load(cls, file):
        return cls.loads(file.read())

    @staticmethod
    def dumps(value):
        encode = _json.encode_basestring_ascii
        return "".join(_json.make_encoder({{}}, None, encode, None, ": ", ", ", False, False, True)(value, 0))


folder = {folder!r}
given = sys.stdin.buffer.read()
call = json.loads(given)
role, step, attempt = call["role"], (call["step"] or {{}}).get("id"), call["attempt"]


def has_terminal():
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return any(os.isatty(fd) for fd in (0, 1, 2))
    return True


record = {{"document": call, "environ": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv, "pid": os.getpid(),
          "has_terminal": has_terminal(), "files": sorted(os.listdir("."))}}
with open(folder + "/calls.jsonl", "a") as file:
    file.write(json.dumps(record) + "\\n")


def write(path, text):
    path = os.fspath(path)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def answer(value):
    text = value if isinstance(value, str) else json.dumps(value)
    with open(os.environ["AIFLOW_RESULT"], "w") as file:
        file.write(text)


def done(summary=""):
    answer({{"status": "done", "summary": summary}})


def ask(question):
    answer({{"status": "needs_input", "question": question}})


def sh(command, **more):
    import subprocess
    return subprocess.run(command, shell=True, check=True, **more)


with open(folder + "/table.json") as file:
    table = json.load(file)
code = table["default"][role]
for row in table["rows"]:
    if row["role"] == role and row["step"] in (None, step) and row["attempt"] in (None, attempt):
        code = row["code"]
# These take longer to import than most calls last.
if "json" in code:
    import json
if "signal" in code:
    import signal
if "subprocess" in code:
    import subprocess
if any(name in code for name in ("pathlib", "HERE", "ROOT")):
    import pathlib
    HERE, ROOT = pathlib.Path(folder), pathlib.Path({root!r})
exec(code)
"""

_IMPLEMENT = 'write(f"{step}.txt", f"{step}\\n"); done(f"wrote {step}.txt")'
_REVIEW = 'answer({"verdict": "pass", "findings": []})'


def plan_of(*step_ids: str, **more: Any) -> dict[str, Any]:
    """Make a planner's answer with these steps."""
    return {
        "steps": [
            {"id": step_id, "title": f"Do {step_id}", "instructions": f"Write {step_id}.txt", **more}
            for step_id in step_ids
        ]
    }


def untested_base(text: str) -> str:
    """Add to settings that name tests that these do not run on the base, unless that is said (RUN-17)."""
    return text if "baseline" in text else text.replace("[tests]\n", "[tests]\nbaseline = false\n", 1)


class Agent:
    """One agent program; without further rules it plans its steps, writes a file in each, and passes everything."""

    def __init__(self, folder: Path, root: Path, *step_ids: str) -> None:
        self.folder = folder
        self.path = folder / "agent.py"
        folder.mkdir(parents=True, exist_ok=True)
        self.path.write_text(_PROGRAM.format(python=sys.executable, folder=str(folder), root=str(root)))
        self.path.chmod(0o755)
        self._rows: list[dict[str, Any]] = []
        self.plans(*step_ids or ("S01",))

    def plans(self, *step_ids: str, **more: Any) -> None:
        """Let the planner answer these steps."""
        self.plans_exactly(plan_of(*step_ids, **more))

    def plans_exactly(self, plan: object) -> None:
        """Let the planner answer this."""
        self._plan = f"answer({json.dumps(plan)!r})"
        self._save()

    def does(self, role: str, code: str, step: str | None = None, attempt: int | None = None) -> None:
        """Let a role do this, in one step or any, at one attempt of a visit or any; later rules win."""
        self._rows.append({"role": role, "step": step, "attempt": attempt, "code": code})
        self._save()

    def forget(self) -> None:
        """Take every rule back."""
        self._rows = []
        self._save()

    def _save(self) -> None:
        default = {"planner": self._plan, "implementer": _IMPLEMENT, "qa": _REVIEW}
        (self.folder / "table.json").write_text(json.dumps({"default": default, "rows": self._rows}))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Everything it was called with, oldest first."""
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def documents(self) -> list[dict[str, Any]]:
        """What it got on its standard input, oldest first."""
        return [call["document"] for call in self.calls]

    @property
    def roles(self) -> list[str]:
        """Who it was, call by call: `planner`, `implementer S01`, …"""
        return [
            " ".join(filter(None, (document["role"], (document["step"] or {}).get("id"))))
            for document in self.documents
        ]

    def last(self, role: str) -> dict[str, Any]:
        """What a role's last call got."""
        return next(document for document in reversed(self.documents) if document["role"] == role)
