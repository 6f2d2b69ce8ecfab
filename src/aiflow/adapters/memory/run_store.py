"""The files of runs in memory: what is saved is what is loaded, and everything else a run leaves is at hand."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aiflow.adapters.memory.runs import MemoryRuns
from aiflow.domain.agents.call import Brief
from aiflow.domain.lifecycle import RunState
from aiflow.domain.reasons import WayOn
from aiflow.domain.request import RequestId
from aiflow.domain.run_summary import RunRecord, RunSummary, latest_run, worked_seconds
from aiflow.domain.runs.excerpt import HEAD_BYTES, TAIL_BYTES, excerpt
from aiflow.domain.runs.log_names import BASELINE_LOG, log_file
from aiflow.domain.runs.spending import spent_by_role
from aiflow.domain.runs.stopped import recommended
from aiflow.domain.runs.worktree import branch_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from aiflow.domain.runs.log_marks import LogMark
    from aiflow.domain.runs.run import Run
    from aiflow.ports import Hear

TAIL_CHARACTERS = 4_000
Key = tuple[str, str]


@dataclass
class MemoryRunFiles:
    """The files of all runs of a checkout, by request and run; one that is None cannot be read."""

    runs: dict[Key, Run | None] = field(default_factory=dict)
    drafts: dict[str, tuple[Run, Brief]] = field(default_factory=dict)
    briefs: dict[Key, Brief] = field(default_factory=dict)
    plans: dict[Key, int] = field(default_factory=dict)
    errors: dict[Key, Mapping[str, object]] = field(default_factory=dict)
    reports: dict[Key, str] = field(default_factory=dict)
    patches: dict[tuple[str, str, str], bytes] = field(default_factory=dict)
    logs: defaultdict[str, bytearray] = field(default_factory=lambda: defaultdict(bytearray))

    def forget(self, run_id: str) -> None:
        """Remove a run's folder with all that is in it."""
        for files in (self.runs, self.briefs, self.plans, self.errors, self.reports):
            for key in [key for key in files if key[1] == run_id]:
                del files[key]


