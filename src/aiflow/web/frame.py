"""What stands around every page: the counts beside its links, and the bar that says that auto-run is on (WEB-2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.auto.stopping import StopRequest
from aiflow.usecases.auto.standing import look_around

if TYPE_CHECKING:
    from aiflow.api.context import CallContext
    from aiflow.domain.auto.standing import AtWork, Standing


class QueueBar(NamedTuple):
    """The bar on top of every page while auto-run is on."""

    at_work: AtWork | None
    done: int
    waiting: int
    next_id: str | None
    is_stopping: bool


class Frame(NamedTuple):
    """What the layout shows besides the page itself."""

    waiting: int
    ready: int
    bar: QueueBar | None
    standing: Standing


def make_frame(call: CallContext, standing: Standing | None = None) -> Frame:
    """Look at how it stands, for the layout of a page."""
    standing = standing or look_around(call.engine, call.server.project.auto_records, call.texts)
    return Frame(len(standing.waiting), standing.selection.ready, _bar(standing), standing)


def _bar(standing: Standing) -> QueueBar | None:
    auto, chosen = standing.auto, standing.selection.next
    if not auto.is_on:
        return None
    run_id = auto.at_work.run_id if auto.at_work else None
    return QueueBar(
        next((each for each in standing.running if each.run_id == run_id), None) if run_id else None,
        auto.session.done if auto.session else 0,
        len(standing.waiting),
        str(chosen.id) if chosen else None,
        auto.stop_request is not StopRequest.NONE,
    )
