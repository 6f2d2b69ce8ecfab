"""On a phone: what the rail has is in a drawer, several requests are chosen with a thumb, and a row leads where its title does."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.desk import morph, open_live
from browser.look import Look
from browser.window import NewPage
from e2e.up import Up

pytestmark = pytest.mark.spec("WEB-1", "WEB-3")
THUMB = 44


@pytest.fixture
def up(scripted: Up) -> Up:
    """Three requests."""
    scripted.bench.add_request("RQ-2", priority="P2")
    scripted.bench.add_request("RQ-3", priority="P3", depends_on="[RQ-2]")
    return scripted


@pytest.fixture
def look() -> Look:
    """Everything here is seen on a phone."""
    return Look(width=390)


def box(place: Locator) -> dict[str, float]:
    found = place.bounding_box()
    assert found is not None
    return dict(found)  # type: ignore[arg-type]


def test_the_drawer_has_what_the_rail_has(page: Page, up: Up, axe: Callable[..., None]) -> None:
    open_live(page)
    drawer, inside = page.locator("#drawer"), page.locator(".drawer-in")
    drawer.locator("summary").tap()
    assert {each.split("…")[0] for each in inside.locator("a, button").all_inner_texts()} == {
        "Start auto-run",
        "Light or dark",
        "Settings",
        "Agents",
    }
    assert all(box(each)["height"] >= THUMB for each in inside.locator("a, button").all())
    assert box(inside)["y"] > 844 / 2  # a thumb reaches it
    axe(page)
    morph(page, up)  # what happens meanwhile does not close it
    expect(inside).to_be_visible()
    inside.get_by_role("button", name="Light or dark").tap()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.touchscreen.tap(195, 200)  # beside it
    expect(inside).to_be_hidden()
    drawer.locator("summary").tap()
    page.keyboard.press("Escape")
    expect(inside).to_be_hidden()
    expect(drawer.locator("summary")).to_be_focused()
    drawer.locator("summary").tap()
    inside.get_by_role("link", name="Start auto-run").tap()
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(inside).to_be_hidden()


def test_without_a_script_the_theme_is_in_the_drawer_too(new_page: NewPage) -> None:
    page = new_page(java_script_enabled=False)
    page.goto("/doctor")
    page.locator("#drawer > summary").tap()
    page.get_by_role("button", name="Light or dark").tap()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_several_are_chosen_with_a_thumb(page: Page, up: Up) -> None:
    open_live(page, "/backlog")
    expect(page.locator("#rows input").first).to_be_hidden()
    page.get_by_text("Choose several").tap()
    for name in ("RQ-2", "RQ-3"):
        label = page.locator(f"#row-{name} .turn label")
        assert min(box(label)["width"], box(label)["height"]) >= THUMB
        label.tap()
    morph(page, up)
    expect(page.locator("#rows input:checked")).to_have_count(2)
    bar, tabs = box(page.locator("#several")), box(page.locator(".tabbar"))
    assert bar["y"] + bar["height"] <= tabs["y"] + 1  # not below the tabs
    page.locator("#several select[name=priority]").select_option("P0")
    page.locator("#several button[value=set]").tap()
    expect(page.locator("#toasts")).to_contain_text("Done for 2 requests")


def test_a_row_leads_where_its_title_does_and_its_own_links_stay(page: Page) -> None:
    page.goto("/backlog")
    row = page.locator("#row-RQ-3")
    row.tap(position={"x": 180, "y": 12})  # beside the id
    expect(page).to_have_url(re.compile("/requests/RQ-3$"))
    page.goto("/backlog")
    row.locator(".words a").tap()
    expect(page).to_have_url(re.compile("/requests/RQ-2$"))


def test_a_dialog_is_read_from_its_beginning_and_its_buttons_stay_in_view(page: Page) -> None:
    open_live(page)
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    close = dialog.locator("[data-close]")
    expect(close).to_be_focused()
    assert dialog.evaluate("(each) => each.scrollHeight > each.clientHeight"), "it is longer than the screen"
    for beginning in (True, False):
        assert dialog.evaluate("(each) => each.scrollTop === 0") == beginning
        expect(close).to_be_in_viewport(ratio=1)
        dialog.evaluate("(each) => each.scrollTo(0, each.scrollHeight)")
