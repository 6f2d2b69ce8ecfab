"""Taking locks (LCK-1..5, 7): real processes hold, stop and die; nobody is robbed, and nothing dead stays locked."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.files.guard_files import guarded
from aiflow.adapters.locks.lease import LockLease
from aiflow.adapters.locks.lock_files import LockFiles
from aiflow.adapters.locks.taking import LockTaking
from aiflow.adapters.processes.machine import boot_id, host_name, pid_namespace
from aiflow.adapters.processes.table import facts_of
from aiflow.domain.lock import Lock, LockType, LockVerdict
from aiflow.domain.process import Liveness
from aiflow.domain.request import RequestId, parse_instant
from aiflow.errors import ConflictError, EnvironmentProblemError
from aiflow.ports import Locks
from builders import NOW
from waiting import wait_until

RQ, RQ2 = RequestId("RQ-1"), RequestId("RQ-2")
TTL = 1800.0
# What carries a reclaimed run's id is ended: nobody else's processes may have ours.
RUN = f"RUN-locks-{os.getpid()}"
RUN2 = f"{RUN}-2"
OLD_RUN = f"{RUN}-old"

# Takes a request's lock, says how that went, and does what its input says until that ends.
HOLDER = """
import sys
from aiflow.adapters.locks.taking import LockTaking
from aiflow.errors import AiflowError
root, request_id, run_id, ttl = sys.argv[1:]
lease = LockTaking(root, float(ttl)).acquire_request(request_id, run_id)
print(getattr(lease, "run_id", "taken"), flush=True)
for line in sys.stdin:
    if line == "lost?\\n":
        print(lease.is_lost, flush=True)
    if line == "write\\n":
        try:
            with lease.writing():
                print("written", flush=True)
        except AiflowError as error:
            print(error.reason_code, flush=True)
    if line == "release\\n":
        lease.release()
        print("released", flush=True)
