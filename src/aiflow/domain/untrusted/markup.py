"""What a Markdown page does not show (SEC): comments, and elements that say they are hidden.

One pass over the lines. It follows CommonMark only as far as needed to tell what is code for certain; from where
that is no longer clear (`_is_sure`), nothing counts as code any more.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from aiflow.domain.untrusted.code import FENCE_LIKE, PREFIX, CodeFence, Span, closes, inline, opening_fence
from aiflow.domain.untrusted.elements import hidden_element
from aiflow.domain.untrusted.kinds import Cut, HiddenKind

_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
_BLANK = re.compile(r"^[ \t]*\r?$", re.MULTILINE)
_INDENT = re.compile(PREFIX + r"?(?: {4}|\t)")
_HTML = re.compile(PREFIX + r"<(?:!--|!\[CDATA\[|![A-Za-z]|\?|/?([A-Za-z][A-Za-z0-9-]*)(?=[\s/>]|\Z))")
# A line that could begin something of its own.
_BEGINS = re.compile(PREFIX + r"(?:<|\[|`{3}|~{3})")
# The end of a piece that is none: it belongs to the quote the piece is in.
_QUOTE_MARK = re.compile(r"[ \t>]*>")
_OPENER = re.compile(r"<!--|<!\[CDATA\[|<![A-Za-z]|<[!?]|</(?![A-Za-z])|<[A-Za-z]")
_INNER = re.compile("<")
_INNER_COMMENT = re.compile(r"<\?|<!(?!--)")
_EMPTY_COMMENT = re.compile(r"<!---?>")
_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_VERBATIM = re.compile(r"<(?:script|pre|style|textarea)(?=[\s>]|\Z)", re.IGNORECASE)
_VERBATIM_END = re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE)
# Tags that begin no block unless they stand alone.
_INLINE_TAGS = frozenset(("a", "b", "br", "code", "del", "em", "i", "img", "kbd", "mark", "s", "span", "strong", "u"))


class Unshown(NamedTuple):
    """What a page hides, what is code, and the plain text in which a label may be used, by its line's beginning."""

    cuts: tuple[Cut, ...]
    code: tuple[Span, ...]
    plain: tuple[tuple[int, str], ...]


def find_unshown(text: str) -> Unshown:
    """Find what a page made of a text would not show; every line ends with a line feed, or CR and line feed."""
    scan = _Scan(text)
    at = 0
    while at < len(text):
        at = scan.take_line(at)
    return Unshown(tuple(scan.cuts), tuple(scan.code), tuple(scan.plain))


