"""A run as a timeline (WEB-1): the plan, each step and the report, with its attempts, their phases and times.

Pure: read from the run's history, which has the same lines whether its process lived or was killed in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import RunEvent, RunState
from aiflow.domain.runs import events
from aiflow.domain.runs.step_work import StepWork
from aiflow.domain.runs.undoing import KEPT, UNDOING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from aiflow.domain.runs.run import Happening, Run

BASELINE, PLAN, REPORT, ACCEPTANCE = "baseline", "plan", "report", "acceptance"
IMPLEMENT, CHECK, TESTS, REVIEW, MERGE, WAIT = "implement", "check", "tests", "review", "merge", "wait"
_TEST_CODES = frozenset({"UNIT_TEST_FAILED", "E2E_TEST_FAILED", "TEST_TIMEOUT"})
_CODES_OF_CHECK = {**dict.fromkeys(_TEST_CODES, TESTS), "QA_REJECTED": REVIEW}
_STOPS = frozenset({RunEvent.NEEDS_INPUT, RunEvent.FAILED})
_OF_BASELINE = frozenset({events.BASELINE, events.TESTED})
# What a run continues is brought in line with its base before its plan (REQ-6a).
_BASE_MERGED = (RunEvent.BASE_MERGED, RunEvent.BASE_CONFLICTS)
_QUESTION = "NEEDS_CLARIFICATION"


class Phase(NamedTuple):
    """A part of an attempt; one in progress has no end."""

    name: str
    since: datetime
    until: datetime | None = None
    is_failed: bool = False

    @property
    def seconds(self) -> float:
        """How long it took; one in progress counts from `since`."""
        return (self.until - self.since).total_seconds() if self.until else 0.0


@dataclass(slots=True)
class StepAttempt:
    """One try at the plan or at a step: its phases, and why it ended if it was not enough."""

    number: int
    phases: list[Phase] = field(default_factory=list)
    reason_code: str | None = None


@dataclass(slots=True)
class Stage:
    """One stop of the timeline; `mark` is the shape of its state: done, run, question, stopped, fail or todo."""

    name: str
    title: str = ""
    mark: str = "todo"
    attempts: list[StepAttempt] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """How long it took so far, without the part in progress."""
        return sum(phase.seconds for attempt in self.attempts for phase in attempt.phases)

    @property
    def ticks_from(self) -> datetime | None:
        """While it is in progress, when it would have begun if it had been worked on without a break."""
        return self.running.since - timedelta(seconds=self.seconds) if self.running else None

    @property
    def running(self) -> Phase | None:
        """What is in progress in it now."""
        last = self.attempts[-1].phases[-1] if self.attempts and self.attempts[-1].phases else None
        return last if last and last.until is None else None


def timeline(run: Run) -> tuple[Stage, ...]:
    """Lay a run's history out along its plan."""
    tracing = _Tracing(run)
    for line in run.history:
        tracing.take(line)
    stages = tracing.stages
    if not run.is_active and tracing.phase is not None and not tracing.is_accepting:
        tracing.close(run.changed_at)
    if tracing.phase == CHECK:
        tracing.name_open_check()
    for stage in stages.values():
        stage.mark = _mark(run, stage, tracing.place)
    return tuple(stages.values())


