"""What the commands of `aiflow issues` share: the room of the repository that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.errors import BadInputError

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.wiring.issues import IssueRoom


def open_room(session: CliSession) -> IssueRoom:
    """Give everything about the issues; refuses where the settings name no repository."""
    from aiflow.wiring.issues import IssueRoom

    if not session.settings.text("github.repo"):
        raise BadInputError(detail=session.texts("issues.none"), hint="aiflow settings")
    return IssueRoom(session.root, session.settings)
