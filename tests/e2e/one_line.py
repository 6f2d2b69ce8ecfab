"""What a one-line change sends to a model: by the program alone, by `run --quick` and by the usual run (AGT-1, RUN-18).

The real `claude` and `codex` ask a model on loopback, which answers all the same: one command, then the end. A request's
size is that of its body.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from e2e.bench import Bench
from e2e.claude_bench import ClaudeBench
from e2e.codex_bench import CodexBench
from e2e.model_server import ModelServer
from e2e.model_turns import Asked, Say, Shell, in_order, whole_run
from e2e.real_agents import RealHome

WISH = "Write `App` in place of `app` into app.txt."
CHANGE = "printf 'App\\n' > app.txt"
USERS: dict[str, type[ClaudeBench] | type[CodexBench]] = {"claude": ClaudeBench, "codex": CodexBench}
# As a user calls it who lets it work alone.
PLAIN = {
    "claude": ("claude", "-p", WISH, "--permission-mode", "acceptEdits", "--allowedTools", "Bash"),
    "codex": ("codex", "exec", "--skip-git-repo-check", "-s", "workspace-write", WISH),
}
# Planner and reviewer come on top of what the plain program does: so much may the usual run send, whatever that sends.
USUAL_REQUESTS = 4
USUAL_BYTES = {"claude": 95_000, "codex": 140_000}


class Traffic(NamedTuple):
    """How often a model was asked, and with how many bytes."""

    requests: int
    size: int


class OneLine(NamedTuple):
    """What a one-line change costs with one program: alone, with `run --quick`, and in the usual run."""

    plain: Traffic
    quick: Traffic
    usual: Traffic


class Held(NamedTuple):
    """One goal: what was sent, and the most that may be."""

    name: str
    ours: int
    most: int


def goals(kind: str, seen: OneLine) -> tuple[Held, ...]:
    """Name the goals: a quick run costs what the plain program does, at most; the usual run has a ceiling of its own."""
    return (
        Held("requests of `run --quick` / plain", seen.quick.requests, seen.plain.requests),
        Held("bytes of `run --quick` / plain", seen.quick.size, seen.plain.size),
        Held("requests of the usual run / its ceiling", seen.usual.requests, USUAL_REQUESTS),
        Held("bytes of the usual run / its ceiling", seen.usual.size, USUAL_BYTES[kind]),
    )


def measure(kind: str, bench: Bench, models: ModelServer, home: RealHome) -> OneLine:
    """Have the same line changed three times in a repository, each time from its base."""
    user = USERS[kind](bench, models, home)
    for name in ("RQ-1", "RQ-2"):
        if name != "RQ-1":
            bench.add_request(name)
        request = bench.root / f"requests/{name}.md"
        request.write_text(request.read_text().replace(f"Body of {name}.", WISH))
    bench.commit()
    plain = _alone(kind, bench, models, home)
    quick, usual = (_run(bench, user, name, *words) for name, words in (("RQ-1", ("--quick",)), ("RQ-2", ())))
    return OneLine(plain, quick, usual)


def _alone(kind: str, bench: Bench, models: ModelServer, home: RealHome) -> Traffic:
    models.script = in_order(Shell(CHANGE), Say())
    environ = {**home.environ, "PWD": str(bench.root)}
    models.asked.clear()
    subprocess.run(PLAIN[kind], cwd=bench.root, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert (bench.root / "app.txt").read_text() == "App\n", "the plain program has changed nothing"
    bench.git("checkout", "-q", "app.txt")
    return _sum(models.asked)


def _run(bench: Bench, user: ClaudeBench | CodexBench, request_id: str, *words: str) -> Traffic:
    user.models.asked.clear()
    user.models.script = whole_run(CHANGE)
    ended = bench.aiflow.json("run", request_id, *words)
    assert ended["state"] == "DONE"
    return _sum(user.models.asked)


def _sum(asked: Sequence[Asked]) -> Traffic:
    return Traffic(len(asked), sum(len(json.dumps(each.body, ensure_ascii=False).encode()) for each in asked))
