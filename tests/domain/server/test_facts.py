"""What the event stream says of two looks at a checkout (API-3)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.server.facts import MOST_NAMED, Fact, HeldLock, Sight, fact_of_entry, facts_between, facts_now

pytestmark = pytest.mark.spec("API-3")

MARKS = st.tuples(st.integers(0, 3), st.integers(0, 3)) | st.just(())
IDS = st.sampled_from(["RQ-1", "RQ-2"])
RUNS = st.tuples(IDS, st.sampled_from(["RUN-1", "RUN-2"]))
STATES = st.sampled_from([None, "PLANNING", "DONE"])
LOOKS = st.builds(
    Sight,
    requests=st.dictionaries(IDS, MARKS),
    runs=st.dictionaries(RUNS, st.tuples(MARKS, STATES)),
    logs=st.dictionaries(st.tuples(IDS, st.just("RUN-1"), st.integers(0, 2)), st.integers(0, 3)),
    locks=st.lists(st.builds(HeldLock, IDS, st.just("RUN-1"), st.booleans()), max_size=2).map(tuple),
    auto=st.tuples(MARKS, STATES),
    marks=st.fixed_dictionaries({"runs": MARKS, "settings": MARKS, "sessions": MARKS}),
)


def known(facts: Iterable[Fact]) -> dict[tuple[object, ...], object]:
    """What somebody knows who heard these facts, the last one of each thing."""
    heard: dict[tuple[object, ...], object] = {}
    for fact in facts:
        ids = dict(fact.ids)
        thing = (fact.kind, *(ids.pop(name, None) for name in ("request_id", "run_id", "n")))
        ids.pop("changed", None)
        heard[thing] = ids
    return heard


@given(LOOKS, LOOKS)
def test_who_heard_what_changed_knows_as_much_as_who_comes_later(before: Sight, after: Sight) -> None:
    heard = known([*facts_now(before), *facts_between(before, after)])
    assert heard | known(facts_now(after)) == heard


@given(LOOKS)
def test_nothing_is_said_where_nothing_changed(look: Sight) -> None:
    assert list(facts_between(look, Sight(**{name: getattr(look, name) for name in Sight.__slots__}))) == []


def test_a_few_changed_requests_are_named_and_many_are_not() -> None:
    few = {f"RQ-{number:03}": (number,) for number in range(MOST_NAMED)}
    one, other = Sight(requests=few), Sight(requests={**few, "RQ-900": (1,)})
    assert [fact.ids["changed"] for fact in facts_between(one, other)] == [["RQ-900"]]
    assert [fact.ids["changed"] for fact in facts_between(other, one)] == [["RQ-900"]]
    assert [fact.ids["changed"] for fact in facts_between(Sight(), other)] == [None]


def test_a_dead_holder_is_told_from_one_that_works() -> None:
    alive = Sight(locks=(HeldLock("RQ-1", "RUN-1", is_stale=False),))
    dead = Sight(locks=(HeldLock("RQ-1", "RUN-1", is_stale=True),))
    assert (alive.is_busy, dead.is_busy, Sight().is_busy) == (True, False, False)
    assert [fact.ids["held"][0]["is_stale"] for fact in facts_between(alive, dead)] == [True]  # type: ignore[index]


def test_of_an_entry_only_its_ids_are_told() -> None:
    entry = {"kind": "decision", "request_id": "RQ-1", "by": "Ann", "pid": 7, "data": {"text": "words"}}
    assert fact_of_entry(entry, "1:5") == Fact("activity", {"kind": "decision", "request_id": "RQ-1"}, "1:5")
