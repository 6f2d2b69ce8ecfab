"""What older versions left in the store: tasks that a terminal recorded there for itself (`is_private`).

They put the work of `aiflow run` and `aiflow auto` into a shared store, in a form that no runner finds, and claimed it
themselves. No other process ever carries out such a task. One at work ends as any whose runner is gone; one that its
terminal never came to is ended here.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from aiflow.adapters.dynamo.client import ConditionFailedError
from aiflow.adapters.dynamo.queue.calls import ItemChange
from aiflow.adapters.dynamo.queue.finish import Finishing
from aiflow.adapters.dynamo.queue.items import is_of_terminal, is_readable, task_of
from aiflow.domain.lifecycle import TASK_TRANSITIONS, TaskEvent, TaskStatus
from aiflow.domain.queue.task import RUNNER_LOST, TaskEnd, message_of, stamp

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.adapters.dynamo.queue.calls import Item, ItemTable
    from aiflow.adapters.dynamo.queue.guards import Guards

_QUEUED = TaskStatus.QUEUED
_UNNAMED = "terminal"  # the first of them did not say whose they were


def is_left_by_terminal(item: Item) -> bool:
    """Return whether an item is a task that waits for a terminal of an older version."""
    return is_readable(item) and is_of_terminal(item) and item["status"] == _QUEUED


def end_left_by_terminal(tasks: ItemTable, guards: Guards, item: Item, now: datetime) -> None:
    """End a task that waits for a terminal of an older version, claimed in that one's name, as lost.

    Only what is at work can be lost, and to cancel it would be a decision that stops its request's run. A kill between
    the two writes leaves it to a reaper. The terminal itself, if it still comes, is refused.
    """
    owner, token = item.get("claimed_by") or _UNNAMED, secrets.token_hex(8)
    sets = {
        "status": TASK_TRANSITIONS[_QUEUED, TaskEvent.CLAIMED],
        "claimed_by": owner,
        "claim_token": token,
        "updated_at": stamp(now),
    }
    change = ItemChange("#status = :queued AND #is_private = :yes", {"queued": _QUEUED, "yes": True}, sets)
    try:
        claimed = tasks.change(guards.namespace, item["task_id"], change)
    except ConditionFailedError:  # refused by its own first try, or somebody was quicker
        claimed = tasks.get(guards.namespace, item["task_id"]) or {}
        if claimed.get("claim_token") != token:
            return
    Finishing(tasks, guards).end(task_of(claimed), TaskEnd(TaskEvent.FAILED, message_of(RUNNER_LOST, owner)), now)
