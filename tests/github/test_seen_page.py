"""An issue on the page (ISS-2, ISS-6, WEB-1): shown like any request, with its story; answered, and never lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.errors import ConflictError
from aiflow.usecases.server.start_work import WorkOrder
from aiflow.web.app import make_app
from e2e.bench import Bench
from github.place import IssuePlace, issue_place
from web_yard import WebBench

pytestmark = pytest.mark.spec("WEB-1", "ISS-2")


@pytest.fixture
def place(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[IssuePlace]:
    bench = Bench(repository, tmp_path)
    with issue_place(bench, monkeypatch, capfd) as made:
        yield made
    bench.close()


@pytest.fixture
def web(place: IssuePlace, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebBench]:
    made = WebBench(place.bench, monkeypatch, make_app)
    yield made
    made.close()


@pytest.fixture
def orders(web: WebBench, monkeypatch: pytest.MonkeyPatch) -> list[WorkOrder]:
    """What the server was asked to start; something else runs, so that nothing is started."""
    asked: list[WorkOrder] = []

    def start(order: WorkOrder) -> None:
        asked.append(order)
        raise ConflictError(reason_code="RUN_IN_PROGRESS", request_id="RQ-1", run_id="RUN-1")

    monkeypatch.setattr(type(web.server.work), "start", lambda _self, order: start(order))
    return asked


def answers(place: IssuePlace) -> list[str]:
    return [body for body in place.said(1) if "/retry" in body and "<!--" not in body]


def test_an_issue_has_its_story_and_a_link_and_nothing_that_only_files_have(place: IssuePlace, web: WebBench) -> None:
    gh = place.stopped()
    place.hub.comment(
        1, "Hi <img src=x onerror=alert(1)> [x](javascript:alert(2)) <!-- aiflow:note v1 {} -->", "nobody"
    )
    place.sync()
    html = web.page(f"/requests/{gh}")
    link = re.search(r'<a class="btn" href="https://github.com/octo/demo/issues/1"([^>]*)>', html)
    assert link is not None, html
    assert 'rel="noopener noreferrer"' in link[1]
    story = html[html.index('id="story"') : html.index('id="runs"')]
    assert (
        story.index("maya set agent:queued")
        < story.index("aiflow stopped and needs a decision")
        < story.index("nobody wrote")
    )
    assert "without write permission" in story
    assert "&lt;!--" not in story
    assert "aiflow:" not in story
    assert "sub&gt;" not in story  # what GitHub draws small
    assert "<img" not in story
    assert 'href="javascript' not in story
    assert f"/requests/{gh}/edit" not in html
    assert f"/requests/{gh}/set" not in html
    assert f"/requests/{gh}/archive" not in html
    assert "GitHub での経過" in web.page(f"/requests/{gh}", language="ja")
    status, told = web.submit(f"/requests/{gh}/archive")
    assert (status, "EDITED_ELSEWHERE" in told) == (409, True)
    assert "agent:queued" in told


@pytest.mark.spec("ISS-8")
def test_an_issue_that_waits_for_more_than_a_day_has_a_mark(place: IssuePlace, web: WebBench) -> None:
    gh = place.stopped()
    paths = ("/", "/backlog", f"/requests/{gh}")
    place.sync()
    assert [path for path in paths if "Waiting for over a day" in web.page(path)] == []
    place.later(1, hours=25)
    place.sync()
    assert [web.page(path).count("Waiting for over a day</span>") for path in paths] == [1, 1, 1]
    assert [web.page(path, language="ja").count("判断待ち1日以上</span>") for path in paths] == [1, 1, 1]
    place.hub.comment(1, "I decided.", "maya")
    place.sync()
    assert [path for path in paths if "Waiting for over a day" in web.page(path)] == []


def test_a_draft_leads_to_its_label(place: IssuePlace, web: WebBench) -> None:
    number = place.opened("A draft")
    place.sync()
    html = web.page(f"/requests/GH-{number}")
    assert re.search(
        rf'href="https://github.com/octo/demo/issues/{number}" rel="noopener noreferrer" target="_blank">'
        "set the label agent:queued</a>",
        html,
    )
    assert "aiflow set" not in html


@pytest.mark.spec("ISS-6", "RUN-10")
def test_an_answer_on_the_page_is_posted_once_however_often_it_is_pressed(
    place: IssuePlace, web: WebBench, orders: list[WorkOrder]
) -> None:
    gh = place.stopped()
    run_id = place.bench.run_ids(gh)[-1]
    morning = web.page("/")
    assert "Which colour?" in morning
    assert "Post and retry" in morning
    page = web.page(f"/requests/{gh}/runs/{run_id}")
    assert "Post and retry" in page
    assert 'value="retry_step"' not in page
    assert "/replan" not in page
    path, form = f"/requests/{gh}/runs/{run_id}/resume", {"ask": "1", "answer": "Blue", "mode": "resume"}
    place.api.loses("POST .*/comments")
    for _ in range(2):
        status, told = web.submit(path, form)
        assert (status, "Posted on GH-1" in told) == (200, True)
    assert answers(place) == [answers(place)[0]]
    assert [order.argv[0] for order in orders] == ["run", "run"]
    assert place.hub.rows[1].label_names() == ["P0", "agent:retry"]
    assert place.here.json("show", gh)["status"] == "ready"
    assert "Post and retry" not in web.page("/")


@pytest.mark.spec("ISS-11", "ISS-6")
@pytest.mark.parametrize("has_script", [True, False])
def test_while_github_is_away_what_was_typed_is_kept(
    place: IssuePlace, web: WebBench, orders: list[WorkOrder], has_script: bool
) -> None:
    gh = place.stopped()
    run_id = place.bench.run_ids(gh)[-1]
    place.api.answers("", 503, times=99)
    path, form = f"/requests/{gh}/runs/{run_id}/resume", {"ask": "1", "answer": "Blue & green", "mode": "resume"}
    status, told = web.submit(path, form, has_script=has_script)
    assert status == 503
    assert "GITHUB_UNREACHABLE" in told
    assert "Your words were not posted" in told
    assert has_script or "Blue &amp; green</textarea>" in told
    assert (orders, answers(place)) == ([], [])
    assert "Which colour?" in web.page("/")
    place.api.faults.clear()
    assert web.submit(path, form)[0] == 200
    assert len(answers(place)) == 1


@pytest.mark.spec("ISS-6", "API-1")
def test_the_api_answers_an_issue_too(place: IssuePlace, web: WebBench, orders: list[WorkOrder]) -> None:
    gh = place.stopped()
    run_id = place.bench.run_ids(gh)[-1]
    error = web.post(f"/api/requests/{gh}/runs/{run_id}/resume", {}, status=409)["error"]
    assert error["reason_code"] == "ISSUE_RETRY_ONLY"
    error = web.post(f"/api/requests/{gh}/runs/{run_id}/resume", {"answer": "Blue"}, status=409)["error"]
    assert error["reason_code"] == "RUN_IN_PROGRESS"  # posted; the run starts in its turn
    assert len(answers(place)) == len(orders) == 1


@pytest.mark.spec("ISS-9", "REQ-6")
def test_a_finished_run_is_sent_back_from_the_page(place: IssuePlace, web: WebBench) -> None:
    number = place.queued()
    place.sync()
    place.here.json("run", f"GH-{number}")
    html = web.page(f"/requests/GH-{number}")
    assert f"/requests/GH-{number}/send-back" in html
    status, told = web.submit(f"/requests/GH-{number}/send-back", {"comment": "Shorter, please."})
    assert status == 200, told
    assert answers(place)[0].endswith("/retry Shorter, please.")
    assert place.hub.rows[number].label_names() == ["P0", "agent:retry"]
