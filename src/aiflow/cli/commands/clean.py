"""`aiflow clean`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from aiflow.cli.options import RequestIdType, complete_target, option
from aiflow.cli.options import command as make_command
from aiflow.cli.running import catching_signals, telling_once
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.views.clean import show_failed, show_going, show_kept, show_ways_back
from aiflow.domain.reasons import exit_code
from aiflow.errors import BadInputError
from aiflow.messages.sizes import size_text
from aiflow.usecases.clean.clean_up import Cleaned, CleanWish, clean_up, prepare_clean_up
from aiflow.usecases.shapes.clean import cleaned_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.clean.cleaning import Item
    from aiflow.domain.request import RequestId

MOST_DAYS = 100_000


@make_command("clean")
@click.argument("names", type=RequestIdType(), metavar="[REQUEST|RUN]...", nargs=-1, shell_complete=complete_target)
@option("--days", type=click.IntRange(0, MOST_DAYS), metavar="N", help="option.clean.days")
@option("--now", is_flag=True, help="option.clean.now")
@option("--unmerged", is_flag=True, help="option.clean.unmerged")
@option("--dry-run", is_flag=True, help="option.clean.dry_run")
@option("-y", "--yes", is_flag=True, help="option.clean.yes")
def command(
    session: CliSession,
    as_json: bool,  # noqa: FBT001
    names: tuple[RequestId, ...],
    days: int | None,
    **flags: bool,
) -> None:
    """Remove what runs that are over left behind."""
    if flags["now"] and days is not None:
        raise BadInputError(detail=session.texts("clean.days_or_now"), hint="aiflow clean --help")
    wish = CleanWish(frozenset(names), 0 if flags["now"] else days, flags["unmerged"])
    engine, texts = session.engine(), session.texts
    rules, plans = prepared = prepare_clean_up(engine, wish)
    cleaned, is_stopped = prepared.foreseen, False
    going = cleaned.removed
    if not as_json and going:
        show_going(going, texts)
    if not flags["dry_run"]:
        _ask(session, going, is_sure=flags["yes"] or as_json)
        with catching_signals(telling_once(texts("clean.stopping"))) as interrupts:
            cleaned, is_stopped = clean_up(engine.heard_by(interrupted=interrupts), plans, rules), interrupts()
    if as_json:
        print_json(cleaned_shape(cleaned, rules, is_dry_run=flags["dry_run"]))
    else:
        _sum_up(session, cleaned, going, is_dry_run=flags["dry_run"])
        show_kept(cleaned.kept, rules, texts)
        show_failed(cleaned.failed, session.texts)
    if cleaned.failed:
        raise click.exceptions.Exit(int(exit_code(cleaned.failed[0].error.reason_code)))
    if is_stopped:
        raise click.Abort


def _ask(session: CliSession, going: list[Item], *, is_sure: bool) -> None:
    """Ask before work goes that is nowhere else; a script that says --unmerged has decided."""
    unmerged = sum(item.is_unmerged for item in going)
    if unmerged and not is_sure and sys.stdin.isatty():
        click.confirm(session.texts("clean.confirm", count=unmerged), abort=True)


def _sum_up(session: CliSession, cleaned: Cleaned, going: list[Item], *, is_dry_run: bool) -> None:
    """Say how much went, or would go, and how to bring back what was never merged."""
    if not going:
        click.echo(session.texts("clean.nothing"))
        return
    key = "clean.would_go" if is_dry_run else "clean.gone"
    freed = size_text(sum(item.size_bytes or 0 for item in cleaned.removed))
    click.echo(session.texts(key, count=len(cleaned.removed), size=freed))
    if not is_dry_run:
        show_ways_back(cleaned.removed, session.texts)
