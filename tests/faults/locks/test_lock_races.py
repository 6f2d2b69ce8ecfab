"""Many processes after the same locks (LCK-2, 4, 7): whoever dies where, there is never more than one holder."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from aiflow.adapters.locks.lock_files import LockFiles
from aiflow.adapters.locks.taking import LockTaking
from forms import rounds

pytestmark = [pytest.mark.faults]

PROCESSES = 8
WANTED_HOLDS = rounds(240, 600)
MAX_SECONDS = 200  # it ends with the holds that are wanted, long before

# Starts one taker after the other until there were enough holds. A taker reclaims and takes locks, with 0-1.5 ms of
# jitter at every step it takes on the disk, notes when it began and stopped to hold each, and dies half of the time.
TAKERS = """
import os, random, signal, sys, time
root, log, stop, seed = sys.argv[1:]
from aiflow.adapters.locks.taking import LockTaking
def slowed(real):
    def call(*args, **kwargs):
        if random.random() < 0.3:
            time.sleep(random.uniform(0, 0.0015))
        return real(*args, **kwargs)
    return call
for name in ("open", "listdir", "link", "unlink", "replace", "fsync", "pwrite", "stat"):
    setattr(os, name, slowed(getattr(os, name)))
fd = os.open(log, os.O_WRONLY | os.O_APPEND)
def note(what, lock):
    os.write(fd, f"{what} {time.clock_gettime_ns(time.CLOCK_BOOTTIME)} {lock.fence} {lock.lock_type}\\n".encode())
def take(number):
    locks = LockTaking(root, 1800)
    locks.reclaim()
    if random.random() < 0.5:
        lease = locks.acquire_queue()
    else:
        lease = locks.acquire_request(f"RQ-{random.randrange(3)}", f"RUN-{seed}-{number}")
    if not hasattr(lease, "release"):
        time.sleep(random.uniform(0, 0.004))
        return
    note("begin", lease.lock)
    time.sleep(random.uniform(0, 0.003))
    end = random.random()
    if end < 0.2:
        note("end", lease.lock)
        os.kill(os.getpid(), signal.SIGKILL)
    with lease.writing():
        time.sleep(random.uniform(0, 0.001))
        note("end", lease.lock)
        if end < 0.35:
            os.kill(os.getpid(), signal.SIGKILL)
        if end < 0.5:
            os._exit(1)
    lease.release()
number = 0
while not os.path.exists(stop):
    number += 1
    child = os.fork()
    if not child:
        random.seed(f"{seed}-{number}")
        try:
            for turn in range(10_000):
                take(f"{number}-{turn}")
                if os.path.exists(stop):
                    break
        except BaseException as error:
            note(f"error:{error!r}".replace(" ", "_"), type("", (), {"fence": 0, "lock_type": number}))
        os._exit(0)
    if random.random() < 0.5:
        time.sleep(random.uniform(0, 0.002))  # a zombie meanwhile
    os.waitpid(child, 0)
"""


class Hold(NamedTuple):
    """One process's time with the lock, by a clock that all share."""

    began: int
    ended: int
    fence: int


def read_holds(log: Path) -> dict[str, list[Hold]]:
    begins: dict[int, int] = {}
    holds: dict[str, list[Hold]] = {"request": [], "queue": []}
    for line in log.read_text().splitlines():
        what, at, fence, lock_type = line.split()
        assert what in ("begin", "end"), line
        if what == "begin":
            assert int(fence) not in begins
            begins[int(fence)] = int(at)
        else:
            holds[lock_type].append(Hold(begins[int(fence)], int(at), int(fence)))
    assert sum(map(len, holds.values())) == len(begins)
    return {lock_type: sorted(each) for lock_type, each in holds.items()}


