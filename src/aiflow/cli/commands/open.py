"""`aiflow open`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.terminal.browser import open_browser
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.qr_code import show_phone_code
from aiflow.cli.terminal.render import clean
from aiflow.usecases.server.find_server import invite
from aiflow.wiring.server import answering, door_page, server_door, server_records

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("open", is_lenient=True)
@option("--browser/--no-browser", "wants_browser", default=True, help="option.open.browser")
def command(session: CliSession, as_json: bool, wants_browser: bool) -> None:  # noqa: FBT001
    """Open the page of the server that runs here."""
    root = session.root
    invitation = invite(server_records(root), answering, server_door(root))
    if as_json:
        url = invitation.server.url
        print_json({"url": url, "sign_in_url": invitation.link, "expires_at": invitation.expires_at})
        return
    click.echo(session.texts("open.link"))
    click.echo(f"  {clean(invitation.link)}")
    show_phone_code(invitation.link, invitation.server.url, session.settings)
    if wants_browser:
        browser = open_browser(door_page(root, invitation.link))
        if browser is not None:
            browser.join()
