"""The keyboard (WEB-3): every page, item and answer without a pointer; keys rest while somebody types."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from browser.desk import IS_SAME, ask, item, open_live
from e2e.up import Up
from run_page_runs import REQUESTS, write_run

pytestmark = pytest.mark.spec("WEB-3")
ROW = "() => document.activeElement.closest('#waiting > li')?.id"


@pytest.fixture
def up(scripted: Up) -> Up:
    """A repository where two questions wait."""
    ask(scripted.bench, "RQ-1", "RQ-2")
    return scripted


def test_g_and_a_letter_lead_to_each_page_and_u_back(page: Page, up: Up) -> None:
    open_live(page)
    for letter, path in (("b", "/backlog"), ("q", "/queue"), ("d", "/doctor"), ("a", "/activity"), ("m", "/")):
        page.keyboard.press("g")
        page.keyboard.press(letter)
        expect(page).to_have_url(up.url + path)
        page.wait_for_load_state()
        if path != "/":
            page.keyboard.press("u")
            expect(page).to_have_url(f"{up.url}/")
            page.wait_for_load_state()


def test_j_and_k_move_the_focus_and_figures_and_a_answer(page: Page, up: Up) -> None:
    open_live(page)
    page.keyboard.press("j")
    assert page.evaluate(ROW) == "wait-RQ-1"
    page.keyboard.press("j")
    assert page.evaluate(ROW) == "wait-RQ-2"
    expect(item(page, "RQ-2")).to_have_attribute("aria-current", "true")
    page.keyboard.press("2")
    expect(item(page, "RQ-2").get_by_label("overdue")).to_be_checked()
    page.keyboard.press("k")
    assert page.evaluate(ROW) == "wait-RQ-1"
    page.keyboard.press("a")
    expect(item(page, "RQ-1").locator("textarea")).to_be_focused()
    page.keyboard.type("jk u?c1 gq")
    expect(item(page, "RQ-1").locator("textarea")).to_have_value("jk u?c1 gq")
    expect(page).to_have_url(f"{up.url}/")
    page.keyboard.press("Control+Enter")
    expect(item(page, "RQ-1").locator(".receipt")).to_contain_text("jk u?c1 gq")
    expect(item(page, "RQ-1").locator(".receipt")).to_be_focused()
    expect(page.locator("#run-RQ-1")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page).to_have_url(f"{up.url}/requests/RQ-1/runs/{up.bench.run_ids()[0]}")


def test_a_row_of_the_backlog_is_reached_and_opened_by_keys(page: Page, up: Up) -> None:
    page.goto("/backlog?s=all")
    ids = page.locator("#rows tr:not(.group)").evaluate_all("(rows) => rows.map((row) => row.id)")
    for row in ids:
        page.keyboard.press("j")
        assert page.evaluate("() => document.activeElement.closest('tr')?.id") == row
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{up.url}/requests/{ids[-2].removeprefix('row-')}")


def test_what_is_recommended_and_asked_first_opens_its_dialog(page: Page, up: Up) -> None:
    write_run(up.bench.root, "too_large")
    open_live(page)
    waits = item(page, REQUESTS["too_large"])
    waits.locator(".head a").focus()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Make a new plan for")


def test_escape_leaves_the_dialog_then_the_field_and_the_focus_goes_back(page: Page, up: Up) -> None:
    open_live(page)
    opener = page.locator("#rail a[href='/keys']")
    opener.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(opener).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    opener.evaluate("(link) => link.replaceWith(link.cloneNode(true))")  # the page has changed below
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()
    page.keyboard.press("a")
    expect(item(page, "RQ-1").locator("textarea")).to_be_focused()
    page.keyboard.press("Escape")
    expect(item(page, "RQ-1").locator("textarea")).not_to_be_focused()


def test_the_palette_finds_pages_requests_and_actions(page: Page, up: Up) -> None:
    open_live(page)
    dialog = page.get_by_role("dialog")
    page.keyboard.press("Control+k")
    expect(dialog.get_by_role("combobox")).to_be_focused()
    expect(dialog.get_by_role("option", name="Doctor")).to_be_visible()
    page.keyboard.type("about rq-2")
    expect(dialog.get_by_role("option")).to_have_count(1)
    expect(dialog.get_by_role("option", name="RQ-2")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Control+a")
    page.keyboard.type("sett")
    expect(dialog.get_by_role("option", name="Settings")).to_be_visible()
    page.keyboard.press("Control+a")
    page.keyboard.type("zzz")
    expect(dialog.get_by_role("option")).to_have_count(0)
    expect(dialog.get_by_text("Nothing matches.")).to_be_visible()
    page.keyboard.press("Control+a")
    page.keyboard.type("keyb")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("heading", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Meta+k")  # as on a Mac
    page.keyboard.type("light")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("Control+k")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{up.url}/queue")


def test_another_language_reaches_what_is_around_the_page_and_the_palette(page: Page, up: Up) -> None:
    open_live(page)
    page.context.add_cookies([{"name": "aiflow_lang", "value": "ja", "url": up.url}])  # as another tab does it
    page.evaluate("() => document.body.dispatchEvent(new Event('aiflow:done'))")
    expect(page.locator("html")).to_have_attribute("lang", "ja")
    expect(page.locator("#lost b")).to_have_text("aiflow との接続が切れました。")
    expect(page.locator("#lost-again")).to_have_attribute("data-now", "再接続しています…")
    expect(page.locator("#live")).to_contain_text("接続中")
    expect(page.locator(".skip")).to_have_text("本文へ移動")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="ページ・Request・操作")).to_be_focused()
    expect(page.get_by_role("option").first).to_contain_text("朝の確認")
    assert page.evaluate(IS_SAME)


def test_nothing_destructive_has_a_single_key(page: Page, up: Up) -> None:
    open_live(page)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.keyboard.press("j")
    for key in "bdefhilnopqrstvwxyz0123456789[]{}!.,;-+":
        page.keyboard.press(key)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page).to_have_url(f"{up.url}/")
    assert sent == []
