"""A place of work where questions wait for a person, and ways to look at a page while something happens to it."""

from __future__ import annotations

from playwright.sync_api import Locator, Page

from e2e.bench import Bench
from e2e.up import Up, wait_for_state

# Asks once, with two choices; when it was answered, waits until it is let go, and ends its work.
ASKS = (
    "mark = HERE / ('asked.' + call['request']['id'])\n"
    "if mark.exists():\n"
    "    while not (HERE / 'go').exists(): time.sleep(0.02)\n"
    "    write(call['request']['id'] + '.txt', 'done'); done()\n"
    "else:\n"
    "    mark.touch()\n"
    "    answer({'status': 'needs_input', 'question': 'Which word?', 'choices': ['late', 'overdue']})"
)
# Counts what the page fetches of itself, by what the browser was told.
COUNT = """() => { window.fetched = 0; const ask = window.fetch; window.fetch = (to, ...rest) => {
  if (String(to).split('?')[0] === location.pathname) window.fetched++; return ask(to, ...rest); }; }"""
HIDE = """(is) => { Object.defineProperty(document, 'hidden', { configurable: true, get: () => is });
  document.dispatchEvent(new Event('visibilitychange')); }"""
HEAR = """addEventListener('DOMContentLoaded', () => { window.heard = 0;
  document.body.addEventListener('aiflow:fact', () => window.heard++); })"""
COUNT_SWAPS = """() => { window.swaps ??= (document.getElementById('app').addEventListener('htmx:after:swap',
  () => window.swaps++), 0); }"""
# A page that is still the one that was opened has this; a reload takes it away.
SIGN = "() => { window.isTheSame = true; }"
IS_SAME = "() => window.isTheSame === true"


def ask(bench: Bench, *request_ids: str) -> None:
    """Have the agent ask a question about each of these requests."""
    bench.agent.does("implementer", ASKS)
    for request_id in request_ids:
        if request_id != "RQ-1":
            bench.add_request(request_id, title=f"About {request_id}")
        bench.start("run", request_id, "--json").communicate()
        wait_for_state(bench, "NEEDS_INPUT", request_id)


def answer_from_terminal(bench: Bench, request_id: str, answer: str = "late") -> None:
    """Answer a question in a terminal; the run goes on until it is let go."""
    bench.start("resume", request_id, "--answer", answer, "--json")


def item(page: Page, request_id: str) -> Locator:
    """The item of the morning that waits for an answer."""
    return page.locator(f"#wait-{request_id}")


def open_live(page: Page, path: str = "/") -> None:
    """Open a page and wait until it hears the stream."""
    page.add_init_script(HEAR)
    page.goto(path)
    page.wait_for_function("() => window.heard > 0")
    page.evaluate(SIGN)


def morph(page: Page, up: Up, times: int = 1) -> None:
    """Have the page change so many times, each by something that happened elsewhere, and wait for each."""
    page.evaluate(COUNT_SWAPS)
    for number in range(times):
        before = page.evaluate("() => window.swaps")
        up.bench.add_request(f"NEW-{number}", title=f"Changed {number}")
        page.wait_for_function("(n) => window.swaps > n", arg=before)
