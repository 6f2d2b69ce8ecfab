"""Asking the backlog: list, next, why, forecast, show, with memory behind them; cut into pages before it is shaped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.memory.locks import MemoryLocks
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.adapters.memory.runs import MemoryRuns
from aiflow.domain.lock import Lock, LockStatus, LockVerdict
from aiflow.domain.process import Liveness
from aiflow.domain.request import Request, RequestId
from aiflow.domain.run_summary import RunSummary
from aiflow.errors import BadInputError, NotFoundError
from aiflow.messages import Texts
from aiflow.ports import Locks
from aiflow.usecases.backlog.forecast import forecast_backlog
from aiflow.usecases.backlog.list import EVERYTHING, RequestFilter, RequestList, list_requests
from aiflow.usecases.backlog.next import next_request
from aiflow.usecases.backlog.show import BrokenRequest, ShownRequest, show_request
from aiflow.usecases.backlog.why import explain_request, unmeetable
from aiflow.usecases.engine import Engine
from aiflow.usecases.read_backlog import BacklogSources
from aiflow.usecases.shapes import backlog as shapes
from aiflow.usecases.shapes.pages import with_page
from builders import request_lock, run


@dataclass
class Judged:
    """Locks of which none is anybody's who lives, and how often they were asked for."""

    asked: int = 0
    stale: tuple[Lock, ...] = ()

    def __call__(self) -> Locks:
        self.asked += 1
        return cast(Locks, self)

    def survey(self) -> list[LockStatus]:
        return [LockStatus(lock, Liveness.DEAD, LockVerdict.STALE_DEAD) for lock in self.stale]


@dataclass
class House:
    """A backlog in memory."""

    texts: dict[str, str] = field(default_factory=dict)
    runs: dict[str, tuple[RunSummary, ...]] = field(default_factory=dict)
    locks: MemoryLocks = field(default_factory=MemoryLocks)

    def add(self, request_id: str, status: str = "ready", priority: str = "P2", **keys: str) -> House:
        more = "".join(f"{key}: {value}\n" for key, value in keys.items())
        self.texts[request_id] = (
            f"---\nstatus: {status}\npriority: {priority}\n{more}---\n# Title {request_id}\n\nbody\n"
        )
        return self

    @property
    def sources(self) -> BacklogSources:
        texts = {RequestId(name): text for name, text in self.texts.items()}
        runs = MemoryRuns({RequestId(name): runs for name, runs in self.runs.items()})
        return BacklogSources(FileSource(MemoryRequests(texts)), runs, self.locks)

    def list(self, only: RequestFilter = EVERYTHING, limit: int | None = None, after: str | None = None) -> RequestList:
        return list_requests(self.sources, Judged(), only, limit=limit, after=after)


def ids(found: RequestList) -> list[str]:
    return [request.id for request in found.requests]


@pytest.fixture
def house() -> House:
    house = House().add("B", priority="P1", updated_at="2026-01-02").add("A", priority="P1", updated_at="2026-01-03")
    house.add("D", "draft", labels="[ui, api]").add("C", labels="[ui]").add("F", "done", "P0")
    house.add("E", depends_on="[D]")
    house.texts["X"] = "---\nstatus: wip\n---\n"
    return house


ORDER = ["F", "B", "A", "C", "D", "E"]


# --- list ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("SEL-2")
def test_a_list_is_in_selection_order(house: House) -> None:
    found = house.list()
    assert (ids(found), found.total, found.next_after) == (ORDER, 6, None)
    shape = shapes.request_list(found)
    assert list(shape) == ["requests", "invalid"]
    assert [each["request_id"] for each in shape["requests"] if each["is_next"]] == ["B"]
    assert [each["request_id"] for each in shape["invalid"]] == ["X"]


@pytest.mark.parametrize(
    ("only", "wanted"),
    [
        (RequestFilter(statuses=("draft", "done")), ["F", "D"]),
        (RequestFilter(priorities=("P1",)), ["B", "A"]),
        (RequestFilter(labels=("api", "other")), ["D"]),
        (RequestFilter(("ready",), ("P2",), ("ui",)), ["C"]),
        (RequestFilter(labels=("none",)), []),
    ],
)
def test_only_what_is_wanted_is_listed(house: House, only: RequestFilter, wanted: list[str]) -> None:
    found = house.list(only)
    assert (ids(found), found.total) == (wanted, len(wanted))


