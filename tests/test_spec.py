"""The matrix clause → test: every clause of docs/spec.md that is built has a test that names it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Clauses whose whole behaviour comes with a later part of the product. What of them is decided already, in domain/,
# has tests that name them all the same. This list only ever gets shorter.
NOT_BUILT_YET: set[str] = set()
MEASURED_BY_BENCH = {"PRF-1", "PRF-2", "PRF-3", "PRF-4", "PRF-5", "PRF-6", "PRF-7", "PRF-8"}


def clauses() -> set[str]:
    """Every clause id of the specification; a section without numbered clauses counts as one."""
    text = (ROOT / "docs/spec.md").read_text(encoding="utf-8")
    numbered = set(re.findall(r"^- ([A-Z]{3}-\d+a?) ", text, re.MULTILINE))
    sections = set(re.findall(r"^## \d+\. .*\(([A-Z]{3})\)", text, re.MULTILINE))
    return numbered | {section for section in sections if not any(c.startswith(f"{section}-") for c in numbered)}


MARK = re.compile(r"^(?:@|pytestmark = )[^#\n]*?\bmark\.spec\(([^()]*)\)", re.MULTILINE)


def claims() -> dict[str, list[str]]:
    """Which tests name which clause. To parse all tests for that would take longer than most of them do."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        marks = MARK.findall(text)
        assert len(marks) == len(re.findall(r"mark\.spec\(", text)), f"{path}: a mark at an unusual place"
        for mark in marks:
            for clause in ast.literal_eval(f"({mark.rstrip().rstrip(',')},)"):
                found.setdefault(clause, []).append(path.name)
    return found


def test_every_built_clause_has_a_test_and_tests_name_only_clauses_that_exist() -> None:
    claimed = set(claims())
    assert clauses() - NOT_BUILT_YET - claimed == set()
    assert claimed - clauses() == set()


def test_the_list_of_what_is_not_built_is_true() -> None:
    assert clauses() >= NOT_BUILT_YET


def test_what_is_measured_is_in_the_bench() -> None:
    bench = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "bench").glob("*.py"))
    assert {clause for clause in MEASURED_BY_BENCH if clause not in bench} == set()
