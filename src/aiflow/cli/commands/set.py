"""`aiflow set`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from aiflow.cli.options import command as make_command
from aiflow.cli.options import complete_request, option, request_id_argument
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import say
from aiflow.cli.warnings import warn_of_dependencies, warn_of_waiting_run
from aiflow.domain.backlog.metadata import ANY, Change, parse_value
from aiflow.domain.lifecycle import PERSON_EVENTS
from aiflow.domain.request import DATE_KEYS, EDITABLE_KEYS, MetadataKey, Priority, RequestId, RequestStatus, Value
from aiflow.usecases.backlog.edit import edit_request
from aiflow.usecases.shapes.backlog import edited_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer keys, then the values of a key; bash cuts `status=re` at the `=`, other shells do not."""
    typed = [str(word) for word in ctx.params.get("assignment") or ()]
    key, equals, value = incomplete.partition("=")
    if typed:
        key, equals, value = typed[0].rstrip("="), "", "" if incomplete == "=" else incomplete
    elif not equals:
        return [CompletionItem(f"{key}=") for key in EDITABLE_KEYS if key.startswith(incomplete)]
    done, comma, rest = value.rpartition(",")
    prefix = ("" if typed else f"{key}=") + done + comma
    if key == "depends_on":
        return [CompletionItem(prefix + item.value, help=item.help) for item in complete_request(ctx, param, rest)]
    allowed: dict[str, list[str]] = {"status": [*PERSON_EVENTS], "priority": [*Priority]}
    offers = allowed.get(key, [])
    return [CompletionItem(prefix + offer) for offer in offers if offer.startswith(rest)]


@make_command("set")
@request_id_argument()
@click.argument("assignment", metavar="KEY=VALUE", nargs=-1, required=True, shell_complete=_complete)
@option("--expect", metavar="VALUE", help="option.set.expect")
def command(
    session: CliSession,
    as_json: bool,  # noqa: FBT001
    request_id: RequestId,
    assignment: tuple[str, ...],
    expect: str | None,
) -> None:
    """Change one metadata key of a request; everything else in the file stays as it is."""
    key, value = _read(session, assignment)
    if key in DATE_KEYS and value.strip() == "now":
        value = session.now().isoformat(timespec="seconds")
    project = session.project
    change = Change(parse_value(key, value), parse_value(key, expect) or None if expect is not None else ANY)
    changed = edit_request(request_id, key, change, project.editor, (session.journal, session.now))
    if as_json:
        print_json(edited_shape(request_id, key, change.new, changed))
    elif changed is None:
        say(session.texts("set.same", request_id=request_id, key=key, value=_show(change.new)))
    else:
        old, new = map(_show, changed)
        say(session.texts("set.done", request_id=request_id, key=key, old=old, new=new))
        if key == "depends_on":
            warn_of_dependencies(session, request_id)
    if not as_json and (key, change.new) == (MetadataKey.STATUS, RequestStatus.READY):
        warn_of_waiting_run(session, request_id)


def _read(session: CliSession, assignment: tuple[str, ...]) -> tuple[str, str]:
    """Read `KEY=VALUE`, or KEY and VALUE as two words."""
    key, equals, value = assignment[0].partition("=")
    if equals and len(assignment) == 1:
        return key.strip(), value
    if not value and len(assignment) == 2:  # `status ready`, or `status= ready` as bash completes it
        return key.strip(), assignment[1]
    raise click.UsageError(session.texts("set.one_pair"))


def _show(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return value or "-"
