"""What is done on a page before its picture is taken, and what happens to all that look at one at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from urllib.parse import urlsplit

from playwright.sync_api import Page

from aiflow.domain.agents.answers import Role
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.runs.agent_events import quota_reached
from aiflow.domain.runs.quota import QuotaPatience
from browser.desk import open_live
from browser.long_night import MORNING as DAWN
from builders import write_request
from e2e.up import Up
from real_engine import engine_at
from run_builders import why
from waiting import wait_until

# What is only said for 3 s stays until its picture is taken.
KEEP_FOUND = """() => { const found = document.getElementById('found'); new MutationObserver(() => {
  if (!found.hidden) setInterval(() => { found.hidden = false; }, 10); }).observe(found, { attributes: true }); }"""
Undo = Callable[[], object]


def just_look(page: Page, up: Up) -> None:
    """Do nothing."""


def undo_nothing() -> None:
    """Leave it as it is."""


def _find(page: Page, up: Up) -> None:
    page.keyboard.press("Control+k")
    page.locator("dialog[open] input").fill("TODO")
    page.locator("dialog[open] .offers > li").first.wait_for()


def _help(page: Page, up: Up) -> None:
    page.keyboard.press("?")
    page.locator("dialog[open]").wait_for()


def _start(page: Page, up: Up) -> None:
    page.locator("main [href='/auto/start']").click()
    page.locator("dialog[open]").wait_for()


def _stop(page: Page, up: Up) -> None:
    page.locator(".qbar [data-dialog]").click()
    page.locator("dialog[open]").wait_for()


def _cancel(page: Page, up: Up) -> None:
    page.locator("[href$='/cancel']:visible").first.click()
    page.locator("dialog[open]").wait_for()


def _run_beside(page: Page, up: Up) -> None:
    page.locator("[action$='/run'] button").click()
    page.locator("main .notice").wait_for()


def _edit_beside(page: Page, up: Up) -> None:
    path = up.bench.root / "requests/TODO-8.md"
    page.locator("textarea").first.evaluate("(field) => { field.value = field.value.replace('P3', 'P1'); }")
    path.write_text(path.read_text().replace("P3", "P2"))
    page.locator("main form .btn--go").click()
    page.locator("main .notice").first.wait_for()
    path.write_text(path.read_text().replace("P2", "P3"))


def _search(page: Page, up: Up) -> None:
    page.locator("#log-search").fill("test")
    page.locator("#log-hits:not(:empty)").wait_for()


def _accept_two(page: Page, up: Up) -> None:
    waiting = page.locator("tr:has([href='#s-accept']) .turn input").all()  # one for each look, while there are any
    for box in (*waiting[:1], page.locator("#row-TODO-7 .turn input")):
        box.evaluate("(each) => each.click()")  # a phone has them behind a button
    page.locator("#several [value=accept]").click()
    page.locator(".results").wait_for()


def _open_drawer(page: Page, up: Up) -> None:
    page.locator("#drawer > summary").click()


def _force(page: Page, up: Up) -> None:
    page.locator("[href*='force=1']:visible").first.click()
    page.locator("dialog[open]").wait_for()


def _tell_of_a_new_version(page: Page, up: Up) -> None:
    page.locator("#update").evaluate("(each) => { each.hidden = false; }")


def _find_others(page: Page, up: Up) -> None:
    wait_until(lambda: page.goto("/") and page.locator("#others").count())  # a page does not wait for it
    page.locator("#others > summary, #drawer > summary").locator("visible=true").click()


def _open_anew(page: Page) -> None:
    page.reload()
    page.locator("#qbar").wait_for()


def _stop_after(page: Page, up: Up) -> Undo:
    control = engine_at(up.bench.root).control
    control.ask_stop(StopRequest.AFTER_RUN)
    _open_anew(page)
    return control.clear_stop


def _choose_next(page: Page, up: Up) -> Undo:
    lock = up.bench.root / ".aiflow/locks/request.TODO-11.lock.json"
    kept = lock.rename(lock.with_suffix(".kept"))
    _open_anew(page)
    return lambda: kept.rename(lock)


def _use_up_the_quota(page: Page, up: Up) -> Undo:
    root = up.bench.root
    (run_id,) = up.bench.run_ids("TODO-11")
    runs, stage = engine_at(root).runs, root / f"runs/TODO-11/{run_id}/stage.json"
    run, before = runs.load("TODO-11", run_id), stage.read_bytes()
    assert run is not None
    reached = DAWN - timedelta(minutes=2)
    until = (DAWN + timedelta(minutes=41), QuotaPatience(9))
    runs.save(quota_reached(run, Role.IMPLEMENTER, why("AGENT_QUOTA", "5-hour limit"), until, reached))
    _open_anew(page)
    return lambda: stage.write_bytes(before)


def _take_out(page: Page, up: Up) -> None:
    page.locator("[href$='/undo']").first.evaluate("(link) => link.click()")  # it may be behind "…"
    page.locator("dialog[open]").wait_for()


def _comment(page: Page, up: Up) -> None:
    for number, words in ((1, "Why first?"), (2, "二行目も確認してください。")):
        page.locator(f"tr[data-line='{number}'] .say-it").last.evaluate(
            "(button) => button.click()"
        )  # hidden until hovered
        page.locator("tr.say textarea:focus").fill(words)
    page.locator("[data-comments]:visible").first.click()
    page.locator("dialog[open] .lines li").first.wait_for()


def _lose_the_run(page: Page, up: Up) -> Undo:
    """Take a run away that a page shows."""
    folder = next(up.bench.root.glob(f"runs/*/{urlsplit(page.url).path.rsplit('/', 1)[-1]}"))
    open_live(page, urlsplit(page.url).path)
    aside = folder.rename(up.bench.root / "aside")
    path = write_request(up.bench.root, "RQ-80", "status: draft\n\n# Something happens\n")
    page.locator("#gone").wait_for()

    def undo() -> None:
        aside.rename(folder)
        path.unlink()

    return undo


def _mistype(page: Page, up: Up) -> None:
    page.locator("input[name=code]").fill("WRONG-CODE")
    page.locator("button[type=submit]").click()
    page.locator(".notice").wait_for()


def _answer_elsewhere(pages: list[Page], up: Up) -> Up:
    for page in pages:
        page.locator("#wait-TODO-4 textarea").fill("OVERDUE!")
    up.bench.aiflow("resume", "TODO-4", "--answer", "late", "--json")
    for page in pages:
        page.locator("#waiting .taken").wait_for()
    return up


def _lose(pages: list[Page], up: Up) -> Up:
    if up.process.poll() is None:
        up.kill()
    for page in pages:
        page.locator("#lost").wait_for()
    return up


def _find_again(pages: list[Page], up: Up) -> Up:
    _lose(pages, up)
    for page in pages:
        page.evaluate(KEEP_FOUND)
    again = Up(up.bench, "--port", str(urlsplit(up.url).port))
    for page in pages:
        page.locator("#found").wait_for()
    return again


# What is done on a page before its picture is taken.
DEEDS: Mapping[str, Callable[[Page, Up], Undo | None]] = {
    "palette": _find,
    "keys-dialog": _help,
    "evening": _start,
    "stop-auto": _stop,
    "cancel": _cancel,
    "in-the-way": _run_beside,
    "edit-conflict": _edit_beside,
    "log-search": _search,
    "several": _accept_two,
    "drawer": _open_drawer,
    "force": _force,
    "new-version": _tell_of_a_new_version,
    "switcher": _find_others,
    "bar-stopping": _stop_after,
    "bar-choosing": _choose_next,
    "bar-waiting": _use_up_the_quota,
    "undo": _take_out,
    "send-back-lines": _comment,
    "run-gone": _lose_the_run,
    "sign-in-wrong": _mistype,
}
# What happens to all that look at a page at once, in this order: nothing of the scene is as it was afterwards.
ENDS: Mapping[str, Callable[[list[Page], Up], Up]] = {
    "taken": _answer_elsewhere,
    "lost": _lose,
    "found": _find_again,
}
