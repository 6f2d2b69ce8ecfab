"""`aiflow resume`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from aiflow.cli.options import baseline_option, for_this_call, option, target_argument
from aiflow.cli.options import command as make_command
from aiflow.cli.running import run_to_the_end
from aiflow.cli.terminal.render import say
from aiflow.domain.agents.choices import numbered
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.usecases.runs.find import find_run
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from aiflow.usecases.runs.update import update_run

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("resume")
@target_argument()
@option("-a", "--answer", help="option.resume.answer")
@option("--keep-changes", is_flag=True, help="option.resume.keep_changes")
@option("--update", is_flag=True, help="option.resume.update")
@option("--force", is_flag=True, help="option.resume.force")
@baseline_option()
@option("--wait", is_flag=True, help="option.run.wait")
def command(
    session: CliSession,
    as_json: bool,  # noqa: FBT001
    target: RequestId,
    answer: str | None,
    **flags: bool,
) -> None:
    """Resume a stopped run."""
    for_this_call(session, no_baseline=flags["no_baseline"])
    if answer is None and not as_json and not flags["force"] and sys.stdin.isatty():
        answer = _ask(session, target)
    wish = ResumeWish(Goal(ResumeMode.RESUME, is_forced=flags["force"]), answer, flags["keep_changes"])
    resume = update_run if flags["update"] else resume_run
    run_to_the_end(
        session,
        target,
        lambda engine: resume(engine, find_run(engine, target), wish),
        as_json=as_json,
        wait=flags["wait"],
    )


def _ask(session: CliSession, target: RequestId) -> str | None:
    """Let the person in front of the terminal answer the run's question, if it has one."""
    run = find_run(session.engine(), target)
    if run.is_active or run.error is None or run.error.question is None:
        return None
    say(run.error.question, f"{session.texts('run.question')} ")
    for choice in numbered(run.error.choices):
        say(choice, "  ")
    return str(click.prompt(session.texts("run.answer"), prompt_suffix=" "))
