"""Writers killed at every single step they take: each file is the old one or the new one, and the next call goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aiflow.adapters.journal import ActivityLog
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.domain.backlog.metadata import Change
from aiflow.domain.request import RequestId
from builders import write_request
from conftest import Program
from forms import rounds
from waiting import wait_until

pytestmark = [pytest.mark.faults]

# Runs the program with every call that writes to the disk counted, and ends itself for good at the chosen one. One
# process imports everything and forks for each line of its input; it says how each ended.
KILLED = """
import importlib, json, os, pkgutil, signal, sys
import aiflow, aiflow.cli.main
for module in pkgutil.walk_packages(aiflow.__path__, "aiflow."):
    if not module.name.endswith("__main__") and ".agents.acp." not in module.name:  # a program of its own, and slow
        importlib.import_module(module.name)
import yaml
turn, count = 0, 0
def deadly(name, real):
    def call(*args, **kwargs):
        global count
        result = real(*args, **kwargs)
        is_reading = name == "open" and not args[1] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR)
        count += not is_reading
        if count == turn and not is_reading:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return call
def run(root, argv):
    os.chdir(root)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    names = "open", "write", "fsync", "fdatasync", "link", "replace", "rename", "unlink", "mkdir", "chmod", "chown"
    for name in names:
        setattr(os, name, deadly(name, getattr(os, name)))
    aiflow.cli.main.main(argv)
for line in sys.stdin:
    turn, root, argv = json.loads(line)
    child = os.fork()
    if child == 0:
        try:
            run(root, argv)
        finally:
            os._exit(99)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

RunKilled = Callable[..., int]


@pytest.fixture
def run_killed(repository: Path) -> Iterator[RunKilled]:
    """Give a way to call the program, killed behind its write of this number, and to learn its exit code."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as nursery:

        def run(turn: int, *argv: str) -> int:
            assert nursery.stdin is not None
            assert nursery.stdout is not None
            nursery.stdin.write(json.dumps([turn, str(repository), argv]) + "\n")
            nursery.stdin.flush()
            return int(nursery.stdout.readline())

        yield run


def leftovers(root: Path) -> list[str]:
    return [path.name for path in (root / "requests").iterdir() if path.suffix != ".md" or path.name.startswith(".")]


@pytest.mark.spec("REQ-3")
def test_set_killed_at_every_step_leaves_the_old_or_the_new_file(repository: Path, run_killed: RunKilled) -> None:
    old = "---\r\nstatus: ready # c\r\n---\r\nbody 日本語"
    new = old.replace("ready", "done")
    seen = set()
    for turn in range(1, 200):
        path = write_request(repository, "RQ-1", old)
        code = run_killed(turn, "set", "RQ-1", "status=done")
        text = path.read_bytes().decode()
        assert text in (old, new), turn
        seen.add((code, text == new))
        assert leftovers(repository) == []
        # The guard is free and the next writer goes on.
        MarkdownRequests(repository).edit(RequestId("RQ-1"), {"status": Change("archived")})
        if code == 0:
            break
    assert seen == {(-signal.SIGKILL, False), (-signal.SIGKILL, True), (0, True)}
    page = ActivityLog(repository).read(limit=10_000)
    assert all(entry.fields["kind"] == "status_changed" for entry in page.entries)


@pytest.mark.spec("REQ-3", "REQ-4")
def test_new_killed_at_every_step_leaves_a_whole_request_or_none(repository: Path, run_killed: RunKilled) -> None:
    (repository / "requests").mkdir()
    made = 0
    for turn in range(1, 200):
        code = run_killed(turn, "new", f"Title {turn}", "-b", "body " * 1000)
        valid, broken = MarkdownRequests(repository).load()
        assert broken == []
        assert leftovers(repository) == []
        assert len(valid) in (made, made + 1)
        made = len(valid)
        if code == 0:
            break
    assert code == 0
    assert sorted(r.id[-3:] for r in valid) == [f"{n:03d}" for n in range(1, made + 1)]


def test_init_killed_at_every_step_is_completed_by_the_next(aiflow: Program, run_killed: RunKilled) -> None:
    repository = aiflow.cwd
    for turn in range(1, 300):
        code = run_killed(turn, "init")
        answer = aiflow.json("init")
        assert "aiflow.toml" in {*answer["made"], *answer["kept"]}
        assert (repository / "aiflow.toml").read_text().endswith('setup = ""\n')
        assert MarkdownRequests(repository).load()[1] == []
        if code == 0:
            break
        subprocess.run(["git", "clean", "-fdxq"], cwd=repository, check=True)
    assert code == 0


WRITER = """
import sys, pathlib
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.domain.backlog.metadata import Change
root, number = pathlib.Path(sys.argv[1]), sys.argv[2]
store, turn = MarkdownRequests(root), 0
while True:
    turn += 1
    store.edit("RQ-1", {"labels": Change((f"w{number}", str(turn)))})
    store.edit(f"RQ-{number}", {"title": Change(f"{number}-{turn}")})
    print(turn, flush=True)
