"""A request's page (WEB-1): why it does not run down to the roots, its text, its runs; made, edited, set, nothing lost."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.domain.server.facts import Sight
from aiflow.web.app import make_app
from builders import write_request
from dynamo import Dynamo
from e2e.bench import Bench
from web_yard import WebBench

pytestmark = pytest.mark.spec("WEB-1")
ASKS = "answer({'status': 'needs_input', 'question': 'Which word?', 'choices': ['late']})"
HANG = "(HERE / 'hangs').touch()\nwhile not (HERE / 'go').exists(): time.sleep(0.02)\ndone()"


def file_of(bench: Bench, request_id: str = "RQ-1") -> Path:
    return bench.root / f"requests/{request_id}.md"


def fields_of(text: str, form: str) -> dict[str, str | list[str]]:
    """Return what a browser sends of a form's hidden fields and long texts."""
    [found] = re.findall(rf'<form[^>]* id="{form}".*?</form>', text, re.DOTALL)
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)"[^>]* value="([^"]*)"', found))
    areas = dict(re.findall(r'<textarea[^>]* name="(\w+)"[^>]*>\n(.*?)</textarea>', found, re.DOTALL))
    return {name: html.unescape(value) for name, value in {**hidden, **areas}.items()}


@pytest.mark.spec("WEB-3")
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("path", ["/requests/RQ-1", "/requests/RQ-1/edit", "/requests/RQ-5"])
def test_a_page_is_drawn_whole_in_each_language(web: WebBench, bench: Bench, path: str, language: str) -> None:
    write_request(bench.root, "RQ-5", "priority: P9\n\n# Broken\n")
    text = web.page(path, language=language)
    assert f'<html lang="{language}"' in text
    assert len(re.findall(r"<h1[ >]", text)) == 1
    assert "web." not in re.sub(r"<[^>]*>", "", text)
    assert not re.search(r"<[^>]+ (?:style|on\w+)=", text)


@pytest.mark.spec("REQ-2")
@pytest.mark.parametrize("request_id", ["new", "runs", "edit", "a.b+c,d=e@f", "要望-1", "_-"])
def test_every_id_has_its_page(web: WebBench, bench: Bench, request_id: str) -> None:
    bench.add_request(request_id, title="The one that is meant")
    [link] = re.findall(r'<a class="title" href="([^"]+)">The one that is meant<', web.page("/backlog"))
    text = web.page(html.unescape(link))
    assert "<h1>The one that is meant</h1>" in text
    assert f'<span class="mono">{request_id}</span>' in text


@pytest.mark.spec("SEL-5")
def test_the_chain_leads_to_each_root_with_its_button_and_command(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-2", depends_on="[RQ-1, RQ-4]")
    bench.add_request("RQ-3", depends_on="[RQ-2, GONE]")
    bench.add_request("RQ-4", status="draft")
    bench.agent.does("implementer", ASKS)
    bench.run(code=5)
    [run_id] = bench.run_ids()
    text = web.page("/requests/RQ-3")
    assert "RQ-3 cannot run now" in text
    assert "DEPENDS_NOT_FOUND" in text
    assert "aiflow set RQ-3 depends_on=RQ-2" in text
    [chain] = re.findall(r'<ol class="chain".*?</section>', text, re.DOTALL)
    assert re.findall(r'<li id="chain-([\w-]+)"', chain) == ["RQ-2", "RQ-1", "RQ-4", "GONE"]
    assert f'href="/requests/RQ-1/runs/{run_id}">Answer</a>' in chain
    assert "aiflow resume RQ-1 --answer" in chain
    assert 'action="/requests/RQ-4/set"' in chain
    assert "Set to ready" in chain
    assert web.submit("/requests/RQ-4/set", {"status": "ready"})[0] == 200
    assert "status: ready" in file_of(bench, "RQ-4").read_text()
    assert "depends_on: none" in web.submit("/requests/RQ-3/set", {"depends_on": ""})[1]


def test_what_can_run_is_run_from_its_page(web: WebBench, bench: Bench) -> None:
    text = web.page("/requests/RQ-1")
    assert "RQ-1 runs next" in text
    assert 'action="/requests/RQ-1/run"' in text
    bench.add_request("RQ-2", status="draft")
    assert 'action="/requests/RQ-2/run"' not in web.page("/requests/RQ-2")


def test_a_finished_run_is_listed_and_can_be_accepted_or_sent_back(web: WebBench, bench: Bench) -> None:
    bench.run()
    [run_id] = bench.run_ids()
    text = web.page("/requests/RQ-1")
    assert f'href="/requests/RQ-1/runs/{run_id}"' in text
    assert f"aiflow/RQ-1/{run_id}" in text
    assert 'action="/requests/RQ-1/accept"' in text
    assert 'href="/requests/RQ-1/send-back"' in text
    assert "1/1" in text


@pytest.mark.spec("REQ-6", "WEB-3")
def test_an_acceptance_is_undone_from_its_page_and_a_dialog_says_what_that_means(web: WebBench, bench: Bench) -> None:
    bench.run()
    [run_id] = bench.run_ids()
    assert 'href="/requests/RQ-1/undo"' not in web.page("/requests/RQ-1")
    assert web.submit("/requests/RQ-1/accept", has_script=False)[0] == 303
    for path in ("/requests/RQ-1", f"/requests/RQ-1/runs/{run_id}"):
        assert 'href="/requests/RQ-1/undo"' in web.page(path)
    (bench.root / "requests/RQ-8.md").write_text("---\nstatus: ready\ndepends_on: [RQ-1]\n---\n\n# Next\n")
    asked = web.page("/requests/RQ-1/undo")
    assert "takes the work out of main" in asked
    assert "Files: 1" in asked
    assert "These wait until it is done again: RQ-8." in asked
    assert 'action="/requests/RQ-1/undo"' in asked
    status, where = web.submit("/requests/RQ-1/undo", has_script=False)
    assert (status, where.startswith(f"/requests/RQ-1/runs/{run_id}")) == (303, True)
    assert bench.status() == "blocked"
    text = web.page(f"/requests/RQ-1/runs/{run_id}")
    assert "Acceptance undone" in text
    assert 'href="/requests/RQ-1/undo"' not in text
    assert 'href="/requests/RQ-1/send-back"' in text
    assert web.submit("/requests/RQ-1/accept", has_script=False)[0] == 303
    assert bench.status() == "done"


@pytest.mark.spec("REQ-6")
def test_what_cannot_be_undone_is_refused_before_anybody_is_asked(web: WebBench, bench: Bench) -> None:
    bench.run()
    answer = web.client.get("/requests/RQ-1/undo")
    assert (answer.status_code, "NOT_UNDOABLE" in answer.text) == (409, True)


@pytest.mark.spec("SEC")
def test_the_text_is_markdown_and_nothing_in_it_is_markup(web: WebBench, bench: Bench) -> None:
    body = "**bold**\n\n<img src=x onerror=alert(1)>\n\n[x](javascript:alert(1))\n\n</div></main>\n"
    write_request(bench.root, "RQ-2", f"status: draft\n\n# Two\n\n{body}")
    text = web.page("/requests/RQ-2")
    assert "<strong>bold</strong>" in text
    assert "<img" not in text
    assert "javascript:alert" not in re.sub(r">[^<]*<", "><", text)
    assert text.count("</main>") == 1
    assert "&lt;/textarea&gt;" not in text


@pytest.mark.spec("REQ-3")
def test_metadata_is_saved_and_only_the_changed_lines_are_written(web: WebBench, bench: Bench) -> None:
    path = file_of(bench)
    before = path.read_text()
    fields = fields_of(web.page("/requests/RQ-1"), "meta")
    given = {**fields, "status": "ready", "priority": "P0", "depends_on": "", "labels": "bug, 期日"}
    status, told = web.submit("/requests/RQ-1/set", given)
    assert (status, "RQ-1: priority: P0, labels: bug, 期日" in told) == (200, True)
    after = path.read_text()
    assert "priority: P0" in after
    kept = [line for line in before.splitlines() if not line.startswith("priority")]
    assert [line for line in after.splitlines() if line in kept] == kept
    status, _ = web.submit("/requests/RQ-1/set", given, has_script=False)  # the same once more changes nothing
    assert (status, path.read_text()) == (303, after)


@pytest.mark.spec("REQ-3")
def test_a_key_that_somebody_else_changed_shows_both_values_and_overwrites_nothing(web: WebBench, bench: Bench) -> None:
    path = file_of(bench)
    fields = fields_of(web.page("/requests/RQ-1"), "meta")
    path.write_text(path.read_text().replace("priority: P1", "priority: P3"))
    given = {**fields, "status": "ready", "priority": "P0", "depends_on": "", "labels": ""}
    for has_script in (True, False):
        status, told = web.submit("/requests/RQ-1/set", given, has_script=has_script)
        assert status == 409
        assert "EDIT_CONFLICT" in told
        assert "priority: P3" in told
        assert "priority: P0" in told
        assert "priority: P3" in path.read_text()
    assert web.submit("/requests/RQ-1/set", {**given, "force": "yes"})[0] == 200
    assert "priority: P0" in path.read_text()


@pytest.mark.spec("REQ-3")
def test_what_others_changed_besides_is_no_conflict(web: WebBench, bench: Bench) -> None:
    path = file_of(bench)
    fields = fields_of(web.page("/requests/RQ-1"), "meta")
    path.write_text(path.read_text().replace("status: ready", "status: draft"))
    given = {**fields, "status": "ready", "priority": "P0", "depends_on": "", "labels": ""}
    assert web.submit("/requests/RQ-1/set", given)[0] == 200
    assert "status: draft" in path.read_text()
    assert "priority: P0" in path.read_text()


@pytest.mark.spec("REQ-5")
def test_a_status_that_is_aiflows_own_is_refused(web: WebBench, bench: Bench) -> None:
    status, told = web.submit("/requests/RQ-1/set", {"status": "running"})
    assert (status, "STATUS_NOT_ALLOWED" in told) == (422, True)
    assert "status: ready" in file_of(bench).read_text()


def test_a_request_is_archived(web: WebBench, bench: Bench) -> None:
    assert web.submit("/requests/RQ-1/archive", has_script=False) == (303, "/requests/RQ-1")
    assert "status: archived" in file_of(bench).read_text()


@pytest.mark.spec("REQ-3")
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_the_whole_text_is_edited_and_keeps_its_line_ends(web: WebBench, bench: Bench, ends: str) -> None:
    path = file_of(bench)
    path.write_bytes(f"---{ends}status: ready{ends}---{ends}# One </textarea>{ends}{ends}Text{ends}".encode())
    fields = fields_of(web.page("/requests/RQ-1/edit"), "edit")
    mine = str(fields["text"]).replace("Text", "Mine")
    assert web.submit("/requests/RQ-1/edit", {**fields, "text": mine}, has_script=False) == (303, "/requests/RQ-1")
    assert path.read_bytes() == f"---{ends}status: ready{ends}---{ends}# One </textarea>{ends}{ends}Mine{ends}".encode()


@pytest.mark.spec("REQ-3")
def test_a_text_that_somebody_else_changed_is_shown_beside_mine(web: WebBench, bench: Bench) -> None:
    path = file_of(bench)
    fields = fields_of(web.page("/requests/RQ-1/edit"), "edit")
    path.write_text(path.read_text() + "\nTheirs\n")
    mine = {**fields, "text": f"{fields['text']}\nMine\n"}
    status, told = web.submit("/requests/RQ-1/edit", mine)
    assert status == 409
    assert "Theirs" in told
    status, told = web.submit("/requests/RQ-1/edit", mine, has_script=False)
    assert status == 409
    again = fields_of(told, "edit")
    assert "Theirs" in again["before_now"]
    assert again["text"] == mine["text"]
    assert "Mine" not in path.read_text()
    assert web.submit("/requests/RQ-1/edit", {**again, "over": "yes"}, has_script=False)[0] == 303
    assert path.read_text() == mine["text"]


@pytest.mark.spec("REQ-3")
def test_a_key_that_a_run_changed_meanwhile_stays(web: WebBench, bench: Bench) -> None:
    path = file_of(bench)
    fields = fields_of(web.page("/requests/RQ-1/edit"), "edit")
    path.write_text(path.read_text().replace("status: ready", "status: blocked"))
    assert web.submit("/requests/RQ-1/edit", {**fields, "text": f"{fields['text']}\nMine\n"})[0] == 200
    assert "status: blocked" in path.read_text()
    assert path.read_text().endswith("Mine\n")


@pytest.mark.spec("REQ-4")
def test_a_file_with_a_mistake_is_shown_and_mended(web: WebBench, bench: Bench) -> None:
    path = write_request(bench.root, "RQ-5", "---\npriority: P9\nstatus: draft\n---\n# Broken <b>\n")
    text = web.page("/requests/RQ-5")
    assert "requests/RQ-5.md" in text
    assert "line 2" in text
    fields = fields_of(text, "edit")
    status, told = web.submit("/requests/RQ-5/edit", {**fields, "text": str(fields["text"]).replace("P9", "P8")})
    assert (status, "REQUEST_INVALID" in told) == (422, True)
    assert web.submit("/requests/RQ-5/edit", {**fields, "text": str(fields["text"]).replace("P9", "P1")})[0] == 200
    assert "priority: P1" in path.read_text()
    assert "Broken &lt;b&gt;" in web.page("/requests/RQ-5")


def test_a_request_is_made_with_all_it_is_given(web: WebBench, bench: Bench) -> None:
    given = {"title": "Do <it>", "text": "So.", "priority": "P0", "labels": "a, b", "depends_on": "RQ-1", "do": "ready"}
    status, path = web.submit("/requests", {**given, "request_id": "NEW-1"}, has_script=False)
    assert (status, path) == (303, "/requests/NEW-1")
    text = file_of(bench, "NEW-1").read_text()
    for line in ("priority: P0", "status: ready", "# Do <it>", "So."):
        assert line in text
    page = web.page(path)
    assert "<h1>Do &lt;it&gt;</h1>" in page
    assert 'value="a, b"' in page
    status, told = web.submit("/requests", {**given, "request_id": "NEW-1"})
    assert (status, "REQUEST_EXISTS" in told) == (409, True)


@pytest.mark.parametrize(
    "fields", [{"title": " "}, {"title": "x", "priority": "P9"}, {"title": "x", "request_id": "../x"}]
)
def test_what_makes_no_request_is_refused(web: WebBench, bench: Bench, fields: dict[str, str | list[str]]) -> None:
    before = sorted((bench.root / "requests").iterdir())
    assert web.submit("/requests", {**fields, "do": "ready"})[0] == 422
    assert sorted((bench.root / "requests").iterdir()) == before


def test_a_request_is_made_and_run_and_kept_if_it_cannot_start(web: WebBench, bench: Bench) -> None:
    bench.agent.does("implementer", HANG)
    status, path = web.submit("/requests", {"title": "First", "do": "run", "request_id": "NEW-1"}, has_script=False)
    assert status == 303
    assert path.startswith("/requests/NEW-1/runs/RUN-")
    status, told = web.submit("/requests", {"title": "Second", "do": "run", "request_id": "NEW-2"})
    assert status == 200
    assert "NEW-2 is saved and ready. It did not start" in told
    assert "status: ready" in file_of(bench, "NEW-2").read_text()
    (bench.agent.folder / "go").touch()
    web.until_idle()


@pytest.fixture
def shop(bench: Bench, dynamo: Dynamo, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebBench]:
    """Give a server whose checkout has a queue."""
    bench.aiflow.environ |= dynamo.environ
    made = WebBench(bench, monkeypatch, make_app)
    yield made
    made.close()


@pytest.mark.spec("QUE-9")
def test_where_there_is_a_queue_a_request_is_added_to_it(shop: WebBench) -> None:
    assert 'action="/requests/RQ-1/queue"' in shop.page("/requests/RQ-1")
    status, told = shop.submit("/requests/RQ-1/queue")
    assert (status, "RQ-1 is in the queue" in told) == (200, True)
    [task] = shop.get("/api/tasks")["tasks"]
    assert task["request_id"] == "RQ-1"
    status, told = shop.submit("/requests/RQ-1/queue")
    assert (status, "REQUEST_QUEUED" in told) == (409, True)
    cancel = re.search(r'action="(/queue/[^"]+/cancel)"', shop.page("/queue"))
    assert cancel
    assert shop.submit(cancel[1], has_script=False) == (303, "/queue")
    assert shop.submit("/requests/RQ-1/queue", has_script=False) == (303, "/queue")
    assert [each["status"] for each in shop.get("/api/tasks?all=true")["tasks"]].count("QUEUED") == 1


def test_where_there_is_no_queue_none_is_offered(web: WebBench) -> None:
    assert "/requests/RQ-1/queue" not in web.page("/requests/RQ-1")


@pytest.mark.spec("PRF-7")
def test_a_page_looks_closely_once_the_watcher_saw_a_request_change(web: WebBench) -> None:
    server = web.server
    glanced, exact = server.project.glance, server.project.sources
    assert glanced.requests is not exact.requests
    server.glance()
    assert server.glance() == glanced
    server.watch._last = Sight(requests={"RQ-1": (1,)})
    assert server.glance() == exact
    assert server.glance() == glanced


@pytest.mark.spec("SEC")
@pytest.mark.parametrize("name", ["%2e%2e%2fx", "nope", "a%00b", "-x", "a" * 300])
def test_a_name_that_is_nobodys_leads_nowhere(web: WebBench, name: str) -> None:
    for path in (f"/requests/{name}", f"/requests/{name}/edit"):
        told = web.client.get(path, follow_redirects=False)
        assert told.status_code in (404, 422, 307), (path, told.status_code)
    for deed in ("set", "edit", "archive"):
        assert web.submit(f"/requests/{name}/{deed}", {"status": "draft", "text": "x"})[0] in (404, 422, 405, 307)


def test_its_number_is_its_turn(web: WebBench, bench: Bench) -> None:
    bench.add_request("RQ-2", depends_on="[RQ-1]", priority="P1")
    bench.add_request("RQ-3", priority="P3")
    text = web.page("/requests/RQ-3")
    [turn] = re.findall(r"<dt>Turn tonight</dt><dd>(\d+)</dd>", text)
    assert f"RQ-3 is runnable and number {turn} in the queue" in text
    assert turn == "3"


def test_the_one_that_is_worked_on_is_not_told_why_it_does_not_run(web: WebBench, bench: Bench) -> None:
    bench.agent.does("implementer", HANG)
    assert web.submit("/requests/RQ-1/run")[0] == 200
    text = web.page("/requests/RQ-1")
    assert "RQ-1 is running" in text
    assert "not ready" not in text
    assert "REQUEST_LOCKED" not in text
    (bench.agent.folder / "go").touch()
    web.until_idle()


def test_one_way_is_recommended(web: WebBench, bench: Bench) -> None:
    bench.agent.does("implementer", ASKS)
    bench.run(code=5)
    text = web.page("/requests/RQ-1")
    assert text[text.index("<main") :].count("btn--go") == 1
