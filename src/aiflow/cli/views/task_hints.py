"""The task that a run is worked on for, in the commands of this project; no store is asked for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.next_action import ActionKind, NextAction

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.run_summary import TaskRef


def task_action(session: CliSession, kind: ActionKind, task: TaskRef) -> NextAction:
    """Return what to do about a task, with its namespace where that is not the project's own."""
    from aiflow.wiring import namespace_of

    is_own = task.namespace == namespace_of(session.project, session.settings)
    action = NextAction(kind, task_id=task.task_id)
    return action if is_own else action.having(namespace=task.namespace)


def task_fact(session: CliSession, task: TaskRef | None) -> str:
    """Name a run's task and how to see it; empty if it has none."""
    if task is None:
        return ""
    return session.texts("show.task", task_id=task.task_id, command=task_action(session, ActionKind.QUEUE_SHOW, task))
