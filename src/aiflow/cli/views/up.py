"""What `aiflow up` says: where it is, how to sign in, what it found, and what happens while it is up."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from aiflow.cli.failure import show
from aiflow.cli.terminal.qr_code import show_phone_code
from aiflow.cli.terminal.render import clean, say
from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.messages.commands import command_line
from aiflow.usecases.server.up_news import UpNews, UpNewsKind

if TYPE_CHECKING:
    from aiflow.messages import Texts
    from aiflow.settings import Settings

_CONTINUED = {UpNewsKind.NIGHT_WAS_CUT, UpNewsKind.WAS_INTERRUPTED}


class UpView:
    """Says everything on standard output, or, where that is for a program, on standard error."""

    def __init__(self, texts: Texts, *, as_json: bool) -> None:
        self._texts = texts
        self._is_err = as_json

    def show_port(self, wanted: int, taken: int, root: str | None) -> None:
        """Say that another project has the usual port; which one is not known of a server that has just begun."""
        self._say("up.port_taken" if root else "up.port_taken_unseen", wanted=wanted, port=taken, root=root)

    def show_no_names(self, host: str) -> None:
        """Say that other devices reach the server, and that it answers none of them yet."""
        self._say("up.no_names", host=host)

    def show_ready(self, url: str, base_branch: str) -> None:
        """Say where the server is, and what it merges into."""
        self._say("up.ready", url=url)
        if base_branch:
            self._say("up.base", branch=base_branch)

    def show_door(self, link: str, url: str, settings: Settings) -> None:
        """Say how to sign in: here by a link, and by a QR code where another device can follow it."""
        self._say("up.sign_in")
        click.echo(f"  {clean(link)}", err=self._is_err)
        show_phone_code(link, url, settings)

    def show_how_to_stop(self) -> None:
        """Say how it is ended."""
        self._say("up.how_to_stop")

    def show_end(self) -> None:
        """Say that it has ended."""
        self._say("up.ended")

    def hear(self, news: UpNews) -> None:
        """Say what happened."""
        with contextlib.suppress(OSError):  # a closed output: the server is for others, too
            self._hear(news)

    def _hear(self, news: UpNews) -> None:
        key, facts = f"up.{news.kind}", {name: value for name, value in news.facts.items() if value is not None}
        if news.kind in (UpNewsKind.CONTINUES, UpNewsKind.WORKER_KILLED, UpNewsKind.WORKER_REFUSED):
            key += ".run" if "request_id" in facts else ".auto"
        if news.kind is UpNewsKind.AT_WORK:
            key += ".run" if "run_id" in facts else ".auto"
        if news.kind in _CONTINUED and not news.facts["continues"]:
            key += ".left"
            facts["command"] = command_line(_way_on(news))
        if news.kind is UpNewsKind.RUNNER_DIED and not news.facts["said"]:
            facts["said"] = "-"
        self._say(key, **facts)
        if news.error is not None:
            show(news.error)

    def _say(self, key: str, **facts: object) -> None:
        say(self._texts(key, **facts), err=self._is_err)


def _way_on(news: UpNews) -> NextAction:
    if news.kind is UpNewsKind.NIGHT_WAS_CUT:
        return NextAction(ActionKind.AUTO, options=(("continue", ""),))
    return NextAction(ActionKind.RUN, str(news.facts["request_id"]))
