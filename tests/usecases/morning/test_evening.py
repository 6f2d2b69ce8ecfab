"""Before auto-run starts: what will run and what cannot, which ceilings are set, and whether it can begin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.auto.session import AutoSession
from aiflow.domain.auto.stopping import Limits
from aiflow.domain.health import Health
from aiflow.domain.lifecycle import AutoRunState
from aiflow.domain.lock import Lock
from aiflow.domain.morning.evening import EveningCheck
from aiflow.domain.request import RequestId
from aiflow.settings import SettingValue, Source, settle
from aiflow.usecases.auto.run import limits_of
from aiflow.usecases.engine import Engine
from aiflow.usecases.morning.evening import check_evening
from aiflow.usecases.shapes.morning import evening_shape
from builders import NOW
from memory_engine import MemoryCheckout, MemoryProcess, obliging

pytestmark = pytest.mark.spec("WEB-1")
SETTINGS: dict[Source, dict[str, SettingValue]] = {
    Source.FILE: {"limits.session_cost_usd": 5.0, "accept": "auto"},
    Source.ENVIRONMENT: {"limits.run_minutes": 90},
}


def engine_of(checkout: MemoryCheckout) -> Engine:
    return MemoryProcess(checkout, 7, PlayedTime(), obliging(checkout)).engine()


@pytest.fixture
def checkout() -> MemoryCheckout:
    checkout = MemoryCheckout(settings=settle(SETTINGS))
    checkout.add("LOW", priority="P3")
    checkout.add("TOP", priority="P0", depends_on="[LOW]")
    checkout.add("DRAFT-1", "draft")
    checkout.add("DRAFT-2", "draft", priority="P1")
    checkout.add("BLOCKED", "blocked")
    checkout.add("LOOSE", depends_on="[GONE]")
    checkout.add("DONE", "done")
    return checkout


def check(checkout: MemoryCheckout, **how: Any) -> EveningCheck:
    return check_evening(engine_of(checkout), checkout.session, **how)


def test_what_will_run_in_which_order_and_what_cannot_and_why(checkout: MemoryCheckout) -> None:
    found = check(checkout, limit=1)
    assert ([each.request_id for each in found.upcoming], found.total) == (["LOW"], 2)
    assert [tuple(each) for each in found.cannot] == [
        ("NOT_READY", "draft", ("DRAFT-2", "DRAFT-1")),
        ("NOT_READY", "blocked", ("BLOCKED",)),
        ("DEPENDS_NOT_FOUND", None, ("LOOSE",)),
    ]
    assert (found.base_branch, found.is_on, found.continues, found.may_start) == ("main", False, False, True)


def test_where_a_person_accepts_what_waits_for_anothers_work_does_not_run_tonight(checkout: MemoryCheckout) -> None:
    checkout.settings = settle({})
    found = check(checkout)
    assert ([each.request_id for each in found.upcoming], found.total, found.base_branch) == (["LOW"], 1, None)
    assert ("DEPENDS_NOT_DONE", None, ("TOP",)) in [tuple(each) for each in found.cannot]


def test_every_ceiling_says_where_it_comes_from(checkout: MemoryCheckout) -> None:
    ceilings = {each.name: (each.value, each.source) for each in check(checkout).ceilings}
    assert ceilings["limits.session_cost_usd"] == (5.0, "file")
    assert ceilings["limits.run_minutes"] == (90.0, "environment")
    assert ceilings["limits.session_runs"] == (None, "default")
    assert ceilings["auto.stop_after_failed"] == (float(Limits().stop_after_failed), "default")
    given = {each.name: each for each in check(checkout, given={"session_cost_usd": 2.5, "until": NOW}).ceilings}
    assert given["limits.session_cost_usd"][1:] == (2.5, "call")
    assert given["until"][1:] == (NOW, "call")
    # What auto-run really stops by is all there.
    limits = limits_of(checkout.settings)
    assert {
        name for name, (value, _) in ceilings.items() if name.startswith(("auto.", "limits.session")) and value
    } == {
        f"auto.{name}" if name.startswith("stop") else f"limits.{name}"
        for name in Limits.__dataclass_fields__
        if getattr(limits, name)
    }


def test_without_a_ceiling_that_is_said(checkout: MemoryCheckout) -> None:
    assert check(checkout).has_ceiling
    checkout.settings = settle({})
    assert not check(checkout).has_ceiling
    assert check(checkout, given={"until": NOW}).has_ceiling


def test_a_sick_checkout_and_an_auto_run_at_work_keep_it_from_starting(checkout: MemoryCheckout) -> None:
    checkout.workshop.room = ("/", 1)
    sick = check(checkout)
    assert (sick.health, sick.may_start) == (Health.FAIL, False)
    assert "DISK_FULL" in {finding.reason_code for finding in sick.findings}
    checkout.workshop.room = ("/", 10**12)
    lease = engine_of(checkout).locks.acquire_queue()
    assert not isinstance(lease, Lock)
    assert (check(checkout).is_on, check(checkout).may_start) == (True, False)
    assert check(checkout).total == 2


def test_one_that_was_cut_off_is_continued(checkout: MemoryCheckout) -> None:
    checkout.session.session = replace(AutoSession(NOW), state=AutoRunState.RUNNING)
    assert check(checkout).continues


def test_what_is_at_work_is_named_and_the_shape_is_plain(checkout: MemoryCheckout) -> None:
    lease = engine_of(checkout).locks.acquire_request(RequestId("LOW"), "RUN-1")
    assert not isinstance(lease, Lock)
    shape = evening_shape(check(checkout, given={"until": NOW}))
    assert (shape["running"], [each["request_id"] for each in shape["upcoming"]]) == (["LOW"], ["TOP"])
    assert {"name": "until", "value": NOW.isoformat(), "source": "call"} in shape["ceilings"]
    assert shape["cannot"][0]["reason_code"] == "NOT_READY"
    assert shape["health"] in ("PASS", "WARN")
