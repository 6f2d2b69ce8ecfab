"""`aiflow doctor`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.render import paint, say
from aiflow.cli.session import Session, print_json
from aiflow.domain.health import Finding, Health, overall
from aiflow.domain.reasons import ExitCode, exit_code
from aiflow.usecases.check_fully import check_full, look_for_crashes
from aiflow.usecases.check_health import check_quick
from aiflow.usecases.run_shapes import finding_shape
from aiflow.usecases.shapes import ENGLISH

if TYPE_CHECKING:
    from aiflow.messages import Texts

COLOURS = {Health.PASS: "green", Health.WARN: "yellow", Health.FAIL: "red"}
EVIDENCE_SHOWN = 10


@make_command("doctor")
@option("--full", is_flag=True, help="option.doctor.full")
def command(session: Session, as_json: bool, full: bool) -> None:  # noqa: FBT001
    """Check everything a run needs."""
    engine = session.engine()
    if full:
        from aiflow.wiring import store_look

        findings = check_full(engine, store_look(session.settings, os.environ))
    else:
        findings = [*check_quick(engine)[1], *look_for_crashes(engine)]
    verdict = overall(findings)
    if as_json:
        print_json(
            {
                "mode": "full" if full else "quick",
                "result": verdict.value,
                "checks": [finding_shape(finding, ENGLISH) for finding in findings],
            }
        )
    else:
        _show(session, findings, verdict)
    failed = [finding for finding in findings if finding.health is Health.FAIL]
    if failed:
        code = failed[0].reason_code
        raise click.exceptions.Exit(int(exit_code(code) if code else ExitCode.ENVIRONMENT))


def _show(session: Session, findings: list[Finding], verdict: Health) -> None:
    for finding in findings:
        show_finding(finding, session.texts)
    click.echo()
    click.echo(session.texts(f"doctor.{verdict.lower()}"))


def show_finding(finding: Finding, texts: Texts) -> None:
    """Write what one check found, and the command that mends it."""
    result = paint(f"{finding.health:4}", COLOURS[finding.health], is_bold=True)
    code = f"{finding.reason_code}: " if finding.reason_code else ""
    say(code + texts(f"check.{finding.message}", **dict(finding.facts)), f"{result}  ")
    for line in finding.evidence[:EVIDENCE_SHOWN]:
        say(line, "        ")
    if len(finding.evidence) > EVIDENCE_SHOWN:
        say(f"… ({len(finding.evidence)})", "        ")
    if finding.fix and finding.health is not Health.PASS:
        say(finding.fix, "      → ")
