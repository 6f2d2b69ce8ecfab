"""`aiflow logs`."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, target_argument
from aiflow.cli.render import clean
from aiflow.cli.running import find_run
from aiflow.cli.session import Session, print_json
from aiflow.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.request import RequestId
    from aiflow.domain.run import Run
    from aiflow.usecases.engine import Engine

POLL_SECONDS = 0.2
_LOG = re.compile(r"step-(\d+)\.log")


@make_command("logs", is_lenient=True)
@target_argument()
@option("-s", "--step", metavar="STEP", help="option.logs.step")
@option("-n", "lines", type=click.IntRange(min=0), metavar="N", help="option.logs.lines")
@option("-f", "--follow", is_flag=True, help="option.logs.follow")
def command(
    session: Session,
    as_json: bool,  # noqa: FBT001
    target: RequestId,
    step: str | None,
    **how: Any,
) -> None:
    """Show the logs of a run."""
    engine = session.engine()
    run = find_run(engine, target)
    number = _number(run, step)
    if as_json:
        root = f"{session.project.root}/"
        logs = [
            {"step": n, "path": path.removeprefix(root), "text": _text(path)} for n, path in _logs(session, run, number)
        ]
        print_json({"request_id": run.request_id, "run_id": run.run_id, "logs": logs})
        return
    texts = {path: _text(path) for _, path in _logs(session, run, number)}
    shown = [line for text in texts.values() for line in text.splitlines()]
    for line in shown if how["lines"] is None else shown[max(0, len(shown) - how["lines"]) :]:
        click.echo(clean(line))
    if how["follow"]:
        _follow(session, engine, run, number, {path: len(os.fsencode(text)) for path, text in texts.items()})
    elif not shown:
        click.echo(session.texts("logs.none"))


def _number(run: Run, step: str | None) -> int | None:
    """Return the number of the log that is meant: S03 or 3, planner or 0."""
    if step is None:
        return None
    if step.lower() in ("planner", "plan"):
        return 0
    match = re.fullmatch(r"[Ss]?(\d{1,2})", step)
    known = {0, *(planned.number for planned in run.plan)}
    if match is None or int(match[1]) not in known:
        names = ", ".join(("planner", *(planned.id for planned in run.plan)))
        raise BadInputError(detail=f"{step}: {names}")
    return int(match[1])


def _logs(session: Session, run: Run, number: int | None) -> list[tuple[int, str]]:
    """Return the logs of a run in the order of its steps."""
    folder = f"{session.project.root}/runs/{run.request_id}/{run.run_id}/logs"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = [(int(match[1]), f"{folder}/{name}") for name in names if (match := _LOG.fullmatch(name))]
    return sorted(pair for pair in found if number in (None, pair[0]))


def _text(path: str) -> str:
    with open(path, "rb") as file:
        return file.read().decode("utf-8", "surrogateescape")


def _follow(session: Session, engine: Engine, run: Run, number: int | None, offsets: dict[str, int]) -> None:
    """Show what is added to the logs until the run has ended; a new step's log is followed as it appears."""
    while True:
        is_active = _is_worked_on(engine, run)
        for _, path in _logs(session, run, number):
            for line in _added(path, offsets):
                click.echo(clean(line))
        if not is_active:
            return
        time.sleep(POLL_SECONDS)


def _is_worked_on(engine: Engine, run: Run) -> bool:
    """Tell whether the run is active and somebody holds its lock."""
    current = engine.runs.load(run.request_id, run.run_id)
    alive = {status.lock.request_id for status in engine.locks.survey() if not status.verdict.is_stale}
    return current is not None and current.is_active and run.request_id in alive


def _added(path: str, offsets: dict[str, int]) -> Iterator[str]:
    """Yield the complete lines that were added to a log."""
    with open(path, "rb") as file:
        file.seek(offsets.get(path, 0))
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    offsets[path] = offsets.get(path, 0) + len(whole)
    yield from whole.decode("utf-8", "replace").splitlines()
