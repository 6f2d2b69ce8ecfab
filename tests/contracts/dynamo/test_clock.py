"""A store that does not agree with our clock, as AWS does not behind a sleep or a set clock (QUE-10)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from aiflow.adapters.dynamo.client import DynamoClient
from aiflow.errors import EnvironmentProblemError
from aiflow.usecases.runner.desk import TROUBLES
from dynamo import Dynamo

EXPIRED = "Signature expired: 20261116T010000Z is now earlier than 20261116T014500Z (20261116T020000Z - 15 min.)"
AHEAD = "Signature not yet current: 20261116T020000Z is still later than 20261116T011500Z (20261116T010000Z + 15 min.)"
WRONG = "The request signature we calculated does not match the signature you provided."


class Refusing(BaseHTTPRequestHandler):
    """Answers every call with the error that was set."""

    kind, text = "", ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        told = json.dumps({"__type": f"com.amazon.coral.service#{self.kind}", "message": self.text}).encode()
        self.send_response(400)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def client() -> Iterator[DynamoClient]:
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Dynamo(f"http://127.0.0.1:{server.server_address[1]}").connect()
        server.shutdown()
        thread.join()


@pytest.mark.spec("QUE-10")
@pytest.mark.parametrize(
    ("kind", "text", "code"),
    [
        ("InvalidSignatureException", EXPIRED, "STORE_UNREACHABLE"),
        ("InvalidSignatureException", AHEAD, "STORE_UNREACHABLE"),
        ("SignatureDoesNotMatch", EXPIRED, "STORE_UNREACHABLE"),
        ("RequestExpired", "Request has expired.", "STORE_UNREACHABLE"),
        ("InvalidSignatureException", WRONG, "STORE_REFUSED"),
        ("ExpiredTokenException", "The security token included in the request is expired", "STORE_REFUSED"),
    ],
)
def test_a_clock_that_is_wrong_is_waited_for_and_a_wrong_key_is_not(
    client: DynamoClient, monkeypatch: pytest.MonkeyPatch, kind: str, text: str, code: str
) -> None:
    monkeypatch.setattr(Refusing, "kind", kind)
    monkeypatch.setattr(Refusing, "text", text)
    with pytest.raises(EnvironmentProblemError) as caught:
        client.call("get_item", TableName="t", Key={"namespace": {"S": "a"}})
    assert caught.value.reason_code == code
    assert (code in TROUBLES) == ("clock" in str(caught.value.context["problem"]))
