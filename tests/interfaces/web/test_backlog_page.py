"""The backlog's pages (WEB-1): the order and why not now, filters in the address, several at once, the graph."""

from __future__ import annotations

import html
import re
from functools import partial

import pytest

from aiflow.web.graph_picture import TITLE_LETTERS, cut
from builders import write_request
from e2e.bench import Bench
from waiting import wait_until
from web_yard import WebBench

pytestmark = pytest.mark.spec("WEB-1")
HOSTILE = "<script>alert(1)</script>"
ASKS = "answer({'status': 'needs_input', 'question': 'Which word?', 'choices': ['late']})"
HANG = "(HERE / 'hangs').touch()\nwhile not (HERE / 'go').exists(): time.sleep(0.02)\ndone()"


def rows(text: str) -> list[str]:
    """Return the ids of the list's rows."""
    return re.findall(r'<tr id="(?:row|file)-([^"]+)"', text)


def words(text: str, row: str) -> str:
    """Return what one row of the list says, without its markup."""
    [found] = re.findall(rf'<tr id="{re.escape(row)}".*?</tr>', text, re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", found).split())


@pytest.mark.spec("WEB-3")
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("path", ["/backlog", "/backlog?s=all&q=x&p=P1&l=y&page=7", "/backlog/graph", "/new"])
def test_a_page_is_drawn_whole_in_each_language(web: WebBench, path: str, language: str) -> None:
    text = web.page(path, language=language)
    assert f'<html lang="{language}"' in text
    assert len(re.findall(r"<h1[ >]", text)) == 1
    assert "web." not in re.sub(r"<[^>]*>", "", text)
    assert not re.search(r"<[^>]+ (?:style|on\w+)=", text)
    assert not re.search(r"<script(?![^>]+src=)", text)


def test_the_list_says_the_turn_the_next_and_why_not_now(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-0", priority="P0", depends_on="[RQ-9]")
    bench.add_request("RQ-2", priority="P2", depends_on="[RQ-1]")
    bench.add_request("RQ-3", priority="P3", status="draft")
    write_request(bench.root, "RQ-5", "priority: P9\n\n# Broken\n")
    text = web.page("/backlog")
    assert rows(text) == ["RQ-0", "RQ-1", "RQ-2", "RQ-3", "requests%2FRQ-5.md"]
    assert "depends on RQ-9 , which does not exist" in words(text, "row-RQ-0")
    assert "1 P1" in words(text, "row-RQ-1")
    assert "Next" in words(text, "row-RQ-1")
    assert "2 P2" in words(text, "row-RQ-2")
    assert "waits for RQ-1 , which is ready" in words(text, "row-RQ-2")
    assert "status is draft, not ready" in words(text, "row-RQ-3")
    assert "Files with a mistake" in text
    assert "&#39;P9&#39; is not a priority" in text
    assert "5 in all, 3 ready, 1 runnable" in text
    assert "No runnable request" not in text


@pytest.mark.spec("WEB-2")
@pytest.mark.parametrize(("language", "told"), [("en", "No runnable request"), ("ja", "実行可能なrequestなし")])
def test_nothing_runnable_is_said_as_such(web: WebBench, bench: Bench, language: str, told: str) -> None:
    bench.add_request("RQ-1", status="draft")
    assert told in web.page("/backlog", language=language)


def test_what_waits_says_for_what_and_leads_to_its_run(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-2", depends_on="[RQ-1]")
    bench.agent.does("implementer", ASKS)
    bench.run(code=5)
    [run_id] = bench.run_ids()
    text = web.page("/backlog")
    assert "waits for you" in words(text, "row-RQ-1")
    assert f'<a href="/requests/RQ-1/runs/{run_id}">needs your answer</a>' in text
    assert "waits for RQ-1 , which needs your answer" in words(text, "row-RQ-2")
    assert rows(web.page("/backlog?s=waiting")) == ["RQ-1"]


def test_what_is_worked_on_is_locked_and_leads_to_its_run(web: WebBench, bench: Bench) -> None:
    bench.agent.does("implementer", HANG)
    assert web.submit("/requests/RQ-1/run")[0] == 200
    [run_id] = bench.run_ids()
    for path in ("/backlog", "/requests/RQ-1"):
        assert re.search(
            rf'<a class="badge badge--lock" href="/requests/RQ-1/runs/{run_id}">.*?LOCKED</a>', web.page(path)
        )
    (bench.agent.folder / "go").touch()
    web.until_idle()


def test_filters_are_in_the_address_and_survive_one_another(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-2", status="draft", labels="[bug, ui]", priority="P0")
    bench.add_request("RQ-3", status="done")
    assert rows(web.page("/backlog")) == ["RQ-2", "RQ-1"]
    assert rows(web.page("/backlog?s=draft")) == ["RQ-2"]
    assert rows(web.page("/backlog?s=done")) == ["RQ-3"]
    assert rows(web.page("/backlog?q=rq-2&s=all")) == ["RQ-2"]
    assert rows(web.page("/backlog?l=ui")) == ["RQ-2"]
    assert rows(web.page("/backlog?p=P1")) == ["RQ-1"]
    assert 'href="/backlog?q=x&amp;s=ready&amp;p=P1"' in web.page("/backlog?q=x&p=P1")
    assert "No request matches." in web.page("/backlog?q=nothing")
    assert rows(web.page("/backlog?s=nonsense&p=P7&page=-3")) == ["RQ-2", "RQ-1"]


def test_a_long_list_has_pages(web: WebBench, bench: Bench) -> None:
    for number in range(2, 55):
        bench.add_request(f"RQ-{number:02}", priority="P2")
    first, second = web.page("/backlog"), web.page("/backlog?page=2")
    assert len(rows(first)) == 50
    assert 'rel="next" href="/backlog?page=2"' in first
    assert len(rows(second)) == 4
    assert 'rel="prev" href="/backlog"' in second
    assert "51–54 of 54" in second


@pytest.mark.spec("SEC")
def test_hostile_titles_labels_and_file_names_are_text(web: WebBench, bench: Bench) -> None:
    write_request(bench.root, "期日", f'---\nstatus: ready\nlabels: ["{HOSTILE}", "a\\"b"]\n---\n# {HOSTILE} "&\n')
    write_request(bench.root, "RQ-'&<b>", "# Nobody's\n")
    bench.add_request("RQ-2", depends_on="[期日]")
    page_of_file = "/requests/RQ-%27%26%3Cb%3E"
    paths = ("/backlog", "/backlog?q=%3Cscript%3E&l=%3Cb%3E", "/backlog/graph", "/requests/RQ-2", page_of_file)
    for path in (*paths, "/requests/%E6%9C%9F%E6%97%A5"):
        for language in ("en", "ja"):
            text = web.page(path, language=language)
            assert HOSTILE not in text
            assert "<b>" not in re.sub(r"<b>[^<&]*</b>", "", text), path
    text = web.page("/backlog")
    assert rows(text) == ["RQ-1", "RQ-2", "%E6%9C%9F%E6%97%A5", "requests%2FRQ-%27%26%3Cb%3E.md"]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert f'href="{page_of_file}"' in text
    assert "This file cannot be edited here." in web.page(page_of_file)


def test_several_are_set_at_once_and_each_is_told(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-2")
    status, told = web.submit(
        "/backlog/set", {"request_id": ["RQ-1", "RQ-2"], "do": "set", "priority": "P0", "status": "draft"}
    )
    assert (status, "Done for 2 requests" in told) == (200, True)
    for name in ("RQ-1", "RQ-2"):
        text = (bench.root / f"requests/{name}.md").read_text()
        assert "priority: P0" in text
        assert "status: draft" in text
    status, told = web.submit("/backlog/set", {"request_id": ["RQ-1", "GONE"], "do": "archive"})
    assert status == 409
    assert "1 of 2 were refused" in told
    assert "RQ-1</a>: status: archived" in told
    assert "status: archived" in (bench.root / "requests/RQ-1.md").read_text()
    status, told = web.submit("/backlog/set", {"request_id": ["RQ-2", "GONE"], "do": "archive"}, has_script=False)
    assert status == 200
    assert "Results" in told


def without_key(text: str) -> str:
    """Return what a list says of each."""
    return "".join(re.findall(r'<ul class="results">.*?</ul>', text, re.DOTALL))


def outcomes(text: str) -> list[tuple[str, str]]:
    """Return how far each of several is that are accepted."""
    return re.findall(r'<li data-turn="(\w+)">.*?href="/requests/(RQ-\d)"', text)


@pytest.mark.spec("REQ-6")
def test_several_are_accepted_one_after_the_other_and_each_says_what_came_of_it(web: WebBench, bench: Bench) -> None:
    held = bench.root / "held.ignored"
    bench.configure(f"[tests]\nunit = \"while [ -e '{held}' ]; do sleep 0.02; done\"")
    bench.commit()
    for name in ("RQ-1", "RQ-2"):
        bench.add_request(name)
        bench.agent.does("implementer", f"write('app.txt', '{name}\\n')\ndone()")
        bench.run(name)
    bench.add_request("RQ-3")
    held.touch()
    status, told = web.submit("/backlog/set", {"request_id": ["RQ-1", "RQ-2", "RQ-3"], "do": "accept"})
    assert status == 200
    [found] = re.findall(r'data-accepting="([^"]+)" data-goes-on', told)
    at = html.unescape(found)
    later = re.sub(r"/accepting/\w+", "/accepting/0", at)  # as a server that did not begin it is asked

    def look() -> list[tuple[str, str]]:
        return outcomes(web.page(at))

    wait_until(lambda: look() == [("run", "RQ-1"), ("pause", "RQ-2"), ("pause", "RQ-3")])
    assert "0 of 3 decided" in web.page(at)
    rest = [("stopped", "RQ-2"), ("stopped", "RQ-3")]
    wait_until(lambda: outcomes(web.page(later)) == [("run", "RQ-1"), *rest])
    text = web.page(later)
    assert "was not accepted: the server was restarted before its turn" in text
    assert "data-goes-on" in web.client.get(later, headers={"HX-Request": "true"}).text
    held.unlink()
    wait_until(lambda: look() == [("done", "RQ-1"), ("stopped", "RQ-2"), ("stopped", "RQ-3")])
    text = web.page(at)
    assert "3 of 3 decided" in text
    [conflict] = re.findall(r"<li[^>]*>.*?/requests/RQ-2.*?</li>", text)
    assert f'href="/requests/RQ-2/runs/{bench.run_ids("RQ-2")[0]}"' in conflict
    assert "conflict" in conflict.lower()
    assert "No such run" in text
    assert "status: done" in (bench.root / "requests/RQ-1.md").read_text()
    assert "data-goes-on" not in web.client.get(at, headers={"HX-Request": "true"}).text
    assert without_key(web.page(later)) == without_key(text)


def test_without_a_script_what_came_of_several_is_a_page_that_looks_again(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-2")
    status, at = web.submit("/backlog/set", {"request_id": ["RQ-1", "RQ-2"], "do": "accept"}, has_script=False)
    assert (status, at.startswith("/backlog/accepting/")) == (303, True)
    wait_until(lambda: "2 of 2 decided" in web.page(at))
    assert "http-equiv" not in web.page(at)
    web.page("/backlog/accepting/gone", 422)


@pytest.mark.parametrize(
    "fields", [{"do": "archive"}, {"request_id": "RQ-1", "do": "set"}, {"request_id": "RQ-1", "do": "burn"}]
)
def test_several_without_a_choice_is_refused(web: WebBench, bench: Bench, fields: dict[str, str | list[str]]) -> None:
    before = (bench.root / "requests/RQ-1.md").read_text()
    assert web.submit("/backlog/set", fields)[0] == 422
    assert (bench.root / "requests/RQ-1.md").read_text() == before


def test_the_graph_has_boxes_that_are_links_and_a_list(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-2", depends_on="[RQ-1, GONE]")
    text = web.page("/backlog/graph")
    assert re.search(
        r'<a class="node is-idle[^"]*" id="node-RQ-2" href="/requests/RQ-2"><title>RQ-2 .*?, ready</title>', text
    )
    assert "GONE" in text
    assert text.count('class="edge') == 2
    assert "edge--bad" in text
    assert "after RQ-1, GONE" in text
    assert "No open request depends on another one." not in text
    bench.add_request("RQ-2", depends_on="[]")
    assert "No open request depends on another one." in web.page("/backlog/graph")


def test_an_empty_backlog_says_what_to_do_first(web: WebBench, bench: Bench) -> None:
    (bench.root / "requests/RQ-1.md").unlink()
    text = web.page("/backlog")
    assert 'action="/requests"' in text
    status, path = web.submit(
        "/requests", {"text": "Fix the login page\n\nIt crashes.", "do": "draft"}, has_script=False
    )
    assert status == 303
    assert "Fix the login page" in web.page(path)


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("一覧を Web ページとして出力する", "一覧を Web ページとして出力…"),
        ("期日を過ぎたものだけを一覧にする", "期日を過ぎたものだけを一覧に…"),
        ("A title of thirty characters a", "A title of thirty characters a"),
        ("A title of thirty-one character", "A title of thirty-one charac…"),
        ("短い", "短い"),
    ],
)
def test_a_title_in_the_graph_is_cut_so_that_its_mark_fits_in(title: str, shown: str) -> None:
    assert cut(title, TITLE_LETTERS) == shown


def test_what_is_refused_of_several_is_said_in_whole_sentences_of_the_language(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-2")
    fields: dict[str, str | list[str]] = {"do": "accept", "request_id": ["RQ-1", "RQ-2"]}
    for language, told in (("en", "No such run. No run was found"), ("ja", "Run が見つかりません。このチェックアウト")):
        web.client.headers["Accept-Language"] = language
        answer = web.submit("/backlog/set", fields)[1]
        [at] = re.findall(r'data-accepting="([^"]+)"', answer) or [""]
        wait_until(partial(is_told, web, html.unescape(at), told, answer))


def is_told(web: WebBench, at: str, told: str, answer: str) -> bool:
    """Tell whether it was said at once, or is by now."""
    return told in answer or (at != "" and told in web.client.get(at, headers={"HX-Request": "true"}).text)
