"""`aiflow edit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aiflow.cli.editor import kept_text
from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, request_id_argument
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.warnings import warn_of_dependencies, warn_of_misspelt_keys
from aiflow.errors import BadInputError
from aiflow.usecases.backlog.rewrite import rewrite_request
from aiflow.usecases.shapes.backlog import rewritten_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("edit")
@request_id_argument()
@option("--file", "-F", "name", metavar="FILE", help="option.edit.file")
def command(session: CliSession, as_json: bool, request_id: RequestId, name: str | None) -> None:  # noqa: FBT001
    """Edit a request in your editor, and check it before it is saved."""
    editor = session.project.editor
    before, record = editor.whole_text(request_id), (session.journal, session.now)
    if name is not None:
        has_changed = rewrite_request(request_id, (before, _read(name)), editor, record)
    else:
        with kept_text(session, request_id, before) as draft:
            has_changed = rewrite_request(request_id, (before, draft.edit()), editor, record)
    if as_json:
        print_json(rewritten_shape(request_id, has_changed=has_changed))
        return
    click.echo(session.texts("edit.done" if has_changed else "edit.same", request_id=request_id))
    warn_of_misspelt_keys(session, request_id)
    warn_of_dependencies(session, request_id)


def _read(name: str) -> str:
    """Read the text from a file, or from standard input for `-`."""
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInputError(detail=f"{name}: UTF-8") from None
