"""What auto-run reports as it works (AUT-1): one short line for everything that happened, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.cli.terminal.lines import GREY, Line, LinePart, duration_text, event_text, moment_text
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.lifecycle import AutoRunState, RunEvent, RunOutcome
from aiflow.domain.reasons import CATALOGUE
from aiflow.domain.run_summary import LOST
from aiflow.domain.runs.events import TESTED
from aiflow.usecases.shapes.usage_words import money

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from aiflow.domain.auto.session import AutoSession, AutoStatus, Result
    from aiflow.domain.auto.stopping import Limits
    from aiflow.domain.runs.run import Happening, Run
    from aiflow.messages import Texts

_MARKS = {
    RunOutcome.AWAITING_ACCEPTANCE: ("✓", "green"),
    RunOutcome.ACCEPTED: ("✓", "green"),
    RunOutcome.NEEDS_INPUT: ("!", "yellow"),
    RunOutcome.CANCELLED: ("!", "yellow"),
    RunOutcome.SENT_BACK: ("!", "yellow"),
    RunOutcome.ACTIVE: ("!", "yellow"),
    RunOutcome.FAILED: ("✗", "red"),
}
# The end of a run is reported with its outcome; that a step is being tested is no news.
_UNTOLD = {
    RunEvent.ACCEPTED,
    RunEvent.PLANNING_STARTED,
    RunEvent.IMPLEMENTED,
    TESTED,
    RunEvent.REPORTED,
    RunEvent.QUOTA_WAIT,  # auto-run waits with it, and says so itself
    RunEvent.NEEDS_INPUT,
    RunEvent.FAILED,
}
_TROUBLE = {RunEvent.ATTEMPT_FAILED, RunEvent.REVIEW_FAILED, RunEvent.NOT_ACCEPTED}


class ToldOnce(NamedTuple):
    """A line, and when it happened."""

    at: datetime
    line: Line


class Teller:
    """Finds what is new in an auto-run and in its runs."""

    def __init__(self, texts: Texts, limits: Limits) -> None:
        self._texts = texts
        self._limits = limits
        self._is_begun = False
        self._results = 0
        self._titles: dict[str, str] = {}
        self._base = ""
        self._bases: dict[str, str] = {}
        self._current: str | None = None
        self._since: datetime | None = None
        self._last_ended: str | None = None
        self._run_id: str | None = None
        self._events = 0
        self._why_still: str | None = None

    def hear_status(self, status: AutoStatus, now: datetime) -> Iterator[ToldOnce]:
        """Report what is new: what ended, what begins, why it waits or stops."""
        for each in (*status.interrupted, *status.upcoming, *filter(None, [status.running])):
            self._titles[each.request_id] = each.title
        self._base = status.session.base_branch
        if not self._is_begun:
            yield self._begin(status.session, now)
        for each in status.interrupted:
            key = "auto.lost" if each.is_lost else "auto.interrupted"
            told = self._texts(key, code=LOST, request_id=each.request_id, title=each.title)
            yield ToldOnce(now, (LinePart(told, "yellow"),))
        for result in status.session.results[self._results :]:
            yield ToldOnce(now, self._ended(result, now))
        self._results = len(status.session.results)
        running = status.running
        if running is None:
            self._current = self._last_ended = None
        else:
            yield from self._start(running.request_id, running.title, self._base, now)
        yield from self._be_still(status, now)

    def hear_run(self, run: Run, now: datetime) -> Iterator[ToldOnce]:
        """Report what is new in a run."""
        self._titles[run.request_id] = run.title
        self._bases[run.request_id] = run.place.base_branch
        yield from self._start(run.request_id, run.title, run.place.base_branch, now)
        if run.run_id != self._run_id:
            # What brought it here is news: that it was recovered, or resumed.
            is_back = bool(run.history) and run.history[-1].event.startswith(("RECOVERED", "RESUMED"))
            self._run_id, self._events = run.run_id, len(run.history) - is_back
        for happening in run.history[self._events :]:
            if happening.event not in _UNTOLD:
                yield ToldOnce(happening.at, self._happened(run, happening))
        self._events = len(run.history)

    def _begin(self, session: AutoSession, now: datetime) -> ToldOnce:
        """Report that auto-run begins, or continues with the counters it had (AUT-4)."""
        self._is_begun = True
        # Earlier processes of it have reported what they did.
        self._results = len(session.results)
        has_past = bool(session.spent) or bool(session.results)
        spent = duration_text(session.spent, self._texts)
        text = self._texts("auto.goes_on", runs=session.runs, duration=spent) if has_past else self._texts("auto.began")
        base = session.base_branch and self._texts("run.base", base=session.base_branch)
        more = (base, limits_text(self._limits, self._texts))
        told = "".join(f"  {part}" for part in more if part)
        return ToldOnce(now, (LinePart(text, is_bold=True), LinePart(told, GREY)))

    def _start(self, request_id: str, title: str, base: str, now: datetime) -> Iterator[ToldOnce]:
        if request_id in (self._current, self._last_ended):
            return
        self._current, self._since, self._last_ended = request_id, now, None
        name = LinePart(f"▶ {request_id}", is_bold=True)
        based = f"  {self._texts('auto.base', base=base)}" if base else ""
        yield ToldOnce(now, (name, LinePart(f"  {title}"), LinePart(based, GREY)))

    def _ended(self, result: Result, now: datetime) -> Line:
        """Report how one request ended, and for what reason."""
        since = self._since if result.request_id == self._current else None
        self._current, self._last_ended = None, result.request_id
        is_lost = result.reason_code == LOST
        mark, colour = ("!", "yellow") if is_lost else _MARKS[result.outcome]
        how = "lost" if is_lost else "not_started" if result.run_id is None else result.outcome
        key = f"auto.outcome.{how}"
        took = self._texts("auto.took", duration=duration_text(now - since, self._texts)) if since else ""
        is_reason_new = result.reason_code not in (None, "AWAITING_ACCEPTANCE", "CANCELLED")
        why = ""
        if result.reason_code is not None and is_reason_new:
            title = self._texts.message(result.reason_code, {"request_id": result.request_id}).title
            why = f"  {result.reason_code}: {title}"
        name = LinePart(f"{mark} {result.request_id}", colour, is_bold=True)
        base = self._bases.get(result.request_id, self._base)
        return (name, LinePart(f"  {self._texts(key, base=base)}{took}", colour), LinePart(why))

    def _happened(self, run: Run, happening: Happening) -> Line:
        """Print one line of a run's history."""
        step = next((step for step in run.plan if step.id == happening.step_id), None)
        if happening.event == RunEvent.PLANNED:
            return (LinePart("  " + self._texts("auto.planned", count=len(run.plan))),)
        if happening.event in (RunEvent.STEP_DONE, RunEvent.LAST_STEP_DONE) and step is not None:
            number = run.plan.index(step) + 1
            done = self._texts("auto.step_done", step=step.id, number=number, total=len(run.plan))
            return (LinePart(f"  {done}"), LinePart(f"  {step.title}", GREY))
        text = event_text(happening, self._texts)
        return (LinePart(f"  {text}", "yellow" if happening.event in _TROUBLE else None),)

    def _be_still(self, status: AutoStatus, now: datetime) -> Iterator[ToldOnce]:
        """Report once why nothing new begins."""
        why = why_still(status, self._texts)
        if why is not None and why != self._why_still:
            yield ToldOnce(now, (LinePart(why, "yellow"),))
        self._why_still = why


