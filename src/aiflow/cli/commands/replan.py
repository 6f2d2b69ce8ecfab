"""`aiflow replan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.cli.options import baseline_option, for_this_call, option, target_argument
from aiflow.cli.options import command as make_command
from aiflow.cli.running import run_to_the_end
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.usecases.runs.find import find_run
from aiflow.usecases.runs.resume import ResumeWish, resume_run

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("replan")
@target_argument()
@option("-a", "--answer", help="option.resume.answer")
@baseline_option()
@option("--wait", is_flag=True, help="option.run.wait")
def command(session: CliSession, as_json: bool, target: RequestId, answer: str | None, **flags: bool) -> None:  # noqa: FBT001
    """Close a run and start a new one with a new plan."""
    for_this_call(session, no_baseline=flags["no_baseline"])
    wish = ResumeWish(Goal(ResumeMode.REPLAN), answer)
    run_to_the_end(
        session,
        target,
        lambda engine: resume_run(engine, find_run(engine, target), wish),
        as_json=as_json,
        wait=flags["wait"],
    )
