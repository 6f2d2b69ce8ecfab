"""A run's logs (RUN-1, API-3): by number and byte offset, all at once, in pieces, or line by line as they grow."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from aiflow.domain.agents.plain_text import plain
from aiflow.domain.runs.log_names import BASELINE_LOG, PLANNER_LOG
from aiflow.domain.runs.log_part import HEADING, LogPart
from aiflow.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine

MOST_BYTES = 1_000_000
PIECE_BYTES = 64_000
FOLLOW_SECONDS = 0.2
TAIL_BYTES = 4096
_NAMED = {"planner": PLANNER_LOG, "plan": PLANNER_LOG, "baseline": BASELINE_LOG}


def log_number(run: Run, step: str | None) -> int | None:
    """Return the number of the log that is meant: S03 or 3, planner or 0, baseline; None is all of them."""
    if step is None:
        return None
    if step.lower() in _NAMED:
        return _NAMED[step.lower()]
    match = re.fullmatch(r"[Ss]?(\d{1,2})", step, re.ASCII)
    known = {PLANNER_LOG, *(planned.number for planned in run.plan)}
    if match is None or int(match[1]) not in known:
        names = ", ".join(("planner", *(planned.id for planned in run.plan)))
        raise BadInputError(detail=f"{step}: {names}")
    return int(match[1])


def read_log(engine: Engine, run: Run, number: int, offset: int = 0, limit: int = MOST_BYTES) -> LogPart:
    """Read one log from a byte on, whole characters only; of a step that has none yet there is nothing yet."""
    may_grow = is_worked_on(engine, run)  # asked first: what is written before an end is read, too
    first = {BASELINE_LOG, PLANNER_LOG} if run.course.has_baseline else {PLANNER_LOG}
    known = {*first, *(planned.number for planned in run.plan), *engine.runs.log_numbers(run)}
    if number not in known or offset < 0:
        raise BadInputError(detail=f"{number}:{offset}")
    data, size = engine.runs.read_log(run, number, offset, limit) or (b"", 0)
    was_cut = offset > size
    if was_cut:
        offset = 0
        data, size = engine.runs.read_log(run, number, 0, limit) or (b"", 0)
    if may_grow or offset + len(data) < size:
        data = _whole_characters(data)
    path = engine.runs.log_path(run, number)
    return LogPart(number, path, offset, data, offset + len(data), size, may_grow, was_cut)


def stream_log(engine: Engine, run: Run, number: int, offset: int = 0, limit: int | None = None) -> Iterator[bytes]:
    """Read one log from a byte on up to the end that it has now, piece by piece; refused before the first piece."""
    first = read_log(engine, run, number, offset, min(PIECE_BYTES, limit or PIECE_BYTES))
    end = first.size if limit is None else min(first.size, first.offset + limit)
    return _pieces(engine, run, first, end)


def read_logs(engine: Engine, run: Run, number: int | None = None) -> tuple[LogPart, ...]:
    """Read a run's logs whole, in the order of its steps; only one if its number is given."""
    may_grow = is_worked_on(engine, run)
    numbers = [each for each in engine.runs.log_numbers(run) if number in (None, each)]
    found = ((each, engine.runs.read_log(run, each)) for each in numbers)
    return tuple(
        LogPart(each, engine.runs.log_path(run, each), 0, read[0], len(read[0]), len(read[0]), may_grow)
        for each, read in found
        if read is not None
    )


def last_line(engine: Engine, run: Run) -> str:
    """Return the last line of the newest log that says something, without its escapes; a heading does not."""
    number = max(engine.runs.log_numbers(run), default=None)
    found = engine.runs.read_log(run, number, 0, 1) if number is not None else None
    if number is None or found is None:
        return ""
    data, _ = engine.runs.read_log(run, number, max(0, found[1] - TAIL_BYTES), TAIL_BYTES) or (b"", 0)
    lines = plain(data.decode("utf-8", "replace")).splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip() and not line.startswith(HEADING)), "")


def follow_logs(engine: Engine, run: Run, seen: tuple[LogPart, ...], number: int | None = None) -> Iterator[str]:
    """Yield the lines that are added to a run's logs until it has ended; a new step's log is followed, too."""
    offsets = {part.number: part.next_offset for part in seen}
    while True:
        may_grow = is_worked_on(engine, run)
        for each in engine.runs.log_numbers(run):
            if number in (None, each):
                yield from _added(engine, run, each, offsets)
        if not may_grow:
            return
        engine.time.sleep(FOLLOW_SECONDS)


def is_worked_on(engine: Engine, run: Run) -> bool:
    """Return whether a run is active and a running process holds its lock."""
    current = engine.runs.load(run.request_id, run.run_id)
    if current is None or not current.is_active:
        return False
    return any(
        status.lock.request_id == run.request_id and not status.verdict.is_stale for status in engine.locks.survey()
    )


def _added(engine: Engine, run: Run, number: int, offsets: dict[int, int]) -> Iterator[str]:
    """Yield the complete lines after an offset, and move it past them."""
    while read := engine.runs.read_log(run, number, offsets.get(number, 0), MOST_BYTES):
        data, size = read
        if offsets.get(number, 0) > size:  # it was cut: from its start again
            offsets[number] = 0
            continue
        # What is longer than all that is read at once is shown in pieces rather than never.
        whole = data if len(data) == MOST_BYTES and b"\n" not in data else data[: data.rfind(b"\n") + 1]
        if not whole:
            return
        offsets[number] = offsets.get(number, 0) + len(whole)
        yield from whole.decode("utf-8", "replace").splitlines()


def _pieces(engine: Engine, run: Run, first: LogPart, end: int) -> Iterator[bytes]:
    """Yield a log's bytes up to an end; of one that is cut or removed meanwhile nothing more comes."""
    yield first.data
    at = first.next_offset
    while at < end:
        data, _ = engine.runs.read_log(run, first.number, at, min(PIECE_BYTES, end - at)) or (b"", 0)
        if not data:
            return
        yield data
        at += len(data)


def _whole_characters(data: bytes) -> bytes:
    """Leave out a character at the end of which only a part is there; the next part begins with it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    pending = len(decoder.getstate()[0])
    return data[:-pending] if 0 < pending < len(data) else data
