"""The ports of one checkout in a process that stays (a server): put together again when the settings have changed."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from aiflow.settings import FILE_NAME
from aiflow.wiring import build_ports, project_at, read_settings

if TYPE_CHECKING:
    from aiflow.usecases.engine import Charge, Engine, Ports, Voice
    from aiflow.wiring import Project


class LivePorts:
    """Gives engines to any number of callers and threads, each with the settings as they are at that moment.

    What an engine was given stays as it is: a run that is at work ends with the settings it began with.
    """

    def __init__(self, project: Project, flags: tuple[str, ...] = ()) -> None:
        self._project = project
        self._flags = flags
        self._guard = threading.Lock()
        self._known: tuple[object, Ports] | None = None

    def ports(self) -> Ports:
        """Return the ports; a mistake in the settings is raised, and nothing older is used in their place."""
        with self._guard:
            version = _version(f"{self._project.root}/{FILE_NAME}")
            if self._known is None or self._known[0] != version:
                settings = read_settings(self._project.root, self._flags)
                project = project_at(self._project.root, self._project.more, settings.requests_dir)
                self._known = version, build_ports(project, settings, project.journal)
            return self._known[1]

    def engine(self, voice: Voice, charge: Charge | None = None) -> Engine:
        """Give an engine to one caller."""
        return self.ports().engine(voice, charge)


def _version(path: str) -> object:
    """Tell one state of a file from another without reading it."""
    try:
        found = os.stat(path)
    except OSError as error:
        return error.errno
    return found.st_ino, found.st_mtime_ns, found.st_size
