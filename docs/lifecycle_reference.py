"""The page of states and transitions, from `domain/lifecycle.py`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from aiflow.domain import lifecycle
from page_parts import code, page, table

State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)

LIFECYCLE_INTRO = """
All states and all transitions. A transition that is not in these tables does not exist: aiflow refuses it
(TRANSITION_NOT_ALLOWED). States that no row leads out of are final.

Requests, runs, auto-run and tasks follow these tables today. That of issues is decided and tested, and goes to work
with the issues.
"""


def lifecycle_page() -> str:
    """Return the tables of `domain/lifecycle.py`."""
    people = lifecycle.PERSON_EVENTS.items()
    outcomes = lifecycle.PROJECTIONS.items()
    return page(
        "Lifecycle",
        LIFECYCLE_INTRO,
        _machine("Request, by aiflow", lifecycle.ENGINE_TRANSITIONS, has_end=False),
        "## Request, by a person\n",
        "With `aiflow set` or in the file, from any status to one of these; only a run makes a request `running`.\n",
        table(["to", "event"], ([code(status), code(event)] for status, event in people)),
        _machine("Run", lifecycle.RUN_TRANSITIONS),
        _machine("Task in the queue store", lifecycle.TASK_TRANSITIONS),
        _machine("Label of an issue", lifecycle.ISSUE_TRANSITIONS),
        _machine("Auto-run", lifecycle.AUTO_RUN_TRANSITIONS),
        "## How a run shows elsewhere\n",
        "What a run means to the request, the task and the issue it belongs to. Nothing else translates.\n",
        table(
            ["outcome of the run", "request", "task", "label"],
            ([code(name), code(shown.request), code(shown.task), _state(shown.label)] for name, shown in outcomes),
        ),
    )


def _machine(title: str, transitions: Mapping[tuple[State, Event], State], *, has_end: bool = True) -> str:
    """Write one machine: a row per transition, grouped by the state it leaves, and the final states."""
    order = list(dict.fromkeys(state for state, _ in transitions))
    rows = sorted(transitions.items(), key=lambda row: order.index(row[0][0]))
    lines = table(["from", "event", "to"], ([_state(a), code(event), _state(b)] for (a, event), b in rows))
    final = ", ".join(sorted(map(_state, lifecycle.final_states(transitions))))
    ending = f"\nFinal: {final or 'none'}.\n" if has_end else ""
    return f"## {title}\n\n{lines}{ending}"


def _state(state: StrEnum) -> str:
    return code(state) if state.value else "no label"
