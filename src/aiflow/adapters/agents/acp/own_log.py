"""What an agent writes to its own log, on standard error, as a person reads it: the words, once, unwrapped."""

from __future__ import annotations

import re

MOST_WORDS = 2_000
# A log of pairs: `timestamp=… level=ERROR message="stream error" error.error="AI_APICallError: …" stack="…"`.
_PAIRS = re.compile(r'^timestamp=\S+ level=\w+ .*?\b(?P<key>error(?:\.error)?|message)=(?P<text>"(?:[^"\\]|\\.)*"|\S+)')
_ERROR = re.compile(r'\berror(?:\.error)?=(?P<text>"(?:[^"\\]|\\.)*"|\S+)')
# The head of an object that is printed whole: what it says comes again as the call's error.
_DUMP = "Error handling request {"


class OwnLog:
    """Follows an agent's own log."""

    def __init__(self) -> None:
        self._last = ""
        self.words = ""

    def read(self, line: str) -> str | None:
        """Take a line; return what is new in it to a person: no stack traces, no insides of objects, nothing twice."""
        is_inside = line[:1].isspace() or not any(map(str.isalnum, line)) or line == _DUMP
        text = "" if is_inside else plain(line)
        if not text or text == self._last:
            return None
        self._last = text
        self.words = f"{self.words}\n{text}"[-MOST_WORDS:].strip()
        return text


def plain(line: str) -> str:
    """Return the words of a line."""
    pairs = _PAIRS.match(line)
    if pairs is None:
        return line
    found = (_ERROR.search(line) or pairs)["text"]
    return found[1:-1].replace('\\"', '"').replace("\\n", " ") if found.startswith('"') else found
