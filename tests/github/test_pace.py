"""One pace for all processes of a user that write with one token (ISS-11), and limits that a new process knows of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from aiflow.adapters.github_issues.client import GitHubClient
from aiflow.adapters.github_issues.limits import CallPace
from aiflow.adapters.github_issues.shared_pace import SharedPace, pace_file
from aiflow.adapters.github_issues.transport import Answer
from aiflow.adapters.memory.time import PlayedTime
from e2e.bench import Bench
from github.place import IssuePlace, issue_place
from github.scene import Scene
from github.test_troubles import COMMENT, refusal

pytestmark = pytest.mark.spec("ISS-11")
TOKEN = "github_pat_secret"


@pytest.fixture
def number(scene: Scene) -> int:
    return scene.hub.open_issue("Troubled")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return pace_file({"XDG_DATA_HOME": str(tmp_path)}, "https://api.github.com", TOKEN)


def process(scene: Scene, path: Path, *, is_to_write: bool = True) -> GitHubClient:
    """A client as a process of its own has it: it shares nothing but the file."""
    client = scene.client()
    client.share(SharedPace(path, scene.time, is_to_write=is_to_write))
    return client


def test_the_writes_of_two_processes_are_a_second_apart(scene: Scene, number: int, path: Path) -> None:
    one, other = process(scene, path), process(scene, path)
    for at in range(3):
        for client in (one, other):
            client.comment(number, f"comment {at}")
    gaps = [later - earlier for earlier, later in zip(scene.api.writes, scene.api.writes[1:], strict=False)]
    assert gaps == [timedelta(seconds=1)] * 5
    scene.time.sleep(10)
    before = scene.time.monotonic()
    other.comment(number, "much later")
    assert scene.time.monotonic() == before


def test_a_limit_holds_for_every_process_also_for_hours(scene: Scene, number: int, path: Path) -> None:
    one, other = process(scene, path), process(scene, path)
    scene.api.answers(COMMENT, 403, message="You have exceeded a secondary rate limit", retry_after="9000")
    until = (scene.time.now() + timedelta(seconds=9000)).isoformat(timespec="seconds")
    assert refusal(lambda: one.comment(number, "too much")).context["until"] == until
    made = len(scene.api.calls)
    scene.time.sleep(8999)
    begun = process(scene, path)
    for client in (one, other, begun):
        error = refusal(lambda client=client: client.issue(number))  # type: ignore[misc]
        assert (error.reason_code, error.context["until"]) == ("GITHUB_RATE_LIMITED", until)
    assert len(scene.api.calls) == made
    scene.time.sleep(1)
    assert other.comment(number, "now").body == "now"


def test_a_limit_of_one_process_is_not_shortened_by_another(path: Path) -> None:
    time = PlayedTime()
    paces = [CallPace(time, SharedPace(path, time)) for _ in range(2)]
    for pace, seconds in zip(paces, ("600", "5"), strict=True):  # both had been sent before either was answered
        assert pace.heed(Answer(429, {"retry-after": seconds}))
    assert [pace.closed_until() for pace in paces] == [time.now() + timedelta(seconds=600)] * 2


@pytest.mark.parametrize("said", [b"", b"{", b"[]", b'{"closed_at": "x"}', b"\xff" * 900, b"null"])
def test_a_file_that_says_nothing_stops_nobody(scene: Scene, number: int, path: Path, said: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(said)
    assert process(scene, path).comment(number, "one").body == "one"
    process(scene, path).comment(number, "two")
    assert scene.api.writes[-1] - scene.api.writes[-2] == timedelta(seconds=1), "it is a good one again"


def test_where_nothing_can_be_kept_each_process_has_its_own_pace(scene: Scene, number: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    client = process(scene, tmp_path / "file" / "pace")
    client.comment(number, "one")
    client.comment(number, "two")
    assert scene.api.writes[-1] - scene.api.writes[-2] == timedelta(seconds=1)


@pytest.mark.parametrize("jump", [timedelta(days=-300), timedelta(minutes=-30), timedelta(days=300)], ids=str)
def test_a_clock_that_is_set_keeps_nobody_waiting_longer_than_github_asked(path: Path, jump: timedelta) -> None:
    SharedPace(path, PlayedTime()).close(90)
    SharedPace(path, PlayedTime()).take_turn(1)
    after = SharedPace(path, PlayedTime(set_by=jump))
    assert after.closed_seconds() <= 90
    assert after.take_turn(1) <= 1
    assert after.take_turn(1) == 1


def test_the_file_is_the_users_alone_and_names_no_token(path: Path, tmp_path: Path) -> None:
    SharedPace(path, PlayedTime()).close(90)
    assert path.parent.stat().st_mode & 0o077 == 0
    assert TOKEN not in str(path)
    assert TOKEN.encode() not in path.read_bytes()
    environ = {"XDG_DATA_HOME": str(tmp_path)}
    others = [
        pace_file(environ, "https://ghe.example/api/v3", TOKEN),
        pace_file(environ, "https://api.github.com", "x"),
    ]
    assert len({path, *others}) == 3


@pytest.fixture
def place(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[IssuePlace]:
    bench = Bench(repository, tmp_path)
    with issue_place(bench, monkeypatch, capfd) as made:
        yield made
    bench.close()


def test_the_programs_commands_share_what_one_of_them_learnt(place: IssuePlace) -> None:
    kept = Path(os.environ["XDG_DATA_HOME"], "aiflow", "github")
    place.api.answers("GET .*/labels$", 403, message="secondary rate limit", retry_after="1")
    place.here("issues", "doctor", code=3)
    assert not kept.exists(), "the doctor changes nothing"
    place.queued()
    place.api.answers("GET .*/issues$", 403, message="secondary rate limit", retry_after="900")
    assert "GITHUB_RATE_LIMITED" in place.here("issues", "sync", "--json", code=3)
    made = len(place.api.calls)
    assert "GITHUB_RATE_LIMITED" in place.here("issues", "sync", "--json", code=3)
    assert len(place.api.calls) == made
    assert len(list(kept.iterdir())) == 1