"""


class Holder:
    """Another process that holds a lock."""

    def __init__(self, root: Path, request_id: str = "RQ-1", run_id: str = RUN, ttl_seconds: float = TTL) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(root), request_id, run_id, str(ttl_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.answer = self.read()

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, words: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{words}\n")
        self.process.stdin.flush()
        return self.read()


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Callable[..., Holder]]:
    holders: list[Holder] = []

    def start(*args: Any, **kwargs: Any) -> Holder:
        holders.append(Holder(tmp_path, *args, **kwargs))
        return holders[-1]

    yield start
    for holder in holders:
        holder.process.kill()
        holder.process.communicate()


@pytest.fixture
def take(tmp_path: Path) -> Iterator[Callable[..., LockLease]]:
    leases: list[LockLease] = []

    def taken(request_id: str | None = RQ, ttl_seconds: float = TTL, **options: Any) -> LockLease:
        locks = LockTaking(str(tmp_path), ttl_seconds, **options)
        got = locks.acquire_queue() if request_id is None else locks.acquire_request(RequestId(request_id), RUN)
        assert isinstance(got, LockLease)
        leases.append(got)
        return got

    yield taken
    for lease in leases:
        lease.release()


# What stays where locks are.
PERMANENT = ["guard", "holders"]


def left_in(root: Path) -> list[str]:
    """Return what is in the folder of the locks."""
    return sorted(path.name for path in lock_path(root).parent.iterdir())


def lock_path(root: Path, request_id: str | None = "RQ-1") -> Path:
    name = "queue" if request_id is None else f"request.{request_id}"
    return root / f".aiflow/locks/{name}.lock.json"


def content(root: Path, request_id: str | None = "RQ-1") -> dict[str, Any]:
    fields = json.loads(lock_path(root, request_id).read_bytes())
    assert isinstance(fields, dict)
    return fields


def forge(root: Path, request_id: str | None = "RQ-1", **changes: Any) -> Path:
    """Write a lock file as if this process had taken it, with some fields changed."""
    fields = {
        "version": "1.0",
        "lock_type": "request",
        "request_id": request_id,
        "run_id": OLD_RUN,
        "pid": os.getpid(),
        "host": host_name(),
        "created_at": "2026-01-02T03:04:05+00:00",
        "expires_at": "2099-01-01T00:00:00+00:00",
        "token": "another",
        "fence": 1,
        "boot_id": boot_id(),
        "process_started_at": facts_of(os.getpid()).process_started_at,
    }
    path = lock_path(root, request_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**fields, **changes}))
    return path


def survey(root: Path, ttl_seconds: float = TTL, **options: Any) -> list[tuple[Liveness, LockVerdict]]:
    return [(each.liveness, each.verdict) for each in LockTaking(str(root), ttl_seconds, **options).survey()]


def reclaim(root: Path, ttl_seconds: float = TTL, **options: Any) -> list[str | None]:
    return [status.lock.run_id for status in LockTaking(str(root), ttl_seconds, **options).reclaim()]


def tomorrow() -> datetime:
    return datetime.now(UTC) + timedelta(days=1)


# --- taking ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("LCK-1")
def test_a_lock_file_has_the_seeds_fields_and_ours(tmp_path: Path, take: Callable[..., LockLease]) -> None:
    before = datetime.now(UTC)
    lease, queue = take(), take(None)
    fields = content(tmp_path)
    assert list(fields)[:8] == [
        "version", "lock_type", "request_id", "run_id", "pid", "host", "created_at", "expires_at",
    ]  # fmt: skip
    assert list(fields)[8:] == ["token", "fence", "boot_id", "process_started_at", "pid_namespace"]
    assert (fields["version"], fields["lock_type"], fields["request_id"]) == ("1.0", "request", "RQ-1")
    assert (fields["run_id"], fields["pid"], fields["host"]) == (RUN, os.getpid(), socket.gethostname())
    assert all(re.fullmatch(r".+T.+[+-]\d\d:\d\d", fields[name]) for name in ("created_at", "expires_at"))
    created_at, expires_at = parse_instant(fields["created_at"]), parse_instant(fields["expires_at"])
    assert created_at is not None and expires_at is not None
    assert before <= created_at <= datetime.now(UTC)
    assert expires_at - created_at == timedelta(seconds=TTL)
    assert (fields["token"], fields["fence"]) == (lease.lock.token, lease.lock.fence)
    assert len(fields["token"]) == 32
    assert fields["boot_id"] == boot_id()
    assert fields["pid_namespace"] == pid_namespace()
    assert fields["process_started_at"] == facts_of(os.getpid()).process_started_at
    of_queue = content(tmp_path, None)
    assert list(of_queue) == list(fields)
    assert (of_queue["lock_type"], of_queue["request_id"], of_queue["run_id"]) == ("queue", None, None)
    requests, read_queue = LockFiles(tmp_path).held()
    assert (requests[RQ].token, requests[RQ].expires_at) == (lease.lock.token, lease.lock.expires_at)
    assert read_queue is not None
    assert read_queue.token == queue.lock.token != lease.lock.token


@pytest.mark.spec("LCK-7")
def test_one_run_at_a_time_whatever_its_request(tmp_path: Path, hold: Callable[..., Holder]) -> None:
    assert hold("RQ-1", RUN).answer == "taken"
    locks: Locks = LockTaking(str(tmp_path), TTL)
    for request_id in (RQ, RQ2):
        got = locks.acquire_request(request_id, RUN2)
        assert isinstance(got, Lock)
        assert (got.request_id, got.run_id) == ("RQ-1", RUN)
    forge(tmp_path, "RQ-0")
    same = locks.acquire_request(RQ, RUN2)
    assert isinstance(same, Lock)
    assert same.run_id == RUN
    queue = locks.acquire_queue()
    assert isinstance(queue, LockLease)
    assert isinstance(LockTaking(str(tmp_path), TTL).acquire_queue(), Lock)
    queue.release()


@pytest.mark.spec("LCK-2", "LCK-7")
def test_a_stale_lock_is_returned_and_not_taken_over_silently(tmp_path: Path) -> None:
    forge(tmp_path, boot_id="another")
    got = LockTaking(str(tmp_path), TTL).acquire_request(RQ2, RUN2)
    assert isinstance(got, Lock)
    assert got.run_id == OLD_RUN


@pytest.mark.spec("LCK-2")
def test_a_released_lock_file_is_gone_and_can_be_taken_again(
    tmp_path: Path, hold: Callable[..., Holder], take: Callable[..., LockLease]
) -> None:
    holder = hold()
    assert holder.ask("write") == "written"
    assert holder.ask("release") == "released"
    assert holder.ask("release") == "released"
    assert left_in(tmp_path) == PERMANENT
    assert holder.ask("write") == "LOCK_LOST"
    take(RQ2).release()
    assert left_in(tmp_path) == PERMANENT


@pytest.mark.spec("LCK-1")
@pytest.mark.parametrize("request_id", ["要望-ガ.1", unicodedata.normalize("NFD", "要望-ガ.1"), "あ" * 60, "x" * 180])
def test_a_lock_is_found_by_any_spelling_of_its_id(
    tmp_path: Path, request_id: str, take: Callable[..., LockLease]
) -> None:
    lease = take(request_id)
    spelled = unicodedata.normalize("NFC", request_id)
    assert list(LockFiles(tmp_path).held()[0]) == [spelled]
    assert content(tmp_path, spelled)["request_id"] == spelled
    with lease.writing():
        pass
    assert LockTaking(str(tmp_path), TTL).break_lock(RequestId(request_id)) is not None
    assert not list(lock_path(tmp_path).parent.glob("*.lock.json"))


def test_a_name_that_is_too_long_is_a_problem_with_a_name(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblemError, match="IO_ERROR"):
        LockTaking(str(tmp_path), TTL).acquire_request(RequestId("x" * 250), RUN)
    assert left_in(tmp_path) == PERMANENT


def test_a_broken_link_in_the_place_of_a_lock_holds_it(tmp_path: Path) -> None:
    lock_path(tmp_path).parent.mkdir(parents=True)
    lock_path(tmp_path).symlink_to("nowhere")
    holder = LockTaking(str(tmp_path), TTL).acquire_request(RQ, RUN)
    assert isinstance(holder, Lock)
    assert not holder.is_readable
    assert lock_path(tmp_path).is_symlink()


@pytest.mark.spec("LCK-2")
@pytest.mark.parametrize("name", ["guard", "holders"])
def test_a_link_in_the_place_of_a_guard_is_refused(tmp_path: Path, name: str) -> None:
    folder = lock_path(tmp_path).parent
    folder.mkdir(parents=True)
    (tmp_path / "victim").write_text("a person's\n")
    (folder / name).symlink_to(tmp_path / "victim")
    with pytest.raises(EnvironmentProblemError, match="LINK_REFUSED"):
        LockTaking(str(tmp_path), TTL).acquire_request(RQ, RUN)
    assert (tmp_path / "victim").read_text() == "a person's\n"


def test_what_a_killed_writer_left_is_cleared_away(tmp_path: Path, take: Callable[..., LockLease]) -> None:
    folder = lock_path(tmp_path).parent
    folder.mkdir(parents=True)
    (folder / ".request.RQ-1.lock.json.0123.tmp").write_text("{")
    take()
    assert sorted(path.name for path in folder.iterdir()) == [*PERMANENT, "request.RQ-1.lock.json"]


READER = """
import json, os, sys
folder, stop = sys.argv[1:]
seen = bad = 0
print("ready", flush=True)
while not os.path.exists(stop):
    for name in ("request.RQ-1.lock.json", "queue.lock.json"):
        try:
            with open(f"{folder}/{name}", "rb") as file:
                data = file.read()
        except FileNotFoundError:
            continue
        seen += 1
        try:
            bad += len(json.loads(data)) != 13
        except ValueError:
            bad += 1
