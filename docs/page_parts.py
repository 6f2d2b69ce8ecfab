"""What the generated pages are written with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTE = "<!-- Written by docs/generate.py (`make docs`): change the code, not this page. -->\n"
NONE = "–"


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
