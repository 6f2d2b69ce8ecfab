"""`aiflow set`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, request_id_argument
from aiflow.cli.session import Session, print_json
from aiflow.domain.lifecycle import PERSON_EVENTS
from aiflow.domain.metadata import parse_value
from aiflow.domain.request import EDITABLE_KEYS, Priority, Value, normalize_id
from aiflow.ports import ANY, Change
from aiflow.usecases.edit_request import edit_request


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer `KEY=VALUE` pairs."""
    offers = [f"{key}=" for key in EDITABLE_KEYS if key not in ("status", "priority")]
    offers += [f"status={status}" for status in PERSON_EVENTS] + [f"priority={priority}" for priority in Priority]
    return [CompletionItem(offer) for offer in offers if offer.startswith(incomplete)]


@make_command("set")
@request_id_argument()
@click.argument("assignment", metavar="KEY=VALUE", nargs=-1, required=True, shell_complete=_complete)
@option("--expect", metavar="VALUE", help="option.set.expect")
def command(
    session: Session,
    as_json: bool,  # noqa: FBT001
    request_id: str,
    assignment: tuple[str, ...],
    expect: str | None,
) -> None:
    """Change one metadata key of a request; everything else in the file stays as it is."""
    key, value = _read(session, assignment)
    project = session.project
    wanted = normalize_id(request_id)
    change = Change(parse_value(key, value), parse_value(key, expect) or None if expect is not None else ANY)
    changed = edit_request(wanted, key, change, project.requests, (project.journal, session.now))
    if as_json:
        old = changed[0] if changed else change.new
        print_json({"request_id": wanted, "key": key, "changed": changed is not None, "from": old, "to": change.new})
    elif changed is None:
        click.echo(session.texts("set.same", request_id=wanted, key=key, value=_show(change.new)))
    else:
        old, new = map(_show, changed)
        click.echo(session.texts("set.done", request_id=wanted, key=key, old=old, new=new))


def _read(session: Session, assignment: tuple[str, ...]) -> tuple[str, str]:
    """Read `KEY=VALUE`, or KEY and VALUE as two words."""
    key, equals, value = assignment[0].partition("=")
    if equals and len(assignment) == 1:
        return key.strip(), value
    if not equals and len(assignment) == 2:
        return key.strip(), assignment[1]
    raise click.UsageError(session.texts("set.one_pair"))


def _show(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return value or "-"
