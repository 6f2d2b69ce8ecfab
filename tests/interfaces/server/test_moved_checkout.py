"""A checkout that is moved or removed while its server is up (API-1): that is said, and nothing is made in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from server_yard import served

JSON = {"Content-Type": "application/json"}
CALLS = [
    ("GET", "/api/status"),
    ("GET", "/api/requests"),
    ("GET", "/api/activity"),
    ("GET", "/metrics"),
    ("GET", "/"),
    ("POST", "/api/requests/RQ-1/run"),
    ("POST", "/api/queue/run-next"),
    ("POST", "/api/requests"),
]


@pytest.mark.spec("API-1", "ERR-3")
def test_a_checkout_that_has_gone_is_said_and_not_made_again(repository: Path, tmp_path: Path) -> None:
    with served(repository) as up:
        (repository / "requests/RQ-1.md").write_text("status: draft\n\n# One\n")
        assert up.call("GET", "/api/status", up.bearer).status == 200
        up.cookie()
        repository.rename(tmp_path / "away")
        for method, path in CALLS:
            body = b'{"title": "A shop"}' if (method, path) == ("POST", "/api/requests") else b""
            answer = up.call(method, path, {**up.bearer, **(JSON if body else {})}, body)
            assert (answer.status, answer.reason) == (503, "PROJECT_NOT_FOUND"), path
        assert up.call("GET", "/api/health", up.bearer).json["degraded"] == ["PROJECT_NOT_FOUND"]
        code = up.server.sign_in.make_code()[0].encode()
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": up.origin}
        assert up.call("POST", "/sign-in", form, b"code=" + code).status == 503
        assert not repository.exists()
        (tmp_path / "away").rename(repository)
        assert up.call("GET", "/api/status", up.bearer).status == 200