print(seen, bad)
"""


@pytest.mark.spec("LCK-2")
def test_readers_never_see_half_a_lock(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    locks = LockTaking(str(tmp_path), 0.02)
    locks.acquire_queue()
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(lock_path(tmp_path).parent), str(stop)], stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        try:
            began = time.monotonic()
            while time.monotonic() - began < 2:
                lease = locks.acquire_request(RQ, RUN)
                assert isinstance(lease, LockLease)
                lease.allow(10)
                time.sleep(0.007)
                lease.release()
        finally:
            stop.touch()
        seen, bad = map(int, reader.stdout.read().split())
    assert bad == 0
    assert seen > 500
    assert locks.break_lock(None) is not None


# --- fences ----------------------------------------------------------------------------------------------------------


def spoil_nothing(_guard: Path) -> None:
    pass


def empty(guard: Path) -> None:
    guard.write_bytes(b"")


def scribble(guard: Path) -> None:
    guard.write_bytes(b"\xff no number at all, and longer than one")


def cut(guard: Path) -> None:
    os.truncate(guard, 9)


@pytest.mark.spec("LCK-2")
@pytest.mark.parametrize("spoil", [spoil_nothing, Path.unlink, empty, scribble, cut])
def test_fences_only_ever_grow(tmp_path: Path, take: Callable[..., LockLease], spoil: Callable[[Path], None]) -> None:
    fences = []
    for _ in range(5):
        lease = take()
        fences.append(lease.lock.fence or 0)
        assert (lock_path(tmp_path).parent / "guard").read_bytes() == b"%020d\n" % fences[-1]
        lease.release()
        spoil(lock_path(tmp_path).parent / "guard")
    assert fences == sorted(set(fences))
    if spoil is spoil_nothing:
        assert fences == list(range(fences[0], fences[0] + 5))


@pytest.mark.spec("LCK-2")
def test_a_fence_is_greater_than_that_of_any_lock_there_is(tmp_path: Path, take: Callable[..., LockLease]) -> None:
    forge(tmp_path, fence=8_000_000_000_000_000_000)
    assert take(None).lock.fence == 8_000_000_000_000_000_001
    forge(tmp_path, fence=10**300)
    LockTaking(str(tmp_path), TTL).break_lock(None)
    assert take(None).lock.fence == 8_000_000_000_000_000_002


# --- keeping ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("LCK-3")
def test_nothing_is_written_renewed_or_released_with_anothers_token(
    tmp_path: Path, take: Callable[..., LockLease]
) -> None:
    lease = take()
    path = forge(tmp_path, token="another")
    theirs = path.read_bytes()
    with pytest.raises(ConflictError) as raised, lease.writing():
        raise AssertionError("the body must not run")
    assert raised.value.reason_code == "LOCK_LOST"
    assert raised.value.context == {"request_id": "RQ-1", "run_id": RUN}
    assert lease.is_lost
    lease.release()
    assert path.read_bytes() == theirs
    path.unlink()
    again = take()
    assert lease.is_lost
    assert not again.is_lost


@pytest.mark.spec("LCK-3")
@pytest.mark.parametrize("loss", ["replaced", "damaged", "gone"])
def test_a_lost_lock_is_noticed_within_two_seconds(tmp_path: Path, take: Callable[..., LockLease], loss: str) -> None:
    lease = take()
    if loss == "replaced":
        forge(tmp_path)
    elif loss == "damaged":
        lock_path(tmp_path).write_bytes(b"")
    else:
        lock_path(tmp_path).unlink()
    assert wait_until(lambda: lease.is_lost) < 2
    lease.release()
    assert lease.is_lost
    assert lock_path(tmp_path).exists() == (loss != "gone")


@pytest.mark.spec("LCK-3")
def test_a_cleaned_checkout_is_a_lost_lock_and_nothing_is_made_anew(repository: Path) -> None:
    leases = []
    for wait in (False, True):
        lease = LockTaking(str(repository), 0.4).acquire_request(RQ, RUN)
        assert isinstance(lease, LockLease)
        lease.allow(60)
        subprocess.run(["git", "clean", "-fdxq"], cwd=repository, check=True)
        assert not (repository / ".aiflow").exists()
        if wait:
            wait_until(lambda lost=lease: lost.is_lost)  # type: ignore[misc]
        with pytest.raises(ConflictError, match="LOCK_LOST"), lease.writing():
            pass
        leases.append(lease)
    for lease in leases:
        lease.release()
        assert lease.is_lost
    assert not (repository / ".aiflow").exists()


@pytest.mark.spec("LCK-3")
def test_the_heartbeat_renews_as_long_as_it_is_allowed(tmp_path: Path, take: Callable[..., LockLease]) -> None:
    lease = take(ttl_seconds=0.8)

    def expiry() -> str:
        return str(content(tmp_path)["expires_at"])

    first, began = expiry(), time.monotonic()
    wait_until(lambda: expiry() != first)
    time.sleep(max(0.0, 1.3 - (time.monotonic() - began)))
    last = expiry()
    time.sleep(0.7)
    assert expiry() == last, "renewed behind the allowance"
    assert survey(tmp_path, 0.8, clock=tomorrow) == [(Liveness.ALIVE, LockVerdict.HELD_EXPIRED)]
    assert not lease.is_lost, "expired, and still ours"
    with lease.writing():
        pass
    lease.allow(60)
    wait_until(lambda: expiry() != last)
    assert content(tmp_path)["token"] == lease.lock.token
    assert content(tmp_path)["fence"] == lease.lock.fence
    assert survey(tmp_path, 0.8) == [(Liveness.ALIVE, LockVerdict.HELD)]


@pytest.mark.spec("LCK-3")
@pytest.mark.parametrize("jump", [timedelta(hours=8), timedelta(days=-300)])
def test_a_laptop_that_wakes_or_whose_clock_is_set_renews_at_once(
    tmp_path: Path, take: Callable[..., LockLease], jump: timedelta
) -> None:
    clock = [NOW]
    lease = take(clock=lambda: clock[0])
    time.sleep(0.7)
    assert content(tmp_path)["expires_at"] == (NOW + timedelta(seconds=TTL)).isoformat()
    clock[0] = NOW + jump
    wait_until(lambda: content(tmp_path)["expires_at"] == (clock[0] + timedelta(seconds=TTL)).isoformat())
    wait_until(lambda: lease.lock.expires_at == clock[0] + timedelta(seconds=TTL))


# Neither a disk that takes nothing nor a system without file descriptors ends the heartbeat or loses the lock.
STARVED = """
import resource, sys, time
from aiflow.adapters.locks.taking import LockTaking
lease = LockTaking(sys.argv[1], 0.4).acquire_request("RQ-1", "RUN-1")
lease.allow(60)
for limit, name in ((0, resource.RLIMIT_FSIZE), (3, resource.RLIMIT_NOFILE)):
    before = resource.getrlimit(name)
    resource.setrlimit(name, (limit, before[1]))
    time.sleep(0.2)
    old = lease.lock.expires_at
    time.sleep(0.6)
    assert lease.lock.expires_at == old, name
    assert not lease.is_lost
    resource.setrlimit(name, before)
    until = time.monotonic() + 60
    while lease.lock.expires_at == old:
        assert time.monotonic() < until, name
        time.sleep(0.02)
