"""Start work from the page (API-1, API-2): the very same program as in a terminal, as a process of its own.

Nothing is said to have begun that has not: a start is answered when the worker has written its run into the journal,
with the worker's own refusal, or, if neither comes, with START_UNCONFIRMED.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import ActivityKind
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from aiflow.ports import JournalReader, Locks, Time
    from aiflow.ports.server import Worker, Workers

PATIENCE_SECONDS = 30.0
LOOK_SECONDS = 0.05


class WorkOrder(NamedTuple):
    """What a worker is to do, as it is typed, for whom, and what says that it has begun.

    `is_begun` is asked of every journal entry that the worker writes.
    """

    argv: tuple[str, ...]
    person: str
    is_begun: Callable[[dict[str, object]], bool]


class Begun(NamedTuple):
    """What a worker began, or has done already."""

    request_id: str | None
    run_id: str | None
    answer: dict[str, object] | None = None


@dataclass(slots=True)
class WorkStarter:
    """Starts one worker after the other; whoever asks meanwhile waits for the one on its way and is refused with it."""

    workers: Workers
    journal: JournalReader
    locks: Locks
    time: Time
    turn: AbstractContextManager[object]
    current: Worker | None = field(default=None)

    def start(self, order: WorkOrder) -> Begun:
        """Start a worker and wait until what it is to do has begun, or it is refused."""
        with self.turn:
            cursor = self.journal.end()
            self.current = worker = self.workers.start(("--json", *order.argv), order.person)
            return self._confirmed(worker, order, cursor)

    def _confirmed(self, worker: Worker, order: WorkOrder, cursor: str) -> Begun:
        until = self.time.monotonic() + PATIENCE_SECONDS
        while self.time.monotonic() < until:
            is_over = self.workers.exit_code(worker) is not None  # asked first: what it wrote before is read, too
            page = self.journal.read(cursor)
            cursor = page.cursor
            for entry in page.entries:
                if entry.fields.get("pid") == worker.pid and order.is_begun(dict(entry.fields)):
                    return Begun(_word(entry.fields.get("request_id")), _word(entry.fields.get("run_id")))
            if is_over:
                return self._ended(worker)
            self.time.sleep(LOOK_SECONDS)
        raise AiflowError(reason_code="START_UNCONFIRMED", detail=" ".join(order.argv))

    def _ended(self, worker: Worker) -> Begun:
        """Say what a worker answered that has ended: what came of it, or why it was refused."""
        answer = self.workers.answer(worker)
        error = answer.get("error") if answer else None
        if isinstance(error, dict):
            raise told_again(error)
        if answer is None:
            raise AiflowError(detail=self.workers.said(worker) or " ".join(worker.argv))
        return Begun(_word(answer.get("request_id")), _word(answer.get("run_id")), answer)


def told_again(error: dict[str, object]) -> AiflowError:
    """Return a worker's refusal as an error of ours, with its reason and its facts."""
    context = error.get("context")
    facts = {str(name): fact for name, fact in context.items()} if isinstance(context, dict) else {}
    facts.pop("reason_code", None)
    return AiflowError(reason_code=str(error.get("reason_code")), **facts)


def entered(request_id: str, *, other_than: str | None = None) -> Callable[[dict[str, object]], bool]:
    """Tell by the journal that a run of a request has begun or was resumed; `other_than` is one that is replaced."""

    def is_begun(entry: dict[str, object]) -> bool:
        run_id = entry.get("run_id")
        is_ours = entry.get("request_id") == request_id and entry.get("kind") == ActivityKind.TRANSITION
        return is_ours and isinstance(run_id, str) and run_id != other_than

    return is_begun


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None


def command(name: str, *words: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return a command line of ours; what a person wrote stands behind `--` and is never taken for an option."""
    return (name, *options, "--", *words) if words else (name, *options)
