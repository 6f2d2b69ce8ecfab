"""The user's token and a checkout's sessions (SEC), in files that only the user may read.

The token is one for all of the user's projects. Of a session only the hash of its secret is kept, so that reading the
file reveals none of them.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from aiflow.adapters.files.atomic_files import create_file, read_own, replace_file, state_dir, translated
from aiflow.adapters.files.guard_files import guarded
from aiflow.adapters.files.user_folders import data_home, private_folder
from aiflow.domain.server.sessions import Session
from aiflow.errors import EnvironmentProblemError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

TOKEN_FILE = "api-token"  # noqa: S105 - a file's name
FOLDER = "server"
SESSIONS_FILE = "sessions.json"
MOST_BYTES = 1_000_000


class AccessFiles:
    """Token and sessions, as files."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self._root = root
        self._home = data_home(environ)

    @property
    def token_file(self) -> str:
        """Where the token is."""
        return str(self._home / TOKEN_FILE)

    def token(self) -> str:
        """Return the user's token, made if there is none; one that others may read is refused."""
        path = self._home / TOKEN_FILE
        with translated(path):
            folder = private_folder(self._home)
            if not path.exists():
                made = folder / f".{TOKEN_FILE}.{os.urandom(6).hex()}"
                fd = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                try:
                    with os.fdopen(fd, "w") as file:
                        file.write(secrets.token_urlsafe(32) + "\n")
                        file.flush()
                        os.fsync(file.fileno())
                    os.link(made, path)
                except FileExistsError:  # another server's first start was quicker: that one counts
                    pass
                finally:
                    made.unlink(missing_ok=True)
            status = path.stat()
            if status.st_mode & 0o077 or status.st_uid != os.geteuid():
                raise EnvironmentProblemError(
                    path=str(path), problem=words("token_problem.open", mode=f"{status.st_mode & 0o777:03o}")
                )
            token = read_own(path, MOST_BYTES).decode("ascii", "replace").strip()
        if len(token) < 20:
            raise EnvironmentProblemError(path=str(path), problem=words("token_problem.none"))
        return token

    def sessions(self) -> tuple[Session, ...]:
        """Return the sessions as they are kept; a file that is damaged has none: everybody signs in again."""
        try:
            kept = json.loads(read_own(self._path, MOST_BYTES))
            return tuple(_read(each) for each in kept["sessions"])
        except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
            return ()

    def change(self, rule: Callable[[tuple[Session, ...]], tuple[Session, ...]]) -> tuple[Session, ...]:
        """Change the sessions in one step, and return them."""
        with translated(self._path):
            folder = private_folder(state_dir(self._root, FOLDER))
            with guarded(folder / "guard"):
                before = self.sessions()
                after = rule(before)
                if after != before:
                    data = json.dumps({"version": "1.0", "sessions": [_shape(each) for each in after]}).encode()
                    _write_private(self._path, data, folder)
        return after

    @property
    def _path(self) -> Path:
        return self._root / ".aiflow" / FOLDER / SESSIONS_FILE


def _write_private(path: Path, data: bytes, folder: Path) -> None:
    """Put new content in the place of a file that is the user's alone from its first moment."""
    if not path.exists():
        create_file(path, b"{}", folder, 0o600)
    replace_file(path, data, folder)


def _shape(session: Session) -> dict[str, object]:
    return {name: each.isoformat() if isinstance(each, datetime) else each for name, each in asdict(session).items()}


def _read(kept: dict[str, Any]) -> Session:
    return Session(
        session_id=str(kept["session_id"]),
        key=str(kept["key"]),
        name=str(kept["name"]),
        created_at=datetime.fromisoformat(kept["created_at"]),
        expires_at=datetime.fromisoformat(kept["expires_at"]),
        seen_at=datetime.fromisoformat(kept["seen_at"]),
        agent=str(kept["agent"]),
    )
