"""A user's place of work: a repository with a backlog, a scripted agent, and the program in front of them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import forked
import fresh_git
from builders import write_request
from conftest import Program
from e2e.scripted_agents import Agent, untested_base
from waiting import wait_until


def git(cwd: Path, *args: str, code: int = 0) -> str:
    """Call git as the user does."""
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *args], cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"git {args}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def is_alive(pid: int) -> bool:
    """Tell whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def tree_of(root: Path) -> dict[str, str]:
    """Every file below a folder, git's own too, with a digest of its content and its mode."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in [*files, *folders]:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(root))] = f"{mode:o} {hashlib.sha256(content).hexdigest()}"
    return found


class Bench:
    """A user's repository with one commit, a request `RQ-1` and an agent; runs are started as a user starts them."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.state = folder / "state"
        self.aiflow = Program(root)
        self.aiflow.environ |= {"XDG_STATE_HOME": str(self.state), "GIT_CONFIG_NOSYSTEM": "1", "AIFLOW_LANG": "en"}
        self.agent = Agent(folder / "agent", root)
        self._processes: list[subprocess.Popen[str]] = []
        was_empty = os.listdir(root) == [".git"]
        with (root / ".git/config").open("a") as config:
            config.write(fresh_git.CONFIG)
        (root / ".gitignore").write_text("/runs/\n/.aiflow/\n*.ignored\n.env\n")
        (root / "app.txt").write_text("app\n")
        self.configure()
        self.add_request("RQ-1")
        names = (".gitignore", "app.txt", "aiflow.toml", "requests/RQ-1.md")
        if not was_empty or not fresh_git.commit_first(root, names, "first"):
            self.commit()

    def configure(self, text: str = "", agent: str = "", argv: list[str] | None = None) -> None:
        """Write `aiflow.toml`: the scripted agent, and these lines."""
        command = json.dumps(argv if argv is not None else [str(self.agent.path)])
        (self.root / "aiflow.toml").write_text(
            f'[agent]\nkind = "command"\nargv = {command}\n{agent}\n{untested_base(text)}\n'
        )

    def add_request(self, request_id: str, **keys: str) -> Path:
        """Write a request that is ready."""
        fields = {"priority": "P1", "status": "ready", "created_at": "2026-01-01", "updated_at": "2026-01-02"}
        return write_request(self.root, request_id, None, **fields | keys)

    def commit(self) -> str:
        """Commit everything."""
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "first")
        return self.git("rev-parse", "HEAD")

    def git(self, *args: str, code: int = 0) -> str:
        """Call git in the repository."""
        return git(self.root, *args, code=code)

    def run(self, request_id: str = "RQ-1", code: int = 0, **more: Any) -> Any:
        """`aiflow run --json`."""
        return self.aiflow.json("run", request_id, code=code, **more)

    def start(
        self, *args: str, env: dict[str, str] | None = None, argv: list[str] | None = None
    ) -> subprocess.Popen[str]:
        """Start the program (or what `argv` starts it with) and do not wait for it."""
        environ = {**self.aiflow.environ, **(env or {})}
        process: subprocess.Popen[str]
        if argv is None and forked.can_fork(environ):
            process = forked.Process([*args], str(self.root), environ)
        else:
            process = subprocess.Popen(
                argv or [sys.executable, "-m", "aiflow", *args],
                cwd=self.root,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
            )
        self._processes.append(process)
        return process

    def start_hanging(self, request_id: str = "RQ-1") -> subprocess.Popen[str]:
        """Start a run whose implementer writes `half.txt` and then waits for ever; returns when it does."""
        self.agent.does("implementer", "write('half.txt', 'half\\n'); (HERE / 'hangs').touch(); time.sleep(600)")
        process = self.start("run", request_id, "--json")
        wait_until(lambda: (self.agent.folder / "hangs").exists() or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        (self.agent.folder / "hangs").unlink()
        self.agent.forget()
        return process

    def close(self) -> None:
        """End what was started."""
        for process in self._processes:
            process.kill()
            process.communicate()

    def status(self, request_id: str = "RQ-1") -> str:
        """A request's status as its file says it."""
        lines = (self.root / "requests" / f"{request_id}.md").read_text().splitlines()
        return next(line.removeprefix("status: ") for line in lines if line.startswith("status:"))

    def run_ids(self, request_id: str = "RQ-1") -> list[str]:
        """The runs of a request, oldest first."""
        folder = self.root / "runs" / request_id
        return sorted(path.name for path in folder.glob("RUN-*"))

    def folder(self, request_id: str = "RQ-1", run_id: str | None = None) -> Path:
        """The folder of a run, of the newest if none is named."""
        return self.root / "runs" / request_id / (run_id or self.run_ids(request_id)[-1])

    def stage(self, request_id: str = "RQ-1", run_id: str | None = None) -> Any:
        """A run's `stage.json`."""
        return json.loads((self.folder(request_id, run_id) / "stage.json").read_text("utf-8"))

    def errors(self, request_id: str = "RQ-1", run_id: str | None = None) -> Any:
        """A run's `errors.json`."""
        return json.loads((self.folder(request_id, run_id) / "errors.json").read_text("utf-8"))

    def report(self, request_id: str = "RQ-1", run_id: str | None = None) -> str:
        """A run's report."""
        return (self.folder(request_id, run_id) / "report.md").read_text("utf-8")

    def log(self, number: int, request_id: str = "RQ-1") -> str:
        """A step's log."""
        return (self.folder(request_id) / f"logs/step-{number}.log").read_text("utf-8", "replace")

    def worktree(self, request_id: str = "RQ-1") -> Path:
        """The worktree of a request's newest run."""
        return Path(self.stage(request_id)["worktree"]["path"])

    def journal(self) -> list[dict[str, Any]]:
        """Every entry of the journal."""
        files = sorted((self.root / ".aiflow/activity").glob("*.jsonl"))
        return [json.loads(line) for path in files for line in path.read_text("utf-8").splitlines()]

    def locks(self) -> list[str]:
        """The lock files that are there."""
        return sorted(path.name for path in (self.root / ".aiflow/locks").glob("*.lock.json"))

    def commits(self, branch: str, since: str = "main") -> list[str]:
        """The messages of a branch's own commits, oldest first."""
        out = self.git("log", "--reverse", "--format=%B%x00", f"{since}..{branch}")
        return [message.strip() for message in out.split("\0") if message.strip()]

    def files_at(self, revision: str) -> list[str]:
        """The files of a commit."""
        return self.git("ls-tree", "-r", "--name-only", revision).splitlines()
