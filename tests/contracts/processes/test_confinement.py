"""Confinement by the kernel (AGT-4): real programs that try to write where they may not; nothing outside changes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import without_landlock
from aiflow.adapters.processes import confine, leftovers, table
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.domain.programs import GUARD_MARK, RUN_MARK, End, Ended, Program
from e2e.bench import git, tree_of
from waiting import wait_until

PYTHON = (sys.executable, "-I", "-S", "-c")
ENVIRON = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}

pytestmark = pytest.mark.skipif(not confine.is_available(), reason="this kernel has no Landlock")


class Yard:
    """A worktree that may be written, and beside it what may not be."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.inside, self.outside, self.tmp = (root / name for name in ("inside", "outside", "tmp"))
        for folder in (self.inside / "deep", self.outside / "empty", self.tmp):
            folder.mkdir(parents=True)
        (self.outside / "precious.txt").write_text("precious\n")
        (self.inside / "own.txt").write_text("own\n")
        (self.inside / "link").symlink_to("../outside/precious.txt")
        (self.inside / "folder").symlink_to(self.outside)
        self.run_id = f"RUN-{os.urandom(6).hex()}"
        self.processes = GuardedProcesses(str(root / "guards"), grace_seconds=0.5)
        self.said = bytearray()

    def program(self, *argv: str, writable: tuple[Path, ...] | None = (), timeout: float = 30) -> Program:
        paths = None if writable is None else tuple(map(str, writable or (self.inside, self.tmp)))
        environ = {**ENVIRON, "TMPDIR": str(self.tmp), "OUTSIDE": str(self.outside), "HOME": str(self.root)}
        return Program(argv, str(self.inside), environ, self.run_id, timeout, timeout, writable=paths)

    def run(self, *argv: str, writable: tuple[Path, ...] | None = ()) -> Ended:
        """Run a program, confined to the worktree and a temporary folder if not told otherwise."""
        self.said.clear()
        return self.processes.run(self.program(*argv, writable=writable), self.said.extend, lambda: False)

    def python(self, script: str, writable: tuple[Path, ...] | None = ()) -> Any:
        """Run a script that says JSON."""
        ended = self.run(*PYTHON, script, writable=writable)
        assert ended.end is End.EXITED, (ended, self.said)
        return json.loads(self.said)


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """Give a yard, and check that no process is left in it."""
    yard = Yard(tmp_path)
    yield yard
    left = {mark: table.marked(mark, yard.run_id) for mark in (RUN_MARK, GUARD_MARK)}
    leftovers.sweep(RUN_MARK, yard.run_id, None)
    assert left == {RUN_MARK: [], GUARD_MARK: []}


