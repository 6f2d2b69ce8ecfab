"""The server in front of a person (API-1): its address, a code to sign in with, and Ctrl-C once or twice."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import click

from aiflow import __version__
from aiflow.api.context import Server
from aiflow.api.serve import HttpServer, listen
from aiflow.cli.terminal.print_json import print_json
from aiflow.domain.server.guard import addresses, is_loopback
from aiflow.errors import BadInputError, ConflictError
from aiflow.ports.server import ServerRecord
from aiflow.web.app import make_app
from aiflow.wiring.live import LivePorts
from aiflow.wiring.server import answering, door_of, new_instance_id, server_records, watch_of, work_starter

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


def serve(session: CliSession, *, as_json: bool, is_port_wanted: bool, **wishes: bool | None) -> None:
    """Be the server of this checkout until asked to stop."""
    settings, root = session.settings, session.project.root
    host, is_unguarded = settings.text("server.host"), settings.text("server.auth") == "none"
    if is_unguarded and not is_loopback(host):
        raise BadInputError(detail=session.texts("up.auth_none", host=host))
    records = server_records(root)
    with records.holding() as is_first:
        if not is_first:
            known = records.read()
            raise ConflictError(reason_code="SERVER_RUNNING", url=known.url if known else "?")
        listening = listen(
            host,
            settings.integer("server.port"),
            is_ours=lambda at, port: not is_port_wanted and answering(f"http://{at}:{port}") is not None,
        )
        port = listening.getsockname()[1]
        door = door_of(root, settings.number("server.session_days"))
        door.access.token()  # made now, for who waits for the line that names its file
        record, live = (
            _record(root, f"http://{host}:{port}", session),
            LivePorts(root, session.flags, session.more_sources),
        )
        server = Server(
            live=live,
            sign_in=door,
            work=work_starter(root, live),
            record=record,
            records=records,
            addresses=addresses(host, port, settings.texts("server.hosts")),
            is_unguarded=is_unguarded,
            port=port,
            language=session.texts.language,
            now=session.now,
            watch=watch_of(root, live),
        )

        def ready() -> None:
            records.write(record)
            _say_ready(session, server, as_json=as_json)

        http = HttpServer(make_app(server), ready, server.events.stop)

        def stop(_number: int, _frame: object) -> None:
            http.should_exit = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            http.work(listening)
        finally:
            records.remove(record.instance_id)
            for number, handler in before.items():
                signal.signal(number, handler)


def _record(root: str, url: str, session: CliSession) -> ServerRecord:
    """Say which server this is."""
    return ServerRecord(new_instance_id(), url, os.getpid(), root, session.now(), __version__)


def _say_ready(session: CliSession, server: Server, *, as_json: bool) -> None:
    """Say where the server is, once it answers."""
    record = server.record
    if as_json:
        print_json(
            {
                "url": record.url,
                "token_file": server.sign_in.access.token_file,
                "instance_id": record.instance_id,
                "pid": record.pid,
            }
        )
        return
    code, _ = server.sign_in.make_code()
    click.echo(session.texts("up.ready", url=f"{record.url}/sign-in#code={code}"))
