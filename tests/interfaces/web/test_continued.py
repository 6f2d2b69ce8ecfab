"""What the next auto-run continues by itself (SEL-7, AUT-4): every page says so, in the same words, and asks for nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import write_request
from run_page_runs import REQUESTS, path_of, write_run
from server_yard import Served, served

pytestmark = pytest.mark.spec("WEB-1", "SEL-7", "AUT-4")
SAID = {
    "en": ("continues automatically", "The next auto-run continues it.", "waits for you"),
    "ja": ("自動で再開", "次の Auto-run が再開します。", "対応待ち"),
}
# Its terminal was closed; its process was killed.
LEFT = ("auto_cut_off", "running")


@pytest.fixture
def up(repository: Path) -> Iterator[Served]:
    with served(repository, auth="none") as given:
        yield given


def get(up: Served, path: str, language: str) -> str:
    answer = up.call("GET", path, {"Cookie": f"aiflow_lang={language}"})
    assert answer.status == 200, answer.body.decode()[-400:]
    return answer.body.decode()


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("name", LEFT)
def test_every_page_says_that_it_continues(up: Served, name: str, language: str) -> None:
    root, request_id = Path(up.server.record.root), REQUESTS[name]
    write_run(root, name)
    write_request(root, "RQ-90", None, status="ready", depends_on=f"[{request_id}]")
    write_request(root, "RQ-91", None, status="ready")
    word, sentence, waits = SAID[language]
    backlog = get(up, "/backlog", language)
    [row] = re.findall(rf'<tr id="row-{request_id}".*?</tr>', backlog)
    assert word in row
    assert sentence.rstrip(".。") in row
    assert sentence not in row  # a full stop does not stand in the middle of a line
    assert re.search(r"</label>1</td>", row)  # its turn comes first
    assert "badge--next" in row
    turns = dict(re.findall(r'<tr id="row-(RQ-9\d)".*?</label>(.)</td>', backlog))
    assert turns == {"RQ-90": "2", "RQ-91": "3"}
    [waiting] = re.findall(r'id="shelf-waiting".*?class="n">(\d+)<', backlog)
    assert waiting == "0"
    assert re.search(rf'<tr id="row-RQ-90".*{request_id}</a>.*Auto-run|which the next auto-run continues', backlog)
    page = get(up, f"/requests/{request_id}", language)
    lead = sentence.rstrip(".。")
    assert f'<h2 id="why-h">{lead}</h2>' in page
    assert page.count(lead) == 1
    assert name != "auto_cut_off" or '</h2><span class="rc">AUTO_CUT_OFF</span></header>' in page
    assert lead in get(up, "/requests/RQ-90", language)
    assert word in page
    assert 'id="why-own"' not in page  # nothing has to be done
    run = get(up, path_of(name), language)
    assert re.search(f'class="big">.*{word}', run, re.IGNORECASE)
    assert "btn--go" not in run
    assert 'name="mode" value="resume"' in run  # who does not want to wait
    morning = get(up, "/", language)
    [first] = re.findall(rf'<li class="place" id="next-{request_id}">.*?</li>', morning)
    assert sentence in first
    assert "badge--next" in first
    assert f'id="wait-{request_id}"' not in morning
    assert '<a class="btn" href="/auto/start"' in morning
    evening = get(up, "/auto/start", language)
    assert re.findall(r'<a class="id" href="/requests/([^"]+)"', evening)[0] == request_id
    assert evening.count(f'href="/requests/{request_id}"') == 1  # and not among what cannot run
    assert waits not in row
    for text in (row, page, run, morning):
        assert "st is-wait" not in text
        assert not re.search(r"<title>\(\d", text)


def test_the_order_on_a_requests_page_counts_what_is_continued(up: Served) -> None:
    root = Path(up.server.record.root)
    write_request(root, "RQ-91", None, status="ready")
    assert "RQ-91 runs next" in get(up, "/requests/RQ-91", "en")
    write_run(root, "auto_cut_off")
    assert "number 2 in the queue" in get(up, "/requests/RQ-91", "en")
