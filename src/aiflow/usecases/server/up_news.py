"""What a server reports to the person who started it, while it is up (API-1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.errors import AiflowError


class UpNewsKind(StrEnum):
    """What happens while a server is up."""

    ADOPTED = "adopted"
    AT_WORK = "at_work"
    NIGHT_WAS_CUT = "night_was_cut"
    WAS_INTERRUPTED = "was_interrupted"
    CONTINUES = "continues"
    STARTS = "starts"
    START_REFUSED = "start_refused"
    ISSUES_WATCHED = "issues_watched"
    ISSUES_TROUBLE = "issues_trouble"
    ISSUES_BACK = "issues_back"
    WORKER_KILLED = "worker_killed"
    WORKER_REFUSED = "worker_refused"
    RUNNER_STARTED = "runner_started"
    RUNNER_DIED = "runner_died"
    RUNNER_LET_GO = "runner_let_go"
    STOPPING = "stopping"
    STOPPING_NOW = "stopping_now"
    LEFT_AT_WORK = "left_at_work"
    TROUBLE = "trouble"
    TROUBLE_OVER = "trouble_over"


@dataclass(frozen=True, slots=True)
class UpNews:
    """One thing that happened; `facts` are for its words, `error` is what went wrong."""

    kind: UpNewsKind
    facts: Mapping[str, object] = field(default_factory=dict)
    error: AiflowError | None = None
