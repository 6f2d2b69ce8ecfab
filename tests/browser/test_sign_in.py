"""Signing in, in a real browser (SEC): with a code that is typed or in the link, in both languages, and not without."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from browser.look import Look, both_languages, each_size
from browser.window import Fine, NewPage, Watch, new_code
from e2e.up import Up

pytestmark = pytest.mark.spec("API-1")


@pytest.fixture
def up(worked: Up) -> Up:
    """Nothing here changes the demo."""
    return worked


@each_size
def test_a_code_signs_in(visitor: Page, up: Up, look: Look, fine: Fine) -> None:
    visitor.goto("/")
    expect(visitor).to_have_url(f"{up.url}/sign-in")
    expect(visitor.locator("html")).to_have_attribute("lang", look.language)
    fine(visitor, "sign-in")
    visitor.locator("input[name=code]").fill(new_code(up))
    visitor.locator("input[name=name]").fill("Ann")
    visitor.locator("button[type=submit]").click()
    expect(visitor).to_have_url(f"{up.url}/")
    expect(visitor.locator("html")).to_have_attribute("lang", look.language)
    expect(visitor.locator("main")).to_contain_text("TODO-")
    fine(visitor, "home")


def test_the_link_brings_its_code_along_and_does_not_stay_in_the_address(visitor: Page, up: Up) -> None:
    code = new_code(up)
    visitor.goto(f"/sign-in#code={code}")
    expect(visitor.locator("input[name=code]")).to_have_value(code)
    expect(visitor).to_have_url(f"{up.url}/sign-in")
    visitor.locator("button[type=submit]").click()
    expect(visitor).to_have_url(f"{up.url}/")


def test_a_link_works_also_where_the_page_is_open_already(visitor: Page, up: Up) -> None:
    visitor.goto("/sign-in")
    code = new_code(up)
    visitor.goto(f"/sign-in#code={code}")  # no new page, only another address
    expect(visitor.locator("input[name=code]")).to_have_value(code)
    visitor.locator("button[type=submit]").click()
    expect(visitor).to_have_url(f"{up.url}/")


@both_languages
def test_a_wrong_code_is_refused_with_the_reason(visitor: Page, up: Up, watch: Watch, axe: Callable[..., None]) -> None:
    watch.allow("401")
    visitor.goto("/sign-in")
    visitor.locator("input[name=code]").fill("WRONG-WRONG")
    visitor.locator("button[type=submit]").click()
    expect(visitor.get_by_role("alert")).to_be_visible()
    axe(visitor)
    visitor.goto("/")
    expect(visitor).to_have_url(f"{up.url}/sign-in")


@both_languages
def test_who_is_signed_in_sees_the_first_page(page: Page, up: Up, axe: Callable[..., None]) -> None:
    page.goto("/")
    expect(page).to_have_url(f"{up.url}/")
    expect(page).to_have_title(re.compile("todo"))
    axe(page)


def test_it_works_without_scripts(new_page: NewPage, up: Up) -> None:
    page = new_page(is_signed_in=False, java_script_enabled=False)
    page.goto("/sign-in")
    page.locator("input[name=code]").fill(new_code(up))
    page.locator("button[type=submit]").click()
    expect(page).to_have_url(f"{up.url}/")