class MemoryRunStore:
    """Reads and writes the runs of one checkout."""

    def __init__(self, files: MemoryRunFiles, worktree_path: Callable[[str], str]) -> None:
        self._files = files
        self._worktree_path = worktree_path

    def latest(self, request_ids: Iterable[RequestId] | None = None) -> dict[RequestId, RunSummary]:
        """Return the run that speaks for each request, for those asked for or all."""
        owners = {RequestId(owner) for owner, _ in self._files.runs}
        wanted = owners if request_ids is None else owners & set(request_ids)
        found = {request_id: latest_run(self.all_of(request_id)) for request_id in sorted(wanted)}
        return {request_id: run for request_id, run in found.items() if run is not None}

    def all_of(self, request_id: RequestId) -> tuple[RunSummary, ...]:
        """Return every run of one request, newest first."""
        runs = [_summary(key[1], run) for key, run in self._files.runs.items() if key[0] == request_id]
        return tuple(sorted(runs, key=lambda run: run.run_id, reverse=True))

    def page(
        self,
        request_id: RequestId | None = None,
        limit: int | None = None,
        after: str | None = None,
        *,
        since: str = "",
    ) -> tuple[tuple[tuple[RequestId, RunSummary], ...], int]:
        """Return runs of one request or of all, newest first, those after a run id, and how many there are in all."""
        owners = {RequestId(owner) for owner, _ in self._files.runs}
        runs = MemoryRuns({owner: self.all_of(owner) for owner in owners})
        found, total = runs.page(request_id, limit, after, since=since)
        return tuple((owner, self._with_record(owner, run)) for owner, run in found), total

    def _with_record(self, owner: str, run: RunSummary) -> RunSummary:
        kept = self._files.runs.get((owner, run.run_id))
        if kept is None:
            return run
        used, lines = kept.usage, ((line.at, line.event) for line in kept.history)
        seconds = worked_seconds(kept.created_at, lines)
        spent = (used.cost_usd, used.tokens, used.calls, used.seconds)
        is_accepted = kept.accepted_as is not None
        record = RunRecord(kept.created_at, seconds, *spent, is_accepted=is_accepted, pull_url=kept.pull_url)
        return run._replace(record=record._replace(roles=spent_by_role(kept.roles)))

    def draft(self, run: Run, brief: Brief) -> None:
        """Write a new run down where it counts as none yet, in place of any other draft of its request."""
        self._files.drafts[run.request_id] = (run, brief)

    def drafted(self, request_id: RequestId) -> tuple[Run, Brief] | None:
        """Return the run that was written down for a request and not made; None if there is none."""
        run, brief = self._files.drafts.get(request_id, (None, None))
        return (self._placed(run), brief) if run is not None and brief is not None else None

    def has_draft(self, request_id: RequestId) -> bool:
        """Return whether a run was written down for a request and not made yet."""
        return self.drafted(request_id) is not None

    def discard(self, request_id: RequestId) -> None:
        """Remove what was written down for a request and not made."""
        self._files.drafts.pop(request_id, None)

    def create(self, run: Run, brief: Brief) -> None:
        """Make a run's folder, with the request as it is now: its draft, if it has one."""
        drafted = self._files.drafts.get(run.request_id)
        made = drafted if drafted is not None and drafted[0].run_id == run.run_id else (run, brief)
        self._files.drafts.pop(run.request_id, None)
        self._files.runs[_key(run)], self._files.briefs[_key(run)] = made

    def save(self, run: Run) -> None:
        """Write `stage.json`."""
        self._files.runs[_key(run)] = run

    def load(self, request_id: str, run_id: str) -> Run | None:
        """Read a run back; None if it is not there or its file cannot be read."""
        run = self._files.runs.get((request_id, run_id))
        return self._placed(run) if run is not None else None

    def _placed(self, run: Run) -> Run:
        """Say where a run works by its names alone."""
        path, branch = self._worktree_path(run.run_id), branch_name(run.request_id, run.run_id)
        return replace(run, place=replace(run.place, path=path, branch=branch))

    def find(self, run_id: str, request_id: str | None = None) -> str | None:
        """Return the request a run belongs to; with one given only that one is looked at."""
        wanted = ((owner, name) for owner, name in self._files.runs if request_id in (None, owner))
        return next((owner for owner, name in wanted if name == run_id), None)

    def brief(self, run: Run) -> Brief:
        """Return the request as it was when the run began."""
        return self._files.briefs.get(_key(run)) or Brief(run.request_id, run.title, "", "")

    def write_planning(self, run: Run) -> None:
        """Write `planning.json`."""
        self._files.plans[_key(run)] = len(run.plan)

    def write_errors(self, run: Run, errors: Mapping[str, object] | None) -> None:
        """Write `errors.json`, or remove it."""
        if errors is None:
            self._files.errors.pop(_key(run), None)
        else:
            self._files.errors[_key(run)] = dict(errors)

    def errors(self, run: Run) -> Mapping[str, object] | None:
        """Read `errors.json`."""
        return self._files.errors.get(_key(run))

    def report(self, run: Run) -> str | None:
        """Read `report.md`."""
        return self._files.reports.get(_key(run))

    def append_report(self, run: Run, text: str) -> None:
        """Add to `report.md`."""
        self._files.reports[_key(run)] = self._files.reports.get(_key(run), "") + text

    def write_patch(self, run: Run, step_id: str, patch: bytes | None) -> str | None:
        """Write an unfinished step's patch and return its path, or remove it."""
        if not patch:
            self._files.patches.pop((*_key(run), step_id), None)
            return None
        self._files.patches[(*_key(run), step_id)] = patch
        return f"runs/{run.request_id}/{run.run_id}/{step_id}.patch"

    def open_log(self, run: Run, number: int, title: str, follow: Hear | None = None) -> MemoryStepLog:
        """Open a step's log to add to it, after a title; `follow` gets all of it too."""
        log = MemoryStepLog(self._files.logs[self.log_path(run, number)], follow)
        log.say(f"=== {title}")
        return log

    def log_path(self, run: Run, number: int) -> str:
        """Return the path of a step's log, below the root."""
        return f"runs/{run.request_id}/{run.run_id}/logs/{log_file(number)}"

    def log_numbers(self, run: Run) -> tuple[int, ...]:
        """Return which logs a run has, in the order of its steps."""
        paths = {self.log_path(run, number): number for number in range(BASELINE_LOG, len(run.plan) + 1)}
        return tuple(number for path, number in paths.items() if path in self._files.logs)

    def read_log(self, run: Run, number: int, offset: int = 0, limit: int | None = None) -> tuple[bytes, int] | None:
        """Read a log from a byte on, at most so many, with the size it has now; None if there is no such log."""
        kept = self._files.logs.get(self.log_path(run, number))
        if kept is None:
            return None
        return bytes(kept[offset:] if limit is None else kept[offset : offset + limit]), len(kept)

    def log_marks(self, run: Run, number: int, start: int, end: int) -> tuple[LogMark, ...]:  # noqa: ARG002 - the port's
        """Return no marks: none are kept."""
        return ()


class MemoryStepLog:
    """Adds to one log."""

    def __init__(self, kept: bytearray, follow: Hear | None = None) -> None:
        self._kept = kept
        self._follow = follow or (lambda _data: None)
        self._output = bytearray()

    def write(self, data: bytes) -> None:
        """Add output as it comes."""
        self._kept += data
        self._output += data
        self._follow(data)

    def say(self, text: str) -> None:
        """Add a line of aiflow's own, on a line of its own."""
        if self._kept and not self._kept.endswith(b"\n"):
            self._kept += b"\n"
        self._kept += f"{text}\n".encode()
        self._follow(f"{text}\n".encode())

    @property
    def tail(self) -> str:
        """The last lines of the output."""
        return self._output.decode("utf-8", "replace")[-TAIL_CHARACTERS:].strip()

    @property
    def excerpt(self) -> str:
        """The beginning and the end of the output."""
        output = bytes(self._output)
        return excerpt(output[:HEAD_BYTES], output[-TAIL_BYTES:], len(output))

    def close(self) -> None:
        """Flush what is left: nothing is."""


def _key(run: Run) -> Key:
    return run.request_id, run.run_id


def _summary(run_id: str, run: Run | None) -> RunSummary:
    """Sum up a run; one whose file cannot be read is a failed one that was lost (REQ-5)."""
    if run is None:
        return RunSummary(run_id, RunState.FAILED, "RUN_LOST")
    why = run.error
    way = (recommended(run) or WayOn.NONE).value if why else None
    return RunSummary(
        run_id, run.state, why.reason_code if why else None, why.cause if why else None, run.changed_at, way, run.task
    )
