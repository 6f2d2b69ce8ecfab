"""A checkout in memory whose requests are the issues of a hub: the whole engine, on one played time."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from aiflow.adapters.github_issues.at_work import IssueWork
from aiflow.adapters.github_issues.book import IssueBook, IssueTerms, no_task
from aiflow.adapters.github_issues.here import Here
from aiflow.adapters.github_issues.mirror import IssueMirror
from aiflow.adapters.github_issues.source import GitHubIssues
from aiflow.adapters.github_issues.stored import read_story, write_story
from aiflow.adapters.memory.control import MemoryControl
from aiflow.adapters.memory.run_store import MemoryRunStore
from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.issue_ways import request_id_of
from aiflow.domain.issues.issue import Story
from aiflow.domain.issues.marks import CommentMark, MarkKind, find_mark
from aiflow.domain.issues.view import IssueRules, OwnRun, RunDeed, TakeUp
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.runs.run import Run
from aiflow.errors import AiflowError
from aiflow.messages import Texts
from aiflow.settings import Source, settle
from aiflow.usecases.engine import Engine
from aiflow.usecases.issues.look_after import look_after_issues
from aiflow.usecases.read_backlog import BacklogSources
from aiflow.usecases.runs.start import start_run
from aiflow.wiring.issues import IssueRoom, IssueTexts
from github.hub import CommentRow
from github.scene import RUNNER, Scene
from github.shop import ORIGIN, HubRemote
from memory_engine import MemoryCheckout, MemoryProcess, obliging

Script = Callable[..., AgentReply]


class Killed(BaseException):
    """The process is dead: nothing catches this."""


class MemoryMirror(IssueMirror):
    """The mirror without a disk: what is kept is kept as bytes, and nobody is alone twice."""

    def __init__(self, repo: str) -> None:
        super().__init__(Path("/nowhere"), repo)
        self._kept: dict[int, bytes] = {}
        self._notes: dict[str, str] = {}
        self._busy: set[int] = set()

    def numbers(self) -> list[int]:
        return sorted(self._kept)

    def story(self, number: int) -> Story | None:
        return read_story(self._kept[number]) if number in self._kept else None

    def keep(self, story: Story) -> bool:
        before, written = self._kept.get(story.issue.number), write_story(story)
        self._kept[story.issue.number] = written
        return before != written

    def forget(self, number: int) -> None:
        self._kept.pop(number, None)

    def note(self, name: str) -> dict[str, object]:
        noted: dict[str, object] = json.loads(self._notes.get(name, "{}"))
        return noted

    def put_note(self, name: str, facts: Mapping[str, object]) -> None:
        self._notes[name] = json.dumps(facts)

    @contextlib.contextmanager
    def alone(self, number: int) -> Iterator[None]:
        assert number not in self._busy, "a thread that waits for itself"
        self._busy.add(number)
        try:
            yield
        finally:
            self._busy.discard(number)


class Care:
    """Looks after issues, and remembers which runs are to be taken up."""

    def __init__(self, work: IssueWork) -> None:
        self.sync, self.pending, self._work = work.sync, work.pending, work
        self.looked_at, self.wish = work.looked_at, work.wish
        self.interrupted: list[RequestId] = []

    def tend(self, number: int) -> tuple[RunDeed, ...]:
        deeds = self._work.tend(number)
        self.interrupted += [request_id_of(number) for deed in deeds if isinstance(deed, TakeUp)]
        return deeds


class Yard:
    """One checkout that works on the issues of a scene; `restart` is a new process in it."""

    def __init__(
        self,
        scene: Scene,
        name: str = "here",
        *,
        rules: IssueRules | None = None,
        settings: dict[str, bool | str] | None = None,
    ) -> None:
        self.scene, self.name = scene, name
        self.checkout = MemoryCheckout(name, settle({Source.FILE: settings or {}}))
        flag = self.checkout.settings.flag
        wanted = IssueRules(opens_pulls=flag("github.pull_request"), accept_closes=flag("github.accept_closes"))
        self.rules, self.remote = rules or wanted, HubRemote(scene.hub)
        self.mirror = MemoryMirror(scene.hub.repo)
        self.calls: list[AgentCall] = []
        self.script: Script = obliging(self.checkout)
        self.before_call: Callable[[AgentCall], None] = lambda _call: None
        self.has_task: Callable[[RequestId, str], bool] = no_task
        self.pid = 0
        self.restart()

    def restart(self) -> None:
        """Begin a new process: what the one before had in memory, and beside its work, is gone."""
        self.pid += 1
        scene, time = self.scene, self.scene.time
        if isinstance(time, PlayedTime):
            time.besides.clear()
        self.client = scene.client(RUNNER)
        self.runs = MemoryRunStore(self.checkout.runs, self.checkout.workshop.worktree_path)
        terms = IssueTerms(self.rules, runners=(RUNNER,), has_running_task=self._ask_store)
        self.book = IssueBook(scene.hub.repo, self.mirror, time, self.own_runs, terms)
        process = MemoryProcess(self.checkout, self.pid, time, self._agent)
        control = MemoryControl(self.checkout.wishes, process.process, time)
        here = Here(self.checkout.journal, self.name, control.ask_cancel, self.runs.load)
        room = SimpleNamespace(texts=Texts("en"), run=self.runs.load)
        self.work = IssueWork(self.book, lambda: self.client, IssueTexts(cast(IssueRoom, room)), here)
        self.source = GitHubIssues(self.book, self.work)
        engine = process.engine()
        more: dict[str, Any] = {"source": self.source, "remote": self.remote}
        more["backlog"] = BacklogSources(self.source, engine.runs, engine.locks)
        self.engine: Engine = replace(engine, **more)

    def own_runs(self, request_id: RequestId) -> tuple[OwnRun, ...]:
        found = [run for key, run in sorted(self.checkout.runs.runs.items()) if key[0] == request_id and run]
        lock = self.checkout.locks.held()[0].get(request_id)
        drafted = self.checkout.runs.drafts.get(request_id)
        runs = [
            OwnRun(
                run.run_id,
                run.outcome,
                run.error.reason_code if run.error else None,
                attempt,
                is_working=lock is not None and lock.run_id == run.run_id,
                is_stopping=run.run_id in self.checkout.wishes.cancelled,
                pull_url=run.pull_url,
            )
            for attempt, run in enumerate(found, 1)
        ]
        if drafted is not None:
            is_working = lock is not None and lock.run_id == drafted[0].run_id
            runs.append(OwnRun(drafted[0].run_id, RunOutcome.ACTIVE, is_working=is_working, is_made=False))
        return tuple(runs)

    def queued(self, title: str = "Say hello", body: str = "Please.", author: str = "owner") -> int:
        """Open an issue and let a writer label it."""
        number = self.scene.hub.open_issue(title, body, by=author)
        self.pause()
        self.scene.hub.label(number, "agent:queued", "maya")
        self.pause()
        return number

    def pause(self, seconds: float = 5) -> None:
        self.scene.time.sleep(seconds)

    def look(self) -> list[AiflowError]:
        """Look after the issues once, as the watch does, and go on with what was interrupted."""
        care = Care(self.work)
        try:
            look_after_issues(self.engine, care)
            for request_id in care.interrupted:
                start_run(self.engine, request_id)
        except AiflowError as error:
            return [error]
        return []

    def run(self, number: int = 1) -> Run:
        """Run an issue to its end."""
        facts = self.engine.workspaces(None).facts("")
        is_pushed = self.checkout.settings.flag("git.push")
        return start_run(
            self.engine, RequestId(f"GH-{number}"), replace(facts, origin_url=ORIGIN) if is_pushed else facts
        )

    def status(self, number: int = 1) -> RequestStatus | None:
        return self.source.status(RequestId(f"GH-{number}"))

    def labels(self, number: int = 1) -> list[str]:
        return self.scene.hub.rows[number].label_names()

    def marks(self, number: int = 1) -> list[tuple[CommentRow, CommentMark]]:
        comments = self.scene.hub.rows[number].comments
        return [(comment, mark) for comment in comments if (mark := find_mark(comment.body)) is not None]

    def said(self, number: int = 1) -> list[str]:
        return [mark.key for _, mark in self.marks(number)]

    def kinds(self, number: int = 1) -> list[str]:
        return [mark.kind.value for _, mark in self.marks(number)]

    def progress(self, number: int = 1) -> CommentRow:
        [found] = [comment for comment, mark in self.marks(number) if mark.kind is MarkKind.PROGRESS]
        return found

    def _ask_store(self, request_id: RequestId, run_id: str) -> bool:
        return self.has_task(request_id, run_id)

    def _agent(self, call: AgentCall, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> AgentReply:
        self.calls.append(call)
        self.before_call(call)
        return self.script(call, output, should_stop)


def killed_at_call(yard: Yard, number: int = 1) -> None:
    """Let the process die at its first agent call, and give its lock back as a dead one's is."""

    def die(_call: AgentCall) -> None:
        raise Killed

    yard.before_call = die
    with contextlib.suppress(Killed):
        yard.run(number)
    yard.before_call = lambda _call: None
    yard.checkout.locks.locks.clear()
    yard.restart()
