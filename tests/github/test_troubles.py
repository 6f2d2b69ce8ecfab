"""What goes wrong between GitHub and us (ISS-11): limits obeyed, reads tried again, writes never blindly, no token told."""

from __future__ import annotations

import re
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from aiflow import __version__
from aiflow.adapters.github_issues.client import GitHubClient
from aiflow.adapters.github_issues.connect import connect
from aiflow.adapters.github_issues.limits import wait_after
from aiflow.adapters.github_issues.transport import Answer, Ask, HttpTransport
from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.system_time import SystemTime
from aiflow.adapters.toml_settings import load_settings
from aiflow.errors import AiflowError
from aiflow.messages import Texts
from aiflow.usecases.shapes.errors import error_facts
from github.scene import RUNNER, Scene

ISSUE = "GET .*/issues/1$"
COMMENT = "POST .*/comments$"


def refusal(act: Callable[[], object]) -> AiflowError:
    with pytest.raises(AiflowError) as caught:
        act()
    return caught.value


def code(act: Callable[[], object]) -> str:
    return refusal(act).reason_code


@pytest.fixture
def number(scene: Scene) -> int:
    return scene.hub.open_issue("Troubled")


def test_two_writes_are_a_second_apart_and_reads_wait_for_nobody(scene: Scene, number: int) -> None:
    client = scene.client()
    for at in range(3):
        client.comment(number, f"comment {at}")
        client.issue(number)
    client.add_label(number, "agent:queued")
    gaps = [later - earlier for earlier, later in zip(scene.api.writes, scene.api.writes[1:], strict=False)]
    assert gaps == [timedelta(seconds=1)] * 3
    scene.time.sleep(10)
    before = scene.time.monotonic()
    client.remove_label(number, "agent:queued")
    assert scene.time.monotonic() == before


