"""A line in parts, each with its colour: cut to a width, written plainly or painted, never read as a command."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import click

from aiflow.cli.terminal.layout import cut, display_width, wrap
from aiflow.cli.terminal.render import clean
from aiflow.domain.lifecycle import RunEvent
from aiflow.domain.request import parse_instant
from aiflow.domain.runs.events import KNOWN

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Happening, Run
    from aiflow.messages import Texts

GREY = "bright_black"
LEAST_WIDTH = 8
# How colours are written (ECMA-48, SGR): a number each, several to one command.
_COLOURING = re.compile(r"\x1b\[([0-9;]*)m")
_BOLD = 1
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_COLOURS = {
    first + number: f"{kind}{name}" for first, kind in ((30, ""), (90, "bright_")) for number, name in enumerate(_NAMES)
}
_HOUR, _MINUTE = 3600, 60


class LinePart(NamedTuple):
    """A piece of a line; its text may come from anywhere."""

    text: str
    colour: str | None = None
    is_bold: bool = False


Line = tuple[LinePart, ...]


def plain(line: Line) -> str:
    """Return a line without colours and control characters."""
    return clean("".join(part.text for part in line)).rstrip()


def painted(line: Line) -> str:
    """Return a line with its colours, for a terminal."""
    parts = [click.style(clean(part.text), fg=part.colour, bold=part.is_bold or None) for part in line if part.text]
    return "".join(parts)


def parts_of(text: str) -> Line:
    """Take a painted line apart again; whatever else commands a terminal is taken out."""
    parts, colour, is_bold = [], None, False
    for number, piece in enumerate(_COLOURING.split(text)):
        if number % 2 == 0:
            parts.append(LinePart(click.unstyle(piece), colour, is_bold))
            continue
        for code in map(int, piece.split(";") if piece else ["0"]):
            is_bold = code == _BOLD or (is_bold and code != 0)
            colour = _COLOURS.get(code, None if code == 0 else colour)
    return tuple(part for part in parts if part.text)


def width_of(line: Line) -> int:
    """Return how many columns a line takes."""
    return sum(display_width(clean(part.text)) for part in line)


def fitted(line: Line, width: int) -> Line:
    """Cut a line to a width; what is missing is marked."""
    if width_of(line) <= width:
        return line
    kept: list[LinePart] = []
    room = width
    for number, part in enumerate(line):
        text = clean(part.text)
        # A part that just fits makes room for the mark if something follows.
        is_last = not any(each.text for each in line[number + 1 :])
        if display_width(text) < room or (is_last and display_width(text) == room):
            kept.append(part)
            room -= display_width(text)
        else:
            kept.append(part._replace(text=cut(text + "…", room)))
            break
    return tuple(kept)


def broken(line: Line, width: int) -> list[Line]:
    """Break a line into several of at most a width; what stays of a part keeps its colour."""
    text = "".join(clean(part.text) for part in line)
    lines: list[Line] = []
    at = 0
    for piece in wrap(text, max(LEAST_WIDTH, width)):
        at = text.index(piece, at)  # blanks around a break are gone
        lines.append(_between(line, at, at + len(piece)))
        at += len(piece)
    return lines


def _between(line: Line, begin: int, end: int) -> Line:
    """Return what is between two places of a line's text."""
    kept: list[LinePart] = []
    at = 0
    for part in line:
        text = clean(part.text)
        kept.append(part._replace(text=text[max(0, begin - at) : max(0, end - at)]))
        at += len(text)
    return tuple(part for part in kept if part.text)


def paragraph(text: str, prefix: Line, width: int | None) -> list[Line]:
    """Break a text into lines that are aligned after a prefix; without a width only at its own breaks."""
    indent = width_of(prefix)
    shown = [clean(line) for line in text.splitlines()] or [""]
    if width is not None:
        shown = [part for line in shown for part in wrap(line, max(LEAST_WIDTH, width - indent)) or [""]]
    return [
        (*(prefix if number == 0 else (LinePart(" " * indent),)), LinePart(line)) for number, line in enumerate(shown)
    ]


def event_text(happening: Happening, texts: Texts, run: Run | None = None) -> str:
    """Say one line of a run's history; a moment in its note is shown in the reader's own time."""
    facts = {"step": happening.step_id or "", "reason": happening.reason_code or "", "note": happening.note or ""}
    until = parse_instant(happening.note or "") if happening.event == RunEvent.QUOTA_WAIT else None
    if happening.event == RunEvent.TEXT_WITHHELD:
        from aiflow.domain.untrusted.calls import counts_in
        from aiflow.usecases.backlog.hidden_text import hidden_words

        facts["hidden"] = hidden_words(counts_in(happening.note), texts)
    return texts(_key(happening, texts, run), until=moment_text(until) if until else "", **facts).strip()


def _key(happening: Happening, texts: Texts, run: Run | None) -> str:
    """Return the text for what happened; it has another form for the last step, one that is retried, and the like."""
    event = happening.event
    if run is not None and event == RunEvent.STEP_DONE and run.plan and run.plan[-1].id == happening.step_id:
        event = RunEvent.LAST_STEP_DONE if run.is_planned else RunEvent.IN_LINE
    form = _form(event, run) or ("retry" if happening.note == "retry_step" else happening.note)
    key = f"event.{event}.{form}"
    return key if form in _FORMS and texts.has(key) else f"event.{event}"


_FORMS = ("retry", "later", "whole", KNOWN)


def _form(event: str, run: Run | None) -> str | None:
    """Return how to word an event of a run that tests its base first, or has no planner."""
    if run is None:
        return None
    forms = {
        RunEvent.PLANNING_STARTED: "later" if run.course.has_baseline or not run.course.has_plan else None,
        RunEvent.PLANNED: None if run.course.has_plan else "whole",
    }
    return forms.get(RunEvent(event)) if event in forms else None


def moment_text(moment: datetime) -> str:
    """Return a moment to come: the time alone if it is less than a day away, else with its day."""
    local = moment.astimezone()
    away = local - datetime.now().astimezone()
    return f"{local:%H:%M:%S}" if away < timedelta(hours=20) else f"{local:%Y-%m-%d %H:%M}"


def local_now() -> datetime:
    """Return the time, with the user's own offset."""
    return datetime.now().astimezone()


def clock_text(elapsed: timedelta) -> str:
    """Return a time that runs, as a stop watch shows it: 12:34, 1:02:03."""
    seconds = max(0, int(elapsed.total_seconds()))
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes:02}:{rest:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def duration_text(elapsed: timedelta, texts: Texts) -> str:
    """Return how long something took, in words."""
    seconds = max(0, int(elapsed.total_seconds()))
    if seconds < _MINUTE:
        return texts("auto.duration.seconds", seconds=seconds)
    if seconds < _HOUR:
        return texts("auto.duration.minutes", minutes=seconds // _MINUTE)
    return texts("auto.duration.hours", hours=seconds // _HOUR, minutes=seconds % _HOUR // _MINUTE)
