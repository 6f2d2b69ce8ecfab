"""The queue store of this machine as JSON; its key is in none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.messages import Texts

if TYPE_CHECKING:
    from aiflow.domain.queue.store_obstacles import Obstacles
    from aiflow.ports.tasks import StoreStatus


def store_shape(status: StoreStatus, lack: Obstacles | None = None) -> dict[str, Any]:
    """Return what is known of the store, and what keeps it from running where that was looked for."""
    return {
        "running": status.is_running,
        "endpoint": status.endpoint,
        "how": status.how,
        "pid": status.pid,
        "version": status.version,
        "data": status.data,
        "log": status.log,
        "problem": describe_obstacles(status.problem, Texts("en")) if status.problem else None,
        "lack": describe_obstacles(lack, Texts("en")) if lack else None,
    }


def describe_obstacles(obstacles: Obstacles, texts: Texts) -> str:
    """Say what keeps the store from running."""
    return texts("obstacle.and").join(texts(f"obstacle.{one.kind}", **dict(one.facts)) for one in obstacles.each)
