"""Tasks (QUE-3 to QUE-9): one delivery of work to a runner, as the queue store has it.

A task's status follows `TASK_TRANSITIONS`; the store writes each transition under the condition of its *from* state, so
an illegal one cannot happen even in a race. What is final stays final: another go is a new task that names the old one.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.backlog.short_id import short_id
from aiflow.domain.details import detail
from aiflow.domain.lifecycle import PROJECTIONS, TASK_TRANSITIONS, RunOutcome, TaskEvent, TaskStatus, final_states
from aiflow.domain.request import DEFAULT_PRIORITY, Priority
from aiflow.errors import BadInputError, ConflictError

if TYPE_CHECKING:
    from collections.abc import Mapping

FINAL_STATUSES = final_states(TASK_TRANSITIONS)
LIVE_STATUSES = frozenset(TaskStatus) - FINAL_STATUSES

# A longer prompt is kept in an item of its own: every write of a task writes its item once per index (PRF-2).
INLINE_PROMPT_BYTES = 200
# DynamoDB's limit for one item is 400 KB, keys and names included.
PROMPT_BYTES = 390_000
MESSAGE_CHARACTERS = 300
TASK_ID_CHARACTERS = 128
# How many runners a task's work may lose; after that a person decides. Runners that stopped normally do not count.
MOST_LOSSES = 3
RUNNER_LOST = "RUNNER_LOST"

_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DELIVERY = re.compile(r"(.+)\.(\d+)")
_DATED_TASK = re.compile(r"TASK-(20\d{6})-\d{6}-")
_TIME_BITS = (1 << 48) - 1
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class TaskAction(StrEnum):
    """What a runner is to do."""

    START = "start"
    RESUME = "resume"
    RETRY_STEP = "retry_step"
    REPLAN = "replan"
    AUTO_RUN = "auto_run"
    PROMPT = "prompt"


@dataclass(frozen=True, slots=True)
class Checkout:
    """The checkout a task belongs to or a runner works in (QUE-11)."""

    host: str
    root: str

    @property
    def id(self) -> str:
        """The `checkout_id` of the store: readable, and the same for everybody who looks."""
        return f"{self.host}:{self.root}"

    @classmethod
    def parse(cls, text: str) -> Checkout | None:
        """Read a `checkout_id` back; None is no checkout at all."""
        host, found, root = text.partition(":")
        return cls(host, root) if found else None


@dataclass(frozen=True, slots=True)
class Task:
    """One item of the queue.

    `request_id` is the seed's `task_group_id`, `run_id` its `session_id`. Without a `checkout` any runner of the
    namespace may take it. `fence` is the number its request's guard gave out with it, `claim_token` that of the one
    claim it ever has. `place_at` is the time its place in the queue counts from: a successor keeps the place of the
    task it continues. `losses` counts the runners that its work has lost before.
    """

    namespace: str
    task_id: str
    action: TaskAction
    request_id: str
    created_at: datetime
    updated_at: datetime
    place_at: datetime
    status: TaskStatus = TaskStatus.QUEUED
    priority: Priority = DEFAULT_PRIORITY
    checkout: Checkout | None = None
    prompt: str = ""
    prompt_bytes: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    run_id: str | None = None
    claimed_by: str | None = None
    claim_token: str | None = None
    fence: int = 0
    error_message: str | None = None
    predecessor: str | None = None
    successor: str | None = None
    losses: int = 0

    @property
    def is_final(self) -> bool:
        """Whether nothing can happen to it any more."""
        return self.status in FINAL_STATUSES

    @property
    def reason_code(self) -> str | None:
        """The code its error message begins with."""
        return self.error_message.partition(":")[0] if self.error_message else None

    @property
    def is_prompt_whole(self) -> bool:
        """Whether `prompt` is all of it, and not the beginning of one that is kept apart."""
        return len(self.prompt.encode()) == self.prompt_bytes


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """How a task ends (QUE-4)."""

    event: TaskEvent
    error_message: str | None = None
    run_id: str | None = None
    successor: str | None = None


# What a run's outcome does to its task, by the status that the projection gives it.
_ENDS: Mapping[TaskStatus, TaskEvent] = {
    target: event for (state, event), target in TASK_TRANSITIONS.items() if state is TaskStatus.RUNNING
}


def end_for(outcome: RunOutcome, reason_code: str | None, text: str = "", run_id: str | None = None) -> TaskEnd:
    """Say how the task of a run ends, from the run's outcome (QUE-4)."""
    event = _ENDS[PROJECTIONS[outcome].task]
    return TaskEnd(event, None if event is TaskEvent.COMPLETED else message_of(reason_code or "", text), run_id)


def message_of(reason_code: str, text: str = "") -> str:
    """Write an `error_message`: the reason code, and what there is to say in one short line."""
    line = " ".join(text.split())
    whole = f"{reason_code}: {line}" if line else reason_code
    return whole if len(whole) <= MESSAGE_CHARACTERS else f"{whole[: MESSAGE_CHARACTERS - 1]}…"


