"""`aiflow status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.terminal.print_json import print_json
from aiflow.usecases.auto.standing import look_around
from aiflow.usecases.shapes.backlog import ENGLISH
from aiflow.usecases.shapes.status import standing_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("status", is_lenient=True)
@option("--cost", is_flag=True, help="option.status.cost")
def command(session: CliSession, as_json: bool, cost: bool) -> None:  # noqa: FBT001
    """Show what runs, what waits for you, what is next, the last auto-run and the cost."""
    if cost:
        _show_costs(session, as_json=as_json)
        return
    texts = ENGLISH if as_json else session.texts
    standing = look_around(session.engine(), session.project.auto_records, texts)
    if as_json:
        print_json(standing_shape(standing))
        return
    from aiflow.cli.views.status import show_standing

    show_standing(session, standing)


def _show_costs(session: CliSession, *, as_json: bool) -> None:
    from aiflow.cli.views.costs import show_costs
    from aiflow.usecases.morning.costs import tell_costs
    from aiflow.usecases.shapes.costs import costs_shape

    costs = tell_costs(session.engine())
    print_json(costs_shape(costs)) if as_json else show_costs(session, costs)
