"""A run's logs (RUN-1): by number and offset, whole, or line by line as they grow, and never anything else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.system_time import SystemTime
from aiflow.domain.lock import Lock
from aiflow.domain.runs.log_part import LogPart
from aiflow.domain.runs.run import Run
from aiflow.errors import BadInputError
from aiflow.usecases.engine import Engine
from aiflow.usecases.runs import logs as module
from aiflow.usecases.runs.logs import (
    follow_logs,
    last_line,
    log_number,
    read_log,
    read_logs,
    stream_log,
)
from aiflow.usecases.shapes.runs import log_part_shape, logs_shape
from aiflow.web.log_reading import LogReaders, Wanted
from real_engine import engine_at, keep
from run_builders import RUN_ID, done, in_step

pytestmark = pytest.mark.spec("RUN-1")


class Scene:
    """A run of three steps, and the folder of its logs."""

    def __init__(self, root: Path, run: Run) -> None:
        self.engine: Engine = engine_at(root)
        self.run = keep(self.engine, run)
        self.folder = root / "runs" / run.request_id / run.run_id / "logs"

    def write(self, number: int, data: bytes) -> None:
        with (self.folder / f"step-{number}.log").open("ab") as file:
            file.write(data)

    def read(self, number: int, offset: int = 0, limit: int = 1000) -> LogPart:
        return read_log(self.engine, self.run, number, offset, limit)


@pytest.fixture
def ended(repository: Path) -> Scene:
    return Scene(repository, done())


@pytest.fixture
def lively(repository: Path) -> Iterator[Scene]:
    scene = Scene(repository, in_step(2))
    lease = scene.engine.locks.acquire_request(scene.run.request_id, RUN_ID)  # type: ignore[arg-type]
    assert not isinstance(lease, Lock)
    yield scene
    lease.release()


def test_a_log_is_read_on_from_a_byte(ended: Scene) -> None:
    ended.write(1, b"one\ntwo\nthree\n")
    first = ended.read(1, limit=6)
    assert first == LogPart(1, f"runs/RQ-1/{RUN_ID}/logs/step-1.log", 0, b"one\ntw", 6, 14)
    rest = ended.read(1, first.next_offset)
    assert (rest.text, rest.next_offset, rest.may_grow) == ("o\nthree\n", 14, False)
    assert ended.read(1, rest.next_offset).data == b""


def test_a_character_is_never_cut_in_two(ended: Scene) -> None:
    text = "日本語😀é\n" * 20
    ended.write(1, text.encode())
    for limit in range(4, 12):
        seen, offset = "", 0
        while part := ended.read(1, offset, limit).data:
            seen += part.decode("utf-8")
            offset += len(part)
        assert seen == text


def test_what_is_no_text_is_given_all_the_same(ended: Scene) -> None:
    ended.write(1, b"\xff\xf0\n\xe6\x97")
    part = ended.read(1)
    assert part.data == b"\xff\xf0\n\xe6\x97"
    assert part.text.encode("utf-8", "surrogateescape") == part.data
    assert ended.read(1, 3, 1).data == b"\xe6"


def test_what_still_grows_says_so_and_ends_with_a_whole_character(lively: Scene) -> None:
    lively.write(2, "日本".encode()[:5])
    part = lively.read(2)
    assert (part.text, part.next_offset, part.size, part.may_grow) == ("日", 3, 5, True)
    lively.write(2, "日本".encode()[5:])
    assert lively.read(2, part.next_offset).text == "本"


def test_a_log_that_was_cut_is_read_from_its_start_again(ended: Scene) -> None:
    ended.write(1, b"a new beginning\n")
    part = ended.read(1, 5000)
    assert (part.offset, part.text, part.was_cut) == (0, "a new beginning\n", True)
    assert not ended.read(1, part.next_offset).was_cut


def test_a_step_without_a_log_has_nothing_yet_and_an_unknown_one_is_refused(ended: Scene) -> None:
    assert ended.read(3) == LogPart(3, f"runs/RQ-1/{RUN_ID}/logs/step-3.log", 0, b"", 0, 0)
    for number, offset in ((4, 0), (-1, 0), (1, -1)):
        with pytest.raises(BadInputError):
            ended.read(number, offset)


def test_nothing_outside_the_run_is_read(ended: Scene, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    os.symlink(tmp_path / "secret", ended.folder / "step-1.log")
    os.mkfifo(ended.folder / "step-2.log")
    os.symlink("step-0.log", ended.folder / "step-3.log")
    ended.write(0, b"plan\n")
    assert [ended.read(number).data for number in (0, 1, 2, 3)] == [b"plan\n", b"", b"", b""]
    assert [log.number for log in read_logs(ended.engine, ended.run)] == [0]
    (ended.folder / "step-0.log").unlink()
    ended.folder.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/step-0.log").write_text("moved")
    os.symlink(tmp_path / "elsewhere", ended.folder)
    assert ended.read(0).data == b""


def test_all_logs_come_in_the_order_of_the_steps(ended: Scene) -> None:
    for number in (2, 10, 0, 1):
        ended.write(number, b"log %d\n" % number)
    (ended.folder / "step-x.log").write_text("stray")
    logs = read_logs(ended.engine, ended.run)
    assert [log.number for log in logs] == [0, 1, 2, 10]
    assert [log.number for log in read_logs(ended.engine, ended.run, 2)] == [2]
    shape = logs_shape(ended.run, logs[:1])
    wanted = {"step": 0, "path": f"runs/RQ-1/{RUN_ID}/logs/step-0.log", "text": "log 0\n"}
    assert shape == {"request_id": "RQ-1", "run_id": RUN_ID, "logs": [wanted]}
    part = log_part_shape(ended.run, ended.read(0, 4))
    assert (part["offset"], part["text"], part["next_offset"], part["may_grow"]) == (4, "0\n", 6, False)


@pytest.mark.spec("WEB-1", "SEC", "API-3")
def test_only_the_page_gets_colours_and_times(lively: Scene) -> None:
    log = lively.engine.runs.open_log(lively.run, 2, "unit tests: make")
    log.write(b"\x1b[31mred\x1b[0m\n\x1b]0;t\x07plain\n")
    log.close()
    title = read_log(lively.engine, lively.run, 2).text.splitlines()[0]
    shown = f"{title}\nred\nplain\n"
    seen = as_shown(lively, 2)
    assert seen["lines"] == [title, "\x1b[31mred\x1b[0m", "plain"]
    began = datetime.fromisoformat(title.split()[1]).timestamp()
    assert [(line, began <= second < began + 60) for line, second in seen["times"][:1]] == [(0, True)]
    assert as_shown(lively, 2, 1)["lines"] == ["\x1b[31mred\x1b[0m", "plain"]
    assert read_log(lively.engine, lively.run, 2).text == shown
    assert b"".join(stream_log(lively.engine, lively.run, 2)).decode() == shown
    assert [part.text for part in read_logs(lively.engine, lively.run)] == [shown]
    assert last_line(lively.engine, lively.run) == "plain"
    lively.engine.runs.open_log(lively.run, 3, "unit tests: make").close()
    assert last_line(lively.engine, lively.run) == "", "a heading says nothing yet"
    assert (lively.folder / "step-2.log").read_text() == shown


def as_shown(scene: Scene, number: int, first: int = 0) -> dict[str, Any]:
    """Return what the page's viewer gets of a log."""
    return LogReaders().of(scene.engine, scene.run, number).lines(Wanted(first, 100))


