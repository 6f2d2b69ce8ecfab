"""What the page of one request shows: why it does not run, its text, its runs, and what can be done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.looks import WAITING_MARKS, Mark
from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import RequestStatus
from aiflow.domain.wait_kind import WaitKind, kind_of
from aiflow.errors import AiflowError
from aiflow.usecases.backlog.hidden_text import hidden_in, hidden_words
from aiflow.usecases.backlog.why import freed
from aiflow.usecases.shapes.backlog import describe, describe_problem
from aiflow.web.chain import chain_of
from aiflow.web.text.markdown import render_markdown, without_title

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from markupsafe import Markup

    from aiflow.api.context import CallContext
    from aiflow.domain.backlog.board import Board, Row
    from aiflow.domain.backlog.explanation import Station
    from aiflow.domain.backlog.selection import Barrier
    from aiflow.domain.issues.telling import StoryLine
    from aiflow.domain.request import InvalidRequest, Request, RequestId
    from aiflow.domain.run_summary import RunSummary

# The keys that the page's form sets.
REQUEST_KEYS = ("status", "priority", "depends_on", "labels")
MOST_RUNS = 20
MOST_SAID = 8_000
_SHAPES = {WaitKind.QUESTION: "question", WaitKind.STOPPED: "stopped", WaitKind.ACCEPTANCE: "accept"}


class RunRow(NamedTuple):
    """One run in the list of a request's runs."""

    run_id: str
    state: str
    shape: str
    reason: str
    steps: str
    seconds: float | None
    cost_usd: float | None
    branch: str


class StoryRow(NamedTuple):
    """One line of an issue's story: its words as HTML, and the run if it is one of this checkout."""

    line: StoryLine
    html: Markup | None
    run_id: str


def request_facts(call: CallContext, board: Board, stations: Sequence[Station]) -> Mapping[str, object]:
    """Return what the page of a request shows."""
    first, engine = stations[0], call.engine
    request = board.backlog.by_id[first.request_id]
    body, row = engine.source.body(request.id), board.row(request)
    runs, total = engine.runs.page(request.id, MOST_RUNS)
    is_open = request.status not in (RequestStatus.DONE, RequestStatus.ARCHIVED)
    return {
        "request": request,
        "row": row,
        "lead": _lead(call, board, row),
        "chain": chain_of(stations, board, call.texts),
        "warnings": [describe(each, call.texts) for each in _warnings(call, request)] if is_open else [],
        "body": render_markdown(without_title(body, request.title)),
        "hidden": hidden_words(hidden_in(request, body), call.texts),
        "runs": tuple(_runs(call, [run for _, run in runs], row)),
        "runs_total": total,
        "story": tuple(_story(engine.source.story(request.id), {run.run_id for _, run in runs})),
        "found_here": board.found_in.get(request.id, ()),
        "needed_by": board.waited_for_by.get(request.id, ()),
        "is_runnable": any(each.id == request.id for each in board.selection.runnable),
        "is_waiting": row.mark in WAITING_MARKS,
        "is_accepted": bool(runs and (record := runs[0][1].record) and record.is_accepted),
        "is_file": whole_text(call, request.id) is not None,
        "has_queue": call.server.store.is_there(),
        "was": {"depends_on": ", ".join(request.depends_on), "labels": ", ".join(request.labels)},
    }


def broken_facts(call: CallContext, request_id: RequestId, files: Sequence[InvalidRequest]) -> Mapping[str, object]:
    """Return what the page of a file with a mistake shows."""
    mistakes = [(file, [describe_problem(problem, call.texts) for problem in file.problems]) for file in files]
    text = whole_text(call, request_id)
    return {"request_id": request_id, "mistakes": mistakes, "before": text, "text": text, "theirs": None}


def whole_text(call: CallContext, request_id: RequestId) -> str | None:
    """Return a request's text to be edited; None of what is not edited here."""
    try:
        return call.engine.editor.whole_text(request_id)
    except AiflowError:
        return None


def _warnings(call: CallContext, request: Request) -> tuple[Barrier, ...]:
    return (*freed(request), *call.missing_merges(request))


def _lead(call: CallContext, board: Board, row: Row) -> str:
    """Say in one sentence how it is with a request."""
    request, key, facts = row.request, "stopped", {}
    if row.mark is Mark.CONTINUES:
        return call.texts("web.continues").rstrip(".。")
    if row.is_next:
        key = "next"
    elif request in board.selection.runnable:
        key, facts = "place", {"place": row.turn}
    elif request.id in board.backlog.interrupted:
        key = "interrupted"
    elif row.mark is Mark.RUN:
        key = "running"
    elif request.status in (RequestStatus.DONE, RequestStatus.ARCHIVED):
        key = request.status.value
    return call.texts(f"why.{key}", request_id=request.id, title="", **facts).strip().rstrip(".。")


def _story(lines: Sequence[StoryLine], runs: set[str]) -> Iterator[StoryRow]:
    """Return what happened where a request is kept; whatever anybody wrote is rendered as text that can do nothing."""
    for line in lines:
        html = render_markdown(line.text, cap=MOST_SAID, top=4).html if line.text else None
        yield StoryRow(line, html, line.run_id if line.run_id in runs else "")


def _runs(call: CallContext, runs: Sequence[RunSummary], row: Row) -> Iterator[RunRow]:
    request = row.request
    for each in runs:
        run, record = call.engine.runs.load(request.id, each.run_id), each.record
        reason = call.texts.message(each.why, {"request_id": request.id, "branch": ""}).title if each.why else ""
        done = sum(work.is_done for work in run.steps.values()) if run else 0
        yield RunRow(
            each.run_id,
            each.state.value,
            _shape(each, row),
            reason,
            f"{done}/{len(run.plan)}" if run and run.plan else "–",
            record.worked_seconds if record else None,
            record.cost_usd if record and record.cost_usd else None,
            run.place.branch if run else "",
        )


def _shape(run: RunSummary, row: Row) -> str:
    if row.mark is Mark.CONTINUES and run.run_id == row.run_id:
        return "pause"
    if run.is_active:
        return "run"
    if run.state is RunState.FAILED:
        return "fail"
    if run.state is RunState.DONE and row.request.status is not RequestStatus.BLOCKED:
        return "done"
    return _SHAPES[kind_of(run)]
