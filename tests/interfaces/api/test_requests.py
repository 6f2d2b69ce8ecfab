"""Requests over HTTP: the terminal's answers, pages and ETags, and changes that lose nobody's (API-2)."""

from __future__ import annotations

from typing import Any

import pytest

from aiflow.usecases.server.accept import accept
from api_bench import ApiBench
from waiting import wait_until

pytestmark = pytest.mark.contract

RUN = "/api/requests/RQ-1/run"


@pytest.mark.spec("API-2")
def test_what_is_asked_is_answered_as_in_the_terminal(api: ApiBench) -> None:
    api.bench.add_request("RQ-2", depends_on="[RQ-1]")
    api.bench.add_request("RQ-3", priority="P9")
    api.bench.agent.does("implementer", "ask('Which one?')")
    run_id = api.post(RUN, None, 202)["run_id"]
    api.until_idle()
    for path, command in {
        "/api/requests/RQ-1": ("show", "RQ-1"),
        "/api/requests/RQ-3": ("show", "RQ-3"),
        "/api/requests/RQ-2/why": ("why", "RQ-2"),
        "/api/queue/next?all=true": ("next", "--all"),
        "/api/locks": ("locks",),
        "/api/settings": ("settings",),
        f"/api/requests/RQ-1/runs/{run_id}/report": ("report", "RQ-1"),
        f"/api/requests/RQ-1/runs/{run_id}/diff": ("diff", "RQ-1"),
        "/api/activity?limit=20": ("activity",),
        "/api/status": ("status",),
        "/api/costs": ("status", "--cost"),
    }.items():
        assert api.get(path) == api.bench.aiflow.json(*command), path
    run = api.get(f"/api/requests/RQ-1/runs/{run_id}")
    told = api.bench.aiflow.json("show", run_id)
    assert {name: run[name] for name in told} == told
    assert run["errors"] == api.bench.errors()
    assert run["links"]["logs"][-1] == f"/api/requests/RQ-1/runs/{run_id}/logs/1"
    listed = {**api.bench.aiflow.json("list"), "total": 2, "next_after": None}
    assert api.get("/api/requests") == listed
    runs = {**api.bench.aiflow.json("runs"), "total": 1, "next_after": None}
    assert api.get("/api/runs") == runs == api.get("/api/requests/RQ-1/runs")
    forecast = {**api.bench.aiflow.json("forecast"), "total": 0, "next_after": None}
    assert api.get("/api/queue/forecast") == forecast


@pytest.mark.spec("API-3", "SEC")
def test_a_whole_log_is_plain_text_that_no_browser_takes_for_a_page(api: ApiBench) -> None:
    api.bench.agent.does(
        "implementer", "print('<script>alert(1)</script> password=hunter2secret', file=sys.stderr); ask('Which one?')"
    )
    begun = api.post(RUN, None, 202)
    api.until_idle()
    at = f"{begun['api_url']}/logs/1"
    told = api.client.get(at, params={"format": "text"})
    assert told.status_code == 200
    assert told.headers["content-type"] == "text/plain; charset=utf-8"
    assert told.headers["x-content-type-options"] == "nosniff"
    assert told.headers["content-disposition"] == f'inline; filename="{begun["run_id"]}-step-1.log"'
    part = api.get(at)
    assert told.text == part["text"]
    assert len(told.content) == part["size"]
    assert "<script>" in told.text
    assert "hunter2secret" not in told.text
    assert api.client.get(at, params={"format": "text", "offset": 4}).content == told.content[4:]
    assert api.client.get(f"{begun['api_url']}/logs/9", params={"format": "text"}).status_code == 422
    assert api.client.get(at, params={"format": "html"}).status_code == 422


