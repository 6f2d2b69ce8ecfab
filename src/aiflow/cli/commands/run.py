"""`aiflow run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.cli.options import baseline_option, for_this_call, option, quick_option, request_id_argument
from aiflow.cli.options import command as make_command
from aiflow.cli.running import run_to_the_end
from aiflow.usecases.runs.start import start_run

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("run")
@request_id_argument()
@quick_option()
@baseline_option()
@option("--wait", is_flag=True, help="option.run.wait")
def command(session: CliSession, as_json: bool, request_id: RequestId, wait: bool, **quicker: bool) -> None:  # noqa: FBT001
    """Run one request to its end."""
    for_this_call(session, **quicker)
    run_to_the_end(session, request_id, lambda engine: start_run(engine, request_id), as_json=as_json, wait=wait)
