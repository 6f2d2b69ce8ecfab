"""Writing a request in the person's editor: whatever goes wrong afterwards, what they wrote is kept."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from aiflow.domain.request import Problem, ProblemKind, Request
from aiflow.errors import AiflowError, BadInputError
from aiflow.usecases.create_request import NewRequest, check_new, render_request

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aiflow.cli.session import Session


class Draft:
    """A file that the editor is opened on."""

    def __init__(self, session: Session, new: NewRequest, path: Path) -> None:
        self._session = session
        self._new = new if new.title else replace(new, title=session.texts("new.title"))
        self._has_title = bool(new.title)
        self.path = path

    def edit(self, *, has_body: bool) -> NewRequest:
        """Open the editor and return what the person made of the request."""
        check_new(self._new)
        before = render_request(self._new, self._session.now())
        self.path.write_text(before, encoding="utf-8")
        try:
            click.edit(filename=str(self.path))
        except click.ClickException as error:
            if self._read() == before:
                self.path.unlink()
            raise BadInputError(detail=self._session.texts("new.no_editor", problem=error.format_message())) from None
        after = self._read()
        is_untouched = after == before and not (has_body and self._has_title)
        if is_untouched or not after.strip():
            self.path.unlink()
            raise BadInputError(detail=self._session.texts("new.not_saved"))
        read = self._session.project.requests.check_text(after)
        if not isinstance(read, Request):
            return replace(self._new, text=after)
        return replace(self._new, title=read.title, status=read.status, priority=read.priority, text=after)

    def _read(self) -> str:
        """Read what was saved, byte for byte; another encoding than UTF-8 is left for the person to mend."""
        try:
            return self.path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            raise BadInputError(reason_code="REQUEST_INVALID", problem=Problem(ProblemKind.NOT_TEXT)) from None


@contextlib.contextmanager
def kept_draft(session: Session, new: NewRequest) -> Iterator[Draft]:
    """Keep a draft in `.aiflow/drafts/` until it has become a request; an error says where it is."""
    folder = session.project.folder.make_state_folder("drafts")
    draft = Draft(session, new, folder / f"{session.now():%Y%m%d-%H%M%S-%f}.md")
    try:
        yield draft
    except AiflowError as error:
        if draft.path.exists():
            relative = draft.path.relative_to(session.project.path)
            kept = session.texts("new.kept", path=relative)
            error.context["kept"] = kept
        raise
    else:
        draft.path.unlink(missing_ok=True)
