"""What every command shares: the project, the language, the settings, and where output goes."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import click

from aiflow.errors import AiflowError, SettingsError
from aiflow.messages import Texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.activity import Activity
    from aiflow.domain.run import Run
    from aiflow.ports import Journal
    from aiflow.settings import Settings
    from aiflow.usecases.engine import Engine
    from aiflow.wiring import Project

_texts = Texts("en")


def use_texts(texts: Texts) -> None:
    """Choose the language for this process."""
    globals()["_texts"] = texts


def current_texts() -> Texts:
    """Return the words in the chosen language."""
    return _texts


class View(Protocol):
    """Whoever shows runs as they go on."""

    def observe(self, run: Run) -> None:
        """Show what is new in a run."""

    def follow(self, data: bytes) -> None:
        """Show the agent's output as it comes."""


class Session:
    """One call of the program."""

    def __init__(self, start: str, flags: tuple[str, ...], texts: Texts) -> None:
        self.start = start
        self.flags = flags
        self.texts = texts
        self.is_lenient = False

    @cached_property
    def project(self) -> Project:
        """The project at or above the folder we were called in; its settings must be right."""
        from aiflow.wiring import open_project

        project = open_project(self.start)
        if not self.is_lenient:
            self.check_settings(project.root)
        return project

    @cached_property
    def settings(self) -> Settings:
        """The settings of the project; a mistake there does not keep a person from a run that is at work."""
        try:
            return self.check_settings(self.project.root)
        except SettingsError:
            if not self.is_lenient:
                raise
            from aiflow.settings import settle

            click.echo(self.texts("settings.mistaken"), err=True)
            return settle({})

    def check_settings(self, root: str) -> Settings:
        """Read the settings, or stop with file, key and line."""
        from aiflow.wiring import read_settings

        return read_settings(root, self.flags)

    @property
    def journal(self) -> Journal:
        """The journal; what could not be recorded is said, and does not undo what was done."""
        return _TellingJournal(self.project.journal, self.texts)

    def engine(self, interrupted: Callable[[], bool] = lambda: False, view: View | None = None) -> Engine:
        """The run engine of this checkout, which tells a view what happens."""
        from aiflow.wiring import Voice, build_engine

        voice = Voice(self.texts, interrupted, warn=_warn)
        if view is not None:
            voice = voice._replace(observe=view.observe, follow=view.follow)
        return build_engine(self.project, self.settings, self.journal, voice)

    @staticmethod
    def now() -> datetime:
        """The time, with the user's own offset."""
        return datetime.now().astimezone()


def _warn(text: str) -> None:
    """Say what did not work beside the work itself; that nobody reads it is no trouble."""
    from aiflow.cli.render import say

    with contextlib.suppress(OSError):
        say(text, err=True)


class _TellingJournal:
    """A journal whose failure is a warning: the change it should have recorded is on disk already."""

    def __init__(self, journal: Journal, texts: Texts) -> None:
        self._journal = journal
        self._texts = texts

    def append(self, activity: Activity) -> None:
        """Add one entry, or say why not."""
        try:
            self._journal.append(activity)
        except AiflowError as error:
            problem = f"{error.reason_code}: {error.context.get('path', '')}: {error.context.get('problem', '')}"
            click.echo(self._texts("journal.failed", problem=problem), err=True)


# What commands a terminal, or what nobody would see in the output: JSON has another way to write it.
_UNSEEN = (
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def print_json(data: Any, *, is_event: bool = False) -> None:
    """Print one JSON document: indented for a person, on one line for a program; one of many events always so."""
    indent = 2 if sys.stdout.isatty() and not is_event else None
    text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False)
    if not text.isprintable():
        text = re.sub(_UNSEEN, lambda unseen: json.dumps(unseen[0])[1:-1], text)
    click.echo(text.encode("utf-8", "backslashreplace"))
