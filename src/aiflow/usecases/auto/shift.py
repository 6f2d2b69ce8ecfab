"""One auto-run at work (AUT-1): its session as it is now, its hold on the queue, its ear for a person's stop."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.auto.asleep import SLEPT, ClockReading, slept_between
from aiflow.domain.auto.session import AutoStatus, Upcoming, moved
from aiflow.domain.auto.stopping import StopRequest, minutes_left, strongest, why_stop
from aiflow.domain.health import Health
from aiflow.domain.lifecycle import AutoRunEvent, AutoRunState
from aiflow.domain.run_summary import CUT_OFF
from aiflow.errors import AiflowError, ConflictError
from aiflow.usecases.engine import Ground
from aiflow.usecases.health.check_health import check_quick
from aiflow.usecases.issues.looks import IssueLooks, look_beside, record_trouble

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.auto.session import AutoSession, Started
    from aiflow.domain.auto.stopping import Limits
    from aiflow.domain.auto.summary import Summary
    from aiflow.domain.health import Finding
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.worktree import RepositoryFacts
    from aiflow.messages import Texts
    from aiflow.ports import AutoRecords, Lease
    from aiflow.ports.issues import IssueCare
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.issues.look_after import Sighting

POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class AutoTerms:
    """How one auto-run is to go.

    `texts` are the words of its summary, `asked` returns what signals ask for, `observe` gets everything it does,
    `finish` of the end, before the notification that may take its time. `left` gives the runs that an earlier delivery
    of the same auto-run had to leave. `is_continuing` only takes up one that was cut off, and begins none (AUT-4).
    `care` looks after the issues, where the settings name a repository.
    """

    records: AutoRecords
    limits: Limits
    texts: Texts
    is_watching: bool = False
    is_continuing: bool = False
    asked: Callable[[], StopRequest] = lambda: StopRequest.NONE
    observe: Callable[[AutoStatus], None] = lambda _status: None
    finish: Callable[[Summary], None] = lambda _summary: None
    left: Callable[[], list[Run]] = list
    care: IssueCare | None = None


class Shift:
    """An auto-run between its start and its end."""

    def __init__(self, engine: Engine, terms: AutoTerms, lease: Lease, session: AutoSession) -> None:
        self.session: AutoSession = replace(
            session,
            limits=terms.limits,
            is_watching=terms.is_watching,
            is_delivered=engine.charge.task is not None,
        )
        given = engine.charge.ground or Ground()
        self.ground = Ground(session.base_branch or given.base_branch, session.began_clean or given.is_clean)
        stop_code = engine.charge.stop_code
        self.engine = engine.heard_by(interrupted=self.is_to_end_now, observe=self._observe_run).charged_with(
            session=lambda: (self.session.usage, terms.limits.ceilings),
            minutes_left=lambda: minutes_left(self.session, terms.limits, engine.time.now()),
            ground=self.ground,
            stop_code=lambda: CUT_OFF if self.session.stop_request is StopRequest.CUT_OFF else stop_code(),
        )
        self._tell_run = engine.voice.observe
        self.terms = terms
        self.lease = lease
        self.interrupted: tuple[Upcoming, ...] = ()
        self.findings: tuple[Finding, ...] = ()
        self.facts_of_end: tuple[tuple[str, str], ...] = ()
        self.facts: RepositoryFacts | None = None
        self.skipped: list[str] = []
        self.issues = IssueLooks(engine.time, self._hear_of_issues)
        self._signalled = StopRequest.NONE
        self._presses = 0
        self._clocks = self._read_clocks()
        self._status = AutoStatus(self.session)
        self._ttl_seconds = engine.settings.number("locks.ttl_seconds")

    def is_to_end_now(self) -> bool:
        """Renew the queue lock and notice what a person wants; called several times a second, even during a run."""
        self.lease.allow(self._ttl_seconds)
        self._notice_sleep()
        known = self.session.stop_request
        signalled = self.terms.asked()
        if signalled is StopRequest.AFTER_RUN and self._signalled is StopRequest.NONE and known is signalled:
            self._presses += 1  # Ctrl-C after `aiflow stop`: that request is in progress already
        self._signalled = signalled
        signalled = StopRequest.NOW if self._presses and signalled is StopRequest.AFTER_RUN else signalled
        wish = strongest(known, signalled, self.engine.control.stop_asked())
        if wish is not known:
            self.session = replace(moved(self.session, AutoRunEvent.STOP_ASKED), stop_request=wish)
            with contextlib.suppress(AiflowError):  # a full disk is no reason to end a run in the middle
                self.save()
            self.show()
        return wish in (StopRequest.NOW, StopRequest.CUT_OFF)

    def _read_clocks(self) -> ClockReading:
        return ClockReading(self.engine.time.now(), self.engine.time.monotonic())

    def _notice_sleep(self) -> None:
        """Record in the journal that the machine slept, to explain a gap in the night."""
        before, self._clocks = self._clocks, self._read_clocks()
        seconds = slept_between(before, self._clocks)
        if seconds is not None:
            data = {"event": SLEPT, "seconds": seconds}
            entry = Activity(self._clocks.now, ActivityKind.TRANSITION, Actor.AUTO_RUN, data=data)
            with contextlib.suppress(AiflowError):
                self.engine.journal.append(entry)

    def _observe_run(self, run: Run) -> None:
        """Report a change of the run; while it waits for its agent's quota, auto-run waits with it (RUN-13)."""
        self._tell_run(run)
        until = run.waits_until
        if until is not None and self.session.state is AutoRunState.RUNNING:
            self.move(AutoRunEvent.WAIT_BEGAN, waits_for="AGENT_QUOTA", waits_until=until)
        elif until is None and self.session.state is AutoRunState.WAITING:
            self.move(AutoRunEvent.RUN_STARTED, waits_for=None, waits_until=None)

    def why_stop(self) -> str | None:
        """Return the reason code for which auto-run ends now, or None to continue (AUT-3)."""
        self.is_to_end_now()
        if self.lease.is_lost:
            return "LOCK_LOST"
        return why_stop(self.session, self.terms.limits, self.engine.time.now())

    def wait(self, seconds: float) -> None:
        """Let time pass, unless there is a reason to stop."""
        time = self.engine.time
        until = time.monotonic() + seconds
        while self.why_stop() is None and (left := until - time.monotonic()) > 0:
            time.sleep(min(POLL_SECONDS, left))

    def read_issues(self, *, is_wanted: bool = False) -> None:
        """Read what changed at the issues, if that is due or wanted; a problem is reported once and stops nothing."""
        care, looks = self.terms.care, self.issues
        seconds = self.engine.settings.number("github.poll_seconds")
        if care is None or not (is_wanted or looks.due_in(care, seconds) <= 0):
            return

        def look(is_over: Callable[[], bool]) -> Sighting | None:
            return looks.look_now(care, is_over) if is_wanted else looks.look(care, seconds, is_over)

        try:
            look_beside(self.engine, look, lambda: self.why_stop() is not None)
        except AiflowError as error:
            looks.note(error)

    def _hear_of_issues(self, trouble: AiflowError | None) -> None:
        if trouble is not None:
            title = self.engine.voice.texts.message(trouble.reason_code, trouble.context).title
            self.engine.voice.warn(f"{trouble.reason_code}: {title}")
        with contextlib.suppress(AiflowError):
            record_trouble(self.engine.journal, self.engine.time, trouble)

    def fix_base(self) -> None:
        """Hold to the base branch of this moment, whatever is checked out later (AUT-5)."""
        self.ground.base_branch = self.engine.find_base()
        self.session = replace(self.session, base_branch=self.ground.base_branch)

    def is_healthy(self) -> bool:
        """Ask the doctor; what it found wrong is kept, and so is what the next start needs to know."""
        self.facts, findings = check_quick(self.engine)
        self.session = replace(self.session, began_clean=self.ground.is_clean)
        self.findings = tuple(finding for finding in findings if finding.health is Health.FAIL)
        return not self.findings

    def begin(self, started: Started, title: str) -> None:
        """Write down what is about to be started, before it is."""
        self.session = replace(self.session, current=started)
        self.move(AutoRunEvent.RUN_STARTED, running=Upcoming(started.request_id, title))

    def end(self, session: AutoSession) -> None:
        """Continue with the outcome of the request that was begun."""
        self.session, self.facts = session, None
        self.move(AutoRunEvent.RUN_ENDED, running=None)

    def put_down(self) -> None:
        """Continue without having begun anything."""
        self.end(replace(self.session, current=None))

    def move(self, event: AutoRunEvent, **shown: object) -> None:
        """Follow one row of auto-run's table, write it down and show it."""
        self.session = moved(self.session, event)
        self.save()
        self.show(**shown)

    def save(self) -> None:
        """Record the session while the queue is ours; if another process took it over, leave its record alone."""
        self.session = replace(self.session, changed_at=self.engine.time.now())
        with contextlib.suppress(ConflictError), self.lease.writing():
            self.terms.records.save(self.session)

    def show(self, **changes: object) -> None:
        """Report to the observers."""
        self._status = replace(self._status, session=self.session, **changes)  # type: ignore[arg-type]
        self.terms.observe(self._status)
        self._status = replace(self._status, interrupted=())
