"""The server in front of a person (API-1): its address, a code to sign in with, and Ctrl-C once or twice."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from aiflow import __version__
from aiflow.api.context import Server
from aiflow.api.serve import HttpServer, listen
from aiflow.api.serving_thread import serving
from aiflow.cli.running import Interrupts, catching_signals
from aiflow.cli.terminal.browser import open_browser
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.views.up import UpView
from aiflow.cli.waiting import wait_until
from aiflow.domain.server.guard import addresses, is_loopback, near_host
from aiflow.domain.server.supervision import Wish
from aiflow.errors import BadInputError, ConflictError
from aiflow.ports.server import ServerRecord
from aiflow.usecases.engine import Voice
from aiflow.usecases.server.issue_watch import IssueStarts
from aiflow.usecases.server.supervise import UpDesk, supervise
from aiflow.usecases.server.up_news import UpNews, UpNewsKind
from aiflow.web.app import make_app
from aiflow.wiring import system_time
from aiflow.wiring.live import LivePorts
from aiflow.wiring.server import (
    answering,
    close_door_page,
    door_of,
    door_page,
    new_instance_id,
    runner_child,
    server_records,
    tell_manager,
    wants_runner,
    watch_of,
    work_starter,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from aiflow.cli.session import CliSession
    from aiflow.errors import AiflowError
    from aiflow.ports.server import ServerRecords

# How long a server that is about to start is given to say where it is.
STARTING_SECONDS = 10.0


class UpWishes(NamedTuple):
    """What the person asked for besides the settings; None leaves it to them."""

    as_json: bool
    is_port_wanted: bool
    wants_browser: bool
    wants_runner: bool | None
    continues: bool
    begin: Callable[[Server, Interrupts], None] | None = None
    """What is done once the server answers, before it is looked after."""


def serve(session: CliSession, wishes: UpWishes) -> None:
    """Be the server of this checkout until asked to stop."""
    settings, root = session.settings, session.project.root
    host = settings.text("server.host")
    if settings.text("server.auth") == "none" and not is_loopback(host):
        raise BadInputError(detail=session.texts("up.auth_none", host=host))
    records, view = server_records(root), UpView(session.texts, as_json=wishes.as_json)
    with records.holding() as is_first:
        if not is_first:
            raise _running(records)
        with _listen(session, records, view, is_port_wanted=wishes.is_port_wanted) as listening:
            up = _put_together(session, records, listening)
            _be_up(session, wishes, up, view)


@dataclass(frozen=True, slots=True)
class _Up:
    """A server put together: with its socket, its base branch and the settings that its children are given."""

    server: Server
    listening: socket.socket
    base_branch: str
    flags: tuple[str, ...]


def _put_together(session: CliSession, records: ServerRecords, listening: socket.socket) -> _Up:
    """Put the server together; the base branch is fixed at this moment, for everything it starts, too (AUT-5)."""
    settings, root = session.settings, session.project.root
    base = session.engine().find_base()
    flags = (*session.flags, f"base_branch={base}") if base else session.flags
    host, port = settings.text("server.host"), listening.getsockname()[1]
    door = door_of(root, settings.number("server.session_days"))
    door.access.token()  # made now, for who waits for the line that names its file
    live = LivePorts(root, flags, session.more_sources)
    server = Server(
        live=live,
        sign_in=door,
        work=work_starter(root, live, flags),
        record=ServerRecord(
            new_instance_id(), f"http://{near_host(host)}:{port}", os.getpid(), root, session.now(), __version__
        ),
        records=records,
        addresses=addresses(host, port, settings.texts("server.hosts")),
        is_unguarded=settings.text("server.auth") == "none",
        port=port,
        language=session.texts.language,
        now=session.now,
        watch=watch_of(root, live),
    )
    return _Up(server, listening, base, flags)


def _be_up(session: CliSession, wishes: UpWishes, up: _Up, view: UpView) -> None:
    """Answer calls and look after what belongs to the server, until it is to end."""
    record, root = up.server.record, session.project.root
    with catching_signals(lambda _interrupts: None) as interrupts:
        try:
            with serving(
                lambda ready: HttpServer(make_app(up.server), ready, up.server.events.stop), up.listening
            ) as is_serving:
                up.server.records.write(record)
                _say_ready(session, wishes, up, view)
                if wishes.begin is not None:
                    wishes.begin(up.server, interrupts)
                tell_manager("READY=1")
                _watch_issues(up.server, view, session.settings.text("github.repo"))
                desk = UpDesk(
                    engine=lambda: up.server.live.engine(Voice(session.texts)),
                    records=session.project.auto_records,
                    work=up.server.work,
                    runner=runner_child(root, up.flags),
                    time=system_time(),
                    wish=lambda: wish_of(interrupts),
                    wants_runner=lambda: _is_runner_wanted(up.server, wishes),
                    is_serving=is_serving,
                    tell=view.hear,
                    continues=wishes.continues,
                    issues=IssueStarts(up.server.issues),
                )
                supervise(desk)
                tell_manager("STOPPING=1")
        finally:
            up.server.issues.leave()
            up.server.records.remove(record.instance_id)
            close_door_page(root)
    if not wishes.as_json:
        view.show_end()


def _watch_issues(server: Server, view: UpView, repo: str) -> None:
    """Begin to watch the issues; a missing token is reported at once."""
    if repo:
        view.hear(UpNews(UpNewsKind.ISSUES_WATCHED, {"repo": repo}))

    def heard(trouble: AiflowError | None) -> None:
        kind = UpNewsKind.ISSUES_BACK if trouble is None else UpNewsKind.ISSUES_TROUBLE
        view.hear(UpNews(kind, error=trouble))

    server.issues.heard = heard
    server.issues.start()


def wish_of(interrupts: Interrupts) -> Wish:
    """Say what signals ask for: Ctrl-C once to end after the work, twice now; a service's stop leaves the work."""
    received = interrupts.received
    if not received:
        return Wish.STAY
    if signal.SIGTERM in received:
        return Wish.LEAVE
    if signal.SIGHUP in received:
        return Wish.NOW
    return Wish(min(len(received), Wish.LEAVE))


