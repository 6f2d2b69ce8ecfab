"""The page of reason codes, from the one table and the messages."""

from __future__ import annotations

import re

from aiflow.cli.main import COMMANDS
from aiflow.domain import reasons
from aiflow.messages import Texts
from aiflow.messages.commands import command_line
from page_parts import NONE, code, page, prose, table

ENGLISH, JAPANESE = Texts("en"), Texts("ja")

REASONS_INTRO = """
Every stop, refusal and exclusion has a reason code. The code is the same everywhere and in both languages: on the
terminal and in `--json`. A name in angle brackets stands for a fact that is filled in when the message is shown.
"""
WAYS_INTRO = "What aiflow recommends after a stop, and the command that takes that way, where there is one.\n"


def reasons_page() -> str:
    """Return the catalogue of reason codes."""
    headers = ["code", "category", "HTTP", "exit", "stops a run as", "way on", "retryable", "blocked reason (issues)"]
    overview = table(headers, map(_reason_row, reasons.CATALOGUE.values()))
    commands = {way: command_line(action) for way, action in reasons.WAYS.items()}
    ways = table(["way on", "command"], ([code(way), code(commands.get(way))] for way in reasons.WayOn))
    details = [_reason_detail(reason) for reason in reasons.CATALOGUE.values()]
    return page(
        "Reason codes",
        REASONS_INTRO + _missing_commands(),
        "## Overview\n",
        overview,
        "## Ways on\n",
        WAYS_INTRO,
        ways,
        "## What each one says\n",
        *details,
    )


def _missing_commands() -> str:
    """Say which commands the messages name that this version does not have yet."""
    said = [advice.typed for reason in reasons.CATALOGUE for advice in ENGLISH.message(reason, {}).actions]
    said += [f"`{command_line(action)}`" for action in reasons.WAYS.values()]
    named = set(re.findall(r"`aiflow ([a-z-]+)", "\n".join(said)))
    missing = sorted(named - set(COMMANDS))
    if not missing:
        return ""
    return f"\nThe catalogue is ahead of the program. Commands named here that come later: {', '.join(missing)}.\n"


def _reason_row(reason: reasons.Reason) -> list[str]:
    return [
        f"[{reason.code}](#{reason.code.lower()})",
        reason.category,
        str(reason.http_status),
        str(int(reason.exit_code)),
        reason.stops_as or NONE,
        reason.way_on if reason.way_on is not reasons.WayOn.NONE else NONE,
        "yes" if reason.is_retryable else "no",
        reason.blocked_reason or NONE,
    ]


def _reason_detail(reason: reasons.Reason) -> str:
    """Write what a reason code says in both languages."""
    lines = [f"### {reason.code}\n"]
    for texts in (ENGLISH, JAPANESE):
        title, summary, actions = texts.message(reason.code, {})
        lines += [f"**{prose(title)}**: {prose(summary)}\n", *(f"- {prose(advice.typed)}" for advice in actions), ""]
    return "\n".join(lines)
