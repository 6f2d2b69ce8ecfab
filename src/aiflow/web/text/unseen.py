r"""Invisible characters, made visible (SEC): controls, direction marks, zero-width ones, broken UTF-8.

They are written as programs write them: `\x07`, `\u202e`. What a script or an emoji needs stays as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from aiflow.web.text.rules import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

CLASS = "unseen"
# Nearly all text is of nothing but these, and that is known at once.
_OTHERS = re.compile(
    r"[^\t\n -~\u00a1-\u00ac\u00ae-\u033f\u0400-\u0600\u2010-\u2027\u3000-\u3163\u3165-\ud7ff\uff00-\uff9f]"
)


def find_unseen(text: str) -> Iterator[re.Match[str]]:
    """Find every invisible character; several of a kind that follow one letter are one find."""
    return rule("unseen").finditer(text) if _OTHERS.search(text) else iter(())


def with_seen(text: str) -> str:
    """Write invisible characters as their numbers, line ends and tabs apart; the result can always be sent as UTF-8."""
    return rule("unseen").sub(_spelled, text) if _OTHERS.search(text) else text


def show_text(text: str) -> Markup:
    """Return a text as HTML; an invisible character is written as its number and marked."""
    found = list(find_unseen(text))
    if not found:
        return escape(text)
    parts, at = [], 0
    for match in found:
        parts += [escape(text[at : match.start()]), f'<span class="{CLASS}">', _spelled(match), "</span>"]
        at = match.end()
    return Markup("".join((*parts, escape(text[at:]))))  # noqa: S704 - each part is escaped


def spell(text: str) -> str:
    r"""Write characters as their numbers; a byte that was no UTF-8 as that byte."""
    return "".join(map(_number, text))


def _spelled(match: re.Match[str]) -> str:
    return spell(match[0])


def _number(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte, kept by `surrogateescape`
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
