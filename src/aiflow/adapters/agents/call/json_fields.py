"""Fields of events that somebody else's program writes (AGT-4): whatever stands there, a value of the wanted type.

Pure, and never raises: a field that is missing or of another type is empty.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

Fields = Mapping[str, Any]
# More than anybody can use; beyond it a number is a mistake, and adding it up would only spread that.
MOST = 10**15


def read_object(line: bytes) -> Fields | None:
    """Read a line as one JSON object; None if it is none."""
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text_of(fields: Fields, name: str) -> str:
    """Return a text, else an empty one."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def part_of(fields: Fields, name: str) -> Fields:
    """Return an object inside an object, else an empty one."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def parts_of(fields: Fields, name: str) -> list[Fields]:
    """Return the objects of a list, else none."""
    value = fields.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count_of(fields: Fields, name: str) -> int:
    """Return a whole number that is not negative, else 0."""
    return int(number_of(fields, name))


def number_of(fields: Fields, name: str) -> float:
    """Return a number that is not negative, else 0."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    return float(value) if 0 <= value <= MOST and math.isfinite(value) else 0.0
