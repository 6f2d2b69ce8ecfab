"""What the commands of `aiflow issues` share: the room of the repository that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.issue_ways import issue_number
from aiflow.domain.request import normalize_id
from aiflow.errors import BadInputError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.wiring.issues import IssueRoom


def open_room(session: CliSession) -> IssueRoom:
    """Give everything about the issues; refuses where the settings name no repository."""
    if session.issues is None:
        raise BadInputError(detail=session.texts("issues.none"), hint="aiflow settings")
    return session.issues


def typed_number(typed: str) -> int:
    """Read what a person typed for an issue: GH-7, 7 or #7."""
    name = typed.removeprefix("#")
    number = issue_number(f"GH-{name}") or issue_number(normalize_id(typed).upper())
    if number is None:
        raise BadInputError(detail=words("issues.no_number", typed=typed))
    return number
