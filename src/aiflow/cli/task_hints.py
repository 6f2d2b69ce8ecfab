"""The task that a run is worked on for, in the commands of this project; no store is asked for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiflow.cli.session import Session
    from aiflow.domain.run_summary import TaskRef


def queue_command(session: Session, verb: str, task: TaskRef) -> str:
    """Return what to type about a task, with its namespace where that is not the project's own."""
    from aiflow.wiring import namespace_of

    is_own = task.namespace == namespace_of(session.project, session.settings)
    return f"aiflow queue {verb} {task.task_id}" + ("" if is_own else f" --namespace {task.namespace}")


def task_fact(session: Session, task: TaskRef | None) -> str:
    """Name a run's task and how to see it; empty if it has none."""
    if task is None:
        return ""
    return session.texts("show.task", task_id=task.task_id, command=queue_command(session, "show", task))
