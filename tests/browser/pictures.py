"""Pictures of every page in every state: both languages, light and dark, wide and narrow."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Error, Page, sync_playwright
from playwright.sync_api import TimeoutError as TooLateError

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from browser import axe, chromium  # noqa: E402
from browser.desk import open_live  # noqa: E402
from browser.long_night import MORNING as DAWN  # noqa: E402
from browser.look import LANGUAGES, LOOKS, THEMES, Look  # noqa: E402
from browser.picture_deeds import DEEDS, ENDS, just_look, undo_nothing  # noqa: E402
from browser.picture_scenes import NIGHT, SCENES  # noqa: E402
from browser.window import CUT_OFF, Watch, Windows  # noqa: E402
from e2e.up import Up  # noqa: E402

REPLACE = """([was, is]) => { const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(was, is); }"""
# What a window is told besides, where it is another one than that of somebody who is signed in.
OTHERWISE = {
    "sign-in": {"is_signed_in": False},
    "sign-in-wrong": {"is_signed_in": False},
    "no-script": {"java_script_enabled": False},
}
ON_PHONES = {"drawer"}
FOR_DOCS = {"morning": "/", "run": NIGHT["run-night"]}
Pages = Mapping[str, str]


def take_all(folder: Path, wanted: tuple[str, ...] = ("*",)) -> tuple[int, list[str]]:
    """Take the pictures whose names fit one of the patterns; return how many there are, and what is wrong with a page."""
    found = chromium.find()
    if found is None:
        sys.exit(chromium.MISSING)
    folder.mkdir(parents=True, exist_ok=True)
    taken, album = 0, _Album(folder)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as place:
        browser = playwright.chromium.launch(executable_path=found.path, args=[*found.args])
        for language in LANGUAGES:
            for scene, names in SCENES.items():
                looks = {name: _looks(name, language, wanted) for name in names}
                if not any(looks.values()) and not (names == [*NIGHT] and "docs" in wanted):
                    continue
                with scene(Path(place, f"{scene.__name__}-{language}"), language) as (up, pages):
                    watch = _watch()
                    wanted_looks = {name: looks[name] for name in pages}
                    taken += _take(Windows(browser, watch), up, wanted_looks, pages, album)
                    with album.kept(f"{scene.__name__}-{language}"):
                        watch.judge()
                    if pages is NIGHT and {"*", "docs"} & {*wanted}:
                        taken += _take_for_docs(Windows(browser, Watch()), up, language, folder)
        browser.close()
    return taken, album.wrong


class _Album:
    """Where pictures go, and what was wrong with the pages: told when all of them are taken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wrong: list[str] = []

    @contextlib.contextmanager
    def kept(self, name: str) -> Iterator[None]:
        """Keep what fails in the block, under a name."""
        try:
            yield
        except (AssertionError, Error) as error:
            self.wrong.append(f"{name}: {error}")


def _watch() -> Watch:
    """Hear every complaint of a scene but those that its pages are about."""
    watch = Watch()
    for each in ("the server responded with a status of (401|404|409)", CUT_OFF):
        watch.allow(each, must_come=False)
    return watch


def _looks(name: str, language: str, wanted: tuple[str, ...]) -> tuple[Look, ...]:
    """Return the looks in which a picture is wanted."""
    return tuple(
        look
        for look in LOOKS
        if look.language == language
        and (look.is_phone or name not in ON_PHONES)
        and any(fnmatch(f"{name}-{look}", each) or name == each for each in wanted)
    )


def _take(windows: Windows, up: Up, looks: Mapping[str, tuple[Look, ...]], pages: Pages, album: _Album) -> int:
    """Take the pictures of one scene, and have axe look at each; those of its end come last."""
    last: dict[str, list[tuple[Page, Path]]] = {name: [] for name in ENDS}
    for look in sorted({look for each in looks.values() for look in each}, key=LOOKS.index):
        signed_in = _at_its_time(windows.open(up, look), pages)
        for name, path in pages.items():
            to = album.folder / f"{name}-{look}.png"
            if look in looks[name] and name in ENDS:
                last[name].append((windows.open(up, look), to))
                open_live(last[name][-1][0], path)
            elif look in looks[name]:
                page = windows.open(up, look, **OTHERWISE[name]) if name in OTHERWISE else signed_in
                with album.kept(to.stem):
                    page.goto(path)
                    _settle(page)
                    undo = DEEDS.get(name, just_look)(page, up) or undo_nothing
                    _shoot(page, to)
                    try:
                        _judge(page, look, name)
                    finally:
                        undo()
    for name, opened in last.items():
        if opened:
            up = ENDS[name]([page for page, _ in opened], up)
        for page, to in opened:
            _shoot(page, to)
            with album.kept(to.stem):
                axe.check(page)
    windows.close()
    return sum(map(len, looks.values()))


def _at_its_time(page: Page, pages: Pages) -> Page:
    """Have a browser in front of a moment that does not pass live in it, too."""
    if pages is NIGHT:
        page.clock.set_fixed_time(DAWN)
    return page


def _shoot(page: Page, to: Path) -> None:
    """Take the whole page; what is behind a dialog or below a bar that stays cannot be scrolled to."""
    is_covered = page.locator("dialog[open], #drawer[open], .lost:not([hidden])").count() > 0
    seen = page.viewport_size
    if not is_covered and seen and seen["width"] < 600:  # on a phone a bar at the end of the screen would hide a part
        for _ in range(3):  # a log grows with the screen
            page.set_viewport_size({**seen, "height": page.evaluate("() => document.documentElement.scrollHeight")})
    if not is_covered:
        page.evaluate("() => scrollTo(0, 0)")
    page.screenshot(path=to, full_page=not is_covered, animations="disabled")
    if seen:
        page.set_viewport_size(seen)


def _judge(page: Page, look: Look, name: str) -> None:
    """Fail for what axe finds, all of it in one theme, and for a page that scrolls sideways; axe itself is a script."""
    if OTHERWISE.get(name, {}).get("java_script_enabled", True):
        axe.check(page, only=() if look.theme == THEMES[0] else axe.COLOURS)
    overflow = (
        page.evaluate("() => document.documentElement.scrollWidth") - look.width
    )  # a phone's window grows with it
    assert overflow <= 0, f"scrolls sideways by {overflow} px"


def _take_for_docs(windows: Windows, up: Up, language: str, folder: Path) -> int:
    """Take the first screen of the pages that the READMEs and the guide show; where the demo lay is nobody's business."""
    page = _at_its_time(windows.open(up, Look(language), viewport={"width": 1280, "height": 800}), NIGHT)
    for name, path in FOR_DOCS.items():
        page.goto(path)
        page.locator("#live").wait_for()
        _settle(page)
        page.wait_for_timeout(2_000)  # it fetches itself again when it has connected
        page.evaluate(REPLACE, [str(up.bench.root), "~/todo"])
        page.evaluate(REPLACE, [urlsplit(up.url).netloc, "127.0.0.1:4310"])
        page.screenshot(path=folder / f"{name}.{language}.png", animations="disabled")
    windows.close()
    return len(FOR_DOCS)


def _settle(page: Page) -> None:
    """Wait until a log shows its lines, where there is one with any."""
    if page.locator("[data-log]").count():
        with contextlib.suppress(TooLateError):
            page.locator(".log .v").first.wait_for(state="attached", timeout=3_000)


if __name__ == "__main__":
    to, *wanted = sys.argv[1:]
    taken, wrong = take_all(Path(to), tuple(wanted) or ("*",))
    print(f"{taken} pictures in {to}")
    if wrong:
        sys.exit("\n".join(("What is wrong with them:", *wrong)))
