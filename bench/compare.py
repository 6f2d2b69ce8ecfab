"""Measures two checkouts of aiflow in one run, in turn: `make bench BEFORE=<checkout>`, one with a venv of its own.

Each is measured by its own bench, as often as ROUNDS says; the best ratio of each counts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROUNDS = int(os.environ.get("COMPARE_ROUNDS", "2"))
LINE = re.compile(r"^(?P<name>.{60}) +[\d.]+ ms +[\d.]+ ms +(?P<ratio>[\d.]+)")


def ratios(checkout: Path) -> dict[str, float]:
    """Run a checkout's own bench and return its ratios by name."""
    subprocess.run([checkout / ".venv/bin/python", "-m", "compileall", "-q", "src"], cwd=checkout, check=True)
    done = subprocess.run(
        [checkout / ".venv/bin/python", "bench/run.py"], cwd=checkout, stdout=subprocess.PIPE, text=True, check=False
    )
    found = filter(None, map(LINE.match, done.stdout.splitlines()))
    # What is counted stands in brackets and may differ from run to run: it is not part of the name.
    return {re.sub(r"\([^)]*\)", "(…)", match["name"].strip()): float(match["ratio"]) for match in found}


def main() -> int:
    """Print both columns; a ratio more than a tenth worse is marked."""
    before, after = Path(sys.argv[1]).resolve(), Path(__file__).resolve().parents[1]
    best: dict[str, dict[Path, float]] = {}
    for _ in range(ROUNDS):
        for checkout in (before, after):
            for name, ratio in ratios(checkout).items():
                known = best.setdefault(name, {})
                known[checkout] = min(ratio, known.get(checkout, ratio))
    print(f"{'':62} {'before':>8} {'after':>8}")
    worse = 0
    for name, both in best.items():
        old, new = both.get(before), both.get(after)
        is_worse = old is not None and new is not None and new > old * 1.1
        worse += is_worse
        columns = (f"{value:8.2f}" if value is not None else f"{'-':>8}" for value in (old, new))
        print(f"{name:62} {' '.join(columns)}{'  WORSE' if is_worse else ''}")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
