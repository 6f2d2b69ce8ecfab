"""Code with classes for its colours (Pygments). Only languages that are met every day, and no more than is quick."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from pygments.lexer import Lexer

PREFIX = "hl-"
MOST_CHARACTERS = 8_000
# Some languages' patterns take the square of what they look at: long lines, and blank ones without end.
_SLOW = re.compile(r"[^\n]{400}|(?:\n[ \t]*){20}")
_NAMES = (
    "bash c c# cpp c++ cs csharp console css diff docker dockerfile go golang html ini java javascript js json "
    "jsonc jsx kotlin lua php powershell properties py pycon python python3 rb rs ruby rust scala sh shell "
    "sql swift toml ts tsx typescript vue xml yaml yml zsh"
)
LANGUAGES = frozenset(_NAMES.split())
# Read as a language that is like it: Pygments has none, or one that takes seconds for a page of plain words.
_SAME = {
    "jsonc": "json",
    "tsx": "typescript",
    "jsx": "javascript",
    "vue": "html",
    **dict.fromkeys(("c#", "cs", "csharp", "java"), "cpp"),
}


def colour_code(code: str, language: str) -> Markup:
    """Return code as HTML with a class for each kind of word; without classes where that would take long."""
    language = language.lower()
    if language not in LANGUAGES or len(code) > MOST_CHARACTERS or _SLOW.search(code):
        return escape(code)
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter

    formatter = HtmlFormatter(nowrap=True, classprefix=PREFIX)
    return Markup(highlight(code, _lexer(language), formatter))  # noqa: S704 - Pygments escapes the code


def code_classes() -> frozenset[str]:
    """Return every class that coloured code may have."""
    from pygments.token import STANDARD_TYPES

    return frozenset(f"{PREFIX}{name}" for name in STANDARD_TYPES.values() if name)


@cache
def _lexer(language: str) -> Lexer:
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(_SAME.get(language, language), stripnl=False, ensurenl=False)
