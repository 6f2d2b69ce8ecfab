"""Prompts that are too large for a task's own item, in separate items (QUE-9).

They are named by their task and their content: two that write under one task id, for different work, cannot mix.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.errors import EnvironmentProblemError

if TYPE_CHECKING:
    from aiflow.adapters.dynamo.queue.calls import Item, ItemTable


@dataclass(frozen=True, slots=True)
class Prompts:
    """The large prompts of one namespace."""

    table: ItemTable
    namespace: str

    def put(self, task_id: str, text: str) -> str:
        """Keep a prompt and return the digest that names it; the same one again changes nothing."""
        digest = digest_of(text)
        self.table.put({"namespace": self.namespace, "task_id": f"{task_id}#{digest}", "prompt": text})
        return digest

    def get(self, task: Item) -> str:
        """Return all of the prompt of a task's item; PROMPT_LOST if only its beginning is there."""
        if "prompt_digest" not in task:
            return str(task.get("prompt", ""))
        kept = self.table.get(self.namespace, f"{task['task_id']}#{task['prompt_digest']}")
        if kept is None:
            about = {"task_id": task["task_id"], "table": self.table.name}
            raise EnvironmentProblemError(reason_code="PROMPT_LOST", **about)
        return str(kept["prompt"])


def digest_of(text: str) -> str:
    """Return what distinguishes prompts of one task id."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
