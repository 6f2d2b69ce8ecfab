"""Live without a reload (WEB-3): whoever did it and wherever, all tabs in step, hidden ones quiet, no storm of requests."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from browser.desk import COUNT, HIDE, IS_SAME, ask, item, open_live
from e2e.up import HELD, Up, hold, let_go, wait_for_state

pytestmark = pytest.mark.spec("WEB-3")


@pytest.fixture
def up(scripted: Up) -> Up:
    """The tests say when the agent ends."""
    return scripted


def test_what_happens_in_a_terminal_shows(page: Page, up: Up) -> None:
    open_live(page)
    up.bench.aiflow("new", "Typed elsewhere", "--ready", "--json")
    expect(page.locator("main")).to_contain_text("Typed elsewhere")
    hold(up.bench)
    process = up.bench.start("run", "RQ-1", "--json")
    expect(page.locator("#run-RQ-1")).to_be_visible()
    let_go(up.bench)
    process.communicate()
    wait_for_state(up.bench, "DONE")
    expect(page.locator("#run-RQ-1")).to_have_count(0)
    assert page.evaluate(IS_SAME), "it was not reloaded"


@pytest.mark.spec("WEB-2")
def test_an_auto_run_shows_on_every_page_with_its_stop_which_stops_it(page: Page, up: Up) -> None:
    up.bench.add_request("RQ-2")
    hold(up.bench)
    open_live(page, "/activity")
    expect(page.locator("#qbar")).to_have_count(0)
    process = up.bench.start("auto", "--json")
    expect(page.locator("#qbar")).to_contain_text("RQ-1")
    page.locator("#qbar").get_by_role("link", name="Stop…").click()
    dialog = page.get_by_role("dialog", name="Stop auto-run?")
    expect(dialog.get_by_label("After this run")).to_be_checked()
    dialog.get_by_role("button", name="Stop").click()
    expect(page.locator("#qbar")).to_contain_text("Auto-run is stopping")
    page.locator("#qbar").get_by_role("link", name="Stop now…").click()
    dialog.get_by_label("Now").check()
    dialog.get_by_role("button", name="Stop").click()
    process.communicate()
    expect(page.locator("#qbar")).to_have_count(0)
    assert up.bench.stage("RQ-1")["state"] == "NEEDS_INPUT"
    assert up.bench.run_ids("RQ-2") == []
    assert page.evaluate(IS_SAME)


@pytest.mark.spec("WEB-1")
def test_a_run_is_cancelled_and_replaced_by_one_with_a_new_plan(page: Page, up: Up) -> None:
    up.bench.agent.plans("S01", "S02")
    up.bench.agent.does("implementer", HELD, step="S02")
    run_id = up.run()
    open_live(page, f"/requests/RQ-1/runs/{run_id}")
    reason, dialog = page.locator("#reason"), page.get_by_role("dialog")
    reason.get_by_role("link", name="Cancel").click()
    dialog.get_by_role("button", name="Keep running").click()
    expect(dialog).to_have_count(0)
    reason.get_by_role("link", name="Cancel").click()
    dialog.get_by_role("button", name="Cancel the run").click()
    expect(reason).to_contain_text("CANCELLED")
    wait_for_state(up.bench, "NEEDS_INPUT")
    let_go(up.bench)
    reason.get_by_role("link", name="Replan…").click()
    expect(dialog).to_contain_text("This one is closed")
    expect(dialog.locator(".is-wait")).to_have_text("1 finished step of this run will be done again.")
    dialog.get_by_role("button", name="Close it and replan").click()
    head = page.locator("#run-head")
    expect(head).to_contain_text("replaced by")
    newer = up.bench.run_ids()[-1]
    assert newer != run_id
    expect(head.get_by_role("link", name=newer)).to_have_attribute("href", f"/requests/RQ-1/runs/{newer}")
    assert page.evaluate(IS_SAME)


def test_ten_tabs_of_one_browser_are_in_step(page: Page, up: Up) -> None:
    tabs = [page, *(page.context.new_page() for _ in range(9))]
    for tab in tabs:
        open_live(tab)
    up.bench.add_request("RQ-2", title="For all of them")
    for tab in tabs:
        expect(tab.locator("main")).to_contain_text("For all of them")
        assert tab.evaluate(IS_SAME)
    assert up.call("GET", "/api/health").status == 200


def test_a_hidden_tab_fetches_nothing_and_catches_up_when_it_is_shown(page: Page, up: Up) -> None:
    shown = page.context.new_page()
    for tab in (page, shown):
        open_live(tab)
    page.evaluate(HIDE, True)
    page.evaluate(COUNT)
    up.bench.add_request("RQ-2", title="While nobody looked")
    expect(shown.locator("main")).to_contain_text("While nobody looked")
    before = page.evaluate("() => window.heard")
    up.bench.add_request("RQ-3", title="And again")
    expect(shown.locator("main")).to_contain_text("And again")
    page.wait_for_function("(n) => window.heard > n", arg=before)
    assert page.evaluate("() => window.fetched") == 0
    page.evaluate(HIDE, False)
    expect(page.locator("main")).to_contain_text("And again")
    assert page.evaluate("() => window.fetched") == 1


def test_a_burst_of_events_makes_a_few_requests(page: Page, up: Up) -> None:
    open_live(page)
    page.evaluate(COUNT)
    burst = """() => new Promise((done) => { const began = performance.now(); const going = setInterval(() => {
      for (let n = 0; n < 50; n++) document.body.dispatchEvent(new Event('aiflow:done'));
      const seconds = (performance.now() - began) / 1000;
      if (seconds > 3) { clearInterval(going); done([window.fetched, seconds]); } }, 5); })"""
    fetched, seconds = page.evaluate(burst)
    assert 1 <= fetched <= 1 + 2 * seconds


def test_who_is_signed_out_elsewhere_goes_to_the_sign_in_and_keeps_the_draft(page: Page, up: Up) -> None:
    ask(up.bench, "RQ-1")
    open_live(page)
    item(page, "RQ-1").locator("textarea").fill("half an answ")
    up.bench.aiflow("sessions", "revoke", "--all", "--json")
    expect(page).to_have_url(f"{up.url}/sign-in")
    assert page.evaluate("() => Object.values(sessionStorage)") == ["half an answ"]


def test_a_browser_without_shared_workers_is_live_too(page: Page, up: Up) -> None:
    page.add_init_script("delete window.SharedWorker")
    open_live(page)
    up.bench.add_request("RQ-2", title="For this one, too")
    expect(page.locator("main")).to_contain_text("For this one, too")