"""


class Writers:
    """Four who write at the same time, each of whom says in a file of its own what is written."""

    def __init__(self, folder: Path, script: str, where: Path, names: list[str]) -> None:
        folder.mkdir()
        self._said = {name: folder / name for name in names}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for name, path in self._said.items():
            with path.open("wb") as said:
                argv = [sys.executable, "-c", script, str(where), name]
                self.running[name] = subprocess.Popen(argv, stdout=said)
        try:
            wait_until(lambda: all(self.last(name) is not None for name in names))
        except BaseException:
            for process in self.running.values():
                process.kill()
            raise

    def last(self, name: str) -> int | None:
        """Return the number that one of them said last; a line that is not whole does not count."""
        lines = self._said[name].read_text().rpartition("\n")[0].split()
        return int(lines[-1]) if lines else None

    def end(self) -> dict[str, int]:
        """Wait for all who were killed; return what each had said last."""
        for process in self.running.values():
            process.wait(timeout=60)
        return {name: self.last(name) or 0 for name in self.running}


@pytest.mark.spec("REQ-3")
def test_what_a_killed_process_had_written_stays_written(
    repository: Path, tmp_path: Path, chance: random.Random
) -> None:
    write_request(repository, "RQ-1", status="ready")
    for number in range(2, 6):
        write_request(repository, f"RQ-{number}", status="ready")
    for turn in range(rounds(3, 8)):
        writers = Writers(tmp_path / f"said-{turn}", WRITER, repository, ["2", "3", "4", "5"])
        time.sleep(chance.uniform(0, 0.5))
        for process in writers.running.values():
            if chance.random() < 0.3:  # paused, not dead: the others wait no longer than that
                process.send_signal(signal.SIGSTOP)
                time.sleep(chance.uniform(0, 0.1))
                process.send_signal(signal.SIGCONT)
            time.sleep(chance.uniform(0, 0.05))
            process.kill()
        for name, acknowledged in writers.end().items():
            text = (repository / f"requests/RQ-{name}.md").read_text()
            written = int(text.split(f"title: {name}-")[1].split()[0])
            assert written in (acknowledged, acknowledged + 1)
        valid, broken = MarkdownRequests(repository).load()
        assert (len(valid), broken, leftovers(repository)) == (5, [], [])


def stays(path: Path, text: str) -> bool:
    """Tell whether a text is there for good; for the moment of an exchange an older one may be seen."""
    patience = time.monotonic() + 0.5
    while text not in path.read_text():
        if time.monotonic() > patience:
            return False
        time.sleep(0.001)
    return True


@pytest.mark.spec("REQ-3")
def test_no_save_of_an_editor_is_ever_lost_to_a_write_of_ours(repository: Path) -> None:
    """An editor saves by rename, again and again, while we set the status: each of its saves stays."""
    path = write_request(repository, "RQ-1", "---\nstatus: ready\n---\nsave 0\n")
    with subprocess.Popen(
        [sys.executable, "-c", SETTER, str(repository)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as setter:
        lost = 0
        for number in range(1, rounds(500, 1500)):
            draft = path.with_name(".draft")
            draft.write_text(f"---\nstatus: ready\n---\nsave {number}\n")  # from its own buffer, as editors do
            draft.replace(path)
            if not stays(path, f"save {number}\n"):
                lost += 1
                break
        setter.kill()
    assert lost == 0


SETTER = """
import sys, pathlib
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.errors import AiflowError
from aiflow.domain.backlog.metadata import Change
store, turn = MarkdownRequests(sys.argv[1]), 0
while True:
    turn += 1
    try:
        store.edit("RQ-1", {"status": Change(["ready", "blocked"][turn % 2])})
    except AiflowError:
        pass
"""

TINY = """
set -e
mount -t tmpfs -o size=96k tmpfs "$1"
cd "$1"
mkdir requests .git
printf -- '---\\nstatus: ready\\n---\\n' > requests/RQ-1.md
"$2" -m aiflow set RQ-1 status=blocked
head -c 200000 /dev/zero > fill 2>/dev/null || true
code=0
"$2" -m aiflow set RQ-1 title="$(printf 'x%.0s' $(seq 1 290))" || code=$?
cat requests/RQ-1.md
ls -A requests .aiflow/tmp
exit $code
"""


@pytest.mark.spec("REQ-3", "ERR-3")
def test_a_disk_that_is_really_full_changes_nothing(tmp_path: Path) -> None:
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    done = subprocess.run(
        [*unshare, "sh", "-c", TINY, "sh", str(tmp_path), sys.executable], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done
    assert "DISK_FULL" in done.stderr
    assert "Traceback" not in done.stderr
    assert "---\nstatus: blocked\n---\n" in done.stdout
    assert done.stdout.endswith(".aiflow/tmp:\n\nrequests:\nRQ-1.md\n")


JOURNAL = """
import sys, pathlib, datetime
from aiflow.adapters.journal import ActivityLog
from aiflow.domain.activity import Activity, ActivityKind, Actor
log, writer, number = ActivityLog(pathlib.Path(sys.argv[1]), max_file_bytes=30_000, max_files=100_000), sys.argv[2], 0
while True:
    log.append(Activity(datetime.datetime.now(datetime.UTC), ActivityKind.DECISION, Actor.RUNNER, data={"writer": writer, "number": number, "pad": "x" * (number * 37 % 900)}))
    print(number, flush=True)
    number += 1
"""


@pytest.mark.spec("ERR-4")
def test_every_journal_entry_that_was_acknowledged_survives_kills(tmp_path: Path) -> None:
    expected: dict[str, int] = {}
    for turn in range(rounds(2, 6)):
        names = [f"{turn}-{number}" for number in range(4)]
        writers = Writers(tmp_path / f"said-{turn}", JOURNAL, tmp_path, names)
        wait_until(lambda writers=writers, names=names: max(writers.last(name) or 0 for name in names) > 5)  # type: ignore[misc]
        for process in writers.running.values():
            process.kill()
        expected |= writers.end()
    page = ActivityLog(tmp_path).read(limit=1_000_000)
    for name, last in expected.items():
        own = [entry.fields["data"]["number"] for entry in page.entries if entry.fields["data"]["writer"] == name]
        assert own in (list(range(last + 1)), list(range(last + 2)))
    assert page.damaged <= len(expected)
