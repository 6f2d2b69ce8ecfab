"""Settle what a new run goes through (RUN-17, RUN-18): a flag counts most, then the request, then the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.runs.course import Course
from aiflow.settings import Source
from aiflow.settings.table import ALWAYS

if TYPE_CHECKING:
    from aiflow.domain.request import Request
    from aiflow.settings import Settings
    from aiflow.usecases.engine import Engine


def course_of(engine: Engine, request: Request) -> Course:
    """Return what a run of a request goes through; without tests there is nothing to run on its base."""
    settings, wishes = engine.settings, request.wishes
    return Course(
        has_baseline=bool(engine.test_commands) and _is_on(settings, "tests.baseline", wish=wishes.baseline),
        has_plan=_is_on(settings, "agent.plan", wish=wishes.plan),
        has_review=_is_on(settings, "agent.review", wish=wishes.review),
    )


def _is_on(settings: Settings, name: str, *, wish: bool | None) -> bool:
    """Return whether a part is wanted: by the call, else by the request, else by the settings."""
    if wish is not None and settings.sources[name] is not Source.FLAG:
        return wish
    return settings.values[name] in (True, ALWAYS)
