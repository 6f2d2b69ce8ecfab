"""What stands around every page: the counts beside its links, and the bar that says that auto-run is on (WEB-2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.auto.standing import Glance
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.backlog.board import Board
from aiflow.domain.lifecycle import AutoRunState
from aiflow.usecases.auto.standing import glance

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.api.context import CallContext
    from aiflow.domain.auto.standing import AtWork
    from aiflow.domain.backlog.selection import Backlog
    from aiflow.ports.server import ServerRecord


class QueueBar(NamedTuple):
    """The bar on top of every page while auto-run is on; it may wait: for a quota, for another's run, for requests."""

    at_work: AtWork | None
    done: int
    waiting: int
    next_id: str | None
    is_stopping: bool
    waits_for: AtWork | None = None
    is_watching: bool = False

    @property
    def waits_until(self) -> datetime | None:
        """Until when the run it is at waits for its agent's quota, None if it does not."""
        return self.at_work.progress.waits_until if self.at_work and self.at_work.progress else None

    @property
    def is_waiting(self) -> bool:
        """Whether nothing is worked on."""
        return self.is_watching or self.waits_for is not None or self.waits_until is not None


class Frame(NamedTuple):
    """What the layout shows besides the page itself."""

    seen: Glance
    bar: QueueBar | None
    others: tuple[ServerRecord, ...] = ()

    @property
    def waiting(self) -> int:
        """How many requests wait for a person."""
        return self.seen.waiting

    @property
    def ready(self) -> int:
        """How many requests are ready."""
        return self.seen.selection.ready

    @property
    def can_start(self) -> bool:
        """Whether auto-run could be started: nothing is at work, and something could be."""
        is_any = bool(self.seen.selection.runnable or self.seen.continued)
        return not self.seen.auto.is_on and not self.seen.running and is_any


def make_frame(call: CallContext, backlog: Backlog | Board | None = None) -> Frame:
    """Look at how it stands, for the layout of a page; `backlog` is one that was read already."""
    known = call.look() if backlog is None else backlog
    engine, records = call.engine, call.server.project.auto_records
    whole, board = (known.backlog, known) if isinstance(known, Board) else (known, None)
    seen = glance(engine, records, whole, board)
    return Frame(seen, _bar(seen), tuple(call.server.neighbours.known()))


def _bar(seen: Glance) -> QueueBar | None:
    auto, chosen = seen.auto, seen.selection.next
    if not auto.is_on:
        return None
    run_id = auto.at_work.run_id if auto.at_work else None
    is_idle = auto.at_work is None and auto.is_current and auto.session is not None
    is_waiting = is_idle and auto.session is not None and auto.session.state is AutoRunState.WAITING
    return QueueBar(
        next((each for each in seen.running if each.run_id == run_id), None) if run_id else None,
        auto.session.done if auto.session else 0,
        seen.waiting,
        str(chosen.id) if chosen else None,
        auto.stop_request is not StopRequest.NONE,
        next(iter(seen.running), None) if is_waiting else None,
        is_waiting and not seen.running and auto.session is not None and auto.session.is_watching,
    )
