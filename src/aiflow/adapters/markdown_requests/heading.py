"""The first heading of a request's body, its title when no key gives one (REQ-2)."""

from __future__ import annotations

import re

_CODE_FENCE = re.compile(rb"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_CLOSING_HASHES = re.compile(r"(?:^|\s)#+$")


def find_heading(data: bytes, start: int) -> str | None:
    """Return the text of the first `# ` heading in UTF-8 text; a `#` line inside a code block is not one."""
    if data.startswith(b"\n# ", start):  # nearly always: an empty line, then the heading
        end = data.find(b"\n", start + 3)
        heading = data[start + 3 : end].decode().strip() if end > 0 else ""
        if heading and heading[-1] != "#":
            return heading
    at = start
    while (begin := _find_hash(data, at)) >= 0:
        fence = _CODE_FENCE.search(data, at, begin) if begin > at + 1 else None
        if fence is None:
            end = data.find(b"\n", begin)
            heading = data[begin + 2 : end if end >= 0 else None].decode().strip()
            return (_CLOSING_HASHES.sub("", heading).strip() if heading.endswith("#") else heading) or None
        closing = re.compile(rb"^ {0,3}" + re.escape(fence[1]) + rb"[`~]*[ \t]*\r?$", re.MULTILINE)
        closed = closing.search(data, fence.end())
        if closed is None:
            return None
        at = closed.end()
    return None


def _find_hash(data: bytes, start: int) -> int:
    """Find the next line that begins with `# `."""
    if data.startswith(b"# ", start) and (start == 0 or data[start - 1] == 0x0A):
        return start
    found = data.find(b"\n# ", start)
    return found + 1 if found >= 0 else -1
