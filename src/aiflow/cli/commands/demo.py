"""`aiflow demo`."""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from aiflow.cli.auto_session import run_auto
from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.render import heading, is_terminal, say
from aiflow.cli.session import Session, print_json
from aiflow.domain.reasons import exit_code
from aiflow.usecases.auto_run import NOTHING_RUNNABLE, limits_of
from aiflow.usecases.auto_summary import summary_shape

if TYPE_CHECKING:
    from aiflow.domain.auto_run import Summary
    from aiflow.messages import Texts
    from aiflow.usecases.make_demo import Demo, Suggestion

# How long the agent takes for a step at least, so that an eye can follow.
EYE_SECONDS = "0.5"


@make_command("demo")
@click.argument("folder", metavar="[DIR]", required=False)
@option("--no-run", is_flag=True, help="option.demo.no_run")
def command(session: Session, as_json: bool, folder: str | None, no_run: bool) -> None:  # noqa: FBT001
    """Make a small repository with a backlog, let the demo agent work through it, and say what to try next."""
    from aiflow.usecases.make_demo import make_demo, suggest
    from aiflow.wiring import new_demo

    texts = session.texts
    place = new_demo(None if folder is None else os.path.join(session.start, folder))
    place.leave_settings()
    session.check_settings(place.source(texts.language))  # a mistake in a flag is told before anything is made
    demo = make_demo(place, texts)
    if not as_json:
        with contextlib.suppress(OSError):  # that nobody reads it does not stop the rest
            _introduce(demo, texts, will_run=not no_run)
    summary = None if no_run else _run(Session(demo.root, session.flags, texts), as_json=as_json)
    code = summary.session.reason_code if summary else None
    suggestions = suggest(demo, texts, has_run=code == NOTHING_RUNNABLE)
    if as_json:
        auto = summary_shape(summary) if summary else None
        print_json({"root": demo.root, "auto": auto, "next": [asdict(each) for each in suggestions]})
    else:
        with contextlib.suppress(OSError):
            _show(suggestions, texts)
    raise click.exceptions.Exit(int(exit_code(code)) if code else 0)


def _introduce(demo: Demo, texts: Texts, *, will_run: bool) -> None:
    say(texts("demo.made", root=demo.root))
    if will_run:
        say(texts("demo.runs"))
        click.echo()


def _run(session: Session, *, as_json: bool) -> Summary:
    """Let auto-run work in the demo, as `aiflow auto` does."""
    if is_terminal():
        os.environ.setdefault("AIFLOW_DEMO_SECONDS", EYE_SECONDS)
    return run_auto(session, limits_of(session.settings), as_json=as_json)


def _show(suggestions: tuple[Suggestion, ...], texts: Texts) -> None:
    """Write what to try next: commands on lines of their own, to be copied as they are."""
    click.echo()
    heading(texts("demo.next"))
    for suggestion in suggestions:
        click.echo()
        say(texts(f"demo.try.{suggestion.name}"), "  ")
        for command in suggestion.commands:
            click.echo(f"    {command}")