def stamp(at: datetime) -> str:
    """Write a moment for the store: fixed width, UTC, so that text order is time order (SPEC §1)."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def moment(text: str) -> datetime:
    """Read a moment back, also one that another program wrote."""
    read = datetime.fromisoformat(text)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def new_task_id(at: datetime, chance: str) -> str:
    """Make a task id: fixed width, in the order of time, with six hex digits of chance."""
    return f"TASK-{at.astimezone(UTC):%Y%m%d-%H%M%S-%f}-{chance}"


def check_task_id(name: str) -> str:
    """Return a task id that somebody chose, or raise that it cannot be used."""
    is_numbered = _DELIVERY.fullmatch(name) is not None  # such a one would be taken for a successor
    if len(name) > TASK_ID_CHARACTERS or is_numbered or not _TASK_ID.fullmatch(name):
        raise BadInputError(reason_code="TASK_ID_INVALID", task_id=name[:TASK_ID_CHARACTERS], most=TASK_ID_CHARACTERS)
    return name


def check_prompt(text: str) -> str:
    """Return a prompt that fits into an item of the store, or raise PROMPT_TOO_LARGE."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadInputError(detail=detail("prompt.not_text")) from None
    if size > PROMPT_BYTES:
        raise BadInputError(reason_code="PROMPT_TOO_LARGE", bytes=size, most=PROMPT_BYTES)
    if not text.strip():
        raise BadInputError(reason_code="PROMPT_EMPTY")
    return text


def excerpt(text: str) -> str:
    """Return as much of a prompt as is in the task's own item: all of it, or its beginning."""
    whole = text.encode()
    return text if len(whole) <= INLINE_PROMPT_BYTES else whole[:INLINE_PROMPT_BYTES].decode(errors="ignore")


def prompt_request_id(task_id: str) -> str:
    """Return the request that a bare prompt becomes (REQ-9): one per prompt, whichever delivery of it makes the file.

    It is short, to be typed: the task's date, if its id has one, and four letters of the id's hash.
    """
    first = first_delivery(task_id)
    dated = _DATED_TASK.match(first)
    return short_id(first, dated[1] if dated else None)


def old_prompt_request_id(task_id: str) -> str:
    """Return the request that the same prompt became before there were short ids: `ADHOC-` and a ULID."""
    first = first_delivery(task_id)
    digest = hashlib.sha256(first.encode()).digest()
    try:
        at = datetime.strptime(f"{first[:27]}+0000", "TASK-%Y%m%d-%H%M%S-%f%z")
        milliseconds = int(at.timestamp() * 1000) & _TIME_BITS
    except ValueError:
        milliseconds = int.from_bytes(digest[10:16])
    number = (milliseconds << 80) | int.from_bytes(digest[:10])
    return "ADHOC-" + "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


def auto_run_guard(checkout: Checkout) -> str:
    """Return what an auto-run's task has in place of a request id: no request can have a name with a leading dot."""
    return f".auto-run:{checkout.id}"


def place_key(task: Task) -> str:
    """Return the text by which queued tasks are ordered: priority, then oldest (QUE-5)."""
    return f"{task.priority}#{stamp(task.place_at)}#{task.task_id}"


def may_claim(task: Task, checkout: Checkout) -> bool:
    """Return whether a task waits, and a runner of this checkout may take it (QUE-5, QUE-11)."""
    return task.status is TaskStatus.QUEUED and task.checkout in (None, checkout)


def first_delivery(task_id: str) -> str:
    """Return the id of the task that a line of successors began with."""
    found = _DELIVERY.fullmatch(task_id)
    return found[1] if found else task_id


def delivery_number(task_id: str) -> int:
    """Return which delivery of the work a task is, from 1."""
    found = _DELIVERY.fullmatch(task_id)
    return int(found[2]) if found else 1


def lock_mismatch(task: Task, there: Task | None) -> ConflictError:
    """Name what became of a task that is no longer ours (QUE-6)."""
    return ConflictError(
        reason_code="LOCK_MISMATCH",
        task_id=task.task_id,
        request_id=task.request_id,
        status=there.status if there else None,
        claimed_by=there.claimed_by if there else None,
    )


def successor_id(task_id: str) -> str:
    """Derive the id of the task that continues this one: every process derives the same one (QUE-7)."""
    return f"{first_delivery(task_id)}.{delivery_number(task_id) + 1}"


def successor_of(task: Task, now: datetime, checkout: Checkout | None = None) -> Task:
    """Make the task that continues one whose runner stopped or was lost; it keeps its place in the queue.

    A prompt that a runner has begun belongs to that runner's checkout from then on: its files are there.
    """
    return replace(
        task,
        task_id=successor_id(task.task_id),
        status=TaskStatus.QUEUED,
        created_at=now,
        updated_at=now,
        checkout=task.checkout or checkout,
        run_id=task.run_id,
        claimed_by=None,
        claim_token=None,
        fence=0,
        error_message=None,
        predecessor=task.task_id,
        successor=None,
        losses=task.losses + (task.reason_code == RUNNER_LOST),
    )


def is_delivered_again(task: Task) -> bool:
    """Return whether a task whose runner was lost gets a successor automatically: not for ever (RUN-14).

    A task of another program with an id that is never ours gets none.
    """
    first = first_delivery(task.task_id)
    is_ours = len(first) <= TASK_ID_CHARACTERS and _TASK_ID.fullmatch(first) is not None
    return is_ours and task.losses + 1 < MOST_LOSSES
