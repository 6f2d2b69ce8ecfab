"""What others wrote (WEB-1, SEC): script in a title, text, log line, file name, diff, branch, question or choice is only shown."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Dialog, Page, expect

from browser.demo_bench import serving
from browser.desk import item, open_live
from browser.look import both_widths
from builders import write_request
from e2e.bench import Bench
from e2e.up import Up, wait_for_state
from run_page_runs import HOSTILE

pytestmark = pytest.mark.spec("WEB-1", "SEC")

NAME = '<img src=x onerror=alert(1)>".py'  # a file's
BRANCH = "<img/src=x/onerror=alert(1)>"
BODY = f"{HOSTILE}\n\n[press](javascript:alert(1)) <svg onload=alert(1)>\n\n`{HOSTILE}`\n"
ASKS = (
    "if (HERE / 'asked').exists():\n"
    f"    write({NAME!r}, {HOSTILE!r}); print({HOSTILE!r}); done({HOSTILE!r})\n"
    "else:\n"
    "    (HERE / 'asked').touch()\n"
    f"    answer({{'status': 'needs_input', 'question': {HOSTILE!r}, 'choices': [{HOSTILE!r}, 'javascript:alert(1)']}})"
)
# What would be there if a text had become part of the page.
MADE = """() => [...document.querySelectorAll('img, iframe, script:not([src]), [onerror], [onload], [href^="javascript:" i], svg [onload]')]
  .filter((each) => !each.closest('template')).map((each) => each.outerHTML)"""


@pytest.fixture
def up(bench: Bench) -> Iterator[Up]:
    """A request, an agent and a branch that mean ill; a second request waits for the first."""
    for name, more in (("RQ-1", ""), ("RQ-2", "depends_on: [RQ-1]\n")):
        head = f"title: {json.dumps(HOSTILE)}\nstatus: ready\nlabels: {json.dumps([HOSTILE])}\n{more}"
        write_request(bench.root, name, f"---\n{head}---\n\n{BODY}")
    bench.git("branch", "-m", BRANCH)
    bench.agent.does("implementer", ASKS)
    bench.run(code=5)
    with serving(bench) as given:
        yield given


@pytest.fixture
def asked(page: Page) -> Iterator[list[str]]:
    """Hear every dialog that a script opens; there must be none."""
    heard: list[str] = []

    def hear(dialog: Dialog) -> None:
        heard.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", hear)
    yield heard
    assert heard == []


@both_widths
@pytest.mark.usefixtures("asked")
def test_it_is_text_wherever_it_is_shown(page: Page, up: Up) -> None:
    def look(path: str, place: str, text: str = HOSTILE) -> None:
        page.goto(path)
        expect(page.locator(place).first).to_contain_text(text)
        assert page.evaluate(MADE) == [], path

    open_live(page)
    mine = item(page, "RQ-1")
    for place in (".head a", ".ask", ".choice >> nth=0"):
        expect(mine.locator(place)).to_have_text(HOSTILE)
    assert page.evaluate(MADE) == []
    mine.locator(".choice").first.click()
    mine.locator(".btn--go").click()
    expect(mine.locator(".receipt")).to_contain_text(HOSTILE)
    wait_for_state(up.bench, "DONE")
    run = f"/requests/RQ-1/runs/{up.bench.run_ids()[0]}"
    look("/", "#wait-RQ-1 .stat dt", NAME)
    look("/backlog?s=all", "#row-RQ-2 .title")
    look("/backlog/graph", ".graph title")
    look("/requests/RQ-1", ".md", "<script>alert(1)</script>")
    assert HOSTILE in page.title()
    look("/requests/RQ-1/edit", "textarea[name=text]")
    look("/activity", "main", "RQ-1")
    settings = up.bench.root / "aiflow.toml"
    before = settings.read_text()
    settings.write_text(f'accept = "auto"\n{before}')  # then it says where it merges into
    look("/auto/start", "main", BRANCH)
    settings.write_text(before)
    look(f"{run}?view=log", ".log .v >> text=onerror")
    look(f"{run}?view=report", "#reason .ways", BRANCH)
    look(f"{run}?view=plan", "h1")
    look(f"{run}?view=diff", ".file .path", NAME)
    row = page.locator("[data-path] tr[data-line='1']")
    expect(row).to_contain_text(HOSTILE)
    row.locator("td.no").last.click()
    page.keyboard.type(HOSTILE)
    page.locator("[data-comments] >> visible=true").first.click()
    expect(page.locator("dialog .lines li")).to_have_text(f"{NAME}:1 {HOSTILE}")
    page.locator("dialog .btn--danger").click()
    expect(page.locator("#reason")).to_contain_text("SENT_BACK")
    assert page.evaluate(MADE) == []
    page.keyboard.press("Control+k")
    page.keyboard.type("onerror")
    expect(page.get_by_role("option").first).to_contain_text(HOSTILE)
    assert page.evaluate(MADE) == []
