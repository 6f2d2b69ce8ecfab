"""A run's page in a real browser (WEB-1, WEB-3): its log, live and long; comments on lines; keys; without a script."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Dialog, Page, expect

from aiflow.domain.runs.events import stopped
from browser.desk import IS_SAME, open_live
from browser.look import PAIRS, Look, both_languages, both_widths, each_size
from browser.window import CUT_OFF, Fine, NewPage, Watch
from e2e.up import Up
from real_engine import engine_at
from run_builders import at, why
from run_page_runs import HOSTILE, MADE, REQUESTS, WORKED_ON, id_of, path_of, worked_on, write_log, write_run

pytestmark = pytest.mark.spec("WEB-1", "WEB-3")

LONG = 100_000
SHOWN = ("running", "question", "tests_failed", "done", "replaced")


def log_of(up: Up, name: str, number: int, title: str, text: str) -> None:
    """Add to a log of a run that is there."""
    engine = engine_at(up.bench.root)
    run = engine.runs.load(REQUESTS[name], id_of(name))
    assert run is not None
    write_log(engine, run, number, title, text)


def last_row(page: Page) -> str:
    return page.locator(".log .v").last.inner_text()


def is_at_end(page: Page) -> bool:
    box = "document.querySelector('[data-log]')"
    return bool(page.evaluate(f"() => {box}.scrollHeight - {box}.scrollTop - {box}.clientHeight < 4"))


def rows(page: Page) -> int:
    return page.locator(".log .v").count()


@pytest.fixture
def stopped_run(up: Up) -> str:
    """Give the address of a run whose tests failed, with a log."""
    write_run(up.bench.root, "tests_failed")
    log_of(up, "tests_failed", 2, "implementer S02 attempt 2", "".join(f"line {n}\n" for n in range(300)))
    log_of(up, "tests_failed", 2, "unit tests: python3 -m unittest", "FAIL: test_a (tests.T)\nFAILED (failures=1)\n")
    return path_of("tests_failed")


@pytest.fixture
def live_run(up: Up) -> Iterator[str]:
    """Give the address of a run that this process works on."""
    write_run(up.bench.root, "running")
    log_of(up, "running", 2, "implementer S02 attempt 1", "".join(f"line {n}\n" for n in range(200)))
    with worked_on(up.bench.root, "running"):
        yield path_of("running")


@each_size
def test_it_can_be_read_by_everybody(page: Page, up: Up, look: Look, fine: Fine) -> None:
    for name in SHOWN:
        write_run(up.bench.root, name)
        for number in (1, 2):
            log_of(up, name, number, f"implementer S0{number} attempt 1", "Read a.py\nFAIL: test_a (tests.T)\n")
    with worked_on(up.bench.root, "running"):
        for name in SHOWN:
            page.goto(path_of(name))
            expect(page.locator("h1")).to_be_visible()
            if page.locator("[data-log]").count():
                expect(page.locator(".log .v").first).to_be_attached()
            fine(page, f"run-{name}")
            is_wide = page.evaluate("() => document.documentElement.scrollWidth") > look.width
            assert not is_wide, f"{name} scrolls sideways"


@pytest.mark.parametrize("look", PAIRS[:2], ids=str)
def test_every_other_state_can_be_read_by_everybody_too(
    page: Page, up: Up, look: Look, axe: Callable[..., None]
) -> None:
    states = [name for name in MADE if name not in SHOWN]
    for name in states:
        write_run(up.bench.root, name)
    with worked_on(up.bench.root, *(name for name in states if name in WORKED_ON)):
        for name in states:
            page.goto(path_of(name))
            expect(page.locator("#reason h2")).to_be_visible()
            axe(page)
            for width in (320, 390) if look.is_phone else ():
                page.set_viewport_size({"width": width, "height": 844})
                is_wide = page.evaluate("() => document.documentElement.scrollWidth") > width
                assert not is_wide, f"{name} scrolls sideways at {width}"


class TestLongLog:
    @pytest.fixture
    def address(self, up: Up) -> str:
        write_run(up.bench.root, "tests_failed")
        lines = (
            f"line {n}: word{n % 7}\n" + ("FAIL: test_a (tests.T)\n" if n == LONG // 2 else "") for n in range(LONG)
        )
        log_of(up, "tests_failed", 2, "implementer S02 attempt 1", "".join(lines))
        return path_of("tests_failed")

    def test_it_opens_at_the_failure_with_few_rows(self, page: Page, address: str) -> None:
        page.goto(address)
        expect(page.locator(f".space[data-lines='{LONG + 2}']")).to_be_attached()
        expect(page.locator(".log .v.bad")).to_have_text(re.compile(rf"^{LONG // 2 + 3}\d\d:\d\d:\d\dFAIL: test_a"))
        expect(page.locator(".log .v.bad")).to_be_in_viewport()
        assert rows(page) < 100
        expect(page.locator("#log-failure")).to_contain_text("1 failure")

    def test_search_counts_every_line_and_leads_to_each(self, page: Page, address: str) -> None:
        page.goto(address)
        expect(page.locator(f".space[data-lines='{LONG + 2}']")).to_be_attached()
        page.keyboard.press("/")
        page.keyboard.type("WORD3")
        count = f"{len(range(3, LONG, 7)):,}"
        expect(page.locator("#log-hits")).to_have_text(f"1 of {count}")
        page.keyboard.press("Enter")
        expect(page.locator("#log-hits")).to_have_text(f"2 of {count}")
        expect(page.locator(".log .at")).to_contain_text("line 10: word3")
        expect(page.locator(".log .at .hit")).to_have_text("word3")
        page.keyboard.press("Shift+Enter")
        page.keyboard.press("Shift+Enter")
        expect(page.locator("#log-hits")).to_have_text(f"{count} of {count}")
        assert rows(page) < 100
        page.locator("#log-search").fill("nowhere")
        expect(page.locator("#log-hits")).to_have_text("no hits")

    def test_a_line_has_an_address(self, page: Page, address: str) -> None:
        page.goto(f"{address}?step=S02&view=log#L777")
        expect(page.locator("#L777")).to_be_in_viewport()
        expect(page.locator("#L777")).to_have_class(re.compile(r"\bat\b"))
        page.locator("#L780 .no").click()
        expect(page).to_have_url(re.compile("#L780$"))


class TestLiveLog:
    def test_it_follows_until_the_reader_scrolls_up(self, page: Page, up: Up, live_run: str) -> None:
        page.goto(live_run)
        expect(page.locator("#log-follow")).to_have_attribute("aria-pressed", "true")
        log_of(up, "running", 2, "commit", "the newest line\n")
        expect(page.locator(".log .v").last).to_contain_text("the newest line")
        assert is_at_end(page)
        page.locator("[data-log]").hover()
        page.mouse.wheel(0, -600)
        expect(page.locator("#log-follow")).to_have_attribute("aria-pressed", "false")
        before = page.evaluate("() => document.querySelector('[data-log]').scrollTop")
        log_of(up, "running", 2, "push", "one more\n")
        expect(page.locator("#log-new")).to_have_text("2 new lines")
        assert page.evaluate("() => document.querySelector('[data-log]').scrollTop") == before
        page.locator("#log-new").click()
        expect(page.locator(".log .v").last).to_contain_text("one more")
        expect(page.locator("#log-follow")).to_have_attribute("aria-pressed", "true")
        page.keyboard.press("f")
        expect(page.locator("#log-follow")).to_have_attribute("aria-pressed", "false")

    def test_a_run_that_stops_changes_its_panel_and_neither_log_nor_search(
        self, page: Page, up: Up, live_run: str
    ) -> None:
        page.goto(live_run)
        expect(page.locator(".log .v").first).to_be_attached()
        page.locator("#log-search").fill("line 17")
        expect(page.locator("#log-hits")).to_have_text("1 of 11")
        page.evaluate("() => { window.kept = document.querySelector('[data-log]'); }")
        engine = engine_at(up.bench.root)
        run = engine.runs.load(REQUESTS["running"], id_of("running"))
        assert run is not None
        engine.runs.save(stopped(replace(run), why("AGENT_FAILED", "it went away"), at(50)))
        expect(page.locator("#reason")).to_contain_text("AGENT_FAILED")
        assert page.evaluate("() => window.kept === document.querySelector('[data-log]') && window.kept.isConnected")
        expect(page.locator("#log-search")).to_have_value("line 17")
        expect(page.locator("#log-hits")).to_have_text("1 of 11")
        assert rows(page) > 5

    def test_a_log_that_was_truncated_or_whose_server_is_restarted_is_followed_on(
        self, page: Page, up: Up, live_run: str, watch: Watch
    ) -> None:
        watch.allow(CUT_OFF, must_come=False)
        open_live(page, live_run)
        expect(page.locator(".log .v").last).to_contain_text("line 199")
        [log] = (up.bench.root / "runs" / REQUESTS["running"]).glob("RUN-*/**/*.log")
        log.write_bytes(b"")
        log_of(up, "running", 2, "unit tests: make", "the first line again\n")
        expect(page.locator(".log .note")).to_have_text("The log was truncated; it is read again from its start.")
        expect(page.locator(".log .v").last).to_contain_text("the first line again")
        expect(page.locator(".log .v", has_text="line 199")).to_have_count(0)
        up.kill()
        expect(page.locator("#lost")).to_be_visible()
        log_of(up, "running", 2, "commit", "written while nobody served\n")
        Up(up.bench, "--port", str(urlsplit(up.url).port))
        expect(page.locator(".log .v").last).to_contain_text("written while nobody served")
        log_of(up, "running", 2, "push", "and after\n")
        expect(page.locator(".log .v").last).to_contain_text("and after")
        expect(page.locator("#log-follow")).to_have_attribute("aria-pressed", "true")
        assert page.evaluate(IS_SAME)


def press(page: Page, key: str, address: str) -> None:
    """Press a key that leads to another page, and wait until that one hears keys."""
    page.keyboard.press(key)
    expect(page).to_have_url(re.compile(address))
    page.wait_for_load_state("load")


def test_steps_and_views_have_keys(page: Page, stopped_run: str) -> None:
    page.goto(stopped_run)
    expect(page.locator("[aria-current=step]")).to_contain_text("S02")
    press(page, "[", r"step=S01&view=log")
    press(page, "]", r"step=S02&view=log")
    expect(page.locator(".log .v.bad").first).to_be_visible()
    page.keyboard.press("n")
    expect(page.locator(".log .at")).to_contain_text("FAIL: test_a")
    page.keyboard.press("n")
    expect(page.locator(".log .at")).to_contain_text("FAILED (failures=1)")
    press(page, "d", r"step=S02&view=diff")
    press(page, "l", r"step=S02&view=log")


def test_a_long_line_is_cut_and_can_be_seen_whole(page: Page, up: Up, stopped_run: str) -> None:
    log_of(up, "tests_failed", 1, "implementer S01 attempt 1", f"{'x' * 5000}the end\n")
    page.goto(f"{stopped_run}?step=S01&view=log")
    row = page.locator("#L2")
    expect(row).to_contain_text("show all")
    assert "the end" not in row.inner_text()
    row.locator("button").click()
    expect(page.locator("#log-whole")).to_contain_text("xthe end")
    with page.expect_response(re.compile("/runs/")):  # the page fetches itself again
        page.evaluate("() => document.body.dispatchEvent(new Event('aiflow:done'))")
    expect(page.locator("#log-whole")).to_contain_text("xthe end")
    page.keyboard.press("Enter")
    expect(page.locator("#log-whole")).to_have_count(0)


@each_size
def test_lines_have_their_colours_and_their_times(page: Page, look: Look, up: Up, fine: Fine) -> None:
    write_run(up.bench.root, "tests_failed")
    text = "\x1b[1;31mred\x1b[0m and \x1b[42mgreen\x1b[0m\nFAIL: \x1b[33mtest\x1b[0m_a (tests.T)\n"
    log_of(up, "tests_failed", 2, "unit tests: make", text)
    page.goto(path_of("tests_failed"))
    expect(page.locator("#L2 .ansi-bold.ansi-1")).to_have_text("red")
    expect(page.locator("#L2 .ansi-on-2")).to_have_text("green")
    expect(page.locator("#L3.bad .ansi-3")).to_have_text("test")  # what it says counts, not its colours
    when = page.locator("#L2 time.when")
    expect(when).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))
    began = page.locator(".now time").get_attribute("datetime")
    written = when.get_attribute("datetime")
    assert began is not None
    assert written is not None
    assert datetime.fromisoformat(began) <= datetime.fromisoformat(written)
    expect(when).to_be_visible(visible=not look.is_phone)
    page.locator("#log-search").fill("red and green")
    expect(page.locator("#log-hits")).to_have_text(re.compile("1"))
    fine(page, "run-colours")


@both_languages
def test_nothing_that_others_wrote_does_anything(page: Page, up: Up) -> None:
    asked: list[str] = []

    def hear(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", hear)
    write_run(up.bench.root, "hostile")
    log_of(up, "hostile", 1, f"implementer S01 attempt 1 {HOSTILE}", f"{HOSTILE}\n\x1b]8;;javascript:alert(1)\x07x\n")
    for view in ("log", "diff", "report", "plan"):
        page.goto(f"{path_of('hostile')}?step=S01&view={view}")
        expect(page.locator("h1")).to_have_text(HOSTILE)
    page.goto(f"{path_of('hostile')}?step=S01&view=log")
    expect(page.locator(".log .v", has_text="onerror").last).to_contain_text(HOSTILE)
    assert page.locator("main img").count() == 0
    assert asked == []


class TestComments:
    @pytest.fixture
    def address(self, up: Up) -> str:
        root = up.bench.root
        write_run(root, "done")
        (root / "added.py").write_text("one\ntwo\nthree\n")
        (root / "long.py").write_text("".join(f"line {n}\n" for n in range(1, 121)))
        _commit(up, "added.py", "long.py")
        return f"{path_of('done')}?view=diff"

    def test_they_are_kept_in_the_tab_and_sent_with_their_places(self, page: Page, up: Up, address: str) -> None:
        page.goto(address)
        page.locator("[data-path='added.py'] tr[data-line='2'] td.no").last.click()
        page.keyboard.type("Why two?")
        page.locator("[data-path='added.py']").focus()
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
            page.keyboard.press(key)
        page.keyboard.type("And <b>三</b>?")
        page.evaluate("() => document.body.dispatchEvent(new Event('aiflow:done'))")  # the page fetches itself again
        page.reload()
        expect(page.locator("tr.say textarea")).to_have_count(2)
        expect(page.locator("#reason [data-comments]")).to_have_attribute("data-count", "2")
        page.locator("#reason [data-comments]").click()
        expect(page.locator("dialog .lines li")).to_have_text(["added.py:2 Why two?", "added.py:3 And <b>三</b>?"])
        page.locator("dialog .btn--danger").click()
        expect(page.locator("#reason")).to_contain_text("SENT_BACK")
        text = (up.bench.root / "requests" / f"{REQUESTS['done']}.md").read_text()
        assert "added.py:2: Why two? (at `two`)" in text
        assert "added.py:3: And <b>三</b>? (at `three`)" in text
        for _ in range(2):  # what was sent is gone at once, and the run takes no more
            for gone in ("tr.say", ".say-it", "[data-commented]"):
                expect(page.locator(gone)).to_have_count(0)
            page.reload()

    def test_every_line_has_a_button_for_keys_fingers_and_those_who_listen(
        self, page: Page, new_page: NewPage, address: str, fine: Fine
    ) -> None:
        page.goto(address)
        expect(page.locator("#say-how")).to_contain_text("Press the + of a line to comment on it.")
        page.locator("[data-path='added.py']").focus()
        page.keyboard.press("Tab")
        first = page.get_by_role("button", name="Comment on line 1 of added.py")
        expect(first).to_be_focused()
        expect(first).to_have_css("opacity", "1")
        expect(first).to_have_accessible_description("one")
        fine(page, "diff-comments")
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("button", name="Comment on line 2 of added.py")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_label("Comment on line 2 of added.py").and_(page.locator("textarea"))).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Comment on line 2 of added.py")).to_be_focused()

        # Where nobody reads yet there are none, or a diff of 5,000 lines would be slow.
        buttons = page.locator("[data-path='long.py'] .say-it")
        assert buttons.count() < 100
        page.locator("[data-path='long.py'] tr[data-line='115']").scroll_into_view_if_needed()
        expect(page.get_by_role("button", name="Comment on line 115 of long.py")).to_be_attached()

        phone = new_page(look=Look("ja", width=390))
        phone.goto(address)
        phone.locator("[data-path='added.py'] tr[data-line='3']").scroll_into_view_if_needed()
        mine = phone.get_by_role("button", name="added.py の3行目へのコメント")
        box = mine.bounding_box()
        assert box and box["width"] >= 40 and box["height"] >= 24
        fine(phone, "diff-comments-phone")
        mine.tap()
        expect(phone.locator("tr.say textarea")).to_be_focused()


def _commit(up: Up, *paths: str) -> None:
    """Make files the work of the finished run's last step."""
    root: Path = up.bench.root
    up.bench.git("add", "--", *paths)
    up.bench.git("commit", "-qm", "Work")
    commit = up.bench.git("rev-parse", "HEAD")
    stage = next((root / "runs" / REQUESTS["done"]).glob("*/stage.json"))
    stage.write_text(stage.read_text().replace("commit-3", commit))


