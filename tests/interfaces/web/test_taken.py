"""Who did what waited on a page that is open, and what a page gives that fetches itself again."""

from __future__ import annotations

import html
import re

import pytest

from e2e.bench import Bench
from web_yard import WebBench

ASKS = "answer({'status': 'needs_input', 'question': 'Which word?'})"
PART = {"HX-Request": "true"}


def asked(web: WebBench, bench: Bench) -> str:
    """Have a question wait, and return where the page asks who answered it."""
    bench.agent.does("implementer", ASKS)
    bench.run(code=5)
    bench.agent.forget()
    [found] = re.findall(r'data-taken="([^"]+)"', web.page("/"))
    return html.unescape(found)


@pytest.mark.spec("WEB-3")
def test_who_took_care_of_it_is_named(web: WebBench, bench: Bench) -> None:
    path = asked(web, bench)
    assert web.client.get(path, headers=PART).status_code == 204, "it waits as before"
    [run_id] = bench.run_ids()
    assert web.submit(f"/requests/RQ-1/runs/{run_id}/resume", {"ask": "1", "answer": "late"})[0] == 200
    web.until_idle()
    told = web.client.get(path, headers=PART)
    assert told.status_code == 200
    [entry] = [each for each in bench.journal() if each.get("data", {}).get("event") == "RESUMED_AT_STEP"]
    assert f"{entry['by']} handled RQ-1 at" in told.text
    assert f'href="/requests/RQ-1/runs/{run_id}"' in told.text
    assert entry["by"] in web.page("/activity")


@pytest.mark.spec("WEB-3")
def test_a_terminal_has_no_name(web: WebBench, bench: Bench) -> None:
    path = asked(web, bench)
    bench.aiflow("resume", "RQ-1", "--answer", "late", "--json")
    assert "from a terminal" in web.client.get(path, headers=PART).text
    assert "ターミナルから" in web.client.get(path, headers={**PART, "Accept-Language": "ja"}).text


@pytest.mark.spec("WEB-3")
def test_a_dialog_that_is_open_as_a_page_fetches_itself_as_a_page(web: WebBench) -> None:
    assert 'id="app"' not in web.client.get("/keys", headers=PART).text
    assert 'id="app"' in web.client.get("/keys", headers={**PART, "HX-Request-Type": "full"}).text
