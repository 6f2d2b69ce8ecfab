"""A user who works with claude: the real program, a model on loopback, a repository with one request."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from e2e.bench import Bench
from e2e.model_server import ModelServer
from e2e.real_agents import RealHome, claude
from e2e.scripted_agents import untested_base
from waiting import wait_until


class ClaudeBench:
    """The user's place of work, with the model that claude asks."""

    def __init__(self, bench: Bench, models: ModelServer, home: RealHome) -> None:
        self.bench = bench
        self.models = models
        self.home = home
        home.install("claude")
        bench.aiflow.environ |= {**home.environ, "XDG_STATE_HOME": str(bench.state)}
        self.configure()

    def configure(self, text: str = "", agent: str = "") -> None:
        """Write `aiflow.toml` and commit it."""
        (self.bench.root / "aiflow.toml").write_text(f'[agent]\nkind = "claude-code"\n{agent}\n{untested_base(text)}\n')
        if self.bench.git("status", "--porcelain"):
            self.bench.commit()

    def run(self, code: int = 0, **more: Any) -> Any:
        """`aiflow run`."""
        return self.bench.run(code=code, **more)

    def wrap(self, script: str) -> None:
        """Put a shell script in claude's place that calls it as `"$CLAUDE" "$@"`."""
        link = self.home.bin / "claude"
        link.unlink()
        link.write_text(f"#!/bin/sh\nCLAUDE={claude()}\n{script}\n")
        link.chmod(0o755)

    def set_up(self, **settings: Any) -> None:
        """Add to the user's own settings of claude."""
        path = self.home.folder / ".claude/settings.json"
        known = json.loads(path.read_text())
        env = {**known["env"], **settings.pop("env", {})}
        path.write_text(json.dumps({**known, **settings, "env": env}))

    def kill(self, how: signal.Signals) -> None:
        """Send the running claude a signal, as somebody else may do."""
        marker = f"AIFLOW_RUN_ID={self.bench.run_ids()[-1]}".encode()
        for entry in Path("/proc").iterdir():
            try:
                is_its = entry.name.isdigit() and marker in (entry / "environ").read_bytes()
                if is_its and (entry / "cmdline").read_bytes().startswith(b"claude\0-p"):
                    os.kill(int(entry.name), how)
                    return
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
        raise AssertionError("no claude is running")

    def wait_until_asked(self, times: int = 1) -> None:
        """Wait until the model was asked so often."""
        wait_until(lambda: len(self.models.turns) >= times)

    def forget_sessions(self) -> None:
        """Remove what claude keeps of its sessions, as its own clean-up does after a while."""
        found = list((self.home.folder / ".claude/projects").rglob("*.jsonl"))
        assert found
        for path in found:
            path.unlink()

    def said(self, number: int) -> str:
        """Everything that the model was told in a turn, as one text."""
        return json.dumps(self.models.turns[number].body, ensure_ascii=False)


def calls(**roles: int) -> dict[str, dict[str, int]]:
    """How often each role was called in the only step."""
    return {"S01": roles}


def usage(stage: Any) -> tuple[int, int, int, float]:
    """Calls, tokens in and out, and cost."""
    used = stage["usage"]
    return used["calls"], used["input_tokens"], used["output_tokens"], round(used["cost_usd"], 6)


def sessions(stage: Any) -> dict[str, str]:
    """The sessions that a run's only step knows."""
    known: dict[str, str] = stage["steps"][0]["sessions"]
    return known
