"""Whether people who see, hear or move otherwise can use a page: what axe-core finds."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SOURCE = Path(__file__).parents[2] / ".venv/npm/node_modules/axe-core/axe.min.js"
BAD = ("serious", "critical")
# The tag of every rule that asks for a colour; to all others both themes are the same page.
COLOURS = "cat.color"
RUN = """async (tag) => (await axe.run({ resultTypes: ['violations'],
  ...(tag && { runOnly: { type: 'tag', values: [tag] } }) })).violations"""


def check(page: Page, *, ignoring: tuple[str, ...] = (), tag: str = "") -> None:
    """Fail for everything serious that axe finds in the page as it is now, of all rules or of those with a tag.

    `ignoring` are ids of its rules.
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_source())
    found: list[dict[str, Any]] = page.evaluate(RUN, tag)
    bad = [
        f"{each['impact']} {each['id']}: {each['help']}\n    " + "\n    ".join(node["html"] for node in each["nodes"])
        for each in found
        if each["impact"] in BAD and each["id"] not in ignoring
    ]
    assert not bad, f"{page.url}\n" + "\n".join(bad)


@functools.cache
def _source() -> str:
    assert SOURCE.is_file(), "`make .venv/.npm` fetches axe-core"
    return SOURCE.read_text("utf-8")
