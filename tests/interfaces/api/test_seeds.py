"""The answers that the seeds write down, field by field (D39 §4, D59 §8.2, D34 §4.2)."""

from __future__ import annotations

from typing import Any

import pytest

from aiflow.api.app import document
from aiflow.api.models.requests import ResumeBody
from api_bench import ApiBench
from builders import write_request

pytestmark = pytest.mark.contract

HANG = "while not (HERE / 'go').exists(): time.sleep(0.02)\ndone()"


@pytest.mark.spec("ERR-2", "API-2")
@pytest.mark.parametrize(
    ("language", "message"),
    [("ja,en;q=0.5", "同一RequestのRunが実行中です"), ("en", "A run is already in progress")],
)
def test_the_conflict_of_a_request_is_that_of_d39(api: ApiBench, language: str, message: str) -> None:
    api.bench.agent.does("implementer", HANG)
    begun = api.post("/api/requests/RQ-1/run", None, 202)
    told = api.new_client(**{"Accept-Language": language}).post("/api/requests/RQ-1/run")
    (api.bench.agent.folder / "go").touch()
    api.until_idle()
    assert told.status_code == 409
    seed: dict[str, Any] = {
        "error": {
            "category": "EXECUTION",
            "reason_code": "RUN_IN_PROGRESS",
            "message": message,
            "context": {"request_id": "RQ-1", "run_id": begun["run_id"]},
        }
    }
    error = told.json()["error"]
    assert {name: error[name] for name in seed["error"] if name != "context"} == {
        name: value for name, value in seed["error"].items() if name != "context"
    }
    context = {**seed["error"]["context"], "url": begun["url"], "api_url": begun["api_url"]}
    assert {name: error["context"][name] for name in context} == context
    assert set(error) == {"category", "reason_code", "message", "detail", "context", "actions"}
    assert set(told.json()) == {"error"}


@pytest.mark.spec("ERR-2")
def test_the_conflict_of_the_queue_is_that_of_d39(api: ApiBench) -> None:
    api.bench.agent.does("implementer", HANG)
    api.post("/api/queue/run-next", None, 202)
    told = api.new_client(**{"Accept-Language": "ja"}).post("/api/queue/run-next")
    (api.bench.agent.folder / "go").touch()
    api.until_idle()
    error = told.json()["error"]
    assert (told.status_code, error["reason_code"]) == (409, "QUEUE_IN_PROGRESS")
    assert error["message"] == "キュー実行がすでに動作中です"
    assert error["detail"].startswith("Auto-runは同時に1つのみ実行できます。")


@pytest.mark.spec("API-2", "SEL-3")
def test_what_is_next_is_that_of_d59(api: ApiBench) -> None:
    root = api.bench.root
    (root / "requests/RQ-1.md").unlink()
    name, waiting, missing = "RQ-20251214-008", "RQ-20251214-010", "RQ-20251214-009"
    title = "Bootstrap: aiflow-local v1"
    write_request(root, name, None, title=f"'{title}'", priority="P0", status="ready", updated_at="2025-12-14")
    write_request(root, waiting, None, priority="P0", status="ready", depends_on=f"[{missing}]")
    write_request(root, missing, None, priority="P0", status="draft")
    assert api.get("/api/queue/next") == {
        "next": {
            "request_id": name,
            "priority": "P0",
            "status": "ready",
            "title": "Bootstrap: aiflow-local v1",
            "path": f"requests/{name}.md",
        },
        "stats": {"total": 3, "ready": 2, "runnable": 1},
        "excluded": [
            {
                "request_id": waiting,
                "reason_code": "DEPENDS_NOT_DONE",
                "detail": f"depends_on: {missing} is not done",
            }
        ],
    }


@pytest.mark.spec("API-2", "RUN-6")
def test_the_body_of_resume_is_that_of_d34() -> None:
    known = document()
    path = known["paths"]["/api/requests/{request_id}/runs/{run_id}/resume"]["post"]
    assert not path["requestBody"].get("required")
    fields = known["components"]["schemas"]["ResumeBody"]["properties"]
    assert {*fields} == {"mode", "target_step_id", "force", "answer", "keep_changes", "update", "no_baseline"}
    assert (fields["mode"]["enum"], fields["mode"]["default"]) == (["resume", "retry_step", "replan"], "resume")
    assert (fields["force"]["type"], fields["force"]["default"]) == ("boolean", False)
    seed = ResumeBody.model_validate({"mode": "retry_step", "target_step_id": "S03", "force": False})
    assert (seed.mode, seed.target_step_id, seed.force) == ("retry_step", "S03", False)
