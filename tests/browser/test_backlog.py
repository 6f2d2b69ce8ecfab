"""The backlog and a request in a browser: search keeps the focus, nothing moves or is lost under the reader."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from browser.look import THEMES, Look, each_size
from browser.window import Fine, Watch
from builders import write_request
from e2e.up import Up

pytestmark = pytest.mark.spec("WEB-1", "WEB-3")
PAGES = {
    "backlog": "/backlog?s=all",
    "graph": "/backlog/graph",
    "request": "/requests/RQ-3",
    "broken": "/requests/RQ-9",
    "new": "/new",
    "edit": "/requests/RQ-1/edit",
}


@pytest.fixture
def up(scripted: Up) -> Up:
    """Five requests, one of them with a mistake."""
    bench = scripted.bench
    bench.add_request("RQ-2", priority="P2", labels="[list]")
    bench.add_request("RQ-3", priority="P3", depends_on="[RQ-2, GONE]")
    bench.add_request("RQ-4", priority="P3", status="draft")
    write_request(bench.root, "RQ-9", "---\npriority: P9\n---\n# <script>alert(1)</script>\n")
    return scripted


def set_key(up: Up, request_id: str, key: str, value: str) -> None:
    """Change a request from outside, as a terminal does."""
    up.bench.aiflow("set", request_id, f"{key}={value}")


@each_size
def test_each_page_can_be_read_by_everybody(page: Page, look: Look, fine: Fine) -> None:
    for name, path in PAGES.items():
        page.goto(path)
        expect(page.locator("h1")).to_be_visible()
        fine(page, name)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= look.width


def test_search_answers_as_it_is_typed_and_keeps_the_focus(page: Page, up: Up) -> None:
    page.goto("/backlog")
    page.keyboard.press("/")
    page.keyboard.type("rq-2")
    expect(page.locator("#rows tr:not(.group)")).to_have_count(1)
    expect(page.locator("#q")).to_be_focused()
    assert page.url.endswith("/backlog?q=rq-2")
    set_key(up, "RQ-2", "title", "Another title")  # what happens meanwhile keeps the search
    expect(page.locator("#row-RQ-2")).to_contain_text("Another title")
    expect(page.locator("#rows tr:not(.group)")).to_have_count(1)
    expect(page.locator("#q")).to_have_value("rq-2")


def test_rows_stay_where_they_are_until_the_reader_wants_the_new_order(page: Page, up: Up) -> None:
    page.goto("/backlog")
    page.locator("#row-RQ-4 input").check()
    set_key(up, "RQ-4", "priority", "P0")
    expect(page.locator("#moved")).to_be_visible()
    expect(page.locator("#said")).to_have_text("The order has changed.")
    expect(page.locator("#rows tr:not(.group)").first).to_have_attribute("id", "row-RQ-1")
    expect(page.locator("#row-RQ-4 input")).to_be_checked()
    page.locator("#moved a").click()
    expect(page.locator("#rows tr:not(.group)").first).to_have_attribute("id", "row-RQ-4")
    expect(page.locator("#moved")).to_be_hidden()
    expect(page.locator("#row-RQ-4 input")).to_be_checked()


def test_several_are_set_at_once(page: Page, up: Up) -> None:
    page.goto("/backlog")
    expect(page.locator("#several")).to_be_hidden()
    for name in ("RQ-2", "RQ-4"):
        page.locator(f"#row-{name} input").check()
    page.locator("#several select[name=priority]").select_option("P0")
    for number in range(3):  # what was chosen stays while the page changes
        with page.expect_response(lambda answer: answer.url.endswith("/backlog")):
            set_key(up, "RQ-3", "labels", f"x{number}")
    page.wait_for_timeout(300)
    expect(page.locator("#several select[name=priority]")).to_have_value("P0")
    page.locator("#several button[value=set]").click()
    expect(page.locator("#toasts")).to_contain_text("Done for 2 requests")
    expect(page.locator("#rows tr:not(.group)").first).to_have_attribute("id", "row-RQ-2")


@pytest.mark.spec("REQ-6")
def test_each_of_several_that_are_accepted_says_live_what_came_of_it(
    page: Page, scripted: Up, axe: Callable[..., None]
) -> None:
    bench, held = scripted.bench, scripted.bench.root / "held.ignored"
    bench.configure(f"[tests]\nunit = \"while [ -e '{held}' ]; do sleep 0.02; done\"")
    bench.commit()
    for name in ("RQ-1", "RQ-2"):
        bench.agent.does("implementer", f"write('app.txt', '{name}\\n')\ndone()")
        bench.run(name)
    held.touch()
    page.goto("/backlog")
    for name in ("RQ-1", "RQ-2"):
        page.locator(f"#row-{name} input").check()
    page.locator("#several button[value=accept]").click()
    list_of = page.locator("[data-accepting]")
    expect(list_of.locator("li")).to_have_count(2)
    expect(list_of.locator("li").first).to_have_attribute("data-turn", "run")
    expect(list_of).to_contain_text("RQ-2 waits its turn")
    axe(page)
    held.unlink()
    expect(list_of.locator("li").first).to_contain_text("is accepted")
    expect(list_of.locator("li").last).to_contain_text("conflict")
    expect(list_of).to_contain_text("2 of 2 decided")
    expect(page.locator("#row-RQ-1")).to_have_count(0)  # the page changed around the list
    expect(list_of).not_to_have_attribute("data-goes-on", "")
    list_of.locator("li").last.get_by_role("link", name="Open the run").click()
    page.wait_for_url("**/requests/RQ-2/runs/*")


@pytest.mark.parametrize("look", [Look(theme=theme) for theme in THEMES], ids=str)
def test_a_conflict_is_shown_in_its_place_and_nothing_typed_is_lost(
    page: Page, up: Up, watch: Watch, axe: Callable[..., None]
) -> None:
    watch.allow("409")
    page.goto("/requests/RQ-2")
    page.locator("#meta select[name=priority]").select_option("P1")
    set_key(up, "RQ-2", "priority", "P0")
    expect(page.locator("header .pri")).to_have_text("P0")
    expect(page.locator("#meta select[name=priority]")).to_have_value("P1")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#meta .notice")).to_contain_text("EDIT_CONFLICT")
    axe(page)
    page.get_by_role("button", name="Save mine").click()
    expect(page.locator("#meta .notice")).to_have_count(0)
    expect(page.locator("header .pri")).to_have_text("P1")
    page.goto("/requests/RQ-2/edit")
    set_key(up, "RQ-2", "priority", "P2")
    page.locator("textarea[name=text]").fill("mine")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("EDIT_CONFLICT")
    expect(page.locator("textarea[name=text]")).to_have_value("mine")
    axe(page)


def test_a_request_is_written_and_opened(page: Page) -> None:
    page.goto("/backlog")
    page.keyboard.press("c")
    page.wait_for_url("**/new")
    page.locator("input[name=title]").fill("Do <it>")
    page.locator("textarea[name=text]").fill("So.")
    page.get_by_role("button", name="Save as draft").click()
    page.wait_for_url("**/requests/RQ-*")
    expect(page.locator("h1")).to_have_text("Do <it>")
    page.keyboard.press("u")
    expect(page.locator("#rows")).to_contain_text("Do <it>")
    page.goto("/new")
    expect(page.locator("input[name=title]")).to_have_value("")
