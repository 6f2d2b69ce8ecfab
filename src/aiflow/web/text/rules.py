"""The rules about lines that the page and the browser share: one object, in `static/text_rules.js`."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[1] / "static" / "text_rules.js"


@cache
def text_rules() -> dict[str, Any]:
    """Read the rules; the script is strict JSON between its first and its last brace."""
    script = _FILE.read_text(encoding="utf-8")
    rules: dict[str, Any] = json.loads(script[script.index("{") : script.rindex("}") + 1])
    return rules


@cache
def rule(name: str) -> re.Pattern[str]:
    """Return a rule as one pattern; of a list of rules, each of them."""
    found = text_rules()[name]
    whole = found if isinstance(found, str) else "|".join(f"(?:{each['pattern']})" for each in found)
    return re.compile(whole, re.ASCII)
