"""`aiflow service`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import say
from aiflow.domain.reasons import ExitCode
from aiflow.errors import BadInputError
from aiflow.usecases.server.find_server import find_server
from aiflow.usecases.server.service import install_service, uninstall_service
from aiflow.usecases.shapes.server import service_shape
from aiflow.wiring.server import answering, server_records
from aiflow.wiring.services import service_of, services_here

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.server.service_unit import ServiceSpec
    from aiflow.ports.services import Services, ServiceState

ACTIONS = ("install", "uninstall", "status")


@make_command("service", is_lenient=True)
@click.argument("action", type=click.Choice(ACTIONS), metavar="|".join(ACTIONS), required=False)
@option("--print", "is_print", is_flag=True, help="option.service.print")
def command(session: CliSession, as_json: bool, action: str | None, is_print: bool) -> None:  # noqa: FBT001
    """Run the server of this project as a service of the user."""
    if action is None:
        raise click.exceptions.NoArgsIsHelpError(click.get_current_context())
    if is_print and action != "install":
        raise BadInputError(detail=session.texts("service.only_install"), hint="aiflow service --help")
    services, service = services_here(), service_of(session.root, session.flags)
    if is_print:
        click.echo(services.text(service), nl=False)
    elif action == "install":
        _install(session, services, service, as_json=as_json)
    elif action == "uninstall":
        was_there = uninstall_service(services, service.name)
        if as_json:
            print_json({"service": service_shape(services.state(service.name))})
        else:
            click.echo(session.texts("service.removed" if was_there else "service.none", name=service.name))
    else:
        _status(session, services.state(service.name), as_json=as_json)


def _install(session: CliSession, services: Services, service: ServiceSpec, *, as_json: bool) -> None:
    session.check_settings(session.root)  # a service that cannot start is not installed
    state = install_service(services, service, find_server(server_records(session.root), answering))
    if as_json:
        print_json({"service": service_shape(state)})
        return
    click.echo(session.texts("service.installed", name=state.name))
    _show(session, state)
    say(session.texts("service.then"))


def _status(session: CliSession, state: ServiceState, *, as_json: bool) -> None:
    if as_json:
        print_json({"service": service_shape(state)})
    elif not state.is_installed:
        click.echo(session.texts("service.none", name=state.name))
    else:
        key = "service.running" if state.is_running else "service.not_running"
        click.echo(session.texts(key, name=state.name, state=state.state or "?"))
        _show(session, state)
    if not state.is_running:
        raise click.exceptions.Exit(int(ExitCode.ENVIRONMENT))


def _show(session: CliSession, state: ServiceState) -> None:
    say(session.texts("service.path", path=state.path), "  ")
    if state.lingers is False:
        say(session.texts("service.no_linger"), "  ")
