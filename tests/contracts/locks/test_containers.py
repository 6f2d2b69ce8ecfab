"""Containers that share a host name, a kernel and a checkout (LCK-4, QUE-7): what one cannot see there is not dead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aiflow.adapters.dynamo.queue.items import item_of_runner, runner_of
from aiflow.adapters.locks.control_files import ControlFiles
from aiflow.adapters.locks.taking import LockTaking
from aiflow.adapters.processes import leftovers, table
from aiflow.adapters.processes.machine import OUTERMOST, boot_id, machine_id, pid_namespace
from aiflow.adapters.processes.runner_process import is_gone, new_runner
from aiflow.domain.lock import Lock, LockVerdict
from aiflow.domain.process import Liveness
from aiflow.domain.queue.runner import Runner
from aiflow.domain.request import RequestId
from aiflow.errors import ConflictError
from containers import way_in

NOW = datetime(2026, 11, 16, tzinfo=UTC)
RQ, RUN = RequestId("RQ-1"), "RUN-20261116-010203-abcdef"
TTL = 1800.0
# Does what it is asked to and says what came of it, like a shell in a container.
INSIDE = """
import json, sys
from datetime import UTC, datetime
from aiflow.adapters.locks.control_files import ControlFiles
from aiflow.adapters.dynamo.queue.items import item_of_runner, runner_of
from aiflow.adapters.locks.taking import LockTaking
from aiflow.adapters.processes.leftovers import is_held
from aiflow.adapters.processes.runner_process import is_gone, new_runner
root, kept = sys.argv[1], []
for line in sys.stdin:
    print(json.dumps(eval(line)), flush=True)
"""


class Container:
    """A process with the checkout and the host name of this one, and process numbers of its own."""

    def __init__(self, root: Path) -> None:
        command = [*way_in(), sys.executable, "-c", INSIDE, str(root)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def says(self, expression: str) -> object:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{expression}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def runner(self) -> Runner:
        """Return its record, as the store would give it to us."""
        item = self.says("item_of_runner(new_runner(root, 'app', datetime.now(UTC)))")
        assert isinstance(item, dict)
        return runner_of(item)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    made = Container(tmp_path)
    yield made
    made.kill()


def survey(root: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> list[tuple[Liveness, LockVerdict]]:
    return [(each.liveness, each.verdict) for each in LockTaking(str(root), TTL, clock).survey()]


@pytest.mark.spec("QUE-7")
def test_a_runner_in_another_container_is_not_taken_for_dead(tmp_path: Path, container: Container) -> None:
    there, here = container.runner(), new_runner(str(tmp_path), "app", NOW)
    assert (there.checkout, there.boot_id) == (here.checkout, here.boot_id)
    assert there.pid_namespace != here.pid_namespace
    assert not is_gone(there)
    # Without its namespace, as older versions wrote it, its number would be looked for here.
    assert is_gone(replace(there, pid_namespace=None))
    container.kill()
    assert not is_gone(there)  # that is for its heartbeat to tell


@pytest.mark.spec("QUE-7")
def test_a_container_does_not_take_a_runner_outside_for_dead_either(tmp_path: Path, container: Container) -> None:
    here = json.dumps(item_of_runner(new_runner(str(tmp_path), "app", NOW)))
    assert container.says(f"is_gone(runner_of(json.loads({here!r})))") is False


@pytest.mark.spec("QUE-7")
def test_a_runner_of_our_own_is_known_to_be_dead_at_once(tmp_path: Path) -> None:
    script = "import json\nfrom datetime import UTC, datetime\n"
    script += "from aiflow.adapters.dynamo.queue.items import item_of_runner\n"
    script += "from aiflow.adapters.processes.runner_process import new_runner\n"
    script += f"print(json.dumps(item_of_runner(new_runner({str(tmp_path)!r}, 'app', datetime.now(UTC)))))\n"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    there = runner_of(json.loads(done.stdout))
    assert is_gone(there)
    assert not is_gone(new_runner(str(tmp_path), "app", NOW))


@pytest.mark.spec("QUE-7")
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),  # before a reboot of this machine
        ({"machine_id": None}, True),
        ({"machine_id": "another"}, False),  # a machine of the same name, in the store that both use
    ],
)
def test_another_boot_is_a_death_only_on_the_same_machine(
    tmp_path: Path, changes: dict[str, str | None], expected: bool
) -> None:
    if machine_id() is None:
        pytest.skip("this machine has nothing that tells it from others of its name")
    here = replace(new_runner(str(tmp_path), "app", NOW), boot_id="another")
    assert is_gone(replace(here, **changes)) is expected  # type: ignore[arg-type]


def test_in_a_container_nothing_but_this_boot_and_namespace_names_the_machine(container: Container) -> None:
    there = container.runner()
    assert there.machine_id not in (None, machine_id())
    assert container.runner().machine_id == there.machine_id
    if pid_namespace() == OUTERMOST and Path("/etc/machine-id").exists():
        assert Path("/etc/machine-id").read_text().strip() not in json.dumps(item_of_runner(there))


HIDDEN = """
import os, subprocess, sys
from aiflow.adapters.processes.table import facts_of
there = subprocess.Popen(["sleep", "60"])
facts_of(there.pid)  # what Python has yet to import for it, it can read only now
subprocess.run(["mount", "-o", "remount,hidepid=2", "/proc"], check=True)
os.setgid(65534)
os.setuid(65534)
for pid in (there.pid, 99_999, 2**31 + 1):
    facts = facts_of(pid)
    print(facts.process_started_at, facts.is_hidden)
