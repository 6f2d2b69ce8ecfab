"""Pictures of every page of a demo that was worked through: both languages, light and dark, wide and narrow."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from browser import chromium  # noqa: E402
from browser.demo_bench import demo_up  # noqa: E402
from browser.look import LANGUAGES, LOOKS  # noqa: E402
from browser.window import Watch, Windows  # noqa: E402
from e2e.up import Up  # noqa: E402

# Name -> path. `{run}` is the newest run of TODO-3, which is done; `{asking}` that of TODO-4, which waits for an answer.
PAGES = {"sign-in": "/sign-in", "home": "/"}
OPEN = frozenset({"sign-in"})


def take_all(folder: Path) -> int:
    """Take the pictures and return how many there are."""
    found = chromium.find()
    if found is None:
        sys.exit(chromium.MISSING)
    folder.mkdir(parents=True, exist_ok=True)
    taken = 0
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as place:
        browser = playwright.chromium.launch(executable_path=found.path, args=[*found.args])
        for language in LANGUAGES:
            with demo_up(Path(place, language), language, is_worked=True) as up:
                taken += _take(Windows(browser, Watch()), up, language, folder)
        browser.close()
    return taken


def _take(windows: Windows, up: Up, language: str, folder: Path) -> int:
    """Take the pictures in one language."""
    taken = 0
    runs = {"run": up.bench.run_ids("TODO-3")[-1], "asking": up.bench.run_ids("TODO-4")[-1]}
    for look in (each for each in LOOKS if each.language == language):
        signed_in, visitor = windows.open(up, look), windows.open(up, look, is_signed_in=False)
        for name, path in PAGES.items():
            page = visitor if name in OPEN else signed_in
            page.goto(path.format(**runs))
            page.screenshot(path=folder / f"{name}-{look}.png", full_page=True, animations="disabled")
            taken += 1
        windows.close()
    return taken


if __name__ == "__main__":
    to = Path(sys.argv[1])
    print(f"{take_all(to)} pictures in {to}")
