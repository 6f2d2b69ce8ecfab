"""The files of `.aiflow/control/` (LCK-8): what one process asks of another that is at work."""

from __future__ import annotations

import contextlib
import json
import os
from datetime import datetime
from pathlib import Path

from aiflow.adapters.atomic_files import STATE_DIR, create_file, state_dir, translated
from aiflow.errors import NotFoundError

FOLDER = "control"


class ControlFiles:
    """What is asked of the runs of one checkout."""

    def __init__(self, root: Path | str) -> None:
        self._root = root
        self._folder = f"{root}/{STATE_DIR}/{FOLDER}"

    def ask_cancel(self, run_id: str) -> None:
        """Ask whoever works on a run to cancel it."""
        path = self._path(run_id)
        if "/" in run_id or "\0" in run_id:  # no run has such a name, and it would lead elsewhere
            raise NotFoundError(reason_code="RUN_NOT_FOUND", run_id=run_id)
        asked = {"at": datetime.now().astimezone().isoformat(), "pid": os.getpid(), "by": _user()}
        with translated(path):
            state_dir(Path(self._root), FOLDER)
            create_file(Path(path), f"{json.dumps(asked)}\n".encode(), state_dir(Path(self._root), "tmp"))

    def is_cancelled(self, run_id: str) -> bool:
        """Tell whether somebody asked for it; one look at a file name, for this is asked several times a second."""
        return os.path.exists(self._path(run_id))

    def clear(self, run_id: str) -> None:
        """Forget what was asked of a run."""
        path = self._path(run_id)
        with translated(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)

    def _path(self, run_id: str) -> str:
        return f"{self._folder}/cancel.{run_id}.json"


def _user() -> str:
    """Name the user, also where the system has no name for them (a container run under any number)."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