@both_widths
def test_without_a_script_it_is_all_there(new_page: NewPage, up: Up, stopped_run: str) -> None:
    page = new_page(java_script_enabled=False)
    page.goto(stopped_run)
    expect(page.locator(".log .tail")).to_contain_text("FAILED (failures=1)")
    expect(page.locator("#log-tools")).to_be_hidden()
    page.get_by_role("link", name="Replan").first.click()
    expect(page.locator("main form")).to_contain_text("Close it and replan")
    page.goto(f"{stopped_run}?view=plan")
    expect(page.locator("#plan")).to_contain_text("Do the first.")


def test_on_a_phone_the_recommended_way_is_in_the_dock_and_not_twice(new_page: NewPage, stopped_run: str) -> None:
    page = new_page(look=Look(width=390))
    page.goto(stopped_run)
    expect(page.locator(".dock .btn--go")).to_be_visible()
    expect(page.locator("#reason .btn--go")).to_be_hidden()
    expect(page.locator("#reason .btn").nth(1)).to_be_visible()


@pytest.mark.spec("WEB-3", "ERR-2")
def test_a_run_that_is_gone_can_be_read_but_not_resumed(page: Page, up: Up, watch: Watch) -> None:
    watch.allow("404")
    run = write_run(up.bench.root, "question")
    open_live(page, path_of("question"))
    answer, send = page.locator("#ways textarea"), page.locator("#ways .btn--go")
    answer.fill("overdue")
    folder = up.bench.root / "runs" / run.request_id / run.run_id
    folder.rename(up.bench.root / "aside")
    up.bench.add_request("RQ-80")  # something happens, and the page looks
    expect(page.locator("#gone")).to_contain_text("No such run")
    expect(send).to_have_attribute("aria-disabled", "true")
    expect(page.locator("#gone")).to_be_in_viewport()
    posted: list[str] = []
    page.on("request", lambda request: posted.append(request.url) if request.method == "POST" else None)
    send.click(force=True)
    expect(page.locator("#rail a[data-dialog]").first).not_to_have_attribute("aria-disabled", "true")
    expect(answer).to_have_value("overdue")
    assert posted == []
    there = page.context.new_page()  # opened when it was gone already
    open_live(there, path_of("question"))
    with there.expect_response(lambda response: response.url.startswith(there.url)):
        up.bench.add_request("RQ-82")
    expect(there.locator(".notice")).to_have_count(1)
    (up.bench.root / "aside").rename(folder)
    up.bench.add_request("RQ-81")
    expect(page.locator("#gone")).to_have_count(0)
    expect(send).not_to_have_attribute("aria-disabled", "true")
    expect(answer).to_have_value("overdue")
