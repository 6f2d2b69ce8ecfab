"""The options and arguments that commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from aiflow.cli.session import Session
from aiflow.cli.words import WordedCommand, WordedOption
from aiflow.domain.request import Priority, RequestStatus

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

STATUS_CHOICE = click.Choice([status.value for status in RequestStatus])
PRIORITY_CHOICE = click.Choice([priority.value for priority in Priority])

F = TypeVar("F", bound=Callable[..., Any])


def command(name: str) -> Callable[[F], click.Command]:
    """Make a command with the options that every command has; its words are the texts `cli.<name>…`."""

    def decorate(function: F) -> click.Command:
        wrapped = click.command(name, cls=WordedCommand, context_settings={"help_option_names": ["-h", "--help"]})
        lang = click.option(
            "--lang", cls=WordedOption, type=click.Choice(["ja", "en"]), expose_value=False, help="option.lang"
        )
        as_json = click.option("--json", "as_json", cls=WordedOption, is_flag=True, help="option.json")
        return wrapped(as_json(lang(click.pass_obj(function))))

    return decorate


def option(*names: str, **settings: Any) -> Callable[[F], F]:
    """Declare an option; its `help` is the key of a text."""
    return click.option(*names, cls=WordedOption, **settings)


def request_id_argument(*, is_required: bool = True) -> Callable[[F], F]:
    """Declare the argument that names a request, completed from the backlog."""
    return click.argument("request_id", metavar="REQUEST", required=is_required, shell_complete=_complete_request)


def _complete_request(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of this project's requests."""
    from pathlib import Path

    from click.shell_completion import CompletionItem

    from aiflow.errors import AiflowError
    from aiflow.messages import Texts

    session = ctx.obj or Session(Path(ctx.find_root().params.get("project") or "."), (), Texts("en"))
    try:
        valid, _ = session.project.requests.load()
    except AiflowError:
        return []
    return [CompletionItem(r.id, help=r.title) for r in valid if r.id.startswith(incomplete)]