@pytest.mark.spec("LCK-2", "LCK-4", "LCK-7")
def test_never_two_holders_while_takers_crash(tmp_path: Path, chance: random.Random) -> None:
    log, stop = tmp_path / "log", tmp_path / "stop"
    log.touch()
    seed = chance.randrange(10**9)
    arguments = [sys.executable, "-c", TAKERS, str(tmp_path), str(log), str(stop)]
    starters = [subprocess.Popen([*arguments, f"{seed}.{number}"]) for number in range(PROCESSES)]
    began = time.monotonic()
    while time.monotonic() - began < MAX_SECONDS and log.read_text().count("end") < WANTED_HOLDS:
        time.sleep(0.1)
    stop.touch()
    assert [starter.wait(timeout=60) for starter in starters] == [0] * PROCESSES
    for holds in (every := read_holds(log)).values():
        assert [(one, other) for one, other in pairwise(holds) if other.began < one.ended] == []
        fences = [hold.fence for hold in holds]
        assert fences == sorted(set(fences))
        assert len(holds) >= WANTED_HOLDS // 6
    assert sum(map(len, every.values())) >= WANTED_HOLDS * 5 // 6
    LockTaking(str(tmp_path), 1800).reclaim()
    assert LockFiles(tmp_path).held() == ({}, None)
    names = {path.name for path in (tmp_path / ".aiflow/locks").iterdir()}
    assert {name for name in names if not name.endswith(".tmp")} == {"guard", "holders", "reclaim.guard"}


# Waits until everybody is ready, takes, and keeps what it got until its input ends.
RIVAL = """
import os, sys, time
from aiflow.adapters.locks.taking import LockTaking
root, go, number = sys.argv[1:]
locks = LockTaking(root, 1800)
print("ready", flush=True)
while not os.path.exists(go):
    pass
got = locks.acquire_request(f"RQ-{number}", f"RUN-{number}") if number != "queue" else locks.acquire_queue()
print("taken" if hasattr(got, "release") else got.run_id, flush=True)
sys.stdin.read()
"""


@pytest.mark.spec("LCK-2", "LCK-7")
def test_of_sixteen_at_once_one_wins_and_the_others_are_told_who(tmp_path: Path) -> None:
    for turn in range(rounds(1, 3)):
        root, go = tmp_path / str(turn), tmp_path / f"go{turn}"
        root.mkdir()
        rivals = [
            subprocess.Popen(
                [sys.executable, "-c", RIVAL, str(root), str(go), str(number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(16)
        ]
        assert {rival.stdout.readline() for rival in rivals if rival.stdout} == {"ready\n"}
        go.touch()
        answers = [rival.stdout.readline().strip() for rival in rivals if rival.stdout]
        for rival in rivals:
            rival.communicate(timeout=60)
        winner = answers.index("taken")
        assert answers == [f"RUN-{winner}"] * winner + ["taken"] + [f"RUN-{winner}"] * (15 - winner)


@pytest.mark.spec("LCK-4", "LCK-5")
def test_of_many_that_reclaim_at_once_each_lock_is_removed_by_one(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from aiflow.adapters.locks.taking import LockTaking\n"
        "root, go = sys.argv[1:]\n"
        "print('ready', flush=True)\n"
        "while not os.path.exists(go): pass\n"
        "print(*(status.lock.run_id for status in LockTaking(root, 1800).reclaim()), flush=True)\n"
    )
    folder, go = tmp_path / ".aiflow/locks", tmp_path / "go"
    folder.mkdir(parents=True)
    run_ids = [f"RUN-{time.time_ns()}-{number}" for number in range(10)]
    for run_id in run_ids:
        (folder / f"request.{run_id}.lock.json").write_text(
            f'{{"run_id": "{run_id}", "pid": 4194305, "host": "127.0.0.1", "token": "{run_id}"}}'
        )
    command = [sys.executable, "-c", script, str(tmp_path), str(go)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    assert {process.stdout.readline() for process in processes if process.stdout} == {"ready\n"}
    go.touch()
    removed = " ".join(process.communicate(timeout=60)[0] for process in processes).split()
    assert sorted(removed) == sorted(run_ids)