@pytest.mark.spec("API-2")
def test_lists_are_cut_into_pages_and_answers_known_already_are_not_sent_again(api: ApiBench) -> None:
    for number in range(2, 6):
        api.bench.add_request(f"RQ-{number}")
    first = api.get("/api/requests", params={"limit": 2})
    second = api.get("/api/requests", params={"limit": 2, "after": first["next_after"]})
    third = api.get("/api/requests", params={"limit": 2, "after": second["next_after"]})
    pages = [[each["request_id"] for each in page["requests"]] for page in (first, second, third)]
    assert pages == [["RQ-1", "RQ-2"], ["RQ-3", "RQ-4"], ["RQ-5"]]
    assert (first["total"], third["next_after"]) == (5, None)
    told = api.client.get("/api/requests")
    again = api.client.get("/api/requests", headers={"If-None-Match": told.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    api.bench.add_request("RQ-6")
    assert api.client.get("/api/requests", headers={"If-None-Match": told.headers["etag"]}).status_code == 200
    assert api.get("/api/requests", 422, params={"after": "nonsense"})["error"]["reason_code"] == "INPUT_INVALID"


@pytest.mark.spec("API-2", "REQ-3")
def test_a_request_is_made_and_changed_and_nobodys_change_is_lost(api: ApiBench) -> None:
    made = api.client.post("/api/requests", json={"title": "A shop", "body": "Sell things.", "status": "ready"})
    place = made.headers["location"]
    assert (made.status_code, place) == (201, f"/api/requests/{made.json()['request_id']}")
    seen = api.client.get(place)
    assert (seen.json()["title"], seen.json()["status"]) == ("A shop", "ready")
    path = api.bench.root / seen.json()["path"]
    path.write_text(path.read_text().replace("labels: []", "labels: [mine]  # a note"))
    stale = api.client.patch(
        place, json={"priority": "P0", "body": "\nNew.\n"}, headers={"If-Match": seen.headers["etag"]}
    )
    assert (stale.status_code, stale.json()["error"]["reason_code"]) == (409, "EDIT_CONFLICT")
    assert "New." not in path.read_text()
    seen = api.client.get(place)
    body = {"priority": "P0", "body": "\n# A shop\n\nNew.\n", "depends_on": ["RQ-1"]}
    changed = api.client.patch(place, json=body, headers={"If-Match": seen.headers["etag"]})
    assert changed.status_code == 200, changed.text
    assert {name: changed.json()[name] for name in body} == body
    assert "labels: [mine]  # a note" in path.read_text()
    assert changed.headers["etag"] == api.client.get(place).headers["etag"] != seen.headers["etag"]
    assert api.client.patch(place, json={"status": "draft"}).json()["status"] == "draft"
    kinds = [entry["data"]["key"] for entry in api.get("/api/activity")["activity"] if "key" in (entry["data"] or {})]
    assert kinds == ["status", "text", "depends_on", "priority"]


@pytest.mark.spec("API-2", "REQ-5")
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"status": "running"}, 422, "INPUT_INVALID"),
        ({"updated_at": "someday"}, 422, "INPUT_INVALID"),
        ({"depends_on": ["../etc"]}, 422, "INPUT_INVALID"),
        ({"body": "half \ud83d"}, 422, "INPUT_INVALID"),
        ({"colour": "red"}, 422, "INPUT_INVALID"),
    ],
)
def test_a_change_that_cannot_be_is_refused_and_changes_nothing(
    api: ApiBench, body: dict[str, Any], status: int, code: str
) -> None:
    before = (api.bench.root / "requests/RQ-1.md").read_bytes()
    assert api.send("PATCH", "/api/requests/RQ-1", body, status)["error"]["reason_code"] == code
    assert (api.bench.root / "requests/RQ-1.md").read_bytes() == before


