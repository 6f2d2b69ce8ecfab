"""A checkout in memory whose requests are the issues of a hub: the real use cases and the real source, on played time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from aiflow.adapters.github_issues.at_work import IssueWork
from aiflow.adapters.github_issues.book import IssueBook, IssueTerms
from aiflow.adapters.github_issues.here import Here
from aiflow.adapters.github_issues.mirror import IssueMirror
from aiflow.adapters.github_issues.source import GitHubIssues
from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.several_sources import SeveralSources
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.issues.repository import LookedAfter
from aiflow.domain.issues.view import IssueRules, OwnRun
from aiflow.domain.lifecycle import outcome_of
from aiflow.domain.request import Request, RequestId
from aiflow.domain.runs.run import Run
from aiflow.domain.runs.worktree import Place
from aiflow.errors import EnvironmentProblemError
from aiflow.messages import Texts
from aiflow.settings import Source, settle
from aiflow.usecases.issues.look_after import look_after_issues
from aiflow.usecases.read_backlog import BacklogSources
from aiflow.usecases.runs.start import start_run
from aiflow.wiring.issues import IssueRoom, IssueTexts
from github.hub import Hub
from github.scene import RUNNER, Scene
from memory_engine import MemoryCheckout, MemoryProcess, obliging

ORIGIN = "git@github.com:octo/demo.git"


class HubRemote:
    """Pushes to the hub, or says what is wrong."""

    def __init__(self, hub: Hub) -> None:
        self.hub, self.problem = hub, ""
        self.pushed: Callable[[], None] = lambda: None

    def push(self, place: Place) -> None:
        if self.problem:
            raise EnvironmentProblemError(reason_code="GIT_FAILED", command="git push", problem=self.problem)
        self.hub.branches.add(place.branch)
        self.pushed()


class Shop:
    """One checkout that works on the issues of the scene's hub."""

    def __init__(
        self, scene: Scene, folder: Path, settings: dict[str, bool | str] | None = None, login: str = RUNNER
    ) -> None:
        folder.mkdir(exist_ok=True)
        assert isinstance(scene.time, PlayedTime)
        self.scene, self.hub, self.time = scene, scene.hub, scene.time
        self.checkout = MemoryCheckout(folder.name, settle({Source.FILE: settings or {}}))
        flag = self.checkout.settings.flag
        rules = IssueRules(opens_pulls=flag("github.pull_request"), accept_closes=flag("github.accept_closes"))
        self.remote, self.summary, self.question = HubRemote(self.hub), "", ""
        self.meanwhile: Callable[[], None] = lambda: None
        self.process = MemoryProcess(self.checkout, 7, self.time, self._script(obliging(self.checkout)))
        self.client = scene.client(login)
        self.texts = Texts("en")
        mirror = IssueMirror(folder, self.hub.repo)
        self.book = IssueBook(self.hub.repo, mirror, self.time, self._own_runs, IssueTerms(rules, (RUNNER,)))
        parts = self.process.engine()
        here = Here(self.checkout.journal, folder.name, parts.control.ask_cancel, self.run)
        self.care = IssueWork(self.book, lambda: self.client, IssueTexts(cast(IssueRoom, self)), here)
        self.source = GitHubIssues(self.book, self.care)
        files = FileSource(self.checkout.requests)
        sources = SeveralSources(files, [self.source])
        backlog = BacklogSources(sources, parts.runs, parts.locks)
        self.engine = self.process.engine(source=sources, remote=self.remote, backlog=backlog)

    def _script(self, script: Callable[..., AgentReply]) -> Callable[..., AgentReply]:
        """Let the agent say something about its work, or ask."""

        def said(call: AgentCall, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> AgentReply:
            if call.role is Role.IMPLEMENTER and self.question:
                return AgentReply(json.dumps({"status": "needs_input", "question": self.question}).encode())
            reply = script(call, output, should_stop)
            is_work = call.role is Role.IMPLEMENTER and self.summary
            if call.role is Role.IMPLEMENTER:
                self.meanwhile()
            return AgentReply(json.dumps({"status": "done", "summary": self.summary}).encode()) if is_work else reply

        return said

    def run(self, request_id: str, run_id: str) -> Run | None:
        """What the words of comments ask for."""
        return self.engine.runs.load(request_id, run_id)

    def _own_runs(self, request_id: RequestId) -> tuple[OwnRun, ...]:
        pages, _ = self.engine.runs.page(request_id)
        lock = self.engine.locks.holder_of(request_id)
        return tuple(
            OwnRun(
                run.run_id,
                outcome_of(run.state, run.reason_code, is_accepted=run.record is not None and run.record.is_accepted),
                run.why,
                attempt,
                is_working=lock is not None and lock.run_id == run.run_id,
                is_stopping=self.engine.control.is_cancelled(run.run_id),
                pull_url=run.record.pull_url if run.record is not None else None,
            )
            for attempt, (_, run) in enumerate(reversed(pages), 1)
        )

    # -- what is done here

    def queued(self, title: str = "Say hello") -> int:
        """Let a person open an issue and queue it."""
        number = self.hub.open_issue(title, "Please.")
        self.time.sleep(5)
        self.hub.label(number, "agent:queued", "maya")
        self.time.sleep(5)
        return number

    def look(self) -> LookedAfter:
        """Look after the issues a minute later."""
        self.time.sleep(60)
        return look_after_issues(self.engine, self.care)

    def work(self, number: int) -> Run:
        """Look, and run an issue to its end."""
        self.look()
        facts = self.engine.workspaces(None).facts("")
        return start_run(self.engine, RequestId(f"GH-{number}"), replace(facts, origin_url=ORIGIN))

    def finished(self, title: str = "Say hello") -> tuple[int, Run]:
        """Have an issue whose run is done."""
        number = self.queued(title)
        return number, self.work(number)

    def request(self, number: int) -> Request:
        return self.source.load(RequestId(f"GH-{number}"))

    def now(self, run: Run) -> Run:
        """A run as it is now."""
        loaded = self.engine.runs.load(run.request_id, run.run_id)
        assert loaded is not None
        return loaded

    def said(self, number: int, which: int = -1) -> str:
        """One of an issue's comments."""
        return self.hub.rows[number].comments[which].body

    def quiet(self) -> bool:
        """Whether another look has nothing to do, and writes nothing."""
        before = len(self.scene.api.writes)
        self.look()
        self.look()
        return len(self.scene.api.writes) == before and self.care.pending() == ()
