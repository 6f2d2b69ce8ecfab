"""Every page in every look: nothing inaccessible, nothing against the policy, one polite voice; and the morning in print."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from browser.look import LOOKS, Look, every_look
from browser.window import NewPage, Picture
from e2e.up import Up

PAGES = {
    "home": "/",
    "backlog": "/backlog",
    "request": "/requests/TODO-4",
    "new": "/new",
    "queue": "/queue",
    "doctor": "/doctor",
    "activity": "/activity",
    "settings": "/settings",
    "agents": "/agents",
    "evening": "/auto/start",
    "keys": "/keys",
}


@pytest.fixture
def up(worked: Up) -> Up:
    """Nothing here changes the demo."""
    return worked


@pytest.fixture
def pages(up: Up) -> dict[str, str]:
    """Give every page's address by its name: a run's has an id in it. In its other states `test_run_page` looks at it."""
    [run] = (up.bench.root / "runs" / "TODO-4").glob("RUN-*")
    return {
        **PAGES,
        "run": f"/requests/TODO-4/runs/{run.name}",
        "run-log": f"/requests/TODO-4/runs/{run.name}?step=plan",
    }


@every_look
@pytest.mark.spec("WEB-3")
def test_axe_finds_nothing_on_any_page(
    page: Page, pages: dict[str, str], axe: Callable[..., None], picture: Picture
) -> None:
    for name, path in pages.items():
        page.goto(path)
        axe(page)
        picture(page, name)
        overflow = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, f"{path} scrolls sideways by {overflow} px"
    page.goto("/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    axe(page)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_be_visible()
    axe(page)
    picture(page, "palette")


@pytest.mark.parametrize("look", [each for each in LOOKS if each.is_phone and each.theme == "light"], ids=str)
def test_on_a_phone_everything_can_be_hit_by_a_finger(page: Page, look: Look, pages: dict[str, str]) -> None:
    small = """() => [...document.querySelectorAll('button, a.btn, nav:not(.crumbs) a, .field, .choice')]
      .filter((each) => each.checkVisibility() && each.getBoundingClientRect().width > 1)
      .map((each) => [each.outerHTML.slice(0, 90), each.getBoundingClientRect().height])
      .filter(([, height]) => height < 40)"""
    for path in pages.values():
        page.goto(path)
        assert page.evaluate(small) == [], path
    expect(page.locator(".tabbar")).to_be_visible()
    assert page.locator(".tabbar").bounding_box()["y"] > 700  # type: ignore[index]


def test_one_place_speaks_politely(page: Page) -> None:
    for path in ("/", "/queue", "/doctor", "/activity", "/keys"):
        page.goto(path)
        assert page.locator("[aria-live=polite], [role=status]").count() == 1
        assert page.locator("[role=alert]:not([hidden])").count() == 0


def test_what_waits_is_announced(new_page: NewPage, scripted: Up) -> None:
    from browser.desk import ask, open_live  # what changes needs a place of its own

    page = new_page(up=scripted)
    open_live(page)
    ask(scripted.bench, "RQ-1")
    expect(page.locator("#said")).to_have_text("1 waits for you")


def test_the_morning_prints_what_waits_without_the_frame(page: Page) -> None:
    page.goto("/")
    page.emulate_media(media="print")
    for gone in (".rail", ".tabbar", ".topbar", "#waiting .btn", "#waiting textarea"):
        assert page.locator(f"{gone} >> visible=true").count() == 0, gone
    for there in ("#h-lead", "#wait-TODO-4", "#wait-TODO-4 .ask"):
        expect(page.locator(there)).to_be_visible()


def test_under_reduced_motion_nothing_moves(page: Page) -> None:
    page.goto("/")
    moving = "() => document.getAnimations().filter((each) => each.playState === 'running').length"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.evaluate(moving) == 0
