"""The whole morning (WEB-1, WEB-3): why it stopped, an answer, live to its end, the diff, sent back, again, accepted.

With a real server, agent and git, and without one reload: each page that is opened was led to by a link.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Request, expect

from browser.desk import IS_SAME, SIGN, item, open_live
from browser.look import Look, each_pair
from e2e.up import Up, let_go, wait_for_state

pytestmark = pytest.mark.spec("WEB-1", "WEB-3")

# Asks once; answered, says so and works until it is let go; what it writes depends on what the reviewer wanted.
WORKS = (
    "mark = HERE / 'asked'\n"
    "if not mark.exists():\n"
    "    mark.touch()\n"
    "    answer({'status': 'needs_input', 'question': 'Which word?', 'choices': ['late', 'overdue']})\n"
    "else:\n"
    "    print('reading the list', flush=True)\n"
    "    (HERE / 'at.RQ-1').touch()\n"
    "    while not (HERE / 'go').exists(): time.sleep(0.02)\n"
    "    wish = 'Say overdue.' in call['request']['body']\n"
    "    write('word.txt', 'overdue\\n' if wish else 'late\\n'); done()"
)
REASON = {"en": "The agent has a question", "ja": "エージェントから質問があります"}
NOTHING = {"en": "Nothing is waiting for you", "ja": "対応待ちはありません"}


@pytest.fixture
def up(scripted: Up) -> Up:
    """A repository where a run of the night stopped with a question."""
    scripted.bench.agent.does("implementer", WORKS)
    scripted.bench.run(code=5)
    return scripted


def hold_again(up: Up) -> None:
    """Let the next run wait until it is let go."""
    for name in ("go", "at.RQ-1"):
        (up.bench.agent.folder / name).unlink()


class Walk:
    """Somebody who follows links, and notices every page that came without one."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.paths: list[str] = []
        page.on("request", self._hear)

    def _hear(self, request: Request) -> None:
        if request.is_navigation_request():
            self.paths.append(urlsplit(request.url).path)

    def follow(self, link: str, path: str) -> None:
        """Follow a link; until then the page was one and the same."""
        assert self.page.evaluate(IS_SAME)
        self.page.locator(link).locator("visible=true").first.click()
        self.page.wait_for_url(lambda url: urlsplit(url).path == path)
        self.page.wait_for_load_state()
        self.page.evaluate(SIGN)


@each_pair
def test_a_morning_without_a_reload(page: Page, up: Up, look: Look) -> None:
    walk, bench = Walk(page), up.bench
    first = f"/requests/RQ-1/runs/{bench.run_ids()[0]}"

    open_live(page)
    mine = item(page, "RQ-1")
    expect(mine).to_contain_text(REASON[look.language])
    expect(mine.locator(".ask")).to_have_text("Which word?")
    mine.get_by_text("late", exact=True).click()
    mine.locator(".btn--go").click()
    expect(mine.locator(".receipt")).to_contain_text("late")
    expect(page.locator("#run-RQ-1")).to_be_visible()

    walk.follow(f"#wait-RQ-1 a[href='{first}']", first)
    expect(page.locator(".log .v", has_text="reading the list")).to_be_visible()
    expect(page.locator("#run-head .st.is-run")).to_be_visible()
    let_go(bench)
    expect(page.locator("#run-head .st.is-wait")).to_be_visible()
    expect(page.locator("#reason")).to_contain_text("WAITING_ACCEPTANCE")
    walk.follow(".views a[href*='view=diff']", first)
    expect(page.locator("[data-path='word.txt'] tr[data-line='1']")).to_contain_text("late")
    page.locator("[data-path='word.txt'] tr[data-line='1'] td.no").last.click()
    page.keyboard.type("Say overdue.")
    page.locator("[data-comments] >> visible=true").first.click()
    expect(page.locator("dialog .lines li")).to_have_text("word.txt:1 Say overdue.")
    page.locator("dialog .btn--danger").click()
    expect(page.locator("#reason")).to_contain_text("SENT_BACK")
    assert "word.txt:1: Say overdue." in (bench.root / "requests/RQ-1.md").read_text()

    hold_again(up)
    walk.follow(".crumbs a[href='/requests/RQ-1']", "/requests/RQ-1")
    page.locator("#acts form[action$='/run'] button").click()
    up.held()
    walk.follow("a[href='/']", "/")
    expect(page.locator("#run-RQ-1")).to_be_visible()
    let_go(bench)
    mine.locator(".btn--go").click()
    expect(mine.locator(".receipt")).to_be_visible()
    expect(page.locator("#h-lead")).to_have_text(NOTHING[look.language])
    expect(page.locator("#done-RQ-1")).to_be_visible()

    wait_for_state(bench, "DONE")
    assert bench.git("show", "main:word.txt") == "overdue"
    assert bench.status() == "done"
    assert page.evaluate(IS_SAME)
    assert walk.paths == ["/", first, first, "/requests/RQ-1", "/"]
