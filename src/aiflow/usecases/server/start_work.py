"""Start work from the page (API-1, API-2): the same program as in a terminal, as a separate process.

Nothing is reported as begun that has not: a start is answered when the worker has written its run into the journal,
with the worker's own refusal, or, if neither comes, with START_UNCONFIRMED.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from aiflow.errors import AiflowError, ConflictError
from aiflow.usecases.auto.stop import queue_in_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from aiflow.ports import JournalReader, Locks, Time
    from aiflow.ports.server import Worker, Workers

PATIENCE_SECONDS = 30.0
LOOK_SECONDS = 0.05
# What may take minutes, as an acceptance that tests its merge, is waited for so long.
MOMENT_SECONDS = 5.0

Entry = dict[str, object]


class WorkOrder(NamedTuple):
    """What a worker is to do, as it is typed, for whom, and what says that it has begun.

    `is_begun` is asked of every journal entry that the worker writes. `request_id` is what the order is about; an
    auto-run is about none. `refusal` finds in what the worker said at its end that it never began.
    """

    argv: tuple[str, ...]
    person: str
    is_begun: Callable[[Entry], bool]
    request_id: str | None = None
    refusal: Callable[[Entry], AiflowError | None] = lambda _answer: None


class Begun(NamedTuple):
    """What a worker began, or has done already: then with all that it said."""

    request_id: str | None
    run_id: str | None
    pid: int
    answer: Entry | None = None


@dataclass(slots=True)
class WorkStarter:
    """Starts one worker after the other; a request meanwhile waits for the one on its way and is refused with it."""

    workers: Workers
    journal: JournalReader
    locks: Locks
    time: Time
    turn: AbstractContextManager[object]
    current: Worker | None = field(default=None)
    _begun: tuple[Begun, ...] = ()
    _started: dict[int, Worker] = field(default_factory=dict)
    _is_closed: bool = False

    def start(self, order: WorkOrder) -> Begun:
        """Start a worker and wait until what it is to do has begun, or it is refused."""
        before = self._begun
        self._require_open()
        with self.turn:
            if self._begun is not before and (run := self._begun[-1]).run_id:  # it was on its way when this one came
                raise _in_progress(order, run.request_id, run.run_id, run.pid)
            self._require_idle(order)
            cursor = self.journal.end()
            worker = self.launch(order.argv, order.person)
            begun = self._confirmed(worker, order, cursor)
            self._begun = (begun,)
            return begun

    def perform(self, argv: tuple[str, ...], person: str, seconds: float = MOMENT_SECONDS) -> Entry | None:
        """Start what ends without help and is no run: return its output, or None if it has not ended after a moment."""
        worker = self._start(argv, person)
        until = self.time.monotonic() + seconds
        while self.time.monotonic() < until:
            if self.workers.exit_code(worker) is not None:
                return self._told(worker)
            self.time.sleep(LOOK_SECONDS)
        return None

    def _require_idle(self, order: WorkOrder) -> None:
        """Refuse while the worker before holds a lock; one that holds none is about to end, and waited for (API-1)."""
        until = self.time.monotonic() + PATIENCE_SECONDS
        while self.current is not None and self.workers.exit_code(self.current) is None:
            self._require_no_lock_of(self.current, order)
            if self.time.monotonic() >= until:
                raise AiflowError(reason_code="START_UNCONFIRMED", detail=" ".join(order.argv))
            self.time.sleep(LOOK_SECONDS)

    def _require_no_lock_of(self, worker: Worker, order: WorkOrder) -> None:
        requests, queue = self.locks.held()
        run = next((lock for lock in requests.values() if lock.pid == worker.pid), None)
        auto = queue if queue is not None and queue.pid == worker.pid else None
        if auto is not None and (run is None or order.request_id is None):
            raise queue_in_progress(auto, run)
        if run is not None:
            raise _in_progress(order, run.request_id, run.run_id, run.pid)

    def launch(self, argv: Sequence[str], person: str = "") -> Worker:
        """Start the one worker and do not wait for it; refused once the server is about to end."""
        self.current = self._start(argv, person)
        return self.current

    def _start(self, argv: Sequence[str], person: str) -> Worker:
        self._require_open()
        worker = self.workers.start(("--json", *argv), person)
        self._started[worker.pid] = worker
        return worker

    def _require_open(self) -> None:
        if self._is_closed:
            raise ConflictError(reason_code="SERVER_STOPPING")

    def close(self) -> None:
        """Start nothing any more."""
        self._is_closed = True

    def adopt(self) -> tuple[Worker, ...]:
        """Take over the workers that a server before left at work, and return them."""
        return self.workers.adopt()

    def at_work(self) -> tuple[Worker, ...]:
        """Return the workers that still work."""
        return self.workers.at_work()

    def end(self, worker: Worker) -> None:
        """Ask a worker to end what it does now, in order."""
        self.workers.end(worker)

    def exit_code(self, pid: int) -> int | None:
        """Return how a worker ended, or None while it works."""
        worker = self._started.get(pid)
        return self.workers.exit_code(worker) if worker else None

    def refusal(self, pid: int) -> AiflowError | None:
        """Return why a worker that has ended refused, if it did."""
        worker = self._started.get(pid)
        answer = self.workers.answer(worker) if worker else None
        error = answer.get("error") if answer else None
        return told_again(error) if isinstance(error, dict) else None

    def _confirmed(self, worker: Worker, order: WorkOrder, cursor: str) -> Begun:
        until = self.time.monotonic() + PATIENCE_SECONDS
        while self.time.monotonic() < until:
            is_over = self.workers.exit_code(worker) is not None  # asked first: what it wrote before is read, too
            page = self.journal.read(cursor)
            cursor = page.cursor
            for entry in page.entries:
                if entry.fields.get("pid") == worker.pid and order.is_begun(dict(entry.fields)):
                    return Begun(_word(entry.fields.get("request_id")), _word(entry.fields.get("run_id")), worker.pid)
            if is_over and not page.entries:  # a journal longer than a page is read to its end
                return self._ended(worker, order)
            self.time.sleep(0 if is_over else LOOK_SECONDS)
        raise AiflowError(reason_code="START_UNCONFIRMED", detail=" ".join(order.argv))

    def _ended(self, worker: Worker, order: WorkOrder) -> Begun:
        """Say what a worker answered that has ended: what came of it, or why it was refused."""
        answer = self._told(worker)
        refusal = order.refusal(answer)
        if refusal is not None:
            raise refusal
        return Begun(_word(answer.get("request_id")), _word(answer.get("run_id")), worker.pid, answer)

    def _told(self, worker: Worker) -> Entry:
        """Return what an ended worker answered; its refusal is raised."""
        answer = self.workers.answer(worker)
        error = answer.get("error") if answer else None
        if isinstance(error, dict):
            raise told_again(error)
        if answer is None:
            raise AiflowError(detail=self.workers.said(worker) or " ".join(worker.argv))
        return answer


def _in_progress(order: WorkOrder, request_id: str | None, run_id: str | None, pid: int | None) -> ConflictError:
    other = {} if order.request_id in (None, request_id) else {"asked_for": order.request_id}
    return ConflictError(reason_code="RUN_IN_PROGRESS", request_id=request_id, run_id=run_id, pid=pid, **other)


def told_again(error: Entry) -> AiflowError:
    """Return a worker's refusal as an error of ours, with its reason and its facts."""
    context = error.get("context")
    facts = {str(name): fact for name, fact in context.items()} if isinstance(context, dict) else {}
    facts.pop("reason_code", None)
    return AiflowError(reason_code=str(error.get("reason_code")), **facts)


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None
