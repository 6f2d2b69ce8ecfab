"""The issue watch beside a server (ISS-12): it looks and tends; what is ready is started as any other run is there.

Trouble with GitHub never ends it: it is reported once, shown as degraded, and tried again at the next poll.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.domain.issues.starting import StartMemory, after_refusal, after_run, choose
from aiflow.domain.server.supervision import Left
from aiflow.errors import AiflowError
from aiflow.usecases.issues.look_after import do_about_runs
from aiflow.usecases.issues.looks import IssueLooks, record_trouble
from aiflow.usecases.issues.queue_up import queue_issues
from aiflow.usecases.issues.ready import ready_issues
from aiflow.usecases.issues.watch import StartMode
from aiflow.usecases.server.orders import command

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.request import RequestId
    from aiflow.ports import Time
    from aiflow.ports.issues import IssueCare
    from aiflow.ports.time import Beside
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.queue.desk import Desk

# Where the settings name no repository they are looked at again so often.
IDLE_SECONDS = 5.0
SOONEST_SECONDS = 0.2
_SETTINGS = frozenset({"SETTINGS_INVALID", "PROJECT_NOT_FOUND"})


@dataclass(frozen=True, slots=True)
class IssuePlace:
    """Where issues are looked after: each is asked for again, for the settings may have changed.

    `care` is None where the settings name no repository.
    """

    care: Callable[[], IssueCare | None]
    engine: Callable[[], Engine]
    open_desk: Callable[[], Desk]
    time: Time


class ServerIssues:
    """Looks after the issues beside a server; `heard` gets trouble, and None at its end."""

    def __init__(self, place: IssuePlace) -> None:
        self.heard: Callable[[AiflowError | None], None] = lambda _trouble: None
        self._place = place
        self._looks = IssueLooks(place.time, self._hear)
        self._beside: Beside | None = None
        self._is_over = False

    @property
    def trouble(self) -> str | None:
        """Why GitHub cannot be worked with at the moment."""
        known = self._looks.trouble
        return known.reason_code if known is not None else None

    @property
    def hinted(self) -> tuple[int, ...]:
        """The issues that are to be looked at soon."""
        return self._looks.hinted

    @property
    def looks(self) -> int:
        """How many looks there were."""
        return self._looks.count

    @property
    def is_cut_off(self) -> bool:
        """Whether GitHub answers nothing at the moment."""
        return self._looks.is_cut_off

    def start(self) -> None:
        """Begin to look."""
        self._beside = self._place.time.beside("issues", self.turn)
        self._beside.start()

    def leave(self) -> None:
        """End, and wait for no answer of GitHub's: what was not written is written by the next look."""
        self._is_over = True
        if self._beside is not None:
            self._beside.leave()

    def hint(self, number: int) -> None:
        """Look at an issue soon, because somebody said that something happened there."""
        self._looks.hint(number)
        if self._beside is not None:
            self._beside.poke()

    def turn(self) -> float:
        """Look if it is time; returns the seconds to the next turn."""
        try:
            care = self._place.care()
            if care is None:
                self._looks.note(None)
                return IDLE_SECONDS
            engine = self._place.engine()
            seconds = engine.settings.number("github.poll_seconds")
            self._look(care, engine, seconds)
            return max(self._looks.due_in(care, seconds), SOONEST_SECONDS)
        except AiflowError as error:
            if error.reason_code not in _SETTINGS:  # the server reports these
                self._looks.note(error)
            return IDLE_SECONDS

    def _look(self, care: IssueCare, engine: Engine, poll_seconds: float) -> None:
        seen = self._looks.look(care, poll_seconds, lambda: self._is_over)
        if seen is None or self._is_over:
            return
        do_about_runs(engine, seen.deeds)
        if engine.settings.text("github.start") == StartMode.QUEUE:
            queue_issues(engine, care, self._place.open_desk)

    def _hear(self, trouble: AiflowError | None) -> None:
        """Report a change, on the terminal and in the journal."""
        self.heard(trouble)
        record_trouble(self._place.engine().journal, self._place.time, trouble)


class IssueStarts:
    """Which issue a server starts next, and what came of those that it started."""

    def __init__(self, issues: ServerIssues) -> None:
        self._issues = issues
        self._memory = StartMemory()
        self._ready: tuple[RequestId, ...] = ()
        self._seen = 0
        self._read_at = float("-inf")
        self._was_busy = False

    def next(self, engine: Engine, at: float, *, is_busy: bool) -> tuple[Left, ...]:
        """Return what starts the issue that is next, nothing while somebody is at work; the backlog is read if needed.

        Nothing starts before the first look, nor while GitHub answers nothing: without its answer no start succeeds.
        """
        settings = engine.settings
        is_wanted = bool(settings.text("github.repo")) and settings.text("github.start") == StartMode.AUTO
        if is_busy or not is_wanted or not self._issues.looks or self._issues.is_cut_off:
            self._was_busy = True
            return ()
        if self._is_reading_due(at, settings.number("github.poll_seconds")):
            self._seen, self._read_at, self._was_busy = self._issues.looks, at, False
            self._ready = tuple(request.id for request in ready_issues(engine))
        chosen = choose(self._ready, self._memory, at)
        if chosen is None:
            return ()
        tries = self._memory.refused.get(chosen, 0)
        return (Left(f"issue {chosen} {at} {tries}", command("run", chosen), chosen, is_new=True),)

    def ended(self, request_id: RequestId, at: float, *, was_refused: bool) -> None:
        """Hear what came of a start."""
        remember = after_refusal(self._memory, request_id, at) if was_refused else after_run(self._memory, request_id)
        self._memory, self._was_busy = remember, True

    def _is_reading_due(self, at: float, poll_seconds: float) -> bool:
        """Return whether something may be ready that was not: after a look, after work, and now and then."""
        return self._was_busy or self._seen != self._issues.looks or at - self._read_at >= poll_seconds
