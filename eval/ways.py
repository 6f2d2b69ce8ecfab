"""The ways to have a task done: aiflow as it is, aiflow with `--quick`, and the agent's program called directly."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import plain
from aiflow.domain.agents.usage import Usage
from suite import CannotBeginError, Judgement, Task, lay_out, tree_of

# One run may not make more calls, whatever goes wrong.
MOST_CALLS, MOST_MINUTES = 12, 60


class Terms(NamedTuple):
    """Who works, and how much a run may cost; `argv` is the program of the kinds that need one."""

    kind: str
    environ: Mapping[str, str]
    model: str = ""
    argv: tuple[str, ...] = ()
    budget_usd: float = 0.0


class Outcome(NamedTuple):
    """What came of a task done one way; `ended` is the run's state, or how the program ended."""

    ended: str
    usage: Usage
    judgement: Judgement


Way = Callable[[Task, Terms, Path], Outcome]


def normal(task: Task, terms: Terms, scratch: Path) -> Outcome:
    """`aiflow run`: planned, done step by step, reviewed."""
    return _run(task, terms, scratch)


def quick(task: Task, terms: Terms, scratch: Path) -> Outcome:
    """`aiflow run --quick`: one call, and the tests."""
    return _run(task, terms, scratch, "--quick")


def plainly(task: Task, terms: Terms, scratch: Path) -> Outcome:
    """The agent's own program, which gets the request and is let work alone."""
    repository = lay_out(scratch / "repository")
    call = plain.Plain(terms.kind, terms.model, terms.budget_usd, 60 * MOST_MINUTES)
    ended, usage = plain.call(call, task.request, repository, terms.environ)
    return Outcome(ended, usage, task.judge(repository, scratch))


def _run(task: Task, terms: Terms, scratch: Path, *options: str) -> Outcome:
    request = f"---\ntitle: {json.dumps(_title(task))}\npriority: P1\nstatus: ready\n---\n\n{task.request}"
    files = {"aiflow.toml": _settings(terms), f"requests/{task.name}.md": request}
    repository = lay_out(scratch / "repository", files)
    # Worktrees and caches of a throw-away repository are to be thrown away with it.
    environ = {**terms.environ, "XDG_STATE_HOME": str(scratch / "state"), "AIFLOW_LANG": "en"}
    begin = time.monotonic()
    command = [sys.executable, "-m", "aiflow", "run", task.name, *options, "--json"]
    done = subprocess.run(command, cwd=repository, env=environ, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    answer = json.loads(done.stdout) if done.stdout else {}
    if "branch" not in answer:
        raise CannotBeginError(f"aiflow could not begin: {_refusal(answer) or done.stderr}")
    used = answer["usage"]
    usage = Usage(used["calls"], used["input_tokens"], used["cached_tokens"], used["output_tokens"], used["cost_usd"])
    ended = " ".join(filter(None, (answer["state"], answer["cause"] or answer["reason_code"])))
    tree = tree_of(repository, answer["branch"], scratch)
    return Outcome(ended, usage + Usage(seconds=seconds), task.judge(tree, scratch))


def _refusal(answer: Mapping[str, Any]) -> str:
    error = answer.get("error") or {}
    return "\n".join((error.get("message", ""), error.get("detail", ""), *error.get("actions", ())))


def _title(task: Task) -> str:
    return task.request.partition("\n")[0].strip("# ")


def _settings(terms: Terms) -> str:
    lines = ["[agent]", f"kind = {json.dumps(terms.kind)}"]
    lines += [f"model = {json.dumps(terms.model)}"] if terms.model else []
    lines += [f"argv = {json.dumps(terms.argv)}"] if terms.argv else []
    lines += ["[tests]", f'unit = "{sys.executable} -m unittest"']
    lines += ["[limits]", f"run_agent_calls = {MOST_CALLS}", f"run_minutes = {MOST_MINUTES}"]
    lines += [f"run_cost_usd = {terms.budget_usd}"] if terms.budget_usd else []
    return "\n".join(lines) + "\n"


WAYS: Mapping[str, Way] = {"quick": quick, "normal": normal, "plain": plainly}
# How often an agent is called if nothing goes wrong, and what no run exceeds.
CALLS: Mapping[str, tuple[int, int]] = {"quick": (1, MOST_CALLS), "normal": (3, MOST_CALLS), "plain": (1, 1)}


def ways_for(kind: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ways that an agent can be called, in the order of the table."""
    return tuple(name for name in WAYS if name in (names or WAYS) and (name != "plain" or kind in plain.PROGRAMS))
