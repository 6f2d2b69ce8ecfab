"""The connection is lost: said in words, nothing can be pressed, nothing is lost, and it recovers by itself."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from browser.desk import IS_SAME, ask, item, open_live
from browser.look import Look, both_widths
from browser.window import CUT_OFF, Watch
from e2e.up import Up
from waiting import wait_until

pytestmark = pytest.mark.spec("WEB-3")


@pytest.fixture
def up(scripted: Up) -> Up:
    """The tests say when the agent ends."""
    return scripted


def start_again(up: Up) -> Up:
    """Start the server again where it was."""
    return Up(up.bench, "--port", str(urlsplit(up.url).port))


# Where everything of the page is, but the words that say whether it is connected.
PLACES = """() => [...document.querySelectorAll('#app *')].filter((each) => !each.closest('#live'))
  .map((each) => each.getBoundingClientRect().top)"""


@pytest.mark.parametrize("look", [Look("en", "dark"), Look("ja", "light")], ids=str)
def test_a_killed_server_is_said_and_one_that_starts_again_is_found(
    page: Page, up: Up, look: Look, watch: Watch, axe: Callable[..., None]
) -> None:
    watch.allow(CUT_OFF, must_come=False)
    ask(up.bench, "RQ-1")
    open_live(page)
    field, button = item(page, "RQ-1").locator("textarea"), item(page, "RQ-1").locator(".btn--go")
    field.fill("half an answ")
    up.kill()
    expect(page.locator("#lost")).to_be_visible()
    words = {"en": "The connection to aiflow is lost.", "ja": "aiflow との接続が切れました。"}[look.language]
    expect(page.get_by_role("alert")).to_contain_text(words)
    expect(page.get_by_role("alert")).to_contain_text(re.compile(r"\d:\d\d:\d\d(?! ?[AP]M)"))
    not_connected = page.locator("#live").get_attribute("data-lost") or "?"
    expect(page.locator("#live")).to_have_text(not_connected)
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(button).to_have_attribute("title", page.locator("#lost").get_attribute("data-reason") or "?")
    expect(item(page, "RQ-1")).to_contain_text("Which word?")
    expect(field).to_have_value("half an answ")
    button.click(force=True)  # does nothing, and is no error
    axe(page)
    again = start_again(up)
    expect(page.locator("#found")).to_be_visible()
    expect(page.locator("#lost")).to_be_hidden()
    expect(button).not_to_have_attribute("aria-disabled", "true")
    expect(page.locator("#live")).to_contain_text(up.url.removeprefix("http://"))
    expect(field).to_have_value("half an answ")
    up.bench.add_request("RQ-9", title="After the restart")
    expect(page.locator("main")).to_contain_text("After the restart")
    expect(page.locator("#found")).to_be_hidden()
    assert page.evaluate(IS_SAME)
    assert again.process.poll() is None


@both_widths
def test_it_says_when_it_tries_again_tries_when_asked_and_moves_nothing(page: Page, up: Up, watch: Watch) -> None:
    watch.allow(CUT_OFF, must_come=False)
    ask(up.bench, "RQ-1")
    page.add_init_script("delete window.SharedWorker")  # its clock is not the page's
    page.clock.install()
    open_live(page)
    before = page.evaluate(PLACES)
    up.kill()
    expect(page.locator("#lost")).to_be_visible()
    assert page.evaluate(PLACES) == before
    page.clock.pause_at(page.evaluate("() => Date.now() + 1"))
    again = page.locator("#lost-again")
    while again.inner_text() != "Trying again in 5 s.":  # it waits longer every time
        page.clock.run_for(200)
    page.clock.run_for(1250)  # a second, and the quarter of one after which it counts again
    expect(again).to_have_text("Trying again in 4 s.")
    start_again(up)
    page.get_by_role("button", name="Try now").click()
    expect(page.locator("#found")).to_be_visible()  # without a second more on the page's clock
    expect(page.locator("#lost")).to_be_hidden()
    assert page.evaluate(PLACES) == before


def test_each_press_is_one_try_also_where_all_tabs_share_a_stream(page: Page, up: Up, watch: Watch) -> None:
    watch.allow(CUT_OFF, must_come=False)
    open_live(page)
    up.kill()
    expect(page.locator("#lost")).to_be_visible()
    with socket.create_server(("127.0.0.1", urlsplit(up.url).port or 0)) as silent:
        silent.settimeout(60)
        kept = []
        for _ in range(40):  # by itself it tries every 10 s while nobody answers, which would be too late for this test
            page.get_by_role("button", name="Try now").click()
            kept.append(silent.accept()[0])
        for each in kept:
            each.close()


def test_a_server_that_hangs_is_noticed(page: Page, up: Up) -> None:
    open_live(page)
    up.asks(signal.SIGSTOP)
    try:
        expect(page.locator("#lost")).to_be_visible()
    finally:
        up.asks(signal.SIGCONT)
    expect(page.locator("#found")).to_be_visible()
    up.bench.add_request("RQ-9", title="It goes on")
    expect(page.locator("main")).to_contain_text("It goes on")
    assert page.evaluate(IS_SAME)


def test_a_page_where_nothing_happens_is_not_lost(page: Page, up: Up) -> None:
    open_live(page)
    page.evaluate("""() => { window.said = []; new MutationObserver(() => window.said.push(document.getElementById('lost').hidden))
      .observe(document.getElementById('lost'), { attributes: true }); }""")
    heard = page.evaluate("() => window.heard")
    page.wait_for_function("(n) => window.heard >= n + 5", arg=heard)  # five signs that it is there
    assert page.evaluate("() => window.said") == []


def test_a_new_version_asks_for_a_reload_and_never_takes_it(page: Page, up: Up) -> None:
    page.add_init_script("delete window.SharedWorker")
    stream = 'event: hello\ndata: {"instance_id": "another", "version": "99.0"}\n\nevent: auto\ndata: {}\n\n'

    def hello(route: Route) -> None:
        route.fulfill(body=stream, content_type="text/event-stream")

    page.route("**/api/events", hello)
    open_live(page)
    expect(page.locator("#update")).to_be_visible()
    assert page.evaluate(IS_SAME)
    page.locator("#update a").click()
    page.wait_for_function(f"() => !({IS_SAME})()")


def test_what_is_sent_while_the_connection_breaks_keeps_its_text(page: Page, up: Up, watch: Watch) -> None:
    watch.allow("ERR_FAILED")
    ask(up.bench, "RQ-1")
    open_live(page)
    page.route("**/resume", lambda route: route.abort())
    field = item(page, "RQ-1").locator("textarea")
    field.fill("my answer")
    item(page, "RQ-1").locator(".btn--go").click()
    expect(page.locator(".toast")).to_be_visible()
    expect(field).to_have_value("my answer")
    page.unroute("**/resume")
    item(page, "RQ-1").locator(".btn--go").click()
    expect(item(page, "RQ-1").locator(".receipt")).to_contain_text("my answer")
    wait_until(lambda: up.bench.stage()["state"] != "NEEDS_INPUT")