def why_still(status: AutoStatus, texts: Texts) -> str | None:
    """Return for what auto-run waits, or that it is about to stop; None while it works."""
    state, wish = status.session.state, status.session.stop_request
    if state in (AutoRunState.STOPPED, AutoRunState.COMPLETED):
        return None
    if state is AutoRunState.STOPPING or wish is not StopRequest.NONE:
        key = "auto.stops_now" if wish in (StopRequest.NOW, StopRequest.CUT_OFF) else "auto.stops_after_run"
        return texts(key if status.running else "run.cancelling")
    return _awaited(status, texts) if state is AutoRunState.WAITING else None


def _awaited(status: AutoStatus, texts: Texts) -> str:
    """Name what is waited for: new requests, an end of what a reason code names, or another run."""
    cause = status.waits_for
    if cause is None:
        return texts("auto.waits.watch")
    if cause in CATALOGUE:
        title = texts.message(cause, {}).title
        until = moment_text(status.waits_until) if status.waits_until else None
        return texts("auto.waits.until", cause=title, until=until) if until else texts("auto.waits.for", cause=title)
    return texts("auto.waits.turn" if status.is_turn else "auto.waits.run", holder=cause)


def limits_text(limits: Limits, texts: Texts, session: AutoSession | None = None) -> str:
    """Name the ceilings of a session that are set, with what is used up of those that no clock shows."""
    shown: list[str] = []
    if limits.session_runs:
        used = f"{session.runs}/" if session else ""
        shown.append(runs_text(f"{used}{limits.session_runs}", texts))
    if limits.session_minutes:
        shown.append(texts("auto.limit.minutes", minutes=limits.session_minutes))
    if limits.until:
        shown.append(texts("auto.limit.until", until=moment_text(limits.until)))
    if limits.session_cost_usd:
        used = f"{money(session.cost_usd)}/" if session else ""
        shown.append(f"{used}{money(limits.session_cost_usd)}")
    if limits.session_tokens:
        used = f"{session.usage.tokens}/" if session else ""
        shown.append(texts("auto.limit.tokens", tokens=f"{used}{limits.session_tokens}"))
    if limits.session_agent_calls:
        used = f"{session.usage.calls}/" if session else ""
        shown.append(texts("auto.limit.calls", calls=f"{used}{limits.session_agent_calls}"))
    return texts("auto.limits", limits=texts("auto.limit.between").join(shown)) if shown else ""


def worked(session: AutoSession, now: datetime) -> timedelta:
    """Return how long a session has worked, through all its processes."""
    return session.spent + (now - session.started_at)


def runs_text(runs: object, texts: Texts) -> str:
    """Say how many runs."""
    return texts("auto.limit.run" if str(runs) == "1" else "auto.limit.runs", runs=runs)
