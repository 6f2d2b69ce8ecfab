"""Locks (LCK-3, LCK-4, LCK-5): whose lock is it, does the holder live, may it be reclaimed."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import Any

import pytest

from aiflow.domain.lock import (
    LOCK_VERSION,
    Lock,
    LockType,
    LockVerdict,
    find_rival,
    heartbeat_seconds,
    judge,
    may_write,
    renewed_until,
)
from aiflow.domain.process import Liveness, OwnerFacts, liveness
from builders import NOW

TTL = 1800.0
MOMENT = timedelta(microseconds=1)


def lock(**fields: Any) -> Lock:
    """A lock of this machine and of the process that is looked at."""
    usual = {"pid": 7, "host": "here", "boot_id": "boot-1", "process_started_at": 100.0, "token": "mine"}
    return Lock(LockType.REQUEST, "RQ-1", "RUN-1", **{**usual, **fields})


def facts(**fields: Any) -> OwnerFacts:
    usual = {"host": "here", "boot_id": "boot-1", "process_started_at": 100.0}
    return OwnerFacts(**{**usual, **fields})


@pytest.mark.spec("LCK-1")
def test_what_a_lock_file_calls_its_version_and_its_types() -> None:
    assert LOCK_VERSION == "1.0"
    assert set(LockType) == {"request", "queue", "turn"}


# --- what keeps a lock from being taken ------------------------------------------------------------------------------

RUN, OTHER, QUEUE = Lock(LockType.REQUEST, "RQ-1"), Lock(LockType.REQUEST, "RQ-2"), Lock(LockType.QUEUE)
TURN = Lock(LockType.TURN, token="theirs")


@pytest.mark.spec("LCK-7", "QUE-5")
@pytest.mark.parametrize(
    ("wanted", "held", "how", "rival"),
    [
        (RUN, (QUEUE,), {}, None),
        (RUN, (OTHER, QUEUE), {}, OTHER),
        (RUN, (TURN, OTHER, RUN), {}, RUN),
        (RUN, (TURN, OTHER), {}, OTHER),
        (RUN, (TURN,), {}, TURN),
        (RUN, (TURN,), {"turn": "mine"}, TURN),
        (RUN, (TURN, OTHER), {"turn": "theirs"}, None),
        (RUN, (TURN, RUN), {"turn": "theirs"}, RUN),
        (RUN, (OTHER,), {"turn": "lost"}, OTHER),
        (RUN, (TURN, OTHER), {"beside_others": True}, None),
        (RUN, (TURN, RUN), {"beside_others": True}, RUN),
        (TURN, (QUEUE,), {}, None),
        (TURN, (RUN,), {}, RUN),
        (TURN, (TURN,), {}, TURN),
        (QUEUE, (RUN, TURN), {}, None),
        (QUEUE, (RUN, QUEUE), {}, QUEUE),
    ],
)
def test_one_runs_in_a_checkout_or_is_about_to(
    wanted: Lock, held: tuple[Lock, ...], how: dict[str, Any], rival: Lock | None
) -> None:
    assert find_rival(wanted, held, **how) == rival


# --- does the holder live --------------------------------------------------------------------------------------------

ALIVE, DEAD, UNKNOWN = Liveness.ALIVE, Liveness.DEAD, Liveness.UNKNOWN


@pytest.mark.spec("LCK-4")
@pytest.mark.parametrize(
    ("written", "found", "expected"),
    [
        ({}, {}, ALIVE),
        # provably dead on this host
        ({"boot_id": "boot-0"}, {}, DEAD),
        ({}, {"process_started_at": None}, DEAD),
        ({}, {"process_started_at": 101.0}, DEAD),
        ({}, {"is_zombie": True}, DEAD),
        # another host: its pid says nothing here, not even with another boot
        ({"host": "elsewhere"}, {}, UNKNOWN),
        ({"host": "elsewhere", "boot_id": "boot-0"}, {}, UNKNOWN),
        ({"host": "elsewhere"}, {"process_started_at": None}, UNKNOWN),
        ({"host": "elsewhere"}, {"is_zombie": True}, UNKNOWN),
        ({"host": None}, {"process_started_at": None}, UNKNOWN),
        ({"pid": None}, {"process_started_at": None}, UNKNOWN),
        # written without boot id and start time (D39's own fields): the pid has to do
        ({"boot_id": None, "process_started_at": None}, {}, ALIVE),
        ({"boot_id": None, "process_started_at": None}, {"process_started_at": None}, DEAD),
        ({"boot_id": None}, {"process_started_at": 101.0}, DEAD),
        ({"process_started_at": None}, {"process_started_at": 101.0}, ALIVE),
        # another container of this machine: its processes cannot be seen from here
        ({"pid_namespace": "1"}, {"pid_namespace": "1"}, ALIVE),
        ({"pid_namespace": "1"}, {"pid_namespace": "1", "process_started_at": None}, DEAD),
        ({"pid_namespace": "1"}, {"pid_namespace": "2"}, UNKNOWN),
        ({"pid_namespace": "1"}, {"pid_namespace": "2", "process_started_at": None}, UNKNOWN),
        ({"pid_namespace": "1", "boot_id": "boot-0"}, {"pid_namespace": "2"}, DEAD),
        ({"pid_namespace": "1"}, {"process_started_at": None}, DEAD),
        ({}, {"pid_namespace": "2", "process_started_at": None}, DEAD),
        # somebody has the number, and we may not know who
        ({}, {"process_started_at": None, "is_hidden": True}, UNKNOWN),
        ({"boot_id": "boot-0"}, {"process_started_at": None, "is_hidden": True}, DEAD),
        # this machine cannot tell its boot
        ({}, {"boot_id": None}, ALIVE),
        ({}, {"boot_id": None, "process_started_at": 101.0}, DEAD),
    ],
)
def test_whether_the_holder_lives(written: dict[str, Any], found: dict[str, Any], expected: Liveness) -> None:
    assert liveness(lock(**written).holder, facts(**found)) is expected


@pytest.mark.spec("LCK-1", "LCK-4")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_lock_that_names_the_host_as_d39_does_is_of_this_machine(host: str) -> None:
    assert liveness(lock(host=host).holder, facts()) is ALIVE
    assert liveness(lock(host=host).holder, facts(process_started_at=None)) is DEAD


# --- may it be reclaimed ---------------------------------------------------------------------------------------------

EXPIRY = {
    "later": NOW + MOMENT,
    "just now": NOW,
    "before": NOW - MOMENT,
    "long ago": NOW - timedelta(days=30),
}
JUDGED = {
    # liveness: verdict while it runs, and once it has expired
    ALIVE: ("held", "held_expired"),
    DEAD: ("stale_dead", "stale_dead"),
    UNKNOWN: ("held", "stale_expired"),
}


@pytest.mark.spec("LCK-4")
@pytest.mark.parametrize("alive", Liveness)
@pytest.mark.parametrize("expiry", EXPIRY)
def test_dead_at_once_alive_never_unknown_once_expired(alive: Liveness, expiry: str) -> None:
    is_expired = EXPIRY[expiry] < NOW  # D39 §5.1
    for written_at in (None, NOW, NOW - timedelta(days=30)):
        readable = lock(expires_at=EXPIRY[expiry], written_at=written_at)
        assert judge(readable, alive, NOW, TTL) == JUDGED[alive][is_expired]


@pytest.mark.spec("LCK-5")
@pytest.mark.parametrize(
    ("written_at", "expected"),
    [
        (None, "held"),
        (NOW, "held"),
        (NOW + timedelta(hours=1), "held"),
        (NOW - timedelta(seconds=TTL), "held"),
        (NOW - timedelta(seconds=TTL) - MOMENT, "stale_damaged"),
        (NOW - timedelta(days=30), "stale_damaged"),
    ],
)
def test_a_damaged_lock_is_stale_once_older_than_the_ttl(written_at: datetime | None, expected: str) -> None:
    for alive, expires_at in itertools.product(Liveness, (None, NOW - MOMENT, NOW + MOMENT)):
        damaged = Lock(LockType.QUEUE, is_readable=False, written_at=written_at, expires_at=expires_at)
        assert judge(damaged, alive, NOW, TTL) == expected
    # JSON that does not say when it expires is no better, unless its holder is known
    timeless = lock(expires_at=None, written_at=written_at)
    assert judge(timeless, UNKNOWN, NOW, TTL) == expected
    assert judge(timeless, ALIVE, NOW, TTL) == "held"
    assert judge(timeless, DEAD, NOW, TTL) == "stale_dead"


@pytest.mark.spec("LCK-4", "LCK-5")
def test_exactly_the_stale_verdicts_allow_a_takeover() -> None:
    assert {verdict for verdict in LockVerdict if verdict.is_stale} == {"stale_dead", "stale_expired", "stale_damaged"}


@pytest.mark.spec("LCK-4")
def test_a_closed_lid_is_not_a_crash_and_a_crash_is_noticed_before_the_ttl() -> None:
    asleep = lock(expires_at=NOW - timedelta(days=2))
    assert not judge(asleep, liveness(asleep.holder, facts()), NOW, TTL).is_stale
    crashed = lock(expires_at=NOW + timedelta(minutes=29))
    assert judge(crashed, liveness(crashed.holder, facts(process_started_at=None)), NOW, TTL).is_stale


# --- writing under a lock --------------------------------------------------------------------------------------------


@pytest.mark.spec("LCK-3")
@pytest.mark.parametrize(
    ("current", "expected"),
    [
        (lock(token="mine"), True),
        (lock(token="mine", expires_at=NOW - timedelta(days=1)), True),
        (lock(token="another's"), False),
        (lock(token=None), False),
        (lock(token=""), False),
        (None, False),
        (Lock(LockType.REQUEST, is_readable=False), False),
    ],
)
def test_only_the_holder_of_the_token_may_write(current: Lock | None, expected: bool) -> None:
    assert may_write(current, "mine") is expected


@pytest.mark.spec("LCK-3")
@pytest.mark.parametrize("ttl_seconds", [1.0, 60.0, TTL])
def test_a_renewed_lock_survives_two_missed_heartbeats(ttl_seconds: float) -> None:
    third_beat = NOW + 3 * timedelta(seconds=heartbeat_seconds(ttl_seconds))
    renewed = lock(expires_at=renewed_until(NOW, ttl_seconds))
    assert judge(renewed, UNKNOWN, third_beat, ttl_seconds) is LockVerdict.HELD
    assert renewed.expires_at == NOW + timedelta(seconds=ttl_seconds)
    assert judge(renewed, UNKNOWN, NOW + timedelta(seconds=ttl_seconds) + MOMENT, ttl_seconds).is_stale
