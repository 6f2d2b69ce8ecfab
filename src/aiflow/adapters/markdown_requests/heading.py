"""The first heading of a request's body, its title when no key gives one (REQ-2)."""

from __future__ import annotations

import re

# A heading, or a line that opens or closes a code block; one pass finds them all.
_LINES = re.compile(rb"^(?:# ([^\n]*)| {0,3}(`{3,})[^`\n]*| {0,3}(~{3,})[^\n]*)$", re.MULTILINE)
_CLOSING_HASHES = re.compile(r"(?:^|\s)#+$")


def find_heading(data: bytes, start: int) -> str | None:
    """Return the text of the first `# ` heading in UTF-8 text; a `#` line inside a code block is not one."""
    if data.startswith(b"\n# ", start):  # nearly always: an empty line, then the heading
        end = data.find(b"\n", start + 3)
        heading = data[start + 3 : end].decode().strip() if end > 0 else ""
        if heading and heading[-1] != "#":
            return heading
    fence = b""
    for match in _LINES.finditer(data, start):
        mark = match[2] or match[3]
        if mark is None and not fence:
            return _CLOSING_HASHES.sub("", match[1].decode().strip()).strip() or None
        if mark and not fence:
            fence = mark
        elif mark and mark[:1] == fence[:1] and len(mark) >= len(fence) and match[0].strip() == mark:
            fence = b""
    return None
