"""Hidden text (SEC): its kinds, and its place in a text."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class HiddenKind(StrEnum):
    """Why a person does not see a piece of text."""

    COMMENT = "comment"
    DEFINITION = "definition"
    ELEMENT = "element"
    ZERO_WIDTH = "zero_width"
    DIRECTION = "direction"
    TAG = "tag"
    VARIATION = "variation"
    BLANK = "blank"
    CONTROL = "control"
    FORMAT = "format"


# What a Markdown page does not show; all else are characters that are invisible anywhere.
MARKUP = frozenset({HiddenKind.COMMENT, HiddenKind.DEFINITION, HiddenKind.ELEMENT})


class Cut(NamedTuple):
    """A hidden piece of a text, and what an agent gets instead."""

    start: int
    end: int
    kind: HiddenKind
    instead: str = ""