# Each is tried in the worktree, and changes something outside of it unless it is refused.
ESCAPES = {
    "absolute path": "write(f'{OUT}/new', 'x')",
    "overwritten": "write(f'{OUT}/precious.txt', 'x')",
    "appended": "open(f'{OUT}/precious.txt', 'a').write('x')",
    "dots": "write('../outside/new2', 'x')",
    "link to a file": "write('link', 'x')",
    "link to a folder": "write('folder/new3', 'x')",
    "a link of its own": "os.symlink(f'{OUT}/precious.txt', 'l'); write('l', 'x')",
    "a hard link": "os.link(f'{OUT}/precious.txt', 'hard'); write('hard', 'x')",
    "a hard link out": "os.link('own.txt', f'{OUT}/hard')",
    "moved in": "os.rename(f'{OUT}/one', 'one')",
    "moved out": "write('a', 'x'); os.rename('a', f'{OUT}/a')",
    "moved over": "write('a', 'x'); os.rename('a', f'{OUT}/two')",
    "exchanged": "write('a', 'x'); exchange('a', f'{OUT}/three')",
    "a file without a name": "give_name(os.open(OUT, os.O_TMPFILE | os.O_RDWR), f'{OUT}/t')",
    "cut by its path": "os.truncate(f'{OUT}/precious.txt', 0)",
    "cut when opened": "os.open(f'{OUT}/precious.txt', os.O_RDONLY | os.O_TRUNC)",
    "deleted": "os.unlink(f'{OUT}/four')",
    "folder deleted": "os.rmdir(f'{OUT}/empty')",
    "folder made": "os.mkdir(f'{OUT}/made')",
    "link made": "os.symlink('x', f'{OUT}/symlink')",
    "pipe made": "os.mkfifo(f'{OUT}/pipe')",
    "socket made": "import socket; socket.socket(socket.AF_UNIX).bind(f'{OUT}/s')",
    "through its own root": "write(f'/proc/self/root{OUT}/new4', 'x')",
    "through its own folder": "write('/proc/self/cwd/../outside/new5', 'x')",
    "by a folder that is open": "os.open('new6', os.O_CREAT | os.O_WRONLY, dir_fd=os.open(OUT, os.O_RDONLY))",
    "by an orphan": "orphan(lambda: write(f'{OUT}/new7', 'x')); wait_for(f'{OUT}/new7')",
    "by another program": "sh('echo x > $OUTSIDE/new8')",
    "in a root of its own": "orphan(lambda: (os.chroot(OUT), write('/new10', 'x'))); wait_for(f'{OUT}/new10')",
    "mounted in": "sh('mount --bind $OUTSIDE deep && echo x > deep/new11; umount deep')",
    "mounted in a space of its own": "sh('unshare -m sh -c \"mount --bind $OUTSIDE deep && echo x > deep/new12\"')",
    "a user space of its own": "sh('unshare -Ur sh -c \"echo x > $OUTSIDE/new13\"')",
    "somebody outside signalled": "os.kill(int(os.environ['VICTIM']), 10); wait_for(f'{OUT}/signalled')",
}
_TRY = """
import ctypes, json, os, subprocess, time
OUT = os.environ['OUTSIDE']

def write(path, text):
    with open(path, 'w') as file:
        file.write(text)

def sh(command):
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

def orphan(act):
    if os.fork() == 0:
        os.setsid()
        try:
            os.fork() or act()
        finally:
            os._exit(0)

def wait_for(path):
    until = time.monotonic() + 0.5
    while not os.path.exists(path):
        if time.monotonic() > until:
            raise PermissionError(path)
        time.sleep(0.01)

def give_name(fd, path):
    os.link(f'/proc/self/fd/{fd}', path, dst_dir_fd=os.open('.', os.O_RDONLY))

def exchange(old, new):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), 2):
        raise OSError(ctypes.get_errno(), new)

found = {}
for name, code in json.loads(os.environ['TRIES']).items():
    for number in ('one', 'two', 'three', 'four'):
        try:
            write(f'{OUT}/{number}', number) if not os.path.exists(f'{OUT}/{number}') else None
        except OSError:
            pass
    try:
        exec(code)
    except Exception as error:
        found[name] = type(error).__name__
    else:
        found[name] = 'done'
print(json.dumps(found))
"""
# What takes rights, and what a machine may not offer; these may fail for other reasons too.
PRIVILEGED = {"in a root of its own", "mounted in", "mounted in a space of its own", "a user space of its own"}
# What only kernels with a later Landlock refuse.
SINCE = {"cut by its path": 3, "somebody outside signalled": 6}


def attempt(yard: Yard, tries: dict[str, str], *, confined: bool) -> dict[str, str]:
    """Try everything in one program, and return what came of each."""
    victim = subprocess.Popen(
        ["sh", "-c", "trap 'touch $OUTSIDE/signalled' USR1; echo; while :; do sleep 0.02; done"],
        env={**ENVIRON, "OUTSIDE": str(yard.outside)},
        stdout=subprocess.PIPE,
    )
    try:
        assert victim.stdout is not None
        victim.stdout.readline()
        program = yard.program(*PYTHON, _TRY, writable=() if confined else None)
        environ = {**program.environ, "TRIES": json.dumps(tries), "VICTIM": str(victim.pid)}
        yard.said.clear()
        program = Program(program.argv, program.cwd, environ, yard.run_id, 60, 60, writable=program.writable)
        ended = yard.processes.run(program, yard.said.extend, lambda: False)
        assert ended.end is End.EXITED, (ended, yard.said)
        found: dict[str, str] = json.loads(yard.said)
        return found
    finally:
        victim.kill()
        victim.communicate()


