"""Reading `runs/<request-id>/<run-id>/stage.json` (RUN-1, REQ-7): the folder may be missing, a file may be broken."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from aiflow.adapters.files.atomic_files import read_own
from aiflow.adapters.run_folders.stage_head import is_stage_of, read_head, text_or_none
from aiflow.domain.lifecycle import RunState
from aiflow.domain.reason_codes import ROWS
from aiflow.domain.request import RequestId
from aiflow.domain.run_summary import FROM_NEWER, RunSummary, TaskRef, latest_run
from aiflow.errors import as_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FOLDER = "runs"
STAGE = "stage.json"
RUN_PREFIX = "RUN-"
STAGE_BYTES = 100_000_000
DRAFT_SUFFIX = ".new"


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

    def has_draft(self, request_id: RequestId) -> bool:
        """Return whether a run was written down for a request and not made yet."""
        return request_id in self._names(self._folder) and bool(self.drafts_of(request_id))

    def drafts_of(self, request_id: RequestId) -> tuple[str, ...]:
        """Return the runs that were written down for a request and not made yet; half a draft has no `stage.json`."""
        folder = f"{self._folder}/{request_id}"
        drafts = (name for name in self._names(folder) if name.startswith(f".{RUN_PREFIX}"))
        whole = ((name, _read_stage(f"{folder}/{name}/{STAGE}")) for name in drafts if name.endswith(DRAFT_SUFFIX))
        named = ((name[1 : -len(DRAFT_SUFFIX)], stage) for name, stage in whole)
        return tuple(run_id for run_id, stage in named if is_stage_of(stage, request_id, run_id))

    def page(
        self,
        request_id: RequestId | None = None,
        limit: int | None = None,
        after: str | None = None,
        *,
        since: str = "",
    ) -> tuple[tuple[tuple[RequestId, RunSummary], ...], int]:
        """Return runs of one request or of all, newest first, and how many there are; only what is shown is read."""
        owners = self.owners() if request_id is None else [request_id] if request_id in self.owners() else []
        names = ((run_id, owner) for owner in owners for run_id in self._names(f"{self._folder}/{owner}"))
        found = sorted((pair for pair in names if pair[0].startswith(RUN_PREFIX)), reverse=True)
        wanted = [pair for pair in found if (after is None or pair[0] < after) and pair[0] >= since][:limit]
        return tuple([(owner, self._recorded(owner, run_id)) for run_id, owner in wanted]), len(found)

    def _summaries(self, request_id: str) -> Iterator[RunSummary]:
        folder = f"{self._folder}/{request_id}"
        for run_id in self._names(folder):
            if not run_id.startswith(RUN_PREFIX):  # a stray file is no run
                continue
            yield self._summed_up(request_id, run_id)

    def _summed_up(self, request_id: str, run_id: str) -> RunSummary:
        return _summary(request_id, run_id, _read_stage(f"{self._folder}/{request_id}/{run_id}/{STAGE}"))

    def _recorded(self, request_id: str, run_id: str) -> RunSummary:
        """Sum a run up together with its record."""
        stage = _read_stage(f"{self._folder}/{request_id}/{run_id}/{STAGE}")
        return _with_record(_summary(request_id, run_id, stage), stage)

    @staticmethod
    def _names(folder: str) -> list[str]:
        try:
            with os.scandir(folder) as entries:  # a link leads to what is not a run
                return [entry.name for entry in entries if not entry.is_symlink()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise as_problem(error, folder) from error


def _read_stage(path: str) -> object:
    """Read one stage.json; None if it is missing or no JSON."""
    try:
        return json.loads(read_own(path, STAGE_BYTES))
    except PermissionError as error:  # who may not look must not guess
        raise as_problem(error, path) from error
    except (OSError, ValueError, RecursionError):
        return None


def _summary(request_id: str, run_id: str, stage: Any) -> RunSummary:
    """Sum up a run; one whose file cannot be read is a failed one that was lost (REQ-5)."""
    if not is_stage_of(stage, request_id, run_id):
        return RunSummary(run_id, RunState.FAILED, "RUN_LOST")
    head = read_head(stage, run_id)
    way = None if head.reason_code in (None, FROM_NEWER) else _way_on(stage, head.reason_code, (request_id, run_id))
    task, is_open = _task(stage.get("task")), head.state is RunState.DONE and not stage.get("accepted_as")
    merging_as = text_or_none(stage.get("merging_as")) if is_open else None
    known = RunSummary(run_id, head.state, head.reason_code, head.cause, head.changed_at, way, task)
    return known._replace(merging_as=merging_as) if merging_as else known


def _with_record(run: RunSummary, stage: Any) -> RunSummary:
    """Add what only lists of runs show; of a file that cannot be read there is nothing to add."""
    if run.reason_code == "RUN_LOST" and run.changed_at is None:
        return run
    from aiflow.adapters.run_folders.stage_reading import record_of

    return run._replace(record=record_of(stage, run.run_id))


def _way_on(stage: dict[str, Any], code: str | None, names: tuple[str, str]) -> str | None:
    """Return the next step that a run's file names, or None for its reason's; what only its steps know is read."""
    error = stage.get("error")
    way = text_or_none(error.get("way_on")) if isinstance(error, dict) else None
    if code in ROWS and (way is not None or not stage.get("steps")):
        return way
    from aiflow.adapters.run_folders.stage_reading import run_of
    from aiflow.domain.runs.stopped import recommended

    run = run_of({**stage, "request_id": names[0], "run_id": names[1]})
    return recommended(run) if run else None


def _task(value: object) -> TaskRef | None:
    """Return the task that a run names, if it names one in full."""
    if not isinstance(value, dict):
        return None
    namespace, task_id = text_or_none(value.get("namespace")), text_or_none(value.get("task_id"))
    return TaskRef(namespace, task_id) if namespace and task_id else None