@pytest.mark.spec("API-2", "REQ-6", "REQ-6a")
def test_a_finished_run_is_accepted_or_sent_back_with_what_was_said_of_its_lines(api: ApiBench) -> None:
    begun = api.post(RUN, None, 202)
    api.until_idle()
    lines = [{"path": "S01.txt", "line": 1, "text": "say more", "quote": "S01"}]
    sent = api.post("/api/requests/RQ-1/send-back", {"comment": "Not yet.", "lines": lines})
    assert (sent["state"], sent["reason_code"]) == ("FAILED", "SENT_BACK")
    assert "Not yet.\n\nS01.txt:1: say more (at `S01`)" in (api.bench.root / "requests/RQ-1.md").read_text()
    again = api.post(RUN, None, 202)
    assert again["run_id"] != begun["run_id"]
    api.until_idle()
    assert api.get(again["api_url"])["continues"] == begun["run_id"]
    accepted = api.post("/api/requests/RQ-1/accept")
    assert accepted["accepted_as"] == api.bench.git("rev-parse", "main")
    assert (api.bench.status(), api.get(again["api_url"])["accepted_as"]) == ("done", accepted["accepted_as"])
    undone = api.post("/api/requests/RQ-1/undo")
    assert undone["undone_as"] == api.bench.git("rev-parse", "main") != accepted["accepted_as"]
    assert (undone["reason_code"], api.bench.status()) == ("ACCEPTANCE_UNDONE", "blocked")
    assert undone["built_on"] == {"done": [], "running": [], "waits": []}
    assert api.post("/api/requests/RQ-2/undo", None, 404)["error"]["reason_code"] == "REQUEST_NOT_FOUND"
    assert api.post("/api/requests/RQ-1/accept")["accepted_as"] == api.bench.git("rev-parse", "main")
    assert (
        api.post("/api/requests/RQ-1/send-back", {"comment": "x"}, 409)["error"]["reason_code"] == "RUN_NOT_ACCEPTABLE"
    )
    assert api.post("/api/requests/RQ-1/send-back", {}, 422)["error"]["reason_code"] == "INPUT_INVALID"
    api.post("/api/requests/RQ-1/undo")
    api.post("/api/requests/RQ-1/send-back", {"comment": "Anew.", "fresh": True})
    stages = [api.bench.stage("RQ-1", each["run_id"]) for each in (begun, again)]
    assert [stage["is_dropped"] for stage in stages] == [False, True]


@pytest.mark.spec("API-2", "GIT-3")
def test_an_acceptance_that_takes_long_is_answered_while_it_goes_on(
    api: ApiBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = api.bench.agent.folder / "go"
    go.touch()
    api.bench.configure(f"[tests]\nunit = \"while [ ! -e '{go}' ]; do sleep 0.02; done\"\n")
    api.bench.commit()
    begun = api.post(RUN, None, 202)
    api.until_idle()
    go.unlink()
    monkeypatch.setattr(accept, "__defaults__", (0.0,))
    told = api.client.post("/api/requests/RQ-1/accept")
    assert (told.status_code, told.headers["location"]) == (202, begun["api_url"])
    assert told.json() == begun
    go.touch()
    wait_until(lambda: api.get(begun["api_url"])["accepted_as"])
    wait_until(lambda: not api.bench.locks())
    assert api.bench.status() == "done"


@pytest.mark.spec("API-2", "GIT-3", "ERR-2")
def test_an_acceptance_that_conflicts_is_refused_with_its_reason(api: ApiBench) -> None:
    api.bench.agent.does("implementer", "write('app.txt', 'theirs\\n'); done()")
    begun = api.post(RUN, None, 202)
    api.until_idle()
    (api.bench.root / "app.txt").write_text("mine\n")
    api.bench.commit()
    error = api.post("/api/requests/RQ-1/accept", None, 409)["error"]
    assert (error["category"], error["reason_code"]) == ("GIT", "MERGE_CONFLICT")
    assert error["context"]["api_url"] == begun["api_url"]
    assert "<" not in error["message"] + error["detail"]


@pytest.mark.spec("ERR-2", "ERR-3")
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/requests/RQ-9", 404, "REQUEST_NOT_FOUND"),
        ("GET", "/api/requests/RQ-1/runs/RUN-20260101-000000-000000", 404, "RUN_NOT_FOUND"),
        ("GET", "/api/requests/RQ-1/runs/..%2F..%2Faiflow.toml", 404, "ROUTE_NOT_FOUND"),
        ("GET", "/api/nothing", 404, "ROUTE_NOT_FOUND"),
        ("DELETE", "/api/requests", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/api/locks/RQ-1/break", 404, "LOCK_NOT_FOUND"),
        ("POST", "/api/locks/turn/break", 404, "LOCK_NOT_FOUND"),
        ("GET", "/api/requests?limit=0", 422, "INPUT_INVALID"),
        ("GET", "/api/requests?limit=1&limit=2", 422, "INPUT_INVALID"),
        ("POST", "/api/doctor?mode=deep", 422, "INPUT_INVALID"),
        ("GET", "/api/activity?before=x", 422, "INPUT_INVALID"),
    ],
)
def test_every_refusal_has_a_reason(api: ApiBench, method: str, path: str, status: int, code: str) -> None:
    told = api.client.request(method, path)
    assert (told.status_code, told.json()["error"]["reason_code"]) == (status, code)
    assert set(told.json()["error"]) == {"category", "reason_code", "message", "detail", "context", "actions"}


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/requests", "GET, POST"),
        ("/api/requests/RQ-1", "GET, PATCH"),
        ("/api/requests/RQ-1/run", "POST"),
        ("/api/sessions", "GET, POST, DELETE"),
        ("/openapi.json", "GET, HEAD"),
    ],
)
def test_who_takes_the_wrong_method_is_told_all_that_there_are(api: ApiBench, path: str, methods: str) -> None:
    told = api.client.put(path)
    assert (told.status_code, told.headers["allow"]) == (405, methods)


