"""What to do next as it is typed in a terminal: one table, from the kind of an action to the words of its command line.

A command line is one way to say a `NextAction`. It is here and not with the terminal because runs write it down for
people too: in `errors.json`, in `report.md`, in notes.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from aiflow.domain.next_action import ABOUT_SOMETHING, NOT_TYPED, SETTING, ActionKind, NextAction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiflow.messages import Texts

PROGRAM = "aiflow"
# What stands for an id that is not known.
ANY_ID = "<ID>"

_WORDS: Mapping[ActionKind, tuple[str, ...]] = {kind: (kind.value,) for kind in ActionKind if kind not in NOT_TYPED} | {
    ActionKind.RETRY_STEP: ("retry-step",),
    ActionKind.SEND_BACK: ("send-back",),
    ActionKind.ANSWER: ("resume",),
    ActionKind.UPDATE: ("resume",),
    ActionKind.QUEUE_ADD: ("queue", "add"),
    ActionKind.QUEUE_LIST: ("queue", "list"),
    ActionKind.QUEUE_SHOW: ("queue", "show"),
    ActionKind.QUEUE_CANCEL: ("queue", "cancel"),
    ActionKind.SERVICE_INSTALL: ("service", "install"),
    ActionKind.SERVICE_STATUS: ("service", "status"),
    ActionKind.STORE_START: ("queue", "store", "start"),
    ActionKind.STORE_STATUS: ("queue", "store", "status"),
    ActionKind.STORE_ROTATE_KEY: ("queue", "store", "rotate-key"),
    ActionKind.STORE_LOGS: ("queue", "store", "logs"),
    ActionKind.ISSUES_SYNC: ("issues", "sync"),
    ActionKind.ISSUES_SHOW: ("issues", "show"),
    ActionKind.ISSUES_LABELS: ("issues", "labels"),
    ActionKind.ISSUES_DOCTOR: ("issues", "doctor"),
}
# Options that a kind always has.
_ALWAYS: Mapping[ActionKind, tuple[str, ...]] = {ActionKind.UPDATE: ("--update",)}
_OPTIONS: Mapping[str, str] = {
    "answer": "--answer",
    "message": "-m",
    "prompt": "--prompt",
    "namespace": "--namespace",
    "keep_changes": "--keep-changes",
    "force": "--force",
    "no_baseline": "--no-baseline",
    "full": "--full",
    "all": "--all",
    "found": "--found",
    "check": "--check",
    "once": "--once",
    "help": "--help",
    "port": "--port",
    "continue": "--continue",
    "print": "--print",
    "requests_dir": "--requests-dir",
    "break": "break",
}
# Options that are written as their value alone.
_PLAIN = frozenset({"step_id", "key", "folder"})
# Options whose value is what a person has to say, be it one word.
_PROSE = frozenset({"answer", "message", "prompt"})

_SAFE = re.compile(r"[\w@%+=:,./-]+|<\w+>")
_UNSAFE_IN_DOUBLE_QUOTES = re.compile(r"[\"$`\\!]")


def command_line(action: NextAction) -> str:
    """Return an action as a person types it; what is done by hand on an issue is worded in English (`said`)."""
    if action.kind is ActionKind.SHELL:
        return dict(action.options)["line"]
    if action.kind is ActionKind.AT_GITHUB:
        from aiflow.messages.details import ENGLISH

        return said(action, ENGLISH)
    return " ".join(_typed(action))


def said(action: NextAction, texts: Texts) -> str:
    """Return an action as a person reads it: its command, or what to do by hand on an issue, and where."""
    if action.kind is not ActionKind.AT_GITHUB:
        return command_line(action)
    facts = dict(action.options)
    if "words" in facts:  # said already, in the language of a message
        return facts["words"]
    return texts(f"at_github.{facts['do']}", **{**facts, "url": facts["url"] or action.request_id})


def as_plain(value: object) -> object:
    """Return a fact with every action in it written as its command line."""
    if isinstance(value, NextAction):
        return command_line(value)
    return [as_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _typed(action: NextAction) -> Iterator[str]:
    """Yield the words of a command line, each as a shell needs it."""
    yield PROGRAM
    for name, value in action.options:
        if name == SETTING:  # for this one call, said before the command
            yield from ("-c", _quoted(value))
    yield from _WORDS[action.kind]
    if action.target is not None or action.kind in ABOUT_SOMETHING:
        yield _quoted(action.target or ANY_ID)
    yield from _ALWAYS.get(action.kind, ())
    for name, value in action.options:
        if action.kind is ActionKind.SET:
            yield _quoted(f"{name}={value}")
        elif name in _PLAIN:
            yield _quoted(value)
        elif name != SETTING:
            yield _OPTIONS[name]
            yield from (_quoted(value, is_prose=name in _PROSE),) if value else ()


def _quoted(word: str, *, is_prose: bool = False) -> str:
    """Quote what a shell would take apart, and what people write; a name in angle brackets is not typed as it is."""
    if _SAFE.fullmatch(word) and not is_prose:
        return word
    return shlex.quote(word) if _UNSAFE_IN_DOUBLE_QUOTES.search(word) else f'"{word}"'
