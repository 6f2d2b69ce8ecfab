"""What the client of a store makes of answers that are none, and of those that do not come (QUE-2, QUE-10)."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

import pytest

from aiflow import __version__
from aiflow.adapters.dynamo import client as dynamo_client
from aiflow.adapters.dynamo.client import DynamoClient
from aiflow.adapters.dynamo.queue import DynamoStore
from aiflow.domain.queue.runner import Runner
from aiflow.domain.queue.task import Checkout
from aiflow.errors import EnvironmentProblemError
from aiflow.settings import Settings
from aiflow.wiring import open_store
from dynamo import Dynamo
from task_builders import NOW

PAGE = b"<html><body><h1>Please log in to the network</h1></body></html>"
KEY = {"namespace": {"S": "shop"}, "task_id": {"S": "TASK-1"}}


class Liar:
    """Something at an address that is not DynamoDB: what it answers, one by one (the last for ever), None is nothing."""

    def __init__(self, *answers: tuple[int, bytes] | None) -> None:
        self.asked, self.is_over, self.who = 0, threading.Event(), ""
        liar = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                answer = answers[min(liar.asked, len(answers) - 1)]
                liar.asked += 1
                liar.who = self.headers["User-Agent"]
                if answer is None:
                    liar.is_over.wait(20)
                    return
                self.send_response(answer[0])
                self.send_header("Content-Length", str(len(answer[1])))
                self.end_headers()
                self.wfile.write(answer[1])

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self) -> None:
        self.is_over.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def liars(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Liar]]:
    monkeypatch.setattr(dynamo_client, "PAUSE_SECONDS", 0.001)
    made: list[Liar] = []
    yield made
    for liar in made:
        liar.close()


def client_of(liars: list[Liar], *answers: tuple[int, bytes] | None) -> DynamoClient:
    liars.append(Liar(*answers))
    return Dynamo(liars[-1].endpoint).connect()


@pytest.mark.spec("QUE-2", "QUE-10")
@pytest.mark.parametrize(
    ("status", "body"),
    [(200, PAGE), (200, b""), (200, b'{"Items": ['), (200, b"[]"), (302, PAGE), (403, PAGE), (502, PAGE)],
)
def test_what_is_no_answer_of_dynamodb_is_neither_success_nor_emptiness(
    liars: list[Liar], status: int, body: bytes
) -> None:
    client = client_of(liars, (status, body))
    store = DynamoStore(client)
    runner = Runner("shop", "R-1", Checkout("here", "/shop"), NOW, NOW)
    for call in (
        store.prepare,
        store.all_runners,
        lambda: store.queue("shop").get("TASK-1"),
        lambda: store.queue("shop").counts(),
        lambda: store.runners("shop").save(runner),
    ):
        with pytest.raises(EnvironmentProblemError) as caught:
            call()
        assert caught.value.reason_code == "STORE_UNREACHABLE"
        assert "not DynamoDB" in str(caught.value.context["problem"])
        assert "log in" not in str(caught.value.context["problem"])


@pytest.mark.spec("QUE-2")
def test_a_store_is_told_who_asks_in_a_word(liars: list[Liar]) -> None:
    client_of(liars, (200, b'{"TableNames": []}')).call("list_tables")
    assert liars[-1].who.split()[0] == f"aiflow/{__version__}"
    assert len(liars[-1].who) < 50


@pytest.mark.spec("QUE-2")
def test_a_json_service_that_knows_nothing_of_tables_is_no_empty_queue(liars: list[Liar]) -> None:
    store = DynamoStore(client_of(liars, (200, b'{"status": "ok"}')))
    for call in (store.prepare, store.all_runners, lambda: store.queue("shop").counts()):
        with pytest.raises(EnvironmentProblemError, match="STORE_UNREACHABLE"):
            call()


@pytest.mark.spec("QUE-10")
def test_trouble_that_passes_is_asked_again_and_a_refusal_is_not(liars: list[Liar]) -> None:
    item = json.dumps({"Item": KEY}).encode()
    client = client_of(liars, (500, b""), (503, PAGE), (200, item))
    assert client.call("get_item", TableName="t", Key=KEY)["Item"] == KEY
    assert liars[0].asked == 3
    client = client_of(liars, (500, b""))
    with pytest.raises(EnvironmentProblemError, match="STORE_UNREACHABLE"):
        client.call("get_item", TableName="t", Key=KEY)
    assert liars[1].asked == 3
    refusal = b'{"__type": "com.amazon.coral.service#UnrecognizedClientException", "message": "Who are you?"}'
    client = client_of(liars, (400, refusal))
    with pytest.raises(EnvironmentProblemError, match="STORE_REFUSED"):
        client.call("get_item", TableName="t", Key=KEY)
    assert liars[2].asked == 1


@pytest.mark.spec("QUE-10")
def test_a_store_that_hangs_is_waited_for_once_and_that_is_told(
    liars: list[Liar], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamo_client, "READ_SECONDS", 0.6)
    monkeypatch.setattr(dynamo_client, "AGAIN_WITHIN_SECONDS", 0.5)
    monkeypatch.setattr(dynamo_client, "SLOW_SECONDS", 0.1)
    told: list[str] = []
    liars.append(Liar(None))
    settings = Settings({"queue.store": liars[0].endpoint, "queue.poll_ms": 1000}, {})
    with pytest.raises(EnvironmentProblemError, match="STORE_UNREACHABLE"):
        open_store(settings, os.environ, lambda step, _fraction: told.append(step))
    assert (liars[0].asked, told) == (1, ["wait"])


@pytest.mark.spec("QUE-10", "PRF-3")
@pytest.mark.parametrize("is_all_told", [True, False])
def test_a_call_is_watched_only_where_somebody_is_told(dynamo: Dynamo, is_all_told: bool) -> None:
    """A runner asks its store for as long as it lives, and every watch is a thread."""
    settings = Settings({"queue.store": dynamo.endpoint, "queue.poll_ms": 1000}, {})
    store = cast(DynamoStore, open_store(settings, dynamo.environ, lambda *_told: None, is_all_told=is_all_told))
    watched: list[bool] = []

    def observe(*_call: object) -> None:
        # One that was called off, by another test, may not have ended yet.
        timers = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
        watched.append(any(not each.finished.is_set() for each in timers))

    store._client.observe = observe
    store.queue("app").get("T-1")
    assert watched == [is_all_told]
