"""The page of states and transitions, from `domain/lifecycle.py`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from aiflow.domain import lifecycle
from page_parts import Edition, code, page, table

State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)

LIFECYCLE_INTRO = """
All states and all transitions. A transition that is not in these tables does not exist: aiflow refuses it
(TRANSITION_NOT_ALLOWED). States that no row leads out of are final.

Requests, runs, auto-run and tasks follow these tables today. That of issues is decided and tested, and goes to work
with the issues.
"""
PERSON_INTRO = (
    "With `aiflow set` or in the file, from any status to one of these; only a run makes a request `running`.\n"
)
SHOWN_INTRO = "What a run means to the request, the task and the issue it belongs to. Nothing else translates.\n"


def lifecycle_page(edition: Edition) -> str:
    """Return the tables of `domain/lifecycle.py`."""
    say = edition.say
    people = lifecycle.PERSON_EVENTS.items()
    outcomes = lifecycle.PROJECTIONS.items()
    return page(
        say("lifecycle", "Lifecycle"),
        say("lifecycle.intro", LIFECYCLE_INTRO),
        _machine(say("life.request", "Request, by aiflow"), lifecycle.ENGINE_TRANSITIONS, edition, has_end=False),
        f"## {say('life.person', 'Request, by a person')}\n",
        say("life.person.intro", PERSON_INTRO),
        table(
            edition.headers("life.person.headers", "to", "event"),
            ([code(status), code(event)] for status, event in people),
        ),
        _machine("Run", lifecycle.RUN_TRANSITIONS, edition),
        _machine(say("life.task", "Task in the queue store"), lifecycle.TASK_TRANSITIONS, edition),
        _machine(say("life.issue", "Label of an issue"), lifecycle.ISSUE_TRANSITIONS, edition),
        _machine("Auto-run", lifecycle.AUTO_RUN_TRANSITIONS, edition),
        f"## {say('life.shown', 'How a run shows elsewhere')}\n",
        say("life.shown.intro", SHOWN_INTRO),
        table(
            edition.headers("life.shown.headers", "outcome of the run", "request", "task", "label"),
            (
                [code(name), code(shown.request), code(shown.task), _state(shown.label, edition)]
                for name, shown in outcomes
            ),
        ),
    )


def _machine(
    title: str, transitions: Mapping[tuple[State, Event], State], edition: Edition, *, has_end: bool = True
) -> str:
    """Write one machine: a row per transition, grouped by the state it leaves, and the final states."""
    order = list(dict.fromkeys(state for state, _ in transitions))
    found = sorted(transitions.items(), key=lambda row: order.index(row[0][0]))
    rows = ([_state(a, edition), code(event), _state(b, edition)] for (a, event), b in found)
    lines = table(edition.headers("life.headers", "from", "event", "to"), rows)
    names = ", ".join(sorted(_state(state, edition) for state in lifecycle.final_states(transitions)))
    final = edition.say("life.final", "Final: {names}.").format(names=names or edition.say("life.none", "none"))
    return f"## {title}\n\n{lines}" + (f"\n{final}\n" if has_end else "")


def _state(state: StrEnum, edition: Edition) -> str:
    return code(state) if state.value else edition.say("life.no_label", "no label")
