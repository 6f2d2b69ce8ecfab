"""The switcher (WEB-1): the user's other servers that answer are linked, and none of them holds up a page."""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path

import pytest

import fresh_git
from aiflow.adapters.server.neighbours import FRESH_SECONDS, OtherServers
from aiflow.ports.server import ServerRecord
from aiflow.wiring import now
from aiflow.wiring.server import server_records
from server_yard import served
from waiting import wait_until
from web_yard import WebBench


def record(name: str, url: str, root: str = "/x/other") -> ServerRecord:
    return ServerRecord(name, url, 1, root, now(), "1")


@pytest.mark.spec("WEB-1", "API-1")
def test_another_server_of_the_user_is_linked_while_it_answers(web: WebBench, tmp_path: Path) -> None:
    other = tmp_path / "the <b>other<"
    other.mkdir()
    fresh_git.make_repository(other)
    records = server_records(str(other))
    # One that was killed left its record behind, and one says it is somebody else.
    records.write(record("gone", "http://127.0.0.1:9", "/x/dead"))
    with served(other) as there:
        records.write(there.server.record)
        records.write(record("wrong", there.origin, "/x/liar"))

        def shown() -> str:
            found = re.search(r'<details class="others".*?</details>', web.page("/queue"), re.DOTALL)
            return found[0] if found else ""

        wait_until(lambda: bool(shown()))
        text = shown()
        assert f'href="{there.origin}/"' in text
        assert text.count("<li") == 1
        assert "<b>other" not in text
        assert "Other projects: 1" in text
        # Whoever came by a name finds it by that name: the port may be forwarded.
        named = there.origin.replace("127.0.0.1", "localhost")
        by_name = web.client.get("/queue", headers={"Host": "localhost:4310"}).text
        assert f'href="{named}/"' in by_name
        assert there.origin not in by_name


def test_a_server_that_is_silent_holds_up_no_page() -> None:
    asked, answers = threading.Event(), threading.Event()

    def silent(_url: str) -> str | None:
        asked.set()
        answers.wait()
        return "late"

    others = OtherServers(lambda: [record("late", "http://h")], record("own", "http://o"), silent)
    assert others.known() == ()
    asked.wait()
    assert others.known() == ()
    answers.set()
    wait_until(lambda: len(others.known()) == 1)


def test_what_is_known_is_looked_up_again_after_a_while() -> None:
    clock, asked = [0.0], []

    def answering(url: str) -> str | None:
        asked.append(url)
        return "a"

    records = [record("a", "http://a"), record("own", "http://o"), record("b", "javascript:x")]
    others = OtherServers(lambda: records, record("own", "http://o"), answering, lambda: clock[0])
    wait_until(lambda: [each.instance_id for each in others.known()] == ["a"])
    others.known()
    assert asked == ["http://a"]
    clock[0] += FRESH_SECONDS
    records.clear()
    wait_until(lambda: others.known() == ())


def test_nothing_that_answers_is_believed_without_its_id() -> None:
    from aiflow.adapters.server.answering import answering

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        assert answering(f"http://127.0.0.1:{listening.getsockname()[1]}", 0.05) is None
    assert answering("http://127.0.0.1:99999999") is None
