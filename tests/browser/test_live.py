"""Live without a reload (WEB-3): whoever did it and wherever, all tabs in step, hidden ones quiet, no storm of requests."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from browser.desk import COUNT, HIDE, IS_SAME, ask, item, open_live
from e2e.up import Up, hold, let_go, wait_for_state

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


def test_an_auto_run_shows_on_every_page_with_its_stop(page: Page, up: Up) -> None:
    hold(up.bench)
    open_live(page, "/activity")
    expect(page.locator("#qbar")).to_have_count(0)
    process = up.bench.start("auto", "--json")
    expect(page.locator("#qbar")).to_contain_text("RQ-1")
    let_go(up.bench)
    process.communicate()
    expect(page.locator("#qbar")).to_have_count(0)
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
