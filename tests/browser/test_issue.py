"""An issue that waits on the morning page: answered there, while GitHub refuses and when it takes it (ISS-6, WEB-3)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from browser.demo_bench import serving
from browser.desk import item, open_live
from browser.window import Fine, Watch
from e2e.bench import Bench
from e2e.up import Up
from github.place import IssuePlace, issue_place
from github.scene import Switch
from github.server import served

pytestmark = pytest.mark.spec("ISS-6", "WEB-3")


@pytest.fixture
def place(bench: Bench, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[IssuePlace]:
    switch = Switch()
    with served(switch) as url, issue_place(bench, monkeypatch, capfd, url) as made:
        switch.api = made.api
        made.stopped()
        yield made


@pytest.fixture
def up(place: IssuePlace) -> Iterator[Up]:
    with serving(place.bench) as given:
        yield given


def test_what_is_typed_stays_until_github_has_it(page: Page, place: IssuePlace, watch: Watch) -> None:
    watch.allow("403")
    place.api.answers("POST .*/comments", 403)
    open_live(page)
    waits = item(page, "GH-1")
    waits.locator("textarea").fill("Blue")
    waits.locator(".btn--go").click()
    expect(waits.locator(".notice")).to_contain_text("GITHUB_RIGHTS")
    expect(waits.locator("textarea")).to_have_value("Blue")
    waits.locator(".btn--go").click()
    expect(waits.locator(".receipt")).to_be_visible()
    posted = [body for body in place.said(1) if body.endswith("/retry Blue")]
    assert len(posted) == 1


def test_axe_finds_nothing_in_the_story_of_an_issue(page: Page, place: IssuePlace, fine: Fine) -> None:
    place.hub.comment(1, "What about **red**?", "nobody")
    meant = place.hub.comment(1, "Green, I think.", "maya")
    place.sync()
    place.hub.delete_comment(meant.id)
    place.sync()
    page.goto("/requests/GH-1")
    expect(page.locator("#story .said--ours").first).to_be_visible()
    expect(page.locator("#story .said--gone")).to_contain_text("Green, I think.")
    expect(page.locator("#story")).to_contain_text("nobody")
    fine(page, "request-story")
