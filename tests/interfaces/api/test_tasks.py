"""The queue over HTTP: a question starts no store, and with one the answers are those of the terminal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from api_bench import ApiBench
from dynamo import Dynamo
from e2e.bench import Bench

pytestmark = pytest.mark.contract


@pytest.mark.spec("API-2", "QUE-2", "ERR-2")
def test_a_question_starts_no_store_and_says_what_to_do(api: ApiBench) -> None:
    told = api.get("/api/queue")
    assert (told["counts"], told["total"], told["store"]["is_answering"]) == (None, None, False)
    assert told["store"]["error"]["reason_code"] == "STORE_UNREACHABLE"
    assert any("aiflow queue store start" in action for action in told["store"]["error"]["actions"])
    assert told["auto"]["is_running"] is False
    for path in ("/api/tasks", "/api/tasks/T-1", "/api/runners", "/api/namespaces"):
        assert api.get(path, 503)["error"]["reason_code"] == "STORE_UNREACHABLE"
    error = api.post("/api/tasks/T-1/cancel", None, 503)["error"]
    assert error["context"]["start"] == "aiflow queue store start"
    assert api.bench.aiflow.json("store", "status", code=3)["store"]["running"] is False


@pytest.fixture
def shop(bench: Bench, dynamo: Dynamo, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiBench]:
    """Give a server whose checkout has a queue."""
    bench.aiflow.environ |= dynamo.environ
    made = ApiBench(bench, monkeypatch)
    yield made
    made.close()


@pytest.mark.spec("API-2", "QUE-9")
def test_work_is_queued_listed_shown_and_cancelled_as_in_the_terminal(shop: ApiBench) -> None:
    added = shop.client.post("/api/tasks", json={"request_id": "RQ-1", "priority": "P0", "task_id": "T-1"})
    assert (added.status_code, added.headers["location"]) == (201, "/api/tasks/T-1")
    assert (
        shop.post("/api/tasks", {"request_id": "RQ-1", "priority": "P0", "task_id": "T-1"})["tasks"][0]["is_new"]
        is False
    )
    assert shop.post("/api/tasks", {"request_id": "RQ-1"}, 409)["error"]["reason_code"] == "REQUEST_QUEUED"
    shop.post("/api/tasks", {"prompt": "Say hello"}, 201)
    shop.post("/api/tasks", {"auto": True, "watch": True}, 201)
    for path, command in {
        "/api/tasks": ("queue", "list"),
        "/api/tasks?status=QUEUED&all=true": ("queue", "list", "--status", "QUEUED", "--all"),
        "/api/tasks/T-1": ("queue", "show", "T-1"),
        "/api/namespaces": ("namespaces",),
    }.items():
        assert shop.get(path) == shop.bench.aiflow.json(*command), path
    assert shop.get("/api/runners") == {"runners": [], "total": 0, "next_after": None}
    queue = shop.get("/api/queue")
    assert (queue["store"]["is_answering"], queue["counts"]["QUEUED"], queue["total"]) == (True, 3, 3)
    [page] = [shop.get("/api/tasks", params={"limit": 2})]
    rest = shop.get("/api/tasks", params={"limit": 2, "after": page["next_start"]})
    assert len(page["tasks"]) + len(rest["tasks"]) == 3
    [cancelled] = shop.post("/api/tasks/T-1/cancel")["tasks"]
    assert (cancelled["status"], cancelled["is_released"]) == ("CANCELLED", True)
    assert shop.get("/api/tasks/T-1")["status"] == "CANCELLED"


@pytest.mark.spec("API-2", "ERR-2")
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "INPUT_INVALID"),
        ({"request_id": "do this for me"}, 404, "REQUEST_NOT_FOUND"),
        ({"request_id": "RQ-9"}, 404, "REQUEST_NOT_FOUND"),
        ({"request_id": "RQ-1", "auto": True}, 422, "INPUT_INVALID"),
        ({"request_id": "RQ-1", "force": True}, 422, "INPUT_INVALID"),
        ({"request_id": "RQ-1", "mode": "resume"}, 404, "RUN_NOT_FOUND"),
        ({"prompt": " "}, 422, "PROMPT_EMPTY"),
        ({"request_id": "RQ-1", "namespace": "no name"}, 422, "NAMESPACE_INVALID"),
    ],
)
def test_work_that_cannot_be_queued_is_refused(shop: ApiBench, body: dict[str, object], status: int, code: str) -> None:
    assert shop.post("/api/tasks", body, status)["error"]["reason_code"] == code
    assert shop.get("/api/tasks/T-9", 404)["error"]["reason_code"] == "TASK_NOT_FOUND"
    both = shop.get("/api/tasks", 422, params={"all": True, "namespace": "shop"})
    assert both["error"]["reason_code"] == "INPUT_INVALID"