class _Tracing:
    """Follows the history: where the run is, and which phase is open."""

    def __init__(self, run: Run) -> None:
        self.run = run
        is_based = any(line.event in _OF_BASELINE for line in run.history)
        self._first = [line.step_id or "" for line in run.history if line.event in _BASE_MERGED]
        steps = {step.id: Stage(step.id, step.title) for step in run.plan}
        self.stages = {BASELINE: Stage(BASELINE)} if is_based else {}
        self.stages |= {**{name: steps[name] for name in self._first if name in steps}, PLAN: Stage(PLAN), **steps}
        self.stages[REPORT] = Stage(REPORT)
        self.place = PLAN
        self.phase: str | None = None
        self.is_accepting = False
        self._waited_in: str | None = None
        self.open(*((BASELINE, TESTS) if is_based else (PLAN, PLAN)), run.created_at)

    def open(self, place: str, phase: str, at: datetime, *, is_new: bool = True) -> None:
        """Begin a phase; in a new attempt unless the one before is in progress."""
        stage = self.stages.setdefault(place, Stage(place))
        if is_new or not stage.attempts:
            stage.attempts.append(StepAttempt(len(stage.attempts) + 1))
        stage.attempts[-1].phases.append(Phase(phase, at))
        self.place, self.phase = place, phase

    def close(self, at: datetime, code: str | None = None) -> None:
        """End what is open; with a code it was not enough."""
        if self.phase is None:
            return
        attempt = self.stages[self.place].attempts[-1]
        is_failed = code is not None and code != _QUESTION
        name = self._checked(attempt, at, code) if self.phase == CHECK else _failed_phase(self.phase, code)
        attempt.phases[-1] = attempt.phases[-1]._replace(name=name, until=at, is_failed=is_failed)
        attempt.reason_code = code or attempt.reason_code
        self.phase = None

    def name_open_check(self) -> None:
        """Distinguish tests from review in the part in progress."""
        attempt = self.stages[self.place].attempts[-1]
        self._checked(attempt, None, None)
        is_review = self.run.visit.is_tested or not self._count("tests")
        attempt.phases[-1] = attempt.phases[-1]._replace(name=REVIEW if is_review else TESTS)

    def _checked(self, attempt: StepAttempt, until: datetime | None, code: str | None) -> str:
        """Split a check where its tests passed, if somebody reviewed it then, and name what is left of it."""
        work = self.run.steps.get(self.place, StepWork())
        since = attempt.phases[-1].since
        passed = next((at for at in work.tested_at if since <= at and (until is None or at <= until)), None)
        has_review = self._count("qa") > 0 or code == _QUESTION
        if passed is not None and has_review:
            attempt.phases[-1:] = [Phase(TESTS, since, passed), Phase(REVIEW, passed)]
        if code in _CODES_OF_CHECK:
            return _CODES_OF_CHECK[code]
        if not self.run.course.has_review:
            return TESTS
        if not self._count("tests") or any(phase.name == TESTS for phase in attempt.phases):
            return REVIEW
        if not has_review:
            return TESTS
        return REVIEW if code is None and work.tested_at else CHECK

    def _count(self, what: str) -> int:
        """Return how often a role was called in this step, or its tests were run."""
        return self.run.steps.get(self.place, StepWork()).calls.get(what, 0)

    def take(self, line: Happening) -> None:
        """Follow one line of the history."""
        if line.event in _STOPS:
            self.close(line.at, line.reason_code)
        elif hear := _HEARD.get(line.event):
            hear(self, line)

    def baseline(self, line: Happening) -> None:
        if self.place != BASELINE or self.phase is None:  # else it was set up for this, or a crash came in between
            self.close(line.at)
            self.open(BASELINE, TESTS, line.at)

    def base_tested(self, line: Happening) -> None:
        self.baseline(line)
        self.close(line.at)
        self.open(PLAN, PLAN, line.at, is_new=False)

    def planned(self, line: Happening) -> None:
        self.close(line.at)
        first = next((step for step in self.run.plan if step.id not in self._first), None)
        self.open(first.id if first else REPORT, IMPLEMENT, line.at)

    def base_merged(self, line: Happening) -> None:
        self.stages[PLAN].attempts.clear()  # nothing was planned yet
        self.open(line.step_id or PLAN, IMPLEMENT if line.event == RunEvent.BASE_CONFLICTS else CHECK, line.at)

    def implemented(self, line: Happening) -> None:
        self.close(line.at)
        self.open(self.place, CHECK, line.at, is_new=False)

    def attempt_failed(self, line: Happening) -> None:
        self.close(line.at, line.reason_code)
        self.open(self.place, PLAN if self.place == PLAN else IMPLEMENT, line.at)

    def review_failed(self, line: Happening) -> None:
        self.close(line.at, line.reason_code)
        self.open(self.place, REVIEW, line.at)

    def step_done(self, line: Happening) -> None:
        self.close(line.at)
        ids, is_before_plan = [step.id for step in self.run.plan], not self.stages[PLAN].attempts
        following = ids[ids.index(self.place) + 1 :] if self.place in ids else []
        after = (following[0], IMPLEMENT) if following else (REPORT, REPORT)
        self.open(*((PLAN, PLAN) if is_before_plan else after), line.at)

    def reported(self, line: Happening) -> None:
        self.close(line.at)

    def resumed(self, line: Happening) -> None:
        self.close(line.at)
        is_new = self.place != BASELINE  # no planner was called yet
        step_id = line.step_id if line.step_id in self.stages else PLAN
        place, phase = {
            RunEvent.RESUMED_AT_PLANNING: (PLAN, PLAN),
            RunEvent.RESUMED_AT_REPORT: (REPORT, REPORT),
            RunEvent.RESUMED_AT_TESTS: (step_id, CHECK),
        }.get(RunEvent(line.event), (step_id, IMPLEMENT))
        self.open(place or PLAN, phase, line.at, is_new=is_new)

    def quota_wait(self, line: Happening) -> None:
        self._waited_in = self.phase if self.phase != WAIT else self._waited_in
        self.close(line.at)
        self.open(self.place, WAIT, line.at, is_new=False)

    def quota_back(self, line: Happening) -> None:
        self.close(line.at)
        self.open(self.place, self._waited_in or IMPLEMENT, line.at, is_new=False)

    def accepting(self, line: Happening) -> None:
        self.open(ACCEPTANCE, MERGE, line.at)
        self.is_accepting = True

    def accepted(self, line: Happening) -> None:
        if self.is_accepting:
            self.close(line.at)
        self.is_accepting = False

    def not_accepted(self, line: Happening) -> None:
        if not self.is_accepting:
            self.open(ACCEPTANCE, MERGE, line.at)
        self.close(line.at, line.reason_code)
        self.is_accepting = False


