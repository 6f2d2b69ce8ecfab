"""The files of `.aiflow/control/` (LCK-8): what one process asks of another that is at work."""

from __future__ import annotations

import contextlib
import json
import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import STATE_DIR, create_file, read_own, state_dir, translated
from aiflow.adapters.files.guard_files import guarded, is_held
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.auto.summary import Beginning
from aiflow.errors import AiflowError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = "control"
TURN, LATER = "turn.", "later."
MAX_BYTES = 65_536


class ControlFiles:
    """What is asked of the runs and the auto-run of one checkout."""

    def __init__(self, root: Path | str) -> None:
        self._root = root
        self._folder = f"{root}/{STATE_DIR}/{FOLDER}"

    def ask_cancel(self, run_id: str) -> None:
        """Ask the process that works on a run to cancel it."""
        if "/" in run_id or "\0" in run_id:  # no run has such a name, and it would lead elsewhere
            raise NotFoundError(reason_code="RUN_NOT_FOUND", run_id=run_id)
        self._ask(self._path(run_id))

    def is_cancelled(self, run_id: str) -> bool:
        """Return whether somebody asked for it; one look at a file name, for this is asked several times a second."""
        return os.path.exists(self._path(run_id))

    def clear(self, run_id: str) -> None:
        """Forget what was asked of a run."""
        self._forget(self._path(run_id))

    def ask_stop(self, request: StopRequest) -> None:
        """Ask the auto-run of this checkout to stop; the stronger wish counts."""
        if request is not StopRequest.NONE:
            self._ask(self._stop_path(request))

    def stop_asked(self) -> StopRequest:
        """Return what was asked of the auto-run; looks at file names only."""
        wishes = (StopRequest.NOW, StopRequest.AFTER_RUN)
        return next((wish for wish in wishes if os.path.exists(self._stop_path(wish))), StopRequest.NONE)

    def clear_stop(self, before: datetime | None = None) -> None:
        """Forget what was asked of the auto-run, or only what was asked before a moment."""
        for wish in (StopRequest.AFTER_RUN, StopRequest.NOW):
            path = self._stop_path(wish)
            if before is None or _written_at(path) < before.timestamp():
                self._forget(path)

    @contextlib.contextmanager
    def waiting_for_turn(self) -> Iterator[None]:
        """Let it be known that a person waits for their turn in this checkout."""
        with self._waiting(TURN, _wish()):
            yield

    @contextlib.contextmanager
    def beginning_at(self, at: datetime) -> Iterator[Callable[[], bool]]:
        """Let it be known that an auto-run waits for its time; one whose file is gone was called off."""
        with self._waiting(LATER, _wish(begins=at.isoformat())) as path:
            yield lambda: not os.path.exists(path)

    def beginnings(self) -> tuple[Beginning, ...]:
        """Return the auto-runs that wait for their time and whose processes are running, the first first."""
        return tuple(sorted(self._later().values()))

    def call_off(self) -> tuple[Beginning, ...]:
        """Let none of those begin, and return them."""
        found = self._later()
        for path in found:
            self._forget(path)
        return tuple(sorted(found.values()))

    def _later(self) -> dict[str, Beginning]:
        """Return the processes that wait for their time, by their files, without those that are gone or unreadable."""
        found: dict[str, Beginning] = {}
        for path in self._named(LATER):
            with contextlib.suppress(AiflowError, OSError, ValueError, KeyError, TypeError):
                told = json.loads(read_own(path, MAX_BYTES))
                if is_held(path):
                    found[path] = Beginning(datetime.fromisoformat(told["begins"]).astimezone(), int(told["pid"]))
        return found

    @contextlib.contextmanager
    def _waiting(self, kind: str, wish: bytes) -> Iterator[str]:
        """Hold a file for as long as we wait: it shows in any container that we are still waiting."""
        path = f"{self._folder}/{kind}{os.getpid()}-{os.urandom(4).hex()}.json"
        with contextlib.ExitStack() as stack:
            with translated(path):
                state_dir(Path(self._root), FOLDER)
                fd = stack.enter_context(guarded(path))
                stack.callback(self._forget, path)
                os.write(fd, wish)
            yield path

    def is_turn_wanted(self) -> bool:
        """Return whether a running process waits for its turn; files of processes that are gone are removed."""
        wanted = False
        for path in self._named(TURN):
            with contextlib.suppress(AiflowError, OSError):
                if is_held(path):
                    wanted = True
                else:
                    self._forget(path)
        return wanted

    def _named(self, kind: str) -> list[str]:
        try:
            return [f"{self._folder}/{name}" for name in os.listdir(self._folder) if name.startswith(kind)]
        except OSError:
            return []

    def _ask(self, path: str) -> None:
        """Record a wish, with who had it; the first one is kept."""
        with translated(path):
            state_dir(Path(self._root), FOLDER)
            create_file(Path(path), _wish(), state_dir(Path(self._root), "tmp"))

    @staticmethod
    def _forget(path: str) -> None:
        with translated(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)

    def _path(self, run_id: str) -> str:
        return f"{self._folder}/cancel.{run_id}.json"

    def _stop_path(self, request: StopRequest) -> str:
        return f"{self._folder}/stop.{request.value}.json"


def _wish(**more: str) -> bytes:
    """Say who has a wish, and since when."""
    asked = {"at": datetime.now().astimezone().isoformat(), "pid": os.getpid(), "by": _user(), **more}
    return f"{json.dumps(asked)}\n".encode()


def _written_at(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _user() -> str:
    """Name the user, also where the system has no name for them (a container run under any number)."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
