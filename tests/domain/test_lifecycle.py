"""Lifecycle (RUN-2, REQ-5, QUE-3, ISS-2, AUT-1): the whole grid of every table, and how a run shows elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import pytest

from aiflow.domain.lifecycle import (
    ACTIVE_RUN_STATES,
    AUTO_RUN_TRANSITIONS,
    ENGINE_TRANSITIONS,
    ISSUE_TRANSITIONS,
    PERSON_EVENTS,
    PROJECTIONS,
    REQUEST_TRANSITIONS,
    RUN_TRANSITIONS,
    TASK_TRANSITIONS,
    AutoRunEvent,
    AutoRunState,
    IssueEvent,
    IssueLabel,
    RequestEvent,
    RunEvent,
    RunOutcome,
    RunState,
    TaskEvent,
    TaskStatus,
    advance,
    final_states,
    outcome_of,
)
from aiflow.domain.reasons import CATALOGUE
from aiflow.domain.request import RequestStatus
from aiflow.errors import TransitionError

# What the specification says, stated a second time: state, event, next state.
ENGINE_ROWS = """
    ready    started    running
    running  stopped    blocked
    running  lost       blocked
    running  accepted   done
    blocked  accepted   done
    blocked  resumed    running
    blocked  sent_back  ready
    done     undone     blocked
"""
PERSON_MAY_SET = ("draft", "ready", "blocked", "done", "archived")

RUN_ROWS = """
    INIT          PLANNING_STARTED     PLANNING
    PLANNING      PLANNED              IMPLEMENTING
    PLANNING      ATTEMPT_FAILED       PLANNING
    IMPLEMENTING  IMPLEMENTED          TESTING
    IMPLEMENTING  ATTEMPT_FAILED       IMPLEMENTING
    TESTING       ATTEMPT_FAILED       IMPLEMENTING
    PLANNING      QUOTA_WAIT           PLANNING
    IMPLEMENTING  QUOTA_WAIT           IMPLEMENTING
    TESTING       QUOTA_WAIT           TESTING
    PLANNING      QUOTA_BACK           PLANNING
    IMPLEMENTING  QUOTA_BACK           IMPLEMENTING
    TESTING       QUOTA_BACK           TESTING
    PLANNING      TEXT_WITHHELD        PLANNING
    IMPLEMENTING  TEXT_WITHHELD        IMPLEMENTING
    TESTING       TEXT_WITHHELD        TESTING
    TESTING       REVIEW_FAILED        TESTING
    TESTING       STEP_DONE            IMPLEMENTING
    TESTING       LAST_STEP_DONE       REPORTING
    INIT          BASE_MERGED          TESTING
    PLANNING      BASE_MERGED          TESTING
    INIT          BASE_CONFLICTS       IMPLEMENTING
    PLANNING      BASE_CONFLICTS       IMPLEMENTING
    TESTING       IN_LINE              PLANNING
    REPORTING     REPORTED             DONE

    INIT          NEEDS_INPUT          NEEDS_INPUT
    PLANNING      NEEDS_INPUT          NEEDS_INPUT
    IMPLEMENTING  NEEDS_INPUT          NEEDS_INPUT
    TESTING       NEEDS_INPUT          NEEDS_INPUT
    REPORTING     NEEDS_INPUT          NEEDS_INPUT
    INIT          FAILED               FAILED
    PLANNING      FAILED               FAILED
    IMPLEMENTING  FAILED               FAILED
    TESTING       FAILED               FAILED
    REPORTING     FAILED               FAILED

    INIT          RECOVERED            INIT
    PLANNING      RECOVERED            PLANNING
    IMPLEMENTING  RECOVERED            IMPLEMENTING
    TESTING       RECOVERED            TESTING
    REPORTING     RECOVERED            REPORTING

    NEEDS_INPUT   RESUMED_AT_PLANNING  PLANNING
    NEEDS_INPUT   RESUMED_AT_STEP      IMPLEMENTING
    NEEDS_INPUT   RESUMED_AT_TESTS     TESTING
    NEEDS_INPUT   RESUMED_AT_REPORT    REPORTING
    NEEDS_INPUT   REPLACED             FAILED
    NEEDS_INPUT   SENT_BACK            FAILED
    FAILED        RESUMED_AT_PLANNING  PLANNING
    FAILED        RESUMED_AT_STEP      IMPLEMENTING
    FAILED        RESUMED_AT_TESTS     TESTING
    FAILED        RESUMED_AT_REPORT    REPORTING
    FAILED        REPLACED             FAILED
    FAILED        SENT_BACK            FAILED

    DONE          ACCEPTING            DONE
    DONE          ACCEPTED             DONE
    DONE          NOT_ACCEPTED         DONE
    DONE          UNDONE               DONE
    DONE          SENT_BACK            FAILED
    DONE          RESUMED_AT_STEP      IMPLEMENTING
    DONE          RESUMED_AT_TESTS     TESTING
