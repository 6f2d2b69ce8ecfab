"""Records what the program answers with `--json`, with names in the place of what differs from call to call.

It knows the program from outside only: no module of `aiflow` is imported here or in the scenes, so the very same
recordings hold while the inside is rebuilt.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import forked
import fresh_git
from e2e.scripted_agents import Agent, untested_base

# The scenes give their own times and ids earlier years, and so only those that the program made match.
_YEAR = r"20(?:2[6-9]|[3-9]\d)"
_INSTANT = rf"\b{_YEAR}" + r"-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?"
# Each distinct value gets a name of its own (`RUN-1`, `RUN-2`), so that what was equal is still seen to be equal.
NUMBERED = {
    "RUN": rf"\bRUN-{_YEAR}" + r"\d{4}-\d{6}-[0-9a-f]{6}\b",
    "TASK": r"\bTASK-\d{8}-\d{6}-\d{6}-[0-9a-f]{6}\b",
    "COMMIT": r"\b(?P<short>[0-9a-f]{12})(?:[0-9a-f]{28})?\b",
    "PROMPT": r"\bRQ-20\d{6}-[a-z]{4}\b",
    "PID": r"(?<=\bpid )\d+",
}
# Two of these may be equal by chance, or differ by it: they all get the same name.
ALIKE = {
    "TIME": _INSTANT,
    "DURATION": r"\b\d+:\d\d:\d\d\b",
    "DAY": rf"(?<=\bRQ-){_YEAR}" + r"\d{4}(?=-\d{3}\b)",
    "SIZE": r"\b\d+(?:\.\d+)? [kMGT]B\b",
    "HASH": r"(?<=\b(?:shop|demo)-)[0-9a-f]{8}\b",
    "VERSION": r"(?<=\bGit )\d+(?:\.\d+)+",
}
# What is only known by its key: numbers, and what looks like anything.
NUMBERED_KEYS = {"pid": "PID", "fence": "FENCE"}
ALIKE_KEYS = {
    "seconds": "SECONDS",
    "worked_seconds": "SECONDS",
    "cursor": "CURSOR",
    "next_cursor": "CURSOR",
    "bytes": "BYTES",
    "freed_bytes": "BYTES",
    "version": "VERSION",
}
# Part of the tasks that a terminal writes into a shared store, and no longer there when these are gone.
LEFT_OUT = ("is_private",)
# Programs that runs need; whatever else is installed on a machine, an agent or Java, is not found.
TOOLS = ("git", "sh", "sleep", "test", "touch")


class Names:
    """Gives names to what differs, the same to the same value, for one scene."""

    def __init__(self, folder: Path, store: str | None) -> None:
        self._known: dict[str, dict[str, str]] = {}
        host, bin_folder = re.escape(socket.gethostname()), re.escape(os.path.dirname(sys.executable))
        machine = {"PYTHON": re.escape(sys.executable), "/BIN": bin_folder, "HOST": rf"(?<![\w-]){host}(?!\w)"}
        self._numbered = {"RUNNER": rf"(?<![\w-]){host}-\d+-[0-9a-f]{{8}}\b", **NUMBERED}
        self._alike = {"/TMP": re.escape(str(folder)), **machine, **ALIKE}
        if store is not None:
            self._alike = {"STORE": re.escape(store), **self._alike}

    def settle(self, value: Any, key: str = "") -> Any:
        """Return a value of JSON with names in it."""
        if isinstance(value, dict):
            kept = ((each, inner) for each, inner in value.items() if each not in LEFT_OUT)
            return {self._text(each): self.settle(inner, each) for each, inner in kept}
        if isinstance(value, list):
            return [self.settle(each, key) for each in value]
        if value and key in NUMBERED_KEYS:  # none, or zero, is the same everywhere
            return self._name(NUMBERED_KEYS[key], str(value))
        if value and key in ALIKE_KEYS:
            return ALIKE_KEYS[key]
        if isinstance(value, str) and "\n" in value:  # by lines, for whoever reads a recording
            return {"lines": self._text(value).split("\n")}
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        for kind, pattern in self._numbered.items():
            text = re.sub(pattern, functools.partial(self._named, kind), text)
        for kind, pattern in self._alike.items():
            text = re.sub(pattern, kind, text)
        return text

    def _named(self, kind: str, match: re.Match[str]) -> str:
        return self._name(kind, match.groupdict().get("short") or match[0])

    def _name(self, kind: str, value: str) -> str:
        known = self._known.setdefault(kind, {})
        return known.setdefault(value, f"{kind}-{len(known) + 1}")


class Stage:
    """A checkout `shop` with a scripted agent, and the program in front of it; every answer is recorded."""

    def __init__(self, folder: Path, environ: Mapping[str, str] | None = None) -> None:
        self.folder = folder.resolve()
        self.root = self.folder / "shop"
        self.calls: list[dict[str, Any]] = []
        self._names = Names(self.folder, (environ or {}).get("AIFLOW_QUEUE_STORE"))
        self._processes: list[subprocess.Popen[str]] = []
        self.root.mkdir()
        self.environ = {**_environ(self.folder), **(environ or {})}
        fresh_git.make_repository(self.root)
        self.agent = Agent(self.folder / "agent", self.root)

    def configure(self, text: str = "") -> None:
        """Name the scripted agent, and these settings too, in `aiflow.toml`."""
        self.write("aiflow.toml", f'[agent]\nkind = "command"\nargv = ["{self.agent.path}"]\n{untested_base(text)}')

    def write(self, name: str, text: str) -> None:
        """Write a file of the checkout."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def request(self, request_id: str, body: str = "Do it.\n", **keys: str) -> None:
        """Write a request, ready unless the keys say otherwise."""
        lines = "".join(f"{key}: {value}\n" for key, value in {"status": "ready", **keys}.items())
        self.write(f"requests/{request_id}.md", f"---\n{lines}---\n\n# Title of {request_id}\n\n{body}")

    def commit(self) -> None:
        """Commit all that is there."""
        self.write(".gitignore", "/runs/\n/.aiflow/\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "Commit all")

    def git(self, *args: str) -> None:
        """Call git in the checkout."""
        subprocess.run(["git", *args], cwd=self.root, env=self.environ, check=True, capture_output=True)

    def says(self, *lines: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Any:
        """Call the program once per line and record what it answers; returns the last answer."""
        answer = None
        for line in lines:
            answer = self.ended(self.begin(line, env), line, stdin, env)
        return answer

    def begin(self, line: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start the program and do not wait for it."""
        argv = self.arguments(line)
        environ = {**self.environ, **(env or {})}
        process: subprocess.Popen[str]
        if forked.can_fork(environ):
            process = forked.Process(argv, str(self.root), environ, stdin=subprocess.PIPE)
        else:
            process = subprocess.Popen(
                [sys.executable, "-m", "aiflow", *argv],
                cwd=self.root,
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
            )
        self._processes.append(process)
        return process

    def arguments(self, line: str) -> list[str]:
        """Give the words of a call."""
        return [*shlex.split(line), "--json"]

    def ended(
        self, process: subprocess.Popen[str], line: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> Any:
        """Wait until a call has ended and record it: as one document, or as the list of its lines for a runner."""
        out, err = process.communicate(stdin, timeout=60)
        self._processes.remove(process)
        assert "Traceback" not in err, err
        is_many = line.startswith("runner ")
        answer = [json.loads(each) for each in out.splitlines()] if is_many else json.loads(out)
        entry: dict[str, Any] = {"call": f"aiflow {line} --json", "exit": process.returncode, "json": answer}
        if env:
            entry["environment"] = dict(env)
        if stdin:
            entry["stdin"] = stdin
        self.calls.append(self._names.settle(entry))
        return answer

    def kill(self, process: subprocess.Popen[str]) -> None:
        """Kill a call, as a crash does; it is not recorded."""
        process.kill()
        process.communicate()
        self._processes.remove(process)

    def wait_for(self, name: str) -> None:
        """Wait until the agent has made this file in its folder, and remove it."""
        path = self.agent.folder / name
        until = time.monotonic() + 60
        while not path.exists():
            assert time.monotonic() < until, f"{name} was not written"
            time.sleep(0.02)
        path.unlink()

    def next_second(self) -> None:
        """Wait for another second: runs that begin in the same one are listed in no certain order."""
        time.sleep(1.01 - time.time() % 1)

    def close(self) -> None:
        """End what was started and is still there."""
        for process in self._processes:
            process.kill()
            process.communicate()


def _environ(folder: Path) -> dict[str, str]:
    """Return an environment with nothing of the machine's and the user's but the tools that runs need."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "LD_"))}
    folders = {f"XDG_{name.upper()}_HOME": str(folder / name) for name in ("state", "data", "cache", "config")}
    who = {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (("NAME", "Ada"), ("EMAIL", "ada@example.com"))
    }
    own = {"HOME": str(folder / "home"), "LOGNAME": "ada", "PATH": str(_tools(folder)), "TMPDIR": str(folder / "tmp")}
    for name in ("home", "tmp"):
        (folder / name).mkdir()
    plain = {"LANG": "C.UTF-8", "TZ": "UTC", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return {**kept, **folders, **who, **own, **plain}


def _tools(folder: Path) -> Path:
    made = folder / "tools"
    made.mkdir()
    for name, path in _found_tools().items():
        (made / name).symlink_to(path)
    return made


@functools.cache
def _found_tools() -> dict[str, str]:
    return {name: found for name in TOOLS if (found := shutil.which(name))}
