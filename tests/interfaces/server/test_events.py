"""The event stream over a real socket (API-3): what happens, whoever did it, to everybody who listens."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fresh_git
from aiflow.adapters.journal import ActivityLog
from aiflow.domain.activity import Activity, ActivityKind, Actor
from builders import NOW
from conftest import Program
from server_yard import Event, Served, Stream, served
from waiting import wait_until

pytestmark = pytest.mark.spec("API-3")

LOCKS = ".aiflow/locks"


@pytest.fixture
def up(repository: Path) -> Iterator[Served]:
    with served(repository) as given:
        yield given


def note(root: Path, number: int) -> None:
    """Record something as another process would."""
    ActivityLog(root).append(Activity(NOW, ActivityKind.DECISION, Actor.PERSON, f"RQ-{number}"))


def note_all(root: Path, count: int) -> None:
    for number in range(count):
        note(root, number)


def numbers(events: list[Event]) -> list[int]:
    return [int(event["request_id"].removeprefix("RQ-")) for event in events if event.kind == "activity"]


def test_it_begins_with_hello_and_how_things_are(up: Served) -> None:
    seen = up.stream().until("auto")
    assert [event.kind for event in seen] == ["hello", "requests", "runs", "settings", "sessions", "locks", "auto"]
    assert seen[0] == {"instance_id": up.server.record.instance_id, "version": up.server.record.version}
    assert seen[0].id is not None
    assert all(event.id is None for event in seen[1:])


def test_an_entry_of_the_journal_is_an_event_with_its_cursor_and_none_of_its_words(
    up: Served, repository: Path
) -> None:
    stream = up.stream()
    stream.until("auto")
    entry = Activity(NOW, ActivityKind.REFUSAL, Actor.RUNNER, "RQ-1", "RUN-1", "LOCK_LOST", {"text": "<b>secret</b>"})
    ActivityLog(repository).append(entry)
    event = stream.until("activity")[-1]
    named = {"kind": "refusal", "actor": "runner", "request_id": "RQ-1", "run_id": "RUN-1", "reason_code": "LOCK_LOST"}
    assert event == {"at": NOW.isoformat(), **named}
    assert event.id == ActivityLog(repository).end()


AGENT = """#!/bin/sh
echo "I am the $AIFLOW_ROLE."
until [ -e GO ]; do sleep 0.05; done
case "$AIFLOW_ROLE" in
planner) echo '{"steps": [{"id": "S01", "title": "Nothing"}]}' > "$AIFLOW_RESULT" ;;
implementer) echo '{"status": "done"}' > "$AIFLOW_RESULT" ;;
qa) echo '{"verdict": "pass"}' > "$AIFLOW_RESULT" ;;
esac
"""
SETTINGS = '[agent]\nkind = "command"\nargv = ["sh", "agent.sh"]\n[git]\ndirty_checkout = "warn"\n'


def test_a_run_of_a_terminal_shows_with_its_log_and_its_end(up: Served, aiflow: Program) -> None:
    go = aiflow.cwd.parent / "go"
    agent = AGENT.replace("GO", str(go))
    files = {"requests/RQ-1.md": "status: ready\n\n# One\n", "aiflow.toml": SETTINGS, "agent.sh": agent}
    for name, text in files.items():
        (aiflow.cwd / name).write_text(text)
    fresh_git.commit_first(aiflow.cwd, files, "One")
    stream = up.stream()
    stream.until("auto")
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    at_work = threading.Thread(target=aiflow, args=("run", "RQ-1"), kwargs={"env": who})
    at_work.start()
    seen = stream.until("locks")  # the agent waits, so that it is looked at while it works
    held = seen[-1]["held"]
    go.touch()
    seen += stream.until("run", state="DONE")
    run_id = seen[-1]["run_id"]
    seen += stream.until("locks", held=[])  # what is seen at once is told in any order
    at_work.join()
    assert held == [{"request_id": "RQ-1", "run_id": run_id, "is_stale": False}]
    sizes = [event["size"] for event in seen if event.kind == "log" and event["run_id"] == run_id and event["n"] == 0]
    assert sizes == sorted(set(sizes))
    assert sizes
    moves = [event for event in seen if event.kind == "activity" and event["kind"] == "transition"]
    assert {event["run_id"] for event in moves} == {run_id}


def test_a_request_that_an_editor_saved_is_named(up: Served, repository: Path) -> None:
    path = repository / "requests/RQ-7.md"
    path.write_text("# Seven\n")
    stream = up.stream()
    first = stream.until("requests")[-1]["version"]
    with path.open("a") as file:  # in its place: the folder does not show it
        file.write("More.\n")
    second = stream.until("requests")[-1]
    assert (second["changed"], second["version"] != first) == (["RQ-7"], True)
    path.unlink()
    assert stream.until("requests")[-1]["changed"] == ["RQ-7"]
    # Who comes later hears how it is, by the same word.
    last = up.stream().until("requests")[-1]
    assert last["version"] == stream_version(up)


def stream_version(up: Served) -> object:
    return next(fact.ids["version"] for fact in up.server.watch.now() if fact.kind == "requests")


def test_who_comes_back_misses_nothing_and_hears_nothing_twice(
    up: Served, repository: Path, chance: random.Random
) -> None:
    total, told, last = 60, list[int](), None
    writer = threading.Thread(target=note_all, args=(repository, total))
    first = up.stream()
    last = first.until("hello")[-1].id
    first.close()
    writer.start()
    while len(told) < total:
        stream = up.stream(after=last)
        wanted = chance.randint(1, 12)
        for event in stream.events():
            assert event.kind != "gap"
            if event.kind == "activity":
                told += numbers([event])
                last, wanted = event.id, wanted - 1
                if wanted == 0 or len(told) == total:
                    break
        stream.close()
    writer.join()
    assert told == list(range(total))


@pytest.mark.parametrize("last", ["77:5", "nonsense", "1:3"])
def test_what_cannot_be_made_up_for_is_said(up: Served, repository: Path, last: str) -> None:
    note(repository, 1)
    seen = up.stream(after=last).until("auto")
    gap = next(event for event in seen if event.kind == "gap")
    assert gap.id == ActivityLog(repository).end()
    assert numbers(seen) == []


def test_ten_readers_are_in_step(up: Served, repository: Path) -> None:
    streams = [up.stream() for _ in range(10)]
    begun = [stream.until("auto") for stream in streams]
    assert len(begun) == 10
    note_all(repository, 40)
    told = [list(_first(stream, 40)) for stream in streams]
    assert [numbers(events) for events in told] == [list(range(40))] * 10
    assert len({tuple(event.id for event in events) for events in told}) == 1
    assert up.server.events.readers == 10
    for stream in streams:
        stream.close()
    wait_until(lambda: up.server.events.readers == 0)


def _first(stream: Stream, count: int) -> Iterator[Event]:
    for event in stream.events():
        if event.kind == "activity":
            yield event
            count -= 1
            if count == 0:
                return


def test_while_nothing_happens_it_says_that_it_is_there(up: Served) -> None:
    stream = up.stream()
    stream.until("auto")
    for _ in range(3):
        [event] = stream.until("still")
        assert (event.id, dict(event)) == (None, {}), "nobody comes back to it, and there is nothing to fetch"


def test_it_says_goodbye_before_it_stops(up: Served) -> None:
    streams = [up.stream() for _ in range(5)]
    for stream in streams:
        stream.until("auto")
    up.http.should_exit = True
    assert [stream.until("bye")[-1] for stream in streams] == [{"reason": "stopping"}] * 5
    assert [list(stream.events()) for stream in streams] == [[]] * 5  # and they end


def test_a_session_that_was_ended_hears_no_more(up: Served, repository: Path) -> None:
    cookie, other = up.cookie("Ann"), up.cookie("Bob")
    ann, bob = Stream(up, cookie), Stream(up, other)
    for stream in (ann, bob):
        stream.until("auto")
    mine = next(each for each in up.server.sign_in.sessions() if each.name == "Ann")
    up.server.sign_in.revoke(mine.session_id)
    assert ann.until("bye")[-1] == {"reason": "signed_out"}
    note(repository, 5)
    assert numbers(bob.until("activity"))[-1:] == [5]
    assert Stream(up, cookie).status == 401


def test_nobody_looks_while_nobody_listens(up: Served, repository: Path) -> None:
    stream = up.stream()
    stream.until("auto")
    stream.close()
    wait_until(lambda: up.server.events.readers == 0)
    wait_until(lambda: not up.server.events.is_looking)
    note(repository, 3)
    # The next one begins with what is now, and can still have what it missed.
    assert numbers(up.stream(after="0:0").until("auto")) == [3]


@pytest.mark.timing
@pytest.mark.spec("PRF-8")
def test_a_stop_with_fifty_streams_takes_under_three_seconds(up: Served, allowed: Callable[[float], float]) -> None:
    streams = [up.stream() for _ in range(50)]
    for stream in streams:
        stream.until("auto")
    began = time.monotonic()
    up.stop()
    assert time.monotonic() - began < allowed(3)
    assert all(stream.until("bye") for stream in streams)
