"""The queue of a checkout as plain data (SPEC §11): auto-run, what is queued, and whether the store answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.domain.lifecycle import TaskStatus
from aiflow.usecases.shapes.auto import auto_report_shape
from aiflow.usecases.shapes.errors import error_shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.domain.auto.summary import AutoReport
    from aiflow.errors import AiflowError
    from aiflow.messages import Texts


def queue_shape(
    auto: AutoReport, store: str, namespace: str, found: Mapping[TaskStatus, int] | AiflowError, texts: Texts
) -> dict[str, Any]:
    """Auto-run, the store and what to do where it does not answer, and what is queued: `null` if unknown."""
    error, counts = None, None
    if isinstance(found, Exception):
        error = error_shape(found, texts)["error"]
    else:
        counts = {status.value: found.get(status, 0) for status in TaskStatus}
    return {
        "auto": auto_report_shape(auto),
        "store": {"name": store, "is_answering": error is None, "error": error},
        "namespace": namespace,
        "counts": counts,
        "total": None if counts is None else sum(counts.values()),
    }