"""


@pytest.mark.spec("LCK-4", "QUE-7")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide processes")
def test_a_process_that_is_hidden_from_us_is_not_taken_for_dead() -> None:
    done = subprocess.run(
        [*way_in(), sys.executable, "-c", HIDDEN], check=False, capture_output=True, text=True, timeout=30
    )
    assert done.stdout.splitlines() == ["None True", "None False", "None False"], done.stderr


@pytest.mark.spec("LCK-4")
def test_a_lock_of_another_container_is_held_for_as_long_as_its_holder_lives(
    tmp_path: Path, container: Container
) -> None:
    assert container.says(f"bool(kept.append(LockTaking(root, {TTL}).acquire_request({RQ!r}, {RUN!r})))") is False
    assert survey(tmp_path) == [(Liveness.ALIVE, LockVerdict.HELD)]

    def tomorrow() -> datetime:
        return datetime.now(UTC) + timedelta(days=1)

    assert survey(tmp_path, tomorrow) == [(Liveness.ALIVE, LockVerdict.HELD_EXPIRED)]
    assert LockTaking(str(tmp_path), TTL, tomorrow).reclaim() == []
    container.kill()
    assert survey(tmp_path) == [(Liveness.DEAD, LockVerdict.STALE_DEAD)]
    assert [each.lock.run_id for each in LockTaking(str(tmp_path), TTL).reclaim()] == [RUN]


@pytest.mark.spec("LCK-4")
def test_a_container_of_another_name_on_this_machine_is_known_as_well(tmp_path: Path, container: Container) -> None:
    """A container that is made anew has a new name: what the old one held is free at once."""
    container.says(f"bool(kept.append(LockTaking(root, {TTL}).acquire_queue()))")
    path = tmp_path / ".aiflow/locks/queue.lock.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "host": "c0ffee"}))
    assert survey(tmp_path) == [(Liveness.ALIVE, LockVerdict.HELD)]
    container.kill()
    assert survey(tmp_path) == [(Liveness.DEAD, LockVerdict.STALE_DEAD)]


@pytest.mark.spec("LCK-4")
def test_a_container_sees_that_a_holder_outside_lives_and_that_it_let_go(tmp_path: Path, container: Container) -> None:
    lease = LockTaking(str(tmp_path), TTL).acquire_request(RQ, RUN)
    assert not isinstance(lease, Lock)
    look = f"[[each.liveness, each.verdict] for each in LockTaking(root, {TTL}).survey()]"
    assert container.says(look) == [["alive", "held"]]
    text = (tmp_path / ".aiflow/locks/request.RQ-1.lock.json").read_text()
    lease.release()
    (tmp_path / ".aiflow/locks/request.RQ-1.lock.json").write_text(text)
    assert container.says(look) == [["dead", "stale_dead"]]


@pytest.mark.spec("LCK-4")
def test_a_lock_stays_while_its_agents_guard_is_at_work_out_of_reach(
    tmp_path: Path, container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "GUARD_SECONDS", 0.1)
    guards = tmp_path / ".aiflow/guards"
    guards.mkdir(parents=True)
    container.says(f"bool(kept.append(LockTaking(root, {TTL}).acquire_request({RQ!r}, {RUN!r})))")
    outside = subprocess.Popen(
        [*way_in(), "flock", str(guards / f"{RUN}.1.guard"), "sh", "-c", "echo; exec sleep 60"],
        stdout=subprocess.PIPE,
    )
    assert outside.stdout is not None
    outside.stdout.readline()
    path = tmp_path / ".aiflow/locks/request.RQ-1.lock.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "host": "c0ffee"}))
    container.kill()
    locks = LockTaking(str(tmp_path), TTL)
    assert survey(tmp_path) == [(Liveness.DEAD, LockVerdict.STALE_DEAD)]
    assert locks.reclaim() == []
    locks.break_lock(RQ)
    with pytest.raises(ConflictError) as refused:
        locks.acquire_request(RQ, RUN)
    assert refused.value.reason_code == "RUN_IN_PROGRESS"
    assert survey(tmp_path) == []
    outside.kill()
    outside.communicate()
    lease = locks.acquire_request(RQ, RUN)
    assert not isinstance(lease, Lock)
    lease.release()


@pytest.mark.spec("LCK-4")
def test_a_guard_of_another_container_is_not_looked_for_by_its_number(tmp_path: Path) -> None:
    known = table.started_at(os.getpid())
    path = tmp_path / f"{RUN}.1.guard"
    for where, expected in ((pid_namespace(), os.getpid()), ("", os.getpid()), ("1", None)):
        path.write_text(f"{os.getpid()} {known!r} {where}\n")
        assert leftovers._recorded(str(path)) == expected


@pytest.mark.spec("LCK-7")
def test_whoever_waits_for_their_turn_in_another_container_is_let_go_first(
    tmp_path: Path, container: Container
) -> None:
    control = ControlFiles(tmp_path)
    container.says("bool(kept.append(ControlFiles(root).waiting_for_turn()))")
    container.says("kept[-1].__enter__()")
    assert control.is_turn_wanted()
    with control.waiting_for_turn():
        assert container.says("ControlFiles(root).is_turn_wanted()") is True
    assert control.is_turn_wanted()
    container.kill()
    assert not control.is_turn_wanted()
    assert list((tmp_path / ".aiflow/control").glob("turn.*")) == []


def test_the_boot_is_the_same_in_every_container(container: Container) -> None:
    assert container.runner().boot_id == boot_id()
