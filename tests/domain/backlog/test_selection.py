"""Selection (SEL): which request is next, and why the others are not."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.backlog.selection import Backlog, digest, find_barriers, name_cycle, queue_order, select_next
from aiflow.domain.claims import Refusal
from aiflow.domain.lock import Lock, LockType
from aiflow.domain.request import InvalidRequest, Problem, ProblemKind, Request, RequestId
from builders import backlog, request, request_lock, run


def codes(chosen: Backlog, *, include_all: bool = False) -> dict[str, str]:
    return {e.request_id: e.barrier.reason_code for e in select_next(chosen, include_all=include_all).excluded}


def next_id(chosen: Backlog) -> str | None:
    selected = select_next(chosen).next
    return selected.id if selected else None


@pytest.mark.spec("SEL-1")
@pytest.mark.parametrize("status", ["draft", "running", "blocked", "done", "archived"])
def test_only_ready_is_a_candidate(status: str) -> None:
    assert next_id(backlog(request("A", status))) is None
    assert next_id(backlog(request("A", status), request("B"))) == "B"


@pytest.mark.spec("SEL-1", "SEL-3")
@pytest.mark.parametrize("status", ["draft", "ready", "running", "blocked", "archived"])
def test_a_dependency_counts_only_when_its_request_is_done(status: str) -> None:
    waiting = request("A", depends_on=["B"], priority="P0")
    assert codes(backlog(waiting, request("B", status)))["A"] == "DEPENDS_NOT_DONE"
    assert next_id(backlog(waiting, request("B", "done"))) == "A"


@pytest.mark.spec("SEL-1")
def test_a_done_run_does_not_make_a_dependency_done() -> None:
    chosen = backlog(request("A", depends_on=["B"]), request("B", "blocked"), runs={RequestId("B"): run("DONE")})
    assert codes(chosen) == {"A": "DEPENDS_NOT_DONE"}


@pytest.mark.spec("SEL-1", "SEL-3")
def test_a_lock_or_an_active_run_excludes() -> None:
    assert codes(backlog(request("A"), locks=request_lock("A"))) == {"A": "REQUEST_LOCKED"}
    for state in ("INIT", "PLANNING", "IMPLEMENTING", "TESTING", "REPORTING"):
        assert codes(backlog(request("A"), runs={RequestId("A"): run(state)})) == {"A": "REQUEST_LOCKED"}


@pytest.mark.spec("SEL-1", "SEL-3")
def test_a_run_that_waits_for_a_person_excludes() -> None:
    assert codes(backlog(request("A"), runs={RequestId("A"): run("NEEDS_INPUT")})) == {"A": "LATEST_RUN_NEEDS_INPUT"}
    for state in ("DONE", "FAILED"):
        assert next_id(backlog(request("A"), runs={RequestId("A"): run(state)})) == "A"


@pytest.mark.spec("SEL-3")
def test_what_its_source_knows_to_keep_it_excludes() -> None:
    kept = Refusal("REQUEST_LOCKED", (("holder", "RUN-9"),))
    free, held = backlog(request("A")), backlog(request("A", kept=kept))
    [excluded] = select_next(held).excluded
    assert (excluded.barrier.reason_code, excluded.barrier.facts) == (kept.reason_code, kept.facts)
    assert select_next(held).next is None
    assert digest(held) != digest(free)
    assert (held.requests[0].is_held_elsewhere, free.requests[0].is_held_elsewhere) == (True, False)


@pytest.mark.spec("SEL-1", "SEL-3")
def test_a_missing_dependency_is_named() -> None:
    barrier = select_next(backlog(request("A", depends_on=["X", "Y"]))).excluded[0].barrier
    assert (barrier.reason_code, dict(barrier.facts)["ids"]) == ("DEPENDS_NOT_FOUND", "X, Y")


@pytest.mark.spec("SEL-3", "REQ-4")
def test_a_dependency_whose_file_is_broken_is_not_done_rather_than_missing() -> None:
    broken = InvalidRequest(RequestId("B"), "requests/B.md", (Problem(ProblemKind.EMPTY),))
    assert codes(backlog(request("A", depends_on=["B"]), invalid=(broken,))) == {
        "A": "DEPENDS_NOT_DONE",
        "B": "REQUEST_INVALID",
    }


@pytest.mark.spec("SEL-3")
def test_while_auto_run_is_on_every_runnable_request_says_so_and_next_is_still_named() -> None:
    held = backlog(request("A"), request("B"), queue_lock=Lock(LockType.QUEUE, pid=7, host="here"))
    assert next_id(held) == "A"
    assert codes(held) == {"A": "QUEUE_LOCKED", "B": "QUEUE_LOCKED"}
    assert len(select_next(held).runnable) == 2


@pytest.mark.spec("SEL-3")
def test_excluded_names_the_ready_and_the_broken_and_with_all_also_the_rest() -> None:
    broken = InvalidRequest(RequestId("X"), "requests/X.md", (Problem(ProblemKind.EMPTY),))
    twice = InvalidRequest(RequestId("Y"), "requests/Y.md", (Problem(ProblemKind.SAME_ID),))
    chosen = backlog(
        request("A"),
        request("B", depends_on=["C"]),
        request("C", "draft"),
        request("D", "done"),
        invalid=(broken, twice),
    )
    assert codes(chosen) == {"B": "DEPENDS_NOT_DONE", "X": "REQUEST_INVALID", "Y": "DUPLICATE_ID"}
    assert codes(chosen, include_all=True) == {
        "B": "DEPENDS_NOT_DONE",
        "C": "NOT_READY",
        "D": "NOT_READY",
        "X": "REQUEST_INVALID",
        "Y": "DUPLICATE_ID",
    }
    answer = select_next(chosen)
    assert (answer.total, answer.ready, len(answer.runnable)) == (6, 2, 1)


@pytest.mark.spec("SEL-2")
def test_order_is_priority_then_updated_then_created_then_id() -> None:
    def at(day: int) -> datetime:
        return datetime(2026, 1, day, tzinfo=UTC)

    expected = [
        request("Z", priority="P0", updated_at=at(9), created_at=at(9)),
        request("Y", priority="P1", updated_at=at(1), created_at=at(9)),
        request("X", priority="P1", updated_at=at(2), created_at=at(1)),
        request("W", priority="P1", updated_at=at(2), created_at=at(2)),
        request("A", priority="P1", updated_at=at(3), created_at=at(3)),
        request("B", priority="P1", updated_at=at(3), created_at=at(3)),
        request("C", priority="P1", updated_at=at(3)),
        request("D", priority="P1"),
        request("E", priority="P3"),
    ]
    for order in itertools.islice(itertools.permutations(expected), 0, 5000, 37):
        assert [r.id for r in select_next(backlog(*order)).runnable] == [r.id for r in expected]


@pytest.mark.spec("SEL-2")
def test_stamps_are_compared_as_instants_not_as_text() -> None:
    tokyo = timezone(timedelta(hours=9))
    earlier = request("B", updated_at=datetime(2026, 1, 1, 8, 0, tzinfo=tokyo))  # 2025-12-31T23:00Z
    later = request("A", updated_at=datetime(2026, 1, 1, 0, 0, tzinfo=UTC))
    assert next_id(backlog(later, earlier)) == "B"


# --- properties ------------------------------------------------------------------------------------------------------

IDS = [f"R{number}" for number in range(8)]
SUBSETS = [[*itertools.combinations(IDS, size)] for size in range(len(IDS) + 1)]
TOKYO = timezone(timedelta(hours=9))
INSTANTS = [
    None,
    datetime(2025, 1, 1, tzinfo=UTC),
    datetime(2025, 1, 1, 9, tzinfo=TOKYO),  # the same instant
    datetime(2025, 1, 1, 1, tzinfo=TOKYO),
    datetime(2025, 1, 2, tzinfo=UTC),
]
STATUSES = ["draft", "ready", "ready", "ready", "running", "blocked", "done", "archived"]
PRIORITIES = ["P0", "P1", "P2", "P3"]
# What a request may say, to be drawn at once: each single draw takes as long as to select.
Look = tuple[str, str, datetime | None, datetime | None]
looks = st.sampled_from([*itertools.product(STATUSES, PRIORITIES, INSTANTS, INSTANTS)])
dependencies = st.sampled_from([wanted for size in range(4) for wanted in itertools.product(IDS, repeat=size)])


@st.composite
def backlogs(draw: st.DrawFn) -> Backlog:
    """Any backlog of up to eight requests, with dependencies that may be missing or lead in circles."""
    ids = draw(st.sampled_from(SUBSETS[draw(st.integers(0, len(IDS)))]))
    chosen = draw(st.tuples(*(st.tuples(looks, dependencies) for _ in ids)))
    requests = [
        request(i, status, priority, depends_on=wanted, updated_at=updated, created_at=created)
        for i, ((status, priority, updated, created), wanted) in zip(ids, chosen, strict=True)
    ]
    locked = draw(st.sampled_from([None, *IDS]))
    states = st.sampled_from(["TESTING", "NEEDS_INPUT", "FAILED", "DONE"])
    runs = draw(st.dictionaries(st.sampled_from(IDS), states, max_size=2))
    return backlog(
        *requests,
        locks=request_lock(locked) if locked else {},
        runs={RequestId(i): run(state) for i, state in runs.items()},
    )


@pytest.mark.spec("SEL-1")
@given(backlogs(), st.randoms())
def test_the_answer_does_not_depend_on_the_order_of_files(chosen: Backlog, shuffler: random.Random) -> None:
    shuffled = list(chosen.requests)
    shuffler.shuffle(shuffled)
    other = backlog(*shuffled, runs=chosen.runs, locks=chosen.locks)
    assert select_next(chosen, include_all=True) == select_next(other, include_all=True)
    assert digest(chosen) == digest(other)


@pytest.mark.spec("SEL-2")
@given(backlogs())
def test_queue_order_is_a_total_order(chosen: Backlog) -> None:
    keys = [queue_order(each) for each in chosen.requests]
    assert len(set(keys)) == len(keys)
    assert sorted(sorted(keys, reverse=True)) == sorted(keys)


@pytest.mark.spec("SEL-1")
@given(backlogs(), st.lists(st.sampled_from(IDS), max_size=3))
def test_adding_a_done_request_never_makes_a_runnable_one_not_runnable(chosen: Backlog, depends_on: list[str]) -> None:
    taken = {each.id for each in chosen.requests}
    new = next((candidate for candidate in IDS if candidate not in taken), "R-new")
    larger = backlog(
        *chosen.requests, request(new, "done", depends_on=depends_on), runs=chosen.runs, locks=chosen.locks
    )
    before = {each.id for each in select_next(chosen).runnable}
    assert before <= {each.id for each in select_next(larger).runnable}


@pytest.mark.spec("SEL-3", "SEL-7")
@given(backlogs())
def test_every_ready_request_is_either_runnable_or_explained(chosen: Backlog) -> None:
    answer = select_next(chosen)
    ready = {each.id for each in chosen.requests if each.status == "ready"}
    runnable = {each.id for each in answer.runnable}
    excluded = {each.request_id for each in answer.excluded}
    assert runnable | excluded == ready
    assert not runnable & excluded
    assert answer.ready == len(ready)
    for each in answer.runnable:
        assert list(find_barriers(each, chosen)) == []
        assert all(chosen.by_id[wanted].status == "done" for wanted in each.depends_on)


@pytest.mark.spec("SEL-7")
@given(backlogs(), looks, dependencies)
def test_the_digest_tells_backlogs_apart(one: Backlog, look: Look, depends_on: tuple[str, ...]) -> None:
    def facts(each: Backlog) -> object:
        keys = {(queue_order(r), r.status, tuple(r.depends_on)) for r in each.requests}
        return keys, {(i, r.run_id, r.state) for i, r in each.runs.items()}, set(each.locks)

    status, priority, updated, created = look
    new = request("R0", status, priority, updated_at=updated, created_at=created, depends_on=depends_on)
    others = [one._replace(runs={}), one._replace(locks={}), one._replace(requests=one.requests[1:])]
    others.append(one._replace(runs={each: run("FAILED") for each in one.runs}))
    for name in ("id", "status", "priority", "depends_on", "updated_at", "created_at"):  # one fact at a time
        changed = tuple(each._replace(**{name: getattr(new, name)}) for each in one.requests[:1])
        others.append(one._replace(requests=(*changed, *one.requests[1:])))
    for other in others:
        assert (digest(one) == digest(other)) == (facts(one) == facts(other))


# --- cycles ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("REQ-4", "SEL-3")
@pytest.mark.parametrize("length", [1, 2, 3, 5, 40])
def test_a_cycle_of_any_length_is_named_for_each_of_its_members(length: int) -> None:
    ids = [f"C{number:02d}" for number in range(length)]
    circle = [request(i, depends_on=[ids[(n + 1) % length]]) for n, i in enumerate(ids)]
    chosen = backlog(*circle, request("OUT", depends_on=[ids[0]]), request("FREE"))
    assert chosen.cycles.keys() == set(ids)
    for number, each in enumerate(ids):
        assert chosen.cycles[RequestId(each)] == tuple(ids[number:] + ids[:number])
    found = codes(chosen)
    assert {found[each] for each in ids} == {"DEPENDS_CYCLE"}
    assert found["OUT"] == "DEPENDS_NOT_DONE"
    assert next_id(chosen) == "FREE"


@pytest.mark.spec("REQ-4")
def test_two_cycles_that_share_a_request_are_both_told() -> None:
    chosen = backlog(
        request("A", depends_on=["B", "C"]), request("B", depends_on=["A"]), request("C", depends_on=["A"])
    )
    assert {i: len(c) for i, c in chosen.cycles.items()} == {"A": 2, "B": 2, "C": 2}
    assert chosen.cycles[RequestId("C")] == ("C", "A")


@pytest.mark.spec("REQ-4")
@given(backlogs())
def test_exactly_the_requests_that_reach_themselves_are_in_a_cycle(chosen: Backlog) -> None:
    waiting = {r.id: set(r.depends_on) for r in chosen.requests if r.status != "done"}

    def reaches_itself(start: str) -> bool:
        seen: set[str] = set()
        stack = list(waiting[RequestId(start)])
        while stack:
            node = stack.pop()
            if node == start:
                return True
            if node in waiting and node not in seen:
                seen.add(node)
                stack.extend(waiting[RequestId(node)])
        return False

    assert set(chosen.cycles) == {i for i in waiting if reaches_itself(i)}
    for start, cycle in chosen.cycles.items():
        assert cycle[0] == start
        assert all(after in waiting[before] for before, after in itertools.pairwise((*cycle, start)))


@pytest.mark.spec("REQ-4")
def test_a_long_chain_and_a_huge_circle_need_no_deep_recursion() -> None:
    size = 20_000
    chain: list[Request] = [request(f"R{n}", depends_on=[f"R{n + 1}"]) for n in range(size)]
    assert backlog(*chain, request(f"R{size}", "done")).cycles == {}
    circle = backlog(*chain, request(f"R{size}", depends_on=["R0"]))
    assert len(circle.cycles) == size + 1
    assert name_cycle(circle.cycles[RequestId("R5")]).startswith("R0 -> R1 -> ")
    assert len(name_cycle(circle.cycles[RequestId("R5")])) < 100
