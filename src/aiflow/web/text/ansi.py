"""A line with a terminal's colours (SGR) as spans with classes; nothing else that a terminal obeys is left.

`static/ansi.js` does the same in the browser for lines that come in live; one table of cases is run against both.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from markupsafe import Markup, escape

from aiflow.web.text.rules import rule, text_rules
from aiflow.web.text.unseen import CLASS, find_unseen, spell

# Attributes by the code that sets them, and what each code ends.
_SETS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 21: "underline"}
_ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("inverse",)}
_ORDER = ("bold", "dim", "italic", "underline", "inverse")
_CUBE = (0, 95, 135, 175, 215, 255)
# More of them is nothing that a program writes; the rest of such a sequence is not obeyed.
_MOST_CODES = 64


class AnsiStyle(NamedTuple):
    """How the text from here on looks: a colour and a ground of the sixteen, and what else is switched on."""

    colour: int | None = None
    ground: int | None = None
    switched_on: frozenset[str] = frozenset()


class AnsiSpan(NamedTuple):
    """A piece of a line with one look; the code that draws it has to escape the text."""

    text: str
    classes: str = ""


class AnsiLine(NamedTuple):
    """A line's spans, and the look with which the next line begins."""

    spans: tuple[AnsiSpan, ...]
    style: AnsiStyle

    @property
    def text(self) -> str:
        """The line without any looks."""
        return "".join(span.text for span in self.spans)


PLAIN = AnsiStyle()


def ansi_line(line: str, style: AnsiStyle = PLAIN) -> AnsiLine:
    """Read a line; of what a progress bar wrote over itself, the last state is shown."""
    spans: list[AnsiSpan] = []
    written = re.split("\r+", line.rstrip("\r"))
    for number, piece in enumerate(written, 1):
        style = _read(piece, style, spans if number == len(written) else [])
    return AnsiLine(tuple(spans), style)


def show_ansi(line: str) -> Markup:
    """Return a line as HTML."""
    return draw_spans(ansi_line(line).spans)


def draw_spans(spans: tuple[AnsiSpan, ...]) -> Markup:
    """Draw spans as HTML."""
    return Markup("").join(
        Markup('<span class="{}">{}</span>').format(span.classes, span.text) if span.classes else escape(span.text)
        for span in spans
    )


def _read(piece: str, style: AnsiStyle, spans: list[AnsiSpan]) -> AnsiStyle:
    """Add a piece's spans, and return the look after it."""
    at = 0
    for match in rule("escape").finditer(piece):
        _add(piece[at : match.start()], style, spans)
        at = match.end()
        codes, final = (match[1], match[2]) if match[2] else (match[3], match[4])
        if final == "m":
            style = _styled(style, codes or "")
    _add(piece[at:], style, spans)
    return style


def _add(text: str, style: AnsiStyle, spans: list[AnsiSpan]) -> None:
    """Add a text in one look; invisible characters in it get a separate span."""
    classes, at = _classes(style), 0
    for match in find_unseen(text):
        _put(text[at : match.start()], classes, spans)
        _put(spell(match[0]), CLASS, spans)
        at = match.end()
    _put(text[at:], classes, spans)


def _put(text: str, classes: str, spans: list[AnsiSpan]) -> None:
    if text and spans and spans[-1].classes == classes:
        spans[-1] = AnsiSpan(spans[-1].text + text, classes)
    elif text:
        spans.append(AnsiSpan(text, classes))


@cache
def _classes(style: AnsiStyle) -> str:
    names = [f"ansi-{name}" for name in _ORDER if name in style.switched_on]
    if style.colour is not None:
        names.append(f"ansi-{style.colour}")
    if style.ground is not None and "inverse" not in style.switched_on:
        names.append(f"ansi-on-{style.ground}")
    return " ".join(names)


def _styled(style: AnsiStyle, codes: str) -> AnsiStyle:
    """Obey the codes of one sequence; one that is no list of numbers (`<0m`) is not a look."""
    if not re.fullmatch(r"[0-9;:]*", codes):
        return style
    given = [[int(each or 0) if len(each) < 5 else -1 for each in one.split(":")] for one in codes.split(";")]
    given = given[:_MOST_CODES]
    while given:
        code, *more = given.pop(0)
        if code in (38, 48, 58):
            style = _coloured(style, code, more, given)
        elif code == 4 and more[:1] == [0]:
            style = _switched(style, 24)
        else:
            style = _switched(style, code)
    return style


def _switched(style: AnsiStyle, code: int) -> AnsiStyle:
    """Obey a code that stands alone."""
    colour, ground, on = style
    if code == 0:
        return PLAIN
    if code in _SETS:
        return AnsiStyle(colour, ground, on | {_SETS[code]})
    if code in _ENDS:
        return AnsiStyle(colour, ground, on.difference(_ENDS[code]))
    tens, unit = divmod(code, 10)
    if unit > 7:
        return AnsiStyle(None, ground, on) if code == 39 else AnsiStyle(colour, None, on) if code == 49 else style
    if tens in (3, 9):
        return AnsiStyle(unit + 8 * (tens == 9), ground, on)
    return AnsiStyle(colour, unit + 8 * (tens == 10), on) if tens in (4, 10) else style


def _coloured(style: AnsiStyle, code: int, more: list[int], given: list[list[int]]) -> AnsiStyle:
    """Obey a colour of 256 or of all, written with colons in one code or with semicolons in the next ones."""
    if not more:
        kind = given.pop(0)[0] if given else 0
        count = {5: 1, 2: 3}.get(kind, 0)
        more = [kind, *(each[0] for each in given[:count])]
        del given[:count]
    elif more[0] == 2 and len(more) > 4:  # 38:2:<colour space>:r:g:b
        more = [2, *more[2:5]]
    found = _nearest_of(tuple(more))
    if found is None or code == 58:
        return style
    return style._replace(colour=found) if code == 38 else style._replace(ground=found)


@cache
def _of_256(index: int) -> int:
    if index < 16:
        return index
    if index > 231:
        return _nearest((8 + 10 * (index - 232),) * 3)
    cube = index - 16
    return _nearest((_CUBE[cube // 36], _CUBE[cube // 6 % 6], _CUBE[cube % 6]))


def _nearest_of(colour: tuple[int, ...]) -> int | None:
    """Return the one of the sixteen that is nearest to a colour, None if it is none."""
    if any(not 0 <= each <= 255 for each in colour[1:]):
        return None
    if len(colour) == 2 and colour[0] == 5:
        return _of_256(colour[1])
    return _nearest((colour[1], colour[2], colour[3])) if len(colour) == 4 and colour[0] == 2 else None


def _nearest(colour: tuple[int, int, int]) -> int:
    palette = text_rules()["palette"]
    return min(range(16), key=lambda index: sum((a - b) ** 2 for a, b in zip(palette[index], colour, strict=True)))
