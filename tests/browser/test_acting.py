"""What a person does on the page: busy at once, a receipt in its place, errors in place, once, and nothing jumps."""

from __future__ import annotations

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from browser.desk import answer_from_terminal, ask, item, morph, open_live
from browser.window import NewPage, Watch
from e2e.up import Up, let_go, wait_for_state
from waiting import wait_until


@pytest.fixture
def up(scripted: Up) -> Up:
    """A repository where a question waits."""
    ask(scripted.bench, "RQ-1")
    return scripted


def top(page: Page, request_id: str) -> float:
    """Where an item is."""
    return float(item(page, request_id).evaluate("(item) => item.getBoundingClientRect().top"))


def test_it_is_busy_at_once_and_sent_once(page: Page, up: Up) -> None:
    open_live(page)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    mine = item(page, "RQ-1")
    mine.locator("textarea").fill("late")
    busy = """(form) => { const button = form.querySelector('.btn--go'); const before = performance.now();
      for (let n = 0; n < 5; n++) { button.click(); form.requestSubmit(button); }
      form.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true }));
      return [button.getAttribute('aria-busy'), button.getAttribute('aria-disabled'), performance.now() - before]; }"""
    is_busy, is_disabled, milliseconds = mine.locator("form").evaluate(busy)
    assert (is_busy, is_disabled) == ("true", "true")
    assert milliseconds < 100
    expect(mine.locator(".receipt")).to_contain_text("late")
    assert len(sent) == 1


def test_a_receipt_keeps_its_place_until_the_pointer_has_left(page: Page, up: Up) -> None:
    ask(up.bench, "RQ-2", "RQ-3")
    open_live(page)
    before = [top(page, each) for each in ("RQ-1", "RQ-2", "RQ-3")]
    mine = item(page, "RQ-1")
    mine.get_by_label("late", exact=True).check(force=True)
    mine.locator(".btn--go").click()
    expect(mine.locator(".receipt")).to_contain_text("late")
    expect(page.locator("#run-RQ-1")).to_be_visible()  # the page knows that it goes on
    morph(page, up, times=2)
    expect(mine.locator(".receipt")).to_be_visible()
    assert [top(page, each) for each in ("RQ-1", "RQ-2", "RQ-3")] == before
    item(page, "RQ-2").locator("textarea").hover()
    page.wait_for_timeout(5000)  # longer than a receipt is shown at least
    assert [top(page, each) for each in ("RQ-1", "RQ-2", "RQ-3")] == before
    page.mouse.move(2, 2)
    expect(mine).to_have_count(0)
    expect(item(page, "RQ-2")).to_be_visible()


def test_a_receipt_gives_way_after_a_while_although_the_pointer_rests_on_it(page: Page, up: Up) -> None:
    page.clock.install()
    open_live(page)
    mine = item(page, "RQ-1")
    mine.get_by_label("late", exact=True).check(force=True)
    mine.locator(".btn--go").click()
    expect(mine.locator(".receipt")).to_contain_text("late")
    let_go(up.bench)
    wait_for_state(up.bench, "DONE")
    page.clock.fast_forward(31_000)
    expect(mine.locator(".btn--go")).to_contain_text("Accept")


def test_what_is_new_comes_behind_what_is_there(page: Page, up: Up) -> None:
    ask(up.bench, "RQ-2")
    open_live(page)
    order = "() => [...document.querySelectorAll('#waiting > li')].map((item) => item.id)"
    before = page.evaluate(order)
    page.evaluate("() => { const list = document.getElementById('waiting'); list.prepend(list.lastElementChild); }")
    moved = page.evaluate(order)
    assert moved != before
    ask(up.bench, "RQ-4")
    expect(item(page, "RQ-4")).to_be_visible()
    assert page.evaluate(order) == [*moved, "wait-RQ-4"]