_HEARD: Mapping[str, Callable[[_Tracing, Happening], None]] = {
    events.BASELINE: _Tracing.baseline,
    events.TESTED: _Tracing.base_tested,
    RunEvent.PLANNED: _Tracing.planned,
    **dict.fromkeys(_BASE_MERGED, _Tracing.base_merged),
    RunEvent.IMPLEMENTED: _Tracing.implemented,
    RunEvent.ATTEMPT_FAILED: _Tracing.attempt_failed,
    RunEvent.REVIEW_FAILED: _Tracing.review_failed,
    RunEvent.STEP_DONE: _Tracing.step_done,
    RunEvent.REPORTED: _Tracing.reported,
    RunEvent.RESUMED_AT_PLANNING: _Tracing.resumed,
    RunEvent.RESUMED_AT_STEP: _Tracing.resumed,
    RunEvent.RESUMED_AT_TESTS: _Tracing.resumed,
    RunEvent.RESUMED_AT_REPORT: _Tracing.resumed,
    RunEvent.QUOTA_WAIT: _Tracing.quota_wait,
    RunEvent.QUOTA_BACK: _Tracing.quota_back,
    RunEvent.ACCEPTING: _Tracing.accepting,
    RunEvent.ACCEPTED: _Tracing.accepted,
    RunEvent.NOT_ACCEPTED: _Tracing.not_accepted,
    UNDOING: _Tracing.accepting,
    RunEvent.UNDONE: _Tracing.accepted,
    KEPT: _Tracing.not_accepted,
}


def _failed_phase(phase: str, code: str | None) -> str:
    """Name the phase that failed more closely than the history does."""
    return TESTS if phase == MERGE and code in _TEST_CODES else phase


def _mark(run: Run, stage: Stage, place: str) -> str:
    if _is_passed(stage) if stage.name in (BASELINE, REPORT) else _is_done(run, stage.name):
        return "done"
    if stage.name != place or not stage.attempts:
        return "fail" if stage.name == BASELINE else "todo"
    if stage.running is not None:
        return "pause" if stage.running.name == WAIT else "run"
    if run.state is RunState.FAILED:
        return "fail"
    return "question" if run.error and run.error.question else "stopped"


def _is_passed(stage: Stage) -> bool:
    """Return whether the report was written, or the base tested, whatever became of the run afterwards."""
    last = stage.attempts[-1].phases[-1] if stage.attempts else None
    return last is not None and last.until is not None and not last.is_failed


def _is_done(run: Run, name: str) -> bool:
    if name == PLAN:
        return run.is_planned
    if name == ACCEPTANCE:
        return run.accepted_as is not None
    return name in run.steps and run.steps[name].is_done
