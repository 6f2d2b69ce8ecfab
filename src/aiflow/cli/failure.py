"""Errors as people see them (ERR-1 to ERR-3): reason code, what happened, what to do; never a traceback."""

from __future__ import annotations

import os
import sys
import traceback

import click

from aiflow.cli.session import current_texts, print_json
from aiflow.domain.reasons import exit_code
from aiflow.errors import AiflowError, BadInputError, as_problem
from aiflow.usecases.shapes import error_facts, error_shape


def report(error: Exception, *, is_json: bool) -> int:
    """Show an error and return its exit code."""
    known = _as_known(error)
    if is_json:
        print_json(error_shape(known, current_texts()))
    else:
        show(known)
    return int(exit_code(known.reason_code))


def _as_known(error: Exception) -> AiflowError:
    """Give every error a reason code; one that aiflow did not foresee is its own defect."""
    if isinstance(error, AiflowError):
        return error
    if isinstance(error, click.ClickException):
        hint = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "aiflow"
        return BadInputError(detail=error.format_message(), hint=f"{hint} --help")
    if isinstance(error, OSError):
        return as_problem(error, error.filename or "")
    if os.environ.get("AIFLOW_DEBUG"):
        traceback.print_exception(error)
    return AiflowError(detail=f"{type(error).__name__}: {error}")


def show(error: AiflowError) -> None:
    """Write an error to a person: the code and title, what it means, what to do."""
    texts = current_texts()
    facts = error_facts(error, texts)
    message = texts.message(error.reason_code, facts)
    is_terminal = sys.stderr.isatty()
    code = click.style(error.reason_code, fg="red", bold=True) if is_terminal else error.reason_code
    lines = [f"{code}: {message.title}", *_indent(message.summary)]
    problem = facts.get("detail")
    if problem and str(problem) not in message.summary:
        lines += _indent(str(problem))
    lines += [f"  → {action}" for action in message.actions]
    if hint := error.context.get("hint"):
        lines.append(f"  → {hint}")
    click.echo("\n".join(lines), err=True)


def _indent(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
