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
# How what follows looks (SGR): colours, bold and the like; it moves nothing and hides nothing on a page.
_LOOK = re.compile(rb"\x1b\[([0-9;:]{0,64})m")
_MOST_CODES = 64
# Alone it lets the rest of a line stand over its beginning, as progress bars do.
_CR, _CR_BYTE = re.compile(r"\r+(?![\n\r])"), re.compile(rb"\r+(?![\n\r])")


def plain(text: str) -> str:
    """Return a text without escape sequences and control characters, line ends and tabs apart."""
    if text.isprintable():
        return text
    return _CR.sub("\n", _CONTROLS.sub("", text))


def plain_bytes(data: bytes) -> bytes:
    """The same for output, in whatever encoding it is."""
    shown = _CONTROL_BYTES.sub(b"", data)
    # What stood between two bytes may have kept a control apart.
    return _CR_BYTE.sub(b"\n", _CONTROL_BYTES.sub(b"", shown) if len(shown) < len(data) else shown)


def split_looks(data: bytes) -> tuple[bytes, list[tuple[int, bytes]]]:
    """Return output as plain as `plain_bytes` makes it, and the codes of how it looks by the byte they stand before."""
    text = plain_bytes(data)
    first, *rest = _LOOK.split(data)
    at, looks = len(plain_bytes(first)), list[tuple[int, bytes]]()
    for codes, piece in zip(rest[::2], rest[1::2], strict=True):
        before = looks.pop()[1] + b";" if looks and looks[-1][0] == at else b""
        both = before + (codes or b"0")
        looks.append((at, both if len(both) <= _MOST_CODES else codes or b"0"))
        at += len(plain_bytes(piece))
    return text, looks if at == len(text) else []  # a control that went over a look: its place is unknown