def _is_runner_wanted(server: Server, wishes: UpWishes) -> bool:
    return wants_runner(server.live.settings()) if wishes.wants_runner is None else wishes.wants_runner


def _running(records: ServerRecords) -> ConflictError:
    """Say where the server of this checkout is; one that has just been started is given a moment to say so itself."""
    found: list[str] = []

    def is_there() -> bool:
        known = records.read()
        if known is not None and answering(known.url) == known.instance_id:
            found.append(known.url)
        return bool(found)

    wait_until(is_there, STARTING_SECONDS)
    known = records.read()
    url = found[0] if found else known.url if known else "?"
    return ConflictError(reason_code="SERVER_RUNNING", url=url, **({"pid": known.pid} if known else {}))


def _listen(session: CliSession, records: ServerRecords, view: UpView, *, is_port_wanted: bool) -> socket.socket:
    """Listen on the port of the settings; where another project's server has it, on the next free one."""
    settings = session.settings
    wanted = settings.integer("server.port")
    roots: list[str | None] = []

    def is_anothers(_host: str, port: int) -> bool:
        if is_port_wanted:
            return False
        known = [each for each in records.others() if each.url.endswith(f":{port}")]
        for url in dict.fromkeys((*(each.url for each in known), f"http://127.0.0.1:{port}")):
            answer = answering(url)
            if answer is not None:
                roots.append(next((each.root for each in known if each.instance_id == answer), None))
                return True
        return False

    listening = listen(settings.text("server.host"), wanted, is_ours=is_anothers)
    if roots:
        view.show_port(wanted, listening.getsockname()[1], roots[0])
    return listening


def _say_ready(session: CliSession, wishes: UpWishes, up: _Up, view: UpView) -> None:
    """Say where the server is, once it answers, and open the page."""
    server, record = up.server, up.server.record
    host = session.settings.text("server.host")
    if near_host(host) not in (host, f"[{host}]") and not session.settings.texts("server.hosts"):
        view.show_no_names(host)
    if wishes.as_json:
        token_file = server.sign_in.access.token_file
        told = {"url": record.url, "token_file": token_file, "instance_id": record.instance_id, "pid": record.pid}
        print_json(told, is_event=True)
        return
    view.show_ready(record.url, up.base_branch)
    if server.is_unguarded:
        page = record.url
    else:
        way = f"/sign-in#code={server.sign_in.make_code()[0]}"
        page = record.url + way
        view.show_door(page, record.url, session.settings)
    view.show_how_to_stop()
    if wishes.wants_browser:
        open_browser(page if server.is_unguarded else door_page(record.root, page))
