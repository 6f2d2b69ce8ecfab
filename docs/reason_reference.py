"""The page of reason codes, from the one table and the messages."""

from __future__ import annotations

import re

from aiflow.cli.main import COMMANDS
from aiflow.domain import reasons
from aiflow.messages import Texts
from aiflow.messages.commands import command_line
from page_parts import NONE, Edition, code, page, prose, table

REASONS_INTRO = """
Every stop, refusal and exclusion has a reason code. The code is the same everywhere and in both languages: on the
terminal and in `--json`. A name in angle brackets stands for a fact that is filled in when the message is shown.
"""
WAYS_INTRO = "What aiflow recommends after a stop, and the command for it, if there is one.\n"


def reasons_page(edition: Edition) -> str:
    """Return the catalogue of reason codes."""
    english = (
        "code",
        "category",
        "HTTP",
        "exit",
        "stops a run as",
        "next step",
        "retryable",
        "blocked reason (issues)",
    )
    rows = (_reason_row(reason, edition) for reason in reasons.CATALOGUE.values())
    commands = {way: command_line(action) for way, action in reasons.WAYS.items()}
    ways = ([code(way), code(commands.get(way))] for way in reasons.WayOn)
    details = [_reason_detail(reason, edition.texts) for reason in reasons.CATALOGUE.values()]
    return page(
        edition.say("reasons", "Reason codes"),
        edition.say("reasons.intro", REASONS_INTRO + _missing_commands(edition.texts)),
        f"## {edition.say('reasons.overview', 'Overview')}\n",
        table(edition.headers("reasons.headers", *english), rows),
        f"## {edition.say('ways', 'Next steps')}\n",
        edition.say("ways.intro", WAYS_INTRO),
        table(edition.headers("ways.headers", "next step", "command"), ways),
        f"## {edition.say('reasons.details', 'What each one says')}\n",
        *details,
    )


def _missing_commands(texts: Texts) -> str:
    """Say which commands the messages name that this version does not have yet."""
    said = [advice.typed for reason in reasons.CATALOGUE for advice in texts.message(reason, {}).actions]
    said += [f"`{command_line(action)}`" for action in reasons.WAYS.values()]
    named = set(re.findall(r"`aiflow ([a-z-]+)", "\n".join(said)))
    missing = sorted(named - set(COMMANDS))
    if not missing:
        return ""
    return f"\nThe catalogue is ahead of the program. Commands named here that come later: {', '.join(missing)}.\n"


def _reason_row(reason: reasons.Reason, edition: Edition) -> list[str]:
    return [
        f"[{reason.code}](#{reason.code.lower()})",
        reason.category,
        str(reason.http_status),
        str(int(reason.exit_code)),
        reason.stops_as or NONE,
        code(reason.way_on) if reason.way_on is not reasons.WayOn.NONE else NONE,
        edition.say("yes", "yes") if reason.is_retryable else edition.say("no", "no"),
        reason.blocked_reason or NONE,
    ]


def _reason_detail(reason: reasons.Reason, texts: Texts) -> str:
    """Write what a reason code says."""
    title, summary, actions = texts.message(reason.code, {})
    lines = [f"### {reason.code}\n", f"**{prose(title)}**: {prose(summary)}\n"]
    return "\n".join([*lines, *(f"- {prose(advice.typed)}" for advice in actions), ""])
