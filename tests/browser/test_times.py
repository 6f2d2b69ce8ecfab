"""Moments by the reader's clock (DESIGN §5): a browser in another zone than the server's never shows the server's."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Page, Route, expect

from browser.desk import COUNT_SWAPS
from browser.look import Look
from browser.window import NewPage
from e2e.up import Up

pytestmark = pytest.mark.spec("WEB-3")
ZONE, OFFSET = "Asia/Kolkata", "+05:30"
# In every frame that is shown, from the first one on: what is said of a moment and what the zone's clock says.
WATCH = """() => { window.seen = 0; window.wrong = [];
  const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  window.said = (at) => clock.format(new Date(at)).replace(/^0/, '');
  const look = () => {
    for (const each of document.querySelectorAll('[data-form=clock]')) {
      window.seen++;
      const right = window.said(each.dateTime ?? each.dataset.at);
      if (each.textContent !== right) window.wrong.push([each.textContent, right]);
    }
    requestAnimationFrame(look);
  };
  look(); }"""
DAYS = """() => [...document.querySelectorAll('#days h2')].map((head) => [head.textContent,
  ...[...head.nextElementSibling.querySelectorAll('time')].map((each) => new Date(each.dateTime)).map((at) =>
    `${new Intl.DateTimeFormat('en-GB', { weekday: 'long' }).format(at)} ${at.getDate()} `
    + new Intl.DateTimeFormat('en-GB', { month: 'long' }).format(at))])"""

# A moment's time of day, and how many days ago it was where the browser is.
AGO = """(said) => { const at = new Date(said), now = new Date();
  const days = (new Date(now.toDateString()) - new Date(at.toDateString())) / 86_400_000;
  return [window.said(at), Math.round(days)]; }"""


@pytest.fixture
def up(worked: Up) -> Up:
    """Nothing here changes the demo."""
    return worked


@pytest.fixture
def page(new_page: NewPage) -> Page:
    """Give a window in another zone."""
    page = new_page(timezone_id=ZONE)
    page.add_init_script(f"({WATCH})()")
    return page


def test_every_frame_says_moments_by_the_browsers_clock(page: Page, new_page: NewPage) -> None:
    for path in ("/", "/activity"):
        page.goto(path)
        page.evaluate(COUNT_SWAPS)
        page.evaluate("() => document.body.dispatchEvent(new Event('aiflow:done'))")
        page.wait_for_function("() => window.swaps > 0 && window.seen > 0")
        page.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
        assert page.evaluate("() => window.wrong") == [], path
        titles = page.evaluate("() => [...document.querySelectorAll('#main time')].map((each) => each.title)")
        assert titles
        assert all(title.endswith(OFFSET) for title in titles)
    heads = page.evaluate(DAYS)
    assert heads
    assert all({head} == set(lines) for head, *lines in heads)  # a day begins where the reader's does
    page.goto("/")
    bar = page.locator("#night title").first
    begun, ended = [each.split("}")[0] for each in (bar.get_attribute("data-moments") or "").split("{")[1:]]
    said = page.evaluate("(times) => times.map(window.said).join('–')", [begun, ended])
    assert (bar.text_content() or "").endswith(said)
    since = page.locator(".lead time").first
    clock, days_ago = page.evaluate(AGO, since.get_attribute("datetime"))
    words = {0: ("today, ", "今日"), 1: ("yesterday, ", "昨日")}.get(days_ago, ("day ", "日"))
    japanese = new_page(look=Look("ja"), timezone_id=ZONE)
    japanese.goto("/")
    for each, word in zip((page, japanese), words, strict=True):
        expect(each.locator(".lead time").first).to_contain_text(word)
        expect(each.locator(".lead time").first).to_contain_text(clock)


def test_a_time_that_is_typed_is_meant_by_the_browsers_clock(page: Page) -> None:
    sent: list[dict[str, list[str]]] = []

    def hear(route: Route) -> None:
        if route.request.method != "POST":
            return route.continue_()
        sent.append(parse_qs(route.request.post_data or ""))
        return route.fulfill(status=200, content_type="text/html", body='<p class="receipt">Heard</p>')

    page.route("**/auto/start", hear)
    page.goto("/auto/start")
    expect(page.locator("[data-zone]")).to_have_text(f"UTC{OFFSET}")
    page.locator("input[name=until]").fill("06:30")
    page.locator("#main form").evaluate("(form) => form.requestSubmit()")
    expect(page.locator("body")).to_contain_text("Heard")
    [form] = sent
    meant = datetime.fromisoformat(form["until_at"][0])
    assert page.evaluate("(at) => new Date(at).getTime()", form["until_at"][0]) == meant.timestamp() * 1000
    assert (form["until"], f"{meant:%H:%M}", meant.utcoffset() is not None) == (["06:30"], "01:00", True)
