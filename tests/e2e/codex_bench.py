"""A user who works with codex: the real program, a model on loopback, a repository with one request."""

from __future__ import annotations

import json
import os
import re
import signal
import tomllib
from pathlib import Path
from typing import Any

from e2e.bench import Bench
from e2e.model_server import ModelServer
from e2e.real_agents import RealHome, codex
from e2e.scripted_agents import untested_base
from waiting import wait_until

THREAD = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class CodexBench:
    """The user's place of work, with the model that codex asks."""

    def __init__(self, bench: Bench, models: ModelServer, home: RealHome) -> None:
        self.bench = bench
        self.models = models
        self.home = home
        home.install("codex")
        bench.aiflow.environ |= home.environ
        bench.state = home.folder / ".local/state"
        self.configure()

    def configure(self, text: str = "", agent: str = "") -> None:
        """Write `aiflow.toml` and commit it."""
        (self.bench.root / "aiflow.toml").write_text(f'[agent]\nkind = "codex"\n{agent}\n{untested_base(text)}\n')
        if self.bench.git("status", "--porcelain"):
            self.bench.commit()

    def run(self, code: int = 0, **more: Any) -> Any:
        """`aiflow run`."""
        return self.bench.run(code=code, **more)

    def wrap(self, script: str) -> None:
        """Put a shell script in codex's place that calls it as `"$CODEX" "$@"`."""
        link = self.home.bin / "codex"
        link.unlink()
        link.write_text(f"#!/bin/sh\nCODEX={codex()}\n{script}\n")
        link.chmod(0o755)

    def add_settings(self, text: str, top: str = "") -> None:
        """Add to the user's own config.toml."""
        path = self.home.folder / ".codex/config.toml"
        path.write_text(f"{top}\n{path.read_text()}\n{text}\n")
        tomllib.loads(path.read_text())

    def kill(self, how: signal.Signals) -> None:
        """Send the running codex a signal, as somebody else may do, once it has asked its model."""
        marker = f"AIFLOW_RUN_ID={self.bench.run_ids()[-1]}".encode()
        for entry in Path("/proc").iterdir():
            try:
                is_codex = entry.name.isdigit() and marker in (entry / "environ").read_bytes()
                if is_codex and (entry / "cmdline").read_bytes().startswith(b"codex\0exec"):
                    os.kill(int(entry.name), how)
                    return
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
        raise AssertionError("no codex is running")

    def threads(self) -> list[str]:
        """Which threads the model was asked in, one after the other."""
        ids = [str(asked.body.get("prompt_cache_key")) for asked in self.models.turns]
        assert all(map(THREAD.fullmatch, ids)), ids
        return list(dict.fromkeys(ids))

    def wait_until_asked(self, times: int = 1) -> None:
        """Wait until the model was asked so often."""
        wait_until(lambda: len(self.models.turns) >= times)


def sessions_of(stage: Any) -> dict[str, str]:
    """The threads that a run's only step knows, without what they used."""
    return {role: name.partition("+")[0] for role, name in stage["steps"][0]["sessions"].items()}


def calls(**roles: int) -> dict[str, dict[str, int]]:
    """How often each role was called in the only step."""
    return {"S01": roles}


def usage(stage: Any) -> tuple[int, int, int, float]:
    """Calls, tokens in and out, and cost."""
    used = stage["usage"]
    return used["calls"], used["input_tokens"], used["output_tokens"], used["cost_usd"]


def text_of(value: object) -> str:
    """Everything that was sent, as one text."""
    return json.dumps(value, ensure_ascii=False)
