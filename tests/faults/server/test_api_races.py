"""A terminal and the API want the same request at the same moment: one run, and the other is told of it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from api_bench import ApiBench
from e2e.bench import Bench
from faults.racing import finish
from forms import rounds

pytestmark = pytest.mark.faults

CONFLICT = 4
ROUNDS = rounds(100, 300)
HEAD_START = 0.6


@pytest.fixture
def api(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiBench]:
    """Give a server on a repository."""
    bench = Bench(repository, tmp_path)
    made = ApiBench(bench, monkeypatch)
    yield made
    made.close()
    bench.close()


@pytest.mark.spec("API-2", "LCK-7", "LCK-2")
def test_a_terminal_and_the_api_race_for_a_request_and_it_runs_once(api: ApiBench, chance: random.Random) -> None:
    bench, go = api.bench, api.bench.agent.folder / "go"
    bench.agent.does("implementer", "while not (HERE / 'go').exists(): time.sleep(0.01)\ndone()")
    with ThreadPoolExecutor(1) as pool:
        for number in range(ROUNDS):
            name = f"RACE-{number}"
            bench.add_request(name)
            asked = pool.submit(api.client.post, f"/api/requests/{name}/run")
            time.sleep(chance.uniform(0, HEAD_START))  # a worker has to be started first
            terminal = bench.start("run", name, "--json")
            told = asked.result()
            if told.status_code == 202:
                code, answer = finish(terminal)
                refused, run_id = answer["error"], told.json()["run_id"]
                assert code == CONFLICT
                go.touch()
                api.until_idle()
            else:
                assert told.status_code == 409, told.text
                refused = told.json()["error"]
                go.touch()
                code, answer = finish(terminal)
                assert code == 0
                run_id = answer["run_id"]
            assert (refused["reason_code"], refused["context"]["run_id"]) == ("RUN_IN_PROGRESS", run_id)
            assert bench.run_ids(name) == [run_id]
            go.unlink()
    assert bench.locks() == []
