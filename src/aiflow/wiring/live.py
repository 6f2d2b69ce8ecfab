"""The ports of one checkout in a process that stays (a server): put together again when the settings have changed."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.metadata import commit_message
from aiflow.errors import EnvironmentProblemError
from aiflow.settings import FILE_NAME
from aiflow.wiring import build_ports, commit_request, project_at, read_settings
from aiflow.wiring.issues import IssueRoom

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aiflow.adapters.markdown_requests.store import Written
    from aiflow.domain.request import Value
    from aiflow.ports import RequestSource
    from aiflow.settings import Settings
    from aiflow.usecases.engine import Charge, Engine, Ports, Voice
    from aiflow.wiring import Project


class _Known(NamedTuple):
    """What was put together, and from which version of the settings."""

    version: object
    project: Project
    ports: Ports
    issues: IssueRoom | None


class LivePorts:
    """Gives engines to any number of callers and threads, each with the settings as they are at that moment.

    What an engine was given stays as it is: a run that is at work ends with the settings it began with. `left` hears of
    request files that could not be committed (REQ-8): their path, and why.
    """

    def __init__(
        self,
        root: str,
        flags: tuple[str, ...] = (),
        more: Sequence[RequestSource] = (),
        left: Callable[[str, str], None] = lambda _path, _why: None,
    ) -> None:
        self._root = root
        self._flags = flags
        self._more = more
        self._left = left
        self._guard = threading.Lock()
        self._known: _Known | None = None

    def project(self) -> Project:
        """Return the checkout; that it has gone, or a mistake in the settings, is raised, and nothing older is used."""
        return self._now().project

    def ports(self) -> Ports:
        """Return its ports."""
        return self._now().ports

    def settings(self) -> Settings:
        """Return the settings as they are now."""
        return self._now().ports.settings

    def issues(self) -> IssueRoom | None:
        """Return what looks after the issues; None where the settings name no repository."""
        return self._now().issues

    def engine(self, voice: Voice, charge: Charge | None = None) -> Engine:
        """Give an engine to one caller."""
        return self.ports().engine(voice, charge)

    def _now(self) -> _Known:
        with self._guard:
            if not os.path.isdir(self._root):  # moved or removed: nothing is made in its place
                raise EnvironmentProblemError(reason_code="PROJECT_NOT_FOUND", path=self._root)
            version = _version(f"{self._root}/{FILE_NAME}")
            if self._known is None or self._known.version != version:
                settings = read_settings(self._root, self._flags)
                written = _committing(self._root, settings, self._left)
                # One room for reading, writing and watching: GitHub's limits are those of one account.
                room = IssueRoom(self._root, settings) if settings.text("github.repo") else None
                more = (*self._more, *((room.source,) if room is not None else ()))
                project = project_at(self._root, more, settings.requests_dir, written, stays=True)
                self._known = _Known(version, project, build_ports(project, settings, project.journal), room)
            return self._known


def _committing(root: str, settings: Settings, left: Callable[[str, str], None]) -> Written | None:
    """Return what commits each request file that is changed or made, where the settings say so (REQ-8)."""
    if not settings.flag("commit_requests"):
        return None

    def written(path: str, request_id: str, changed: Mapping[str, tuple[Value, Value]] | None) -> None:
        why = commit_request(root, settings, path, commit_message(request_id, changed))
        if why is not None:
            left(path, why)

    return written


def _version(path: str) -> object:
    """Distinguish one state of a file from another without reading it."""
    try:
        found = os.stat(path)
    except OSError as error:
        return error.errno
    return found.st_ino, found.st_mtime_ns, found.st_size
