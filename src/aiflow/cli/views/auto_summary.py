"""What a person finds in the morning (AUT-3): why auto-run ended, what is done, what waits and how to continue it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.cli.session import settings_to_repeat
from aiflow.cli.terminal.layout import cut, display_width, pad, share_out, wrap
from aiflow.cli.terminal.lines import GREY, Line, LinePart, duration_text, fitted, paragraph
from aiflow.cli.terminal.render import clean
from aiflow.cli.views.auto_lines import worked
from aiflow.domain.agents.choices import numbered
from aiflow.domain.lifecycle import AutoRunState
from aiflow.messages.commands import command_line, said
from aiflow.usecases.shapes.usage_words import usage_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from aiflow.domain.auto.session import Upcoming
    from aiflow.domain.auto.summary import Summary, Unreached, Waiting
    from aiflow.domain.health import Finding
    from aiflow.messages import Message, Texts

NOTHING_LEFT = "AUTO_NOTHING_RUNNABLE"
# How bad an end is; what is not named here is somebody's or a ceiling's doing, and no trouble.
_COLOURS = {NOTHING_LEFT: "green", "AUTO_FAILED_LIMIT": "red"}
_CEILINGS = ("AUTO_", "CANCELLED")
# What a title and a reason keep when the room is short.
LEAST_TITLE = 12
LEAST_WHY = 16
MOST_ID = 24
EVIDENCE_SHOWN = 10
EMPTY: Line = ()
# The action for one request is shown where that request is named.
NO_REQUEST = "<ID>"


def summary_lines(summary: Summary, texts: Texts, now: datetime, columns: int | None) -> list[Line]:
    """Return the summary, broken for a terminal of so many columns; whole where there is none."""
    return [EMPTY, *_ending(summary, texts, columns), *listed_lines(summary, texts, now, columns)]


def listed_lines(summary: Summary, texts: Texts, now: datetime, columns: int | None) -> list[Line]:
    """Return what is done, what waits and what was not reached, whether it has ended or not."""
    lines = [EMPTY, _totals(summary, texts, now)]
    if summary.done:
        lines += [EMPTY, _heading("auto.summary.done", summary.done, texts), *_list(summary.done, columns)]
    if summary.waiting:
        lines += [EMPTY, _heading("auto.summary.waiting", summary.waiting, texts)]
        lines += [line for each in summary.waiting for line in _waiting(each, texts, columns)]
    if summary.unreached:
        lines += [EMPTY, _heading("auto.summary.unreached", summary.unreached, texts)]
        lines += _unreached(summary.unreached, columns)
    if summary.follow_ups:
        lines += [EMPTY, _heading("auto.summary.found", summary.follow_ups, texts)]
        lines += _list(summary.follow_ups, columns)
    return lines


def _ending(summary: Summary, texts: Texts, columns: int | None) -> list[Line]:
    """Say why it ended and what to do; where nothing could begin, how something can."""
    code = summary.session.reason_code or NOTHING_LEFT
    message = texts.message(code, {"request_id": NO_REQUEST, **dict(summary.facts)})
    is_trouble = summary.session.state is AutoRunState.STOPPED and not code.startswith(_CEILINGS)
    colour = _COLOURS.get(code, "red" if is_trouble else "yellow")
    text, actions = message.summary, _advised(message)
    if code == NOTHING_LEFT and not summary.session.results:
        colour = "yellow"
        key = "none_could" if summary.unreached else "none_ready"
        text, actions = texts(f"auto.summary.{key}"), tuple(texts(f"auto.summary.{key}.do").splitlines())
    head = LinePart(f"{code}: {message.title}", colour, is_bold=True)
    lines: list[Line] = [(head._replace(text=line[-1].text),) for line in paragraph(head.text, (), columns)]
    lines += paragraph(text, (LinePart("  "),), columns)
    lines += [line for each in summary.findings for line in _finding(each, texts, columns)]
    return [*lines, *(line for action in actions for line in paragraph(action, (LinePart("  → "),), columns))]


def _advised(message: Message) -> tuple[str, ...]:
    """Return what to do that is not about one request."""
    said = (each.with_settings(settings_to_repeat()).typed for each in message.actions)
    return tuple(each for each in said if NO_REQUEST not in each)


def _finding(finding: Finding, texts: Texts, columns: int | None) -> list[Line]:
    """Say what the doctor found wrong, and the command that fixes it."""
    said = f"{finding.reason_code}: " if finding.reason_code else ""
    said += texts(f"check.{finding.message}", **dict(finding.facts))
    lines = paragraph(said, (LinePart(f"  {finding.health}", "red"), LinePart("  ")), columns)
    for detail in finding.evidence[:EVIDENCE_SHOWN]:
        lines += paragraph(detail, (LinePart("        "),), columns)
    return [*lines, (LinePart("        "), LinePart(command_line(finding.fix), "cyan"))] if finding.fix else lines


def _totals(summary: Summary, texts: Texts, now: datetime) -> Line:
    session = summary.session
    took = worked(session, session.changed_at or now)
    text = texts("auto.summary.totals", runs=session.runs, duration=duration_text(took, texts))
    used = usage_text(session.usage, texts)
    return (LinePart(text), LinePart(f"   {used}" if used else ""))


def _heading(key: str, listed: Sequence[object], texts: Texts) -> Line:
    return (LinePart(texts(key, count=len(listed)), is_bold=True),)


def _list(listed: Sequence[Upcoming], columns: int | None) -> list[Line]:
    """Name requests, one to a line, the titles below each other."""
    widest = min(MOST_ID, max(display_width(each.request_id) for each in listed))
    return [_named(pad(each.request_id, widest), each.title, None, columns) for each in listed]


def _named(request_id: str, title: str, colour: str | None, columns: int | None) -> Line:
    """Name a request; the title is cut to the room."""
    line = (LinePart(f"  {request_id}", colour), LinePart(f"  {title}"))
    return line if columns is None else fitted(line, columns)


def _waiting(each: Waiting, texts: Texts, columns: int | None) -> list[Line]:
    """Say what a request waits for; the command has a line for itself, whole, to be copied."""
    label = texts("run.question") if each.is_question else f"{each.reason_code}:"
    lines = [_named(each.request_id, each.title, "yellow", columns)]
    lines += paragraph(f"{label} {each.text}", (LinePart("    "),), columns)
    lines += [line for choice in numbered(each.choices) for line in paragraph(choice, (LinePart("      "),), columns)]
    if each.action is None:
        return lines
    command = said(each.action.with_settings(settings_to_repeat()), texts)
    return [*lines, (LinePart("    "), LinePart(command, "cyan"))]


def _unreached(listed: Sequence[Unreached], columns: int | None) -> list[Line]:
    """Put requests and reasons side by side, or below each other where that is too narrow."""
    rows = [(each.request_id, clean(each.title), clean(" ".join(each.text.split()))) for each in listed]
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    if columns is not None:
        if widths[0] + LEAST_TITLE + LEAST_WHY + 6 > columns:
            return [line for row in rows for line in _stacked(*row, columns)]
        widths = share_out(widths, columns - 2, {1: LEAST_TITLE, 2: LEAST_WHY})
    lines: list[Line] = []
    for request_id, title, why in rows:
        begin = f"  {pad(request_id, widths[0])}  {pad(cut(title, widths[1]), widths[1])}  "
        for number, part in enumerate(wrap(why, widths[2])):
            lines.append((LinePart(begin if number == 0 else " " * display_width(begin)), LinePart(part, GREY)))
    return lines


def _stacked(request_id: str, title: str, why: str, columns: int) -> list[Line]:
    below = paragraph(why, (LinePart("    "),), columns)
    return [_named(request_id, title, None, columns), *((line[0], line[1]._replace(colour=GREY)) for line in below)]
