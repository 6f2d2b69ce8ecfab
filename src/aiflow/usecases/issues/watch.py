"""Watch issues (ISS-12): look after them again and again, and start those that are ready while the checkout is free."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.issues.starting import StartMemory, after_refusal, after_run, choose
from aiflow.errors import AiflowError, ConflictError
from aiflow.usecases.issues.looks import IssueLooks, look_beside
from aiflow.usecases.issues.ready import interrupted_issues, is_at_work, ready_issues
from aiflow.usecases.runs.locks import reclaim_locks
from aiflow.usecases.runs.start import start_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.issues.repository import LookedAfter
    from aiflow.domain.request import RequestId
    from aiflow.domain.runs.run import Run
    from aiflow.ports.issues import IssueCare
    from aiflow.usecases.engine import Engine

EAR_SECONDS = 0.2
# A checkout that somebody works in is looked at again so often.
FREE_SECONDS = 1.0


class StartMode(StrEnum):
    """What starts a labelled issue (`github.start`)."""

    AUTO = "auto"
    QUEUE = "queue"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class IssueWatch:
    """What a watch works with; `looked` hears of each look, `ended` of each run, `refused` of each start that was none.

    `heard` gets trouble with GitHub once it begins, and None once it is over. `queue` makes tasks of what is
    ready, where that is how issues start.
    """

    care: IssueCare
    poll_seconds: float
    mode: StartMode
    looked: Callable[[LookedAfter], None]
    heard: Callable[[AiflowError | None], None]
    refused: Callable[[AiflowError], None]
    ended: Callable[[Run], None]
    queue: Callable[[Engine], object] = lambda _engine: None


def watch_issues(engine: Engine, watch: IssueWatch) -> None:
    """Watch until somebody asks for the end; trouble with GitHub is reported once, and the next look tries again."""
    watcher = _Watcher(engine, watch)
    while not engine.voice.interrupted():
        watcher.look()
        if not watcher.start():
            watcher.wait()


class _Watcher:
    """What a watch remembers from look to look."""

    def __init__(self, engine: Engine, watch: IssueWatch) -> None:
        self._engine, self._watch = engine, watch
        self._looks = IssueLooks(engine.time, watch.heard)
        self._memory = StartMemory()
        self._is_waiting = False
        self._refusal = ""

    def look(self) -> None:
        """Look at the issues if that is due."""
        care, seconds = self._watch.care, self._watch.poll_seconds
        if self._looks.due_in(care, seconds) > 0:
            return
        interrupted = self._engine.voice.interrupted
        try:
            seen = look_beside(self._engine, lambda is_over: self._looks.look(care, seconds, is_over), interrupted)
            if self._watch.mode is StartMode.QUEUE and not interrupted():
                self._watch.queue(self._engine)
        except AiflowError as error:
            self._looks.note(error)
        else:
            if seen is not None:
                self._watch.looked(seen.looked)

    def start(self) -> bool:
        """Start what is next, or continue what was interrupted, and wait for its end; False if there was nothing."""
        if self._engine.voice.interrupted():
            return False
        try:
            chosen = self._chosen()
        except AiflowError as error:
            self._say(error)
            return False
        return chosen is not None and self._run(chosen)

    def _chosen(self) -> RequestId | None:
        engine = self._engine
        reclaim_locks(engine)
        is_starting = self._watch.mode is StartMode.AUTO and not self._looks.is_cut_off
        ready = [request.id for request in ready_issues(engine)] if is_starting else []
        names = tuple(dict.fromkeys((*interrupted_issues(engine), *ready)))
        self._is_waiting = bool(names)
        return None if is_at_work(engine) else choose(names, self._memory, engine.time.monotonic())

    def _run(self, request_id: RequestId) -> bool:
        """Run an issue to its end; False if somebody was first, or it cannot be started now."""
        try:
            run = start_run(self._engine, request_id)
        except AiflowError as error:
            self._memory = after_refusal(self._memory, request_id, self._engine.time.monotonic())
            if not isinstance(error, ConflictError):  # another checkout has it, or something else began here
                self._say(error)
            return False
        self._memory, self._refusal = after_run(self._memory, request_id), ""
        self._watch.ended(run)
        return True

    def _say(self, error: AiflowError) -> None:
        """Report a start that was refused, unless it was for the same reason as the one before."""
        known, self._refusal = self._refusal, error.reason_code
        if known != error.reason_code:
            self._watch.refused(error)

    def wait(self) -> None:
        """Wait for the next look, or for the checkout to be free while something is ready."""
        engine, time = self._engine, self._engine.time
        free_at = time.monotonic() + FREE_SECONDS
        while not engine.voice.interrupted() and self._looks.due_in(self._watch.care, self._watch.poll_seconds) > 0:
            if self._is_waiting and time.monotonic() >= max(free_at, self._memory.due_at):
                if not is_at_work(engine):
                    return
                free_at = time.monotonic() + FREE_SECONDS
            time.sleep(EAR_SECONDS)
