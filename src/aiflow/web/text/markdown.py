"""Markdown of requests and reports as HTML (SEC): what people and agents wrote, never trusted.

Raw HTML is shown as text, images become links, links lead nowhere but out, and what is left passes an allow-list.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

from aiflow.web.text.code_colour import code_classes, colour_code
from aiflow.web.text.unseen import with_seen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import nh3
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

# About a fifth of a second; a longer text is somebody's file, and there for reading as it is.
MOST_CHARACTERS = 40_000
# Coloured code is the slow part of a text: so much of it, the rest without colours.
MOST_COLOURED = 24_000
TOP = 3

_TASK = re.compile(r"\[([ xX])\][ \t]+(?=\S)")
# A note of aiflow's own for the person who reads: no agent gets it.
_NOTE_BEGIN, _NOTE_END = "<!-- aiflow: ", " -->"
_BARE_LINK = re.compile(r"\bhttps?://[^\s<>\"'`|\\\u3000-\u303f\uff00-\uffef]{1,2000}", re.IGNORECASE)
_BEHIND_LINK = ".,;:!?*_~'\""
_TAGS = "a blockquote br code div em h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul"
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "div": {"tabindex"}, "pre": {"tabindex"}}
_CLASSES = {
    "div": {"wide"},
    "li": {"task"},
    "p": {"code-of", "note"},
    "pre": {"code"},
    "td": {"at-center", "at-end"},
    "th": {"at-center", "at-end"},
}
_ASIDE = {"text-align:center": "at-center", "text-align:right": "at-end"}


class MarkdownView(NamedTuple):
    """A text as HTML; `left_out` counts the characters after the last line that is shown."""

    html: Markup
    left_out: int = 0


def render_markdown(text: str, *, cap: int = MOST_CHARACTERS, top: int = TOP) -> MarkdownView:
    """Render a text, at most `cap` characters of it; its first heading is an h`top`, and none below skips a level."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    shown = _first_lines(text, cap)
    html = _parser().render(with_seen(shown), {"top": max(3, top), "coloured": 0})
    return MarkdownView(Markup(_cleaner().clean(html)), len(text) - len(shown))  # noqa: S704 - it was cleaned


def without_title(text: str, title: str) -> str:
    """Leave out the heading that a page has already, above the text."""
    text = text.lstrip()
    first, _, rest = text.partition("\n")
    return rest if first.startswith("#") and first.lstrip("#").strip() == title else text


def _first_lines(text: str, cap: int) -> str:
    """Cut a text after a whole line; one long line is cut anywhere."""
    if len(text) <= cap:
        return text
    return text[: text.rfind("\n", 0, cap) + 1] or text[:cap]


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20})
    parser.enable(["table", "strikethrough"])
    parser.core.ruler.push("levels", _set_levels)
    parser.core.ruler.push("tasks", _mark_tasks)
    parser.core.ruler.push("notes", _unwrap_notes)
    parser.core.ruler.push("bare_links", _link_addresses)
    renderer: Any = parser.renderer
    rules = renderer.rules
    rules["image"] = _image
    rules["fence"] = rules["code_block"] = _code
    rules["table_open"] = lambda *_: '<div class="wide" tabindex="0"><table>\n'
    rules["table_close"] = lambda *_: "</table></div>\n"
    rules["td_open"] = rules["th_open"] = _cell
    return parser


@cache
def _cleaner() -> nh3.Cleaner:
    import nh3

    return nh3.Cleaner(
        tags=set(_TAGS.split()),
        attributes=_ATTRIBUTES,
        allowed_classes={**_CLASSES, "span": {"task-box", *code_classes()}},
        url_schemes={"http", "https", "mailto"},
        url_relative="deny",
        link_rel="noopener noreferrer",
    )


def _set_levels(state: StateCore) -> None:
    """Put headings below those of the page, none more than one level below the one before it."""
    above: list[int] = []
    level = 0
    for token in state.tokens:
        if token.type == "heading_open":
            own = int(token.tag[1])
            above = [*(each for each in above if each < own), own]
            level = min(6, state.env["top"] + len(above) - 1)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{level}"


