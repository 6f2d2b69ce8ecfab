"""The files of runs (RUN-1, RUN-9): `runs/<request-id>/<run-id>/`, written atomically; logs and report grow."""

from __future__ import annotations

import json
import os
import shutil
import stat
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiflow.adapters.files.atomic_files import create_file, read_own, refuse_link, replace_file, translated
from aiflow.adapters.run_folders.log_marks import marks_path, read_marks
from aiflow.adapters.run_folders.run_files import DRAFT_SUFFIX, FOLDER, RUN_PREFIX, STAGE, STAGE_BYTES, RunFiles
from aiflow.adapters.run_folders.run_log import StepLogFile
from aiflow.adapters.run_folders.stage_file import stage_of
from aiflow.adapters.run_folders.stage_head import is_stage_of
from aiflow.adapters.run_folders.stage_keeping import kept
from aiflow.adapters.run_folders.stage_reading import run_of
from aiflow.domain.agents.call import Brief
from aiflow.domain.agents.plan import PLANNING_VERSION, plan_shape
from aiflow.domain.request import RequestId, is_valid_id
from aiflow.domain.runs.log_names import log_file, log_of_file
from aiflow.domain.runs.log_part import HEADING
from aiflow.domain.runs.worktree import branch_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime
    from typing import BinaryIO

    from aiflow.adapters.secrets import Masker
    from aiflow.domain.runs.log_marks import LogMark
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.worktree import Place

REQUEST, PLANNING, ERRORS, REPORT, LOGS = "request.json", "planning.json", "errors.json", "report.md", "logs"


