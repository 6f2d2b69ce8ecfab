"""What every command shares: the project, the language, the settings, and where output goes."""

from __future__ import annotations

import contextlib
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from aiflow.errors import AiflowError, SettingsError
from aiflow.messages import Texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import click

    from aiflow.domain.activity import Activity
    from aiflow.domain.backlog.selection import Backlog, Barrier
    from aiflow.domain.request import Request, RequestId, Value
    from aiflow.domain.run_summary import RunSummary
    from aiflow.domain.runs.run import Run
    from aiflow.ports import Journal, Locks, RequestSource
    from aiflow.settings import Settings
    from aiflow.usecases.engine import Engine
    from aiflow.wiring import Project
    from aiflow.wiring.issues import IssueRoom

_texts = Texts("en")


def use_texts(texts: Texts) -> None:
    """Choose the language for this process."""
    globals()["_texts"] = texts


def current_texts() -> Texts:
    """Return the words in the chosen language."""
    return _texts


_repeated: list[str] = []


def repeat_settings(flags: Sequence[str]) -> None:
    """Choose the settings of `-c` that this process has to repeat in its advice."""
    _repeated[:] = flags


def settings_to_repeat() -> tuple[str, ...]:
    """Return what `-c` said, where it counts for what is advised, too."""
    return tuple(_repeated)


class View(Protocol):
    """A view that shows runs as they progress."""

    def observe(self, run: Run) -> None:
        """Show what is new in a run."""

    def follow(self, data: bytes) -> None:
        """Show the agent's output as it comes."""


class CliSession:
    """One call of the program."""

    def __init__(
        self, start: str, flags: tuple[str, ...], texts: Texts, more_sources: Sequence[RequestSource] = ()
    ) -> None:
        self.start = start
        self.more_sources = more_sources
        self.flags = flags
        self.texts = texts
        self.is_lenient = False

    @cached_property
    def project(self) -> Project:
        """The project at or above the folder we were called in; its settings must be right."""
        from aiflow.wiring import project_at

        folder = self.find_requests_dir() if self.is_lenient else self.settings.requests_dir
        more = (*self.more_sources, *((self.issues.source,) if self.issues is not None else ()))
        return project_at(self.root, more, folder, self._request_written)

    @cached_property
    def issues(self) -> IssueRoom | None:
        """Everything about the issues of the repository that the settings name; None if they name none."""
        if not self.settings.text("github.repo"):
            return None
        from aiflow.wiring.issues import IssueRoom

        return IssueRoom(self.root, self.settings)

    @cached_property
    def root(self) -> str:
        """The project's root."""
        from aiflow.wiring import find_root

        return find_root(self.start)

    @cached_property
    def settings(self) -> Settings:
        """The settings of the project; a mistake there does not keep a person from a run that is at work."""
        try:
            return self.check_settings(self.root)
        except SettingsError:
            if not self.is_lenient:
                raise
            import click

            from aiflow.settings import settle

            click.echo(self.texts("settings.mistaken"), err=True)
            return settle({})

    def find_requests_dir(self) -> str:
        """Return the folder of the request files; the usual one where the settings have a mistake."""
        from aiflow.settings import settle

        try:
            return self.check_settings(self.root).requests_dir
        except AiflowError:
            return settle({}).requests_dir

    def check_settings(self, root: str) -> Settings:
        """Read the settings, or stop with file, key and line."""
        from aiflow.wiring import read_settings

        return read_settings(root, self.flags)

    def _request_written(self, path: str, request_id: str, changed: Mapping[str, tuple[Value, Value]] | None) -> None:
        """Commit a request file that aiflow has just changed or made, where the settings say so (REQ-8)."""
        if not self.settings.flag("commit_requests"):
            return
        from aiflow.domain.backlog.metadata import commit_message
        from aiflow.wiring import commit_request

        left = commit_request(self.project.root, self.settings, path, commit_message(request_id, changed))
        if left is not None:
            _warn(self.texts("commit_requests.left", path=path, problem=self.texts.say(left)))

    @property
    def journal(self) -> Journal:
        """The journal; an entry that could not be recorded is reported, and does not undo what was done."""
        return _TellingJournal(self.project.journal, self.texts)

    def engine(self, interrupted: Callable[[], bool] = lambda: False, view: View | None = None) -> Engine:
        """The run engine of this checkout, which reports to a view what happens."""
        from dataclasses import replace

        from aiflow.usecases.engine import Voice
        from aiflow.wiring import build_engine

        voice = Voice(self.texts, interrupted, warn=_warn)
        if view is not None:
            voice = replace(voice, observe=view.observe, follow=view.follow)
        return build_engine(self.project, self.settings, self.journal, voice)

    def missing_merges(self, request: Request) -> tuple[Barrier, ...]:
        """Name the done dependencies whose merge is not in the base branch of what runs next."""
        from aiflow.usecases.backlog.missing_merges import base_now, missing_merges

        if not request.depends_on:  # most have none, and then git is not asked
            return ()
        engine = self.engine()
        return missing_merges(engine, request, base_now(engine, self.project.auto_records))

    def continued_first(self, backlog: Backlog) -> tuple[Request, ...]:
        """Name the requests whose runs the next auto-run continues before it selects anything."""
        from aiflow.usecases.auto.recovery import continued_first

        return continued_first(self.engine(), backlog, self.project.auto_records.load())

    def is_merged(self, request_id: RequestId, run: RunSummary) -> bool:
        """Return whether the base has a run's merge though no record says so: an acceptance was killed in between."""
        if run.merging_as is None:  # git is asked only where an acceptance came that far
            return False
        from aiflow.usecases.runs.merge import is_in_base

        engine = self.engine()
        found = engine.runs.load(request_id, run.run_id)
        return found is not None and is_in_base(engine, found)

    def locks(self) -> Locks:
        """The locks of this checkout, to be judged."""
        return self.engine().locks

    @staticmethod
    def now() -> datetime:
        """The time, with the user's own offset."""
        return datetime.now().astimezone()


def session_of(ctx: click.Context) -> CliSession:
    """Return the session of a call; where only words are completed, no command has made one yet."""
    if isinstance(ctx.obj, CliSession):
        return ctx.obj
    return CliSession(ctx.find_root().params.get("project") or ".", (), Texts("en"), ctx.obj or ())


def _warn(text: str) -> None:
    """Report what failed beside the work itself; a closed output is not a problem."""
    from aiflow.cli.terminal.render import say

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
            import click

            problem = f"{error.reason_code}: {error.context.get('path', '')}: {error.context.get('problem', '')}"
            click.echo(self._texts("journal.failed", problem=problem), err=True)