def test_a_409_leads_to_the_run_that_is_in_the_way(page: Page, up: Up, watch: Watch) -> None:
    watch.allow("409")
    open_live(page)
    mine = item(page, "RQ-1")
    page.evaluate(
        "() => document.getElementById('app').addEventListener('htmx:before:request', (event) => event.preventDefault())"
    )
    answer_from_terminal(up.bench, "RQ-1")
    wait_until(lambda: up.bench.stage("RQ-1")["state"] == "IMPLEMENTING")
    mine.locator("textarea").fill("too late")
    mine.locator(".btn--go").click()
    alert = mine.get_by_role("alert")
    expect(alert).to_contain_text("RUN_IN_PROGRESS")
    expect(mine.locator("textarea")).to_have_value("too late")
    link = alert.get_by_role("link", name="Go to that run")
    expect(link).to_have_attribute("href", f"/requests/RQ-1/runs/{up.bench.run_ids('RQ-1')[-1]}")


def test_a_refusal_is_as_wide_as_the_page_and_above_its_button(page: Page, up: Up, watch: Watch) -> None:
    watch.allow("409")
    up.bench.add_request("RQ-5")
    answer_from_terminal(up.bench, "RQ-1")
    wait_until(lambda: up.bench.stage("RQ-1")["state"] == "IMPLEMENTING")
    page.goto("/requests/RQ-5")
    start, edit = page.locator("[action$='/run'] button"), page.locator("#acts [href$='/edit']")
    before = edit.bounding_box()
    start.click()
    notice = page.locator("#acts .notice")
    expect(notice).to_be_visible()
    told, head, button, beside = (each.bounding_box() for each in (notice, page.locator(".page-head"), start, edit))
    assert told and head and button and beside and before
    assert told["width"] == pytest.approx(head["width"], abs=1)
    assert told["y"] + told["height"] <= button["y"]
    assert beside["height"] == before["height"]


def test_what_somebody_else_did_becomes_a_receipt_and_the_draft_stays(page: Page, new_page: NewPage, up: Up) -> None:
    other = new_page()
    open_live(page)
    open_live(other)
    mine = item(page, "RQ-1")
    mine.locator("textarea").fill("my long thought")
    theirs = item(other, "RQ-1")
    theirs.get_by_label("late", exact=True).check(force=True)
    theirs.locator(".btn--go").click()
    expect(theirs.locator(".receipt")).to_be_visible()
    expect(mine.locator(".receipt")).to_contain_text("Ann handled RQ-1 at")
    expect(mine.locator(".kept textarea")).to_have_value("my long thought")
    morph(page, up, times=2)
    expect(mine.locator(".kept textarea")).to_have_value("my long thought")
    mine.get_by_role("button", name="Close").click()
    page.mouse.move(2, 2)
    expect(mine).to_have_count(0)


def test_a_terminal_is_named_as_one_and_without_a_draft_the_receipt_goes(page: Page, up: Up) -> None:
    ask(up.bench, "RQ-2")
    open_live(page)
    answer_from_terminal(up.bench, "RQ-2")
    expect(item(page, "RQ-2").locator(".receipt")).to_contain_text("from a terminal")
    expect(item(page, "RQ-2")).to_have_count(0)
    expect(item(page, "RQ-1")).to_be_visible()


def test_a_dialog_gives_its_receipt_to_the_item_it_was_opened_from(page: Page, up: Up) -> None:
    let_go(up.bench)
    up.bench.add_request("RQ-5", title="To be accepted")
    up.bench.agent.does("implementer", "write('five.txt', 'five'); done()")
    up.bench.run("RQ-5")
    open_live(page)
    mine = item(page, "RQ-5")
    link = mine.get_by_role("link", name="Send back")
    link.click()
    dialog = page.get_by_role("dialog")
    dialog.locator("textarea").fill("Not five, six.")
    morph(page, up)
    dialog.get_by_role("button", name="Back", exact=True).click()
    expect(link).to_be_focused()
    link.click()
    expect(dialog.locator("textarea")).to_have_value("Not five, six.")
    answered: list[tuple[Route, APIResponse]] = []
    page.route("**/send-back", lambda route: answered.append((route, route.fetch())))
    dialog.locator("button:not([data-close])").click()
    expect(page.locator("#next-RQ-5")).to_be_visible()  # the page knows it before the answer has come
    [(route, answer)] = answered
    route.fulfill(response=answer)
    expect(dialog).to_have_count(0)
    expect(mine.locator(".receipt")).to_contain_text("RQ-5 is sent back")
