"""What GitHub made of a run's branch (ISS-9): its pull request is noted, and what was merged there is accepted here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import RequestId
from aiflow.usecases.runs.locks import take_lock
from aiflow.usecases.runs.merge import record_merged_elsewhere
from aiflow.usecases.runs.settle import note_pull, settle_run
from aiflow.usecases.runs.trial import discard_merge, put_back
from aiflow.usecases.runs.work import holding

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine


def note_pull_of(engine: Engine, run: Run, url: str) -> None:
    """Note the pull request of a run that no process works on."""
    with holding(engine, take_lock(engine, RequestId(run.request_id), run.run_id, beside_others=True), run) as work:
        note_pull(work, url)


def accept_merged(engine: Engine, run: Run, commit: str, url: str) -> None:
    """Record that a person merged a waiting run's pull request on GitHub, and clean up after it as usual (GIT-5)."""
    with holding(engine, take_lock(engine, RequestId(run.request_id), run.run_id, beside_others=True), run) as work:
        if work.run.state is RunState.DONE and not work.run.accepted_as:
            note_pull(work, url)
            discard_merge(work)
            put_back(work)
            record_merged_elsewhere(work, commit, url)
            settle_run(work, work.run)