@pytest.mark.spec("AGT-4", "SEC")
def test_nothing_outside_is_changed_whatever_a_program_tries(yard: Yard) -> None:
    for name in ("one", "two", "three", "four"):
        (yard.outside / name).write_text(name)
    yard.outside.chmod(0o777)  # nothing but the confinement is in the way of anybody
    before = tree_of(yard.outside)
    tries = {name: code for name, code in ESCAPES.items() if SINCE.get(name, 1) <= confine.version()}
    found = attempt(yard, tries, confined=True)
    assert set(found) == set(tries)
    assert [name for name, end in found.items() if end == "done"] == []
    assert tree_of(yard.outside) == before


@pytest.mark.spec("AGT-4")
def test_without_confinement_each_of_these_does_its_harm(yard: Yard) -> None:
    # Else the test above would show nothing.
    yard.outside.chmod(0o777)
    harmful = {name: code for name, code in ESCAPES.items() if name not in PRIVILEGED}
    assert attempt(yard, harmful, confined=False) == dict.fromkeys(harmful, "done")


@pytest.mark.spec("AGT-4")
def test_inside_everything_can_be_done(yard: Yard) -> None:
    script = """
import json, os, socket, stat
def write(path, text):
    with open(path, 'w') as file: file.write(text)
os.makedirs('new/deeper'); write('new/a', 'a'); os.rename('new/a', 'new/deeper/a'); os.link('new/deeper/a', 'b')
os.symlink('b', 'c'); os.truncate('b', 0); os.chmod('b', 0o755); os.mkfifo('pipe'); os.unlink('pipe')
socket.socket(socket.AF_UNIX).bind('s'); os.replace('own.txt', 'deep/own.txt')
fd = os.open('.', os.O_TMPFILE | os.O_RDWR); os.write(fd, b'x'); os.link(f'/proc/self/fd/{fd}', 'unnamed', dst_dir_fd=os.open('.', os.O_RDONLY))
write(os.environ['TMPDIR'] + '/t', 't'); os.rename(os.environ['TMPDIR'] + '/t', 'from-tmp')
for path in ('/dev/null', '/dev/zero', '/dev/full'): os.close(os.open(path, os.O_WRONLY))
print(json.dumps(sorted(os.listdir('.'))))
"""
    names = ["b", "c", "deep", "folder", "from-tmp", "link", "new", "s", "unnamed"]
    assert yard.python(script) == names
    assert yard.run("sh", "-c", "mkdir x && mv x y && echo hi > y/z && cat y/z >/dev/null && rm -r y").exit_code == 0


@pytest.mark.spec("AGT-4")
def test_reading_running_and_the_network_stay_free(yard: Yard) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = (
            "import json, os, socket, subprocess\n"
            f"socket.create_connection(('127.0.0.1', {server.getsockname()[1]})).close()\n"
            "said = subprocess.run(['cat', os.environ['OUTSIDE'] + '/precious.txt'], capture_output=True, text=True)\n"
            "print(json.dumps([said.stdout, open('/etc/passwd').readable()]))\n"
        )
        assert yard.python(script) == ["precious\n", True]


@pytest.mark.spec("AGT-4")
def test_a_terminal_of_its_own_and_shared_memory_work(yard: Yard) -> None:
    script = (
        "import json, multiprocessing, os, pty\n"
        "lock = multiprocessing.get_context('fork').Lock()\n"
        "main, end = pty.openpty()\n"
        "os.close(os.open(os.ttyname(end), os.O_RDWR | os.O_NOCTTY))\n"
        "print(json.dumps(lock.acquire()))\n"
    )
    ended = yard.run(sys.executable, "-c", script)
    assert (ended.exit_code, bytes(yard.said)) == (0, b"true\n")


@pytest.mark.spec("AGT-4")
def test_who_may_only_read_changes_nothing_of_the_worktree(yard: Yard) -> None:
    before = tree_of(yard.inside)
    script = (
        "cat own.txt; echo x > own.txt; echo x > new; rm own.txt; mkdir d; touch deep/x; echo t > $TMPDIR/t; exit 7"
    )
    assert yard.run("sh", "-c", script, writable=(yard.tmp,)) == Ended(End.EXITED, 7)
    assert yard.said.startswith(b"own\n")
    assert tree_of(yard.inside) == before
    assert (yard.tmp / "t").read_text() == "t\n"


