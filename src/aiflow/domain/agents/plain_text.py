"""Texts without what a terminal obeys (SEC): escape sequences and control characters of agents, tests and tools.

They colour output, but also move the cursor, set titles and hide lines; in files that people read nothing obeys them.
"""

from __future__ import annotations

import re

# An escape sequence as far as it is there: CSI, OSC, the strings of DCS and its kind, the short ones.
_SEQUENCE = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[PX^_][^\x1b\n]*(?:\x1b\\)?|[ -/]*[0-OQ-WYZ`-~])?"
)
_CONTROLS = re.compile(rf"{_SEQUENCE}|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_CONTROL_BYTES = re.compile(rb"%b|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]" % _SEQUENCE.encode("ascii"))
# Alone it lets the rest of a line stand over its beginning, as progress bars do.
_CR, _CR_BYTE = re.compile(r"\r+(?![\n\r])"), re.compile(rb"\r+(?![\n\r])")


def plain(text: str) -> str:
    """Return a text without escape sequences and control characters, line ends and tabs apart."""
    if text.isprintable():
        return text
    return _CR.sub("\n", _CONTROLS.sub("", text))


def plain_bytes(data: bytes) -> bytes:
    """The same for output, in whatever encoding it is."""
    return _CR_BYTE.sub(b"\n", _CONTROL_BYTES.sub(b"", data))
