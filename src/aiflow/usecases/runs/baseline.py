"""The tests of a run's base (RUN-17): they run before its first agent is called, once per commit and commands.

Only what passed is remembered: after a failure that a person has fixed, they run again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.request import RequestId
from aiflow.domain.runs.events import BASELINE, KNOWN, base_tested, noted, rebased, stopped
from aiflow.domain.runs.log_names import BASELINE_LOG
from aiflow.domain.runs.retry import BASE_RED
from aiflow.domain.runs.worktree import retry_ref
from aiflow.errors import AiflowError
from aiflow.usecases.runs.commands import Command, run_command
from aiflow.usecases.runs.course import course_of
from aiflow.usecases.runs.ending import end_run

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.runs.work import Work


def run_baseline(work: Work) -> None:
    """Test the base, unless its tests are known to pass; where they fail the run stops before any agent is called."""
    run, engine = work.run, work.engine
    if _is_known(work):
        work.save(base_tested(run, engine.time.now(), KNOWN))
        return
    work.save(noted(run, BASELINE, engine.time.now()))
    for kind, line in engine.test_commands.items():
        if not _passes(work, kind, line):
            return
    note_passed(engine, run.place.base_commit)
    work.save(base_tested(work.run, engine.time.now()))


def _is_known(work: Work) -> bool:
    """Return whether the tests passed here before, or where only request files differ: aiflow commits these (REQ-8)."""
    engine, place = work.engine, work.run.place
    known = engine.baselines.passed(_how(engine))
    if not known or place.base_commit in known:
        return bool(known)
    try:
        changed = work.workspace.differing(place, known[-1], place.base_commit)
    except AiflowError:  # that commit is gone
        return False
    return all(path.startswith(f"{engine.settings.requests_dir}/") for path in changed)


def known_to_pass(engine: Engine, run: Run) -> Run:
    """Note that the base of a new run is known to pass; one that continues another is then laid out and set up once."""
    is_known = run.needs_baseline and run.place.base_commit in engine.baselines.passed(_how(engine))
    return base_tested(run, engine.time.now(), KNOWN) if run.continues and is_known else run


def _passes(work: Work, kind: str, line: str) -> bool:
    """Run one test command on the base; its failure stops the run, and is no attempt of anybody's."""
    place, store = work.run.place, work.engine.runs
    log = work.open_log(f"{kind} tests: {line}", BASELINE_LOG)
    log.say(f"[aiflow] on {place.base_branch} at {place.base_commit[:12]}, before any agent is called")

    def tidy() -> None:
        if dropped := work.workspace.tidy(place):
            log.say(f"[aiflow] put back what the tests changed: {', '.join(dropped)}")

    verdict = run_command(work, Command(line, place, BASE_RED), log, tidy)
    if verdict.why is not None:
        seen = replace(verdict.why.evidence, log_paths=(store.log_path(work.run, BASELINE_LOG),))
        end_run(work, stopped(work.run, replace(verdict.why, evidence=seen), work.engine.time.now()))
    return verdict.has_passed


def note_passed(engine: Engine, commit: str) -> None:
    """Remember that the configured tests pass on a commit: the next run that starts there need not run them."""
    if engine.test_commands:
        engine.baselines.note_passed(_how(engine), commit)


def _how(engine: Engine) -> str:
    """Name all that decides how a commit is tested."""
    how = [engine.test_commands, engine.settings.text("worktree.setup"), engine.settings.texts("worktree.copy")]
    return hashlib.sha256(json.dumps(how).encode()).hexdigest()[:16]


def taken_up(work: Work, run: Run) -> Run:
    """Let a run that a person resumes test its base as it is wanted now; all else stays as decided (RUN-18)."""
    if not run.needs_baseline:
        return run
    now = course_of(work.engine, work.engine.source.load(RequestId(run.request_id)))
    return on_newest_base(work, replace(run, course=replace(run.course, has_baseline=now.has_baseline)))


def on_newest_base(work: Work, run: Run) -> Run:
    """Begin a run whose base was not tested yet on the base as it is now.

    No agent has worked on the old one; it is left only for a newer one, so that nothing is lost.
    """
    base = work.engine.workspaces(None).facts(run.place.base_branch).base_commit
    is_newer = base not in (None, run.tip) and work.workspace.is_ancestor(run.place, run.tip, base or "")
    return _moved(work, run, base) if base is not None and is_newer else run


def _moved(work: Work, run: Run, base: str) -> Run:
    """Begin again on another commit: the worktree is laid out there, and set up again."""
    work.workspace.prepare(run.place, run.tip)
    work.workspace.go_back(run.place, base, retry_ref(run.run_id, "baseline", 1))
    return replace(rebased(run, base), is_prepared=False, left_tree=None)
