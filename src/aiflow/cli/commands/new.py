"""`aiflow new`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aiflow.cli.editor import kept_draft
from aiflow.cli.options import PRIORITY_CHOICE, complete_request, option
from aiflow.cli.options import command as make_command
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.warnings import warn_of_dependencies
from aiflow.domain.request import Priority, Request, RequestStatus
from aiflow.errors import BadInputError
from aiflow.usecases.backlog.create import NewRequest, create_request, require_usable
from aiflow.usecases.shapes.backlog import created_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("new")
@click.argument("title", required=False, default="")
@option("--id", "request_id", help="option.new.id", metavar="ID")
@option("--priority", "-p", type=PRIORITY_CHOICE, default="P2", show_default=True, help="option.priority")
@option("--ready", "is_ready", is_flag=True, help="option.new.ready")
@option(
    "--depends-on", "-d", multiple=True, metavar="ID", shell_complete=complete_request, help="option.new.depends_on"
)
@option("--label", "-l", "labels", multiple=True, metavar="TEXT", help="option.new.label")
@option("--body", "-b", metavar="TEXT", help="option.new.body")
@option("--body-file", "-F", metavar="FILE", help="option.new.body_file")
@option("--edit/--no-edit", "-e", "wants_editor", default=None, help="option.new.edit")
def command(session: CliSession, as_json: bool, **given: object) -> None:  # noqa: FBT001
    """Create a request from a title, by flags or in the editor."""
    project = session.project
    new = _from_flags(session, given)
    project.editor.require_free(new.request_id)
    has_body = given["body"] is not None or given["body_file"] is not None
    wants_editor = given["wants_editor"]
    if wants_editor is None:
        is_person = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
        wants_editor = is_person and not (new.title and has_body)
    if wants_editor:
        with kept_draft(session, new) as draft:
            new = draft.edit(has_body=has_body)
            request_id, path = create_request(new, project.editor, session.journal, session.now)
    else:
        if not new.title:
            raise click.UsageError(session.texts("new.no_title"))
        require_usable(new, project.editor, session.now())
        request_id, path = create_request(new, project.editor, session.journal, session.now)
    _require_valid(session, new, request_id, path)
    if as_json:
        print_json(created_shape(new, request_id, path))
        return
    click.echo(session.texts("new.created", request_id=request_id, path=path))
    key = "new.next_draft" if new.status is RequestStatus.DRAFT else "new.next_ready"
    click.echo(session.texts(key, request_id=request_id))
    warn_of_dependencies(session, request_id)


def _from_flags(session: CliSession, given: dict[str, object]) -> NewRequest:
    """Take what the flags say."""
    body = given["body"]
    if body == "-":
        raise click.UsageError(session.texts("new.dash_body"))
    if given["body_file"] is not None:
        if body is not None:
            raise click.UsageError(session.texts("new.two_bodies"))
        body = _read_body(str(given["body_file"]))
        if body.startswith("---"):  # a whole request, such as a draft that was kept
            return _whole_request(session, body, given)
    depends_on, labels = given["depends_on"], given["labels"]
    assert isinstance(depends_on, tuple)
    assert isinstance(labels, tuple)
    return NewRequest(
        title=" ".join(str(given["title"]).split("\n")).strip(),
        body=str(body) if body is not None else session.texts("new.body"),
        priority=Priority(str(given["priority"])),
        status=RequestStatus.READY if given["is_ready"] else RequestStatus.DRAFT,
        depends_on=tuple(part.strip() for text in depends_on for part in text.split(",") if part.strip()),
        labels=tuple(part.strip() for text in labels for part in text.split(",") if part.strip()),
        request_id=str(given["request_id"]) if given["request_id"] else None,
    )


def _whole_request(session: CliSession, text: str, given: dict[str, object]) -> NewRequest:
    """Take a file that has metadata of its own as it is."""
    read = session.project.editor.check_text(text)
    request_id = str(given["request_id"]) if given["request_id"] else None
    if not isinstance(read, Request):
        return NewRequest(str(given["title"]) or "-", "", request_id=request_id, text=text)
    return NewRequest(read.title, "", read.priority, read.status, request_id=request_id, text=text)


def _read_body(name: str) -> str:
    """Read the body from a file, or from standard input for `-`."""
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInputError(detail=f"{name}: UTF-8") from None


def _require_valid(session: CliSession, new: NewRequest, request_id: str, path: str) -> None:
    """Say so if what the person wrote cannot be used yet; it is kept anyway."""
    from aiflow.domain.request import InvalidRequest
    from aiflow.usecases.shapes.backlog import describe_problem

    read = session.project.editor.check_text(new.text) if new.text is not None else None
    if isinstance(read, InvalidRequest):
        problem = "; ".join(describe_problem(each, session.texts) for each in read.problems)
        detail = session.texts("new.broken", path=path, problem=problem)
        raise BadInputError(reason_code="REQUEST_INVALID", request_id=request_id, path=path, detail=detail)
