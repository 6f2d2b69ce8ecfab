"""The agents as a person sees them: a table, how to get one, and a call in progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.layout import GAP, display_width, pad, share_out, wrap
from aiflow.cli.terminal.render import clean, heading, is_terminal, paint, say, table, terminal_width, write_row
from aiflow.domain.agents.programs import KNOWN, AgentTrouble
from aiflow.usecases.shapes.agent_words import login_words, note_words, trouble_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiflow.domain.agents.programs import AgentProgram
    from aiflow.messages import Texts
    from aiflow.usecases.project.try_agent import Trial

NAMES = {"claude": "Claude Code", "codex": "Codex", "opencode": "opencode", "gemini": "Gemini CLI"}
GUTTER = "  │ "
# What the login keeps when the room is short; it wraps then.
LEAST_LOGIN = 12


def show_list(programs: Sequence[AgentProgram], texts: Texts, *, is_all: bool) -> None:
    """Write a row per agent, then what keeps those that roles use, or how to get one where there is none at all."""
    has_none = is_all and not any(program.known and program.is_installed for program in programs)
    rows = [[clean(cell) for cell in _row(program, texts)] for program in programs]
    headers = [texts(f"column.{name}") for name in ("agent", "program", "version", "login", "roles", "note")]
    if _fits(headers, rows):
        table(headers, rows, is_last_to_give=True)
    else:
        _show_stacked(headers, rows, are_installs_told=has_none)
    if has_none:
        click.echo()
        show_installs(texts)
        return
    for program in programs:
        if program.roles and program.trouble is not None:
            click.echo()
            show_trouble(program, texts)


def _fits(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether no cell is cut, and no word of a note is broken but for paths: commands are there to be copied."""
    if not is_terminal():
        return True
    widths = [max(map(display_width, column)) for column in zip(headers, *rows, strict=True)]
    words = (word for row in rows for word in row[-1].split() if not word.startswith("/"))
    longest = max(map(display_width, words), default=0)
    return sum(widths[:-1]) + GAP * (len(widths) - 1) + longest <= terminal_width()


def _show_stacked(headers: Sequence[str], rows: Sequence[Sequence[str]], *, are_installs_told: bool) -> None:
    """Write agents with their roles and notes on separate lines, which only the terminal itself breaks."""
    in_line = [row[:-2] for row in (headers, *rows)]
    widths = [max(map(display_width, column)) for column in zip(*in_line, strict=True)]
    widths = share_out(widths, terminal_width(), {len(widths) - 1: LEAST_LOGIN})
    write_row(in_line[0], widths, is_header=True)
    for (*_, roles, note), row in zip(rows, in_line[1:], strict=True):
        write_row(row, widths)
        if roles:
            say(roles, f"    {headers[-2]}: ")
        is_told = are_installs_told and any(known.install in note for known in KNOWN)
        if not is_told:
            click.echo(f"    {note}")


def _row(program: AgentProgram, texts: Texts) -> list[str]:
    roles = ", ".join(program.roles)
    said = login_words(program, texts), roles, note_words(program, texts)
    return [program.kind, program.program or "-", program.version or "-", *said]


def show_trouble(program: AgentProgram, texts: Texts) -> None:
    """Write why an agent that roles use cannot be used, and the command that fixes it."""
    assert program.trouble is not None
    say(trouble_words(program, texts), f"{paint(program.trouble.reason_code, 'red', is_bold=True)}: ")
    say(program.mending or texts("agents.set_argv"), "  → ")


def show_installs(texts: Texts) -> None:
    """Write how to get and log in each agent we know: what there is to see where none is installed."""
    say(texts("agents.none"))
    width = max(display_width(name) for name in NAMES.values())
    for known in KNOWN:
        prefix, both = f"  {pad(NAMES[known.name], width)}  ", f"{known.install}  &&  {known.log_in}"
        if is_terminal() and display_width(prefix + both) > terminal_width():
            say(f"{known.install}  &&", prefix)  # each command whole on a line of its own
            prefix, both = " " * len(prefix), known.log_in
        say(both, prefix)
    say(texts("agents.then"))


def following(program: AgentProgram, texts: Texts, *, is_quiet: bool) -> Callable[[bytes], None]:
    """Say who is being called, and give what shows the agent's words as they come."""
    if is_quiet:
        return lambda _data: None
    name = f"{program.kind} ({program.program})" if program.program not in ("", program.kind) else program.kind
    heading(texts("agents.calling", name=name))
    partial: list[bytes] = []

    def follow(data: bytes) -> None:
        *lines, rest = (b"".join(partial) + data).split(b"\n")
        partial[:] = [rest]
        for line in lines:
            for part in _broken(clean(line.decode("utf-8", "replace"))):
                click.echo(paint(GUTTER + part, "bright_black"))

    return follow


def _broken(line: str) -> list[str]:
    """Break a line of the agent's on a terminal, so that the gutter is before each part."""
    return wrap(line, max(20, terminal_width() - len(GUTTER))) if is_terminal() else [line]


def show_trial(trial: Trial, texts: Texts) -> None:
    """Write what came of a call: how long it took and what it cost, or why it did not work and how to fix it."""
    facts = {"seconds": f"{trial.seconds:.1f}", "tokens": f"{trial.usage.tokens:,}"}
    if trial.reason_code is None:
        cost = f", ${trial.usage.cost_usd:.4f}" if trial.usage.cost_usd else ""
        say(texts("agents.works", **facts) + cost, f"{paint('PASS', 'green', is_bold=True)}  ")
        return
    title = texts.message(trial.reason_code, {}).title
    say(f"{trial.reason_code}: {title}", f"{paint('FAIL', 'red', is_bold=True)}  ")
    # About a broken one, the call has shown more than is known without it.
    told = "" if trial.program.trouble is AgentTrouble.BROKEN else trouble_words(trial.program, texts)
    for line in (*told.splitlines(), *texts.say(trial.detail).splitlines()):
        say(line, "      ")
    if advice := _advice(trial, texts):
        say(advice, "      → ")


def _advice(trial: Trial, texts: Texts) -> str | None:
    """Return what helps against what came of a call."""
    program, is_auth = trial.program, trial.reason_code == "AGENT_AUTH_REQUIRED"
    if is_auth and program.missing_variable:
        return texts("agents.set_variable", variable=program.missing_variable)
    return program.mending or (program.known.log_in if program.known and is_auth else None)
