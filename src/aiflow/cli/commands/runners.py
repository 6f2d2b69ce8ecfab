"""`aiflow runners`."""

from __future__ import annotations

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.queue_session import QueueSession, namespace_option
from aiflow.cli.runners_view import show_runners
from aiflow.cli.session import Session, print_json
from aiflow.domain.runner import is_alive
from aiflow.errors import BadInputError
from aiflow.usecases.task_shapes import runner_shape, runner_state


@make_command("runners")
@option("--all", "is_all", is_flag=True, help="option.queue.all")
@namespace_option()
def command(session: Session, as_json: bool, is_all: bool, namespace: str | None) -> None:  # noqa: FBT001
    """List the runners."""
    from aiflow.wiring import is_runner_gone

    if is_all and namespace is not None:
        raise BadInputError(detail=session.texts("queue.all_alone"), hint="aiflow runners --help")
    view = QueueSession(session, namespace, is_quiet=as_json)
    texts, now, limit = session.texts, session.now(), view.timeout_seconds
    found = view.store.all_runners() if is_all else view.store.runners(view.namespace).all()
    # Who lives first, then who was heard of last.
    found = tuple(sorted(found, key=lambda each: each.last_heartbeat, reverse=True))
    gone = {each.runner_id for each in found if not each.is_at_rest and is_runner_gone(each)}
    found = tuple(sorted(found, key=lambda each: each.runner_id in gone or not is_alive(each, now, limit)))
    if as_json:
        print_json({"runners": [runner_shape(each, now, limit, is_gone=each.runner_id in gone) for each in found]})
        return
    shown = [
        (each, runner_state(each, now, limit, is_gone=each.runner_id in gone)) for each in found if not each.is_at_rest
    ]
    if shown:
        show_runners(shown, now, texts, has_namespaces=is_all)
    else:
        key = "runners.none_all" if is_all else "runners.none"
        click.echo(texts(key, namespace=view.namespace, command=view.desk().command))
    if len(found) > len(shown):
        click.echo(texts("runners.stopped", count=len(found) - len(shown)))
