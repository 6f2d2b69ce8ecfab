"""`aiflow issues doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.cli.commands.doctor import leave_with, show_examination
from aiflow.cli.issues_session import open_room
from aiflow.cli.options import command as make_command
from aiflow.cli.terminal.print_json import print_json
from aiflow.domain.health import overall
from aiflow.usecases.doctor.examine import Examination
from aiflow.usecases.issues.check_issues import check_issues, check_pull_requests
from aiflow.usecases.shapes.project import doctor_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("doctor", below="issues")
def command(session: CliSession, as_json: bool) -> None:  # noqa: FBT001
    """Check the account, its rights and everything else that issues need."""
    settings = session.settings
    findings = (*check_issues(settings, open_room(session).look, session.texts), *check_pull_requests(settings))
    examined = Examination(findings, overall(findings))
    if as_json:
        print_json(doctor_shape(findings, examined.verdict, is_full=True))
    else:
        show_examination(session, examined, session.texts(f"issues_doctor.{examined.verdict.lower()}"))
    leave_with(examined)
