"""Killing the engine on purpose: a project whose agent obeys orders, and an aiflow that dies at the write we choose.

A `Scene` is a repository with a person's unfinished business in it, a state directory, and one script that plays every
role, the tests and the set-up. It writes down each call outside the worktree, so that nothing done twice stays unseen.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import marshal
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from aiflow.adapters.journal import ActivityLog
from aiflow.adapters.run_folders.stage_reading import run_of
from aiflow.domain.programs import GIT_MARK, GUARD_MARK, RUN_MARK
from aiflow.domain.runs.run import Run
from waiting import wait_until

KILLED = -signal.SIGKILL

# Plays the role of AIFLOW_ROLE, or the test and set-up command, and obeys `orders.json` beside it.
AGENT = r"""
import _json, _signal as signal, os, sys, time
world = os.path.dirname(os.path.abspath(__file__))
root, run_id = world + "/repository", os.environ["AIFLOW_RUN_ID"]
role = os.environ.get("AIFLOW_ROLE") or sys.argv[1]

class json:
    # What the module of this name does, but for its imports: those took longer than everything else here.
    strict, memo, object_hook, object_pairs_hook, parse_constant = True, {}, None, None, None
    parse_float, parse_int = float, int
    def load(file):
        return _json.make_scanner(json)(file.read(), 0)[0]
    def dumps(value):
        return "".join(_json.make_encoder(
            None, None, _json.encode_basestring_ascii, None, ": ", ", ", False, False, False)(value, 0))
    def dump(value, file):
        file.write(json.dumps(value))

with open(world + "/orders.json") as file:
    orders = json.load(file)
[owner] = [name for name in os.listdir(root + "/runs") if os.path.isdir(f"{root}/runs/{name}/{run_id}")]
with open(f"{root}/runs/{owner}/{run_id}/stage.json") as file:
    stage = json.load(file)
step = os.environ.get("AIFLOW_STEP_ID") or stage["current_step_id"] or ""
if os.getcwd().endswith(".merge"):
    step = "merge"