assert not lease.is_lost
lease.release()
"""


@pytest.mark.spec("LCK-3")
def test_the_heartbeat_outlives_a_full_disk(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", STARVED, str(tmp_path)], check=True, timeout=100)
    assert left_in(tmp_path) == PERMANENT


@pytest.mark.spec("LCK-3")
def test_the_guard_is_kept_while_something_is_written(tmp_path: Path, take: Callable[..., LockLease]) -> None:
    lease, queue = take(), take(None)
    other = LockTaking(str(tmp_path), TTL)
    breaker = threading.Thread(target=other.break_lock, args=(RQ,))
    with lease.writing():
        breaker.start()
        breaker.join(timeout=0.3)
        assert breaker.is_alive()
        assert lock_path(tmp_path).exists()
    breaker.join(timeout=60)
    assert not lock_path(tmp_path).exists()
    assert not queue.is_lost


@pytest.mark.spec("LCK-3", "LCK-6")
def test_a_thread_inside_the_guard_may_enter_it_again(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    locks = LockTaking(str(tmp_path), 0.2)
    queue, lease = locks.acquire_queue(), locks.acquire_request(RQ, RUN)
    assert isinstance(queue, LockLease)
    assert isinstance(lease, LockLease)
    lease.allow(60)
    with queue.writing(), lease.writing():
        time.sleep(0.1)  # both heartbeats wait at the guard by now
        lease.release()
        assert not lock_path(tmp_path).exists()
    queue.release()
    wait_until(lambda: not set(threading.enumerate()) - before)
    assert left_in(tmp_path) == PERMANENT


@pytest.mark.spec("LCK-3")
def test_an_error_while_writing_frees_the_guard_and_is_not_renamed(
    tmp_path: Path, take: Callable[..., LockLease]
) -> None:
    lease = take()
    with pytest.raises(FileNotFoundError, match="mine"), lease.writing():
        raise FileNotFoundError("mine")
    with lease.writing():
        pass
    assert not lease.is_lost


@pytest.mark.spec("LCK-2")
def test_a_guard_that_was_replaced_meanwhile_guards_nothing(tmp_path: Path) -> None:
    guard = tmp_path / "guard"
    entered = threading.Event()

    def enter() -> None:
        with guarded(guard):
            entered.set()

    waiting = threading.Thread(target=enter)
    with contextlib.ExitStack() as old:
        old.enter_context(guarded(guard))
        waiting.start()
        time.sleep(0.2)
        guard.unlink()
        with guarded(guard):
            old.close()
            assert not entered.wait(0.3)
        assert entered.wait(60)
    waiting.join()


FORKED = """
import os, sys, time
from aiflow.adapters.files.guard_files import guarded
with guarded(sys.argv[1]):
    child = os.fork()
    if not child:
        time.sleep(600)
