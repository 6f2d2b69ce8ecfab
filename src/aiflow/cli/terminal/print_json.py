"""JSON on standard output: for a person or a program, and never a command to the terminal."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

# What controls a terminal, or would be invisible in the output: JSON has another way to write it.
_UNSEEN = (
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def print_json(data: Any, *, is_event: bool = False) -> None:
    """Print one JSON document: indented for a person, on one line for a program; one of many events always so."""
    indent = 2 if sys.stdout.isatty() and not is_event else None
    text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False)
    if not text.isprintable():
        text = re.sub(_UNSEEN, lambda unseen: json.dumps(unseen[0])[1:-1], text)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()
