"""The `Locks`, `Lease` and `Control` ports, the same for files and for memory: what the engine depends on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from aiflow.adapters.locks.control_files import ControlFiles
from aiflow.adapters.locks.taking import LockTaking
from aiflow.adapters.memory.control import MemoryControl, MemoryWishes
from aiflow.adapters.memory.leases import MemoryLocking, MemoryLockTable
from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.system_time import SystemTime, local_now
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.lock import Lock, LockType, LockVerdict
from aiflow.domain.process import Liveness, Process
from aiflow.domain.request import RequestId
from aiflow.errors import ConflictError
from aiflow.ports import Control, Lease, Locks, Time

RQ, RQ2 = RequestId("RQ-1"), RequestId("RQ-2")
TTL_SECONDS = 60.0
ME = Process("host", 7, "boot", None, 1.0)


class Site(NamedTuple):
    """The locks of one checkout as two processes see them, and the time that passes there."""

    locks: Locks
    others: Locks
    time: Time


def by_files(root: Path) -> Site:
    return Site(LockTaking(str(root), TTL_SECONDS), LockTaking(str(root), TTL_SECONDS), SystemTime())


def in_memory(_root: Path) -> Site:
    table, time = MemoryLockTable(), PlayedTime()
    mine, theirs = (MemoryLocking(table, ME, time, TTL_SECONDS) for _ in range(2))
    return Site(mine, theirs, time)


@pytest.fixture(params=[by_files, in_memory])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    make: Callable[[Path], Site] = request.param
    return make(tmp_path)


def has_lost(lease: Lease) -> bool:
    return lease.is_lost


def taken(got: Lease | Lock) -> Lease:
    assert not isinstance(got, Lock)
    return got


@pytest.mark.spec("LCK-7")
def test_one_runs_at_a_time_and_beside_others_only_something_else(site: Site) -> None:
    lease = taken(site.locks.acquire_request(RQ, "RUN-1"))
    for name in (RQ, RQ2):
        refused = site.others.acquire_request(name, "RUN-2")
        assert isinstance(refused, Lock)
        assert (refused.request_id, refused.run_id, refused.token) == (RQ, "RUN-1", lease.lock.token)
    assert isinstance(site.others.acquire_request(RQ, "RUN-2", beside_others=True), Lock)
    beside = taken(site.others.acquire_request(RQ2, "RUN-2", beside_others=True))
    assert beside.lock.fence is not None
    assert lease.lock.fence is not None
    assert beside.lock.fence > lease.lock.fence
    assert set(site.locks.held()[0]) == {RQ, RQ2}
    assert site.locks.holder_of(RQ2) == site.locks.held()[0][RQ2]
    beside.release()
    lease.release()
    lease.release()
    assert site.locks.held() == ({}, None)
    assert site.locks.holder() is None


@pytest.mark.spec("LCK-2")
def test_the_queue_lock_is_another_one(site: Site) -> None:
    run = taken(site.locks.acquire_request(RQ, "RUN-1"))
    queue = taken(site.others.acquire_queue())
    assert isinstance(site.locks.acquire_queue(), Lock)
    held = site.locks.queue_holder()
    assert held is not None
    assert held.token == queue.lock.token
    queue.release()
    assert site.locks.queue_holder() is None
    run.release()


@pytest.mark.spec("QUE-5", "LCK-7")
def test_the_turn_keeps_others_from_starting_until_a_request_is_locked_with_it(site: Site) -> None:
    turn = taken(site.locks.acquire_turn())
    assert (site.others.held(), site.others.holder()) == (({}, None), None)
    held = site.others.turn_holder()
    assert held is not None
    assert (held.lock_type, held.token) == (LockType.TURN, turn.lock.token)
    assert [status.lock.lock_type for status in site.others.survey()] == [LockType.TURN]
    for refused in (site.others.acquire_turn(), site.others.acquire_request(RQ, "RUN-2")):
        assert isinstance(refused, Lock)
        assert refused.lock_type is LockType.TURN
    beside, queue = taken(site.others.acquire_request(RQ2, "RUN-2", beside_others=True)), site.others.acquire_queue()
    assert site.others.break_lock(RQ) is None
    run = taken(site.locks.acquire_request(RQ, "RUN-1", turn=turn.lock.token))
    turn.release()
    assert (site.locks.turn_holder(), set(site.locks.held()[0])) == (None, {RQ, RQ2})
    assert isinstance(site.others.acquire_turn(), Lock)
    assert isinstance(site.others.acquire_request(RequestId("RQ-3"), "RUN-3", turn=turn.lock.token), Lock)
    for lease in (run, beside, taken(queue)):
        lease.release()
    assert site.locks.survey() == []


@pytest.mark.spec("LCK-4")
def test_to_break_the_queues_lock_leaves_the_turn_alone(site: Site) -> None:
    turn = taken(site.locks.acquire_turn())
    assert site.others.break_lock(None) is None
    queue = taken(site.locks.acquire_queue())
    broken = site.others.break_lock(None)
    assert broken is not None
    assert (broken.lock.lock_type, site.locks.turn_holder() is not None) == (LockType.QUEUE, True)
    turn.release()
    queue.release()


@pytest.mark.spec("LCK-4", "QUE-5")
def test_a_living_holders_turn_can_be_broken_and_nothing_else_with_it(site: Site) -> None:
    queue = taken(site.locks.acquire_queue())
    assert site.others.break_lock(None, LockType.TURN) is None
    turn = taken(site.locks.acquire_turn())
    broken = site.others.break_lock(None, LockType.TURN)
    assert broken is not None
    assert (broken.lock.token, broken.liveness) == (turn.lock.token, Liveness.ALIVE)
    assert (site.locks.turn_holder(), site.locks.queue_holder() is not None) == (None, True)
    theirs = taken(site.others.acquire_request(RQ, "RUN-1"))
    assert isinstance(site.locks.acquire_request(RQ2, "RUN-2", turn=turn.lock.token), Lock)
    for lease in (turn, theirs, queue):
        lease.release()
    assert site.locks.survey() == []


@pytest.mark.spec("LCK-3")
def test_who_lost_a_lock_writes_nothing_and_takes_nobodys_away(site: Site) -> None:
    lease = taken(site.locks.acquire_request(RQ, "RUN-1"))
    with lease.writing():
        pass
    broken = site.others.break_lock(RQ)
    assert broken is not None
    assert (broken.lock.run_id, broken.liveness, broken.verdict) == ("RUN-1", Liveness.ALIVE, LockVerdict.HELD)
    assert site.others.break_lock(RQ) is None
    theirs = taken(site.others.acquire_request(RQ, "RUN-2"))
    with pytest.raises(ConflictError) as caught, lease.writing():
        pytest.fail("it must not write")
    assert caught.value.reason_code == "LOCK_LOST"
    assert lease.is_lost
    lease.release()
    assert site.locks.held()[0][RQ].run_id == "RUN-2"
    assert not theirs.is_lost
    theirs.release()


@pytest.mark.spec("LCK-3")
def test_a_lock_that_is_lost_is_noticed_by_itself(site: Site) -> None:
    lease = taken(site.locks.acquire_request(RQ, "RUN-1"))
    site.time.sleep(0.7)
    assert not has_lost(lease)
    site.others.break_lock(RQ)
    until = site.time.monotonic() + 30
    while not has_lost(lease):
        assert site.time.monotonic() < until, "nobody noticed"
        site.time.sleep(0.1)
    lease.release()


@pytest.mark.spec("LCK-4")
def test_a_living_holder_is_left_alone(site: Site) -> None:
    lease = taken(site.locks.acquire_request(RQ, "RUN-1"))
    [status] = site.others.survey()
    assert (status.liveness, status.verdict) == (Liveness.ALIVE, LockVerdict.HELD)
    assert site.others.reclaim() == []
    with site.others.standstill() as held:
        assert set(held) == {RQ}
    lease.release()


def test_memory_reclaims_the_dead_at_once_and_the_unknown_when_they_expire() -> None:
    """What files do with real processes is told in `test_locks`; the same words, with a life that is played."""
    table, time, ended = MemoryLockTable(), PlayedTime(), list[str]()
    table.end_leftovers = ended.append
    locks = MemoryLocking(table, ME, time, TTL_SECONDS)
    lease = taken(locks.acquire_request(RQ, "RUN-1"))
    table.life = lambda _holder: Liveness.UNKNOWN
    lease.allow(30)
    time.sleep(TTL_SECONDS)  # renewed half way, and not any more
    assert locks.reclaim() == []
    time.sleep(TTL_SECONDS)
    assert [status.verdict for status in locks.reclaim()] == [LockVerdict.STALE_EXPIRED]
    assert ended == ["RUN-1", "RUN-1"]
    taken(locks.acquire_request(RQ, "RUN-2"))
    table.life = lambda _holder: Liveness.DEAD
    assert [status.verdict for status in locks.reclaim()] == [LockVerdict.STALE_DEAD]
    assert locks.held() == ({}, None)


def control_files(root: Path) -> Control:
    return ControlFiles(root)


def memory_control(_root: Path) -> Control:
    return MemoryControl(MemoryWishes(), ME, SystemTime())


@pytest.fixture(params=[control_files, memory_control])
def control(request: pytest.FixtureRequest, tmp_path: Path) -> Control:
    make: Callable[[Path], Control] = request.param
    return make(tmp_path)


@pytest.mark.spec("LCK-8")
def test_a_cancel_is_seen_until_it_is_cleared(control: Control) -> None:
    assert not control.is_cancelled("RUN-1")
    control.ask_cancel("RUN-1")
    control.ask_cancel("RUN-1")
    assert (control.is_cancelled("RUN-1"), control.is_cancelled("RUN-2")) == (True, False)
    control.clear("RUN-1")
    control.clear("RUN-1")
    assert not control.is_cancelled("RUN-1")


@pytest.mark.spec("AUT-3")
def test_the_stronger_stop_counts_and_an_old_one_can_be_told_from_a_new_one(control: Control) -> None:
    control.ask_stop(StopRequest.NONE)
    assert control.stop_asked() is StopRequest.NONE
    control.ask_stop(StopRequest.AFTER_RUN)
    control.ask_stop(StopRequest.NOW)
    assert control.stop_asked() is StopRequest.NOW
    control.clear_stop(before=local_now() - timedelta(hours=1))
    assert control.stop_asked() is StopRequest.NOW
    control.clear_stop(before=local_now() + timedelta(hours=1))
    assert control.stop_asked() is StopRequest.NONE
    control.ask_stop(StopRequest.AFTER_RUN)
    control.clear_stop()
    assert control.stop_asked() is StopRequest.NONE


@pytest.mark.spec("LCK-7")
def test_a_turn_is_wanted_while_somebody_waits(control: Control) -> None:
    assert not control.is_turn_wanted()
    with control.waiting_for_turn():
        assert control.is_turn_wanted()
        with control.waiting_for_turn():
            assert control.is_turn_wanted()
        assert control.is_turn_wanted()
    assert not control.is_turn_wanted()


@pytest.mark.spec("AUT-3")
def test_an_auto_run_that_waits_for_its_time_is_known_and_can_be_called_off(control: Control) -> None:
    early, late = local_now() + timedelta(hours=1), local_now() + timedelta(hours=2)
    assert (control.beginnings(), control.call_off()) == ((), ())
    with control.beginning_at(late) as is_late_off:
        with control.beginning_at(early):
            assert [each.at for each in control.beginnings()] == [early, late]
        assert not is_late_off()
        assert [each.at for each in control.call_off()] == [late]
        assert is_late_off()
        assert control.beginnings() == ()
    assert control.beginnings() == ()


def test_who_died_waits_for_nothing() -> None:
    wishes = MemoryWishes()
    control = MemoryControl(wishes, ME, SystemTime())
    waiting = control.waiting_for_turn()
    waiting.__enter__()
    wishes.life = lambda _holder: Liveness.DEAD
    assert not control.is_turn_wanted()
    assert wishes.turns == {}