@pytest.mark.spec("ERR-2")
@pytest.mark.parametrize("body", ["[" * 100_000, '{"request_id": ' + "9" * 5000 + "}"])
def test_a_body_that_cannot_be_read_is_said_in_words(api: ApiBench, body: str) -> None:
    told = api.client.post("/api/runs", content=body, headers={"Content-Type": "application/json"})
    assert (told.status_code, told.json()["error"]["context"]) == (
        422,
        {"detail": "the body is not valid JSON"},
    )


@pytest.mark.spec("API-2")
def test_an_address_with_a_slash_too_many_is_none(api: ApiBench) -> None:
    assert api.get("/api/status/", 404)["error"]["reason_code"] == "ROUTE_NOT_FOUND"
    assert api.post("/api/requests/RQ-1/run/", None, 404)["error"]["reason_code"] == "ROUTE_NOT_FOUND"


@pytest.mark.spec("ERR-2")
@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("ja", "Request が見つかりません"),
        ("fr, ja-JP;q=0.9, en;q=0.8", "Request が見つかりません"),
        ("ja;q=0.5, en;q=0.7", "No such request"),
        ("fr, ja;q=0", "No such request"),
        ("ja;q=", "Request が見つかりません"),
        ("*", "No such request"),
    ],
)
def test_an_error_is_in_the_language_that_the_caller_likes_most(api: ApiBench, asked: str, title: str) -> None:
    assert api.get("/api/requests/RQ-9", 404, headers={"Accept-Language": asked})["error"]["message"] == title


@pytest.mark.spec("API-2")
def test_the_figures_are_in_the_document(api: ApiBench) -> None:
    told = api.get("/openapi.json")["paths"]["/metrics"]["get"]["responses"]
    assert list(told["200"]["content"]) == ["text/plain"]
    assert {"401", "403", "421"} <= set(told)


@pytest.mark.spec("ERR-2", "ERR-3")
def test_a_mistake_in_the_settings_is_said_and_nothing_older_is_used(api: ApiBench) -> None:
    api.get("/api/requests")
    (api.bench.root / "aiflow.toml").write_text("accept = 3\n")
    error = api.get("/api/requests", 422)["error"]
    assert error["reason_code"] == "SETTINGS_INVALID"
    assert "aiflow.toml:1" in error["detail"]
    assert api.get("/api/health")["version"]
