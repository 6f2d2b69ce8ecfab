"""The store of this machine behind a server: handing work over starts it, a question never does (QUE-2, API-2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from api_bench import ApiBench
from e2e.bench import Bench
from store_home import filled_cache


@pytest.mark.spec("API-2", "QUE-2")
def test_work_that_is_handed_over_starts_the_store_again_and_again(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.aiflow.environ |= {"XDG_CACHE_HOME": str(filled_cache(tmp_path / "cache"))}
    api = ApiBench(bench, monkeypatch)
    try:
        assert api.get("/api/queue")["store"]["is_answering"] is False
        api.post("/api/tasks", {"request_id": "RQ-1", "task_id": "T-1"}, 201)
        assert api.get("/api/tasks/T-1")["status"] == "QUEUED"
        bench.aiflow("store", "stop")
        assert api.get("/api/tasks/T-1", 503)["error"]["reason_code"] == "STORE_UNREACHABLE"
        assert api.post("/api/tasks", {"request_id": "RQ-1", "task_id": "T-1"})["tasks"][0]["is_new"] is False
        assert api.get("/api/queue")["counts"]["QUEUED"] == 1
    finally:
        bench.aiflow("store", "stop")
        api.close()
