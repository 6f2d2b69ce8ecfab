"""What the tests in a real browser share: a demo with a server, a window in front of it, and what judges the window.

A window stands in front of `up`, a fresh demo. A module whose tests only look has a fixture `up` that returns `worked`, a
demo that was worked through and that many share; one whose tests say when an agent ends returns `scripted`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from browser import axe as axe_core
from browser import chromium
from browser.demo_bench import demo_up, serving
from browser.look import THEMES, Look
from browser.window import PATIENCE_MILLISECONDS, Fine, NewPage, Picture, Watch, Windows
from e2e.bench import Bench
from e2e.up import Up

# Colours change in a moment; what is measured before is neither the one nor the other.
UNTIL_STILL = """async () => { const frame = () => new Promise((go) => requestAnimationFrame(go));
  await frame(); await frame(); await Promise.all(document.getAnimations().map((each) => each.finished)); }"""
expect.set_options(timeout=PATIENCE_MILLISECONDS)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests in this folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chrome() -> Iterator[Browser]:
    """Give a real browser, one for each worker."""
    found = chromium.find()
    if found is None:
        pytest.fail(chromium.MISSING, pytrace=False)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=found.path, args=[*found.args], timeout=PATIENCE_MILLISECONDS
        )
        yield launched
        launched.close()


@pytest.fixture
def look() -> Look:
    """Give how the page is looked at; `browser.look` has marks for others (`each_size`, `both_languages`)."""
    return Look()


@pytest.fixture
def up(look: Look, tmp_path: Path) -> Iterator[Up]:
    """Give a server of a fresh demo in the look's language, which a test may change as it likes."""
    with demo_up(tmp_path, look.language) as given:
        yield given


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Bench:
    """Give a repository with the request RQ-1 and a scripted agent, which `e2e.up.hold` holds at work."""
    return Bench(repository, tmp_path)


@pytest.fixture
def scripted(bench: Bench) -> Iterator[Up]:
    """Give a server of that repository."""
    with serving(bench) as given:
        yield given


@pytest.fixture(scope="session")
def worked_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Up]]:
    """Give servers of demos that were worked through, one for each language."""
    with contextlib.ExitStack() as servers:
        kept: dict[str, Up] = {}

        def give(language: str) -> Up:
            if language not in kept:
                folder = tmp_path_factory.mktemp(f"worked-{language}")
                kept[language] = servers.enter_context(demo_up(folder, language, is_worked=True))
            return kept[language]

        yield give


@pytest.fixture
def worked(look: Look, worked_in: Callable[[str], Up]) -> Up:
    """Give a server of a demo that was worked through, in the look's language; whoever takes it only looks."""
    return worked_in(look.language)


@pytest.fixture
def watch() -> Watch:
    """Give what hears every complaint of every window of the test; `watch.allow(pattern)` for those that must come."""
    return Watch()


@pytest.fixture
def new_page(chrome: Browser, up: Up, look: Look, watch: Watch) -> Iterator[NewPage]:
    """Give a way to open windows; the test fails for what any of them complains of."""
    windows = Windows(chrome, watch)
    usual_look, usual_up = look, up

    def give(*, look: Look | None = None, up: Up | None = None, is_signed_in: bool = True, **more: object) -> Page:
        return windows.open(up or usual_up, look or usual_look, is_signed_in=is_signed_in, **more)

    yield give
    windows.close()
    watch.judge()


@pytest.fixture
def page(new_page: NewPage) -> Page:
    """Give a window of somebody who is signed in, empty yet."""
    return new_page()


@pytest.fixture
def visitor(new_page: NewPage) -> Page:
    """Give a window of somebody who is not signed in."""
    return new_page(is_signed_in=False)


@pytest.fixture
def axe() -> Callable[..., None]:
    """Give `axe(page, ignoring=(), only=())`: no serious or critical finding."""
    return axe_core.check


@pytest.fixture
def picture(look: Look) -> Picture:
    """Give `picture(page, name)`."""

    def take(page: Page, name: str, theme: str = "") -> Path | None:
        folder = os.environ.get("AIFLOW_PICTURES")
        if not folder:
            return None
        path = Path(folder, f"{name}-{look._replace(theme=theme or look.theme)}.png")
        page.screenshot(path=path, full_page=True, animations="disabled")
        return path

    return take


@pytest.fixture
def fine(look: Look, axe: Callable[..., None], picture: Picture) -> Fine:
    """Give `fine(page, name)`: in both themes nothing that axe finds, and a picture."""

    def judge(page: Page, name: str = "") -> None:
        for theme in sorted(THEMES, key=lambda each: each == look.theme):  # it is left as it was
            page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            page.evaluate(UNTIL_STILL)
            axe(page, only=() if theme == look.theme else axe_core.COLOURS)
            if name:
                picture(page, name, theme)

    return judge
