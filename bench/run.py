"""Measures the speed goals of SPEC §18: whole processes, side by side in one run, as ratios to a floor.

Every round starts each program once, so that a slow moment of the machine hits all of them; the fastest round counts.
Exits with 1 if a goal is missed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import claims
import locks
import night
import peer
import prompts
import runs
import serving
import shift
import store
import waking
from backlog import MIXES, make_backlog

FLOOR = "import os\nfor entry in os.scandir('requests'): entry.stat()"
NAIVE = """
import os, yaml
loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
for entry in os.scandir("requests"):
    with open(entry.path, encoding="utf-8") as file:
        yaml.load(file.read().split("---\\n")[1], Loader=loader)
"""
PYTHON = sys.executable
AIFLOW = str(Path(PYTHON).with_name("aiflow"))


class Goal(NamedTuple):
    """One ratio and its limit."""

    name: str
    ours: float
    floor: float
    limit: float | None

    @property
    def ratio(self) -> float:
        """Ours in floors."""
        return self.ours / self.floor

    @property
    def is_missed(self) -> bool:
        """Whether there is a limit and we are over it."""
        return self.limit is not None and self.ratio > self.limit


def time_once(folder: Path, *arguments: str) -> float:
    """Time one whole process."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("AIFLOW")}
    begin = time.perf_counter()
    subprocess.run(arguments, cwd=folder, env=environ, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


Program = tuple[Path, tuple[str, ...]]


def fastest(rounds: int, programs: dict[str, Program]) -> dict[str, float]:
    """Return each program's fastest time, all of them started in turn in every round."""
    best = dict.fromkeys(programs, float("inf"))
    for _ in range(rounds):
        for name, (folder, arguments) in programs.items():
            best[name] = min(best[name], time_once(folder, *arguments))
    return best


COUNT = 10_000


def make_projects(scratch: Path) -> dict[str, Path]:
    """Make a project of each mix, one that is ten times as large and one with no requests, set up by `aiflow init`."""
    projects = {mix: scratch / mix for mix in (*MIXES, "large", "empty")}
    for mix in MIXES:
        make_backlog(projects[mix], COUNT, 500, mix)
    make_backlog(projects["large"], 10 * COUNT, 500, "dense")
    (projects["empty"] / "requests").mkdir(parents=True)
    for root in projects.values():
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=root, check=True)
        subprocess.run([AIFLOW, "init"], cwd=root, stdout=subprocess.DEVNULL, check=True)
    return projects


def measure(scratch: Path, rounds: int) -> list[Goal]:
    """Measure everything."""
    return [
        *measure_backlog(scratch, rounds),
        *measure_runs(scratch, rounds),
        *measure_night(scratch),
        *measure_prompts(scratch),
        *measure_server(scratch),
        *measure_queue(scratch),
    ]


