"""Errors as people see them (ERR-1 to ERR-3): reason code, what happened, what to do; never a traceback."""

from __future__ import annotations

import os
import re
import sys
import traceback

import click

from aiflow.cli.session import current_texts, settings_to_repeat
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import say
from aiflow.domain.agents.choices import numbered
from aiflow.domain.reasons import exit_code
from aiflow.errors import AiflowError, BadInputError, as_problem
from aiflow.messages.commands import as_plain
from aiflow.usecases.shapes.errors import actions_of, error_facts, error_shape


def code_of(error: Exception) -> int:
    """Return an error's exit code."""
    return int(exit_code(_as_known(error).reason_code))


def report(error: Exception, *, is_json: bool) -> None:
    """Show an error."""
    known = _as_known(error)
    if known.reason_code == "INTERNAL_ERROR" and os.environ.get("AIFLOW_DEBUG"):
        traceback.print_exception(error)
    if is_json:
        print_json(error_shape(known, current_texts()))
    else:
        show(known)


def _as_known(error: Exception) -> AiflowError:
    """Give every error a reason code; one that aiflow did not foresee is its own defect."""
    if isinstance(error, AiflowError):
        return error
    if isinstance(error, click.ClickException):
        hint = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "aiflow"
        return BadInputError(detail=_told_by_click(error), hint=f"{hint} --help")
    if isinstance(error, OSError):
        return as_problem(error, error.filename or "")
    return AiflowError(detail=f"{type(error).__name__}: {error}")


def _told_by_click(error: click.ClickException) -> str:
    """Return click's words on one line; it ends some with a full stop of its own, whatever the language."""
    told = error.format_message().replace("\n\t", " ")
    return re.sub(r"'\. ?", "'。", told) if current_texts().language == "ja" else told


def show(error: AiflowError) -> None:
    """Write an error to a person: the code and what happened, what it means, what to do."""
    texts = current_texts()
    facts = error_facts(error, texts)
    message = texts.message(error.reason_code, facts)
    title, summary, actions = message.title, message.summary, actions_of(error, message.actions)
    actions = tuple(each.with_settings(settings_to_repeat()) for each in actions)
    detail, hint = facts.get("detail"), facts.get("hint")
    if error.reason_code == "INPUT_INVALID" and detail:
        # What is wrong is all there is to say.
        title, summary, detail, actions = str(detail), "", None, () if hint else actions
    code = error.reason_code
    say(title, f"{click.style(code, fg='red', bold=True) if _is_coloured() else code}: ", err=True)
    parts = [summary, str(detail) if detail and str(detail) not in summary else ""]
    for line in "\n".join(filter(None, parts)).splitlines():
        say(line, "  ", err=True)
    choices = facts.get("choices")
    for choice in numbered(choices if isinstance(choices, list) else ()):
        say(choice, "    ", err=True)
    if kept := facts.get("kept"):
        say(str(kept), "  ", err=True)
    for action in (*(each.typed for each in actions), *((str(as_plain(hint)),) if hint else ())):
        say(action, "  → ", err=True)


def _is_coloured() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