def test_marks_are_never_read_from_elsewhere(ended: Scene, tmp_path: Path) -> None:
    ended.write(1, b"one\n")
    (tmp_path / "marks").write_bytes(b"0 m31\n")
    os.symlink(tmp_path / "marks", ended.folder / "step-1.marks")
    assert as_shown(ended, 1)["lines"] == ["one"]
    (ended.folder / "step-1.marks").unlink()
    (ended.folder / "step-1.marks").write_bytes(b"0 m31\n")
    assert as_shown(ended, 1)["lines"] == ["\x1b[31mone"]
    assert as_shown(ended, 3)["times"] is None


@pytest.mark.parametrize(
    ("step", "number"), [(None, None), ("planner", 0), ("Plan", 0), ("0", 0), ("S02", 2), ("s2", 2), ("3", 3)]
)
def test_which_log_is_meant(step: str | None, number: int | None) -> None:
    assert log_number(done(), step) == number


@pytest.mark.parametrize("step", ["S04", "x", "", "-1", "S1S", "٣", "999"])
def test_a_step_that_there_is_not_is_said_with_those_there_are(step: str) -> None:
    with pytest.raises(BadInputError) as caught:
        log_number(done(), step)
    assert caught.value.context["detail"] == f"{step}: planner, S01, S02, S03"


def test_what_is_added_is_followed_until_the_run_has_ended(repository: Path) -> None:
    scene = Scene(repository, in_step(2))
    lease = scene.engine.locks.acquire_request(scene.run.request_id, RUN_ID)  # type: ignore[arg-type]
    assert not isinstance(lease, Lock)
    scene.write(1, b"old\n")
    seen = read_logs(scene.engine, scene.run)
    coming = iter([(1, b"half"), (1, b" a line\n"), (2, b"new step\nand"), (2, b" more\n"), None])

    class Time(SystemTime):
        """Lets something happen whenever it passes."""

        def sleep(self, seconds: float) -> None:
            more = next(coming)
            if more is None:
                scene.engine.runs.save(replace(done(), place=scene.run.place))
            else:
                scene.write(*more)

    lines = list(follow_logs(replace(scene.engine, time=Time()), scene.run, seen))
    lease.release()
    assert lines == ["half a line", "new step", "and more"]


def test_a_line_that_never_ends_is_followed_in_pieces(ended: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    ended.write(1, b"x" * 25 + b"\nend\nrest")
    lines = list(follow_logs(ended.engine, ended.run, (), 1))
    assert lines == ["x" * 10, "x" * 10, "xxxxx", "end"]


@pytest.mark.spec("API-3")
def test_a_log_is_streamed_in_pieces_up_to_the_end_it_had(lively: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 4)
    whole = "1234あ567890\n".encode()
    lively.write(1, whole)
    pieces = stream_log(lively.engine, lively.run, 1)
    lively.write(1, b"later")
    heard = list(pieces)
    assert b"".join(heard) == whole
    assert max(map(len, heard)) <= 4
    assert b"".join(stream_log(lively.engine, lively.run, 1, 7, 3)) == b"567"
    assert list(stream_log(lively.engine, lively.run, 2)) == [b""]
    with pytest.raises(BadInputError):
        stream_log(lively.engine, lively.run, 9)


@pytest.mark.spec("API-3")
def test_a_log_that_is_cut_or_removed_while_it_is_streamed_ends(ended: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 4)
    ended.write(1, b"1234567890")
    cut, gone = (stream_log(ended.engine, ended.run, 1) for _ in range(2))
    assert [next(cut), next(gone)] == [b"1234", b"1234"]
    (ended.folder / "step-1.log").write_bytes(b"12")
    assert list(cut) == []
    (ended.folder / "step-1.log").unlink()
    assert list(gone) == []
