"""What judges a window has teeth: every kind of complaint is heard, and none is forgiven unless it is expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from browser import chromium
from browser.axe import COLOURS
from browser.look import Look
from browser.window import Watch, Windows
from e2e.up import Up

STYLED = "<p style='color: red'>It is red.</p>"


@pytest.fixture
def up(worked: Up) -> Up:
    """Nothing here changes the demo."""
    return worked


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("console.error('oh')", "console: oh"),
        ("setTimeout(() => { throw new Error('no') })", "script: no"),
        ("document.body.insertAdjacentHTML('beforeend', `" + STYLED + "`)", "content security policy: style-src"),
        ("document.body.append(Object.assign(new Image(), { src: 'http://example.com/x.png' }))", "img-src"),
        ("location.href = 'http://example.com/'", "request to another host: http://example.com/"),
        ("fetch('/static/nothing.js')", "console: Failed to load resource"),
    ],
)
def test_every_complaint_is_heard(chrome: Browser, up: Up, script: str, told: str) -> None:
    watch = Watch()
    windows = Windows(chrome, watch)
    page = windows.open(up, Look())
    page.goto("/")
    page.evaluate(f"() => {{ {script} }}")
    while not any(told in each for each in watch.complaints):  # the test's own limit ends it
        page.wait_for_timeout(20)
    windows.close()
    with pytest.raises(AssertionError):
        watch.judge()
    watch.allow(".")
    watch.judge()
    watch.allow("something else")
    with pytest.raises(AssertionError, match="never came"):
        watch.judge()


def test_axe_finds_what_cannot_be_read(page: Page, axe: Callable[..., None]) -> None:
    page.goto("/")
    axe(page)
    page.evaluate("() => document.querySelector('#toasts').append(document.createElement('button'))")
    with pytest.raises(AssertionError, match="critical button-name"):
        axe(page)
    axe(page, ignoring=("button-name",))
    of_colour = page.evaluate("() => axe.getRules(['cat.color']).map((each) => each.ruleId)")
    assert {*of_colour} - {*COLOURS} == {"color-contrast-enhanced"}, "more than AA asks for: off"
    page.evaluate("() => { document.querySelector('#h-lead').style.color = '#eee'; }")
    with pytest.raises(AssertionError, match="color-contrast"):
        axe(page, only=COLOURS)


def test_a_look_is_what_the_page_is_told(new_page: Callable[..., Page]) -> None:
    page = new_page(look=Look("ja", "dark", 390))
    page.goto("/")
    expect(page.locator("html")).to_have_attribute("lang", "ja")
    assert page.evaluate("() => matchMedia('(prefers-color-scheme: dark) and (width: 390px)').matches")


def test_without_a_browser_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(chromium, "FETCHED", tmp_path)
    assert chromium.main() == 3
    assert "apt install chromium" in capsys.readouterr().out
