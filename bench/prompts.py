"""AGT-1: what a one-line change costs in bytes and requests to the model, beside the plain program.

The real `claude` and `codex` ask a model on loopback, the one of the tests, which answers both the same: one command,
then the end. A request's size is that of its body. The implementer's call is what the plain program does; planner and
reviewer come on top.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from e2e.bench import Bench
from e2e.claude_bench import ClaudeBench
from e2e.codex_bench import CodexBench
from e2e.model_server import ModelServer
from e2e.model_turns import Say, Shell, in_order, whole_run
from e2e.real_agents import RealHome

if TYPE_CHECKING:
    from e2e.model_turns import Asked

WISH = "Write `App` in place of `app` into app.txt."
CHANGE = "printf 'App\\n' > app.txt"
USERS: dict[str, type[ClaudeBench] | type[CodexBench]] = {"claude": ClaudeBench, "codex": CodexBench}
# As a user calls it who lets it work alone.
PLAIN = {
    "claude": ("claude", "-p", WISH, "--permission-mode", "acceptEdits", "--allowedTools", "Bash"),
    "codex": ("codex", "exec", "--skip-git-repo-check", "-s", "workspace-write", WISH),
}


class Traffic(NamedTuple):
    """How often a model was asked, and with how many bytes."""

    requests: int
    size: int


class OneLine(NamedTuple):
    """What a one-line change costs with one program: plain, the implementer's call alone, and the whole run."""

    plain: Traffic
    step: Traffic
    run: Traffic


def measure(scratch: Path) -> dict[str, OneLine]:
    """Measure each program."""
    return {kind: _measure(scratch / f"prompts-{kind}", kind) for kind in USERS}


def _measure(folder: Path, kind: str) -> OneLine:
    root = folder / "repo"
    root.mkdir(parents=True)
    for arguments in (
        ("init", "-q", "-b", "main"),
        ("config", "user.name", "B"),
        ("config", "user.email", "b@b.invalid"),
    ):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    with ModelServer() as models:
        bench = Bench(root, folder)
        user = USERS[kind](bench, models, RealHome(folder / "home", models.url))
        models.script = in_order(Shell(CHANGE), Say())
        environ = {**user.home.environ, "PWD": str(root)}
        subprocess.run(PLAIN[kind], cwd=root, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        assert (root / "app.txt").read_text() == "App\n", "the plain program has changed nothing"
        plain = _sum(models.asked)
        bench.git("checkout", "-q", "app.txt")
        models.asked.clear()
        request = root / "requests/RQ-1.md"
        request.write_text(request.read_text().replace("Body of RQ-1.", WISH))
        bench.commit()
        models.script = whole_run(CHANGE)
        assert user.run()["state"] == "DONE"
        bench.close()
        return OneLine(
            plain, _sum([asked for asked in models.asked if asked.role == "implementer"]), _sum(models.asked)
        )


def _sum(asked: list[Asked]) -> Traffic:
    return Traffic(len(asked), sum(len(json.dumps(each.body, ensure_ascii=False).encode()) for each in asked))


if __name__ == "__main__":
    import tempfile

    os.chdir(Path(__file__).parents[1])
    with tempfile.TemporaryDirectory() as made:
        for name, seen in measure(Path(made)).items():
            print(name, *seen, sep="\n  ")
