"""Where a run began whose file does not say (RUN-16): what git knows of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.adapters.git.git_cli import Git
from aiflow.adapters.git.repository_facts import commit_of, look
from aiflow.domain.lifecycle import RunState
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run


def with_base(root: str, base_branch: str, run: Run) -> Run:
    """Return a run with its base and, where its steps name no commit, with what its branch has since."""
    git = Git(root)
    try:
        facts = look(git, run.place.base_branch or base_branch)
        tip = commit_of(git, run.place.branch)
        if facts.base_commit is None:
            return run
        parted = git.run("merge-base", facts.base_commit, tip, ok=(0, 1)).word if tip else ""
    except AiflowError:  # no repository to ask: the code that needs the base reports it
        return run
    began = parted or facts.base_commit
    based = replace(run, place=replace(run.place, base_branch=facts.base_branch, base_commit=began))
    if tip in (None, began) or run.work.base or run.has_commits:
        return based
    is_done = run.work.is_done or run.state is RunState.DONE
    work = replace(run.work, commit=tip, is_done=True) if is_done else replace(run.work, base=tip)
    return replace(based, steps={**run.steps, run.current_step_id or "": work})
