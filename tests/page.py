"""What a reader of a page sees: Markdown made into HTML by a real renderer, HTML read as a browser reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

_BOGUS = re.compile(r"<[!?]|</(?![A-Za-z>])")
_EMPTY_COMMENT = re.compile(r"<!---?>")
_COMMENT_END = re.compile(r"--!?>")
_TAG = re.compile(r"</?[A-Za-z][^\s/>]*")
_VALUE = re.compile(r"""\s*=\s*(?:"[^"]*("|\Z)|'[^']*('|\Z)|[^\s>]*)""")
_NAME = re.compile(r"[\s/]*[^\s/>][^\s/>=]*|[\s/]+")


def _fence(self: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType) -> str:
    """Render a code block with all that stands behind its mark: it is in the source, and no comment."""
    token = tokens[index]
    return f"<pre>{_escape(token.info)} {_escape(token.content)}</pre>"


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _renderer() -> MarkdownIt:
    renderer = MarkdownIt("commonmark", {"html": True})
    renderer.add_render_rule("fence", _fence)
    return renderer


_RENDERER = _renderer()


def seen_on_page(text: str) -> str:
    """Return everything of a Markdown text that is no comment to a browser: text, and what tags carry."""
    page = _RENDERER.render(text)
    seen: list[str] = []
    at = 0
    while at < len(page):
        if page.startswith("<!--", at):
            at = _behind_comment(page, at)
        elif _BOGUS.match(page, at):
            at = (page.find(">", at) + 1) or len(page)
        elif tag := _TAG.match(page, at):
            end = _behind_tag(page, tag.end())
            seen.append(unescape(page[at:end]))
            at = end
        else:
            end = page.find("<", at + 1) if "<" in page[at + 1 :] else len(page)
            seen.append(unescape(page[at:end]))
            at = end
    return "".join(seen)


def _behind_comment(page: str, at: int) -> int:
    empty = _EMPTY_COMMENT.match(page, at)
    end = empty or _COMMENT_END.search(page, at + 4)
    return end.end() if end else len(page)


def _behind_tag(page: str, at: int) -> int:
    """Read attributes until the tag ends, or the page does."""
    while at < len(page) and page[at] != ">":
        name = _NAME.match(page, at)
        at = name.end() if name else at + 1
        value = _VALUE.match(page, at) if name and name[0].strip() else None
        at = value.end() if value else at
    return at + 1
