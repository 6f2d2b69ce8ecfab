"""Every page in every look: nothing inaccessible, nothing against the policy, one polite voice; and the morning in print."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import fresh_git
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.lock import Lock
from browser.demo_bench import serving
from browser.look import PAIRS, THEMES, Look, both_widths, each_size
from browser.window import Fine, NewPage, Watch
from e2e.bench import Bench
from e2e.up import Up
from real_engine import engine_at

PAGES = {
    "home": "/",
    "backlog": "/backlog",
    "request": "/requests/TODO-4",
    "new": "/new",
    "queue": "/queue",
    "doctor": "/doctor",
    "activity": "/activity",
    "settings": "/settings",
    "agents": "/agents",
    "evening": "/auto/start",
    "keys": "/keys",
}
ON_RUNS = ("replan", "cancel", "resume?mode=retry_step")
INK = "() => getComputedStyle(document.querySelector('#h-lead')).color"
LIGHT_INK, DARK_INK = "rgb(20, 33, 43)", "rgb(231, 237, 241)"
SHOW_BANNERS = "() => document.querySelectorAll('#update, #found').forEach((each) => { each.hidden = false; })"
SUBMIT = """([action, fields]) => { const form = Object.assign(document.createElement('form'), { method: 'post', action });
  for (const [name, value] of fields) form.append(Object.assign(document.createElement('input'), { name, value }));
  document.body.append(form); form.submit(); }"""
REFUSED = {
    "/requests/NOWHERE/run": [],
    "/requests/RQ-2/resume": [],
    "/backlog/set": [["do", "archive"], ["request_id", "RQ-2"], ["request_id", "NOWHERE"]],
    "/backlog/set?": [["do", "accept"], ["request_id", "RQ-2"]],
}
OPEN_DIALOG = """(href) => import('/static/dialogs.js')
  .then(({ open }) => open(Object.assign(document.createElement('a'), { href })))"""


@pytest.fixture
def up(worked: Up) -> Up:
    """Nothing here changes the demo."""
    return worked


@pytest.fixture
def pages(up: Up) -> dict[str, str]:
    """Give every page's address by its name: a run's has an id in it. In its other states `test_run_page` looks at it."""
    [run] = (up.bench.root / "runs" / "TODO-4").glob("RUN-*")
    return {
        **PAGES,
        "run": f"/requests/TODO-4/runs/{run.name}",
        "run-log": f"/requests/TODO-4/runs/{run.name}?step=plan",
    }


@each_size
@pytest.mark.spec("WEB-3")
def test_axe_finds_nothing_on_any_page(page: Page, look: Look, pages: dict[str, str], fine: Fine) -> None:
    for name, path in pages.items():
        page.goto(path)
        fine(page, name)
        for width in (320, 390) if look.is_phone else (720, 1024, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            overflow = page.evaluate("() => document.documentElement.scrollWidth") - width
            assert overflow <= 0, f"{path} scrolls sideways by {overflow} px at {width}"
    page.goto("/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    fine(page)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_be_visible()
    fine(page, "palette")


@pytest.mark.parametrize("look", PAIRS[:2], ids=str)
def test_axe_finds_nothing_in_any_dialog(page: Page, up: Up, axe: Callable[..., None]) -> None:
    run_id = up.bench.run_ids("TODO-4")[-1]
    page.goto("/")
    for path in (
        "/auto/start",
        "/auto/stop",
        "/requests/TODO-4/send-back",
        "/requests/TODO-1/undo",
        *(f"{run_id}/{each}" for each in ON_RUNS),
    ):
        whole = path if path.startswith("/") else f"/requests/TODO-4/runs/{path}"
        page.evaluate(OPEN_DIALOG, whole)
        expect(page.get_by_role("dialog")).to_be_visible()
        axe(page)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("look", PAIRS[:2], ids=str)
def test_axe_finds_nothing_on_what_is_not_there(page: Page, watch: Watch, axe: Callable[..., None]) -> None:
    watch.allow("404")
    for path in ("/nowhere", "/requests/GONE", "/requests/TODO-4/runs/GONE"):
        page.goto(path)
        expect(page.locator("main")).to_contain_text("_NOT_FOUND")
        axe(page)


def test_axe_finds_nothing_in_what_is_seen_seldom(
    new_page: NewPage, scripted: Up, watch: Watch, axe: Callable[..., None]
) -> None:
    watch.allow("404|405|409")
    page, bench = new_page(up=scripted, look=Look(theme="dark")), scripted.bench
    (bench.root / "requests/RQ-1.md").unlink()
    for path in ("/", "/backlog"):  # first use
        page.goto(path)
        axe(page)
    for number in (1, 2):
        bench.add_request(f"RQ-{number}")
    bench.add_request("RQ-3", status="draft", found_in="RQ-1")
    for path in ("/", "/backlog?s=found"):
        page.goto(path)
        axe(page)
    page.evaluate(SHOW_BANNERS)
    axe(page)
    for action, fields in REFUSED.items():  # as a browser without a script is answered
        with page.expect_navigation():
            page.evaluate(SUBMIT, [action, fields])
        axe(page)
    bench.configure(argv=["no-such-agent"])
    page.goto("/auto/start")
    expect(page.locator("#ev-why")).to_be_visible()
    axe(page)
    engine = engine_at(bench.root)
    queue = engine.locks.acquire_queue()
    assert not isinstance(queue, Lock)
    engine.control.ask_stop(StopRequest.AFTER_RUN)
    page.goto("/")
    expect(page.locator("#qbar")).to_contain_text("Auto-run is stopping")
    axe(page)
    queue.release()


def test_axe_finds_nothing_in_the_switcher(
    new_page: NewPage, bench: Bench, tmp_path: Path, axe: Callable[..., None]
) -> None:
    other = tmp_path / "second"
    other.mkdir()
    fresh_git.make_repository(other)
    second = Bench(other, tmp_path / "own")
    second.aiflow.environ["XDG_DATA_HOME"] = bench.aiflow.environ["XDG_DATA_HOME"]
    with serving(bench) as here, serving(second) as there:
        for theme in THEMES:
            for width, place in ((1440, "#others"), (390, "#drawer")):
                page = new_page(up=here, look=Look(theme=theme, width=width))
                page.goto("/")
                while not page.locator("#others").count():  # a page does not wait for it
                    page.goto("/")
                page.locator(f"{place} summary").click()
                link = page.locator(place).get_by_role("link", name="second")
                expect(link).to_have_attribute("href", f"{there.url}/")
                expect(link).to_be_visible()
                axe(page)
        there.asks(signal.SIGINT)
        there.process.communicate()


@both_widths
def test_everything_can_be_hit_by_a_finger_or_a_pointer(page: Page, look: Look, pages: dict[str, str]) -> None:
    small = """(least) => [...document.querySelectorAll('button, a.btn, nav a, .field, .choice')]
      .filter((each) => each.checkVisibility() && each.getBoundingClientRect().width > 1)
      .map((each) => [each.outerHTML.slice(0, 90), each.getBoundingClientRect().height])
      .filter(([, height]) => height < least)"""
    for path in pages.values():
        page.goto(path)
        assert page.evaluate(small, 40 if look.is_phone else 24) == [], path
    if look.is_phone:
        expect(page.locator(".tabbar")).to_be_visible()
        assert page.locator(".tabbar").bounding_box()["y"] > 700  # type: ignore[index]


def test_one_place_speaks_politely(page: Page) -> None:
    for path in (*PAGES.values(), "/backlog?s=all", "/backlog/graph"):
        page.goto(path)
        assert page.locator("[aria-live=polite], [role=status]").count() == 1, path
        assert page.locator("[role=alert]:not([hidden])").count() == 0, path


def test_what_waits_is_announced(new_page: NewPage, scripted: Up) -> None:
    from browser.desk import ask, open_live  # what changes needs a place of its own

    page = new_page(up=scripted)
    open_live(page)
    ask(scripted.bench, "RQ-1")
    expect(page.locator("#said")).to_have_text("1 waits for you")


def test_the_morning_prints_what_waits_dark_on_light_without_the_frame(page: Page, up: Up) -> None:
    page.context.add_cookies([{"name": "aiflow_theme", "value": "dark", "url": up.url}])
    page.goto("/")
    assert page.evaluate(INK) == DARK_INK
    page.emulate_media(media="print")
    for gone in (".rail", ".tabbar", ".topbar", "#waiting .btn", "#waiting textarea"):
        assert page.locator(f"{gone} >> visible=true").count() == 0, gone
    for there in ("#h-lead", "#wait-TODO-4", "#wait-TODO-4 .ask"):
        expect(page.locator(there)).to_be_visible()
    assert page.evaluate(INK) == LIGHT_INK  # whatever theme was chosen


def test_with_forced_colours_one_sees_where_one_is_and_what_failed(page: Page, up: Up) -> None:
    page.emulate_media(forced_colors="active")
    run_id = up.bench.run_ids("TODO-3")[-1]  # its tests failed once
    page.goto(f"/requests/TODO-3/runs/{run_id}?step=S01&view=log")
    expect(page.locator(".log .v.bad").first).to_have_css("border-left-width", "4px")
    [here, other] = (page.locator(f".views a{each}").first for each in ("[aria-current]", ":not([aria-current])"))
    line = "(link) => getComputedStyle(link).borderBottomColor"
    assert here.evaluate(line) != other.evaluate(line)
    page.goto("/backlog")
    for each in ("#rail a[aria-current]", "#shelf-open"):
        expect(page.locator(each)).to_have_css("outline-style", "solid")
    expect(page.locator("#shelf-ready")).to_have_css("outline-style", "none")


def test_under_reduced_motion_nothing_moves(page: Page) -> None:
    page.goto("/")
    moving = "() => document.getAnimations().filter((each) => each.playState === 'running').length"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.evaluate(moving) == 0
