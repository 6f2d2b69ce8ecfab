"""Pictures of every page in every state: both languages, light and dark, wide and narrow."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from playwright.sync_api import TimeoutError as TooLateError

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from browser import chromium  # noqa: E402
from browser.demo_bench import DemoBench, demo_up, serving  # noqa: E402
from browser.look import LANGUAGES, LOOKS, Look  # noqa: E402
from browser.window import Watch, Windows  # noqa: E402
from e2e.bench import git  # noqa: E402
from e2e.up import Up  # noqa: E402
from real_engine import engine_at  # noqa: E402
from run_page_runs import MADE, REQUESTS, id_of, path_of, worked_on, write_log, write_run  # noqa: E402

# Name -> path, each in the scene that shows it best. `{run}` is the newest run of TODO-3, which is done.
MORNING = {
    "sign-in": "/sign-in",
    "home": "/",
    "backlog": "/backlog",
    "backlog-graph": "/backlog/graph",
    "request": "/requests/TODO-4",
    "request-edit": "/requests/TODO-4/edit",
    "new": "/new",
    "run": "/requests/TODO-3/runs/{run}",
    "run-diff": "/requests/TODO-3/runs/{run}?view=diff",
    "send-back": "/requests/TODO-3/send-back",
    "evening": "/auto/start",
    "queue": "/queue",
    "doctor": "/doctor",
    "activity": "/activity",
    "settings": "/settings",
    "agents": "/agents",
    "keys": "/keys",
    "not-found": "/requests/NOWHERE",
}
FRESH = {"home-before": "/", "backlog-before": "/backlog", "request-before": "/requests/TODO-1"}
EMPTY = {"home-first": "/", "backlog-empty": "/backlog", "queue-empty": "/queue", "activity-empty": "/activity"}
HIDE_PATH = """(path) => { const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(path, '~/todo'); }"""
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
            for scene in (_morning, _fresh, _empty, _runs):
                with scene(Path(place, f"{scene.__name__}-{language}"), language) as (up, pages):
                    taken += _take(Windows(browser, Watch()), up, language, pages, folder)
                    taken += (
                        _take_for_readme(Windows(browser, Watch()), up, language, folder) if scene is _morning else 0
                    )
        browser.close()
    return taken


Scene = Iterator[tuple[Up, Mapping[str, str]]]


@contextlib.contextmanager
def _morning(place: Path, language: str) -> Scene:
    """Show a demo that was worked through."""
    with demo_up(place, language, is_worked=True) as up:
        run = up.bench.run_ids("TODO-3")[-1]
        yield up, {name: path.format(run=run) for name, path in MORNING.items()}


@contextlib.contextmanager
def _fresh(place: Path, language: str) -> Scene:
    """Show a demo in which nothing has run yet."""
    with demo_up(place, language) as up:
        yield up, FRESH


@contextlib.contextmanager
def _empty(place: Path, language: str) -> Scene:
    """Show a project without a request."""
    with serving(EmptyBench(place, language)) as up:
        yield up, EMPTY


@contextlib.contextmanager
def _runs(place: Path, language: str) -> Scene:
    """Show a run in every state, and the pages around one that is at work."""
    with demo_up(place, language) as up:
        engine = engine_at(up.bench.root)
        for name in MADE:
            write_run(up.bench.root, name)
            run = engine.runs.load(REQUESTS[name], id_of(name))
            assert run is not None
            for number in (1, 2):
                write_log(
                    engine, run, number, f"implementer S0{number} attempt 1", "Read a.py\nFAIL: test_a (tests.T)\n"
                )
        with worked_on(up.bench.root, "running"):
            paths = {f"run-{name}": path_of(name) for name in MADE}
            running = {"home-running": "/", "backlog-running": "/backlog", "queue-running": "/queue"}
            yield up, {**paths, **running, "replan": f"{path_of('tests_failed')}/replan"}


class EmptyBench(DemoBench):
    """A project that was begun, with no request in it."""

    def __init__(self, folder: Path, language: str) -> None:
        """Make it."""
        super().__init__(folder, language)
        for path in (self.root / "requests").glob("*.md"):
            path.unlink()
        git(self.root, "commit", "-qam", "Nothing to do")


def _take(windows: Windows, up: Up, language: str, pages: Mapping[str, str], folder: Path) -> int:
    """Take the pictures of one scene."""
    taken = 0
    for look in (each for each in LOOKS if each.language == language):
        signed_in, visitor = windows.open(up, look), windows.open(up, look, is_signed_in=False)
        for name, path in pages.items():
            page = visitor if name in OPEN else signed_in
            page.goto(path)
            _settle(page)
            page.screenshot(path=folder / f"{name}-{look}.png", full_page=True, animations="disabled")
            taken += 1
        windows.close()
    return taken


def _take_for_readme(windows: Windows, up: Up, language: str, folder: Path) -> int:
    """Take the first screen of the morning, which the READMEs show; where the demo lay is nobody's business."""
    page = windows.open(up, Look(language), viewport={"width": 1280, "height": 800})
    page.goto("/")
    page.evaluate(HIDE_PATH, str(up.bench.root))
    page.screenshot(path=folder / f"morning.{language}.png", animations="disabled")
    windows.close()
    return 1


def _settle(page: Page) -> None:
    """Wait until a log shows its lines, where there is one with any."""
    if page.locator("[data-log]").count():
        with contextlib.suppress(TooLateError):
            page.locator(".log .v").first.wait_for(state="attached", timeout=3_000)


if __name__ == "__main__":
    to = Path(sys.argv[1])
    print(f"{take_all(to)} pictures in {to}")
