"""AUT-2: what auto-run costs per request, from the first to the 500th that changes nothing; time and memory.

`python bench/night.py FOLDER` works through the backlog there and prints one JSON document.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import runs
from place import quiet_place

REQUESTS = 500
EDGE = 50
PLAN = '{"steps": [{"id": "S01", "title": "Nothing"}]}'
AGENT = f"""#!/bin/sh
case "$AIFLOW_ROLE" in
planner) echo '{PLAN}' > "$AIFLOW_RESULT" ;;
implementer) echo '{{"status": "done"}}' > "$AIFLOW_RESULT" ;;
qa) echo '{{"verdict": "pass"}}' > "$AIFLOW_RESULT" ;;
esac
"""


def resident_bytes() -> int:
    """Return how much memory this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def busy_seconds() -> float:
    """Return the processor time of this process and of everything it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


class Edges(NamedTuple):
    """Something at both ends of the night."""

    first: float
    last: float


def work_through(folder: Path) -> None:
    """Let auto-run work through the backlog, and note the time and the memory at each run's end."""
    from aiflow.messages import Texts
    from aiflow.usecases.auto.run import auto_run, limits_of
    from aiflow.usecases.auto.shift import AutoTerms
    from aiflow.usecases.engine import Voice
    from aiflow.wiring import build_engine, project_at, read_settings

    project = project_at(str(folder))
    settings = read_settings(str(folder), ("accept=auto",))
    ends: list[tuple[float, float, int]] = []

    def observe(run: object) -> None:
        if getattr(run, "accepted_as", None):
            ends.append((time.perf_counter(), busy_seconds(), resident_bytes()))

    engine = build_engine(project, settings, project.journal, Voice(Texts("en"), observe=observe))
    auto_run(engine, AutoTerms(project.auto_records, limits_of(settings), Texts("en")))
    print(json.dumps(ends))


def measure(scratch: Path) -> tuple[Edges, Edges, Edges]:
    """Return the median time and processor time per request, and the memory, at both ends of the night."""
    with quiet_place(scratch) as place:
        return _measure(Path(place))


def _measure(scratch: Path) -> tuple[Edges, Edges, Edges]:
    folder = scratch / "night"
    folder.mkdir()
    runs.make_repository(folder, files=200)
    (folder / "agent.sh").write_text(AGENT)
    runs.git(folder, "commit", "-qam", "an agent that changes nothing")
    for number in range(REQUESTS):
        runs.add_request(folder, f"RQ-{number:03}")
    environ = {**os.environ, "XDG_STATE_HOME": str(scratch / "night-state")}
    arguments = [sys.executable, __file__, str(folder)]
    done = subprocess.run(arguments, env=environ, check=True, capture_output=True, text=True)
    moments, busy, held = zip(*json.loads(done.stdout.splitlines()[-1]), strict=True)
    assert len(moments) == REQUESTS, len(moments)
    took, used = ([after - before for before, after in pairwise(series)] for series in (moments, busy))
    return _edges(took), _edges(used), Edges(max(held[:EDGE]), max(held[-EDGE:]))


def _edges(series: list[float]) -> Edges:
    return Edges(median(series[:EDGE]), median(series[-EDGE:]))


if __name__ == "__main__":
    work_through(Path(sys.argv[1]))
