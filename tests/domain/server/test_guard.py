"""Who may call the server (SEC): the decision itself, by tables and properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.server.guard import Addresses, Call, addresses, beside, is_loopback, is_open, is_plain_path, refuse

pytestmark = pytest.mark.spec("SEC")

OURS = addresses("127.0.0.1", 4310, ("box.tail1.ts.net", "https://flow.example", "proxy:8080"))
PAGE = "http://127.0.0.1:4310"
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"]
CHANGING = ["POST", "PUT", "PATCH", "DELETE"]
NAMES = st.sampled_from([*sorted(OURS.hosts), "evil.example:4310", "127.0.0.1", "127.0.0.1:4311", "", "a,b"])
ORIGINS = st.sampled_from(
    [*sorted(OURS.origins), "null", "http://evil.example", "http://127.0.0.1:4311", "", PAGE + "/"]
)
CALLS = st.builds(
    Call,
    method=st.sampled_from(METHODS),
    path=st.sampled_from(["/", "/api/requests", "/sign-in", "/static/page.css", "/api//requests", "/static/../api"]),
    host=st.none() | NAMES,
    origin=st.none() | ORIGINS,
    content_type=st.sampled_from([None, "application/json", "application/x-www-form-urlencoded", "text/plain", ""]),
    has_body=st.booleans(),
    has_bearer=st.booleans(),
    is_from_browser=st.booleans(),
    site=st.sampled_from([None, "same-origin", "none", "same-site", "cross-site"]),
    mode=st.sampled_from([None, "navigate", "no-cors", "cors"]),
    repeats=st.sets(st.sampled_from(["host", "origin", "content-type", "authorization"]), max_size=1).map(frozenset),
)


@given(CALLS, st.booleans())
def test_what_is_let_through_is_from_us_or_from_no_page(call: Call, is_unguarded: bool) -> None:
    if refuse(call, OURS, is_unguarded=is_unguarded) is not None:
        return
    assert call.host in OURS.hosts
    assert call.origin is None or call.origin in OURS.origins
    assert not call.repeats
    assert is_plain_path(call.path)
    if call.method not in ("GET", "HEAD"):
        assert call.method in CHANGING
        assert call.origin is not None or (not call.is_from_browser if is_unguarded else call.has_bearer)
        wanted = "application/json" if call.path.startswith("/api/") else "application/x-www-form-urlencoded"
        assert call.content_type == wanted or not (call.has_body or call.content_type)
    elif call.origin is None and call.site in ("same-site", "cross-site"):
        assert call.mode == "navigate"


@given(CALLS)
def test_a_foreign_origin_is_never_let_through_whatever_else_is_said(call: Call) -> None:
    for origin in ("null", "http://evil.example", "http://127.0.0.1:4311", f"{PAGE}.evil.example", f"{PAGE}/", "", "*"):
        assert refuse(call._replace(origin=origin), OURS) is not None
        assert refuse(call._replace(origin=origin), OURS, is_unguarded=True) is not None


@given(st.text(max_size=40))
def test_only_whole_names_of_ours_are_a_host(name: str) -> None:
    call = Call("GET", "/", name)
    assert (refuse(call, OURS) == "HOST_REFUSED") == (name.lower() not in OURS.hosts)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (Call("GET", "/api/status", "127.0.0.1:4310"), None),
        (Call("GET", "/api/status", "LOCALHOST:4310"), None),
        (Call("GET", "/api/status", "[::1]:4310"), "HOST_REFUSED"),  # another program may listen there
        (Call("GET", "/api/status", None), "HOST_REFUSED"),
        (Call("GET", "http://127.0.0.1:4310/api/status", "127.0.0.1:4310"), "ROUTE_NOT_FOUND"),
        (Call("GET", "*", "127.0.0.1:4310"), "ROUTE_NOT_FOUND"),
        (Call("OPTIONS", "/api/status", "127.0.0.1:4310"), "METHOD_NOT_ALLOWED"),
        (Call("TRACE", "/api/status", "127.0.0.1:4310"), "METHOD_NOT_ALLOWED"),
        (Call("POST", "/api/runs", "127.0.0.1:4310"), "ORIGIN_REFUSED"),
        (Call("POST", "/api/runs", "127.0.0.1:4310", origin=PAGE), None),
        (Call("POST", "/api/runs", "127.0.0.1:4310", origin=PAGE.upper()), None),
        (Call("POST", "/api/runs", "127.0.0.1:4310", has_bearer=True), None),
        (Call("POST", "/api/runs", "127.0.0.1:4310", origin=PAGE, content_type="text/plain"), "CONTENT_TYPE_REFUSED"),
        (Call("POST", "/api/runs", "127.0.0.1:4310", origin=PAGE, has_body=True), "CONTENT_TYPE_REFUSED"),
        (
            Call("POST", "/sign-in", "127.0.0.1:4310", origin=PAGE, content_type="application/json"),
            "CONTENT_TYPE_REFUSED",
        ),
        (Call("GET", "/", "127.0.0.1:4310", site="cross-site", mode="navigate"), None),  # a link in a mail
        (Call("GET", "/api/events", "127.0.0.1:4310", site="same-site", mode="no-cors"), "ORIGIN_REFUSED"),
        (Call("POST", "/api/runs", "flow.example", origin="https://flow.example"), None),
        (Call("POST", "/api/runs", "flow.example", origin="http://flow.example"), "ORIGIN_REFUSED"),
        (Call("POST", "/api/runs", "box.tail1.ts.net:4310", origin="http://box.tail1.ts.net:4310"), None),
        (Call("POST", "/api/runs", "box.tail1.ts.net", origin="https://box.tail1.ts.net"), None),
        (Call("POST", "/api/runs", "proxy:8080", origin="http://proxy:8080"), None),
        (Call("POST", "/api/runs", "proxy:4310", origin="http://proxy:8080"), "HOST_REFUSED"),
    ],
)
def test_each_rule_by_an_example(call: Call, code: str | None) -> None:
    assert refuse(call, OURS) == code


def test_where_nobody_is_asked_who_they_are_a_browser_still_names_its_page() -> None:
    call = Call("POST", "/api/runs", "127.0.0.1:4310")
    assert refuse(call, OURS, is_unguarded=True) is None
    assert refuse(call._replace(is_from_browser=True), OURS, is_unguarded=True) == "ORIGIN_REFUSED"
    assert refuse(call._replace(is_from_browser=True, origin=PAGE), OURS, is_unguarded=True) is None


TRICKS = ["/api/../x", "/..", "/./x", "//x", "/x//y", "/x\\y", "/x\x00y", "/x\ny", "", "x", "/static/../api/runs"]


@pytest.mark.parametrize("path", TRICKS)
def test_a_path_that_could_mean_two_things_means_nothing(path: str) -> None:
    assert not is_plain_path(path)


@pytest.mark.parametrize("raw", ["/static/..%2fapi", "/static/%2E%2E%2Fx", "/api/requests/a%5Cb", "/x%2f"])
def test_a_slash_in_disguise_is_none(raw: str) -> None:
    assert not is_plain_path("/static/x", raw)


@pytest.mark.parametrize(
    "path", ["/", "/api/requests", "/api/requests/", "/api/requests/RQ-..1", "/requests/依頼-1", "/a b"]
)
def test_a_plain_path_is_one(path: str) -> None:
    assert is_plain_path(path, path)
    assert not is_plain_path("/" + "a" * 10_000)


def test_open_is_only_what_signing_in_needs() -> None:
    paths = ["/", "/api/requests", "/api/status", "/metrics", "/openapi.json", "/api/events", "/API/HEALTH", "/static"]
    assert [path for path in paths for method in METHODS if is_open(method, path)] == []
    assert [method for method in METHODS if is_open(method, "/sign-in")] == ["GET", "HEAD", "POST"]
    assert [method for method in METHODS if is_open(method, "/api/sessions")] == ["POST"]
    for path in ("/api/health", "/static/page.css", "/favicon.ico"):
        assert [method for method in METHODS if is_open(method, path)] == ["GET", "HEAD"]


@pytest.mark.parametrize(
    ("host", "hosts"),
    [
        ("127.0.0.1", {"127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost"}),
        ("::1", {"[::1]:80", "localhost:80", "[::1]", "localhost"}),
        ("192.168.1.7", {"192.168.1.7:80", "192.168.1.7"}),
    ],
)
def test_the_names_of_an_address(host: str, hosts: set[str]) -> None:
    assert addresses(host, 80) == Addresses(frozenset(hosts), frozenset(f"http://{each}" for each in hosts))


def test_loopback_is_this_machine_alone() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.0.0.2", "::1", "[::1]", "localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "192.168.1.7", "example.com", "127.0.0.1.example.com", ""]))


@pytest.mark.parametrize(
    ("host", "url", "found"),
    [
        ("localhost", "http://127.0.0.1:4311", "http://localhost:4311"),
        ("192.168.1.7", "http://127.0.0.1:4311", "http://192.168.1.7:4311"),
        ("fd00::7", "http://[::1]:4311", "http://[fd00::7]:4311"),
        ("127.0.0.1", "http://[::1]:4311", "http://[::1]:4311"),  # it may not listen on both
        ("::1", "http://127.0.0.1:4311", "http://127.0.0.1:4311"),
        ("localhost", "http://192.168.1.7:4311", "http://192.168.1.7:4311"),
        ("", "http://127.0.0.1:4311", "http://127.0.0.1:4311"),
    ],
)
def test_another_server_is_found_by_the_name_that_led_to_this_one(host: str, url: str, found: str) -> None:
    assert beside(host, url) == found
