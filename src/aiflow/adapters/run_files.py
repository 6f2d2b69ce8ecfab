"""Reading `runs/<request-id>/<run-id>/stage.json` (RUN-1, REQ-7): the folder may be missing, a file may be broken."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from aiflow.adapters.atomic_files import read_regular
from aiflow.domain.lifecycle import ACTIVE_RUN_STATES, RunState
from aiflow.domain.request import RequestId, parse_instant
from aiflow.domain.run_summary import RunSummary, TaskRef, latest_run
from aiflow.errors import as_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

FOLDER = "runs"
STAGE = "stage.json"
RUN_PREFIX = "RUN-"
_STATES = {state.value: state for state in RunState}


class RunFiles:
    """Reads the runs below one root."""

    def __init__(self, root: Path | str) -> None:
        self._folder = f"{root}/{FOLDER}"

    def latest(self, request_ids: Iterable[RequestId] | None = None) -> dict[RequestId, RunSummary]:
        """Return the run that speaks for each request, for those asked for or all."""
        found = self._names(self._folder)
        wanted = found if request_ids is None else sorted(set(found) & set(request_ids))
        latest: dict[RequestId, RunSummary] = {}
        for name in wanted:
            run = latest_run(self._summaries(name))
            if run is not None:
                latest[RequestId(name)] = run
        return latest

    def owners(self) -> list[RequestId]:
        """Return the requests that have runs."""
        return [RequestId(name) for name in self._names(self._folder) if not name.startswith(".")]

    def all_of(self, request_id: RequestId) -> tuple[RunSummary, ...]:
        """Return every run of one request, newest first."""
        if request_id not in self._names(self._folder):
            return ()
        return tuple(sorted(self._summaries(request_id), key=lambda run: run.run_id, reverse=True))

    def _summaries(self, request_id: str) -> Iterator[RunSummary]:
        folder = f"{self._folder}/{request_id}"
        for run_id in self._names(folder):
            if not run_id.startswith(RUN_PREFIX):  # a stray file is no run
                continue
            yield _summary(run_id, _read_stage(f"{folder}/{run_id}/{STAGE}"))

    @staticmethod
    def _names(folder: str) -> list[str]:
        try:
            return os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise as_problem(error, folder) from error


def _read_stage(path: str) -> dict[str, Any] | None:
    """Read one stage.json; None if it is missing, unreadable or not what it should be."""
    try:
        stage = json.loads(read_regular(path))
    except PermissionError as error:  # who may not look must not guess
        raise as_problem(error, path) from error
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(stage, dict) or not isinstance(stage.get("state"), str):
        return None
    return stage if stage["state"] in _STATES else None


def _summary(run_id: str, stage: dict[str, Any] | None) -> RunSummary:
    """Sum up a run; one whose file cannot be read is a failed one that was lost (REQ-5)."""
    if stage is None or (stage["state"] in ACTIVE_RUN_STATES and not _is_whole(stage)):
        return RunSummary(run_id, RunState.FAILED, "RUN_LOST")
    error = stage.get("error")
    error = error if isinstance(error, dict) else {}
    return RunSummary(
        run_id,
        _STATES[stage["state"]],
        _text(error.get("reason_code")),
        _text(error.get("cause")),
        _changed_at(stage.get("history")),
        _text(error.get("way_on")),
        _task(stage.get("task")),
    )


def _is_whole(stage: dict[str, Any]) -> bool:
    """Tell whether a run could go on from its file: one that never can must not look as if it were at work."""
    from aiflow.adapters.stage_file import run_of

    return run_of(stage) is not None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _task(value: object) -> TaskRef | None:
    """Return the task that a run names, if it names one in full."""
    if not isinstance(value, dict):
        return None
    namespace, task_id = _text(value.get("namespace")), _text(value.get("task_id"))
    return TaskRef(namespace, task_id) if namespace and task_id else None


def _changed_at(history: object) -> datetime | None:
    """Return when the last entry of the history was written."""
    if not isinstance(history, list) or not history or not isinstance(history[-1], dict):
        return None
    return parse_instant(str(history[-1].get("at", "")))
