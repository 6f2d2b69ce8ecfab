"""What is pressed on the page beyond the morning: auto-run from its dialog, and the ways on of a run's own page."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from browser.desk import ask, open_live
from browser.window import NewPage, Watch
from e2e.up import Up, hold, let_go, wait_for_state


@pytest.fixture
def up(scripted: Up) -> Up:
    """The tests say when the agent ends."""
    return scripted


@pytest.mark.spec("WEB-1", "WEB-2")
def test_auto_run_is_started_in_its_dialog_and_stopped_where_another_start_is_refused(
    page: Page, new_page: NewPage, up: Up, watch: Watch
) -> None:
    watch.allow("409")
    hold(up.bench)
    up.bench.add_request("RQ-2")
    late = new_page()
    for each in (page, late):
        open_live(each)
        each.locator("main a[href='/auto/start']").click()
        expect(each.get_by_role("dialog")).to_contain_text("RQ-1")
    page.get_by_role("dialog").locator(".btn--go").click()
    expect(page.locator("#qbar")).to_contain_text("Queue running")
    expect(page.get_by_role("dialog")).to_have_count(0)
    up.held()
    late.get_by_role("dialog").locator(".btn--go").click()
    refusal = late.get_by_role("dialog").get_by_role("alert")
    expect(refusal).to_contain_text("QUEUE_IN_PROGRESS")
    refusal.get_by_role("button", name="Stop after this run").click()
    for each in (page, late):
        expect(each.locator("#qbar")).to_contain_text("Auto-run is stopping")
    let_go(up.bench)
    for each in (page, late):
        expect(each.locator("#qbar")).to_have_count(0)
    assert up.bench.run_ids("RQ-2") == []


@pytest.mark.spec("WEB-1")
def test_a_step_is_retried_and_a_question_answered_by_a_choice_on_the_runs_page(page: Page, up: Up) -> None:
    ask(up.bench, "RQ-1", "RQ-2")
    [first], [second] = up.bench.run_ids("RQ-1"), up.bench.run_ids("RQ-2")
    open_live(page, f"/requests/RQ-1/runs/{first}")
    page.locator("#ways").get_by_role("button", name="Retry this step").click()
    expect(page.locator("#run-head .st.is-run")).to_be_visible()
    let_go(up.bench)
    expect(page.locator("#reason")).to_contain_text("WAITING_ACCEPTANCE")
    page.goto(f"/requests/RQ-2/runs/{second}")
    page.locator("#ways").get_by_text("overdue", exact=True).click()
    page.locator("#ways .btn--go").click()
    expect(page.locator("#reason")).to_contain_text("WAITING_ACCEPTANCE")
    wait_for_state(up.bench, "DONE", "RQ-2")
    assert "overdue" in str(up.bench.stage("RQ-2")["answers"])