"""

# QUEUE's own table: the states that may follow each state; the event is the one that leads there.
TASK_MAY_BECOME = {
    "QUEUED": ("RUNNING", "CANCELLED"),
    "RUNNING": ("COMPLETE", "ERROR", "CANCELLED"),
    "COMPLETE": (),
    "ERROR": (),
    "CANCELLED": (),
}
TASK_EVENT = {"RUNNING": "claimed", "COMPLETE": "completed", "ERROR": "failed", "CANCELLED": "cancelled"}

ISSUE_ROWS = """
    -              queued     agent:queued
    agent:queued   started    agent:running
    agent:retry    started    agent:running
    agent:queued   blocked    agent:blocked
    agent:retry    blocked    agent:blocked
    agent:running  blocked    agent:blocked
    agent:blocked  retried    agent:retry
    agent:running  retried    agent:retry
    agent:blocked  queued     agent:queued
    agent:queued   withdrawn  -
    agent:retry    withdrawn  -
    agent:running  withdrawn  -
    agent:blocked  withdrawn  -
    agent:queued   closed     -
    agent:running  closed     -
    agent:blocked  closed     -
    agent:retry    closed     -
"""

AUTO_ROWS = """
    idle       started       selecting
    stopped    started       selecting
    completed  started       selecting
    selecting  run_started   running
    selecting  wait_began    waiting
    selecting  nothing_left  completed
    running    run_ended     selecting
    running    wait_began    waiting
    waiting    wait_ended    selecting
    waiting    run_started   running
    selecting  stop_asked    stopping
    running    stop_asked    stopping
    waiting    stop_asked    stopping
    stopping   run_ended     stopping
    stopping   wait_began    stopping
    stopping   wait_ended    stopping
    stopping   stop_asked    stopping
    selecting  stopped       stopped
    running    stopped       stopped
    waiting    stopped       stopped
    stopping   stopped       stopped
