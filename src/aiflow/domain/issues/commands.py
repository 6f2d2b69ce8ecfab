"""Slash commands in comments (ISS-6, ISS-8): `/retry`, `/cancel`, `/status` and `/help`, each on a line of its own.

Code, quotes, lists and HTML hold no commands, and neither does a comment of aiflow's.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from aiflow.domain.issues.marks import is_marked
from aiflow.domain.issues.prose import lines_with, readable


class CommandName(StrEnum):
    """What a person can ask for in a comment."""

    RETRY = "retry"
    CANCEL = "cancel"
    STATUS = "status"
    HELP = "help"


class SlashCommand(NamedTuple):
    """One command; `text` is what the person wrote after it, up to the next command."""

    name: CommandName
    text: str = ""


_COMMAND = re.compile(rf"^ {{0,3}}(?P<it>/(?P<name>{'|'.join(CommandName)})(?![^\s]))", re.MULTILINE | re.IGNORECASE)


def find_commands(body: str) -> tuple[SlashCommand, ...]:
    """Read the commands of a comment, in their order."""
    if "/" not in body or is_marked(body):
        return ()
    text = readable(body)
    found = list(lines_with(_COMMAND, text))
    ends = (*(match.start() for match in found[1:]), len(text))
    return tuple(
        SlashCommand(CommandName(match["name"].lower()), text[match.end() : end].strip())
        for match, end in zip(found, ends, strict=False)
    )


def without_commands(text: str) -> str:
    """Keep words that are quoted in a command of ours from being commands themselves."""
    return _COMMAND.sub(lambda match: match[0].replace("/", "\\/", 1), text)


def words_of(body: str) -> str:
    """Return what a person says in a comment, without the commands in it."""
    text = readable(body)
    for match in reversed(list(lines_with(_COMMAND, text))):
        text = text[: match.start()] + text[match.end() :].lstrip(" \t")
    return text.strip()
