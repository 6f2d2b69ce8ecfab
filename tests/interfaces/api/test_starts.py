"""Starts over HTTP (API-2): each begins once, is answered when it has, or with its own refusal."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from api_bench import ApiBench
from waiting import wait_until

pytestmark = pytest.mark.contract

HANG = "(HERE / 'hangs').touch()\nwhile not (HERE / 'go').exists(): time.sleep(0.02)\ndone()"
RUN = "/api/requests/RQ-1/run"


def at_once(api: ApiBench, *paths: str) -> list[Any]:
    """Post to several places at the same moment, each as a client of its own."""
    with ThreadPoolExecutor(len(paths)) as pool:
        return [*pool.map(lambda path: api.new_client().post(path), paths)]


def let_go(api: ApiBench) -> None:
    """Let the agents go on, and wait for the end."""
    (api.bench.agent.folder / "go").touch()
    api.until_idle()


@pytest.mark.spec("API-2", "ERR-2")
@pytest.mark.parametrize("is_long", [True, False])
def test_a_request_that_two_clients_start_at_once_runs_once(api: ApiBench, is_long: bool) -> None:
    if is_long:
        api.bench.agent.does("implementer", HANG)
    answers = at_once(api, RUN, RUN)
    let_go(api)
    [run_id] = api.bench.run_ids()
    [begun, refused] = sorted(answers, key=lambda each: each.status_code)
    place = f"/requests/RQ-1/runs/{run_id}"
    assert (begun.status_code, begun.headers["location"]) == (202, f"/api{place}")
    assert begun.json() == {"request_id": "RQ-1", "run_id": run_id, "url": place, "api_url": f"/api{place}"}
    assert refused.status_code == 409
    error = refused.json()["error"]
    assert (error["category"], error["reason_code"]) == ("EXECUTION", "RUN_IN_PROGRESS")
    pid = error["context"].pop("pid")
    assert error["context"] == {"request_id": "RQ-1", "run_id": run_id, "url": place, "api_url": f"/api{place}"}
    assert pid == api.server.work.current.pid  # type: ignore[union-attr]


@pytest.mark.spec("API-2", "RUN-18")
@pytest.mark.parametrize(("path", "body"), [(RUN, {}), ("/api/runs", {"request_id": "RQ-1"})])
def test_a_quick_run_calls_the_implementer_alone(api: ApiBench, path: str, body: dict[str, str]) -> None:
    run_id = api.post(path, {**body, "quick": True}, 202)["run_id"]
    api.until_idle()
    assert api.bench.agent.roles == ["implementer S01"]
    assert api.bench.stage("RQ-1", run_id)["state"] == "DONE"


@pytest.mark.spec("API-2")
def test_another_request_is_refused_with_the_run_that_is_at_work(api: ApiBench) -> None:
    api.bench.add_request("RQ-2")
    api.bench.agent.does("implementer", HANG)
    run_id = api.post("/api/runs", {"request_id": "RQ-1"}, 202)["run_id"]
    for path, body in (("/api/requests/RQ-2/run", None), ("/api/runs", {"request_id": "RQ-2"}), (RUN, None)):
        error = api.post(path, body, 409)["error"]
        assert (error["reason_code"], error["context"]["run_id"]) == ("RUN_IN_PROGRESS", run_id)
    assert api.post("/api/queue/run-next", None, 409)["error"]["context"]["run_id"] == run_id
    let_go(api)
    assert api.bench.run_ids("RQ-2") == []


@pytest.mark.spec("API-2", "AUT-1", "ERR-2")
def test_auto_run_that_is_started_twice_at_once_starts_once(api: ApiBench) -> None:
    api.bench.agent.does("implementer", HANG)
    answers = at_once(api, "/api/queue/run-next", "/api/queue/run-next")
    [begun, refused] = sorted(answers, key=lambda each: each.status_code)
    assert (begun.status_code, begun.json()["summary"]) == (202, None)
    assert (refused.status_code, refused.json()["error"]["reason_code"]) == (409, "QUEUE_IN_PROGRESS")
    wait_until((api.bench.agent.folder / "hangs").exists)
    error = api.post("/api/queue/run-next", None, 409)["error"]
    assert error["context"]["run_id"] == api.bench.run_ids()[-1]
    assert error["context"]["api_url"] == f"/api/requests/RQ-1/runs/{api.bench.run_ids()[-1]}"
    assert api.get("/api/queue")["auto"]["run_id"] == api.bench.run_ids()[-1]
    assert api.post("/api/queue/stop", {"now": False}, 202)["stop_request"] == "after_run"
    let_go(api)
    assert api.get("/api/status")["auto"]["session"]["reason_code"] == "AUTO_STOPPED_BY_PERSON"
    assert api.post("/api/queue/stop", None, 409)["error"]["reason_code"] == "AUTO_NOT_RUNNING"


@pytest.mark.spec("API-2", "AUT-1")
def test_a_doctor_that_fails_lets_no_auto_run_begin(api: ApiBench) -> None:
    (api.bench.root / "app.txt").write_text("edited\n")
    error = api.post("/api/queue/run-next", None, 409)["error"]
    assert (error["reason_code"], error["context"]["checks"]) == ("DOCTOR_FAILED", ["WORKTREE_DIRTY"])
    assert api.bench.run_ids() == []


@pytest.mark.spec("API-2", "RUN-15")
@pytest.mark.parametrize(
    ("request_id", "status", "code"),
    [("RQ-9", 404, "REQUEST_NOT_FOUND"), ("--help", 404, "REQUEST_NOT_FOUND"), ("RQ-2", 409, "NOT_READY")],
)
def test_a_start_is_refused_with_its_own_status_and_reason(
    api: ApiBench, request_id: str, status: int, code: str
) -> None:
    api.bench.add_request("RQ-2", status="draft")
    assert api.post(f"/api/requests/{request_id}/run", None, status)["error"]["reason_code"] == code
    assert api.post("/api/runs", {"request_id": request_id}, status)["error"]["reason_code"] == code
    has_looked = api.server.work.current is not None
    assert has_looked is (status == 409), "of a request that is not there no worker is started"


def stopped(api: ApiBench, question: str = "Which one?") -> str:
    """Let RQ-1 run until it asks something; return its run."""
    api.bench.agent.does("implementer", f"ask({question!r})")
    run_id = str(api.post(RUN, None, 202)["run_id"])
    api.until_idle()
    api.bench.agent.forget()
    return run_id


@pytest.mark.spec("API-2", "RUN-6", "RUN-10")
@pytest.mark.parametrize(
    ("body", "event"),
    [
        ({"mode": "resume", "answer": "--the first"}, "RESUMED_AT_STEP"),
        ({"mode": "resume", "target_step_id": "s01", "force": True}, "RESUMED_AT_STEP"),
        ({"mode": "retry_step", "target_step_id": "S01", "force": False}, "RESUMED_AT_STEP"),
        ({"mode": "retry_step"}, "RESUMED_AT_STEP"),
        (None, None),
    ],
)
def test_a_run_goes_on_in_each_mode(api: ApiBench, body: dict[str, Any] | None, event: str | None) -> None:
    run_id = stopped(api)
    path = f"/api/requests/RQ-1/runs/{run_id}/resume"
    if event is None:  # the default is to resume, and a question needs its answer
        assert api.post(path, body, 409)["error"]["reason_code"] == "NEEDS_CLARIFICATION"
        return
    told = api.client.post(path, json=body)
    assert (told.status_code, told.headers["location"]) == (202, f"/api/requests/RQ-1/runs/{run_id}")
    history = [line["event"] for line in api.get(told.headers["location"])["history"]]
    assert event in history, "it is in the run's history when it is answered"
    api.until_idle()
    run = api.get(told.headers["location"])
    assert run["state"] == "DONE"
    answered = [each["answer"] for each in run["answers"]]
    assert answered == ([body["answer"]] if body and "answer" in body else [])


@pytest.mark.spec("API-2", "RUN-6")
def test_a_new_plan_is_a_new_run_and_each_names_the_other(api: ApiBench) -> None:
    run_id = stopped(api)
    path = f"/api/requests/RQ-1/runs/{run_id}"
    told = api.post(f"{path}/resume", {"mode": "replan", "force": True}, 202)
    assert told["run_id"] != run_id
    api.until_idle()
    assert api.get(path)["replaced_by"] == told["run_id"]
    assert api.get(told["api_url"])["replaces"] == run_id
    error = api.post(f"{path}/resume", {"mode": "resume"}, 409)["error"]
    assert error["reason_code"] == "RUN_NOT_RESUMABLE"


@pytest.mark.spec("API-2", "RUN-7")
@pytest.mark.parametrize("mode", ["resume", "retry_step", "replan"])
def test_a_doctor_that_fails_keeps_the_run_waiting(api: ApiBench, mode: str) -> None:
    run_id = stopped(api)
    (api.bench.root / "app.txt").write_text("edited\n")
    path = f"/api/requests/RQ-1/runs/{run_id}"
    error = api.post(f"{path}/resume", {"mode": mode, "answer": "this"}, 409)["error"]
    assert error["reason_code"] in ("DOCTOR_FAILED", "WORKTREE_DIRTY")
    run = api.get(path)
    assert (run["state"], run["reason_code"]) == ("NEEDS_INPUT", "NEEDS_CLARIFICATION")
    assert run["errors"]["reason_code"] == error["reason_code"]
    assert api.bench.run_ids() == [run_id]


@pytest.mark.spec("API-2")
@pytest.mark.parametrize(
    "body",
    [
        {"mode": "resume", "target_step_id": "S07"},
        {"mode": "replan", "target_step_id": "S01"},
        {"mode": "replan", "keep_changes": True},
        {"mode": "retry_step", "update": True},
        {"mode": "again"},
        {"answer": "a\0b"},
        {"answer": "half \ud83d"},
        {"fresh": True},
    ],
)
def test_what_makes_no_sense_together_is_refused_before_anything_starts(api: ApiBench, body: dict[str, Any]) -> None:
    run_id = stopped(api)
    before = api.server.work.current
    error = api.post(f"/api/requests/RQ-1/runs/{run_id}/resume", body, 422)["error"]
    assert error["reason_code"] == "INPUT_INVALID"
    assert api.server.work.current is before


@pytest.mark.spec("API-2", "RUN-12")
def test_a_run_at_work_is_cancelled_and_its_workers_end(api: ApiBench) -> None:
    api.bench.agent.does("implementer", HANG)
    place = api.post(RUN, None, 202)["api_url"]
    wait_until((api.bench.agent.folder / "hangs").exists)
    told = api.client.post(f"{place}/cancel")
    assert told.status_code in (200, 202)
    api.until_idle()
    run = api.get(place)
    assert (run["state"], run["reason_code"]) == ("NEEDS_INPUT", "CANCELLED")
    assert api.post(f"{place}/cancel", None, 409)["error"]["reason_code"] == "RUN_NOT_ACTIVE"