print(child, flush=True)
with guarded(sys.argv[1]):
    print("free", flush=True)
os.kill(child, 9)
"""


@pytest.mark.spec("LCK-2")
def test_a_child_forked_inside_the_guard_does_not_keep_it(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", FORKED, str(tmp_path / "guard")], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        is_kept = threading.Event()

        def give_up() -> None:
            is_kept.set()
            os.kill(child, signal.SIGKILL)

        ending = threading.Timer(60, give_up)
        ending.start()
        assert process.stdout.readline() == b"free\n"
        ending.cancel()
        assert not is_kept.is_set(), "free only when the child was dead"


# --- judging and reclaiming ------------------------------------------------------------------------------------------


@pytest.mark.timing
@pytest.mark.spec("LCK-4")
def test_a_killed_holder_is_reclaimed_within_two_seconds(
    tmp_path: Path, hold: Callable[..., Holder], allowed: Callable[[float], float]
) -> None:
    holder = hold()
    assert survey(tmp_path) == [(Liveness.ALIVE, LockVerdict.HELD)]
    assert reclaim(tmp_path) == []
    holder.process.kill()
    holder.process.wait()
    began = time.monotonic()
    assert survey(tmp_path) == [(Liveness.DEAD, LockVerdict.STALE_DEAD)]
    assert reclaim(tmp_path) == [RUN]
    assert time.monotonic() - began < allowed(2)
    assert reclaim(tmp_path) == []
    assert not lock_path(tmp_path).exists()
    assert hold("RQ-2", RUN2).answer == "taken"


@pytest.mark.spec("LCK-4")
def test_a_holder_that_ended_and_was_not_waited_for_is_dead(tmp_path: Path, hold: Callable[..., Holder]) -> None:
    holder = hold()
    holder.process.kill()
    stat = Path(f"/proc/{holder.process.pid}/stat")
    if stat.exists():
        wait_until(lambda: ") Z " in stat.read_text())
    os.kill(holder.process.pid, 0)  # a zombie looks alive to whoever asks this way
    assert survey(tmp_path) == [(Liveness.DEAD, LockVerdict.STALE_DEAD)]
    assert reclaim(tmp_path) == [RUN]


@pytest.mark.spec("LCK-4")
def test_a_paused_holder_is_not_robbed_not_even_when_expired(tmp_path: Path, hold: Callable[..., Holder]) -> None:
    holder = hold()
    os.kill(holder.process.pid, signal.SIGSTOP)
    try:
        for clock, verdict in ((lambda: datetime.now(UTC), LockVerdict.HELD), (tomorrow, LockVerdict.HELD_EXPIRED)):
            assert survey(tmp_path, clock=clock) == [(Liveness.ALIVE, verdict)]
            assert reclaim(tmp_path, clock=clock) == []
        got = LockTaking(str(tmp_path), TTL, tomorrow).acquire_request(RQ2, RUN2)
        assert isinstance(got, Lock)
    finally:
        os.kill(holder.process.pid, signal.SIGCONT)
    time.sleep(0.6)
    assert holder.ask("lost?") == "False"
    assert holder.ask("write") == "written"


@pytest.mark.spec("LCK-4")
def test_our_own_lock_is_alive(tmp_path: Path, take: Callable[..., LockLease]) -> None:
    take()
    assert survey(tmp_path, clock=tomorrow) == [(Liveness.ALIVE, LockVerdict.HELD_EXPIRED)]
    assert reclaim(tmp_path, clock=tomorrow) == []


EXPIRED = "2020-01-01T00:00:00+00:00"


@pytest.mark.spec("LCK-4")
@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"process_started_at": 1.25}, LockVerdict.STALE_DEAD),
        ({"boot_id": "another"}, LockVerdict.STALE_DEAD),
        ({"boot_id": "another", "host": "127.0.0.1"}, LockVerdict.STALE_DEAD),
        ({"pid": 2**22 + 1, "process_started_at": None}, LockVerdict.STALE_DEAD),
        ({"host": "elsewhere.example"}, LockVerdict.HELD),
        ({"host": "elsewhere.example", "boot_id": "another", "pid": 2**22 + 1}, LockVerdict.HELD),
        ({"host": "elsewhere.example", "expires_at": EXPIRED}, LockVerdict.STALE_EXPIRED),
        ({"expires_at": EXPIRED}, LockVerdict.HELD_EXPIRED),
        ({"token": None, "boot_id": "another"}, LockVerdict.STALE_DEAD),
        ({"token": None, "fence": None, "boot_id": None, "process_started_at": None}, LockVerdict.HELD),
    ],
)
def test_only_a_dead_holders_lock_or_an_expired_strangers_is_reclaimed(
    tmp_path: Path, changes: dict[str, Any], verdict: LockVerdict
) -> None:
    path = forge(tmp_path, **changes)
    assert [judged for _, judged in survey(tmp_path)] == [verdict]
    assert reclaim(tmp_path) == ([OLD_RUN] if verdict.is_stale else [])
    assert path.exists() == (not verdict.is_stale)


@pytest.mark.spec("LCK-5")
@pytest.mark.parametrize("data", [b"", b"{", b'{"version": "1.0", "lock_type": "requ', b"\0" * 300])
def test_a_damaged_lock_is_stale_once_older_than_the_ttl(tmp_path: Path, data: bytes) -> None:
    path = forge(tmp_path)
    path.write_bytes(data)
    young, old = time.time() - TTL + 60, time.time() - TTL - 60
    os.utime(path, (young, young))
    assert survey(tmp_path) == [(Liveness.UNKNOWN, LockVerdict.HELD)]
    assert reclaim(tmp_path) == []
    assert isinstance(LockTaking(str(tmp_path), TTL).acquire_request(RQ, RUN), Lock)
    os.utime(path, (old, old))
    assert survey(tmp_path) == [(Liveness.UNKNOWN, LockVerdict.STALE_DAMAGED)]
    assert reclaim(tmp_path) == [None]
    assert not path.exists()


def _huge(path: Path) -> None:
    """A lock that is right in all but its size."""
    (path.parents[2] / "other").mkdir()
    locks = LockTaking(str(path.parents[2] / "other"), TTL)
    lease = locks.acquire_request(RQ, RUN)
    assert isinstance(lease, LockLease)
    path.write_bytes(lock_path(path.parents[2] / "other").read_bytes() + b" " * 70_000)
    lease.release()


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "in.txt").write_text("something\n")


def _link(path: Path) -> None:
    (path.parents[2] / "victim").write_text('{"pid": 1, "token": "x"}')
    path.symlink_to(path.parents[2] / "victim")


@pytest.mark.spec("LCK-5")
@pytest.mark.parametrize("make", [_huge, _folder, _link, os.mkfifo], ids=["huge", "folder", "link", "pipe"])
@pytest.mark.parametrize("request_id", ["RQ-1", None])
def test_what_is_no_lock_file_counts_as_a_damaged_one(
    tmp_path: Path, make: Callable[[Path], None], request_id: str | None
) -> None:
    path = lock_path(tmp_path, request_id)
    path.parent.mkdir(parents=True)
    make(path)
    assert survey(tmp_path) == [(Liveness.UNKNOWN, LockVerdict.HELD)]
    assert reclaim(tmp_path) == []
    os.utime(path, (1, 1), follow_symlinks=False)
    assert survey(tmp_path) == [(Liveness.UNKNOWN, LockVerdict.STALE_DAMAGED)]
    assert reclaim(tmp_path) == [None]
    assert not os.path.lexists(path)
    assert make is not _link or (tmp_path / "victim").exists()


@pytest.mark.spec("LCK-5")
def test_a_folder_in_the_place_of_a_lock_can_be_broken(tmp_path: Path) -> None:
    path = lock_path(tmp_path)
    path.parent.mkdir(parents=True)
    _folder(path)
    assert LockTaking(str(tmp_path), TTL).break_lock(RQ) is not None
    assert not path.exists()


@pytest.mark.spec("LCK-5")
def test_every_stale_lock_is_reclaimed_and_no_other(tmp_path: Path, hold: Callable[..., Holder]) -> None:
    hold("RQ-1")
    for number in range(2, 5):
        forge(tmp_path, f"RQ-{number}", run_id=f"{RUN}-{number}", boot_id="another")
    lock_path(tmp_path, None).write_text("{}")
    os.utime(lock_path(tmp_path, None), (1, 1))
    removed = LockTaking(str(tmp_path), TTL).reclaim()
    assert [(each.lock.lock_type, each.lock.run_id) for each in removed] == [
        (LockType.QUEUE, None),
        (LockType.REQUEST, RUN2),
        (LockType.REQUEST, f"{RUN}-3"),
        (LockType.REQUEST, f"{RUN}-4"),
    ]
    assert list(LockFiles(tmp_path).held()[0]) == [RQ]


def test_looking_and_reclaiming_make_nothing(tmp_path: Path) -> None:
    assert survey(tmp_path) == []
    assert reclaim(tmp_path) == []
    assert LockTaking(str(tmp_path), TTL).break_lock(RQ) is None
    assert LockTaking(str(tmp_path), TTL).break_lock(None) is None
    assert list(tmp_path.iterdir()) == []


@contextlib.contextmanager
def left_running(run_id: str) -> Iterator[subprocess.Popen[bytes]]:
    """Have a process about that carries a run's mark."""
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "AIFLOW_RUN_ID": run_id}) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.spec("LCK-4")
def test_what_the_dead_holder_left_running_is_ended_before_the_takeover(tmp_path: Path) -> None:
    run_id = f"{RUN}-left"
    path = forge(tmp_path, run_id=run_id, pid=2**22 + 1, process_started_at=0.0)
    (tmp_path / ".aiflow/guards").mkdir()
    with left_running(run_id) as left:
        reclaiming = threading.Thread(target=reclaim, args=(tmp_path,))
        with guarded(tmp_path / f".aiflow/guards/{run_id}.1.guard"):  # its agent's guard is still at work
            reclaiming.start()
            time.sleep(0.5)
            assert path.exists()
            assert isinstance(LockTaking(str(tmp_path), TTL).acquire_request(RQ2, RUN2), Lock)
        reclaiming.join(timeout=60)
        assert left.wait(timeout=60) == -signal.SIGKILL
    assert not path.exists()


