"""The few lines below all others that say what auto-run does at this moment; pure: drawn from a scene and a time."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiflow.cli.terminal.layout import display_width, wrap
from aiflow.cli.terminal.lines import GREY, Line, LinePart, clock_text, fitted, moment_text, width_of
from aiflow.cli.terminal.render import clean
from aiflow.cli.views.auto_lines import limits_text, why_still, worked
from aiflow.domain.auto.stopping import Limits
from aiflow.domain.lifecycle import RunEvent, RunOutcome
from aiflow.domain.runs.log_part import HEADING

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.auto.session import AutoSession, AutoStatus, Upcoming
    from aiflow.domain.runs.run import Run
    from aiflow.messages import Texts

# The clocks stand below the times of the lines above.
GUTTER = 8
# What a terminal shows for Ctrl-C is written after the last line: it must not begin a new one.
ECHO = 3

DONE = frozenset({RunOutcome.ACCEPTED})
FAILED = frozenset({RunOutcome.FAILED})

# How programs colour their output and name their window (ECMA-48): taken out, what is left of it would be noise.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)


@dataclass(frozen=True, slots=True)
class AutoScene:
    """What the area is drawn from: what was last heard of the auto-run and of its run, and since when that holds."""

    status: AutoStatus | None = None
    run: Run | None = None
    request_since: datetime | None = None
    doing_since: datetime | None = None
    limits: Limits = field(default_factory=Limits)
    output: str = ""
    notice: str | None = None


def draw(scene: AutoScene, texts: Texts, now: datetime, columns: int) -> list[Line]:
    """Return the lines of the area, cut to a terminal's columns; none before anything is known."""
    status = scene.status
    if status is None:
        return []
    # One column stays free: a full line would begin the next on some terminals.
    room = columns - 1
    still = scene.notice or why_still(status, texts)
    lines: list[Line] = [()]
    if status.running is not None:
        lines += run_lines(scene, status.running, texts, now)
    elif still is None:
        lines.append(row("", LinePart(texts("auto.selecting"))))
    lines.append(row(clock_text(worked(status.session, now)), *_counts(status.session, texts)))
    if ceilings := limits_text(scene.limits, texts, status.session):
        lines.append(row("", LinePart(ceilings, GREY)))
    lines += _next_lines(status, texts, room)
    hint = texts("auto.hint.run" if status.running else "auto.hint.idle")
    last = wrap(clean(still or hint), max(8, room - ECHO - GUTTER - 2))
    lines += [row("", LinePart(text, "yellow" if still else GREY)) for text in last]
    return [fitted(line, room) for line in lines]


def last_line(data: bytes) -> str | None:
    """Return the last line with something in it of what an agent wrote, without colours; None if there is none."""
    for raw in reversed(data.decode("utf-8", "replace").split("\n")):
        # What a progress bar wrote over is gone.
        line = _ESCAPES.sub("", raw.rstrip().rpartition("\r")[2]).strip()
        if line and not line.startswith(HEADING):
            return line
    return None


def row(label: str, *parts: LinePart) -> Line:
    """Put a short label into the gutter, or nothing."""
    return (LinePart(" " * (GUTTER - display_width(label)) + label + "  ", GREY), *parts)


def run_lines(scene: AutoScene, running: Upcoming, texts: Texts, now: datetime) -> list[Line]:
    """Say what runs, what is being done about it, and what the agent wrote last."""
    name = (LinePart(f"▶ {running.request_id}", "cyan", is_bold=True), LinePart(f"  {running.title}"))
    run = scene.run if scene.run is not None and scene.run.request_id == running.request_id else None
    doing = doing_line(run, texts) if run is not None else (LinePart(texts("auto.doing.INIT")),)
    return [
        row(clock_text(now - scene.request_since) if scene.request_since else "", *name),
        row(clock_text(now - scene.doing_since) if scene.doing_since else "", LinePart("  "), *doing),
        row("", LinePart(f"  {scene.output}", GREY)),
    ]


def doing_of(run: Run) -> tuple[object, ...]:
    """Return what a run is at: something else is done as soon as this is something else."""
    role = run.visit.calling
    return (run.run_id, run.state, run.current_step_id, role, run.calls_of(role) if role else 0)


def doing_line(run: Run, texts: Texts) -> Line:
    """Say which step it is, who is called, and for which time."""
    if not run.is_active:
        is_accepting = bool(run.history) and run.history[-1].event == RunEvent.ACCEPTING
        return (LinePart(texts("auto.doing.accepting" if is_accepting else "auto.doing.ended")),)
    if (until := run.waits_until) is not None:
        return (LinePart(texts("run.quota_wait", until=moment_text(until)), "yellow"),)
    step, role = run.current_step, run.visit.calling
    place = f"{step.id} {(run.current_index or 0) + 1}/{len(run.plan)}  " if step else ""
    who = texts(f"role.{role}") if role else texts(f"auto.doing.{run.state}")
    attempt = f"  {texts('run.attempt', number=run.calls_of(role))}" if role and run.calls_of(role) > 1 else ""
    return (
        LinePart(place, is_bold=True),
        LinePart(who),
        LinePart(attempt, "yellow"),
        LinePart(f"  {step.title}" if step else "", GREY),
    )


def _counts(session: AutoSession, texts: Texts) -> list[LinePart]:
    """Say what came of everything so far."""
    outcomes = [result.outcome for result in session.results]
    done, failed = sum(each in DONE for each in outcomes), sum(each in FAILED for each in outcomes)
    waiting = len(outcomes) - done - failed
    between = LinePart(texts("auto.limit.between"), GREY)
    return [
        LinePart(texts("auto.count.done", count=done), "green" if done else None),
        between,
        LinePart(texts("auto.count.waiting", count=waiting), "yellow" if waiting else None),
        between,
        LinePart(texts("auto.count.failed", count=failed), "red" if failed else None),
    ]


def _next_lines(status: AutoStatus, texts: Texts, room: int) -> list[Line]:
    """Say what comes next, and how many more could; the title gives way."""
    running = status.running.request_id if status.running else None
    following = [each for each in status.upcoming if each.request_id != running]
    if not following:
        return [row(texts("auto.next"), LinePart(texts("auto.next.none"), GREY))] if running else []
    first = row(texts("auto.next"), LinePart(f"{following[0].request_id}  {following[0].title}"))
    more = max(status.runnable, len(following)) - 1
    if more <= 0:
        return [first]
    tail = LinePart(f"  {texts('auto.next.more', count=more)}", GREY)
    return [(*fitted(first, room - width_of((tail,))), tail)]
