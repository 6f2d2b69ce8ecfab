"""What shows only while something happens: nothing in it is inaccessible, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from browser.demo_bench import serving
from browser.desk import ask, item, open_live
from browser.look import Look
from browser.window import Fine, NewPage, Watch
from dynamo import Dynamo
from e2e.bench import Bench
from e2e.up import Up, hold, let_go, wait_for_state

pytestmark = pytest.mark.spec("WEB-1", "WEB-2", "WEB-3")
PHONE = Look("ja", width=390)


@pytest.fixture
def up(scripted: Up) -> Up:
    """The tests say when the agent ends."""
    return scripted


def test_axe_finds_nothing_in_what_people_and_runs_do_to_a_page(
    new_page: NewPage, up: Up, watch: Watch, fine: Fine
) -> None:
    watch.allow("409")
    ask(up.bench, "RQ-1", "RQ-2")
    desk, phone = new_page(), new_page(look=PHONE)
    for page in (desk, phone):
        open_live(page)
    item(phone, "RQ-1").locator("textarea").fill("mine")
    item(desk, "RQ-1").locator("textarea").fill("late")
    item(desk, "RQ-1").locator(".btn--go").click()
    expect(item(phone, "RQ-1").locator(".kept textarea")).to_have_value("mine")  # taken over
    for page in (desk, phone):
        item(page, "RQ-2").locator("textarea").fill("too early")
        item(page, "RQ-2").locator(".btn--go").click()
        expect(item(page, "RQ-2").get_by_role("alert")).to_contain_text("RUN_IN_PROGRESS")
        expect(item(page, "RQ-1").locator(".receipt")).to_be_visible()
        expect(page.locator("#run-RQ-1")).to_be_visible()
        fine(page, "home-acting")
    let_go(up.bench)
    wait_for_state(up.bench, "DONE")

    (up.bench.agent.folder / "go").unlink()
    hold(up.bench)
    up.bench.add_request("RQ-3")
    assert up.call("POST", "/api/queue/run-next").status == 202
    up.held("RQ-3")
    for page, path in ((desk, "/backlog"), (phone, "/")):
        page.goto(path)
        expect(page.locator("#qbar")).to_contain_text("RQ-3")
        fine(page)


class TestQueue:
    @pytest.fixture
    def up(self, bench: Bench, dynamo: Dynamo) -> Iterator[Up]:
        """Give a server with a queue, whose runner is held at the first of two tasks."""
        hold(bench)
        bench.add_request("RQ-2")
        bench.aiflow.environ |= dynamo.environ
        with serving(bench) as given:
            for request_id in ("RQ-1", "RQ-2"):
                assert given.call("POST", "/api/tasks", {"request_id": request_id}).status == 201
            given.held()
            yield given

    def test_axe_finds_nothing_in_a_queue_with_tasks_and_a_runner(self, new_page: NewPage, fine: Fine) -> None:
        for look in (Look(), PHONE):
            page = new_page(look=look)
            page.goto("/queue")
            expect(page.locator("[id^=runner-]")).to_have_count(1)
            expect(page.locator("[id^=task-]")).to_have_count(2)
            fine(page, "queue-tasks")
            overflow = page.evaluate("() => document.documentElement.scrollWidth") - look.width
            assert overflow <= 0, f"it scrolls sideways by {overflow} px"
