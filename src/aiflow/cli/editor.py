"""Writing a request in the person's editor: whatever goes wrong afterwards, what they wrote is kept."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.cli.words import translate_click
from aiflow.domain.request import Problem, ProblemKind, Request
from aiflow.errors import AiflowError, BadInputError
from aiflow.usecases.backlog.create import NewRequest, check_new, render_request

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aiflow.cli.session import CliSession


class Draft:
    """A file that the editor is opened on."""

    def __init__(self, session: CliSession, new: NewRequest, path: Path) -> None:
        self._session = session
        self._new = new if new.title else replace(new, title=session.texts("new.title"))
        self._has_title = bool(new.title)
        self.path = path

    def edit(self, *, has_body: bool) -> NewRequest:
        """Open the editor and return what the person made of the request."""
        check_new(self._new)
        before = render_request(self._new, self._session.now())
        after = _edited(self._session, self.path, before, "new.no_editor")
        is_untouched = after == before and not (has_body and self._has_title)
        if is_untouched or not after.strip():
            self.path.unlink()
            raise BadInputError(detail=self._session.texts("new.not_saved"))
        read = self._session.project.editor.check_text(after)
        if not isinstance(read, Request):
            return replace(self._new, text=after)
        return replace(self._new, title=read.title, status=read.status, priority=read.priority, text=after)


class OpenText:
    """The whole text of a request, open in the editor."""

    def __init__(self, session: CliSession, before: str, path: Path) -> None:
        self._session = session
        self._before = before
        self.path = path

    def edit(self) -> str:
        """Open the editor and return what the person made of it; an empty file is no request, and nothing is saved."""
        after = _edited(self._session, self.path, self._before, "edit.no_editor")
        if not after.strip():
            self.path.unlink()
            raise BadInputError(detail=self._session.texts("edit.not_saved"))
        return after


def _edited(session: CliSession, path: Path, before: str, trouble: str) -> str:
    """Let the person edit a text in a file of its own, and return it; `trouble` is the text for having no editor."""
    path.write_bytes(before.encode("utf-8", "surrogateescape"))
    import click._termui_impl  # click does so only now, too late for its words to be ours

    translate_click(session.texts.language)
    try:
        click.edit(filename=str(path))
    except click.ClickException as error:
        if _saved(path) == before:
            path.unlink()
        raise BadInputError(detail=session.texts(trouble, problem=error.format_message())) from None
    return _saved(path)


def _saved(path: Path) -> str:
    """Read what was saved, byte for byte; another encoding than UTF-8 is left for the person to fix."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise BadInputError(reason_code="REQUEST_INVALID", problem=Problem(ProblemKind.NOT_TEXT)) from None


@contextlib.contextmanager
def kept_text(session: CliSession, request_id: str, before: str) -> Iterator[OpenText]:
    """Keep a request's text in `.aiflow/drafts/` while it is edited; an error says where what was written is."""
    folder = session.project.folder.make_state_folder("drafts")
    draft = OpenText(session, before, folder / f"{request_id}-{session.now():%Y%m%d-%H%M%S-%f}.md")
    with _keeping(session, draft.path, "edit.kept", request_id=request_id):
        yield draft


@contextlib.contextmanager
def _keeping(session: CliSession, path: Path, key: str, **facts: str) -> Iterator[None]:
    """Remove a draft once it is used; after an error it stays, and the error says where."""
    try:
        yield
    except AiflowError as error:
        if path.exists():
            error.context["kept"] = session.texts(key, path=path.relative_to(session.project.path), **facts)
        raise
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def kept_draft(session: CliSession, new: NewRequest) -> Iterator[Draft]:
    """Keep a draft in `.aiflow/drafts/` until it has become a request; an error says where it is."""
    folder = session.project.folder.make_state_folder("drafts")
    draft = Draft(session, new, folder / f"{session.now():%Y%m%d-%H%M%S-%f}.md")
    with _keeping(session, draft.path, "new.kept"):
        yield draft
