"""Signing in (SEC): a one-time code becomes a session; nobody else has any of it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.server.sessions import CODE_SECONDS, MOST_TRIES, Session
from aiflow.errors import AiflowError
from aiflow.usecases.server.sign_in import SignIn
from server_yard import Answer, Served, served

pytestmark = pytest.mark.spec("SEC")

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def up(repository: Path) -> Iterator[Served]:
    with served(repository) as given:
        yield given


def sign_in(up: Served, code: str, name: str = "Ann", **headers: str) -> Answer:
    sent = {**FORM, "Origin": up.origin, **headers}
    return up.call("POST", "/sign-in", sent, urlencode({"code": code, "name": name}).encode())


def test_a_code_becomes_a_session_once(up: Served) -> None:
    code, _ = up.server.sign_in.make_code()
    assert up.call("GET", "/").headers["location"] == "/sign-in"
    answer = sign_in(up, code)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    given = answer.headers["set-cookie"]
    name, _, rest = given.partition("=")
    assert name == f"aiflow_{up.port}"
    assert {part.strip().lower() for part in rest.split(";")[1:]} >= {"httponly", "samesite=lax", "path=/"}
    cookie = {"Cookie": given.partition(";")[0]}
    assert up.call("GET", "/", cookie).status == 200
    assert sign_in(up, code).status == 401
    kept = (Path(up.server.record.root) / ".aiflow/server/sessions.json").read_text()
    assert rest.partition(";")[0] not in kept
    assert json.loads(kept)["sessions"][0]["name"] == "Ann"


def test_a_form_that_a_browser_sends_without_a_script_leads_to_the_sign_in_when_the_session_is_over(up: Served) -> None:
    of_browser = {**FORM, "Origin": up.origin, "Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = up.call("POST", "/requests/TODO-1/run", of_browser, b"")
    assert (answer.status, answer.headers["location"]) == (303, "/sign-in")
    of_script = {**of_browser, "Accept": "*/*"}
    assert up.call("POST", "/requests/TODO-1/run", of_script, b"").reason == "AUTH_REQUIRED"


@pytest.mark.parametrize(
    "typed", [str.lower, lambda code: code.replace("-", ""), lambda code: f" {code[:3]} {code[3:]} "]
)
def test_it_may_be_typed_as_people_type(up: Served, typed: object) -> None:
    code, _ = up.server.sign_in.make_code()
    assert len(code.replace("-", "")) == 10
    assert callable(typed)
    assert sign_in(up, typed(code)).status == 303


@pytest.mark.parametrize("origin", ["http://evil.example", "null", None])
def test_no_foreign_page_signs_anybody_in(up: Served, origin: str | None) -> None:
    code, _ = up.server.sign_in.make_code()
    headers = {**FORM, **({"Origin": origin} if origin else {})}
    answer = up.call("POST", "/sign-in", headers, urlencode({"code": code}).encode())
    assert (answer.status, answer.reason) == (403, "ORIGIN_REFUSED")
    assert sign_in(up, code).status == 303  # nor is the code used up


def test_a_session_that_was_brought_along_is_not_kept(up: Served) -> None:
    mine = up.cookie()
    answer = sign_in(up, up.server.sign_in.make_code()[0], Cookie=mine["Cookie"])
    assert answer.headers["set-cookie"].partition(";")[0] != mine["Cookie"]


class Kept:
    """A token and sessions in memory."""

    token_file = "nowhere"

    def __init__(self) -> None:
        self.all: tuple[Session, ...] = ()

    def token(self) -> str:
        return "the-token"

    def sessions(self) -> tuple[Session, ...]:
        return self.all

    def change(self, rule: object) -> tuple[Session, ...]:
        assert callable(rule)
        self.all = rule(self.all)
        return self.all


@pytest.fixture
def time() -> PlayedTime:
    return PlayedTime()


@pytest.fixture
def door(time: PlayedTime) -> SignIn:
    secrets = iter(f"secret-{number}" for number in range(1000))
    codes = iter(f"CODE{number:06}" for number in range(1000))
    return SignIn(Kept(), time, lambda: next(secrets), lambda: next(codes), "os-user", 30)


def refusal(door: SignIn, code: str) -> str | None:
    try:
        door.sign_in(code, "")
    except AiflowError as error:
        return error.reason_code
    return None


def test_a_code_is_over_in_a_minute(door: SignIn, time: PlayedTime) -> None:
    code, expires = door.make_code()
    assert expires == time.now() + timedelta(seconds=CODE_SECONDS)
    time.sleep(CODE_SECONDS)
    assert refusal(door, code) == "CODE_REFUSED"


def test_codes_cannot_be_tried_out(door: SignIn, time: PlayedTime) -> None:
    code, _ = door.make_code()
    for number in range(MOST_TRIES - 1):
        assert refusal(door, f"WRONG{number}") == "CODE_REFUSED"
    assert refusal(door, code) is None
    code, _ = door.make_code()
    for number in range(MOST_TRIES):
        refusal(door, f"WRONG{number}")
    assert refusal(door, code) == "CODE_REFUSED"  # it is void by now
    assert refusal(door, door.make_code()[0]) is None


def test_a_session_ends_by_itself_or_when_it_is_revoked(door: SignIn, time: PlayedTime) -> None:
    secret, session = door.sign_in(door.make_code()[0], "  Ann\n<b> ")
    other, _ = door.sign_in(door.make_code()[0], "")
    assert [caller.name for each in (secret, other) if (caller := door.who(None, each))] == ["Ann <b>", "os-user"]
    door.revoke(session.session_id)
    assert door.who(None, secret) is None
    assert door.who(None, other) is not None
    time.sleep(30 * 86400)
    assert door.who(None, other) is None
    assert door.who("the-token", None) is not None
    assert door.who("the-token ", None) is None
    with pytest.raises(AiflowError, match="SESSION_NOT_FOUND"):
        door.revoke(session.session_id)


def refuse_a_worker(up: Served, headers: dict[str, str]) -> None:
    """Start a worker, which refuses to run a draft."""
    (Path(up.server.record.root) / "requests/RQ-1.md").write_text("status: draft\n\n# One\n")
    assert up.call("POST", "/api/requests/RQ-1/run", headers).reason == "NOT_READY"


def test_token_sessions_and_output_are_the_users_alone(up: Served) -> None:
    up.cookie()
    root = Path(up.server.record.root)
    refuse_a_worker(up, up.bearer)
    token = Path(up.server.sign_in.access.token_file)
    secret = [token, root / ".aiflow/server/sessions.json", *(root / ".aiflow/workers").iterdir()]
    assert len(secret) == 5
    assert [stat.S_IMODE(path.stat().st_mode) for path in secret] == [0o600] * 5
    assert [stat.S_IMODE(path.stat().st_mode) for path in (token.parent, root / ".aiflow/server")] == [0o700] * 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_reads_none_of_it(up: Served, tmp_path: Path) -> None:
    up.cookie()
    refuse_a_worker(up, up.bearer)
    root, token = Path(up.server.record.root), Path(up.server.sign_in.access.token_file)
    secret = [token, root / ".aiflow/server/sessions.json", *(root / ".aiflow/workers").iterdir()]
    for path in (root, *root.parents, token.parent.parent, *token.parents[2:]):
        if len(path.parts) > 2:
            path.chmod(path.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:  # somebody else, for good
        read = 100
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            assert os.listdir(root)
            read = sum(_can_read(path) for path in secret)
        finally:
            os._exit(read)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _can_read(path: Path) -> bool:
    try:
        return bool(path.read_bytes()) or True
    except OSError:
        return False


def test_a_token_that_others_may_read_is_not_believed(up: Served) -> None:
    token = Path(up.server.sign_in.access.token_file)
    bearer = up.bearer
    token.chmod(0o644)
    try:
        answer = up.call("GET", "/api/status", bearer)
        assert (answer.status, answer.json["error"]["category"]) == (503, "ENVIRONMENT")
        assert up.call("GET", "/api/health").status == 200
    finally:
        token.chmod(0o600)


def test_nothing_secret_is_written_down_or_shown_to_ps(up: Served) -> None:
    code, _ = up.server.sign_in.make_code()
    answer = sign_in(up, code)
    secret = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
    cookie = {"Cookie": f"{up.server.cookie}={secret}"}
    refuse_a_worker(up, {**cookie, "Origin": up.origin})
    token = up.server.sign_in.access.token()
    root = Path(up.server.record.root)
    written = b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
    for each in (code, code.replace("-", ""), secret, token):
        assert each.encode() not in written
    started = [each.args for each in up.server.work.workers._started.values()]  # type: ignore[attr-defined]
    assert started
    assert not [each for each in (code, secret, token) if each in str(started)]


def test_where_nobody_is_asked_only_pages_of_ours_and_programs_change_anything(repository: Path) -> None:
    with served(repository, auth="none") as up:
        body = b"{}"
        kind = {"Content-Type": "application/json"}
        assert up.call("GET", "/api/status").status == 200
        refused = up.call("POST", "/api/requests/RQ-9/run", {**kind, "Sec-Fetch-Site": "none"}, body)
        assert (refused.status, refused.reason) == (403, "ORIGIN_REFUSED")
        foreign = up.call("POST", "/api/requests/RQ-9/run", {**kind, "Origin": "http://127.0.0.1:1"}, body)
        assert (foreign.status, foreign.reason) == (403, "ORIGIN_REFUSED")
        assert up.call("POST", "/api/requests/RQ-9/run", kind, body).reason == "REQUEST_NOT_FOUND"
        own = {**kind, "Origin": up.origin, "Sec-Fetch-Site": "same-origin"}
        assert up.call("POST", "/api/requests/RQ-9/run", own, body).reason == "REQUEST_NOT_FOUND"
