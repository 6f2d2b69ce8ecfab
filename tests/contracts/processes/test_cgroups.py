"""Where a call's cgroup is, by what /proc says, and that a call works where none can be made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aiflow.adapters.processes import cgroups
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.domain.programs import End, Program

pytestmark = pytest.mark.spec("AGT-5")

UNIFIED = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
FIRST = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
HYBRID = f"{FIRST}41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
PART = "30 23 0:26 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"


@pytest.mark.parametrize(
    ("own", "mounts", "folder"),
    [
        ("0::/user.slice/a.scope\n", UNIFIED, "/sys/fs/cgroup/user.slice/a.scope"),
        ("0::/\n", UNIFIED, "/sys/fs/cgroup"),
        ("4:memory:/x\n0::/y\n", HYBRID, "/sys/fs/cgroup/unified/y"),
        ("0::/docker/ab/c\n", PART, "/sys/fs/cgroup/c"),
        ("0::/docker/ab\n", PART, "/sys/fs/cgroup"),
        ("0::/docker/abc\n", PART, None),
        ("0::/docker/abc\n", PART + UNIFIED, "/sys/fs/cgroup/docker/abc"),
        ("0::/../b\n", UNIFIED, None),
        ("4:memory:/x\n", HYBRID, None),
        ("0::/\n", FIRST, None),
        ("0::/\n", "30 - cgroup2 cgroup2 rw\n", None),
        ("", "", None),
    ],
)
def test_our_cgroup_is_where_the_second_version_is_mounted(own: str, mounts: str, folder: str | None) -> None:
    assert cgroups.folder_of(own, mounts) == folder


@pytest.mark.parametrize(
    ("path", "is_so"),
    [
        ("/sys/fs/cgroup/a/aiflow-RUN-1.ab", True),
        ("/sys/fs/cgroup/aiflow-RUN-1.ab", True),
        ("/sys/fs/cgroup/aiflow-RUN-1.ac", False),
        ("/sys/fs/cgroup/RUN-1.ab", False),
        ("/sys/fs/cgroup/aiflow-RUN-1.ab/x", False),
        ("/sys/fs/cgroup/a/../aiflow-RUN-1.ab", False),
        ("/sys/fs/cgroups/aiflow-RUN-1.ab", False),
        ("aiflow-RUN-1.ab", False),
        ("/sys/fs/cgroup", False),
        ("/", False),
        ("", False),
    ],
)
def test_only_a_cgroup_with_the_calls_own_name_is_a_calls(path: str, *, is_so: bool) -> None:
    assert cgroups.is_call(path, "RUN-1.ab", UNIFIED) is is_so


def test_nothing_is_removed_where_there_is_no_cgroup(tmp_path: Path) -> None:
    cgroups.remove_empty(f"{tmp_path}/gone")
    cgroups.remove(f"{tmp_path}/gone")


# None; a folder that is no cgroup: nobody can be put into one made there; a folder where none can be made.
@pytest.mark.parametrize("parent", [None, "plain", "gone"])
def test_a_call_works_where_there_is_no_cgroup_and_leaves_none(tmp_path: Path, parent: str | None) -> None:
    (tmp_path / "plain").mkdir()
    said: list[bytes] = []

    def cgroup_for(name: str) -> str | None:
        return parent and f"{tmp_path}/{parent}/{name}"

    processes = GuardedProcesses(str(tmp_path / "guards"), cgroup_for=cgroup_for)
    for argv, end, words in (
        (("/bin/echo", "hello"), End.EXITED, b"hello\n"),
        (("no-such-program",), End.NOT_FOUND, b""),
        ((str(tmp_path),), End.NOT_EXECUTABLE, b""),
    ):
        said.clear()
        program = Program(argv, str(tmp_path), {"PATH": "/usr/bin:/bin"}, "RUN-1", 60, 60)
        ended = processes.run(program, said.append, lambda: False)
        assert (ended.end, b"".join(said)) == (end, words)
    assert sorted(os.listdir(tmp_path)) == ["guards", "plain"]
    assert os.listdir(tmp_path / "plain") == os.listdir(tmp_path / "guards") == []
