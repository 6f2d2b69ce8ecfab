"""`aiflow retry-step`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import baseline_option, for_this_call, option, target_argument
from aiflow.cli.options import command as make_command
from aiflow.cli.running import run_to_the_end
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.usecases.runs.find import find_run
from aiflow.usecases.runs.resume import ResumeWish, resume_run

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("retry-step")
@target_argument()
@click.argument("step_id", metavar="[STEP]", required=False)
@option("-a", "--answer", help="option.resume.answer")
@option("--keep-changes", is_flag=True, help="option.retry.keep_changes")
@option("--force", is_flag=True, help="option.resume.force")
@baseline_option()
@option("--wait", is_flag=True, help="option.run.wait")
def command(
    session: CliSession,
    as_json: bool,  # noqa: FBT001
    target: RequestId,
    step_id: str | None,
    answer: str | None,
    **flags: bool,
) -> None:
    """Do a step again from its start."""
    for_this_call(session, no_baseline=flags["no_baseline"])
    goal = Goal(ResumeMode.RETRY_STEP, step_id.upper() if step_id else None, is_forced=flags["force"])
    wish = ResumeWish(goal, answer, flags["keep_changes"])
    run_to_the_end(
        session,
        target,
        lambda engine: resume_run(engine, find_run(engine, target), wish),
        as_json=as_json,
        wait=flags["wait"],
    )
