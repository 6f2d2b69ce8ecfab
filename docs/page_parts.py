"""What the generated pages are written with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from aiflow.messages import Texts

NOTE = "<!-- Written by docs/generate.py (`make docs`): change the code, not this page. -->\n"
NONE = "–"


class Edition(NamedTuple):
    """The language of a generated page: the program's words in it, and what the page itself says."""

    texts: Texts
    folder: str
    words: Mapping[str, str] = {}

    def say(self, name: str, english: str) -> str:
        """Return what the page says: in English as it stands in the code, else from this edition's words."""
        return self.words[name] if self.words else english

    def headers(self, name: str, *english: str) -> list[str]:
        """Return a table's headers."""
        return self.words[name].split("|") if self.words else [*english]


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def page(title: str, intro: str, *sections: str) -> str:
    """Put a page together."""
    return "\n".join([NOTE, f"# {title}\n", f"{intro.strip()}\n", *sections])


def code(text: object) -> str:
    """Write a value as code; nothing at all as a dash."""
    return f"`{text}`" if text not in (None, "") else NONE


def prose(text: str) -> str:
    """Keep Markdown from taking `<id>` in a sentence for HTML; in code it stands as it is."""
    parts = " ".join(text.split()).split("`")
    return "`".join(part if index % 2 else part.replace("<", "\\<") for index, part in enumerate(parts))
