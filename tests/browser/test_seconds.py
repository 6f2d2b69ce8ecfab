"""How soon a page knows: what happens elsewhere within 2 s, that the server is gone or hangs within 5 (WEB-3)."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from browser.desk import open_live
from browser.window import CUT_OFF, Watch
from e2e.up import Up

pytestmark = [pytest.mark.spec("WEB-3"), pytest.mark.timing]


@pytest.fixture
def up(scripted: Up) -> Up:
    """A small repository."""
    return scripted


def test_what_happens_in_a_terminal_shows_within_two(page: Page, up: Up, allowed: Callable[[float], float]) -> None:
    open_live(page)
    up.bench.aiflow("new", "Typed elsewhere", "--ready", "--json")
    began = time.monotonic()
    expect(page.locator("main")).to_contain_text("Typed elsewhere")
    assert time.monotonic() - began < allowed(2)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hangs"])
def test_a_server_that_is_gone_is_known_within_five(
    page: Page, up: Up, watch: Watch, allowed: Callable[[float], float], number: signal.Signals
) -> None:
    watch.allow(CUT_OFF, must_come=False)
    open_live(page)
    up.asks(number)
    began = time.monotonic()
    expect(page.locator("#lost")).to_be_visible()
    took = time.monotonic() - began
    if number == signal.SIGSTOP:
        up.asks(signal.SIGCONT)
    assert took < allowed(5)
