"""`aiflow activity`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, target_argument
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.views.activity import show_entry, show_gap
from aiflow.cli.waiting import until_ctrl_c
from aiflow.domain.activity import ActivityKind, Actor
from aiflow.usecases.activity import ActivityFilter, follow_activity, latest_activity
from aiflow.usecases.runs.find import is_run
from aiflow.usecases.shapes.activity import activity_shape, entry_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId
    from aiflow.ports.journal import JournalReader

KINDS = click.Choice([kind.value for kind in ActivityKind])
ACTORS = click.Choice([actor.value for actor in Actor])


@make_command("activity", is_lenient=True)
@target_argument(is_required=False)
@option("--kind", "-k", "kinds", multiple=True, type=KINDS, help="option.activity.kind")
@option("--actor", "-a", "actors", multiple=True, type=ACTORS, help="option.activity.actor")
@option("--reason", "-r", "reason_codes", multiple=True, metavar="CODE", help="option.activity.reason")
@option("-n", "limit", type=click.IntRange(min=0), default=20, show_default=True, metavar="N", help="option.activity.n")
@option("--before", metavar="CURSOR", help="option.activity.before")
@option("-f", "--follow", is_flag=True, help="option.activity.follow")
def command(
    session: CliSession,
    as_json: bool,  # noqa: FBT001
    target: RequestId | None,
    **how: Any,
) -> None:
    """Show the journal: what happened here, when, and who did it."""
    only, journal = _filter(session, target, how), session.project.journal
    page, end = latest_activity(journal, how["limit"], only, how["before"])
    if as_json and not how["follow"]:
        print_json(activity_shape(page))
        return
    for entry in reversed(page.entries):
        print_json(entry_shape(entry)) if as_json else show_entry(session, entry)
    if how["follow"]:
        _follow(session, journal, end, only, as_json=as_json)
    else:
        show_gap(session, page)


def _filter(session: CliSession, target: RequestId | None, wanted: dict[str, Any]) -> ActivityFilter:
    """Say what entries are wanted; a name is a run's or a request's, be that gone or not."""
    codes = tuple(code.upper() for code in wanted["reason_codes"])
    only = ActivityFilter(wanted["kinds"], wanted["actors"], reason_codes=codes)
    if target is None:
        return only
    return only._replace(run_id=target) if is_run(session.project.sources, target) else only._replace(request_id=target)


def _follow(session: CliSession, journal: JournalReader, end: str, only: ActivityFilter, *, as_json: bool) -> None:
    """Show what comes, until Ctrl-C."""
    with until_ctrl_c():
        for entry in follow_activity(journal, end, lambda: False, only):
            print_json(entry_shape(entry)) if as_json else show_entry(session, entry)