def test_threads_write_one_behind_the_other(number: int, scene: Scene) -> None:
    class Quick(SystemTime):
        naps: ClassVar[list[float]] = []

        def sleep(self, seconds: float) -> None:
            self.naps.append(seconds)

    inside: list[int] = []
    most: list[int] = []

    def before(_ask: Ask) -> None:
        inside.append(1)
        most.append(len(inside))
        threading.Event().wait(0.01)
        inside.pop()

    scene.api.before = before
    client = scene.client(time=Quick())
    threads = [threading.Thread(target=client.comment, args=(number, f"by {at}")) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    assert len(Quick.naps) == 3
    assert len(scene.hub.rows[number].comments) == 4


def test_retry_after_is_obeyed_by_reads_and_writes_alike(scene: Scene, number: int) -> None:
    client = scene.client()
    scene.api.answers(COMMENT, 403, message="You have exceeded a secondary rate limit", retry_after="90")
    error = refusal(lambda: client.comment(number, "too much"))
    assert error.reason_code == "GITHUB_RATE_LIMITED"
    assert error.context["until"] == (scene.time.now() + timedelta(seconds=90)).isoformat(timespec="seconds")
    made = len(scene.api.calls)
    scene.time.sleep(89)
    assert code(lambda: client.issue(number)) == "GITHUB_RATE_LIMITED"
    assert code(lambda: client.comment(number, "too soon")) == "GITHUB_RATE_LIMITED"
    assert len(scene.api.calls) == made
    assert client.rate().remaining > 0
    scene.time.sleep(1)
    assert client.comment(number, "now").body == "now"


@pytest.mark.parametrize("skew", [timedelta(), timedelta(hours=5), timedelta(hours=-5)], ids=str)
def test_the_hours_limit_is_waited_for_by_githubs_clock(number: int, scene: Scene, skew: timedelta) -> None:
    scene.api.remaining = 2
    client = scene.client(time=PlayedTime(set_by=skew))
    client.issue(number)
    client.issue(number)  # answered, but the last one
    made = len(scene.api.calls)
    error = refusal(lambda: client.issue(number))
    assert error.reason_code == "GITHUB_RATE_LIMITED"
    assert len(scene.api.calls) == made
    expected = PlayedTime().now() + skew + timedelta(hours=1)
    assert error.context["until"] == expected.isoformat(timespec="seconds")


def test_the_limit_ends_when_github_says_so(scene: Scene, number: int) -> None:
    scene.api.remaining = 1
    client = scene.client()
    client.issue(number)
    scene.time.sleep(3599)
    assert code(lambda: client.issue(number)) == "GITHUB_RATE_LIMITED"
    scene.time.sleep(1)
    assert client.issue(number).number == number


def test_a_403_with_neither_is_a_missing_right_and_stops_nothing_else(scene: Scene, number: int) -> None:
    client = scene.client()
    scene.api.answers(COMMENT, 403, message="Resource not accessible by integration")
    error = refusal(lambda: client.comment(number, "no"))
    assert error.reason_code == "GITHUB_RIGHTS"
    assert error.context["call"] == "POST /repos/octo/demo/issues/1/comments"
    assert error.context["problem"] == "Resource not accessible by integration"
    assert client.issue(number).number == number


@pytest.mark.parametrize(
    ("status", "headers", "body", "seconds"),
    [
        (200, {}, b"", None),
        (200, {"x-ratelimit-remaining": "1", "x-ratelimit-reset": "99999999999"}, b"", None),
        (200, {"retry-after": "9"}, b"", None),
        (403, {"x-ratelimit-remaining": "17", "x-ratelimit-reset": "99999999999"}, b"", None),
        (403, {}, b'{"message": "You have exceeded a secondary rate limit."}', 60),
        (429, {}, b"", 60),
        (429, {"retry-after": "0"}, b"", 1),
        (403, {"retry-after": "7", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "0"}, b"", 7),
        (403, {"retry-after": "soon"}, b"", 60),
        (503, {"retry-after": "30"}, b"", 30),
        (403, {"x-ratelimit-remaining": "0"}, b"", 60),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "5"}, b"", 1),
        (
            403,
            {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "100", "date": "Thu, 01 Jan 1970 00:01:00 GMT"},
            b"",
            40,
        ),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1767323055", "date": "today"}, b"", 10),
    ],
)
def test_how_long_github_wants_to_be_left_alone(
    status: int, headers: Mapping[str, str], body: bytes, seconds: float | None
) -> None:
    assert wait_after(Answer(status, headers, body), PlayedTime().now()) == seconds


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_read_is_tried_again_a_little(scene: Scene, number: int, status: int) -> None:
    scene.api.answers(ISSUE, status, times=2)
    assert scene.client().issue(number).number == number
    assert scene.time.monotonic() == 4
    scene.api.answers(ISSUE, status, times=3)
    assert code(lambda: scene.client().issue(number)) == "GITHUB_UNREACHABLE"


@pytest.mark.parametrize("way", ["direct", "http"], indirect=True)
def test_a_read_whose_answer_is_lost_is_asked_again(scene: Scene, number: int) -> None:
    scene.api.loses(ISSUE)
    assert scene.client().issue(number).number == number


@pytest.mark.parametrize("way", ["direct", "http"], indirect=True)
def test_a_write_whose_answer_is_lost_is_unknown_and_not_repeated(scene: Scene, number: int) -> None:
    scene.api.loses(COMMENT)
    error = refusal(lambda: scene.client().comment(number, "once"))
    assert error.reason_code == "GITHUB_UNKNOWN"
    assert error.context["call"] == "POST /repos/octo/demo/issues/1/comments"
    assert [comment.body for comment in scene.hub.rows[number].comments] == ["once"]


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_write_that_ends_in_a_server_error_is_unknown(scene: Scene, number: int, status: int) -> None:
    scene.api.answers(COMMENT, status)
    assert code(lambda: scene.client().comment(number, "once")) == "GITHUB_UNKNOWN"
    assert sum(ask.method == "POST" for ask in scene.api.calls) == 1


def test_what_was_never_sent_is_tried_again_also_a_write(scene: Scene, number: int) -> None:
    scene.api.unsent(COMMENT, times=2)
    assert scene.client().comment(number, "once").body == "once"
    scene.api.unsent(COMMENT, times=3)
    assert code(lambda: scene.client().comment(number, "never")) == "GITHUB_UNREACHABLE"
    assert len(scene.hub.rows[number].comments) == 1


