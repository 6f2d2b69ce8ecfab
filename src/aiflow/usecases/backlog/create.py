"""Create a request file from a title (CLI `new`, API POST): a free id, complete metadata, a body to fill in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.backlog.metadata import READERS, MistakeError, check_text, check_title
from aiflow.domain.lifecycle import PERSON_EVENTS
from aiflow.domain.queue.task import first_delivery, old_prompt_request_id, prompt_request_id
from aiflow.domain.request import (
    UNCLEAN,
    InvalidRequest,
    MetadataKey,
    Priority,
    Problem,
    RequestId,
    RequestStatus,
    Value,
    normalize_id,
)
from aiflow.errors import BadInputError, ConflictError

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.queue.task import Task
    from aiflow.ports import Clock, Journal, RequestEditor
    from aiflow.usecases.engine import Engine


@dataclass(frozen=True, slots=True)
class NewRequest:
    """What a person gives for a new request; one that an agent proposed was `found_in` another (REQ-10)."""

    title: str
    body: str
    priority: Priority = Priority.P2
    status: RequestStatus = RequestStatus.DRAFT
    depends_on: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    request_id: str | None = None
    text: str | None = None
    task: str | None = None
    found_in: str | None = None


def create_request(new: NewRequest, editor: RequestEditor, journal: Journal, clock: Clock) -> tuple[RequestId, str]:
    """Create the file and return its id and path; ids that several processes want at once are still different."""
    check_new(new)
    now = clock()
    chosen: list[RequestId] = []

    def propose(taken: frozenset[str]) -> RequestId:
        chosen.append(normalize_id(new.request_id) if new.request_id else next_id(now, taken))
        return chosen[-1]

    text = new.text if new.text is not None else render_request(new, now)
    values: dict[str, Value] = {} if new.text is not None else {"depends_on": new.depends_on, "labels": new.labels}
    if new.text is None and new.title.rstrip().endswith("#"):  # a heading would lose it
        values["title"] = new.title.strip()
    if new.found_in:
        values["found_in"] = new.found_in
    path = editor.create(propose, text, values)
    kind, actor = ActivityKind.REQUEST_CREATED, Actor.ENGINE if new.found_in else Actor.PERSON
    data = {"title": new.title, "status": new.status, **({"found_in": new.found_in} if new.found_in else {})}
    journal.append(Activity(now, kind, actor, chosen[-1], data=data))
    return chosen[-1], path


def check_new(new: NewRequest) -> None:
    """Refuse what would not make a valid request."""
    try:
        check_text(new.body)
        check_title(new.title)
        if new.request_id:
            READERS[MetadataKey.ID](new.request_id)
        READERS[MetadataKey.DEPENDS_ON](new.depends_on)
        check_text(*new.labels)
    except MistakeError as mistake:
        raise BadInputError(problem=Problem(mistake.kind, None, mistake.facts)) from None
    if new.status not in PERSON_EVENTS:
        raise BadInputError(
            reason_code="STATUS_NOT_ALLOWED", status=new.status.value, request_id=new.request_id or "ID"
        )


def create_checked(new: NewRequest, editor: RequestEditor, journal: Journal, clock: Clock) -> tuple[RequestId, str]:
    """Create a request that can be used as it is, or refuse before anything is written."""
    editor.require_free(new.request_id)
    require_usable(new, editor, clock())
    return create_request(new, editor, journal, clock)


def require_usable(new: NewRequest, editor: RequestEditor, now: datetime) -> None:
    """Refuse a body that would make an invalid request."""
    check_new(new)
    read = editor.check_text(new.text if new.text is not None else render_request(new, now))
    if isinstance(read, InvalidRequest):
        raise BadInputError(problem=read.problems[0])


def next_id(now: datetime, taken: frozenset[str]) -> RequestId:
    """Return the next free `RQ-<date>-<number>`; `taken` is in lower case."""
    prefix = f"RQ-{now:%Y%m%d}-"
    pattern = re.compile(re.escape(prefix.lower()) + r"(\d+)")
    numbers = [int(match[1]) for name in taken if (match := pattern.fullmatch(name))]
    return RequestId(f"{prefix}{max(numbers, default=0) + 1:03d}")


def render_request(new: NewRequest, now: datetime) -> str:
    """Write a request file: every key a person may want to change, the title as heading, the body."""
    stamp = now.isoformat(timespec="seconds")
    lines = [
        "---",
        f"priority: {new.priority}",
        f"status: {new.status}",
        "depends_on: []",
        "labels: []",
        *([f"task: {new.task}"] if new.task else []),
        f"created_at: {stamp}",
        f"updated_at: {stamp}",
        "---",
        "",
        f"# {new.title.strip()}",
        "",
        new.body.strip("\n"),
        "",
    ]
    return "\n".join(lines)


TITLE_CHARACTERS = 80
_TASK_LINE = re.compile(r"^task: (\S+)\r?$", re.MULTILINE)


def file_prompt(engine: Engine, task: Task, prompt: str) -> RequestId:
    """Write the request file of a prompt, unless an earlier delivery of it did; return its id.

    The file names its task: ids are short, and another prompt's request of the same id is not taken for this one's.
    """
    old, first = old_prompt_request_id(task.task_id), first_delivery(task.task_id)
    request_id = RequestId(old if task.request_id == old else prompt_request_id(task.task_id))
    new = NewRequest(
        title=title_of(prompt) or request_id,
        body=prompt,
        priority=task.priority,
        status=RequestStatus.READY,
        request_id=request_id,
        task=first,
    )
    try:
        create_request(new, engine.editor, engine.journal, engine.time.now)
    except ConflictError as error:
        if error.reason_code != "REQUEST_EXISTS":
            raise
        named = _TASK_LINE.search(engine.editor.whole_text(request_id))
        if named is not None and named[1] != first:
            raise
    return request_id


def title_of(prompt: str) -> str:
    """Return a prompt's first line with something in it, as a title: without marks of a heading, and not too long."""
    lines = (UNCLEAN.sub(" ", line).strip().lstrip("#").strip() for line in prompt.splitlines())
    first = " ".join(next(filter(None, lines), "").split())
    return first if len(first) <= TITLE_CHARACTERS else f"{first[: TITLE_CHARACTERS - 1].rstrip()}…"