def _mark_tasks(state: StateCore) -> None:
    """Draw `[ ]` and `[x]` at the begin of a list's items as boxes."""
    from markdown_it.token import Token

    tokens = state.tokens
    for item, paragraph, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (item.type, paragraph.type, inline.type) != ("list_item_open", "paragraph_open", "inline"):
            continue
        first = inline.children[0] if inline.children else None
        match = _TASK.match(first.content) if first is not None and first.type == "text" else None
        if first is None or match is None:
            continue
        first.content = first.content[match.end() :]
        item.attrSet("class", "task")
        box = [
            Token("box_open", "span", 1, attrs={"class": "task-box"}),
            Token("text", "", 0),
            Token("end", "span", -1),
        ]
        box[1].content = "☐ " if match[1] == " " else "☑ "
        inline.children = [*box, *(inline.children or ())]


def _unwrap_notes(state: StateCore) -> None:
    """Draw a paragraph that is one of aiflow's own comments as a note, without the comment's marks."""
    for paragraph, inline in pairwise(state.tokens):
        children = inline.children if paragraph.type == "paragraph_open" else None
        if not children or not (inline.content.startswith(_NOTE_BEGIN) and inline.content.endswith(_NOTE_END)):
            continue
        first, last = children[0], children[-1]
        if "-->" not in inline.content.removesuffix(_NOTE_END) and (first.type, last.type) == ("text", "text"):
            first.content = first.content.removeprefix(_NOTE_BEGIN)
            last.content = last.content.removesuffix(_NOTE_END)
            paragraph.attrSet("class", "note")


def _link_addresses(state: StateCore) -> None:
    """Make links of addresses in plain text."""
    for inline in state.tokens:
        if inline.type != "inline" or "://" not in inline.content:
            continue
        depth, children = 0, []
        for child in inline.children or ():
            depth += {"link_open": 1, "link_close": -1}.get(child.type, 0)
            children += list(_linked(child)) if child.type == "text" and depth == 0 else [child]
        inline.children = children


def _linked(token: Token) -> Iterator[Token]:
    """Cut a text at its addresses."""
    from markdown_it.common.normalize_url import normalizeLink, validateLink
    from markdown_it.token import Token as Made

    at = 0
    for match in _BARE_LINK.finditer(token.content):
        address = _address(match[0])
        href = normalizeLink(address)
        if not validateLink(href):
            continue
        yield _text(token.content[at : match.start()])
        yield Made("link_open", "a", 1, attrs={"href": href})
        yield _text(address)
        yield Made("link_close", "a", -1)
        at = match.start() + len(address)
    yield _text(token.content[at:])


def _address(found: str) -> str:
    """Take off what belongs to the sentence around an address."""
    while True:
        end = found[-1:]
        if end and end in _BEHIND_LINK:
            found = found.rstrip(_BEHIND_LINK)
        elif end in (")", "]", "}") and found.count(end) > found.count({")": "(", "]": "[", "}": "{"}[end]):
            found = found[:-1]
        else:
            return found


def _text(content: str) -> Token:
    from markdown_it.token import Token

    return Token("text", "", 0, content=content)


def _image(tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    """Draw a link in the place of an image: a page that is read loads nothing from elsewhere."""
    token = tokens[index]
    source = str(token.attrGet("src") or "")
    words = token.content or source
    return str(Markup('<a href="{}">{}</a>').format(source, words))


def _code(tokens: Sequence[Token], index: int, _options: Any, env: Any) -> str:
    token = tokens[index]
    words = token.info.split()
    language = words[0] if words else ""
    env["coloured"] += len(token.content)
    drawn = colour_code(token.content, language) if env["coloured"] <= MOST_COLOURED else escape(token.content)
    # More than a language says which file it is, or what to do with it.
    title = Markup('<p class="code-of">{}</p>\n').format(" ".join(words)) if len(words) > 1 else ""
    return f'{title}<pre class="code" tabindex="0"><code>{drawn}</code></pre>\n'


def _cell(tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    side = _ASIDE.get(str(tokens[index].attrGet("style") or ""))
    return f'<{tokens[index].tag} class="{side}">' if side else f"<{tokens[index].tag}>"
