"""Pictures of every page in every state: both languages, light and dark, wide and narrow."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import timedelta
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright
from playwright.sync_api import TimeoutError as TooLateError

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from aiflow.domain.agents.answers import Role  # noqa: E402
from aiflow.domain.auto.stopping import StopRequest  # noqa: E402
from aiflow.domain.runs.agent_events import quota_reached  # noqa: E402
from aiflow.domain.runs.quota import QuotaPatience  # noqa: E402
from browser import chromium  # noqa: E402
from browser.desk import open_live  # noqa: E402
from browser.long_night import MORNING as DAWN  # noqa: E402
from browser.look import LANGUAGES, LOOKS, Look  # noqa: E402
from browser.picture_scenes import NIGHT, SCENES  # noqa: E402
from browser.window import Watch, Windows  # noqa: E402
from e2e.up import Up  # noqa: E402
from real_engine import engine_at  # noqa: E402
from run_builders import why  # noqa: E402
from waiting import wait_until  # noqa: E402

REPLACE = """([was, is]) => { const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(was, is); }"""
# What is only said for 3 s stays until its picture is taken.
KEEP_FOUND = """() => { const found = document.getElementById('found'); new MutationObserver(() => {
  if (!found.hidden) setInterval(() => { found.hidden = false; }, 10); }).observe(found, { attributes: true }); }"""
# What a window is told besides, where it is another one than that of somebody who is signed in.
OTHERWISE = {"sign-in": {"is_signed_in": False}, "no-script": {"java_script_enabled": False}}
ON_PHONES = {"drawer"}
Pages = Mapping[str, str]
Undo = Callable[[], object]


def _just_look(page: Page, up: Up) -> None:
    pass


def _undo_nothing() -> None:
    pass


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
}
# What happens to all that look at a page at once, in this order: nothing of the scene is as it was afterwards.
ENDS: Mapping[str, Callable[[list[Page], Up], Up]] = {
    "taken": _answer_elsewhere,
    "lost": _lose,
    "found": _find_again,
}


def take_all(folder: Path, wanted: tuple[str, ...] = ("*",)) -> int:
    """Take the pictures whose names fit one of the patterns, and return how many there are."""
    found = chromium.find()
    if found is None:
        sys.exit(chromium.MISSING)
    folder.mkdir(parents=True, exist_ok=True)
    taken = 0
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as place:
        browser = playwright.chromium.launch(executable_path=found.path, args=[*found.args])
        for language in LANGUAGES:
            for scene, names in SCENES.items():
                looks = {name: _looks(name, language, wanted) for name in names}
                if not any(looks.values()):
                    continue
                with scene(Path(place, f"{scene.__name__}-{language}"), language) as (up, pages):
                    taken += _take(Windows(browser, Watch()), up, {name: looks[name] for name in pages}, pages, folder)
                    if pages is NIGHT and "*" in wanted:
                        taken += _take_for_readme(Windows(browser, Watch()), up, language, folder)
        browser.close()
    return taken


def _looks(name: str, language: str, wanted: tuple[str, ...]) -> tuple[Look, ...]:
    """Return the looks in which a picture is wanted."""
    return tuple(
        look
        for look in LOOKS
        if look.language == language
        and (look.is_phone or name not in ON_PHONES)
        and any(fnmatch(f"{name}-{look}", each) or name == each for each in wanted)
    )


def _take(windows: Windows, up: Up, looks: Mapping[str, tuple[Look, ...]], pages: Pages, folder: Path) -> int:
    """Take the pictures of one scene; those of its end come last."""
    last: dict[str, list[tuple[Page, Path]]] = {name: [] for name in ENDS}
    for look in sorted({look for each in looks.values() for look in each}, key=LOOKS.index):
        signed_in = _at_its_time(windows.open(up, look), pages)
        for name, path in pages.items():
            to = folder / f"{name}-{look}.png"
            if look in looks[name] and name in ENDS:
                last[name].append((windows.open(up, look), to))
                open_live(last[name][-1][0], path)
            elif look in looks[name]:
                page = windows.open(up, look, **OTHERWISE[name]) if name in OTHERWISE else signed_in
                page.goto(path)
                _settle(page)
                undo = DEEDS.get(name, _just_look)(page, up) or _undo_nothing
                _shoot(page, to)
                undo()
    for name, opened in last.items():
        if opened:
            up = ENDS[name]([page for page, _ in opened], up)
        for page, to in opened:
            _shoot(page, to)
    windows.close()
    return sum(map(len, looks.values()))


def _at_its_time(page: Page, pages: Pages) -> Page:
    """Have a browser in front of a moment that does not pass live in it, too."""
    if pages is NIGHT:
        page.clock.set_fixed_time(DAWN)
    return page


def _shoot(page: Page, to: Path) -> None:
    """Take the whole page; what is behind a dialog or below a bar that stays cannot be scrolled to."""
    is_covered = page.locator("dialog[open], #drawer[open], .lost:not([hidden])").count() > 0
    seen = page.viewport_size
    if not is_covered and seen and seen["width"] < 600:  # on a phone a bar at the end of the screen would hide a part
        page.set_viewport_size({**seen, "height": page.evaluate("() => document.documentElement.scrollHeight")})
    if not is_covered:
        page.evaluate("() => scrollTo(0, 0)")
    page.screenshot(path=to, full_page=not is_covered, animations="disabled")
    if seen:
        page.set_viewport_size(seen)


def _take_for_readme(windows: Windows, up: Up, language: str, folder: Path) -> int:
    """Take the first screen of the morning, which the READMEs show; where the demo lay is nobody's business."""
    page = _at_its_time(windows.open(up, Look(language), viewport={"width": 1280, "height": 800}), NIGHT)
    page.goto("/")
    page.locator("#live").wait_for()
    page.evaluate(REPLACE, [str(up.bench.root), "~/todo"])
    page.evaluate(REPLACE, [urlsplit(up.url).netloc, "127.0.0.1:4310"])
    page.screenshot(path=folder / f"morning.{language}.png", animations="disabled")
    windows.close()
    return 1


def _settle(page: Page) -> None:
    """Wait until a log shows its lines, where there is one with any."""
    if page.locator("[data-log]").count():
        with contextlib.suppress(TooLateError):
            page.locator(".log .v").first.wait_for(state="attached", timeout=3_000)


if __name__ == "__main__":
    to, *wanted = sys.argv[1:]
    print(f"{take_all(Path(to), tuple(wanted) or ('*',))} pictures in {to}")
