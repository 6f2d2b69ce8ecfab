"""Nothing typed is ever lost, and nothing that is open, chosen or in focus is taken away while the page changes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from browser.desk import IS_SAME, ask, item, morph, open_live
from browser.window import Watch
from e2e.up import Up

pytestmark = pytest.mark.spec("WEB-3")


@pytest.fixture
def up(scripted: Up) -> Up:
    """A repository where two questions wait."""
    ask(scripted.bench, "RQ-1", "RQ-2")
    return scripted


def test_text_choice_focus_selection_and_scroll_survive_ten_changes(page: Page, up: Up) -> None:
    open_live(page)
    mine, other = item(page, "RQ-1"), item(page, "RQ-2")
    other.locator("textarea").fill("kept")
    mine.get_by_label("overdue").check(force=True)
    field = mine.locator("textarea")
    field.fill("half an answer")
    field.evaluate("(field) => field.setSelectionRange(5, 7)")
    page.evaluate("() => scrollTo(0, 40)")
    top = page.evaluate("() => scrollY")
    morph(page, up, times=10)
    expect(field).to_be_focused()
    expect(field).to_have_value("half an answer")
    assert field.evaluate("(field) => [field.selectionStart, field.selectionEnd]") == [5, 7]
    expect(mine.get_by_label("overdue")).to_be_checked()
    expect(other.locator("textarea")).to_have_value("kept")
    assert page.evaluate("() => scrollY") == top
    assert page.evaluate(IS_SAME)


def test_a_draft_survives_a_reload_and_goes_when_it_is_sent(page: Page, up: Up) -> None:
    open_live(page)
    item(page, "RQ-1").locator("textarea").fill("half an answer")
    page.reload()
    expect(item(page, "RQ-1").locator("textarea")).to_have_value("half an answer")
    page.goto("/activity")
    page.goto("/")  # which no browser fills in by itself
    expect(item(page, "RQ-1").locator("textarea")).to_have_value("half an answer")
    item(page, "RQ-1").locator(".btn--go").click()
    expect(item(page, "RQ-1").locator(".receipt")).to_contain_text("half an answer")
    assert page.evaluate("() => sessionStorage.length") == 0


def test_fields_in_which_nobody_typed_say_what_is_true_by_now(page: Page, up: Up) -> None:
    open_live(page, "/requests/RQ-1")
    priority, labels = page.locator("#meta [name=priority]"), page.locator("#meta [name=labels]")
    for change in ("priority=P3", "labels=theirs"):
        up.bench.aiflow("set", "RQ-1", change)
    expect(priority).to_have_value("P3")
    expect(labels).to_have_value("theirs")
    labels.fill("mine")
    up.bench.aiflow("set", "RQ-1", "priority=P0")
    expect(page.locator("header .pri")).to_have_text("P0")
    expect(priority).to_have_value("P3")
    expect(labels).to_have_value("mine")
    labels.fill("theirs")  # as it was
    up.bench.aiflow("set", "RQ-1", "priority=P1")
    expect(priority).to_have_value("P1")


def test_what_was_chosen_for_a_request_survives_a_language_a_reload_and_what_others_change(
    page: Page, up: Up, watch: Watch
) -> None:
    watch.allow("409")
    open_live(page, "/requests/RQ-1")
    priority, labels = page.locator("#meta [name=priority]"), page.locator("#meta [name=labels]")
    priority.select_option("P3")
    labels.fill("urgent, web")
    page.locator("#rail button[name=lang]").click()
    expect(page.locator("html")).to_have_attribute("lang", "ja")
    expect(priority).to_have_value("P3")
    expect(labels).to_have_value("urgent, web")
    labels.fill("")  # as it was: nothing of it is kept
    for change in ("priority=P0", "labels=theirs"):
        up.bench.aiflow("set", "RQ-1", change)
    page.reload()
    expect(priority).to_have_value("P3")
    expect(labels).to_have_value("theirs")
    page.locator("#meta .btns button").first.click()
    expect(page.get_by_role("alert")).to_contain_text("priority: P0")
    page.get_by_role("alert").locator("a[data-forget]").click()
    expect(priority).to_have_value("P0")
    priority.select_option("P1")
    page.locator("#meta .btns button").first.click()
    expect(page.locator("header .pri")).to_have_text("P1")
    assert page.evaluate("() => sessionStorage.length") == 0


def test_the_text_of_a_request_survives_a_reload_a_refusal_and_what_others_change(
    page: Page, up: Up, watch: Watch
) -> None:
    watch.allow("422")
    open_live(page, "/requests/RQ-1/edit")
    text, save = page.locator("#edit textarea[name=text]"), page.locator("#edit .btn--go")
    typed = text.input_value().replace("status: ", "status: un")
    text.fill(typed)
    up.bench.aiflow("set", "RQ-1", "priority=P0")
    page.reload()
    expect(text).to_have_value(typed)
    save.click()
    expect(page.locator(".notice")).to_be_visible()
    expect(text).to_have_value(typed)
    text.fill(typed.replace("status: un", "status: ") + "\nTyped here.\n")
    save.click()
    expect(page.locator(".md")).to_contain_text("Typed here.")
    expect(page.locator("header .pri")).to_have_text("P0")
    assert page.evaluate("() => sessionStorage.length") == 0


def test_an_error_keeps_the_text_and_stays_above_the_form_while_the_page_changes(
    page: Page, up: Up, watch: Watch
) -> None:
    watch.allow("422")
    open_live(page)
    mine = item(page, "RQ-1")
    mine.locator("textarea").fill("   ")
    mine.locator(".btn--go").click()
    expect(mine.get_by_role("alert")).to_be_visible()
    assert mine.get_by_role("alert").bounding_box()["y"] < mine.locator("textarea").bounding_box()["y"]  # type: ignore[index]
    mine.locator("textarea").fill("now an answer")
    morph(page, up, times=2)
    expect(mine.get_by_role("alert")).to_be_visible()
    expect(mine.locator("textarea")).to_have_value("now an answer")
    mine.locator(".btn--go").click()
    expect(mine.locator(".receipt")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_what_is_open_stays_open(page: Page, up: Up) -> None:
    open_live(page)
    add = """() => { for (const [id, is] of [['mine', false], ['theirs', true]]) {
      const box = document.createElement('details'); box.id = id; box.open = is; document.getElementById('h-run').append(box); } }"""
    page.evaluate(add)  # as a page of the server has them: one closed, one open
    server = """() => document.getElementById('app').addEventListener('htmx:before:swap', (event) => {
      for (const { fragment } of event.detail.tasks) for (const [id, is] of [['mine', false], ['theirs', true]]) {
        const box = document.createElement('details'); box.id = id; box.open = is; fragment.querySelector('#h-run').append(box); } }, true)"""
    page.evaluate(server)
    page.evaluate(
        "() => { document.getElementById('mine').open = true; document.getElementById('theirs').open = false; }"
    )
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    morph(page, up, times=2)
    assert page.evaluate("() => ['mine', 'theirs'].map((id) => document.getElementById(id).open)") == [True, False]
    expect(page.get_by_role("dialog")).to_be_visible()


def test_enter_that_ends_a_conversion_sends_nothing(page: Page, up: Up) -> None:
    open_live(page)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    field = item(page, "RQ-1").locator("textarea")
    field.click()
    keyboard = page.context.new_cdp_session(page)
    keyboard.send("Input.imeSetComposition", {"text": "おそい", "selectionStart": 3, "selectionEnd": 3})
    for told in ({"isComposing": True}, {"keyCode": 229}):
        field.evaluate(
            "(field, told) => field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true, ...told }))",
            told,
        )
        page.evaluate(
            "(told) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'j', bubbles: true, ...told }))",
            told,
        )
    expect(field).to_be_focused()
    keyboard.send("Input.insertText", {"text": "遅い"})
    expect(field).to_have_value("遅い")
    assert sent == []
    field.press("Control+Enter")
    expect(item(page, "RQ-1").locator(".receipt")).to_contain_text("遅い")
    assert len(sent) == 1
