"""A log that grows by 1,000 lines a second, watched: what is typed is answered at once, and it takes no more memory."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import CDPSession, Page, expect

from aiflow.domain.runs.run import Run
from aiflow.ports import StepLog
from e2e.up import Up
from forms import rounds
from real_engine import engine_at
from run_page_runs import path_of, worked_on, write_run

pytestmark = [pytest.mark.spec("WEB-3"), pytest.mark.timing]

LINES_A_SECOND, PIECES_A_SECOND = 1_000, 10
# A call's output is cut at 10 MB: what prints for longer is a call after the other.
LINES_A_CALL = 20_000
SECONDS = rounds(12, 60)
# Not one letter of it is in the log, however slowly it is typed: whoever finds something leaves the end for it.
NOWHERE = "zzzzzzz"
WORDS = ", and all the words of a test" * 8
# However long the log is: its text alone is 250 kB a second.
ROOM = 200_000 if SECONDS < 60 else 1_000_000
# From the key to the picture that shows it: the frame that follows is drawn when the message arrives. And what keeps the page
# from answering: nobody who waits for one key before the next is pressed meets it as often as somebody who just types.
NOTE_ANSWERS = """() => { window.took = []; window.busy = [];
new PerformanceObserver((seen) => window.busy.push(...seen.getEntries().map((each) => each.duration))).observe(
  { type: "longtask" });
addEventListener("keydown", (event) => requestAnimationFrame(() => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => window.took.push(performance.now() - event.timeStamp);
  port2.postMessage(null);
}), true); }"""


class Growth:
    """Writes a log as a test that prints a lot does."""

    def __init__(self, root: Path, run: Run) -> None:
        self._engine, self._run = engine_at(root), run
        self._stop = threading.Event()
        self.lines = self.size = self.calls = 0

    def write(self) -> None:
        """Write until somebody says stop, at the rate, whatever was late before."""
        log = self._next_call()
        began, piece = time.monotonic(), LINES_A_SECOND // PIECES_A_SECOND
        while not self._stop.wait(max(0.0, began + self.lines / LINES_A_SECOND - time.monotonic())):
            numbers = range(self.lines, self.lines + piece)
            data = "".join(f"test_{n} \x1b[32mok\x1b[0m in 0.{n % 1000:03} s{WORDS}\n" for n in numbers)
            log.write(data.encode())
            self.lines += piece
            self.size += len(data)
            if self.lines % LINES_A_CALL == 0:
                log.close()
                log = self._next_call()
        log.close()

    def _next_call(self) -> StepLog:
        self.calls += 1
        return self._engine.runs.open_log(self._run, 2, "unit tests: make")

    def stop(self) -> None:
        """Let it end."""
        self._stop.set()


class Used(NamedTuple):
    """What a page uses."""

    heap: int
    nodes: int
    listeners: int


def used(session: CDPSession) -> Used:
    """Measure it without what nobody holds any more."""
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    counted = session.send("Memory.getDOMCounters")
    return Used(session.send("Runtime.getHeapUsage")["usedSize"], counted["nodes"], counted["jsEventListeners"])


@contextlib.contextmanager
def growing(root: Path) -> Iterator[Growth]:
    """Let a log grow while the block lasts."""
    growth = Growth(root, write_run(root, "running"))
    thread = threading.Thread(target=growth.write)
    with worked_on(root, "running"):
        thread.start()
        try:
            yield growth
        finally:
            growth.stop()
            thread.join()


def until(seconds: float) -> Iterator[None]:
    """Go on for so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


def test_a_log_can_grow_quickly_before_somebody_who_types(
    page: Page, up: Up, allowed: Callable[[float], float]
) -> None:
    with growing(up.bench.root) as growth:
        page.goto(f"{path_of('running')}?step=S02&view=log")
        expect(page.locator("#log-follow")).to_have_attribute("aria-pressed", "true")
        page.evaluate(NOTE_ANSWERS)
        session = page.context.new_cdp_session(page)
        page.locator("#log-search").focus()
        for _ in until(SECONDS / 2):
            page.keyboard.type(NOWHERE, delay=60)
            for _ in NOWHERE:
                page.keyboard.press("Backspace", delay=60)
        before, size_before = used(session), growth.size
        page.locator("[data-log]").focus()
        for _ in until(SECONDS / 2):
            page.keyboard.press("Shift", delay=60)
        after, size_after = used(session), growth.size
        took, busy = sorted(page.evaluate("() => window.took")), page.evaluate("() => window.busy")
        expect(page.locator("#log-follow")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(f".space[data-lines='{growth.lines + growth.calls}']")).to_be_attached()
    assert growth.lines >= 0.9 * LINES_A_SECOND * SECONDS
    shares = {share: round(took[int(len(took) * share)], 1) for share in (0.5, 0.95, 0.99)}
    told = f"{growth.lines} lines, {len(took)} keys, ms {shares}, busy {busy}, bytes {(size_before, size_after)}, {before}, {after}"
    print(told)
    at_once = 1000 * allowed(0.1)
    assert shares[0.95] < at_once, told
    assert sum(max(0.0, each - at_once) for each in busy) < 0.05 * 1000 * SECONDS, told
    # Only what is in view is kept: the server has the rest, and finds what is searched for in it.
    assert after.heap - before.heap < ROOM, told
    assert after.nodes - before.nodes < 1_000, told
    assert after.listeners - before.listeners < 20, told
