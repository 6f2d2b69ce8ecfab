"""`aiflow up`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("up")
@option("--host", metavar="ADDRESS", help="option.up.host")
@option("--port", type=click.IntRange(min=0, max=65535), metavar="N", help="option.up.port")
@option("--open/--no-open", "wants_browser", default=True, help="option.up.open")
@option("--runner/--no-runner", "wants_runner", default=None, help="option.up.runner")
@option("--continue/--no-continue", "continues", default=True, help="option.up.continue")
def command(session: CliSession, as_json: bool, host: str | None, port: int | None, **wishes: Any) -> None:  # noqa: FBT001
    """Serve the page and the API of this project, and look after what they start."""
    from aiflow.cli.serving import UpWishes, serve

    if host is not None:
        session.flags = (*session.flags, f"server.host={host}")
    if port is not None:
        session.flags = (*session.flags, f"server.port={port}")
    serve(session, UpWishes(as_json=as_json, is_port_wanted=port is not None, **wishes))
