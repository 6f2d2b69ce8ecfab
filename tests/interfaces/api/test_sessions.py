"""Sessions over HTTP: a code becomes a session once, and a session can be ended, its own too (SPEC §17)."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from api_bench import ORIGIN, ApiBench

pytestmark = pytest.mark.contract


def browser(api: ApiBench, name: str = "") -> TestClient:
    """Sign a browser in, as the page does."""
    page = TestClient(api.app, base_url=ORIGIN, headers={"Origin": ORIGIN})
    code = api.post("/api/sessions/code", None, 201)
    assert code["url"] == f"{ORIGIN}/sign-in#code={code['code']}"
    body = {"code": code["code"].lower(), "name": name}
    told = page.post("/api/sessions", json=body)
    assert told.status_code == 201
    assert page.cookies["aiflow_4310"]
    again = TestClient(api.app, base_url=ORIGIN, headers={"Origin": ORIGIN}).post("/api/sessions", json=body)
    assert (again.status_code, again.json()["error"]["reason_code"]) == (401, "CODE_REFUSED")
    return page


@pytest.mark.spec("API-2")
def test_browsers_sign_in_are_listed_and_sign_out(api: ApiBench) -> None:
    first, second = browser(api, "Aki"), browser(api)
    listed = first.get("/api/sessions").json()["sessions"]
    assert {each["name"]: each["is_current"] for each in listed} == {"Aki": True, api.server.sign_in.user: False}
    assert not any("key" in each for each in listed)
    [own] = [each["session_id"] for each in listed if each["is_current"]]
    assert first.post("/api/sessions/code").json()["error"]["reason_code"] == "AUTH_REQUIRED"
    assert first.delete(f"/api/sessions/{own}").json() == {"ended": 1}
    assert first.get("/api/sessions").status_code == 401
    assert second.get("/api/status").status_code == 200
    assert api.client.delete(f"/api/sessions/{own}").json()["error"]["reason_code"] == "SESSION_NOT_FOUND"
    assert api.client.delete("/api/sessions").json() == {"ended": 1}
    assert second.get("/api/status").status_code == 401
    assert api.get("/api/sessions") == {"sessions": []}
