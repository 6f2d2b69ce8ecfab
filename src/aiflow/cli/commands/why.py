"""`aiflow why`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.cli.options import command as make_command
from aiflow.cli.options import request_id_argument
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.views.why import show_why
from aiflow.usecases.backlog.why import explain_request
from aiflow.usecases.shapes.backlog import why_result

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("why")
@request_id_argument()
def command(session: CliSession, as_json: bool, request_id: RequestId) -> None:  # noqa: FBT001
    """Explain why a request isn't running, down to the roots, and how to fix it."""
    engine = session.engine()
    why = explain_request(
        session.project.sources,
        engine.locks,
        request_id,
        warn=session.missing_merges,
        first=session.continued_first,
    )
    if as_json:
        print_json(why_result(why.stations, why.warnings))
    else:
        show_why(session, why)