@pytest.mark.spec("LCK-4")
def test_who_reclaims_late_does_not_end_the_agent_of_whoever_came_first(
    tmp_path: Path, take: Callable[..., LockLease]
) -> None:
    path = forge(tmp_path, run_id=RUN, boot_id="another")
    removed: list[str | None] = []
    late = threading.Thread(target=lambda: removed.extend(reclaim(tmp_path)))
    with guarded(path.parent / "reclaim.guard"):  # we reclaim, and the other one has seen the same stale lock
        late.start()
        time.sleep(0.3)
        path.unlink()
        take()
        with left_running(RUN) as agent:
            time.sleep(0.1)
            assert agent.poll() is None
    with left_running(RUN) as agent:
        late.join(timeout=60)
        assert agent.poll() is None
    assert removed == []


@pytest.mark.spec("LCK-2", "LCK-4")
@pytest.mark.parametrize(
    "changes", [{"token": "a third"}, {"expires_at": "2099-01-01T00:00:00+00:00"}, {"token": None}], ids=str
)
def test_a_lock_that_is_not_the_stale_one_any_more_stays(tmp_path: Path, changes: dict[str, Any]) -> None:
    stale = {"host": "elsewhere.example", "expires_at": EXPIRED}
    path = forge(tmp_path, **stale)
    removed: list[str | None] = []
    late = threading.Thread(target=lambda: removed.extend(reclaim(tmp_path)))
    with guarded(path.parent / "guard"):
        late.start()
        time.sleep(0.3)
        forge(tmp_path, **{**stale, **changes})
    late.join(timeout=60)
    assert removed == []
    assert path.exists()


