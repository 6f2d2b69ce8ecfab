"""A call's own folder (AGT-4): private, gone afterwards, and gone too after a kill."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from aiflow.adapters.agents.call.scratch import scratch_folder
from aiflow.adapters.git.worktrees.making_and_removing import remove_tree
from aiflow.errors import EnvironmentProblemError


@pytest.mark.spec("AGT-4")
def test_a_call_has_a_folder_of_its_own_that_is_gone_afterwards(tmp_path: Path) -> None:
    base = tmp_path / "calls"
    with scratch_folder(str(base)) as first, scratch_folder(str(base)) as second:
        assert first != second
        assert [Path(each).stat().st_mode & 0o777 for each in (first, second, base)] == [0o700] * 3
        # A socket's path may have 107 characters; most of them belong to programs.
        assert len(os.path.relpath(first, base)) == 8
        # What tools leave: folders that cannot be written, links, files of odd names.
        (Path(first) / "deep/er").mkdir(parents=True)
        (Path(first) / "deep/er/x").touch()
        (Path(first) / "deep/link").symlink_to(tmp_path)
        (Path(first) / "deep/er").chmod(0o500)
        (Path(first) / "deep").chmod(0)
    assert list(base.iterdir()) == []
    assert tmp_path.exists()


def test_it_is_gone_after_an_exception_and_after_somebody_else_removed_it(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), scratch_folder(str(tmp_path / "calls")):
        raise KeyboardInterrupt
    with scratch_folder(str(tmp_path / "calls")) as path:
        os.rmdir(path)
    assert list((tmp_path / "calls").iterdir()) == []


@pytest.mark.spec("AGT-5")
def test_what_a_killed_runner_left_goes_with_the_next_call_and_nothing_else(tmp_path: Path) -> None:
    base = str(tmp_path / "calls")
    script = (
        "import sys\n"
        "from aiflow.adapters.agents.call.scratch import scratch_folder\n"
        f"with scratch_folder({base!r}) as path:\n"
        "    open(path + '/secret', 'w').close()\n"
        "    print(path, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    pipe = subprocess.PIPE
    runners = [subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    dead, alive = (runner.stdout.readline().strip() for runner in runners if runner.stdout)
    runners[0].kill()
    runners[0].communicate()
    with scratch_folder(base):
        assert not os.path.exists(dead)
        assert os.listdir(alive) == ["secret"]
    runners[1].communicate("")
    assert os.listdir(base) == []


def test_many_at_once_never_take_one_anothers(tmp_path: Path) -> None:
    base, lost = str(tmp_path / "calls"), []

    def work() -> None:
        for _ in range(20):
            with scratch_folder(base) as path:
                Path(path, "x").touch()
                if not os.path.exists(f"{path}/x"):
                    lost.append(path)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (lost, os.listdir(base)) == ([], [])


@pytest.mark.spec("ERR-3")
def test_where_none_can_be_made_it_is_a_problem_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "calls").touch()
    with pytest.raises(EnvironmentProblemError), scratch_folder(str(tmp_path / "calls")):
        pass


@pytest.mark.spec("AGT-5", "GIT-5")
def test_a_folder_deeper_than_any_path_may_be_long_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for number in range(3000):
        os.mkdir("d", dir_fd=here)
        inside = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inside
        if number % 500 == 0:
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
            os.chmod("file", 0, dir_fd=here)
    os.close(here)
    remove_tree(str(folder))
    assert not folder.exists()
