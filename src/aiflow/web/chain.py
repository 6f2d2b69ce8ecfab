"""Why a request does not run, as a page draws it (SEL-5): all it waits for down to the roots, each with its next step.

What the terminal says as a command is a button here: one that does it, or a link to the page where that is decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.looks import Mark, mark_by_id
from aiflow.domain.next_action import ActionKind
from aiflow.messages.commands import command_line
from aiflow.usecases.shapes.backlog import describe
from aiflow.web.advice import piece_of
from aiflow.web.drawing import request_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from aiflow.domain.backlog.board import Board
    from aiflow.domain.backlog.explanation import Station
    from aiflow.domain.backlog.selection import Barrier
    from aiflow.domain.next_action import NextAction
    from aiflow.messages import Texts

# So many requests are shown on the way down, and so deep; what is deeper stands beside it.
MOST_LINKS = 60
DEEPEST = 6


class ChainWay(NamedTuple):
    """One next step: its words, the command, and either a form that does it or a link to where it is decided."""

    words: str
    command: str
    action: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    href: str = ""
    is_dialog: bool = False
    is_outside: bool = False

    @property
    def is_button(self) -> bool:
        """Whether there is something to press."""
        return bool(self.action or self.href)


class Link(NamedTuple):
    """One request on the way down: where it stands, what is said of it, what can be done, and what it waits for."""

    request_id: str
    title: str
    mark: Mark
    href: str
    sentence: str
    since: datetime | None
    ways: tuple[ChainWay, ...]
    waits_for: tuple[Link, ...] = ()


class Chain(NamedTuple):
    """What is said about the request itself, and the chain below it; `left_out` counts what is not shown."""

    codes: tuple[str, ...]
    sentences: tuple[str, ...]
    ways: tuple[ChainWay, ...]
    links: tuple[Link, ...]
    left_out: int


def chain_of(stations: Sequence[Station], board: Board, texts: Texts) -> Chain:
    """Put the chain together from what `why` found."""
    first, shown = stations[0], stations[1 : MOST_LINKS + 1]
    return Chain(
        _codes(first, board),
        tuple(_sentences(first, texts)),
        tuple(_ways(first, board, texts)),
        tuple(_links(first.request_id, shown, board, texts)),
        len(stations) - 1 - len(shown),
    )


def _links(parent: str, stations: Sequence[Station], board: Board, texts: Texts) -> Iterator[Link]:
    """Yield what a request waits for, each with what that waits for in turn."""
    for at, station in enumerate(stations):
        if station.waited_for_by != parent or station.depth > DEEPEST:
            continue
        below: list[Station] = []
        for other in stations[at + 1 :]:
            if other.depth <= station.depth:
                break
            below.append(other)
        is_deepest = station.depth == DEEPEST
        deeper = (
            (_link(each, board, texts) for each in below)
            if is_deepest
            else _links(station.request_id, below, board, texts)
        )
        yield _link(station, board, texts)._replace(waits_for=tuple(deeper))


def _link(station: Station, board: Board, texts: Texts) -> Link:
    mark, run = mark_by_id(station.request_id, board.backlog, board.waiting), station.run
    return Link(
        station.request_id,
        station.request.title if station.request else "",
        mark,
        request_path(station.request_id) if mark is not Mark.MISSING else "",
        " · ".join((*_sentences(station, texts), *_continued(station, board, texts))),
        run.changed_at if run is not None and station.stopped_for else None,
        tuple(_ways(station, board, texts)) if station.request is not None else (),
    )


def _codes(station: Station, board: Board) -> tuple[str, ...]:
    """Name the rules that keep a request; of what is continued, why it stopped."""
    if station.request_id in board.backlog.continued and station.stopped_for:
        return (station.stopped_for,)
    return tuple(dict.fromkeys(barrier.reason_code for barrier in station.barriers))


def _continued(station: Station, board: Board, texts: Texts) -> Iterator[str]:
    if station.request_id in board.backlog.continued:
        yield texts("web.continues").rstrip(".。")


def _sentences(station: Station, texts: Texts) -> Iterator[str]:
    """Say what keeps a request: why its run waits, before the rules that follow from that."""
    code = station.stopped_for
    if station.request is None and not station.invalid:
        yield texts("web.mark.missing")
        return
    if code is not None:
        yield texts.message(code, {"request_id": station.request_id, "branch": ""}).title
    for barrier, invalid in station.explained:
        is_said = code is not None and barrier.reason_code in ("NOT_READY", "LATEST_RUN_NEEDS_INPUT", code)
        if not is_said:
            yield _kept(barrier, texts) or describe(barrier, texts, invalid)
    if not station.barriers and station.request is not None:
        yield texts(f"web.mark.{station.request.status.value}")


def _kept(barrier: Barrier, texts: Texts) -> str:
    """Say whom a request waits for as a page does: the requests themselves stand below."""
    words = {"DEPENDS_NOT_DONE": "web.chain.depends", "DEPENDS_NOT_FOUND": "web.chain.missing"}.get(barrier.reason_code)
    return texts(words, **dict(barrier.facts)) if words else ""


def _ways(station: Station, board: Board, texts: Texts) -> Iterator[ChainWay]:
    """Yield what can be done; what is continued automatically asks for nothing."""
    if station.request_id not in board.backlog.continued:
        for action in station.actions:
            yield _way(action, station, texts)


def _way(action: NextAction, station: Station, texts: Texts) -> ChainWay:
    """Return an action as what a page has for it."""
    if action.kind is ActionKind.AT_GITHUB:
        done = piece_of(action, texts, {})
        return ChainWay(done.words, "", href=done.href, is_outside=True)
    command, here = command_line(action), request_path(station.request_id)
    if action.kind is ActionKind.RUN:
        return ChainWay(texts("web.way.run"), command, f"{here}/run")
    if action.kind is ActionKind.SET:
        (key, value), *_ = action.options
        words = texts("web.way.set", value=value) if key == "status" else texts("web.mend_depends")
        return ChainWay(words, command, f"{here}/set", action.options)
    if station.run is None:
        return ChainWay("", command)
    done = piece_of(action, texts, {station.request_id: station.run.run_id})
    return ChainWay(done.words, command, href=done.href, is_dialog=done.is_dialog)