class RunFolders(RunFiles):
    """Reads and writes the runs below one root."""

    def __init__(
        self,
        root: str,
        masker: Masker,
        clock: Callable[[], datetime],
        worktree_path: Callable[[str], str] | None = None,
        find_base: Callable[[Run], Run] | None = None,
    ) -> None:
        super().__init__(root)
        self._root = Path(root)
        self._masker = masker
        self._clock = clock
        self._worktree_path = worktree_path
        # Finds in git where a run began whose file does not say.
        self._find_base = find_base

    def folder(self, request_id: str, run_id: str) -> Path:
        """Return a run's folder."""
        return self._root / FOLDER / request_id / run_id

    def draft(self, run: Run, brief: Brief) -> None:
        """Write a run down under a name that no run has; its `stage.json` comes last, so that half a draft has none."""
        self.discard(RequestId(run.request_id))
        draft = self._draft(run.request_id, run.run_id)
        with translated(draft):
            refuse_link(draft.parent)
            (draft / LOGS).mkdir(parents=True)
            self._write(draft / REQUEST, _brief_shape(brief))
            self._write(draft / STAGE, stage_of(run))

    def drafted(self, request_id: RequestId) -> tuple[Run, Brief] | None:
        """Return the run that was written down for a request and not made; None if there is none that is whole."""
        for draft in self._drafts(request_id):
            run_id = draft.name.removeprefix(".").removesuffix(DRAFT_SUFFIX)
            stage = _owned(_parsed(draft / STAGE), request_id, run_id)
            run = run_of(stage) if stage is not None else None
            if run is not None:
                return replace(run, place=self._own_place(run)), _brief_of(run, _parsed(draft / REQUEST))
        return None

    def discard(self, request_id: RequestId) -> None:
        """Remove what was written down for a request and not made."""
        for draft in self._drafts(request_id):
            with translated(draft):
                shutil.rmtree(draft)

    def create(self, run: Run, brief: Brief) -> None:
        """Make a run's folder, whole at once: a kill before it has its name leaves nothing that looks like a run."""
        folder = self.folder(run.request_id, run.run_id)
        draft = self._draft(run.request_id, run.run_id)
        if not (draft / STAGE).exists():
            self.draft(run, brief)
        with translated(folder):
            draft.rename(folder)
            # Runs are not for git (REQ-7), even if `aiflow init` was never called.
            create_file(self._root / FOLDER / ".gitignore", b"*\n", self._root / FOLDER)

    def _draft(self, request_id: str, run_id: str) -> Path:
        return self._root / FOLDER / request_id / f".{run_id}{DRAFT_SUFFIX}"

    def _drafts(self, request_id: str) -> list[Path]:
        if request_id not in self._names(self._folder):  # an id is never used as a path unseen (SEC)
            return []
        return sorted((self._root / FOLDER / request_id).glob(f".{RUN_PREFIX}*{DRAFT_SUFFIX}"))

    def save(self, run: Run) -> None:
        """Write `stage.json`; what another version wrote there and this one does not know stays (RUN-16)."""
        folder = self.folder(run.request_id, run.run_id)
        raw, after = _parsed(folder / STAGE), stage_of(run)
        before = run_of({**raw, "request_id": run.request_id, "run_id": run.run_id}) if raw else None
        with translated(folder):
            self._write(folder / STAGE, kept(raw, stage_of(before), after) if before else after)

    def load(self, request_id: str, run_id: str) -> Run | None:
        """Read a run back; None if it is not there or its file cannot be read."""
        stage = _owned(self._read(request_id, run_id, STAGE), request_id, run_id)
        if stage is None:
            return None
        planning = None if stage.get("steps") else self._read(request_id, run_id, PLANNING)
        run = run_of(stage, planning)
        assert run is not None, run_id
        placed = replace(run, place=self._own_place(run))
        return placed if run.place.base_commit or self._find_base is None else self._find_base(placed)

    def _own_place(self, run: Run) -> Place:
        """Return where a run works by its names alone: a file that somebody edited must not lead anywhere else."""
        path = self._worktree_path(run.run_id) if self._worktree_path else run.place.path
        return replace(run.place, path=path, branch=branch_name(run.request_id, run.run_id))

    def find(self, run_id: str, request_id: str | None = None) -> str | None:
        """Return the request a run belongs to; with one given only that one is looked at."""
        if not run_id.startswith(RUN_PREFIX) or not is_valid_id(run_id):
            return None
        owners = (name for name in self._names(self._folder) if request_id in (None, name))
        return next((name for name in owners if run_id in self._names(f"{self._folder}/{name}")), None)

    def brief(self, run: Run) -> Brief:
        """Return the request as it was when the run began; of a lost file only what the run itself knows."""
        return _brief_of(run, self._read(run.request_id, run.run_id, REQUEST))

    def write_planning(self, run: Run) -> None:
        """Write `planning.json`."""
        shape = {
            "version": PLANNING_VERSION,
            "request_id": run.request_id,
            "run_id": run.run_id,
            "steps": plan_shape(run.plan),
        }
        folder = self.folder(run.request_id, run.run_id)
        with translated(folder):
            self._write(folder / PLANNING, shape)

    def write_errors(self, run: Run, errors: Mapping[str, object] | None) -> None:
        """Write `errors.json`, or remove it."""
        path = self.folder(run.request_id, run.run_id) / ERRORS
        with translated(path):
            if errors is None:
                path.unlink(missing_ok=True)
            else:
                self._write(path, errors)

    def errors(self, run: Run) -> dict[str, Any] | None:
        """Read `errors.json`."""
        return self._read(run.request_id, run.run_id, ERRORS)

    def append_report(self, run: Run, text: str) -> None:
        """Add to `report.md`; the file is replaced whole, so that a kill leaves the old or the new one."""
        path = self.folder(run.request_id, run.run_id) / REPORT
        with translated(path):
            old = path.read_bytes() if path.exists() else b""
            replace_file(path, old + self._masker.mask(text.encode("utf-8", "replace")), path.parent)

    def report(self, run: Run) -> str | None:
        """Read `report.md`."""
        path = self.folder(run.request_id, run.run_id) / REPORT
        with translated(path):
            return path.read_text("utf-8", "replace") if path.exists() else None

    def write_patch(self, run: Run, step_id: str, patch: bytes | None) -> str | None:
        """Write an unfinished step's patch and return its path below the root, or remove it."""
        path = self.folder(run.request_id, run.run_id) / f"{step_id}.patch"
        with translated(path):
            if not patch:
                path.unlink(missing_ok=True)
                return None
            replace_file(path, patch, path.parent)
        return str(path.relative_to(self._root))

    def open_log(self, run: Run, number: int, title: str, follow: Callable[[bytes], None] | None = None) -> StepLogFile:
        """Open a step's log to add to it, after a dated title; `follow` gets all of it, too."""
        path = self._root / self.log_path(run, number)
        with translated(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            log = StepLogFile(str(path), self._masker, follow, self._clock)
            log.say(f"{HEADING}{self._clock().isoformat(timespec='seconds')} {title}")
        return log

    def log_path(self, run: Run, number: int) -> str:
        """Return the path of a step's log, below the root."""
        return f"{FOLDER}/{run.request_id}/{run.run_id}/{LOGS}/{log_file(number)}"

    def log_numbers(self, run: Run) -> tuple[int, ...]:
        """Return which logs a run has, in the order of its steps."""
        names = self._names(str(self.folder(run.request_id, run.run_id) / LOGS))
        return tuple(sorted(number for name in names if (number := log_of_file(name)) is not None))

    def read_log(self, run: Run, number: int, offset: int = 0, limit: int | None = None) -> tuple[bytes, int] | None:
        """Read a log from a byte on, at most so many, with the size it has now; None if there is no such log."""
        with self._opened(run, self.log_path(run, number)) as file:
            if file is None:
                return None
            size = os.fstat(file.fileno()).st_size
            file.seek(offset)
            return file.read(-1 if limit is None else limit), size

    def log_marks(self, run: Run, number: int, start: int, end: int) -> tuple[LogMark, ...]:
        """Read when some bytes of a log were written, and in which colours."""
        with self._opened(run, marks_path(self.log_path(run, number))) as file:
            return read_marks(file, start, end) if file is not None else ()

    @contextmanager
    def _opened(self, run: Run, name: str) -> Iterator[BinaryIO | None]:
        """Open a file of a run's logs; None if there is none, or a link, which may lead anywhere."""
        path, folder = self._root / name, self.folder(run.request_id, run.run_id)
        own = os.path.join(os.path.realpath(folder), LOGS, path.name)
        if path.name not in self._names(str(folder / LOGS)) or os.path.realpath(path) != own:
            yield None
            return
        with translated(path), open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            yield file if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None

    def _read(self, request_id: str, run_id: str, name: str) -> dict[str, Any] | None:
        """Read one JSON file of a run that exists; None if it cannot be read."""
        if request_id not in self._names(self._folder) or run_id not in self._names(f"{self._folder}/{request_id}"):
            return None
        return _parsed(self.folder(request_id, run_id) / name)

    def _write(self, path: Path, shape: Mapping[str, object]) -> None:
        replace_file(path, to_json(shape).encode("utf-8", "backslashreplace"), path.parent)


def _parsed(path: Path) -> dict[str, Any] | None:
    try:
        raw = json.loads(read_own(path, STAGE_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return raw if isinstance(raw, dict) else None


def _owned(stage: dict[str, Any] | None, request_id: str, run_id: str) -> dict[str, Any] | None:
    """Return a run's stage with the folder's names: they are the truth about whose run this is."""
    if stage is None or not is_stage_of(stage, request_id, run_id):
        return None
    return stage | {"request_id": request_id, "run_id": run_id}


def _brief_of(run: Run, raw: Mapping[str, Any] | None) -> Brief:
    if raw is None or not all(isinstance(raw.get(name), str) for name in ("id", "title", "body", "priority")):
        return Brief(run.request_id, run.title, "", "")
    return Brief(raw["id"], raw["title"], raw["body"], raw["priority"], _labels(raw.get("labels")))


def _labels(raw: object) -> tuple[str, ...]:
    return tuple(map(str, raw)) if isinstance(raw, list) else ()


def to_json(shape: Mapping[str, object]) -> str:
    """Write a document with a line for every key and every entry of a list: readable, at the speed of Python's C."""
    lines = [f" {json.dumps(name)}: {_lines(value)}" for name, value in shape.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _lines(value: object) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value, ensure_ascii=False)
    return "[\n  " + ",\n  ".join(json.dumps(entry, ensure_ascii=False) for entry in value) + "\n ]"


def _brief_shape(brief: Brief) -> dict[str, object]:
    return {
        "id": brief.id,
        "title": brief.title,
        "body": brief.body,
        "priority": brief.priority,
        "labels": list(brief.labels),
    }
