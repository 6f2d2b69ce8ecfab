"""PRF-5: a run of three steps beside a script with the least git calls that could do it, with 2,000 files.

The agent is a shell script that writes one line per step and answers at once. Both are timed inside a process that has
imported everything, from compiled files as pip leaves them: `python bench/runs.py ours|reference FOLDER` prints the
seconds.
"""

from __future__ import annotations

import compileall
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from place import quiet_place

STEPS = 3
PLAN = ", ".join(f'{{"id": "S{n:02d}", "title": "Step {n}"}}' for n in range(1, STEPS + 1))
AGENT = """#!/bin/sh
case "$AIFLOW_ROLE" in
planner) echo '{"steps": [PLAN]}' > "$AIFLOW_RESULT" ;;
implementer) echo "$AIFLOW_STEP_ID" > "step-$AIFLOW_STEP_ID.txt"; echo '{"status": "done"}' > "$AIFLOW_RESULT" ;;
qa) echo '{"verdict": "pass"}' > "$AIFLOW_RESULT" ;;
esac
""".replace("PLAN", PLAN)
# What a run imports only on its way.
LATER = (
    "ctypes",
    "encodings.ascii",
    "yaml",
    "aiflow.adapters.markdown_requests.edit",
    "aiflow.adapters.markdown_requests.patch",
    "aiflow.adapters.server.record_files",
    "aiflow.messages.advice",
)
SETTINGS = '[agent]\nkind = "command"\nargv = ["./agent.sh"]\n'


def git(folder: Path, *arguments: str) -> str:
    """Call git."""
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def make_repository(folder: Path, files: int = 2_000) -> None:
    """Make a repository with files, a request and an agent."""
    for number in range(files):
        path = folder / f"src/{number // 100}/{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"file {number}\n" * 20)
    (folder / "aiflow.toml").write_text(SETTINGS)
    (folder / "agent.sh").write_text(AGENT)
    (folder / "agent.sh").chmod(0o755)
    (folder / "requests").mkdir()
    (folder / ".gitignore").write_text("runs/\n.aiflow/\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Bench")
    git(folder, "config", "user.email", "bench@example.com")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "files")


def add_request(folder: Path, request_id: str) -> None:
    """Add a request that is ready."""
    text = f"---\nstatus: ready\npriority: P1\n---\n\n# {request_id}\n\nThree steps.\n"
    (folder / f"requests/{request_id}.md").write_text(text)


def run_ours(folder: Path) -> float:
    """Time one run by the engine, imports apart."""
    from aiflow.domain.request import RequestId
    from aiflow.messages import Texts
    from aiflow.usecases.engine import Voice
    from aiflow.usecases.runs.start import start_run
    from aiflow.wiring import build_engine, project_at, read_settings

    request_id = RequestId(f"RQ-{os.urandom(4).hex()}")
    add_request(folder, request_id)
    project = project_at(str(folder))
    settings = read_settings(str(folder), ())
    engine = build_engine(project, settings, project.journal, Voice(Texts("en")))
    for name in LATER:
        importlib.import_module(name)
    imported = set(sys.modules)
    wait_for_a_second()
    begin = time.perf_counter()
    run = start_run(engine, request_id)
    took = time.perf_counter() - begin
    assert run.state == "DONE", run.error
    assert set(sys.modules) == imported, f"timed, too: the import of {sorted(set(sys.modules) - imported)}"
    return took


def wait_for_a_second() -> None:
    """Begin with a new second of the clock, as the other does.

    Git reads every file again that was written in the second of the index, which is 15 ms for 2,000 files: in each call
    until that second is over. Whether it ends in the middle of a run would be the luck of one and not of the other.
    """
    time.sleep(1 - time.time() % 1)


def run_reference(folder: Path) -> float:
    """Time the same work with nothing around it: a worktree, seven agent calls, three commits."""
    name = os.urandom(4).hex()
    tree = Path(os.environ["XDG_STATE_HOME"], name)
    wait_for_a_second()
    begin = time.perf_counter()
    git(folder, "worktree", "add", "-q", "-b", f"reference/{name}", str(tree))
    call_agent(folder, tree, "planner", "")
    for number in range(1, STEPS + 1):
        call_agent(folder, tree, "implementer", f"S{number:02d}")
        git(tree, "add", "-A")
        git(tree, "diff-index", "--cached", "--numstat", "HEAD")
        call_agent(folder, tree, "qa", f"S{number:02d}")
        git(tree, "commit", "-q", "--no-verify", "-m", f"Step {number}")
    return time.perf_counter() - begin


def call_agent(folder: Path, tree: Path, role: str, step_id: str) -> None:
    """Call the agent as a plain child process and read its answer."""
    result = tree.parent / f"{tree.name}.json"
    environ = {
        "PATH": os.environ["PATH"],
        "AIFLOW_ROLE": role,
        "AIFLOW_STEP_ID": step_id,
        "AIFLOW_RESULT": str(result),
    }
    subprocess.run([str(folder / "agent.sh")], cwd=tree, env=environ, input=b"{}", check=True)
    json.loads(result.read_bytes())


def count_git(folder: Path, scratch: Path, environ: dict[str, str]) -> int:
    """Count the git processes that one run starts, with a wrapper named git in front of the real one."""
    real = subprocess.run(["sh", "-c", "command -v git"], check=True, capture_output=True, text=True).stdout.strip()
    log = scratch / "git-calls"
    wrapper = scratch / "bin/git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    environ = {**environ, "PATH": f"{wrapper.parent}:{environ['PATH']}"}
    subprocess.run([sys.executable, __file__, "ours", str(folder)], env=environ, check=True, capture_output=True)
    return len(log.read_text().splitlines())


def measure(scratch: Path, rounds: int) -> tuple[dict[str, float], int]:
    """Return the fastest time of both, started in turn, and the number of git processes."""
    with quiet_place(scratch) as place:
        return _measure(Path(place), rounds)


def _measure(scratch: Path, rounds: int) -> tuple[dict[str, float], int]:
    compile_everything()
    folder = scratch / "repository"
    folder.mkdir()
    make_repository(folder)
    environ = {**os.environ, "XDG_STATE_HOME": str(scratch / "state")}
    (scratch / "state").mkdir()
    best = {"ours": float("inf"), "reference": float("inf")}
    for _ in range(rounds):
        for name, fastest in best.items():
            arguments = [sys.executable, __file__, name, str(folder)]
            done = subprocess.run(arguments, env=environ, check=True, capture_output=True, text=True)
            best[name] = min(fastest, float(done.stdout))
    return best, count_git(folder, scratch, environ)


def compile_everything() -> None:
    """Compile what is measured: a guard that nobody imports would be compiled at every call."""
    found = importlib.util.find_spec("aiflow")
    assert found is not None
    for folder in found.submodule_search_locations or ():
        compileall.compile_dir(folder, quiet=1)


if __name__ == "__main__":
    print({"ours": run_ours, "reference": run_reference}[sys.argv[1]](Path(sys.argv[2])))
