"""Measures what comes of real tasks: aiflow as it is, aiflow with `--quick`, and the plain agent, side by side.

Without an agent it tries the plumbing: real `claude` and `codex` ask a model on loopback that knows the solutions, and
everything must be solved. With an agent it calls that one, with your login, and says first what that may cost.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import table
from suite import CannotBeginError, Task, tasks_named
from ways import CALLS, MOST_MINUTES, WAYS, Terms, ways_for

KINDS = ("claude-code", "codex", "acp", "command")
REFUSED = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the tasks and print what came of them; exit with 1 if the stub has not solved one."""
    options = _parser().parse_args(arguments)
    rows: list[table.Row] = []
    with tempfile.TemporaryDirectory(prefix="aiflow-eval-") as folder:
        try:
            tasks = tasks_named(tuple(options.tasks.split()))
            found = _with_agent(options, tasks, Path(folder)) if options.agent else _with_stub(options, tasks, folder)
            with contextlib.suppress(KeyboardInterrupt):  # what was measured by then is shown
                for row in found:
                    rows.append(row)
                    _keep(rows, options.json)
        except CannotBeginError as error:
            print(error, file=sys.stderr)
            return REFUSED
    for agent in dict.fromkeys(row.agent for row in rows):
        print("", *table.lines(agent, [row for row in rows if row.agent == agent]), sep="\n")
    return int(not options.agent and not all(row.outcome.judgement.is_solved for row in rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make eval", description=__doc__)
    parser.add_argument("--agent", choices=KINDS, help="the agent to call; without one the stub")
    parser.add_argument("--model", default="", help="its model; without one the agent's own choice")
    parser.add_argument("--argv", default="", help="the program of the kinds acp and command")
    parser.add_argument("--tasks", default="", help="which tasks, by name; all without it")
    parser.add_argument("--ways", default=(), type=_ways, help=f"of {', '.join(WAYS)}; all without it")
    parser.add_argument("--json", default="", metavar="FILE", help="write the results there, too")
    parser.add_argument("--budget", default=2.0, type=float, metavar="USD", help="what one run may cost")
    parser.add_argument("--yes", action="store_true", help="do not ask before it begins")
    return parser


def _ways(text: str) -> tuple[str, ...]:
    names = tuple(text.split())
    if unknown := [name for name in names if name not in WAYS]:
        raise argparse.ArgumentTypeError(f"no way is called {', '.join(unknown)}; there are {', '.join(WAYS)}")
    return names


def _with_stub(options: argparse.Namespace, tasks: Sequence[Task], folder: str) -> Iterator[table.Row]:
    import stub  # needs what the tests need

    with stub.stub(Path(folder)) as model:
        for kind in stub.KINDS:
            yield from _work(model.terms(kind), tasks, ways_for(kind, options.ways), Path(folder, kind), model.knows)


def _with_agent(options: argparse.Namespace, tasks: Sequence[Task], scratch: Path) -> Iterator[table.Row]:
    argv = tuple(shlex.split(options.argv))
    terms = Terms(options.agent, dict(os.environ), options.model, argv, options.budget)
    ways = ways_for(terms.kind, options.ways)
    if not ways:
        raise CannotBeginError(f"{terms.kind} cannot be called without aiflow: it has no plain way")
    _tell_costs(terms, tasks, ways)
    if not options.yes:
        _ask_whether_to_begin()
    return _work(terms, tasks, ways, scratch, lambda _: None)


def _work(
    terms: Terms, tasks: Sequence[Task], ways: Sequence[str], scratch: Path, announce: Callable[[Task], None]
) -> Iterator[table.Row]:
    for task in tasks:
        announce(task)
        for way in ways:
            place = scratch / task.name / way
            place.mkdir(parents=True)
            outcome = WAYS[way](task, terms, place)
            told = "solved" if outcome.judgement.is_solved else "NOT SOLVED"
            print(f"{terms.kind} {task.name} {way}: {told}, {outcome.ended}", flush=True)
            yield table.Row(terms.kind, task.name, way, outcome)


def _tell_costs(terms: Terms, tasks: Sequence[Task], ways: Sequence[str]) -> None:
    runs = len(tasks) * len(ways)
    least, most = (len(tasks) * sum(CALLS[way][which] for way in ways) for which in (0, 1))
    print(f"This calls {terms.kind} with your login: {len(tasks)} tasks × {len(ways)} ways ({', '.join(ways)}),")
    print(f"{least} calls if all goes well, at most {most}. No run takes more than {MOST_MINUTES} minutes.")
    if terms.kind == "claude-code" and terms.budget_usd:
        print(
            f"Each run stops at ${terms.budget_usd:g} (BUDGET), so it costs about ${runs * terms.budget_usd:g} at most."
        )
    else:
        print(f"Nothing but that limits what it costs: {terms.kind} does not tell its price.")


def _ask_whether_to_begin() -> None:
    if not sys.stdin.isatty():
        raise CannotBeginError("Nobody is here to agree to that: add YES=1.")
    if input("Begin? [y/N] ").strip().lower() not in ("y", "yes"):
        raise CannotBeginError("Nothing was called.")


def _keep(rows: Sequence[table.Row], path: str) -> None:
    if path:
        Path(path).write_text(json.dumps(table.document(rows), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
