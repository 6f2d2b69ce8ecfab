"""What a person does on more than one page: run a request, accept its work, set its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.request import normalize_id
from aiflow.usecases.backlog.patch import Patch, patch_request
from aiflow.usecases.server.accept import accept
from aiflow.usecases.server.orders import LeftOut, run_order
from aiflow.usecases.server.undo import undo
from aiflow.web.acting import Receipt
from aiflow.web.drawing import request_path, run_path

if TYPE_CHECKING:
    from aiflow.api.context import CallContext


def start_run(call: CallContext, request_id: str, how: LeftOut = LeftOut()) -> Receipt:  # noqa: B008
    """Run a request now."""
    begun = call.server.work.start(run_order(call.engine.source, request_id, call.person, how))
    return going(call, "web.receipt.started", request_id, begun.run_id)


def accept_run(call: CallContext, request_id: str) -> Receipt:
    """Accept a request's work; what takes long continues in the background."""
    run, result = accept(call.engine, call.server.work, normalize_id(request_id), call.person)
    key = "web.receipt.accepted" if result is not None else "web.receipt.accepting"
    return going(call, key, run.request_id, run.run_id)


def undo_run(call: CallContext, request_id: str) -> Receipt:
    """Undo the acceptance of a request's work; what takes long continues in the background."""
    run, result = undo(call.engine, call.server.work, normalize_id(request_id), call.person)
    return going(call, f"web.receipt.{'undone' if result is not None else 'undoing'}", run.request_id, run.run_id)


def change_keys(call: CallContext, request_id: str, patch: Patch) -> None:
    """Set keys of a request."""
    engine = call.engine
    patch_request(normalize_id(request_id), patch, engine.source, engine.editor, (engine.journal, engine.time.now))


def going(call: CallContext, key: str, request_id: str, run_id: str | None, **facts: str) -> Receipt:
    """Return the receipt of something that continues in a run."""
    path = run_path(request_id, run_id) if run_id else request_path(request_id)
    return Receipt(call.texts(key, id=request_id, **facts), path, call.texts("web.open_run"))
