"""The only module that names concrete adapters: it puts a project together."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.lock_files import LockFiles
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.adapters.project_files import find_repository, find_root
from aiflow.adapters.run_files import RunFiles
from aiflow.usecases.read_backlog import BacklogSources

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from aiflow.adapters.project_files import ProjectFolder
    from aiflow.ports import Journal
    from aiflow.settings import Settings


class Project(NamedTuple):
    """One checkout with everything that reads it."""

    root: str
    requests: MarkdownRequests
    runs: RunFiles
    locks: LockFiles

    @property
    def path(self) -> Path:
        """The root as a path; made when it is needed, for importing it takes longer than reading 500 files."""
        from pathlib import Path

        return Path(self.root)

    @property
    def sources(self) -> BacklogSources:
        """Where the backlog is read from."""
        return BacklogSources(self.requests, self.runs, self.locks)

    @property
    def folder(self) -> ProjectFolder:
        """The project's own files."""
        from aiflow.adapters.project_files import ProjectFolder

        return ProjectFolder(self.path)

    @property
    def journal(self) -> Journal:
        """The journal of this checkout."""
        from aiflow.adapters.activity_log import ActivityLog

        return ActivityLog(self.path)


def open_project(start: str) -> Project:
    """Find the project at or above a folder."""
    return project_at(find_root(start))


def project_at(root: str) -> Project:
    """Put a project together at a known root."""
    return Project(root, MarkdownRequests(root), RunFiles(root), LockFiles(root))


def new_project(start: str) -> Project:
    """Put a project together at the root of the repository at or above a folder, for `init`."""
    return project_at(find_repository(start))


def read_settings(root: str, flags: Iterable[str]) -> Settings:
    """Read the settings from flags, environment and file, or stop with file, key and line."""
    from aiflow.adapters.toml_settings import load_settings

    return load_settings(root, os.environ, flags)
