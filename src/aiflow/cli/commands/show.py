"""`aiflow show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.layout import pad
from aiflow.cli.options import command as make_command
from aiflow.cli.options import target_argument
from aiflow.cli.render import STATUS_COLOURS, ago, clean, heading, paint, say
from aiflow.cli.session import Session, print_json
from aiflow.cli.warnings import warn_of_misspelt_keys
from aiflow.domain.selection import Backlog, find_barriers
from aiflow.domain.untrusted import reveal
from aiflow.errors import NotFoundError
from aiflow.usecases.hidden_text import hidden_in, hidden_shape, hidden_words
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.shapes import describe, describe_problem, invalid_shape, request_shape, run_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiflow.domain.request import InvalidRequest, Request, RequestId
    from aiflow.domain.run_summary import RunSummary
    from aiflow.messages import Texts

RUN_PREFIX = "RUN-"


@make_command("show")
@target_argument()
def command(session: Session, as_json: bool, target: RequestId) -> None:  # noqa: FBT001
    """Show one request (metadata, runs, text) or one run (steps, why it stopped, what to do)."""
    if target.startswith(RUN_PREFIX) and not session.project.requests.has(target):
        from aiflow.cli.run_page import show_run

        show_run(session, target, as_json=as_json)
    else:
        _show_request(session, target, as_json=as_json)


def _show_request(session: Session, request_id: RequestId, *, as_json: bool) -> None:
    backlog = read_backlog(session.project.sources)
    request = backlog.by_id.get(request_id)
    broken = [invalid for invalid in backlog.invalid if request_id in invalid.names]
    if request is not None:
        _show(session, request, backlog, as_json=as_json)
    elif broken:
        _show_broken(session, request_id, broken, as_json=as_json)
    else:
        raise NotFoundError(request_id=request_id)


def _show(session: Session, request: Request, backlog: Backlog, *, as_json: bool) -> None:
    runs = session.project.runs.all_of(request.id)
    body = session.project.requests.body(request.id)
    if as_json:
        shape = request_shape(request, backlog.runs.get(request.id))
        more = {"runs": [run_shape(run) for run in runs], "body": body, "hidden": hidden_shape(request, body)}
        print_json({**shape, **more})
        return
    texts = session.texts
    heading(f"{request.id}  {clean(reveal(request.title))}")
    click.echo(
        "  " + pad(texts("fact.status"), 14) + paint(texts(f"status.{request.status}"), STATUS_COLOURS[request.status])
    )
    _fact(texts("fact.priority"), request.priority)
    for barrier in find_barriers(request, backlog):
        if barrier.reason_code != "NOT_READY":
            _fact("", f"{barrier.reason_code}  {describe(barrier, texts)}")
    for name, value in (
        ("depends_on", ", ".join(request.depends_on)),
        ("labels", ", ".join(map(reveal, request.labels))),
        ("created_at", request.created_at.isoformat() if request.created_at else ""),
        ("updated_at", request.updated_at.isoformat() if request.updated_at else ""),
        ("path", request.path),
    ):
        if value:
            _fact(texts(f"column.{name}"), clean(value))
    if runs:
        _show_runs(session, request, runs)
    warn_of_misspelt_keys(session, request.id)
    _show_text(request, body, texts)


def _show_runs(session: Session, request: Request, runs: Sequence[RunSummary]) -> None:
    """Show a request's runs, newest first: of the newest also whose task it is, and the way on."""
    from aiflow.cli.run_page import show_way_on
    from aiflow.cli.task_hints import task_fact

    texts = session.texts
    for run in runs:
        when = ago(run.changed_at, session.now(), texts) if run.changed_at else ""
        _fact(texts("column.run"), "  ".join(filter(None, (run.run_id, run.state, run.reason_code, when))))
    if task := task_fact(session, runs[0].task):
        _fact(texts("fact.of_task"), task)
    show_way_on(session, request, runs[0])


def _show_text(request: Request, body: str, texts: Texts) -> None:
    """Show a request's text with everything in it made visible, and say what of it no agent gets."""
    if hidden := hidden_in(request, body):
        say(texts("show.hidden", hidden=hidden_words(hidden, texts)), "  ")
    click.echo()
    click.echo("\n".join(map(clean, reveal(body).strip("\r\n").splitlines())))


def _fact(name: str, value: str) -> None:
    say(value, "  " + pad(name, 14))


def _show_broken(session: Session, wanted: RequestId, broken: list[InvalidRequest], *, as_json: bool) -> None:
    """Show a file that cannot be used, with everything that is wrong with it."""
    if as_json:
        print_json({"request_id": wanted, "invalid": [invalid_shape(file) for file in broken]})
        return
    for file in broken:
        heading(session.texts("show.invalid", path=clean(file.path)))
        for problem in file.problems:
            say(describe_problem(problem, session.texts), "  ")
