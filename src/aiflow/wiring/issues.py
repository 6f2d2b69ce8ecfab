"""Putting issues together (ISS): the mirror, client and words of the repository that the settings name."""

from __future__ import annotations

import os
import platform
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING

from aiflow.wiring import system_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.adapters.github_issues.at_work import IssueWork
    from aiflow.adapters.github_issues.book import IssueBook
    from aiflow.adapters.github_issues.mirror import IssueMirror
    from aiflow.adapters.run_folders.run_files import RunFiles
    from aiflow.domain.issues.headers import RunHeader
    from aiflow.domain.issues.view import OwnRun, Post
    from aiflow.domain.request import RequestId
    from aiflow.domain.runs.run import Run
    from aiflow.messages import Texts
    from aiflow.ports import RequestSource
    from aiflow.ports.issues import IssueHost
    from aiflow.settings import Settings


def issue_sources(root: str, settings: Settings) -> tuple[RequestSource, ...]:
    """Give the issues of the repository that the settings name; nothing without one."""
    return (IssueRoom(root, settings).source,) if settings.text("github.repo") else ()


class IssueRoom:
    """Everything about the issues of one checkout; each part is made when it is needed."""

    def __init__(self, root: str, settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
        self._root, self._settings, self._environ = root, settings, environ
        self._time = system_time()

    @cached_property
    def source(self) -> RequestSource:
        """The issues as requests."""
        from aiflow.adapters.github_issues.source import GitHubIssues

        return GitHubIssues(self.book, self.work, with_strangers=self._settings.flag("github.untrusted_comments"))

    @cached_property
    def mirror(self) -> IssueMirror:
        """The issues as they were last seen."""
        from pathlib import Path

        from aiflow.adapters.github_issues.mirror import IssueMirror

        return IssueMirror(Path(self._root), self._settings.text("github.repo"))

    @cached_property
    def book(self) -> IssueBook:
        """What is known of them."""
        from aiflow.adapters.github_issues.book import IssueBook, IssueTerms
        from aiflow.domain.issues.view import IssueRules

        settings = self._settings
        ttl = timedelta(seconds=settings.number("locks.ttl_seconds"))
        is_started = settings.text("github.start") != "off"
        rules = IssueRules(settings.integer("limits.issue_retries"), ttl, is_started=is_started)
        runners = (*filter(None, (settings.text("github.service_account"),)), *settings.texts("github.runners"))
        terms = IssueTerms(rules, runners, settings.texts("github.bots"))
        repo = settings.text("github.repo")
        return IssueBook(repo, self.mirror, self._time, self._own_runs, terms)

    @cached_property
    def work(self) -> IssueWork:
        """What writes to them."""
        from pathlib import Path

        from aiflow.adapters.github_issues.at_work import Here, IssueWork
        from aiflow.adapters.journal import ActivityLog
        from aiflow.adapters.locks.control_files import ControlFiles

        here = Here(ActivityLog(Path(self._root)), platform.node(), ControlFiles(self._root).ask_cancel)
        return IssueWork(self.book, self.host, IssueTexts(self), here)

    def host(self) -> IssueHost:
        """Give the client; who has no token is told so here."""
        return self._client

    @cached_property
    def _client(self) -> IssueHost:
        from pathlib import Path

        from aiflow.adapters.github_issues.connect import connect

        return connect(Path(self._root), self._settings, self._environ, self._time)

    @cached_property
    def texts(self) -> Texts:
        """The words of comments, in the language of the settings."""
        from aiflow.messages import Texts, choose_language

        return Texts(choose_language(None, self._environ, self._settings.text("language") or None))

    def run(self, request_id: str, run_id: str) -> Run | None:
        """Return a run of this checkout; None if it has none of that id."""
        from aiflow.adapters.git.run_base import with_base
        from aiflow.adapters.machine import LocalWorkshop
        from aiflow.adapters.processes.launch import GuardedProcesses
        from aiflow.adapters.run_folders.run_store import RunFolders
        from aiflow.adapters.secrets import Masker
        from aiflow.wiring import now

        processes = GuardedProcesses(f"{self._root}/.aiflow/guards")
        place = LocalWorkshop(self._root, self._environ, self._settings, processes).worktree_path
        base = partial(with_base, self._root, self._settings.text("base_branch"))
        return RunFolders(self._root, Masker(self._environ), now, place, base).load(request_id, run_id)

    @cached_property
    def _runs(self) -> RunFiles:
        from aiflow.adapters.run_folders.run_files import RunFiles

        return RunFiles(self._root)

    def _own_runs(self, request_id: RequestId) -> tuple[OwnRun, ...]:
        """Return the runs of an issue in this checkout, oldest first."""
        from aiflow.adapters.locks.control_files import ControlFiles
        from aiflow.adapters.locks.lock_files import LockFiles
        from aiflow.domain.issues.view import OwnRun
        from aiflow.domain.lifecycle import outcome_of

        pages, _ = self._runs.page(request_id)
        found = [summary for _, summary in reversed(pages)]
        if not found:
            return ()
        locks, _ = LockFiles(self._root).held()
        lock, control = locks.get(request_id), ControlFiles(self._root)
        return tuple(
            OwnRun(
                run.run_id,
                outcome_of(run.state, run.reason_code, is_accepted=run.record is not None and run.record.is_accepted),
                run.why,
                attempt,
                is_working=lock is not None and lock.run_id == run.run_id,
                is_stopping=control.is_cancelled(run.run_id),
            )
            for attempt, run in enumerate(found, 1)
        )


class IssueTexts:
    """The words of comments."""

    def __init__(self, room: IssueRoom) -> None:
        self._room = room

    def header(self, header: RunHeader) -> str:
        """Write a Run Header."""
        from aiflow.usecases.issues.comments import header_comment

        return header_comment(header, self._room.texts)

    def progress(self, run: Run) -> str:
        """Write how a run stands."""
        from aiflow.usecases.issues.comments import progress_comment

        return progress_comment(run, self._room.texts)

    def comment(self, number: int, post: Post) -> str:
        """Write any other comment."""
        from aiflow.domain.issues.requests import request_id_of
        from aiflow.usecases.issues.comments import comment_of

        run_id = post.facts.get("run_id")
        run = self._room.run(request_id_of(number), run_id) if run_id else None
        return comment_of(post, run, self._room.texts)

    def answer(self, text: str) -> str:
        """Write what a person answered elsewhere."""
        from aiflow.usecases.issues.comments import answer_comment

        return answer_comment(text, self._room.texts)