@pytest.mark.spec("LCK-4")
def test_only_what_is_younger_than_the_dead_holder_is_ended(tmp_path: Path) -> None:
    run_id = f"{RUN}-since"
    with left_running(run_id) as older:
        started_at = facts_of(older.pid).process_started_at
        assert started_at is not None
        forge(tmp_path, run_id=run_id, pid=2**22 + 1, process_started_at=started_at + 5)
        assert reclaim(tmp_path) == [run_id]
        assert older.poll() is None
        forge(tmp_path, run_id=run_id, pid=2**22 + 1, process_started_at=started_at + 5, boot_id="another")
        assert reclaim(tmp_path) == [run_id]
        assert older.wait(timeout=60) == -signal.SIGKILL


@pytest.mark.spec("LCK-4")
def test_nothing_is_ended_for_a_strangers_lock(tmp_path: Path) -> None:
    run_id = f"{RUN}-stranger"
    forge(tmp_path, run_id=run_id, host="elsewhere.example", expires_at=EXPIRED)
    with left_running(run_id) as ours:
        assert reclaim(tmp_path) == [run_id]
        assert ours.poll() is None


@pytest.mark.spec("LCK-4")
def test_a_person_can_break_a_living_holders_lock(tmp_path: Path, hold: Callable[..., Holder]) -> None:
    holder = hold()
    locks = LockTaking(str(tmp_path), TTL)
    assert locks.break_lock(RQ2) is None
    status = locks.break_lock(RQ)
    assert status is not None
    assert (status.lock.run_id, status.liveness, status.verdict) == (RUN, Liveness.ALIVE, LockVerdict.HELD)
    assert not lock_path(tmp_path).exists()
    assert holder.ask("write") == "LOCK_LOST"
    assert locks.break_lock(RQ) is None
    second = hold("RQ-1", RUN2)
    assert second.answer == "taken"
    assert locks.break_lock(RQ) is not None
    wait_until(lambda: second.ask("lost?") == "True")
    assert second.process.poll() is None