@pytest.mark.spec("SEL-2")
@pytest.mark.parametrize("limit", [1, 2, 4, 6, 100])
def test_pages_together_are_the_list(house: House, limit: int) -> None:
    seen: list[str] = []
    found = house.list(limit=limit)
    seen += ids(found)
    while found.next_after is not None:
        found = house.list(limit=limit, after=found.next_after)
        assert 1 <= len(found.requests) <= limit
        assert found.total == 6
        seen += ids(found)
    assert seen == ORDER


def test_a_page_goes_on_where_it_ended_though_its_last_request_is_gone(house: House) -> None:
    first = house.list(limit=3)
    assert ids(first) == ["F", "B", "A"]
    del house.texts["A"]
    assert ids(house.list(limit=3, after=first.next_after)) == ["C", "D", "E"]
    house.add("A", priority="P2")
    assert "A" in ids(house.list(limit=9, after=first.next_after))


@pytest.mark.parametrize("after", ["", "x", "1:2:3", "1:nan:0.0:A", "P1:0.0:0.0:A"])
def test_what_is_no_place_in_the_list_is_refused(house: House, after: str) -> None:
    with pytest.raises(BadInputError):
        house.list(limit=1, after=after)


def test_only_the_page_is_shaped(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House()
    for number in range(300):
        house.add(f"RQ-{number:03}")
    shaped: list[str] = []
    real = shapes.request_shape

    def remember(request: Request, run: RunSummary | None) -> dict[str, Any]:
        shaped.append(request.id)
        return real(request, run)

    monkeypatch.setattr(shapes, "request_shape", remember)
    found = house.list(limit=5)
    shape = with_page(shapes.request_list(found), found)
    assert len(shaped) == 5
    assert (shape["total"], len(shape["requests"])) == (300, 5)
    assert shape["next_after"] is not None


def test_locks_are_judged_only_where_one_could_be_left(house: House) -> None:
    judged = Judged()
    list_requests(house.sources, judged)
    assert judged.asked == 0
    house.add("R", "running")
    found = list_requests(house.sources, judged)
    assert (judged.asked, [*found.backlog.interrupted]) == (1, ["R"])


# --- next ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("SEL-3")
def test_what_is_next(house: House) -> None:
    house.add("R", "running").add("W", "blocked")
    answer = next_request(house.sources, Judged(), is_brief=True)
    assert answer.selection.next is not None
    assert (answer.selection.next.id, answer.running, answer.waiting) == ("B", (), 0)
    judged = Judged()
    looked = next_request(house.sources, judged)
    assert ([*looked.running], [*looked.interrupted], looked.waiting, judged.asked) == (["R"], ["R"], 1, 1)
    del house.texts["R"]
    next_request(house.sources, judged)
    assert judged.asked == 1
    everything = next_request(house.sources, judged, include_all=True).selection
    assert {excluded.request_id for excluded in everything.excluded} == {"D", "E", "F", "W", "X"}


@pytest.mark.spec("SEL-7")
def test_a_lock_that_the_next_start_reclaims_is_said_to_be_one(house: House) -> None:
    lock = request_lock("B")[RequestId("B")]
    house.locks.requests = {RequestId("B"): lock}
    for stale, form in (((), "locked by "), ((lock,), "the lock is stale, and the next start reclaims it")):
        answer = next_request(house.sources, Judged(stale=stale), is_brief=True)
        [excluded] = [each for each in answer.selection.excluded if each.request_id == "B"]
        told = shapes.describe(excluded.barrier, Texts("en"))
        assert (excluded.barrier.reason_code, form in told) == ("REQUEST_LOCKED", True)
        assert ("stale" in told) == bool(stale)
        why = explain_request(house.sources, cast(Locks, Judged(stale=stale)), RequestId("B"))
        assert [action.kind.value for action in why.first.actions] == (["run"] if stale else [])
        shown = show_request(house.sources, RequestId("B"), Judged(stale=stale))
        assert isinstance(shown, ShownRequest)
        assert ["stale" in shapes.describe(barrier, Texts("en")) for barrier in shown.barriers] == [bool(stale)]
        foreseen = forecast_backlog(house.sources, Judged(stale=stale)).foreseen
        assert [request.id for request in foreseen.running] == ([] if stale else ["B"])


# --- why -------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("SEL-5")
def test_why_a_request_waits_or_at_which_place_it_is(house: House) -> None:
    def why(name: str) -> tuple[int | None, list[str]]:
        found = explain_request(house.sources, Judged()(), RequestId(name))
        return found.place, [station.request_id for station in found.stations]

    assert why("B") == (1, ["B"])
    assert why("C") == (3, ["C"])
    assert why("E") == (None, ["E", "D"])
    assert why("F") == (None, ["F"])
    assert why("X") == (None, ["X"])
    with pytest.raises(NotFoundError):
        why("Y")
    house.add("R", "running")
    assert explain_request(house.sources, Judged()(), RequestId("R")).is_interrupted


def test_dependencies_that_can_never_be_met_are_told(house: House) -> None:
    def codes(name: str) -> list[str]:
        return [barrier.reason_code for barrier in unmeetable(house.sources, RequestId(name))]

    house.add("M", depends_on="[D, nowhere]").add("P", depends_on="[Q]").add("Q", depends_on="[P]")
    assert [codes(name) for name in ("E", "M", "P", "X", "Y")] == [[], ["DEPENDS_NOT_FOUND"], ["DEPENDS_CYCLE"], [], []]


# --- forecast --------------------------------------------------------------------------------------------------------


@pytest.mark.spec("SEL-6")
def test_a_forecast_is_cut_into_pages(house: House) -> None:
    whole = forecast_backlog(house.sources, Judged())
    assert ([r.id for r in whole.foreseen.order], whole.total, whole.next_after) == (["B", "A", "C"], 3, None)
    never = [excluded.request_id for excluded in whole.foreseen.never]
    first = forecast_backlog(house.sources, Judged(), limit=2)
    assert ([r.id for r in first.foreseen.order], first.total, first.next_after) == (["B", "A"], 3, 2)
    rest = forecast_backlog(house.sources, Judged(), limit=2, after=2)
    assert ([r.id for r in rest.foreseen.order], rest.next_after) == (["C"], None)
    assert [e.request_id for page in (first, rest) for e in page.foreseen.never] == never


# --- show ------------------------------------------------------------------------------------------------------------


def no_engine() -> Engine:
    raise AssertionError


@pytest.mark.parametrize("engine", [None, no_engine])
def test_a_request_without_runs_is_shown_without_an_engine(house: House, engine: Callable[[], Engine] | None) -> None:
    shown = show_request(house.sources, RequestId("E"), Judged(), engine)
    assert isinstance(shown, ShownRequest)
    assert [barrier.reason_code for barrier in shown.barriers] == ["DEPENDS_NOT_DONE"]
    shape = shapes.shown_shape(shown)
    assert (shape["title"], shape["runs"], shape["hidden"], shape["latest_run"]) == ("Title E", [], [], None)
    assert "body" in shape["body"]


def test_a_request_is_shown_with_all_of_its_runs(house: House) -> None:
    house.runs["B"] = (run("NEEDS_INPUT", "CANCELLED", run_id="RUN-1"), run("DONE", run_id="RUN-2"))
    house.locks.requests |= request_lock("B")
    shown = show_request(house.sources, RequestId("B"), Judged())
    assert isinstance(shown, ShownRequest)
    assert [each.run_id for each in shown.runs] == ["RUN-2", "RUN-1"]
    assert shown.latest is not None
    assert shown.latest.run_id == "RUN-1"
    codes = [barrier.reason_code for barrier in shown.barriers]
    assert codes == ["REQUEST_LOCKED", "LATEST_RUN_NEEDS_INPUT"]


def test_a_file_that_cannot_be_used_is_shown_with_what_is_wrong(house: House) -> None:
    shown = show_request(house.sources, RequestId("X"), Judged())
    assert isinstance(shown, BrokenRequest)
    assert list(shapes.shown_shape(shown)) == ["request_id", "invalid"]
    with pytest.raises(NotFoundError):
        show_request(house.sources, RequestId("Y"), Judged())