"""

Rows = Mapping[tuple[str, str], str]


def read_rows(text: str) -> dict[tuple[str, str], str]:
    cells = [["" if cell == "-" else cell for cell in line.split()] for line in text.splitlines() if line.strip()]
    return {(state, event): target for state, event, target in cells}


class Machine(NamedTuple):
    states: type[StrEnum]
    events: type[StrEnum]
    table: Mapping[Any, Any]
    expected: Rows
    start: str
    final: frozenset[str] = frozenset()


PERSON_ROWS = {
    (state.value, f"set_{target}"): target for state in RequestStatus for target in PERSON_MAY_SET if target != state
}
TASK_ROWS = {(state, TASK_EVENT[after]): after for state, afters in TASK_MAY_BECOME.items() for after in afters}

MACHINES = {
    "request": Machine(
        RequestStatus, RequestEvent, REQUEST_TRANSITIONS, read_rows(ENGINE_ROWS) | PERSON_ROWS, start="draft"
    ),
    "run": Machine(RunState, RunEvent, RUN_TRANSITIONS, read_rows(RUN_ROWS), start="INIT"),
    "task": Machine(
        TaskStatus,
        TaskEvent,
        TASK_TRANSITIONS,
        TASK_ROWS,
        start="QUEUED",
        final=frozenset({"COMPLETE", "ERROR", "CANCELLED"}),
    ),
    "issue": Machine(IssueLabel, IssueEvent, ISSUE_TRANSITIONS, read_rows(ISSUE_ROWS), start=""),
    "auto-run": Machine(AutoRunState, AutoRunEvent, AUTO_RUN_TRANSITIONS, read_rows(AUTO_ROWS), start="idle"),
}
every_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


@pytest.mark.spec("RUN-2", "REQ-5", "QUE-3", "ISS-2", "AUT-1")
@every_machine
def test_every_pair_is_a_row_with_its_target_or_raises(machine: Machine) -> None:
    assert {(str(s), str(e)) for s, e in machine.table} == set(machine.expected)
    for state, event in itertools.product(machine.states, machine.events):
        target = machine.expected.get((state.value, event.value))
        if target is not None:
            assert advance(machine.table, state, event) is machine.states(target)
            continue
        with pytest.raises(TransitionError) as refused:
            advance(machine.table, state, event)
        assert refused.value.context == {"state": state.value, "event": event.value}
        assert refused.value.reason_code == "TRANSITION_NOT_ALLOWED"


@pytest.mark.spec("RUN-2", "QUE-3")
@every_machine
def test_final_states_are_derived_and_no_other_state_is_a_dead_end(machine: Machine) -> None:
    without_a_way_out = {state for state in machine.states if not any(before is state for before, _ in machine.table)}
    assert final_states(machine.table) == machine.final == without_a_way_out


@pytest.mark.spec("RUN-2", "REQ-5", "QUE-3", "ISS-2", "AUT-1")
@every_machine
def test_every_state_can_be_reached_and_every_event_happens_somewhere(machine: Machine) -> None:
    assert reachable(machine.start, machine.table) == set(machine.states)
    assert {event for _, event in machine.table} == set(machine.events)


def reachable(start: str, table: Mapping[Any, Any]) -> set[str]:
    seen, found = {start}, [start]
    for state in found:  # grows while it is walked
        for (before, _), after in table.items():
            if before == state and after not in seen:
                seen.add(after)
                found.append(after)
    return seen


# --- request ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("REQ-5")
def test_aiflow_itself_has_exactly_the_rows_of_the_specification() -> None:
    assert {(str(s), str(e)): str(t) for (s, e), t in ENGINE_TRANSITIONS.items()} == read_rows(ENGINE_ROWS)


@pytest.mark.spec("REQ-5")
def test_draft_and_archived_are_the_users_alone() -> None:
    touched = {state for (before, _), after in ENGINE_TRANSITIONS.items() for state in (before, after)}
    assert touched == {"ready", "running", "blocked", "done"}


@pytest.mark.spec("REQ-5")
def test_a_person_may_set_every_status_but_running_from_every_other() -> None:
    assert set(PERSON_EVENTS) == set(RequestStatus) - {RequestStatus.RUNNING}
    for state, (target, event) in itertools.product(RequestStatus, PERSON_EVENTS.items()):
        if state is not target:
            assert advance(REQUEST_TRANSITIONS, state, event) is target
    assert not set(PERSON_EVENTS.values()) & {event for _, event in ENGINE_TRANSITIONS}


# --- run -------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-2")
def test_a_working_run_can_stop_at_any_moment_and_a_stopped_one_still_reach_done() -> None:
    assert {"INIT", "PLANNING", "IMPLEMENTING", "TESTING", "REPORTING"} == ACTIVE_RUN_STATES
    for state in ACTIVE_RUN_STATES:
        assert advance(RUN_TRANSITIONS, state, RunEvent.NEEDS_INPUT) is RunState.NEEDS_INPUT
        assert advance(RUN_TRANSITIONS, state, RunEvent.FAILED) is RunState.FAILED
    for state in set(RunState) - ACTIVE_RUN_STATES - {RunState.DONE}:
        assert "DONE" in reachable(state, RUN_TRANSITIONS)


@pytest.mark.spec("RUN-2", "RUN-3")
def test_a_run_of_two_steps_walks_through_the_states() -> None:
    walk = ["PLANNING_STARTED", "PLANNED", "IMPLEMENTED", "STEP_DONE", "IMPLEMENTED", "LAST_STEP_DONE", "REPORTED"]
    state, states = RunState.INIT, []
    for event in walk:
        state = advance(RUN_TRANSITIONS, state, RunEvent(event))
        states.append(state.value)
    assert states == ["PLANNING", "IMPLEMENTING", "TESTING", "IMPLEMENTING", "TESTING", "REPORTING", "DONE"]


@pytest.mark.spec("RUN-11")
def test_recovery_goes_on_where_the_run_was() -> None:
    for state in ACTIVE_RUN_STATES:
        assert advance(RUN_TRANSITIONS, state, RunEvent.RECOVERED) is state


# --- how a run shows elsewhere ---------------------------------------------------------------------------------------

SHOWN = {
    "active": ("running", "RUNNING", "agent:running"),
    "awaiting_acceptance": ("blocked", "COMPLETE", "agent:running"),
    "accepted": ("done", "COMPLETE", ""),
    "needs_input": ("blocked", "ERROR", "agent:blocked"),
    "cancelled": ("blocked", "CANCELLED", "agent:blocked"),
    "failed": ("blocked", "ERROR", "agent:blocked"),
    "sent_back": ("ready", "ERROR", "agent:retry"),
}


@pytest.mark.spec("QUE-4", "REQ-5", "REQ-6", "ISS-9")
def test_every_outcome_shows_as_request_task_and_label() -> None:
    assert set(PROJECTIONS) == set(RunOutcome)
    assert {outcome.value: tuple(map(str, shown)) for outcome, shown in PROJECTIONS.items()} == SHOWN


@pytest.mark.spec("QUE-4", "REQ-5", "ISS-2")
def test_what_is_shown_is_what_a_row_leads_to() -> None:
    for shown in PROJECTIONS.values():
        assert shown.request in ENGINE_TRANSITIONS.values()
        assert shown.task in TASK_TRANSITIONS.values()
        assert shown.label in ISSUE_TRANSITIONS.values()


@pytest.mark.spec("QUE-4", "RUN-12", "REQ-6")
@pytest.mark.parametrize("state", RunState)
def test_the_outcome_of_every_state_for_every_reason(state: RunState) -> None:
    special = {("NEEDS_INPUT", "CANCELLED"): "cancelled", ("FAILED", "SENT_BACK"): "sent_back"}
    usual = {"NEEDS_INPUT": "needs_input", "FAILED": "failed"}
    for code, is_accepted in itertools.product([None, *CATALOGUE], [False, True]):
        expected = special.get((state, code or ""), usual.get(state, "active"))
        if state is RunState.DONE:
            expected = "accepted" if is_accepted else "awaiting_acceptance"
        assert outcome_of(state, code, is_accepted=is_accepted) == expected
