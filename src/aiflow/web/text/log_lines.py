"""A step's log as its viewer shows it (RUN-1): numbered lines, headings of roles and attempts, commands, failures.

Only headings have a time in the text; the viewer knows it of every line. `static/log_lines.js` reads live lines alike.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from aiflow.web.text.ansi import PLAIN, AnsiSpan, ansi_line, draw_spans
from aiflow.web.text.rules import rule, text_rules
from aiflow.web.text.unseen import with_seen

if TYPE_CHECKING:
    from markupsafe import Markup

MOST_LINES = 2_000
MOST_CHARACTERS = 4_000


class LogKind(StrEnum):
    """What a line of a log is; the values are the classes that draw it."""

    HEADING = "sep"
    COMMAND = "sh"
    FAILING = "bad"
    PASSING = "ok"
    PLAIN = "plain"


class LogHeading(NamedTuple):
    """A heading: when something began, and what; of a title that is not known (`other`) there are no parts."""

    what: str
    title: str
    time: str | None = None
    role: str | None = None
    step: str | None = None
    attempt: int | None = None
    name: str | None = None
    command: str | None = None


class LogLine(NamedTuple):
    """One line; `left_out` counts the characters of a long one that are not shown."""

    number: int
    kind: LogKind
    text: str
    spans: tuple[AnsiSpan, ...]
    heading: LogHeading | None = None
    left_out: int = 0

    @property
    def html(self) -> Markup:
        """The line as HTML."""
        return draw_spans(self.spans)


class LogView(NamedTuple):
    """The last lines of a log; `left_out` counts those before them, `failing` are the numbers of the failing ones."""

    lines: tuple[LogLine, ...]
    left_out: int
    failing: tuple[int, ...]

    @property
    def next_number(self) -> int:
        """The number of the line that comes next."""
        return self.lines[-1].number + 1 if self.lines else self.left_out + 1


def view_log(text: str, *, most: int = MOST_LINES, first: int = 1) -> LogView:
    """Split a log into lines and keep the last ones; a line begins with no look of the one before it."""
    split = text.split("\n")
    if not split[-1]:
        split.pop()
    left_out = max(0, len(split) - most)
    lines = tuple(view_line(line, number) for number, line in enumerate(split[left_out:], first + left_out))
    return LogView(lines, left_out, tuple(line.number for line in lines if line.kind is LogKind.FAILING))


def view_line(line: str, number: int) -> LogLine:
    """Return one line as it is shown."""
    shown = line[:MOST_CHARACTERS]
    spans = ansi_line(shown, PLAIN).spans
    text = "".join(span.text for span in spans)
    return LogLine(number, line_kind(text), text, spans, read_heading(text), len(line) - len(shown))


def line_kind(text: str) -> LogKind:
    """Say what a line is, by its text without colours."""
    if rule("heading").match(text):
        return LogKind.HEADING
    if _failing_start().match(text) or any(each.search(text) for each in _failing_anywhere()):
        return LogKind.FAILING
    if rule("command").match(text):
        return LogKind.COMMAND
    return LogKind.PASSING if rule("passing").match(text) else LogKind.PLAIN


def read_heading(text: str) -> LogHeading | None:
    """Read a heading; None if the line is not one."""
    match = rule("heading").search(text) if text.startswith("=== ") else None
    if match is None:
        return None
    time, title = match[1], with_seen(match[2])
    for what, pattern, parts in _titles():
        if found := pattern.search(title):
            told = dict(zip(parts, found.groups(), strict=True))
            attempt = told.pop("attempt", None)
            return LogHeading(what, title, time, attempt=int(attempt) if attempt else None, **told)
    return LogHeading("other", title, time)


# Nearly all rules are about how a line begins: to look for those in its midst takes ten times as long.
@cache
def _failing_start() -> re.Pattern[str]:
    given = [each["pattern"] for each in text_rules()["failing"] if each["pattern"].startswith("^")]
    return re.compile("|".join(f"(?:{each})" for each in given), re.ASCII)


@cache
def _failing_anywhere() -> tuple[re.Pattern[str], ...]:
    given = [each["pattern"] for each in text_rules()["failing"] if not each["pattern"].startswith("^")]
    return tuple(re.compile(each, re.ASCII) for each in given)


@cache
def _titles() -> tuple[tuple[str, re.Pattern[str], tuple[str, ...]], ...]:
    given = text_rules()["titles"]
    return tuple((each["what"], re.compile(each["pattern"], re.ASCII), tuple(each["parts"])) for each in given)
