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
    from aiflow.adapters.secrets import Masker
    from aiflow.domain.issues.headers import RunHeader
    from aiflow.domain.issues.pulls import NoPull, PullDraft
    from aiflow.domain.issues.showing import ShownIssue
    from aiflow.domain.issues.view import ClosePull, OwnRun, Post
    from aiflow.domain.request import RequestId
    from aiflow.domain.runs.run import Run
    from aiflow.messages import Texts
    from aiflow.ports import RequestSource
    from aiflow.ports.issues import IssueHost
    from aiflow.ports.tasks import TaskQueue
    from aiflow.settings import Settings
    from aiflow.usecases.issues.check_issues import IssueLook


def masker_for(settings: Settings, environ: Mapping[str, str] = os.environ) -> Masker:
    """Give what masks secrets in all that is written: GitHub's too, whatever their variables are called."""
    from aiflow.adapters.secrets import Masker
    from aiflow.settings.secret_variables import github_secrets

    return Masker(environ, github_secrets(settings))


def issue_look(root: str, settings: Settings) -> IssueLook | None:
    """Give the doctor's look at GitHub; none where no repository is set."""
    return IssueRoom(root, settings).look if settings.text("github.repo") else None


class IssueRoom:
    """Everything about the issues of one checkout; each part is made when it is needed."""

    def __init__(self, root: str, settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
        self._root, self._settings, self._environ = root, settings, environ
        self._time = system_time()

    @cached_property
    def source(self) -> RequestSource:
        """The issues as requests; from now on no program of this process reaches the secrets of GitHub (ISS-11)."""
        from aiflow.adapters.github_issues.source import GitHubIssues
        from aiflow.adapters.processes.hidden import hide_variables
        from aiflow.settings.secret_variables import github_secrets

        hide_variables(github_secrets(self._settings))

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
        pulls, closes = settings.flag("github.pull_request"), settings.flag("github.accept_closes")
        rules = IssueRules(settings.integer("limits.issue_retries"), ttl, is_started=is_started)
        rules = rules._replace(opens_pulls=pulls, accept_closes=closes)
        runners = (*filter(None, (settings.text("github.service_account"),)), *settings.texts("github.runners"))
        terms = IssueTerms(rules, runners, settings.texts("github.bots"), self.has_running_task)
        repo = settings.text("github.repo")
        return IssueBook(repo, self.mirror, self._time, self._own_runs, terms)

    @cached_property
    def work(self) -> IssueWork:
        """What writes to them."""
        from pathlib import Path

        from aiflow.adapters.github_issues.at_work import IssueWork
        from aiflow.adapters.github_issues.here import Here
        from aiflow.adapters.journal import ActivityLog
        from aiflow.adapters.locks.control_files import ControlFiles
        from aiflow.usecases.issues.labels import make_labels

        cancel = ControlFiles(self._root).ask_cancel
        journal = ActivityLog(Path(self._root))
        here = Here(journal, platform.node(), cancel, self.run, lambda host: make_labels(host, self.texts))
        return IssueWork(self.book, self.host, IssueTexts(self), here)

    @cached_property
    def look(self) -> IssueLook:
        """How the doctor looks at them."""
        from aiflow.adapters.github_issues.connect import token_kind
        from aiflow.adapters.github_issues.own_labels import are_labels_refused
        from aiflow.domain.issues.headers import header_writers
        from aiflow.usecases.issues.check_issues import IssueLook

        settings, environ = self._settings, self._environ
        return IssueLook(
            lambda: self._reader,
            self._time.now,
            token_kind(settings, environ),
            lambda: next(iter(self.mirror.numbers()), None),
            has_secret=bool(environ.get(settings.text("github.webhook_secret_env"))),
            are_labels_refused=lambda: are_labels_refused(self.mirror),
            headers=lambda since: header_writers(self.mirror.stories(), since),
        )

    def host(self) -> IssueHost:
        """Return the client; a missing token is reported here."""
        return self._client

    @cached_property
    def _client(self) -> IssueHost:
        return self._connect(is_to_write=True)

    @cached_property
    def _reader(self) -> IssueHost:
        return self._connect(is_to_write=False)

    def _connect(self, *, is_to_write: bool) -> IssueHost:
        """Give a client that keeps one pace with this user's other processes; the doctor's writes nothing for it."""
        from pathlib import Path

        from aiflow.adapters.github_issues.connect import connect, shared_pace

        made = connect(Path(self._root), self._settings, self._environ, self._time)
        made.share(shared_pace(self._settings, self._environ, self._time, is_to_write=is_to_write))
        return made

    @cached_property
    def texts(self) -> Texts:
        """The words of comments, in the language of the settings."""
        from aiflow.messages import Texts, choose_language

        return Texts(choose_language(None, self._environ, self._settings.text("language") or None))

    def shown(self, number: int) -> ShownIssue:
        """Return an issue with its story, as it was last seen; no call is made."""
        from aiflow.domain.issue_ways import request_id_of
        from aiflow.domain.issues.showing import show_issue
        from aiflow.errors import NotFoundError

        story = self.mirror.story(number)
        if story is None:
            raise NotFoundError(request_id=request_id_of(number))
        return show_issue(
            self.book.view(story), self.book.repo, {each.issue.number: each.issue for each in self.mirror.stories()}
        )

    def run(self, request_id: str, run_id: str) -> Run | None:
        """Return a run of this checkout; None if it has none of that id."""
        from aiflow.adapters.git.run_base import with_base
        from aiflow.adapters.machine import LocalWorkshop
        from aiflow.adapters.processes.launch import GuardedProcesses
        from aiflow.adapters.run_folders.run_store import RunFolders
        from aiflow.wiring import now

        processes = GuardedProcesses(f"{self._root}/.aiflow/guards")
        place = LocalWorkshop(self._root, self._environ, self._settings, processes).worktree_path
        base = partial(with_base, self._root, self._settings.text("base_branch"))
        masker = masker_for(self._settings, self._environ)
        return RunFolders(self._root, masker, now, place, base).load(request_id, run_id)

    def has_running_task(self, request_id: RequestId, run_id: str) -> bool:
        """Return whether a run's task is RUNNING in a shared store; without one there is nothing to ask."""
        from aiflow.settings.table import LOCAL_STORE

        if self._settings.text("queue.store") == LOCAL_STORE:
            return False
        from aiflow.domain.lifecycle import TaskStatus

        task = self._queue.live_of(request_id)
        return task is not None and task.run_id == run_id and task.status is TaskStatus.RUNNING

    @cached_property
    def _queue(self) -> TaskQueue:
        """The tasks of this project's namespace in the shared store; nothing is made or started there."""
        from aiflow.wiring import project_at
        from aiflow.wiring.stores import namespace_of, open_store

        store = open_store(self._settings, self._environ, lambda _step, _fraction: None, is_to_write=False)
        return store.queue(namespace_of(project_at(self._root), self._settings))

    @cached_property
    def _runs(self) -> RunFiles:
        from aiflow.adapters.run_folders.run_files import RunFiles

        return RunFiles(self._root)

    def _own_runs(self, request_id: RequestId) -> tuple[OwnRun, ...]:
        """Return the runs of an issue in this checkout, oldest first."""
        from aiflow.adapters.locks.control_files import ControlFiles
        from aiflow.adapters.locks.lock_files import LockFiles
        from aiflow.domain.issues.view import OwnRun
        from aiflow.domain.lifecycle import RunOutcome, outcome_of

        if not os.path.isdir(f"{self._root}/runs/{request_id}"):  # nearly all of a repository's issues
            return ()
        pages, _ = self._runs.page(request_id)
        locks, _ = LockFiles(self._root).held()
        lock, control = locks.get(request_id), ControlFiles(self._root)
        working = lock.run_id if lock is not None else None
        made = [
            OwnRun(
                run.run_id,
                outcome_of(run.state, run.reason_code, is_accepted=run.record is not None and run.record.is_accepted),
                run.why,
                attempt,
                is_working=run.run_id == working,
                is_stopping=control.is_cancelled(run.run_id),
                pull_url=run.record.pull_url if run.record is not None else None,
            )
            for attempt, (_, run) in enumerate(reversed(pages), 1)
        ]
        drafts = self._runs.drafts_of(request_id)
        unmade = [OwnRun(each, RunOutcome.ACTIVE, is_working=each == working, is_made=False) for each in drafts]
        return (*made, *unmade)


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
        from aiflow.domain.issue_ways import request_id_of
        from aiflow.usecases.issues.comments import comment_of

        run_id = post.facts.get("run_id")
        run = self._room.run(request_id_of(number), run_id) if run_id else None
        return comment_of(post, run, self._room.texts)

    def answer(self, text: str) -> str:
        """Write what a person answered elsewhere."""
        from aiflow.usecases.issues.comments import answer_comment

        return answer_comment(text, self._room.texts)

    def pull(self, number: int, run_id: str) -> PullDraft | NoPull:
        """Write the pull request of a run, or say why it has none."""
        from aiflow.domain.issue_ways import request_id_of
        from aiflow.domain.issues.pulls import NoPull
        from aiflow.usecases.issues.pulls import pull_of

        run = self._room.run(request_id_of(number), run_id)
        return pull_of(number, run, self._room.texts) if run is not None else NoPull("RUN_NOT_FOUND")

    def pull_closed(self, number: int, deed: ClosePull) -> str:
        """Write why a pull request is closed."""
        from aiflow.domain.issue_ways import request_id_of
        from aiflow.usecases.issues.pulls import closing_comment

        return closing_comment(deed, self._room.run(request_id_of(number), deed.run_id), self._room.texts)
