"""Without JavaScript (WEB-1): every page reads, and everything that is done by a form is done."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from browser.desk import ASKS
from browser.look import both_widths
from browser.window import NewPage, Watch
from e2e.up import Up, hold, let_go, wait_for_state
from waiting import wait_until

pytestmark = pytest.mark.spec("WEB-1")
PAGES = (
    "/",
    "/backlog",
    "/backlog/graph",
    "/requests/RQ-1",
    "/requests/RQ-1/edit",
    "/new",
    "/queue",
    "/doctor",
    "/activity",
    "/settings",
    "/agents",
    "/auto/start",
    "/auto/stop",
    "/keys",
)


@pytest.fixture
def up(scripted: Up) -> Up:
    """The tests say when the agent ends."""
    return scripted


@pytest.fixture
def page(new_page: NewPage) -> Page:
    """Give a browser that runs no script."""
    return new_page(java_script_enabled=False)


def press(page: Page, where: str) -> None:
    """Press the first button or link of these that can be seen."""
    page.locator(where).locator("visible=true").first.click()


def test_every_page_reads(page: Page, up: Up) -> None:
    for path in PAGES:
        page.goto(path)
        expect(page.locator("h1 >> visible=true")).to_have_count(1)
        expect(page.locator("#main")).not_to_be_empty()
        expect(page.locator("#lost")).to_be_hidden()
    page.goto("/backlog")
    page.locator("#p").select_option("P3")
    press(page, "#find")  # a list to choose from needs a button to send it
    expect(page).to_have_url(f"{up.url}/backlog?q=&p=P3&l=")
    expect(page.locator("#rows tr")).to_have_count(0)


@both_widths
def test_a_request_is_made_edited_set_and_several_at_once(page: Page, up: Up) -> None:
    page.goto("/")
    press(page, "a[href='/new']")
    page.locator("input[name=title]").fill("By hand")
    page.locator("textarea[name=text]").fill("So.")
    page.locator("input[name=request_id]").fill("MINE")
    press(page, "button[value=draft]")
    expect(page).to_have_url(f"{up.url}/requests/MINE")
    expect(page.locator("h1")).to_have_text("By hand")
    press(page, "#acts a[href$='/edit']")
    text = page.locator("textarea[name=text]")
    text.fill(text.input_value().replace("So.", "Otherwise."))
    press(page, "#edit .btn--go")
    expect(page.locator(".md")).to_have_text("Otherwise.")
    page.locator("#meta select[name=priority]").select_option("P0")
    press(page, "#meta .btns button")
    expect(page.locator("header .pri")).to_have_text("P0")
    page.goto("/backlog")
    if page.viewport_size and page.viewport_size["width"] < 600:  # a phone has its boxes behind a button
        page.locator("#choosing > summary").click()
    page.locator("#row-MINE input").check(force=True)
    press(page, "#several button[value=archive]")
    assert up.bench.status("MINE") == "archived"


@both_widths
def test_a_conflict_shows_both_and_is_settled(page: Page, up: Up, watch: Watch) -> None:
    watch.allow("409")
    page.goto("/requests/RQ-1")
    page.locator("#meta select[name=priority]").select_option("P2")
    up.bench.aiflow("set", "RQ-1", "priority=P0")
    press(page, "#meta .btns button")
    expect(page.locator("main")).to_contain_text("EDIT_CONFLICT")
    press(page, "main form button")
    expect(page.locator("header .pri")).to_have_text("P2")


@both_widths
def test_a_run_is_answered_sent_back_run_again_and_accepted(page: Page, up: Up) -> None:
    bench = up.bench
    bench.agent.does("implementer", ASKS)
    let_go(bench)
    page.goto("/requests/RQ-1")
    press(page, "#acts form[action$='/run'] button")
    wait_for_state(bench, "NEEDS_INPUT")
    page.goto("/")
    page.get_by_text("late", exact=True).click()
    press(page, "#wait-RQ-1 .btn--go")
    wait_for_state(bench, "DONE")
    page.goto(f"/requests/RQ-1/runs/{bench.run_ids()[0]}?view=diff")
    expect(page.locator("[data-path='RQ-1.txt']")).to_contain_text("done")
    press(page, "a[href$='/send-back']")
    page.locator("textarea[name=comment]").fill("Not like this.")
    press(page, "main form button")
    expect(page).to_have_url(f"{up.url}/requests/RQ-1")
    expect(page.locator(".md")).to_contain_text("Not like this.")
    press(page, "#acts form[action$='/run'] button")
    wait_until(lambda: len(bench.run_ids()) == 2)
    wait_for_state(bench, "DONE")
    page.goto(f"/requests/RQ-1/runs/{bench.run_ids()[1]}")
    press(page, "button[formaction$='/accept']")
    wait_until(lambda: bench.status() == "done")
    assert bench.git("show", "main:RQ-1.txt") == "done"


@both_widths
def test_a_run_is_cancelled_and_resumed(page: Page, up: Up) -> None:
    hold(up.bench)
    run_id = up.run()
    page.goto(f"/requests/RQ-1/runs/{run_id}")
    press(page, "a[href$='/cancel']")
    press(page, "main form button")
    expect(page).to_have_url(f"{up.url}/requests/RQ-1/runs/{run_id}")
    wait_for_state(up.bench, "NEEDS_INPUT")
    let_go(up.bench)
    page.goto(f"/requests/RQ-1/runs/{run_id}")
    press(page, ":is(#ways, #dock) .btn--go")
    wait_for_state(up.bench, "DONE")


@both_widths
def test_auto_run_is_started_and_stopped(page: Page, up: Up) -> None:
    hold(up.bench)
    page.goto("/")
    press(page, "main a[href='/auto/start']")
    press(page, "main form .btn--go")
    up.held()
    page.goto("/activity")
    press(page, "#qbar a[href='/auto/stop']")
    page.locator("input[value=now]").check()
    press(page, "main form .btn--go")
    wait_until(lambda: up.bench.run_ids() and not up.bench.locks())
    page.goto("/")
    expect(page.locator("#qbar")).to_have_count(0)
