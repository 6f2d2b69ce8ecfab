"""HTML elements that say they are hidden (SEC): `<div hidden>`, `style="display: none"` and the like."""

from __future__ import annotations

import html
import re

# A tag as CommonMark reads it, and one as a browser does that is given less orderly attributes.
_STRICT = re.compile(
    r"""<(?P<name>[A-Za-z][A-Za-z0-9-]*)(?P<rest>(?>\s+[^\s"'<>/=]+(?>\s*=\s*(?>"[^"]*"|'[^']*'|[^\s"'=<>`]+))?)*+)\s*/?>"""
)
_LOOSE = re.compile(r"<(?P<name>[A-Za-z][A-Za-z0-9-]*)(?P<rest>[\s/\"'][^<>]*)>")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+))?""")
_HIDES = re.compile(r"display:none|visibility:(?:hidden|collapse)|(?:font-size|opacity):[0.]+(?![\d.%]*[1-9])")
_EMPTY = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"))
# The content of such an element that is unambiguous: no other tag, no code, nothing escaped.
_CONTENT = re.compile(r"[^<`~\\]*")
_CODE_LINE = re.compile(r"\n(?: {4}| {0,3}\t)")


def hidden_element(text: str, at: int) -> int | None:
    """Return where a hidden element ends that begins here, or None if none does.

    Where its end is not plain to see, it is taken to reach to the end of the text.
    """
    tags = [tag for tag in (_STRICT.match(text, at), _LOOSE.match(text, at)) if tag]
    tag = next((tag for tag in tags if _is_hidden(tag["rest"])), None)
    if tag is None:
        return None
    if tag["name"].lower() in _EMPTY:
        return tag.end()
    content = _CONTENT.match(text, tag.end())
    assert content is not None
    closing = re.compile(rf"</{tag['name']}\s*>", re.IGNORECASE).match(text, content.end())
    return closing.end() if closing and not _CODE_LINE.search(content[0]) else len(text)


def _is_hidden(attributes: str) -> bool:
    """Return whether an element's attributes keep it from being shown."""
    for name, value in _ATTRIBUTE.findall(attributes):
        if name.lower() == "hidden":
            return True
        style = re.sub(r"/\*.*?\*/|[\s\"']", "", html.unescape(value).lower())
        if name.lower() == "style" and ("\\" in style or _HIDES.search(style)):
            return True
    return False
