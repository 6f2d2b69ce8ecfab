"""Why a request does not run (SEL-5): every barrier at once, down to the roots, each with its command."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiflow.domain.backlog.explanation import Station, explain
from aiflow.domain.backlog.selection import Backlog, find_barriers
from aiflow.domain.lock import Lock, LockType
from aiflow.domain.request import InvalidRequest, Problem, ProblemKind, RequestId
from aiflow.domain.run_summary import RunSummary
from aiflow.messages.commands import command_line
from builders import backlog, request, request_lock, run, typed


def why(request_id: str, chosen: Backlog) -> tuple[Station, ...]:
    return explain(RequestId(request_id), chosen)


def codes(station: Station) -> list[str]:
    return [barrier.reason_code for barrier in station.barriers]


def tree(stations: tuple[Station, ...]) -> list[tuple[str, int, str | None]]:
    return [(station.request_id, station.depth, station.waited_for_by) for station in stations]


def broken(request_id: str, kind: ProblemKind = ProblemKind.EMPTY) -> InvalidRequest:
    return InvalidRequest(RequestId(request_id), f"requests/{request_id}.md", (Problem(kind),))


# --- one request -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("SEL-5")
def test_every_barrier_of_a_request_is_told_at_once() -> None:
    chosen = backlog(
        request("A", "draft", depends_on=["B", "X", "Y"]),
        request("B", depends_on=["A"]),
        locks=request_lock("A"),
        runs={RequestId("A"): run("NEEDS_INPUT", "UNIT_TEST_FAILED")},
        queue_lock=Lock(LockType.QUEUE, pid=7),
    )
    first = why("A", chosen)[0]
    assert codes(first) == [
        "NOT_READY",
        "DEPENDS_CYCLE",
        "DEPENDS_NOT_FOUND",
        "DEPENDS_NOT_DONE",
        "REQUEST_LOCKED",
        "LATEST_RUN_NEEDS_INPUT",
    ]
    assert first.barriers == tuple(find_barriers(chosen.by_id[RequestId("A")], chosen))
    assert dict(first.barriers[2].facts)["ids"] == "X, Y"


@pytest.mark.spec("SEL-5")
def test_a_runnable_request_has_no_barrier_unless_auto_run_holds_the_queue() -> None:
    (station,) = why("A", backlog(request("A", depends_on=["B"]), request("B", "done")))
    assert (codes(station), station.waits_for, station.actions) == ([], (), ())
    (station,) = why("A", backlog(request("A"), queue_lock=Lock(LockType.QUEUE, pid=7)))
    assert (codes(station), station.actions) == (["QUEUE_LOCKED"], ())


@pytest.mark.spec("SEL-5")
def test_what_is_done_waits_for_nothing() -> None:
    held = Lock(LockType.QUEUE, pid=7)
    (station,) = why("A", backlog(request("A", "done", depends_on=["B", "X"]), request("B", "draft"), queue_lock=held))
    assert (codes(station), station.waits_for, station.actions, station.is_root) == ([], (), (), True)


@pytest.mark.spec("SEL-5")
def test_a_request_that_does_not_exist_has_no_explanation() -> None:
    assert why("X", backlog(request("A", depends_on=["X"]))) == ()


@pytest.mark.spec("SEL-5", "REQ-4")
@pytest.mark.parametrize(
    ("kind", "code"), [(ProblemKind.BAD_YAML, "REQUEST_INVALID"), (ProblemKind.SAME_ID, "DUPLICATE_ID")]
)
def test_a_broken_file_is_explained_with_its_problems(kind: ProblemKind, code: str) -> None:
    (station,) = why("X", backlog(invalid=(broken("X", kind),)))
    assert (codes(station), station.invalid, station.request) == ([code], (broken("X", kind),), None)


# --- down to the roots -----------------------------------------------------------------------------------------------


@pytest.mark.spec("SEL-5")
def test_the_chain_of_the_specification() -> None:
    stopped = run("NEEDS_INPUT", "UNIT_TEST_FAILED")
    chosen = backlog(
        request("RQ-9", depends_on=["RQ-4"]),
        request("RQ-4", "blocked", depends_on=["RQ-1"]),
        request("RQ-1", "done"),
        runs={RequestId("RQ-4"): stopped},
    )
    nine, four = why("RQ-9", chosen)
    assert (nine.waits_for, nine.is_root, nine.actions) == (("RQ-4",), False, ())
    assert codes(nine) == ["DEPENDS_NOT_DONE"]
    assert (four.waited_for_by, four.is_root, four.run) == ("RQ-9", True, stopped)
    assert codes(four) == ["NOT_READY", "LATEST_RUN_NEEDS_INPUT"]
    assert typed(*four.actions) == ("aiflow retry-step RQ-4",)
    assert typed(four.by_hand) == ("aiflow resume RQ-4 --keep-changes",)
    assert nine.by_hand is None


@pytest.mark.spec("SEL-5", "RUN-4")
def test_the_cause_of_a_reached_limit_is_told_and_not_the_limit() -> None:
    stopped = run("NEEDS_INPUT", "RETRY_LIMIT_EXCEEDED")._replace(cause="UNIT_TEST_FAILED")
    station = why("A", backlog(request("A", "blocked"), runs={RequestId("A"): stopped}))[0]
    assert station.stopped_for == "UNIT_TEST_FAILED"
    assert dict(station.barriers[-1].facts)["reason"] == "UNIT_TEST_FAILED"
    alone = why("A", backlog(request("A", "blocked"), runs={RequestId("A"): stopped._replace(cause=None)}))[0]
    assert alone.stopped_for == "RETRY_LIMIT_EXCEEDED"
    assert alone.by_hand is None


@pytest.mark.spec("SEL-5")
def test_the_way_goes_depth_first_in_the_order_of_the_dependencies() -> None:
    chosen = backlog(
        request("A", depends_on=["C", "B", "D"]),
        request("B", depends_on=["E"]),
        request("C", depends_on=["F"]),
        request("D", "done"),
        request("E", "draft"),
        request("F", "archived"),
    )
    assert tree(why("A", chosen)) == [("A", 0, None), ("C", 1, "A"), ("F", 2, "C"), ("B", 1, "A"), ("E", 2, "B")]


@pytest.mark.spec("SEL-5")
def test_missing_and_broken_dependencies_are_roots() -> None:
    chosen = backlog(request("A", depends_on=["X", "Y", "Z"]), invalid=(broken("Y"), broken("Z", ProblemKind.SAME_ID)))
    first, *roots = why("A", chosen)
    assert first.waits_for == ("X", "Y", "Z")
    assert [codes(root) for root in roots] == [["DEPENDS_NOT_FOUND"], ["REQUEST_INVALID"], ["DUPLICATE_ID"]]
    assert dict(roots[0].barriers[0].facts) == {"ids": "X"}
    assert all(root.is_root and root.actions == () and root.request is None for root in roots)


@pytest.mark.spec("SEL-5", "REQ-4")
@pytest.mark.parametrize("length", [1, 2, 3, 40])
def test_a_circle_is_walked_once(length: int) -> None:
    circle = [request(f"C{n:02d}", depends_on=[f"C{(n + 1) % length:02d}"]) for n in range(length)]
    stations = why("OUT", backlog(request("OUT", depends_on=["C00"]), *circle))
    assert [station.request_id for station in stations] == ["OUT", *(each.id for each in circle)]
    assert all("DEPENDS_CYCLE" in codes(station) for station in stations[1:])
    assert {typed(*station.actions) for station in stations[1:]} == {
        (f"aiflow set {each.id} depends_on=",) for each in circle
    }


@pytest.mark.spec("SEL-5")
def test_a_request_that_many_wait_for_is_told_once() -> None:
    levels = 20  # two ways at each level: a million ways in all
    requests = [
        request(f"{side}{n}", depends_on=[f"L{n + 1}", f"R{n + 1}"] if n < levels else [])
        for n in range(levels + 1)
        for side in "LR"
    ]
    stations = why("L0", backlog(*requests))
    assert len(stations) == len({station.request_id for station in stations}) == 2 * levels + 1


@pytest.mark.spec("SEL-5")
def test_a_long_chain_and_a_huge_circle_need_no_deep_recursion() -> None:
    size = 20_000
    chain = [request(f"R{n}", depends_on=[f"R{n + 1}"]) for n in range(size)]
    stations = why("R0", backlog(*chain, request(f"R{size}", "draft")))
    assert [station.depth for station in stations] == list(range(size + 1))
    assert typed(*stations[-1].actions) == (f"aiflow set R{size} status=ready",)
    circle = [*chain[:2_000], request("R2000", depends_on=["R0"])]
    assert len(why("R7", backlog(*circle))) == len(circle)


# --- the command that mends ------------------------------------------------------------------------------------------


def command_of(status: str, *depends_on: str, runs: RunSummary | None = None) -> str | None:
    chosen = backlog(
        request("A", status, depends_on=depends_on),
        request("B", "draft"),
        request("D", "done"),
        invalid=(broken("I"),),
        runs={RequestId("A"): runs} if runs else {},
    )
    return " + ".join(map(command_line, why("A", chosen)[0].actions)) or None


@pytest.mark.spec("SEL-5")
@pytest.mark.parametrize(
    ("status", "depends_on", "command"),
    [
        ("draft", "", "aiflow set A status=ready"),
        ("blocked", "", "aiflow set A status=ready"),
        ("archived", "", "aiflow set A status=ready"),
        ("draft", "X", "aiflow set A status=ready + aiflow set A depends_on="),
        ("running", "", "aiflow set A status=ready"),  # by hand: no run works on it
        ("ready", "", None),
        ("ready", "B", None),
        ("ready", "I", None),
        ("done", "X", None),
        ("ready", "X", "aiflow set A depends_on="),
        ("ready", "X Y", "aiflow set A depends_on="),
        ("ready", "X D B", "aiflow set A depends_on=D,B"),
        ("ready", "A", "aiflow set A depends_on="),
        ("ready", "D A X B", "aiflow set A depends_on=D,B"),
    ],
)
def test_the_command_for_a_request_that_never_ran(status: str, depends_on: str, command: str | None) -> None:
    assert command_of(status, *depends_on.split()) == command


@pytest.mark.spec("SEL-5", "RUN-4", "RUN-8", "REQ-6", "GIT-3")
@pytest.mark.parametrize(
    ("status", "summary", "command"),
    [
        ("blocked", run("NEEDS_INPUT", "WORKTREE_DIRTY"), "aiflow resume A"),
        ("blocked", run("NEEDS_INPUT", "UNIT_TEST_FAILED"), "aiflow retry-step A"),
        ("blocked", run("NEEDS_INPUT", "STEP_TOO_LARGE"), "aiflow replan A"),
        ("blocked", run("NEEDS_INPUT", "NEEDS_CLARIFICATION"), 'aiflow resume A --answer "…"'),
        ("blocked", run("NEEDS_INPUT", "RETRY_LIMIT_EXCEEDED"), "aiflow replan A"),
        ("blocked", run("NEEDS_INPUT", "RETRY_LIMIT_EXCEEDED")._replace(cause="QA_REJECTED"), "aiflow retry-step A"),
        ("blocked", run("NEEDS_INPUT", "SETTINGS_INVALID"), None),
        ("blocked", run("NEEDS_INPUT"), "aiflow resume A"),
        ("ready", run("NEEDS_INPUT", "UNIT_TEST_FAILED"), "aiflow retry-step A"),
        ("blocked", run("DONE"), "aiflow accept A"),
        ("blocked", run("DONE", "AWAITING_ACCEPTANCE"), "aiflow accept A"),
        ("blocked", run("DONE", "CHECKOUT_IN_THE_WAY"), "aiflow accept A"),
        ("blocked", run("DONE", "MERGE_CONFLICT"), "aiflow resume A --update"),
        ("blocked", run("FAILED", "INTERNAL_ERROR"), "aiflow set A status=ready"),
        ("blocked", run("FAILED", "RUN_LOST"), "aiflow set A status=ready"),
        ("blocked", run("FAILED", "SENT_BACK"), "aiflow set A status=ready"),
        ("blocked", run("FAILED"), "aiflow set A status=ready"),
        ("draft", run("FAILED", "INTERNAL_ERROR"), "aiflow set A status=ready"),
        ("draft", run("DONE"), "aiflow set A status=ready"),
        ("running", run("TESTING"), None),
        ("ready", run("TESTING"), None),
        ("ready", run("DONE"), None),
        ("ready", run("FAILED", "INTERNAL_ERROR"), None),
    ],
)
def test_the_command_for_a_request_with_a_run_is_its_way_on(
    status: str, summary: RunSummary, command: str | None
) -> None:
    assert command_of(status, runs=summary) == command


@pytest.mark.spec("SEL-5", "REQ-5", "AUT-3")
@pytest.mark.parametrize("dead_lock", [False, True])
def test_a_lost_run_is_explained_alike_before_and_behind_its_blocking(*, dead_lock: bool) -> None:
    waiting = request("B", depends_on=["A"])
    name = RequestId("A")
    cut = {"interrupted": frozenset({name}), "lost": frozenset({name})}
    locked = {"locks": request_lock("A"), "dead_locks": frozenset({name})} if dead_lock else {}
    before = why("B", backlog(request("A", "running"), waiting, **locked, **cut))[1]
    after = why("B", backlog(request("A", "blocked"), waiting, runs={name: run("FAILED", "RUN_LOST")}))[1]
    for station in (before, after):
        assert (codes(station)[0], codes(station)[-1]) == ("NOT_READY", "RUN_LOST")
        assert station.stopped_for == "RUN_LOST"
        assert typed(*station.actions) == ("aiflow set A status=ready",)


@pytest.mark.spec("SEL-5", "REQ-4")
def test_the_command_opens_the_circle_also_in_a_knot_too_large_to_name_each_own_circle() -> None:
    size = 300
    ring = [request(f"C{n}", depends_on=["D", f"C{(n + 1) % size}"]) for n in range(size)]
    side = request("SIDE", depends_on=["C5", "D"])
    ring[7] = request("C7", depends_on=["C8", "SIDE", "D"])
    for station in why("C0", backlog(*ring, side, request("D", "done"))):
        assert "DEPENDS_CYCLE" in codes(station)
        assert typed(*station.actions) == (f"aiflow set {station.request_id} depends_on=D",)


# --- properties ------------------------------------------------------------------------------------------------------

IDS = [f"R{number}" for number in range(7)]
fields = st.tuples(
    st.sampled_from(["ready", "ready", "draft", "running", "blocked", "done"]),
    st.lists(st.sampled_from(IDS), max_size=3),
)


@pytest.mark.spec("SEL-5")
@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(IDS), fields, min_size=1))
def test_exactly_what_a_request_waits_for_is_told_each_once_and_under_one_that_waits(
    chosen: dict[str, tuple[str, list[str]]],
) -> None:
    whole = backlog(*(request(i, status, depends_on=wanted) for i, (status, wanted) in chosen.items()))
    start = next(iter(chosen))
    stations = why(start, whole)
    depths = {station.request_id: station.depth for station in stations}
    assert len(depths) == len(stations)
    assert set(depths) == waited_for(start, chosen)
    for station in stations[1:]:
        parent = station.waited_for_by
        assert parent is not None
        assert station.depth == depths[parent] + 1
        assert station.request_id in chosen[parent][1]


def waited_for(start: str, chosen: dict[str, tuple[str, list[str]]]) -> set[str]:
    """Everything that can be reached without passing something done."""
    found = [start]
    for each in found:  # grows while it is walked
        status, wanted = chosen.get(each, ("missing", []))
        if status != "done":
            found.extend(w for w in wanted if w not in found and chosen.get(w, ("missing",))[0] != "done")
    return set(found)
