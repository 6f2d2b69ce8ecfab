"""Control files and kinds of file systems (LCK-8, LCK-9)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from aiflow.adapters.files.file_system import is_network, kind_in, kind_of
from aiflow.adapters.locks.control_files import ControlFiles
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.request import parse_instant
from aiflow.errors import EnvironmentProblemError, NotFoundError
from aiflow.ports import Control

WATCHER = """
import sys, time
from aiflow.adapters.locks.control_files import ControlFiles
control = ControlFiles(sys.argv[1])
print("ready", flush=True)
while not control.is_cancelled("RUN-1"):
    time.sleep(0.2)
print("seen", flush=True)
"""


@pytest.mark.timing
@pytest.mark.spec("LCK-8")
def test_a_running_process_sees_within_half_a_second_that_it_is_cancelled(
    tmp_path: Path, allowed: Callable[[float], float]
) -> None:
    control: Control = ControlFiles(tmp_path)
    control.ask_cancel("RUN-2")
    with subprocess.Popen([sys.executable, "-c", WATCHER, str(tmp_path)], stdout=subprocess.PIPE) as watcher:
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == b"ready\n"
        time.sleep(0.3)
        assert watcher.poll() is None, "another run was cancelled"
        began = time.monotonic()
        control.ask_cancel("RUN-1")
        assert watcher.stdout.readline() == b"seen\n"
        assert time.monotonic() - began < allowed(0.5)


@pytest.mark.spec("LCK-8")
def test_who_asked_and_when_is_kept_until_it_is_cleared(tmp_path: Path) -> None:
    control = ControlFiles(str(tmp_path))
    assert not control.is_cancelled("RUN-1")
    control.clear("RUN-1")
    assert list(tmp_path.iterdir()) == []
    control.ask_cancel("RUN-1")
    path = tmp_path / ".aiflow/control/cancel.RUN-1.json"
    asked = path.read_bytes()
    fields = json.loads(asked)
    assert list(fields) == ["at", "pid", "by"]
    at = parse_instant(fields["at"])
    assert at is not None
    assert abs((datetime.now(UTC) - at).total_seconds()) < 10
    assert fields["pid"] == os.getpid()
    assert fields["by"]
    control.ask_cancel("RUN-1")
    assert path.read_bytes() == asked, "who asked first is kept"
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert list((tmp_path / ".aiflow/tmp").iterdir()) == []
    control.clear("RUN-1")
    control.clear("RUN-1")
    assert not control.is_cancelled("RUN-1")
    assert not path.exists()


@pytest.mark.spec("LCK-8", "AUT-3")
def test_a_stop_is_asked_for_seen_and_forgotten_and_now_outranks_after_the_run(tmp_path: Path) -> None:
    control: Control = ControlFiles(tmp_path)
    assert control.stop_asked() is StopRequest.NONE
    control.clear_stop()
    control.ask_stop(StopRequest.NONE)
    assert list(tmp_path.iterdir()) == [], "looking and asking for nothing leave nothing"
    control.ask_stop(StopRequest.AFTER_RUN)
    assert control.stop_asked() is StopRequest.AFTER_RUN
    control.ask_stop(StopRequest.NOW)
    control.ask_stop(StopRequest.AFTER_RUN)
    assert control.stop_asked() is StopRequest.NOW
    asked = json.loads((tmp_path / ".aiflow/control/stop.now.json").read_text())
    assert (asked["pid"], bool(asked["by"])) == (os.getpid(), True)
    control.ask_cancel("RUN-1")
    control.clear_stop()
    control.clear_stop()
    assert control.stop_asked() is StopRequest.NONE
    assert control.is_cancelled("RUN-1"), "what was asked of a run is another matter"
    control.ask_stop(StopRequest.NOW)
    assert control.stop_asked() is StopRequest.NOW
    assert ControlFiles(str(tmp_path)).stop_asked() is StopRequest.NOW


@pytest.mark.spec("LCK-8")
@pytest.mark.parametrize("run_id", ["../../x", "a\0b", "/etc/passwd"])
def test_no_run_leads_out_of_the_folder(tmp_path: Path, run_id: str) -> None:
    control = ControlFiles(tmp_path)
    with pytest.raises(NotFoundError, match="RUN_NOT_FOUND"):
        control.ask_cancel(run_id)
    assert not control.is_cancelled(run_id)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_a_problem_with_a_name(tmp_path: Path) -> None:
    (tmp_path / ".aiflow").write_text("a file in its place")
    with pytest.raises(EnvironmentProblemError):
        ControlFiles(tmp_path).ask_cancel("RUN-1")
    with pytest.raises(EnvironmentProblemError):
        ControlFiles(tmp_path).ask_stop(StopRequest.NOW)
    assert ControlFiles(tmp_path).stop_asked() is StopRequest.NONE
    ControlFiles(tmp_path).clear_stop()
    assert not ControlFiles(tmp_path).is_cancelled("RUN-1")
    ControlFiles(tmp_path).clear("RUN-1")


MOUNTS = r"""
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /home rw - btrfs /dev/sdb rw,subvol=/
23 22 0:50 / /home/user/net rw shared:9 master:2 - nfs4 server:/export rw
24 22 0:51 / /home/user/my\040files\134x rw - fuse.sshfs user@host:/ rw
25 21 0:52 / /mnt/c rw - 9p C:\134 rw
26 21 0:53 / /twice rw - nfs server:/a rw
27 21 0:54 / /twice rw - xfs /dev/sdc rw
28 21 0:55 /日本 /日本語 rw - cifs //server/share rw
a line that is none
29 21 0:56 / /half rw
"""


@pytest.mark.spec("LCK-9")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/homework", "ext4"),
        ("/home", "btrfs"),
        ("/home/user/project", "btrfs"),
        ("/home/user/net", "nfs4"),
        ("/home/user/net/a/b", "nfs4"),
        ("/home/user/network", "btrfs"),
        ("/home/user/my files\\x/project", "fuse.sshfs"),
        ("/mnt/c/Users", "9p"),
        ("/twice/project", "xfs"),
        ("/日本語/project", "cifs"),
        ("/half/project", "ext4"),
    ],
)
def test_the_file_system_of_a_path_is_found(path: str, kind: str) -> None:
    assert kind_in(MOUNTS, path) == kind


@pytest.mark.spec("LCK-9")
def test_where_nothing_is_known_nothing_is_guessed() -> None:
    assert kind_in("", "/home") is None


@pytest.mark.spec("LCK-9")
@pytest.mark.parametrize(
    "kind",
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "fuse.sshfs",
        "fuse.s3fs",
        "fuse.gcsfuse",
    ],
)
def test_a_network_file_system_is_known_as_one(kind: str) -> None:
    assert is_network(kind)


@pytest.mark.spec("LCK-9")
@pytest.mark.parametrize(
    "kind", ["ext4", "xfs", "btrfs", "overlay", "tmpfs", "zfs", "9p", "virtiofs", "fuseblk", "apfs", ""]
)
def test_a_local_file_system_is_not(kind: str) -> None:
    assert not is_network(kind)


@pytest.mark.spec("LCK-9")
@pytest.mark.skipif(not Path("/proc/self/mountinfo").exists(), reason="only Linux tells")
def test_this_machines_own_file_systems_are_found(tmp_path: Path) -> None:
    assert kind_of("/proc") == "proc"
    (tmp_path / "link").symlink_to("/proc")
    assert kind_of(str(tmp_path / "link")) == "proc"
    kind = kind_of(str(tmp_path))
    assert kind is not None
    assert not is_network(kind)


@pytest.mark.spec("LCK-7")
def test_a_turn_is_wanted_while_whoever_wants_it_lives(tmp_path: Path) -> None:
    control = ControlFiles(tmp_path)
    assert not control.is_turn_wanted()
    with control.waiting_for_turn():
        assert control.is_turn_wanted()
    assert not control.is_turn_wanted()
    folder = tmp_path / ".aiflow/control"
    for name in ("turn.999999999.json", "turn.x.json", "turn..json"):
        (folder / name).write_text("{}")
    assert not control.is_turn_wanted()
    assert list(folder.iterdir()) == []