def test_a_folder_that_may_not_be_written_is_a_problem_with_a_name(tmp_path: Path) -> None:
    (tmp_path / ".aiflow").write_text("a file in its place")
    with pytest.raises(EnvironmentProblemError):
        LockTaking(str(tmp_path), TTL).acquire_request(RQ, RUN)


def test_a_lease_notices_that_the_whole_checkout_is_gone(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    root.mkdir()
    lease = LockTaking(str(root), TTL).acquire_request(RQ, RUN)
    assert isinstance(lease, LockLease)
    shutil.rmtree(root)
    wait_until(lambda: lease.is_lost)
    lease.release()
    assert not root.exists()


@pytest.mark.spec("LCK-4", "LCK-8")
def test_a_held_lock_has_nothing_of_the_guard_locked(tmp_path: Path, take: Callable[..., LockLease]) -> None:
    """On NFS and SMB a `flock` of the guard is a lock of all its bytes: it would wait for whoever holds a lock."""
    take()
    whole = struct.pack("@hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    found = {}
    for name in PERMANENT:
        with (lock_path(tmp_path).parent / name).open("r+b") as file:
            answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, whole)
        found[name] = struct.unpack("@hhqqi4x", answer)[0] != fcntl.F_UNLCK
    assert found == {"guard": False, "holders": True}


@pytest.mark.spec("LCK-4")
def test_where_files_have_no_locks_a_lock_is_taken_and_another_container_is_left_alone(
    tmp_path: Path, take: Callable[..., LockLease], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("aiflow.adapters.locks.holder_life.fcntl.fcntl", refuse)
    take().release()
    forge(tmp_path, pid_namespace="1", fence=7)
    [status] = LockTaking(str(tmp_path), TTL).survey()
    assert (status.liveness, status.verdict.is_stale) == (Liveness.UNKNOWN, False)
