"""Make a request of a bare prompt (REQ-9, QUE-11): whatever is worked on is a request, in the taker's checkout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.request import UNCLEAN, RequestId, RequestStatus
from aiflow.domain.task import prompt_request_id
from aiflow.errors import ConflictError
from aiflow.usecases.create_request import NewRequest, create_request

if TYPE_CHECKING:
    from aiflow.domain.task import Task
    from aiflow.usecases.engine import Engine

TITLE_CHARACTERS = 80


def file_prompt(engine: Engine, task: Task, prompt: str) -> RequestId:
    """Write the request file of a prompt, unless an earlier delivery of it did; return its id."""
    request_id = RequestId(prompt_request_id(task.task_id))
    new = NewRequest(
        title=title_of(prompt) or request_id,
        body=prompt,
        priority=task.priority,
        status=RequestStatus.READY,
        request_id=request_id,
    )
    try:
        create_request(new, engine.backlog.requests, engine.journal, engine.clock)
    except ConflictError as error:
        if error.reason_code != "REQUEST_EXISTS":
            raise
    return request_id


def title_of(prompt: str) -> str:
    """Return a prompt's first line with something in it, as a title: without marks of a heading, and not too long."""
    lines = (UNCLEAN.sub(" ", line).strip().lstrip("#").strip() for line in prompt.splitlines())
    first = " ".join(next(filter(None, lines), "").split())
    return first if len(first) <= TITLE_CHARACTERS else f"{first[: TITLE_CHARACTERS - 1].rstrip()}…"
