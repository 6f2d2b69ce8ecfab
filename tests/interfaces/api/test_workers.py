"""Workers (API-1): what the server starts outlives it, and the next server finds it as it finds a terminal's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from api_bench import ApiBench
from waiting import wait_until

pytestmark = pytest.mark.contract

HANG = "(HERE / 'hangs').touch()\nwhile not (HERE / 'go').exists(): time.sleep(0.02)\ndone()"


@pytest.mark.spec("API-1", "LCK-7")
def test_a_worker_is_a_process_of_its_own_that_another_server_finds(
    api: ApiBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.bench.agent.does("implementer", HANG)
    begun = api.post("/api/requests/RQ-1/run", None, 202)
    worker = api.server.work.current
    assert worker is not None
    assert os.getsid(worker.pid) == worker.pid
    kept = api.bench.root.resolve() / ".aiflow/workers"
    assert Path(f"/proc/{worker.pid}/fd/1").resolve().parent == kept
    assert Path(f"/proc/{worker.pid}/fd/2").resolve().parent == kept
    assert api.token not in Path(f"/proc/{worker.pid}/cmdline").read_text()

    other = ApiBench(api.bench, monkeypatch)  # as after a restart: it knows nothing but what is in the files
    wait_until((api.bench.agent.folder / "hangs").exists)
    [running] = other.get("/api/status")["running"]
    assert (running["run_id"], running["pid"]) == (begun["run_id"], worker.pid)
    error = other.post("/api/requests/RQ-1/run", None, 409)["error"]
    assert (error["reason_code"], error["context"]["run_id"]) == ("RUN_IN_PROGRESS", begun["run_id"])
    assert other.client.post(f"{begun['api_url']}/cancel").status_code in (200, 202)
    api.until_idle()
    assert other.get(begun["api_url"])["reason_code"] == "CANCELLED"
    assert other.get("/api/status")["running"] == []


@pytest.mark.spec("API-1", "ERR-4")
def test_the_journal_says_on_whose_behalf_a_worker_worked(api: ApiBench) -> None:
    code = api.post("/api/sessions/code", None, 201)["code"]
    page = api.new_client(Origin="http://127.0.0.1:4310")
    del page.headers["authorization"]
    assert page.post("/api/sessions", json={"code": code, "name": "Aki"}).status_code == 201
    assert page.post("/api/requests/RQ-1/run").status_code == 202
    api.until_idle()
    entries = api.get("/api/activity", params={"request_id": "RQ-1"})["activity"]
    assert {entry["by"] for entry in entries} == {"Aki"}


@pytest.mark.spec("API-1", "LCK-7")
def test_a_worker_that_has_given_its_lock_back_is_waited_for_and_not_refused(api: ApiBench) -> None:
    api.bench.configure('[notify]\ncommand = "sleep 1"')  # it tells somebody behind the run's end
    api.bench.commit()
    api.bench.agent.does("implementer", "ask('Which one?')")
    begun = api.post("/api/requests/RQ-1/run", None, 202)
    wait_until(lambda: not api.bench.locks())
    api.bench.agent.forget()
    api.post(f"{begun['api_url']}/resume", {"answer": "this"}, 202)
    api.until_idle()
    assert api.get(begun["api_url"])["state"] == "DONE"
