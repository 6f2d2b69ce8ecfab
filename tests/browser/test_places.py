"""The servers that a window may stand in front of: a fresh demo, and an agent that is held at its work."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from browser.look import Look, both_languages
from browser.window import NewPage
from e2e.up import Up, hold, let_go, wait_for_state


@both_languages
def test_a_fresh_demo_speaks_the_language_of_the_look(page: Page, up: Up, look: Look) -> None:
    page.goto("/")
    expect(page.locator("main")).to_contain_text("TODO-1")
    assert up.bench.run_ids("TODO-1") == []
    words = up.call("GET", "/api/requests/TODO-1").shape["title"]
    assert words.isascii() == (look.language == "en")


def test_an_agent_is_at_work_until_it_is_let_go(new_page: NewPage, scripted: Up) -> None:
    hold(scripted.bench)
    run_id = scripted.run()
    page = new_page(up=scripted)
    page.goto("/")
    expect(page.locator(f"main a[href*='{run_id}']").first).to_be_visible()
    let_go(scripted.bench)
    wait_for_state(scripted.bench, "DONE")


def test_an_agent_that_is_left_at_work_is_ended_after_the_test(scripted: Up) -> None:
    hold(scripted.bench)
    run_id = scripted.run()
    assert scripted.bench.run_ids() == [run_id]  # what is left at work is ended by the fixture, which says so if not
