"""`aiflow shell`."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING

from aiflow.cli.options import command as make_command
from aiflow.cli.options import target_argument
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import say
from aiflow.domain.next_action import ActionKind
from aiflow.errors import BadInputError
from aiflow.usecases.runs.enter import enter_worktree, way_on_by_hand
from aiflow.usecases.runs.find import find_run
from aiflow.usecases.shapes.runs import workplace_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId
    from aiflow.usecases.runs.enter import Workplace


@make_command("shell", is_lenient=True)
@target_argument()
def command(session: CliSession, as_json: bool, target: RequestId) -> None:  # noqa: FBT001
    """Open a shell in a run's worktree."""
    engine = session.engine()
    place = enter_worktree(engine, find_run(engine, target))
    if as_json:
        print_json(workplace_shape(place.run, is_worked_on=place.is_worked_on))
    else:
        _open(session, place)


def _open(session: CliSession, place: Workplace) -> None:
    """Let the person's own shell run there, and say before and after what counts."""
    texts, run = session.texts, place.run
    say(texts("shell.opened", path=run.place.path, branch=run.place.branch), err=True)
    if place.is_worked_on:
        say(texts("shell.worked_on"), err=True)
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        subprocess.run([shell], cwd=run.place.path, check=False)
    except OSError as error:
        raise BadInputError(detail=texts("shell.none", shell=shell, problem=error.strerror or str(error))) from None
    way = way_on_by_hand(session.engine(), place)
    if way is not None:
        key = "shell.left_done" if way.kind is ActionKind.ACCEPT else "shell.left"
        say(texts(key, path=shlex.quote(run.place.path), command=way), err=True)