def test_a_port_where_nobody_listens_is_unreachable_and_nothing_was_sent() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = _client(f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert code(lambda: client.comment(1, "x")) == "GITHUB_UNREACHABLE"
        client.disconnect()


def test_an_answer_that_does_not_come_is_given_up_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        client = _client(url, HttpTransport(url, read_seconds=0.05))
        error = refusal(lambda: client.comment(1, "x"))
        client.disconnect()
    assert error.reason_code == "GITHUB_UNKNOWN"
    assert error.context["problem"] == "no answer within 0.05 seconds"


def test_a_revoked_token_is_said_as_such(scene: Scene, number: int) -> None:
    client = scene.client()
    scene.hub.revoke(RUNNER)
    for act in (client.issues, client.account, lambda: client.comment(number, "x")):
        assert code(act) == "GITHUB_TOKEN_INVALID"
    assert len(scene.api.calls) == 3


def test_a_repository_whose_issues_are_turned_off_says_so(scene: Scene, number: int) -> None:
    scene.hub.has_issues = False
    client = scene.client()
    for act in (client.issues, lambda: client.issue(number), lambda: client.comment(number, "x")):
        error = refusal(act)
        assert error.reason_code == "GITHUB_REFUSED"
        assert error.context["problem"] == "issues are turned off in this repository"


def test_a_gone_issue_is_only_gone_if_the_repository_can_be_asked(scene: Scene, number: int) -> None:
    scene.hub.delete(number)
    client = scene.client()
    assert code(lambda: client.comment(number, "x")) == "GITHUB_GONE"
    scene.api.answers("GET /repos/octo/demo$", 500, times=3)
    assert code(lambda: client.issue(number)) == "GITHUB_UNREACHABLE"


def test_a_deleted_comment_is_gone(scene: Scene, number: int) -> None:
    client = scene.client()
    posted = client.comment(number, "x")
    scene.hub.delete_comment(posted.id)
    assert code(lambda: client.edit_comment(posted.id, "y")) == "GITHUB_GONE"
    client.react(posted.id, "eyes")  # nobody misses a reaction to what is gone


def test_a_comment_in_a_repository_that_cannot_be_seen_is_not_taken_for_deleted(scene: Scene, number: int) -> None:
    client = scene.client()
    posted = client.comment(number, "x")
    scene.hub.is_private = True
    scene.hub.person(RUNNER, "none")
    assert code(lambda: client.delete_comment(posted.id)) == "GITHUB_NOT_FOUND"
    assert len(scene.hub.rows[number].comments) == 1


def test_an_issue_that_changes_while_pages_are_read_hides_no_other(scene: Scene) -> None:
    for at in range(150):
        scene.hub.open_issue(f"Issue {at}")
    moment = scene.time.now() + timedelta(seconds=60)

    def before(ask: Ask) -> None:
        if dict(ask.query).get("page") == "2":
            scene.time.sleep(60)
            scene.hub.comment(1, "news", by="rita")

    scene.api.before = before
    client = scene.client()
    assert {issue.number for issue in client.issues().issues} >= set(range(2, 151))
    assert [issue.number for issue in client.issues(since=moment).issues] == [1]


# Prism follows redirects itself: these are tried without it.
@pytest.mark.parametrize("way", ["direct", "http"], indirect=True)
def test_a_transferred_issue_is_gone_and_not_followed(scene: Scene, number: int) -> None:
    scene.hub.transfer(number)
    client = scene.client()
    assert code(lambda: client.issue(number)) == "GITHUB_GONE"
    assert code(lambda: client.comment(number, "x")) == "GITHUB_GONE"
    assert client.issues().issues == ()


@pytest.mark.parametrize("way", ["direct", "http"], indirect=True)
def test_a_renamed_repository_is_not_followed(scene: Scene, number: int) -> None:
    scene.hub.moved_to = "octo/new"
    client = scene.client()
    for act in (client.issues, client.repository, lambda: client.issue(number)):
        assert code(act) == "GITHUB_MOVED"


def test_a_label_is_not_taken_off_an_issue_that_is_gone(scene: Scene, number: int) -> None:
    scene.hub.transfer(number)
    assert code(lambda: scene.client().remove_label(number, "agent:queued")) == "GITHUB_GONE"


class Odd:
    """A transport that answers with what GitHub would not."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[Ask, Mapping[str, str]]] = []

    def send(self, ask: Ask, headers: Mapping[str, str]) -> Answer:
        self.sent.append((ask, headers))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def close(self) -> None:
        """Keep nothing."""


TOKEN = "ghp_0123456789abcdefghij"


def _client(url: str = "", transport: Any = None) -> GitHubClient:
    flags = ("github.repo=octo/demo", f"github.api_url={url}")
    settings = load_settings(Path("/nowhere"), {}, flags)
    return connect(Path("/nowhere"), settings, {"GITHUB_TOKEN": f"{TOKEN}\n"}, PlayedTime(), transport)


@pytest.mark.parametrize(
    "body", [b"<html>Sign in to the hotel</html>", b"", b"{}", b"[1]", b'"x"', b"\xff", b"[" * 100_000]
)
def test_what_is_no_answer_of_githubs_is_taken_for_none(body: bytes) -> None:
    client = _client(transport=Odd(Answer(200, {}, body)))
    assert code(lambda: client.issue(1)) == "GITHUB_UNREACHABLE"
    assert code(lambda: client.comment(1, "x")) == "GITHUB_UNKNOWN"
    if body != b"[1]":
        assert code(client.issues) == "GITHUB_UNREACHABLE"


@pytest.mark.parametrize("half", [b"\\ud83d", b"\\uDC00", b"\xed\xa0\xbd"])
def test_half_a_character_in_an_issue_keeps_no_other_from_being_read(scene: Scene, number: int, half: bytes) -> None:
    written = scene.hub.open_issue("HALF \U0001f600", "x")
    send = scene.api.send

    def halved(ask: Ask, headers: Mapping[str, str]) -> Answer:
        answer = send(ask, headers)
        return answer._replace(body=answer.body.replace(b"HALF", half))

    scene.api.send = halved  # type: ignore[method-assign]
    titles = {each.number: each.title for each in scene.client().issues().issues}
    assert set(titles) == {number, written}
    assert re.fullmatch(r"\?+ \U0001f600", titles[written])


def test_every_call_names_who_we_are_and_what_we_understand() -> None:
    odd = Odd(Answer(200, {}, b"[]"))
    _client(transport=odd).labels()
    assert odd.sent[0][1] == {
        "Accept": "application/vnd.github+json, application/json;q=0.9",
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": f"aiflow/{__version__}",
        "Authorization": f"Bearer {TOKEN}",
    }


@pytest.mark.parametrize("host", ["https://evil.example", "https://api.github.com.evil.example", "http://127.0.0.1:1"])
def test_the_next_page_is_asked_of_our_own_github_whatever_a_link_says(host: str) -> None:
    link = f'<{host}/steal?per_page=100&after=abc%3D>; rel="next", <{host}/x?page=9>; rel="last"'
    odd = Odd(Answer(200, {"link": link}, b'[{"name": "a"}]'), Answer(200, {}, b'[{"name": "b"}]'))
    assert _client(transport=odd).labels() == ("a", "b")
    assert odd.sent[1][0] == Ask("GET", "/repos/octo/demo/labels", (("per_page", "100"), ("after", "abc=")))


def test_pull_requests_of_other_branches_are_left_out_also_where_the_filter_is_not_understood() -> None:
    pulls = b'[{"number": 1, "head": {"ref": "other"}}, {"number": 2, "head": {"ref": "aiflow/GH-1"}}]'
    odd = Odd(Answer(200, {}, pulls))
    assert [pull.number for pull in _client(transport=odd).pulls("aiflow/GH-1")] == [2]
    assert ("head", "octo:aiflow/GH-1") in odd.sent[0][0].query


def test_a_link_that_leads_in_a_circle_ends() -> None:
    odd = Odd(Answer(200, {"link": '<https://api.github.com/x?page=2>; rel="next"'}, b'[{"name": "a"}]'))
    assert _client(transport=odd).labels() == ("a", "a")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(status: int, scene: Scene) -> None:
    odd = Odd(Answer(status, {"location": "https://evil.example/steal"}, b"{}"))
    assert code(_client(transport=odd).repository) == "GITHUB_MOVED"
    assert len(odd.sent) == 1


@pytest.mark.parametrize("way", ["http"], indirect=True)
def test_http_itself_follows_no_redirect(scene: Scene) -> None:
    scene.hub.moved_to = "octo/new"
    transport = HttpTransport(scene.url)
    headers = {"Authorization": f"Bearer {next(iter(scene.hub.tokens))}"}
    assert transport.send(Ask("GET", "/repos/octo/demo"), headers).status == 301
    assert len(scene.api.calls) == 1
    transport.close()


def test_an_enterprise_server_has_its_api_below_a_path() -> None:
    seen: list[Ask] = []

    class Api:
        def send(self, ask: Ask, headers: Mapping[str, str]) -> Answer:
            seen.append(ask)
            return Answer(200, {}, b"[]")

        def close(self) -> None:
            """Keep nothing."""

    from github.server import served

    with served(Api()) as url:
        client = _client(f"{url}/api/v3/")
        assert client.labels() == ()
        client.disconnect()
    assert [ask.path for ask in seen] == ["/api/v3/repos/octo/demo/labels"]


def _settings(*flags: str) -> Any:
    return load_settings(Path("/nowhere"), {}, ("github.repo=octo/demo", *flags))


@pytest.mark.parametrize(
    ("flags", "environ", "problem"),
    [
        ((), {}, "the environment variable GITHUB_TOKEN is not set"),
        (("github.token_env=MINE",), {"GITHUB_TOKEN": TOKEN}, "the environment variable MINE is not set"),
        ((), {"GITHUB_TOKEN": "two words"}, "the environment variable GITHUB_TOKEN holds no token"),
        ((), {"GITHUB_TOKEN": "x\r\nHost: evil"}, "the environment variable GITHUB_TOKEN holds no token"),
        (("github.app_id=7",), {}, "a GitHub App needs both github.app_id and github.app_key_path"),
        (("github.app_key_path=key.pem",), {}, "a GitHub App needs both github.app_id and github.app_key_path"),
    ],
)
def test_without_a_token_nothing_is_sent(flags: tuple[str, ...], environ: dict[str, str], problem: str) -> None:
    error = refusal(lambda: connect(Path("/nowhere"), _settings(*flags), environ, PlayedTime(), Odd()))
    assert (error.reason_code, error.context["problem"]) == ("GITHUB_NOT_SIGNED_IN", problem)


def test_without_its_package_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    error = refusal(lambda: connect(Path("/nowhere"), _settings(), {"GITHUB_TOKEN": TOKEN}, PlayedTime()))
    assert error.reason_code == "GITHUB_NOT_INSTALLED"
    assert error.context["problem"] == "httpx2 is missing"
    (advice,) = Texts("en").message(error.reason_code, error.context).actions
    assert re.fullmatch(r"Install them: `.+ install .*\[github\]\"`", advice.typed)


@pytest.mark.spec("SEC")
def test_a_token_is_in_no_error_no_trace_and_nothing_that_shows_a_client() -> None:
    client = _client(transport=Odd(Answer(401, {}, b'{"message": "Bad credentials"}')))
    error = refusal(client.issues)
    told = [*traceback.format_exception(error), repr(error), str(error.context)]
    told += [str(error_facts(error, Texts(language))) for language in ("en", "ja")]
    told += [repr(client), repr(vars(client)), repr(client._credentials), repr(client._line)]
    assert [text for text in told if TOKEN in text] == []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = _client(f"http://127.0.0.1:{taken.getsockname()[1]}")
        error = refusal(client.issues)
        client.disconnect()
    assert TOKEN not in "".join(traceback.format_exception(error))
