"""What auto-run waits for (WEB-2, RUN-13): the bar of every page and the morning say so, and until when."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aiflow.domain.lifecycle import AutoRunState
from aiflow.domain.lock import Lock
from aiflow.domain.request import RequestId
from aiflow.usecases.runs.locks import take_lock
from auto_night import BEGUN
from builders import write_request
from real_engine import engine_at
from run_page_runs import REQUESTS, id_of, path_of, worked_on, write_run
from server_yard import Served, served

UNTIL = {"en": "Waiting until {}: The agent's usage limit", "ja": "{} まで待機中: エージェントの利用上限"}
ANOTHER = {"en": "Waiting for another run to end: ", "ja": "別の Run の終了を待っています: "}
WATCHES = {"en": "Waiting for new requests …", "ja": "新しい Request を待っています…"}
# Says what it took, and keeps it until it may end.
HOLDS = """
import sys; sys.path.insert(0, {tests!r})
from pathlib import Path
from real_engine import engine_at
lease = engine_at(Path({root!r})).locks.acquire_queue()
print(type(lease).__name__, flush=True)
sys.stdin.read()
lease.release()
"""


@pytest.fixture
def up(repository: Path) -> Iterator[Served]:
    with served(repository, auth="none") as given:
        yield given


def get(up: Served, path: str, language: str) -> str:
    answer = up.call("GET", path, {"Cookie": f"aiflow_lang={language}"})
    assert answer.status == 200, answer.body.decode()[-400:]
    return answer.body.decode()


def bar_of(page: str) -> str:
    found = re.findall(r'<section class="qbar".*?</section>', page, re.DOTALL)
    assert len(found) == 1
    return str(found[0])


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html)).replace("&#39;", "'")


@contextlib.contextmanager
def queue_held_elsewhere(root: Path) -> Iterator[None]:
    """Have another process hold the queue's lock while the block lasts."""
    code = HOLDS.format(tests=str(Path(__file__).parents[2]), root=str(root))
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"LockLease\n"
        yield
        process.stdin.close()


def waits(up: Served, *, is_watching: bool = False) -> None:
    """Let auto-run's record say that it waits."""
    session = replace(BEGUN, state=AutoRunState.WAITING, is_watching=is_watching)
    up.server.project.auto_records.save(session)


@pytest.mark.spec("WEB-2", "RUN-13")
def test_a_wait_for_the_quota_is_said_in_the_bar_and_in_the_morning(up: Served) -> None:
    root = Path(up.server.record.root)
    run = write_run(root, "waiting")
    assert run.waits_until is not None
    engine = engine_at(root)
    queue = engine.locks.acquire_queue()
    assert not isinstance(queue, Lock)
    lease = take_lock(engine, RequestId(REQUESTS["waiting"]), id_of("waiting"))
    waits(up)
    here = run.waits_until.astimezone()
    for language, told in UNTIL.items():
        said = told.format(f"{here.hour}:{here.minute:02}")
        bar = bar_of(get(up, "/activity", language))
        assert said in words(bar)
        assert ("#s-pause" in bar, "#s-run" in bar) == (True, False)
        assert f'href="{path_of("waiting")}"' in bar
        morning = get(up, "/", language)
        [row] = re.findall(r'<div class="now-row" id="run-RQ.*?</div>', morning, re.DOTALL)
        assert said in words(row)
        assert ("#s-pause" in row, "#s-run" in row) == (True, False)
        assert f'<time datetime="{run.waits_until.isoformat(timespec="seconds")}"' in row
    lease.release()
    queue.release()


@pytest.mark.spec("WEB-2", "LCK-7")
def test_a_wait_for_another_run_or_for_requests_is_said_too(up: Served) -> None:
    root = Path(up.server.record.root)
    write_run(root, "running")
    write_request(root, "RQ-90", None, status="draft")
    waits(up, is_watching=True)
    with queue_held_elsewhere(root):
        for language, told in WATCHES.items():
            bar = bar_of(get(up, "/activity", language))
            assert told in words(bar)
            assert "#s-pause" in bar
        with worked_on(root, "running"):
            for language, told in ANOTHER.items():
                bar = bar_of(get(up, "/activity", language))
                assert told + REQUESTS["running"] in words(bar)
                assert f'href="{path_of("running")}"' in bar
