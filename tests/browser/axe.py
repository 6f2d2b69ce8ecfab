"""Whether people who see, hear or move otherwise can use a page: what axe-core finds."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SOURCE = Path(__file__).parents[2] / ".venv/npm/node_modules/axe-core/axe.min.js"
BAD = ("serious", "critical")
# Every rule that asks for a colour; to all others both themes are the same page.
COLOURS = ("color-contrast", "link-in-text-block")
RUN = """async (rules) => (await axe.run({ resultTypes: ['violations'],
  ...(rules.length && { runOnly: { type: 'rule', values: rules } }) })).violations"""


def check(page: Page, *, ignoring: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> None:
    """Fail for everything serious that axe finds in the page as it is now; both are ids of its rules."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_source())
    found: list[dict[str, Any]] = page.evaluate(RUN, [*only])
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