@pytest.mark.spec("AGT-4")
def test_a_path_that_is_missing_counts_for_nothing_and_a_file_for_itself(yard: Yard) -> None:
    missing, file = yard.root / "missing", yard.outside / "precious.txt"
    script = "echo x > $OUTSIDE/precious.txt; echo x > $OUTSIDE/new; mkdir ../missing; echo x > own.txt; exit 7"
    assert yard.run("sh", "-c", script, writable=(missing, file)) == Ended(End.EXITED, 7)
    assert (file.read_text(), sorted(os.listdir(yard.outside))) == ("x\n", ["empty", "precious.txt"])
    assert (missing.exists(), (yard.inside / "own.txt").read_text()) == (False, "own\n")


@pytest.mark.spec("AGT-4")
@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
def test_node_is_confined_as_well(yard: Yard) -> None:
    script = (
        "const fs = require('fs'); fs.writeFileSync('node.txt', 'x');"
        "try { fs.writeFileSync(process.env.OUTSIDE + '/node.txt', 'x') } catch (e) { console.log(e.code) }"
    )
    assert yard.run("node", "-e", script) == Ended(End.EXITED, 0)
    assert bytes(yard.said) == b"EACCES\n"
    assert ((yard.inside / "node.txt").exists(), (yard.outside / "node.txt").exists()) == (True, False)