class _Scan:
    """The state of the pass."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.cuts: list[Cut] = []
        self.code: list[Span] = []
        self.plain: list[tuple[int, str]] = []
        self._is_sure = True
        self._is_plain = True  # every backtick of this paragraph has had its mate so far
        self._has_inner_code = False  # code in a quote or a list was seen, whose end we do not look for
        self._fence: CodeFence | None = None
        self._html: str | None = None  # what ends the HTML we may be in: an empty line, or a verbatim element's end
        self._found: dict[str, int] = {}

    def take_line(self, start: int) -> int:
        """Look at one line, and return where the next one begins."""
        end = self._line_end(start)
        line = self.text[start:end].rstrip("\r\n")
        if self._fence is not None:
            return self._take_code(start, end, line)
        if not line.strip(" \t"):
            self._html = None if self._html == BLANK else self._html
            self._is_plain = True
            return end
        if self._html is not None and FENCE_LIKE.match(line):
            self._is_sure = False
        elif self._html is None and self._is_sure and (fence := opening_fence(line)):
            return self._open(fence, start, end)
        elif FENCE_LIKE.match(line):
            self._has_inner_code = True
        return self._take_text(start, end, line)

    def _take_code(self, start: int, end: int, line: str) -> int:
        assert self._fence is not None
        is_end = closes(self._fence, line)
        if is_end is None:
            self._fence, self._is_sure = None, False
            return start  # the same line again, as text
        self.code.append((start, end))
        if is_end:
            self._fence = None
        return end

    def _open(self, fence: CodeFence, start: int, end: int) -> int:
        """Begin a fenced block; a page does not show the words after its mark, so no comment may be there."""
        self._fence, self._is_plain = fence, True
        at, stop = start + fence.info[0], start + fence.info[1]
        opened = self.text.find("<!--", at, stop)
        if opened >= 0:
            self.cuts.append(Cut(opened, stop, HiddenKind.COMMENT))
            stop = opened
        self.code.append((start, stop))
        return end

    def _take_text(self, start: int, end: int, line: str) -> int:
        """Look for hidden pieces in a line that is no code block."""
        html = _HTML.match(line)
        is_last = self._html == VERBATIM and _VERBATIM_END.search(line) is not None
        if html is not None and html[1] is not None and self._html != VERBATIM:
            self._enter(html[1].lower(), line)
        is_html = self._html is not None or (html is not None and html[1] is None)
        code: list[Span] = []
        if is_html or not (self._is_sure and self._is_plain):
            pass
        elif (found := inline(line)) is None:
            self._is_plain = False
        else:
            code = [(start + a, start + b) for a, b in found.code]
            self.plain += [(start, chunk) for chunk in found.plain if self._is_prose(line)]
        after = self._take_pieces(start, end, code, is_html=is_html)
        if is_last:
            self._html = BLANK
        return after

    def _is_prose(self, line: str) -> bool:
        """Return whether a line is no code for certain, as in a quote or a list it may be."""
        return not (_INDENT.match(line) or FENCE_LIKE.match(line) or (self._has_inner_code and line[0] in " \t>"))

    def _enter(self, name: str, line: str) -> None:
        """Enter what may be a block of HTML."""
        if self._html is None and name in _INLINE_TAGS and not line.rstrip().endswith(">"):
            return
        opener = _VERBATIM.search(line)
        is_open = opener is not None and not _VERBATIM_END.search(line, opener.end())
        self._html = VERBATIM if is_open else BLANK

    def _take_pieces(self, start: int, end: int, code: list[Span], *, is_html: bool) -> int:
        """Cut out the hidden pieces that begin in a line; one may reach far beyond it."""
        at, is_block = start, is_html and self._html is None
        while opener := _OPENER.search(self.text, at, end):
            begin = opener.start()
            place = bisect_right(code, (begin, len(self.text)))
            if place and begin < code[place - 1][1]:
                self.code.append(code[place - 1])
                at = code[place - 1][1]
                continue
            piece = self._piece(begin, opener[0], (start, end), is_html=is_html)
            if piece is None:
                at = opener.end()
                continue
            self.cuts.append(piece)
            at = piece.end
            if place < len(code) and code[place][0] < at:
                code, self._is_plain = [], False
            if at > end:  # the rest of that line could be anything
                end, code, self._is_plain = self._line_end(at - 1), [], False
        if is_block and self.text.startswith("<!--", start):
            self._is_plain = True  # after a comment that is a separate block, a new block begins
        return end

    def _piece(self, begin: int, opener: str, line: Span, *, is_html: bool) -> Cut | None:
        """Return the hidden piece that begins here, or None if there is none."""
        if opener[1].isalpha():
            stop = hidden_element(self.text, begin)
            return Cut(begin, stop, HiddenKind.ELEMENT) if stop is not None else None
        if opener in ("</", "<!") and not is_html:
            return None  # only a block of HTML hides this: a page shows it as text
        if empty := _EMPTY_COMMENT.match(self.text, begin):
            return Cut(begin, empty.end(), HiddenKind.COMMENT)
        is_block = is_html and begin == line[0] and self._html is None
        end = self._end(opener, begin, line[1], is_block=is_block)
        if opener != "<!--" and not is_html and (end is None or self._has_gap(begin, end)):
            return None  # as before
        stop = end if end is not None else len(self.text)
        inner = _INNER if opener != "<!--" else None if is_block else _INNER_COMMENT
        if inner is not None and inner.search(self.text, begin + len(opener), stop):
            stop = len(self.text)  # where it is none, another one begins in it
        elif stop > line[1] and not is_block and not self._is_whole(line[0], begin, stop, is_html=is_html):
            stop = len(self.text)
        return Cut(begin, stop, HiddenKind.COMMENT)

    def _end(self, opener: str, begin: int, line_end: int, *, is_block: bool) -> int | None:
        """Return where a piece ends by its own mark, or None if it does not."""
        mark = _ENDS.get(opener, ">")
        found = self._find(mark, begin + len(opener))
        while found is not None and not is_block and self.text.startswith("--->", found - 1):
            # Within a line of text this is no end to every renderer: only a clear one, in the same line, will do.
            found = self._find(mark, found + 1)
            found = found if found is not None and found < line_end else None
        return found + len(mark) if found is not None else None

    def _is_whole(self, start: int, begin: int, stop: int, *, is_html: bool) -> bool:
        """Return whether a piece of several lines ends where it says.

        If its block ends before, that end is text to a page, and all that follows may be hidden.
        """
        if is_html and not self._goes_on(start, begin, stop):
            return False
        lines = [self.text[a:b] for a, b in self._lines(self._line_end(begin), stop)]
        return not (_QUOTE_MARK.fullmatch(lines[-1]) or any(map(_BEGINS.match, lines)))

    def _goes_on(self, start: int, begin: int, stop: int) -> bool:
        """Return whether nothing ends the block of HTML in which a piece begins before the piece itself ends."""
        prefix = self.text[start:begin]
        if self._html is not None:
            return self._html == BLANK and not prefix and not self._has_gap(begin, stop)
        if not re.fullmatch(PREFIX, prefix):
            return False
        lines = [self.text[a:b] for a, b in self._lines(self._line_end(begin), stop)]
        if ">" in prefix:
            return all(line.startswith(prefix) for line in lines)
        return all(line.startswith(" " * len(prefix)) or not line.strip() for line in lines)

    def _has_gap(self, begin: int, stop: int) -> bool:
        """Return whether there is an empty line between."""
        gap = self._find("", begin)
        return gap is not None and gap < stop

    def _find(self, mark: str, at: int) -> int | None:
        """Find the next place of a mark (or, for none, the next empty line); each stretch is searched only once."""
        known = self._found.get(mark, -1)
        if known < at:
            if mark:
                known = self.text.find(mark, at)
            else:
                match = _BLANK.search(self.text, self._line_end(at))
                known = match.start() if match else -1
            self._found[mark] = known if known >= 0 else len(self.text) + 1
        known = self._found[mark]
        return known if known <= len(self.text) else None

    def _line_end(self, at: int) -> int:
        found = self.text.find("\n", at)
        return found + 1 if found >= 0 else len(self.text)

    def _lines(self, start: int, end: int) -> list[Span]:
        """Return the lines from the beginning of one up to a place."""
        return [match.span() for match in _LINE.finditer(self.text, start, end) if match[0]]


BLANK, VERBATIM = "blank", "verbatim"
