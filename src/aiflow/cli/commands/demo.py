"""`aiflow demo`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import click

from aiflow.cli.auto_session import run_auto
from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.session import CliSession
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import heading, is_terminal, say
from aiflow.domain.reasons import exit_code
from aiflow.messages.commands import command_line
from aiflow.usecases.auto.run import NOTHING_RUNNABLE, limits_of
from aiflow.usecases.shapes.auto import demo_shape
from aiflow.wiring.server import own_command

if TYPE_CHECKING:
    from aiflow.api.context import Server
    from aiflow.cli.running import Interrupts
    from aiflow.domain.auto.summary import Summary
    from aiflow.messages import Texts
    from aiflow.usecases.project.demo import Demo, Suggestion

# How long the agent takes for a step at least, so that an eye can follow; on the page there is more to see.
EYE_SECONDS = "0.5"
PAGE_SECONDS = "1.5"
EAR_SECONDS = 0.2


@make_command("demo")
@click.argument("folder", metavar="[DIR]", required=False)
@option("--no-run", is_flag=True, help="option.demo.no_run")
@option("--serve", is_flag=True, help="option.demo.serve")
def command(session: CliSession, as_json: bool, folder: str | None, no_run: bool, serve: bool) -> None:  # noqa: FBT001
    """Make a small repository with a backlog, let the demo agent work through it, and say what to try next."""
    from aiflow.usecases.project.demo import make_demo, suggest
    from aiflow.wiring import new_demo

    texts = session.texts
    place = new_demo(None if folder is None else os.path.join(session.start, folder))
    place.leave_settings()
    session.check_settings(place.source(texts.language))  # report a mistake in a flag before anything is made
    demo = make_demo(place, texts)
    if not as_json:
        with contextlib.suppress(OSError):  # a missing reader does not stop the rest
            _introduce(demo, texts, will_run=not no_run)
    if serve:
        _serve(CliSession(demo.root, session.flags, texts), demo, as_json=as_json, will_run=not no_run)
        return
    summary = None if no_run else _run(CliSession(demo.root, session.flags, texts), as_json=as_json)
    code = summary.session.reason_code if summary else None
    suggestions = suggest(demo, texts, has_run=code == NOTHING_RUNNABLE)
    if as_json:
        print_json(demo_shape(demo.root, summary, suggestions))
    else:
        with contextlib.suppress(OSError):
            _show(suggestions, texts)
    raise click.exceptions.Exit(int(exit_code(code)) if code else 0)


def _introduce(demo: Demo, texts: Texts, *, will_run: bool) -> None:
    say(texts("demo.made", root=demo.root))
    if will_run:
        say(texts("demo.runs"))
        click.echo()


def _run(session: CliSession, *, as_json: bool) -> Summary:
    """Let auto-run work in the demo, as `aiflow auto` does."""
    if is_terminal():
        os.environ.setdefault("AIFLOW_DEMO_SECONDS", EYE_SECONDS)
    return run_auto(session, limits_of(session.settings), as_json=as_json)


def _serve(session: CliSession, demo: Demo, *, as_json: bool, will_run: bool) -> None:
    """Be the demo's `aiflow up` until Ctrl-C, while auto-run works in front of the person and on the page."""
    from aiflow.cli.serving import UpWishes, serve
    from aiflow.usecases.project.demo import suggest

    def begin(server: Server, interrupts: Interrupts) -> None:
        if as_json:
            if will_run:
                server.work.launch(("auto",))
            return
        with contextlib.suppress(OSError):
            click.echo()
            say(session.texts("demo.serve.runs" if will_run else "demo.serve.waits"))
            click.echo()
        if will_run:
            _work(session, interrupts)
        with contextlib.suppress(OSError):
            suggestions = suggest(demo, session.texts, has_run=will_run)
            _stay(suggestions, session.texts, "" if interrupts() else server.record.url)

    if is_terminal():
        os.environ.setdefault("AIFLOW_DEMO_SECONDS", PAGE_SECONDS)
    wishes = UpWishes(
        as_json=as_json, is_port_wanted=False, wants_browser=True, wants_runner=False, continues=True, begin=begin
    )
    serve(session, wishes)


def _work(session: CliSession, interrupts: Interrupts) -> None:
    """Have auto-run work as a program of its own on the same terminal: Ctrl-C reaches it as it does us."""
    with subprocess.Popen(own_command(session.flags, ("auto",)), cwd=session.project.root) as auto:
        while auto.poll() is None:
            if {signal.SIGTERM, signal.SIGHUP} & set(interrupts.received):
                auto.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                auto.wait(EAR_SECONDS)


def _stay(suggestions: tuple[Suggestion, ...], texts: Texts, url: str) -> None:
    """Say what to try next, and where the page stays; after it has ended, how to remove everything."""
    if not url:
        _show(tuple(each for each in suggestions if each.name == "end"), texts)
        return
    _show(suggestions, texts)
    click.echo()
    say(texts("demo.serve.stays", url=url))


def _show(suggestions: tuple[Suggestion, ...], texts: Texts) -> None:
    """Write what to try next: commands on separate lines, to be copied as they are."""
    click.echo()
    heading(texts("demo.next"))
    for suggestion in suggestions:
        click.echo()
        say(texts(f"demo.try.{suggestion.name}"), "  ")
        for action in suggestion.actions:
            click.echo(f"    {command_line(action)}")
