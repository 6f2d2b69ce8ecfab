"""AGT-1: what a one-line change costs in bytes and requests to the model, beside the plain program.

What is measured and its goals are in `tests/e2e/one_line.py`: the tests hold them too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from e2e import one_line
from e2e.bench import Bench
from e2e.model_server import ModelServer
from e2e.one_line import Held, OneLine
from e2e.real_agents import RealHome


def measure(scratch: Path) -> dict[str, tuple[Held, ...]]:
    """Measure each program against its goals."""
    return {kind: one_line.goals(kind, _measure(scratch / f"prompts-{kind}", kind)) for kind in one_line.USERS}


def _measure(folder: Path, kind: str) -> OneLine:
    root = folder / "repo"
    root.mkdir(parents=True)
    for arguments in (
        ("init", "-q", "-b", "main"),
        ("config", "user.name", "B"),
        ("config", "user.email", "b@b.invalid"),
    ):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    with ModelServer() as models:
        bench = Bench(root, folder)
        seen = one_line.measure(kind, bench, models, RealHome(folder / "home", models.url))
        bench.close()
        return seen


if __name__ == "__main__":
    import tempfile

    os.chdir(Path(__file__).parents[1])
    with tempfile.TemporaryDirectory() as made:
        for name, held in measure(Path(made)).items():
            print(name, *held, sep="\n  ")