def measure_backlog(scratch: Path, rounds: int) -> list[Goal]:
    """Measure reading and choosing, whatever the mix, and beside a peer on the same backlog."""
    projects = make_projects(scratch)
    empty, ask = projects["empty"], (AIFLOW, "next", "--json")
    programs: dict[str, Program] = {mix: (projects[mix], ask) for mix in (*MIXES, "empty")}
    programs |= {f"{mix} floor": (projects[mix], (PYTHON, "-c", FLOOR)) for mix in MIXES}
    programs |= {"help": (empty, (AIFLOW, "--help")), "click": (empty, (PYTHON, "-c", "import click"))}
    peers = ("usual", "dense") if peer.is_there() else ()
    for mix in peers:
        peer.make(scratch / f"{mix}-peer", COUNT, mix)
        programs[f"{mix} peer"] = (scratch / f"{mix}-peer", peer.ASK)
    times = fastest(rounds, programs)
    slow = fastest(
        max(3, rounds // 5),
        {
            "small": programs["dense"],
            "large": (projects["large"], ask),
            "naive": (projects["dense"], (PYTHON, "-c", NAIVE)),
        },
    )
    per_small = (slow["small"] - times["empty"]) / COUNT
    per_large = (slow["large"] - times["empty"]) / (10 * COUNT)
    floor = times["dense floor"]
    return [
        *(
            Goal(f"PRF-1  next, 10,000, {mix} / scandir + stat", times[mix], times[f"{mix} floor"], 6.0)
            for mix in MIXES
        ),
        *(Goal(f"PRF-1  next, {mix} / {peer.NAME} ready", times[mix], times[f"{mix} peer"], 1.0) for mix in peers),
        Goal("PRF-1  per request, 100,000 / 10,000, dense", per_large, per_small, 1.15),
        Goal("       naive YAML reader, 10,000, dense / scandir + stat", slow["naive"], floor, None),
        Goal("       next, no requests / scandir + stat", times["empty"], floor, None),
        Goal("PRF-6  aiflow --help / import click", times["help"], times["click"], 1.8),
    ]


GIT_PROCESSES = 14


def measure_runs(scratch: Path, rounds: int) -> list[Goal]:
    """Measure a whole run and a lock's turn."""
    times, git_processes = runs.measure(scratch, max(3, rounds // 2))
    ours, bare, flushed = locks.measure(scratch, max(3, rounds // 4))
    return [
        Goal("PRF-5  run of three steps / reference script", times["ours"], times["reference"], 2.0),
        Goal(
            f"PRF-5  git processes ({git_processes}) / {GIT_PROCESSES}", git_processes / 1e3, GIT_PROCESSES / 1e3, 1.0
        ),
        Goal("       lock acquire + release / create + unlink", ours, bare, None),
        Goal("       lock acquire + release / create + fsync + unlink", ours, flushed, None),
    ]


def measure_night(scratch: Path) -> list[Goal]:
    """Measure whether a request costs the same at the end of a long night."""
    took, busy, held = night.measure(scratch)
    return [
        Goal(f"AUT-2  request {night.REQUESTS} / request 1 of an auto-run, CPU", busy.last, busy.first, 1.15),
        Goal("       the same by the clock", took.last, took.first, None),
        Goal("AUT-2  its memory then (1 ms: 1 MB)", held.last / 1e9, held.first / 1e9, 1.15),
    ]


def measure_prompts(scratch: Path) -> list[Goal]:
    """Measure what a one-line change sends to a model, beside the plain programs (1 ms: 1 request, or 1 KB)."""
    return [
        Goal(f"AGT-1  one line, {kind}: {held.name}", held.ours / unit, held.most / unit, 1.0)
        for kind, goals in prompts.measure(scratch).items()
        for held in goals
        for unit in [1e6 if "bytes" in held.name else 1e3]
    ]


def measure_server(scratch: Path) -> list[Goal]:
    """Measure a server: its streams, its stop, its start and its calls."""
    seen = serving.measure(scratch)
    streams = serving.STREAMS
    print(f"An idle server used {seen.idle_share:.1%} of a processor.")
    return [
        Goal(f"PRF-8  p95 of a call, {streams} streams and a growing log / idle", seen.p95_busy, seen.p95_idle, 4.0),
        Goal(
            "PRF-8  its memory then (1 ms: 1 MB) / at the beginning", seen.held_after / 1e9, seen.held_before / 1e9, 1.1
        ),
        Goal(f"PRF-8  a stop with {streams} streams open / 3 s", seen.stop, 3.0, 1.0),
        Goal(f"PRF-8  streams ({streams}) / those that were live", streams / 1e3, max(seen.live, 1) / 1e3, 1.0),
        *(Goal(f"PRF-7  {name}: its page with 10,000 requests / 100", *both, 3.0) for name, both in seen.pages.items()),
        Goal("PRF-7  the backlog's page, warm / 100 ms", seen.pages["backlog"][0], 0.1, 1.0),
        Goal("       100 rows of a list of 10,000 by the API / of 100", seen.list_large, seen.list_small, None),
        Goal("       a call for 100 rows / the same in process", seen.call, seen.in_process, None),
        Goal("       start of `up` / of an empty FastAPI application", seen.start, seen.empty_start, None),
    ]


def measure_queue(scratch: Path) -> list[Goal]:
    """Measure what claiming tasks costs: in calls, in capacity and in time."""
    with store.server() as endpoint:
        turn = claims.measure_turns(endpoint)
        races = claims.measure_races(endpoint)
        woken = waking.measure(scratch, endpoint)
        held = shift.measure(scratch, endpoint)
        growth = claims.measure_growth(endpoint)
    cost, looking = growth.cost, growth.looking
    print(f"{growth.filled:,} tasks were put into the store in {growth.fill_seconds:.0f} s.")
    print(f"{races.claims} tasks, {claims.RACERS} runners: {races.lost} lost races, {races.seconds:.1f} s.")
    return [
        Goal(f"PRF-2  claim at {growth.filled:,} tasks / at none, median", growth.full, growth.empty, 1.5),
        Goal(f"PRF-2  queries of a claim ({cost.queries}) / 1", cost.queries / 1e3, 1 / 1e3, 1.0),
        Goal(f"PRF-2  read units of a claim ({cost.read_units:g}) / 1", cost.read_units / 1e3, 1 / 1e3, 1.0),
        Goal(
            f"PRF-2  the same once a poll, anybody's too ({looking.read_units:g} in {looking.queries}) / 1",
            looking.read_units / 1e3,
            1 / 1e3,
            1.0,
        ),
        Goal(f"PRF-2  write units of a claim ({cost.write_units:g}) / 4", cost.write_units / 1e3, 4 / 1e3, 1.0),
        Goal(f"PRF-3  claim + complete / the same {turn.calls} bare calls", turn.ours, turn.bare, 1 / 0.8),
        Goal("PRF-4  enqueue → claimed by an idle runner / 50 ms, median", woken.own, 0.05, 1.0),
        Goal("PRF-4  the same, of what anybody may take / 50 ms", woken.anybodys, 0.05, 1.0),
        Goal("QUE-7  a runner's memory at task 1,000 / 200 (1 ms: 1 MB)", held.last / 1e9, held.first / 1e9, 1.05),
        Goal("QUE-5  lost races per claim, 8 runners / 0.5", races.lost / races.claims / 1e3, 0.5 / 1e3, 1.0),
    ]


def main() -> int:
    """Print the ratios and say whether every goal is met."""
    rounds = int(os.environ.get("BENCH_ROUNDS", "20"))
    with tempfile.TemporaryDirectory(prefix="aiflow-bench-") as scratch:
        goals = measure(Path(scratch), rounds)
    print(f"{'':60} {'ours':>11} {'floor':>11} {'ratio':>7} {'goal':>7}")
    for goal in goals:
        limit = "" if goal.limit is None else f"≤ {goal.limit:g}"
        print(
            f"{goal.name:60} {goal.ours * 1e3:8.3f} ms {goal.floor * 1e3:8.3f} ms {goal.ratio:7.2f} {limit:>7}"
            f"{'  MISSED' if goal.is_missed else ''}"
        )
    return int(any(goal.is_missed for goal in goals))


if __name__ == "__main__":
    sys.exit(main())
