"""Record runs as this version of aiflow leaves them, as fixtures for later versions to read and resume (RUN-16).

    cd tests && ../.venv/bin/python -m e2e.record_runs FOLDER [NAME…]

Each becomes `FOLDER/NAME/` with the run's `stage.json`, `planning.json` and `request.json`, and with the repository's
refs as a bundle. Paths and names of this machine are replaced. Those of a version are recorded once, when it is released.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import fresh_git
from aiflow.domain.agents.call import AgentReply
from aiflow.domain.request import RequestId
from aiflow.usecases.runs.start import start_run
from e2e.bench import Bench, git
from e2e.night import Night

FILES = ("stage.json", "planning.json", "request.json")
RED = '[tests]\nunit = "exit 1"'


def _done(bench: Bench) -> None:
    bench.run()


def _question(bench: Bench) -> None:
    bench.agent.does("implementer", "ask('Which colour?')")
    bench.run(code=5)


def _tests_failed(bench: Bench) -> None:
    bench.configure(RED)
    bench.run(code=7)


def _cancelled(bench: Bench) -> None:
    process = bench.start_hanging()
    bench.aiflow("cancel", "RQ-1")
    process.communicate()


def _quota(bench: Bench) -> None:
    later = datetime.now().astimezone() + timedelta(days=3)
    told = AgentReply(reason_code="AGENT_QUOTA", detail="429 slow down", retry_at=later)
    night = Night(bench, {"RQ-1": lambda _call, _stop: told})
    start_run(night.engine("limits.quota_wait_hours=1"), RequestId("RQ-1"))


def _killed(bench: Bench) -> None:
    process = bench.start_hanging()
    process.kill()
    process.wait()


def _one_of_three(bench: Bench) -> None:
    bench.agent.plans("S01", "S02", "S03")
    bench.agent.does("implementer", "write('half.txt', 'half\\n'); ask('Go on?')", step="S02")
    bench.run(code=5)


def _updated(bench: Bench) -> None:
    bench.agent.does("implementer", "write('app.txt', 'ours\\n'); done()")
    bench.run()
    (bench.root / "app.txt").write_text("theirs\n")
    bench.git("commit", "-qam", "a person changes app.txt")
    bench.aiflow("accept", "RQ-1", code=6)
    bench.agent.does("implementer", "write('app.txt', 'both\\n'); done()")
    bench.aiflow("resume", "RQ-1", "--update")


def _sent_back(bench: Bench) -> None:
    bench.run()
    bench.aiflow("send-back", "RQ-1", "-m", "Smaller, please.")


def _accepted(bench: Bench) -> None:
    bench.run()
    bench.aiflow("accept", "RQ-1")


SCENES: dict[str, Callable[[Bench], None]] = {
    "done": _done,
    "question": _question,
    "tests-failed": _tests_failed,
    "cancelled": _cancelled,
    "quota": _quota,
    "killed": _killed,
    "one-of-three": _one_of_three,
    "updated": _updated,
    "sent-back": _sent_back,
    "accepted": _accepted,
}


def record(name: str, folder: Path) -> None:
    """Play one scene and keep what is left of it."""
    with tempfile.TemporaryDirectory() as made:
        os.environ["XDG_STATE_HOME"] = f"{made}/state"
        root = Path(made, "repository")
        root.mkdir()
        fresh_git.make_repository(root)
        bench = Bench(root, Path(made))
        # It names the agent's program, which is on this machine.
        git(root, "rm", "-q", "--cached", "aiflow.toml")
        (root / ".git/info/exclude").write_text("/aiflow.toml\n")
        git(root, "commit", "-q", "--amend", "-m", "first")
        try:
            SCENES[name](bench)
        finally:
            bench.close()
        folder.mkdir(parents=True, exist_ok=True)
        for file in FILES:
            path = bench.folder() / file
            (folder / file).write_text(_neutral(path.read_text("utf-8"), made), "utf-8")
        bench.git("bundle", "create", "-q", str(folder / "repository.bundle"), "--branches", "--glob=refs/aiflow/*")


def _neutral(text: str, folder: str) -> str:
    for own, other in ((folder, "/home/user"), (os.path.realpath(folder), "/home/user")):
        text = text.replace(own, other)
    return text.replace(json.dumps(platform.node()), json.dumps("workstation"))


if __name__ == "__main__":
    for scene in sys.argv[2:] or SCENES:
        record(scene, Path(sys.argv[1]) / scene)
