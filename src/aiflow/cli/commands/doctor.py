"""`aiflow doctor`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import paint, say
from aiflow.domain.health import Finding, Health
from aiflow.domain.reasons import ExitCode, exit_code
from aiflow.messages.commands import command_line
from aiflow.usecases.doctor.examine import examine
from aiflow.usecases.issues.check_issues import findings_of
from aiflow.usecases.shapes.project import doctor_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.messages import Texts
    from aiflow.usecases.doctor.examine import Examination

COLOURS = {Health.PASS: "green", Health.WARN: "yellow", Health.FAIL: "red"}
EVIDENCE_SHOWN = 10


@make_command("doctor")
@option("--full", is_flag=True, help="option.doctor.full")
def command(session: CliSession, as_json: bool, full: bool) -> None:  # noqa: FBT001
    """Check everything a run needs."""
    from aiflow.wiring import store_look
    from aiflow.wiring.issues import issue_look

    issues = findings_of(session.settings, issue_look(session.root, session.settings), session.texts)
    examined = examine(session.engine(), store_look(session.settings, os.environ) if full else None, issues)
    if as_json:
        print_json(doctor_shape(examined.findings, examined.verdict, is_full=full))
    else:
        show_examination(session, examined, session.texts(f"doctor.{examined.verdict.lower()}"))
    leave_with(examined)


def leave_with(examined: Examination) -> None:
    """Leave with the exit code of the first check that failed."""
    if examined.failed is not None:
        code = examined.failed.reason_code
        raise click.exceptions.Exit(int(exit_code(code) if code else ExitCode.ENVIRONMENT))


def show_examination(session: CliSession, examined: Examination, verdict: str) -> None:
    """Write what every check found, and what comes of it all."""
    for finding in examined.findings:
        show_finding(finding, session.texts)
    click.echo()
    click.echo(verdict)


def show_finding(finding: Finding, texts: Texts) -> None:
    """Write what one check found, and the command that fixes it."""
    result = paint(f"{finding.health:4}", COLOURS[finding.health], is_bold=True)
    code = f"{finding.reason_code}: " if finding.reason_code else ""
    say(code + texts(f"check.{finding.message}", **dict(finding.facts)), f"{result}  ")
    for line in finding.evidence[:EVIDENCE_SHOWN]:
        say(line, "        ")
    if len(finding.evidence) > EVIDENCE_SHOWN:
        say(f"… ({len(finding.evidence)})", "        ")
    if finding.fix and finding.health is not Health.PASS:
        say(command_line(finding.fix), "      → ")
