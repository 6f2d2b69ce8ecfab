"""The manual page, drawn from the same commands and texts as `--help`: what `aiflow completion man` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.session import current_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def manual_page(cli: click.Group, groups: Mapping[str, tuple[str, ...]]) -> str:
    """Return the page as `man` reads it, in the chosen language."""
    texts = current_texts()
    root = click.Context(cli, info_name="aiflow", **cli.context_settings)
    lines = [
        '.TH AIFLOW 1 "" aiflow',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"aiflow \\- {_escaped(texts('cli.aiflow').rstrip('.。'))}",
    ]
    lines += [".SH SYNOPSIS", _escaped(_usage("aiflow", cli, root)), ".SH DESCRIPTION", _escaped(texts("cli.aiflow"))]
    lines += [".PP", _escaped(texts("cli.aiflow.more")), ".SH OPTIONS", *_options(cli, root)]
    for group, names in groups.items():
        lines.append(f'.SH "{_escaped(texts(f"cli.group.{group}").upper())}"')
        for name in names:
            command = cli.get_command(root, name)
            assert command is not None, name
            lines += _commands(f"aiflow {name}", command, root)
    return "\n".join(lines) + "\n"


def _commands(title: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    """Draw a command, and those below it."""
    ctx = click.Context(command, parent, title.rpartition(" ")[2], **command.context_settings)
    yield from _command(title, command, ctx)
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            assert below is not None, name
            yield from _commands(f"{title} {name}", below, ctx)


def _command(title: str, command: click.Command, ctx: click.Context) -> Iterator[str]:
    """Draw one command: usage, what it does, options, examples."""
    texts = current_texts()
    words = f"cli.{getattr(command, 'words', None) or command.name}"
    yield f'.SS "{_escaped(_usage(title, command, ctx))}"'
    for part in ("", ".more"):
        if texts.has(words + part):
            yield from ([".PP"] if part else [])
            yield _escaped(texts(words + part))
    yield from _options(command, ctx)
    if texts.has(f"{words}.examples"):
        yield from (".PP", ".nf", *map(_escaped, texts(f"{words}.examples").splitlines()), ".fi")


def _options(command: click.Command, ctx: click.Context) -> Iterator[str]:
    """Draw the options that have words of their own."""
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if record is not None:
            yield from (".TP", f"\\fB{_escaped(record[0])}\\fR", _escaped(record[1]))


def _usage(title: str, command: click.Command, ctx: click.Context) -> str:
    return " ".join([title, *command.collect_usage_pieces(ctx)])


def _escaped(text: str) -> str:
    """Let nothing in a text be a command to `man`; a quotation mark would end a heading."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in plain.splitlines())
