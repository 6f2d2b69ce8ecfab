"""Testing what is to become the base branch's (GIT-3, GIT-4): a merge, or a revert, before anything has moved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import RunEvent
from aiflow.domain.runs.events import SETUP, accepting, noted
from aiflow.domain.runs.merge import IN_PLACE, is_for_set_up
from aiflow.domain.runs.undoing import undoing
from aiflow.domain.runs.worktree import retry_ref
from aiflow.usecases.runs.commands import Command, run_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.runs.run import Run, RunError
    from aiflow.domain.runs.worktree import Place
    from aiflow.usecases.runs.work import Work


class TreeTrial(NamedTuple):
    """What a tree of the base branch is tested for: how that is recorded, and what a failure is called."""

    name: str
    begun: Callable[..., Run]
    failed: str
    is_in_place: bool = True


ACCEPTANCE = TreeTrial("acceptance", accepting, "MERGE_TESTS_FAILED")
# Beside the run's own worktree: what is tested there is without its work.
UNDO = TreeTrial("undo", undoing, "UNDO_TESTS_FAILED", is_in_place=False)


def test_tree(work: Work, commit: str, trial: TreeTrial) -> RunError | None:
    """Test a commit that is to become the base branch's; None if nothing is wrong with it.

    That is where the run was set up, if it fits (GIT-4).
    """
    engine, run = work.engine, work.run
    tests = [(trial.failed, f"{kind} tests", command) for kind, command in engine.test_commands.items()]
    if not tests:
        return None
    setup = engine.settings.text("worktree.setup")
    tip = work.workspace.tip(run.place) if trial.is_in_place else None
    if tip is not None and _fits(work, commit) and work.workspace.is_as_set_up(run.place, tip):
        work.save(trial.begun(run, engine.time.now(), IN_PLACE))
        try:
            work.workspace.restore(run.place, tip, commit)
            return _run_all(work, run.place, tests, trial)
        finally:
            if not work.lease.is_lost:
                work.workspace.tidy(run.place)
    place = _merged_place(run)
    work.save(trial.begun(run, engine.time.now()))
    try:
        engine.merging.check_out(commit, place)
        engine.workshop.copy(engine.settings.texts("worktree.copy"), place.path)
        if setup.strip():
            work.save(noted(work.run, SETUP, engine.time.now(), note=engine.mask(setup)))
        return _run_all(work, place, ([("SETUP_FAILED", "set-up", setup)] if setup.strip() else []) + tests, trial)
    finally:
        discard_merge(work)


def _fits(work: Work, commit: str) -> bool:
    """Return whether the run's worktree is there and was set up with the lock files that the merge has."""
    run, setup = work.run, work.engine.settings.text("worktree.setup")
    if not setup.strip() or not run.is_prepared or not work.workspace.is_intact(run.place):
        return False
    changed = work.workspace.differing(run.place, run.set_up_at, commit)
    # Where a submodule stands now only set-up can tell.
    return not any(is_for_set_up(path) or path in setup for path in changed) and not _has_submodules(work)


def _has_submodules(work: Work) -> bool:
    return work.engine.workspaces(None).facts(work.run.place.base_branch).has_submodules


def _run_all(work: Work, place: Place, commands: list[tuple[str, str, str]], trial: TreeTrial) -> RunError | None:
    """Run commands one after the other, up to the first that fails or a stop; each goes into the last step's log."""
    for reason_code, name, command in commands:
        log = work.open_log(f"{trial.name}, {name}: {command}")
        refused = trial.failed if reason_code == trial.failed else None
        why = run_command(work, Command(command, place, reason_code, refused=refused), log).why
        if why is not None or work.should_stop():
            return why
    return None


def put_back(work: Work) -> None:
    """Put the run's worktree back where an acceptance was killed while it tested there; what is there stays in git."""
    run = work.run
    last = run.history[-1] if run.history else None
    if last is None or (last.event, last.note) != (RunEvent.ACCEPTING, IN_PLACE):
        return
    tip = work.workspace.tip(run.place)
    if tip is not None and work.workspace.is_intact(run.place):
        work.workspace.go_back(run.place, tip, retry_ref(run.run_id, "acceptance", 1))


def discard_merge(work: Work) -> None:
    """Remove the worktree in which the merge is tested, also one that an acceptance left that was killed."""
    if not work.lease.is_lost:  # else the process that took the lock may test there already
        work.engine.merging.discard(_merged_place(work.run).path)


def _merged_place(run: Run) -> Place:
    return replace(run.place, path=f"{run.place.path}.merge")