@pytest.mark.spec("AGT-4", "GIT-1")
def test_git_shows_everything_and_changes_nothing_of_the_users_repository(yard: Yard) -> None:
    repository, worktree = yard.root / "repository", yard.root / "worktree"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    (repository / "a.txt").write_text("a\n")
    git(repository, "add", "-A")
    git(repository, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-qm", "first")
    git(repository, "worktree", "add", "-q", "-b", "work", str(worktree))
    before = tree_of(repository)
    yard.inside = worktree

    ended = yard.run(
        "sh",
        "-ec",
        "echo b >> a.txt; touch new; git status --porcelain; git diff --stat; git log --oneline | wc -l; git show -s --format=%s;"
        "git ls-files; git grep -c b; git blame a.txt >/dev/null; git diff --no-index /dev/null new || :",
    )
    assert ended == Ended(End.EXITED, 0), yard.said
    assert b" M a.txt\n?? new\n" in yard.said
    assert b"1 insertion" in yard.said
    refused = [
        "add a.txt",
        "commit -qam x",
        "stash",
        "branch b",
        "tag t",
        "config x.y z",
        "update-ref refs/heads/x HEAD",
    ]
    for command in [
        *refused,
        "checkout -q -b other",
        "reset --hard",
        "gc",
        "worktree add ../third",
        "push -q . HEAD:refs/heads/pushed",
    ]:
        assert yard.run("sh", "-c", f"git -c user.name=x -c user.email=x@x {command}").exit_code != 0, command
    assert tree_of(repository) == before
    assert (worktree / "a.txt").read_text() == "a\nb\n"


@pytest.mark.spec("AGT-5")
def test_a_confined_program_gets_what_any_other_gets(yard: Yard) -> None:
    odd = ["", " ", "a\nb", "日本", os.fsdecode(b"\xff\xfe"), "x" * 100_000]
    script = (
        "import os, sys\n"
        "try: terminal = bool(os.open('/dev/tty', os.O_RDWR))\n"
        "except OSError: terminal = False\n"
        "environ = {k: v for k, v in os.environ.items() if k != 'LC_CTYPE'}\n"
        "print(ascii((sys.argv[1:], environ, os.getcwd(), terminal, os.getsid(0) == os.getpid())))\n"
    )
    assert yard.run(*PYTHON, script, *odd) == Ended(End.EXITED, 0)
    environ = {**yard.program("x").environ, RUN_MARK: yard.run_id}
    assert eval(bytes(yard.said)) == (odd, environ, str(yard.inside), False, True)
    # Whatever the runner ignores or blocks, and though the guard ignores some.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        yard.run("grep", "-hE", "Sig(Ign|Blk)", "/proc/self/status")
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
        signal.signal(signal.SIGHUP, before)
    _, blocked, _, ignored = yard.said.split()
    assert (int(blocked, 16), int(ignored, 16) & 0x7FFFFFFF) == (0, 0)  # glibc itself ignores two above these
    yard.run("sh", "-c", "ls /proc/$$/fd")
    assert yard.said.split() == [b"0", b"1", b"2"]


@pytest.mark.spec("AGT-5")
def test_how_a_confined_program_ends_is_told_as_of_any_other(yard: Yard) -> None:
    assert yard.run("sh", "-c", "exit 7") == Ended(End.EXITED, 7)
    assert yard.run("sh", "-c", "kill -TERM $$") == Ended(End.EXITED, -signal.SIGTERM)
    assert yard.run("no-such-program") == Ended(End.NOT_FOUND)
    for name, text, mode in (
        ("plain", "#!/bin/sh\n", 0o644),
        ("lost", "#!/no/such/one\n", 0o755),
        ("no", "\x7f", 0o755),
    ):
        (yard.inside / name).write_text(text)
        (yard.inside / name).chmod(mode)
        assert yard.run(f"./{name}") == Ended(End.NOT_EXECUTABLE), name


@pytest.mark.spec("AGT-5")
def test_everything_of_a_confined_program_is_ended_too(yard: Yard) -> None:
    script = "trap '' TERM; (setsid sh -c \"trap '' TERM; sleep 600\" &); setsid sleep 600 & echo ready; sleep 600"
    ended = yard.processes.run(yard.program("sh", "-c", script), yard.said.extend, lambda: b"ready" in yard.said)
    assert ended.end is End.STOPPED
    assert table.marked(RUN_MARK, yard.run_id) == []
    assert yard.run("sh", "-c", "(setsid sleep 60 &); sleep 0.2; exit 4") == Ended(End.EXITED, 4, leftovers=1)


@pytest.mark.spec("AGT-5")
def test_nothing_confined_is_left_when_the_runner_is_killed(yard: Yard) -> None:
    script = (
        "import sys\n"
        "from aiflow.adapters.processes.launch import GuardedProcesses\n"
        "from aiflow.domain.programs import Program\n"
        f"program = Program(('sh', '-c', 'setsid sleep 60 & echo; sleep 60'), {str(yard.inside)!r}, {ENVIRON!r},\n"
        f"    {yard.run_id!r}, 60, 60, writable=({str(yard.inside)!r},))\n"
        f"GuardedProcesses({str(yard.root / 'guards')!r}).run(program, lambda b: print(flush=True), lambda: False)\n"
    )
    runner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert runner.stdout is not None
    runner.stdout.readline()
    wait_until(lambda: len(table.marked(RUN_MARK, yard.run_id)) == 3)
    runner.kill()
    runner.communicate()
    wait_until(lambda: not table.marked(RUN_MARK, yard.run_id))


@pytest.mark.spec("AGT-4", "SEC")
def test_where_the_kernel_confines_nobody_that_is_told_and_nothing_is_started(yard: Yard) -> None:
    script = (
        "import sys\n"
        f"sys.path.append({os.path.dirname(without_landlock.__file__)!r})\n"
        "from without_landlock import give_up_landlock\n"
        "give_up_landlock()\n"
        "from aiflow.adapters.processes.launch import GuardedProcesses\n"
        "from aiflow.domain.programs import Program\n"
        f"processes = GuardedProcesses({str(yard.root / 'guards')!r})\n"
        f"program = Program(('touch', 'started'), {str(yard.inside)!r}, {ENVIRON!r}, {yard.run_id!r}, 9, 9, writable=('/',))\n"
        "print(processes.confinement(), processes.run(program, print, lambda: False).end)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=30)
    assert (done.stdout, done.stderr) == ("None not_confined\n", "")
    assert not (yard.inside / "started").exists()
    assert yard.processes.confinement() == "landlock"


def test_confined_by_itself_from_a_command_line(yard: Yard) -> None:
    argv = [sys.executable, "-I", "-S", confine.__file__, str(yard.inside), "--"]
    script = "echo x > new; echo x > ../outside/new; ls; exit 5"
    done = subprocess.run(
        [*argv, "sh", "-c", script], cwd=yard.inside, capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.returncode, (yard.inside / "new").exists(), (yard.outside / "new").exists()) == (5, True, False)
    done = subprocess.run([*argv, "no-such-program"], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 1
    assert done.stderr.startswith("aiflow: not confined, so not started: ")
