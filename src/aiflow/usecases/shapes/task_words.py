"""What a task is for and its standing, in words: for the terminal and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.queue.delivery import STEP_ID
from aiflow.domain.queue.task import TaskAction
from aiflow.domain.queue.why_waiting import standing_of
from aiflow.domain.untrusted import reveal

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from aiflow.domain.queue.task import Task
    from aiflow.domain.queue.why_waiting import QueueScene
    from aiflow.messages import Texts


def work_of(task: Task, texts: Texts) -> str:
    """Say what a task is for, in a few words."""
    if task.action is TaskAction.PROMPT:
        lines = reveal(task.prompt).strip().splitlines()
        return texts("task.prompt", text=lines[0] if lines else "…")
    step = f" {task.options[STEP_ID]}" if task.options.get(STEP_ID) else ""
    return texts(f"task.{task.action}", request_id=task.request_id + step)


def remark_on(task: Task, scene: QueueScene, texts: Texts, ago: Callable[[datetime], str]) -> str:
    """Say why a task is not taken, who works on it, or how it ended; `ago` says how long ago a moment was."""
    standing = standing_of(task, scene)
    if standing is not None:
        since = standing.facts.get("since", scene.now)
        return texts(f"standing.{standing.code}", **{**standing.facts, "since": ago(since)})  # type: ignore[arg-type]
    parts = [task.error_message or ""]
    if task.successor:
        parts.append(texts("task.goes_on", task_id=task.successor))
    if way := scene.ways.get(task.task_id):
        where = {"where": way.where.id} if way.where else {}
        parts.append(texts("task.next_there" if where else "task.next", command=way.action, **where))
    return " · ".join(filter(None, parts))
