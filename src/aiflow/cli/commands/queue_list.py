"""`aiflow queue list`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.progress import counting
from aiflow.cli.queue_session import QueueSession, namespace_option
from aiflow.cli.session import Session, print_json
from aiflow.cli.task_view import show_tasks
from aiflow.domain.lifecycle import TaskStatus
from aiflow.errors import BadInputError
from aiflow.usecases.find_ways import place_of, ways_after
from aiflow.usecases.list_tasks import Listing, Wanted, list_tasks, merge_listings, starts_of
from aiflow.usecases.queue_desk import look_around, look_away
from aiflow.usecases.task_shapes import task_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.standing import Scene
    from aiflow.domain.task import Task

STATUS_CHOICE = click.Choice([status.value for status in TaskStatus], case_sensitive=False)
USUAL_LIMIT = 20


@make_command("list", below="queue")
@option("--status", "-s", "statuses", multiple=True, type=STATUS_CHOICE, help="option.queue.status")
@option(
    "--limit",
    "-n",
    type=click.IntRange(min=1),
    metavar="N",
    default=USUAL_LIMIT,
    show_default=True,
    help="option.queue.limit",
)
@option("--start", metavar="TASK", help="option.queue.start")
@option("--all", "is_all", is_flag=True, help="option.queue.all")
@namespace_option()
def command(
    session: Session,
    as_json: bool,  # noqa: FBT001
    statuses: tuple[str, ...],
    namespace: str | None,
    is_all: bool,  # noqa: FBT001
    **where: int | str | None,
) -> None:
    """List tasks, by id backwards: those with an id of ours newest first, also of all namespaces."""
    if is_all and namespace is not None:
        raise BadInputError(detail=session.texts("queue.all_alone"), hint="aiflow queue list --help")
    wanted = Wanted(tuple(map(TaskStatus, statuses)), int(where["limit"] or USUAL_LIMIT), where["start"])  # type: ignore[arg-type]
    view = QueueSession(session, namespace, is_quiet=as_json)
    with counting(session.texts) as progress:
        listing, seen = _read(view, wanted, progress, is_all=is_all)
    if as_json:
        shapes = [task_shape(task, scene) for task, scene in seen]
        print_json({"namespace": None if is_all else view.namespace, "tasks": shapes, "next_start": listing.next_start})
    elif seen:
        show_tasks(seen, session.texts, has_namespaces=is_all)
        _tell_more(view, listing, statuses, is_all=is_all)
    else:
        is_part = bool(statuses or wanted.start)
        key = "queue.no_match" if is_part else "queue.empty_all" if is_all else "queue.empty"
        command = f"aiflow queue add REQUEST{_other(view)}"
        click.echo(session.texts(key, namespace=view.namespace, command=command))


def _read(
    view: QueueSession, wanted: Wanted, progress: Callable[[int], None], *, is_all: bool
) -> tuple[Listing, list[tuple[Task, Scene]]]:
    """Read the tasks, and how each namespace looks at this moment, as far as some of them live."""
    names = sorted(view.store.namespaces(progress)) if is_all else [view.namespace]
    desks = {name: view.desk(name) for name in names}
    starts = starts_of(wanted.start, names) if is_all else dict.fromkeys(names, wanted.start)
    found = [list_tasks(desk.queue, wanted._replace(start=starts[name]), progress) for name, desk in desks.items()]
    listing = merge_listings(found, wanted.limit) if is_all else found[0]
    scenes: dict[str, Scene] = {}
    for name in {task.namespace for task in listing.tasks}:
        desk, tasks = desks[name], [task for task in listing.tasks if task.namespace == name]
        is_lively = any(not task.is_final for task in tasks)
        scene = look_around(desk, tasks) if is_lively else look_away(desk)
        placed = [(task, place_of(task, scene.runners)) for task in tasks]
        scenes[name] = replace(scene, ways=ways_after(desk, view.session.project.sources, placed))
    return listing, [(task, scenes[task.namespace]) for task in listing.tasks]


def _tell_more(view: QueueSession, listing: Listing, statuses: tuple[str, ...], *, is_all: bool) -> None:
    """Say how the list goes on."""
    if listing.next_start is None:
        return
    chosen = "".join(f" --status {status}" for status in statuses)
    where = " --all" if is_all else _other(view)
    command = f"aiflow queue list --start {listing.next_start}{chosen}{where}"
    click.echo(view.session.texts("queue.more", command=command))


def _other(view: QueueSession) -> str:
    """Return what a command needs to be about the namespace that was asked for."""
    return f" --namespace {view.namespace}" if view.namespace != view.own else ""