name = f"{role} {step}".strip()
done = [each["id"] for each in stage["steps"] if each["state"] == "done"]
calls = os.open(world + "/calls.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def note(what, **more):
    facts = {"what": what, "name": name, "request": owner, "run": run_id, "pid": os.getpid(), "at": time.time(), **more}
    os.write(calls, json.dumps(facts).encode() + b"\n")

def once(order):
    # Tell whether this call was picked out; it is only the first time.
    if name not in orders.get(order, ()):
        return False
    orders[order].remove(name)
    with open(world + "/orders.new", "w") as file:
        json.dump(orders, file)
    os.replace(world + "/orders.new", world + "/orders.json")
    return True

def linger():
    # A child that gets away as far as it can, and work that must never come to its end.
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    time.sleep(60)
    note("survived")

def plant():
    # Fifty children of five kinds.
    fd = os.open(world + "/tree", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for n in range(50):
        if os.fork(): continue
        if n % 5 in (1, 3): os.setsid()
        if n % 5 in (2, 3): signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if n % 5 == 3 and os.fork(): os._exit(0)
        os.write(fd, b"%d\n" % os.getpid())
        if n % 5 == 4: os.kill(os.getpid(), signal.SIGSTOP)
        while True: time.sleep(1000)
    while len(open(world + "/tree").read().split()) < 50: time.sleep(0.01)
    note("planted")
    time.sleep(1000)

call = json.load(sys.stdin) if role in ("planner", "implementer", "qa") else {}
wanted = (call.get("step") or {}).get("targets", {}).get("paths", [])
is_merging = (call.get("step") or {}).get("title", "").startswith("Merge ")
found = {path: open(path).read() for path in ["base", *wanted] if os.path.exists(path)}
note("began", attempt=int(os.environ.get("AIFLOW_ATTEMPT", "0")), was_done=step in done, answers=call.get("answers"),
     found=found)
sys.stdout.write(f"{name} is at work\n")
sys.stdout.flush()
if role == "implementer":
    for path in wanted:
        with open(path, "w") as file:
            file.write("half")
if once("kill"):
    with open(f"{root}/.aiflow/locks/request.{owner}.lock.json") as file:
        os.kill(json.load(file)["pid"], signal.SIGKILL)
    linger()
if once("cancel"):
    os.makedirs(root + "/.aiflow/control", exist_ok=True)
    with open(f"{root}/.aiflow/control/cancel.{run_id}.json", "w") as file:
        file.write("{}")
    linger()
if name in orders.get("tree", ()):
    plant()
time.sleep(orders.get("seconds", {}).get(name, 0))
if name in orders.get("hold", ()):
    if orders.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note("held")
    while not os.path.exists(world + "/go"):
        time.sleep(0.02)
answer = None
if role == "planner":
    ids, whose = [f"S{n:02d}" for n in range(1, orders["steps"] + 1)], owner + "-" if orders.get("own_files") else ""
    answer = {"steps": [{"id": i, "title": f"Do {i}", "instructions": i, "targets": {"paths": [f"{whose}{i}.txt"]}}
                        for i in ids]}
elif role == "implementer" and step in orders.get("ask", ()) and not call["answers"]:
    answer = {"status": "needs_input", "question": "Which colour?"}
elif role == "implementer":
    # Whole or not at all: killed in the middle of a write of its own, an agent leaves half a file, and rightly so.
    draft = os.environ["AIFLOW_RESULT"] + ".draft"
    for path in wanted:
        with open(draft, "w") as file:
            file.write("both\n" if is_merging else step + " is done\n")
        os.replace(draft, path)
    answer = {"status": "done", "summary": "did " + step}
elif role == "qa":
    answer = {"verdict": "pass", "findings": []}
elif role == "check" and step in orders.get("fail", ()):
    note("ended")
    sys.exit(1)
if answer is not None:
    with open(os.environ["AIFLOW_RESULT"], "w") as file:
        json.dump(answer, file)
note("ended")
"""

# Reads one job a line and runs aiflow for each in a child of its own: everything is imported only once. In the child
# every write of the main thread is counted right behind it, and at the chosen one the child kills itself. Where a
# write goes past the functions that are wrapped, the audit hook sees it.
NURSERY = r"""
import builtins, ctypes, fcntl, gc, getpass, importlib, json, os, pkgutil, shutil, signal, stat, subprocess, sys
import encodings.ascii, encodings.utf_8_sig, tempfile, threading, tomllib, yaml
import aiflow, aiflow.cli.main
for module in pkgutil.walk_packages(aiflow.__path__, "aiflow."):
    if not module.name.endswith("__main__") and ".agents.acp." not in module.name:  # a program of its own, and slow
        importlib.import_module(module.name)
from aiflow.adapters.files import atomic_files

HOOKED = {"os.rename", "os.link", "os.symlink", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod",
          "os.chown", "os.utime", "os.setxattr", "os.posix_spawn", "os.fork", "os.exec", "subprocess.Popen",
          "shutil.rmtree", "shutil.copyfile", "shutil.copytree", "shutil.move"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

class Death:
    def __init__(self, turn, log):
        self.turn, self.count, self.last, self.inside = turn, 0, "", 0
        self.main, self.write = threading.get_ident(), os.write
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)

    def tick(self, kind, what):
        if threading.get_ident() != self.main:
            return
        self.count, self.last = self.count + 1, kind
        self.write(self.log, f"{self.count} {kind} {what}".replace("\n", " ").encode() + b"\n")
        if self.count == self.turn:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrap(self, place, name, look=lambda args: None, is_write=lambda before, after: True):
        real = getattr(place, name)
        def call(*args, **kwargs):
            if threading.get_ident() != self.main:
                return real(*args, **kwargs)
            before = look(args)
            self.inside += 1
            try:
                result = real(*args, **kwargs)
            finally:
                self.inside -= 1
            if is_write(before, look(args)):
                self.tick(name, args[:2])
            return result
        setattr(place, name, call)

    def wrap_sync(self, name):
        # What a file object had buffered is written now; only a file just made can have that. The disk is not waited
        # for: a kill takes nothing of what the kernel has.
        def call(fd):
            if self.last == "open" and stat.S_ISREG(os.fstat(fd).st_mode):
                self.tick("content", os.readlink(f"/proc/self/fd/{fd}"))
        setattr(os, name, call)

    def hook(self, event, args):
        if self.inside or threading.get_ident() != self.main:
            return
        if event in HOOKED or (event == "open" and isinstance(args[2], int) and args[2] & WRITING):
            if event != "open" or (args[0] != os.devnull and not isinstance(args[0], int)):
                self.tick("before " + event, args[:2])

    def install(self):
        def is_new(args):
            is_hidden = args[1] & os.O_TMPFILE == os.O_TMPFILE
            return None if is_hidden or not args[1] & (os.O_CREAT | os.O_TRUNC) else os.path.lexists(args[0])
        def facts(args):
            try:
                status = os.stat(args[0])
            except OSError:
                return None
            return status.st_mode, status.st_uid, status.st_gid, status.st_size, status.st_mtime_ns
        is_changed = lambda before, after: before != after
        self.wrap(os, "open", is_new, lambda before, after: before is False)
        for name in ("write", "pwrite", "rename", "replace", "link", "symlink", "unlink", "remove", "mkdir", "rmdir"):
            self.wrap(os, name)
        for name in ("truncate", "ftruncate", "chmod", "chown", "utime"):
            self.wrap(os, name, facts, is_changed)
        for name in ("fsync", "fdatasync"):
            self.wrap_sync(name)
        # Killed while the other program works, and once more when it has come to its end.
        self.wrap(subprocess.Popen, "__init__")
        self.wrap(subprocess, "run")
        self.wrap(atomic_files, "_exchange")
        atomic_files_flush()
        sys.addaudithook(self.hook)

def atomic_files_flush():
    # This one took its name of the function when it was imported.
    import aiflow.adapters.journal as journal
    journal._flush = os.fdatasync

def run(job):
    os.setsid()
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["environ"])
    for fd, name in ((1, "out"), (2, "err")):
        opened = os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(opened, fd)
        os.close(opened)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    Death(job["turn"], job["log"]).install()
    aiflow.cli.main.main(job["argv"])

gc.collect()
gc.freeze()  # else each child copies every page of it when its own collector looks through it
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            run(json.loads(line))
        finally:
            os._exit(99)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

SETTINGS = """\
base_branch = "main"
[agent]
kind = "command"
argv = ["{python}", "-I", "-S", "{world}/agent.pyc"]
[tests]
unit = "{python} -I -S {world}/agent.pyc check"
baseline = {baseline}
[worktree]
setup = "{setup}"
copy = ["copied.env"]
[git]
dirty_checkout = "warn"
"""


def _write_agent(path: Path) -> None:
    """Write the agent compiled: it is called thousands of times."""
    code = marshal.dumps(compile(AGENT, str(path), "exec"))
    path.write_bytes(importlib.util.MAGIC_NUMBER + bytes(12) + code)


class Done(NamedTuple):
    """How a call of aiflow ended."""

    code: int
    out: str
    err: str
    writes: list[str]

    @property
    def answer(self) -> dict[str, Any]:
        """What it said with --json: a run, or an error."""
        answer = json.loads(self.out)
        assert isinstance(answer, dict)
        return answer

    @property
    def refusal(self) -> str | None:
        """The reason code of an error."""
        code = self.answer.get("error", {}).get("reason_code")
        return str(code) if code else None


def git(folder: Path, *args: str, environ: dict[str, str] | None = None) -> str:
    """Call git as a user would, and return what it says."""
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_OPTIONAL_LOCKS": "0", **(environ or {})}
    done = subprocess.run(["git", *args], cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
    return done.stdout


def blob(text: str) -> str:
    """Return git's id of a text."""
    return hashlib.sha1(b"blob %d\0" % len(text) + text.encode()).hexdigest()


class Scene:
    """A project to run aiflow in."""

    def __init__(
        self,
        folder: Path,
        *,
        steps: int = 2,
        has_setup: bool = False,
        has_baseline: bool = False,
        requests: int = 1,
        is_on_base: bool = False,
    ) -> None:
        self.folder = folder
        self.steps = steps
        self.is_on_base = is_on_base
        self.world = folder / "world"
        self.root = self.world / "repository"
        self._nursery: subprocess.Popen[str] | None = None
        self.root.mkdir(parents=True)
        for name in ("state", "tmp"):
            (self.world / name).mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIFLOW", "LC_", "LANG"))}
        self.environ = kept | {
            "LANG": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "XDG_STATE_HOME": str(self.world / "state"),
            "TMPDIR": str(self.world / "tmp"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        _write_agent(self.world / "agent.pyc")
        self.order(steps=steps)
        self._make_repository(has_setup=has_setup, has_baseline=has_baseline)
        for number in range(1, requests + 1):
            path = self.root / f"requests/RQ-{number}.md"
            path.write_text(f"---\ntitle: Request {number}\nstatus: ready\npriority: P2\n---\n\nDo it.\n")

    def _make_repository(self, *, has_setup: bool, has_baseline: bool) -> None:
        """Make a repository with a person at work in it: staged, changed, untracked and stashed files.

        They are on a branch of their own, or on the base branch itself.
        """
        root = self.root
        setup = f"{sys.executable} -I -S {self.world}/agent.pyc setup" if has_setup else ""
        facts = {"python": sys.executable, "world": self.world, "setup": setup}
        settings = SETTINGS.format(**facts, baseline=str(has_baseline).lower())
        git(root, "init", "-q", "-b", "main", "--template=")
        with (root / ".git/config").open("a") as config:
            config.write(
                "[user]\n\tname = Test\n\temail = test@example.com\n[gc]\n\tauto = 0\n[core]\n\tfsync = none\n"
            )
        (root / "requests").mkdir()
        (root / ".gitignore").write_text("runs/\nrequests/\n.aiflow/\ncopied.env\n")
        (root / "aiflow.toml").write_text(settings)
        (root / "README").write_text("readme\n")
        (root / "base").write_text("old\n")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "Begin")
        if not self.is_on_base:
            git(root, "checkout", "-q", "-b", "mine")
        (root / "README").write_text("stashed\n")
        git(root, "stash", "-q")
        (root / "README").write_text("changed\n")
        (root / "staged").write_text("staged\n")
        git(root, "add", "staged")
        (root / "untracked").write_text("untracked\n")
        (root / "copied.env").write_text("SECRET=1\n")
        self.first_commit = git(root, "rev-parse", "main").strip()
        self.checkout = self.look_at_checkout()

    def order(self, **orders: object) -> None:
        """Give the agent new orders, in addition to or instead of those it has."""
        path = self.world / "orders.json"
        old = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**old, **orders}))

    def keep(self) -> None:
        """Remember everything as it is now."""
        subprocess.run(["cp", "-a", str(self.world), str(self.folder / "kept")], check=True)

    def restore(self) -> None:
        """Put everything back as it was remembered, at the same path: worktrees are known by it."""
        shutil.rmtree(self.world)
        subprocess.run(["cp", "-a", str(self.folder / "kept"), str(self.world)], check=True)

    def close(self) -> None:
        """End the nursery."""
        if self._nursery is not None:
            assert self._nursery.stdin is not None
            assert self._nursery.stdout is not None
            self._nursery.stdin.close()
            self._nursery.wait(timeout=60)
            self._nursery.stdout.close()
            self._nursery = None

    def aiflow(self, *argv: str, turn: int = 0) -> Done:
        """Call aiflow with --json, killed right behind its write of this number (0: never)."""
        if self._nursery is None:
            self._nursery = subprocess.Popen(
                [sys.executable, "-c", NURSERY],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=self.environ,
                cwd=self.folder,
            )
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        out, err, log = (self.folder / name for name in ("out", "err", "log"))
        job = {"argv": [*argv, "--json"], "cwd": str(self.root), "environ": self.environ, "turn": turn}
        job |= {"out": str(out), "err": str(err), "log": str(log)}
        self._nursery.stdin.write(json.dumps(job) + "\n")
        self._nursery.stdin.flush()
        code = int(self._nursery.stdout.readline())
        done = Done(code, out.read_text(), err.read_text(), log.read_text().splitlines())
        assert "Traceback" not in done.err, done.err
        return done

    def start(self, *argv: str, environ: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Start aiflow with --json as a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "aiflow", *argv, "--json"],
            cwd=self.root,
            env={**self.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def calls(self, what: str = "began") -> list[dict[str, Any]]:
        """Return what the agent wrote down."""
        path = self.world / "calls.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [call for call in map(json.loads, lines) if call["what"] == what]

    def forget_calls(self) -> None:
        """Let the agent's book begin anew."""
        (self.world / "calls.jsonl").unlink()

    def names(self) -> list[str]:
        """Return the calls that began, in order."""
        return [call["name"] for call in self.calls()]

    def run_ids(self, request_id: str = "RQ-1") -> list[str]:
        """Return the runs of a request, oldest first."""
        return sorted(path.name for path in (self.root / "runs" / request_id).glob("RUN-*"))

    def stage_path(self, run_id: str, request_id: str = "RQ-1") -> Path:
        """Return where a run's truth is."""
        return self.root / "runs" / request_id / run_id / "stage.json"

    def run(self, run_id: str | None = None, request_id: str = "RQ-1") -> Run:
        """Read a run back, by default the only one."""
        if run_id is None:
            [run_id] = self.run_ids(request_id)
        run = run_of(json.loads(self.stage_path(run_id, request_id).read_text()))
        assert run is not None
        return run

    def status(self, request_id: str = "RQ-1") -> str:
        """Return a request's status."""
        [status] = re.findall(r"^status: (\w+)$", (self.root / f"requests/{request_id}.md").read_text(), re.MULTILINE)
        return str(status)

    def lock_files(self) -> list[str]:
        """Return the lock files, aiflow's and git's."""
        ours = [path.name for path in (self.root / ".aiflow").glob("locks/*.lock.json")]
        return ours + [str(path) for path in (self.root / ".git").rglob("*.lock")]

    def holder(self) -> dict[str, Any] | None:
        """Return who holds a request's lock."""
        for path in (self.root / ".aiflow/locks").glob("request.*.lock.json"):
            try:
                lock: dict[str, Any] = json.loads(path.read_text())
            except FileNotFoundError:
                continue
            return lock
        return None

    def look_at_checkout(self) -> dict[str, object]:
        """Return everything in the repository that is the person's, byte for byte.

        The index of a checkout that aiflow fast-forwards is what it lists, for its times are new.
        """
        ours = {".git", ".aiflow", "runs", "requests"}
        files = [path for path in self.root.iterdir() if path.name not in ours]
        names = ["HEAD", "config", "logs/refs/stash", *([] if self.is_on_base else ["index"])]
        files += [self.root / ".git" / name for name in names]
        found: dict[str, object] = {str(path.relative_to(self.root)): path.read_bytes() for path in files}
        listed = [line.split() for line in git(self.root, "ls-files", "-s").splitlines()]
        found["tracked"] = {name: blob for _, blob, _, name in listed}
        found["status"] = git(self.root, "status", "--porcelain")
        refs = git(self.root, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        found["refs"] = [line for line in refs if not line.startswith(("refs/heads/aiflow/", "refs/aiflow/"))]
        return found

    # What must hold whenever nobody is at work.

    def check_tidy(self, checkout: dict[str, object] | None = None) -> None:
        """Check that nothing is left of a kill: no lock, no process, no half-done thing of the person's."""
        assert self.lock_files() == []
        assert survivors(run for request in self.requests() for run in self.run_ids(request)) == {}
        assert self.calls("survived") == []
        guards = self.root / ".aiflow/guards"
        assert not guards.exists() or os.listdir(guards) == []
        assert self.look_at_checkout() == (checkout or self.checkout)

    def check_files(self, run: Run) -> None:
        """Check a run's own files against each other."""
        folder = self.stage_path(run.run_id, run.request_id).parent
        errors = folder / "errors.json"
        assert errors.exists() == (run.error is not None)
        if run.error is not None:
            told = json.loads(errors.read_text())
            assert (told["reason_code"], told["state"]) == (run.error.reason_code, run.state.value)
        report = (folder / "report.md").read_text()
        heads = re.findall(r"^# .*$", report, re.MULTILINE)
        marks = re.findall(r"^<!-- aiflow:end .*$", report, re.MULTILINE)
        sections = re.findall(r"^## .*$", report, re.MULTILINE)
        assert len(heads) == 1, report
        assert [count for count in Counter([*marks, *sections]).values() if count > 1] == [], report
        assert len(marks) == len(sections) >= sum(line.event in ENDS for line in run.history), report
        reason = f": {run.error.reason_code}" if run.error else ""
        assert f" {run.state}{reason}" in sections[-1], report
        if run.plan:
            planning = json.loads((folder / "planning.json").read_text())
            assert [step["id"] for step in planning["steps"]] == [step.id for step in run.plan]

    def check_commits(self, run: Run, since: str = "main") -> None:
        """Check that the branch has one commit for each finished step, with its trailers and its content."""
        done = [step.id for step in run.plan if step.id in run.steps and run.steps[step.id].is_done]
        shape = "%x01%H%x02%s%x02%(trailers:only,unfold)%x02"
        text = git(
            self.root, "log", "--reverse", "--raw", "--abbrev=40", f"--format={shape}", f"{since}..{run.place.branch}"
        )
        commits = [part.split("\x02") for part in text.split("\x01")[1:]]
        expected = [
            (
                run.steps[step_id].commit,
                f"Do {step_id}",
                f"Aiflow-Request: {run.request_id}\nAiflow-Run: {run.run_id}\nAiflow-Step: {step_id}",
                f":000000 100644 {'0' * 40} {blob(step_id + DONE_TEXT)} A\t{step_id}.txt",
            )
            for step_id in done
        ]
        assert [tuple(part.strip() for part in commit) for commit in commits] == expected

    def check_done(self, request_id: str = "RQ-1", run_id: str | None = None) -> Run:
        """Check that a run is DONE, whole, and waits for acceptance."""
        run = self.run(run_id, request_id)
        assert (run.state.value, self.status(request_id)) == ("DONE", "blocked")
        assert all(run.steps[step.id].is_done for step in run.plan)
        assert sorted(os.listdir(self.root / "runs" / request_id)) == self.run_ids(request_id)
        self.check_files(run)
        self.check_commits(run)
        control = self.root / ".aiflow/control"
        assert not control.exists() or os.listdir(control) == []
        status = git(Path(run.place.path), "status", "--porcelain", "--ignored").splitlines()
        assert status == ["!! copied.env"]
        self.check_tidy()
        return run

    def check_calls(self, expected: Iterable[str], repeats: int = 1) -> None:
        """Check that every call was made, no finished step touched, and no attempt counted twice or given back."""
        assert [call for call in self.calls() if call["was_done"]] == []
        made, wanted = Counter(self.names()), Counter(expected)
        assert set(made) == set(wanted)
        assert sum((made - wanted).values()) <= repeats, made - wanted
        attempts: dict[str, list[int]] = {}
        for call in self.calls():
            if call["attempt"]:
                attempts.setdefault(call["name"], []).append(call["attempt"])
        assert all(numbers in ([1], [2], [1, 2]) for numbers in attempts.values()), attempts

    def check_journal(self, run: Run) -> None:
        """Check that every line of the history is in the journal, once."""
        entries = [entry.fields for entry in ActivityLog(self.root).read(limit=100_000).entries]
        told = Counter(
            (entry["at"], entry["data"]["event"])
            for entry in entries
            if entry["kind"] == "transition" and entry["run_id"] == run.run_id
        )
        assert told == Counter((line.at.isoformat(), line.event) for line in run.history)

    def requests(self) -> list[str]:
        """Return the requests that have runs."""
        folder = self.root / "runs"
        return sorted(name for name in os.listdir(folder) if not name.startswith(".")) if folder.is_dir() else []


DONE_TEXT = " is done\n"
ENDS = {"NEEDS_INPUT", "FAILED", "REPORTED", "REPLACED", "SENT_BACK"}


def survivors_at_last(run_ids: list[str]) -> dict[int, str]:
    """Return those that stay: a guard whose runner was killed is the last to go, a moment after the agent it ended."""
    with contextlib.suppress(AssertionError):
        wait_until(lambda: not survivors(run_ids), 30)
    return survivors(run_ids)


def survivors(run_ids: Iterable[str]) -> dict[int, str]:
    """Return the living processes that belong to runs: agents, guards, git."""
    marks = [f"{mark}={run}".encode() for run in run_ids for mark in (RUN_MARK, GUARD_MARK, GIT_MARK)]
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            carried = set(Path(f"/proc/{name}/environ").read_bytes().split(b"\0"))
            if (
                carried.intersection(marks)
                and Path(f"/proc/{name}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
            ):
                found[int(name)] = Path(f"/proc/{name}/cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return found
