"""The tasks of `make eval` judge truly: the hidden tests fail what is undone or half done, and pass what is right."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evaluate
import table
from aiflow.domain.agents.usage import Usage
from suite import PROJECT, Judgement, Task, lay_out, tasks_named
from ways import Outcome, ways_for

TASKS = tasks_named(())


def solved(task: Task, folder: Path) -> Path:
    """A tree in which a task is done as its solution does it."""
    return Path(shutil.copytree(task.solution, shutil.copytree(PROJECT, folder), dirs_exist_ok=True))


def test_there_are_ten_tasks() -> None:
    assert len(TASKS) == 10
    assert {name for task in TASKS for name in [task.request.partition("\n")[0]] if not name.startswith("# ")} == set()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_what_is_undone_fails_and_the_solution_passes(task: Task, tmp_path: Path) -> None:
    undone = task.judge(PROJECT, tmp_path).failed
    assert undone
    assert all(name.startswith("test_") for name in undone), "the tests fail, and are not merely broken"
    assert task.judge(solved(task, tmp_path / "solved"), tmp_path).failed == ()


@pytest.mark.faults
@pytest.mark.parametrize(
    ("name", "path", "old", "new"),
    [
        ("bug", "tally/entries.py", "date(year + 1, 1, 1)", "date(year, 12, 31)"),
        ("docs-and-code", "CHANGELOG.md", "- `tally list` takes `--limit` and `--reverse`.\n", ""),
        ("docs-and-code", "tally/cli.py", "entries[-options.limit :]", "entries[: options.limit]"),
        ("edge-case", "tally/money.py", "cents + (number < left)", "cents + left * (number == 0)"),
        ("error-message", "tally/money.py", "not math.isfinite(amount)", "math.isnan(amount)"),
        ("feature", "tally/entries.py", "entry.day <= until", "entry.day < until"),
        ("forgotten-criterion", "tally/cli.py", '("=", "+", "-", "@")', '("=",)'),
        ("migration", "tally/store.py", "round(entry.amount * 100)", "int(entry.amount * 100)"),
        ("migration", "tally/store.py", "and not copy.exists() ", ""),
        ("performance", "tally/entries.py", "set(), []", "[], []"),
        ("refactoring", "tally/report.py", "-row[1], row[0]", "-row[1]"),
        ("three-files", "tally/store.py", 'entry.get("tags", ())', 'entry["tags"]'),
    ],
)
def test_half_a_solution_fails(tmp_path: Path, name: str, path: str, old: str, new: str) -> None:
    [task] = tasks_named((name,))
    file = solved(task, tmp_path / "half") / path
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new).replace("seen.add(", "seen.append(" if "[], []" in new else "seen.add("))
    assert task.judge(tmp_path / "half", tmp_path).failed


def test_a_solution_that_breaks_what_worked_fails(tmp_path: Path) -> None:
    [task] = tasks_named(("bug",))
    tree = solved(task, tmp_path / "tree")
    shutil.rmtree(tree / "tests")
    (tree / "tally/report.py").write_text(
        "def by_category(entries):\n    return []\n\n\nby_month = by_person = by_category\n"
    )
    assert "test_totals_of_people" in task.judge(tree, tmp_path).failed


def test_the_repository_has_nothing_hidden_and_its_tests_pass(tmp_path: Path) -> None:
    made = lay_out(tmp_path / "made", {"requests/RQ-1.md": "x"})
    names = {path.name for path in made.rglob("*.py")}
    assert names == {path.name for path in PROJECT.rglob("*.py")}
    assert "hidden.py" not in names
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=made, env=environ, check=True, capture_output=True)
    assert not subprocess.check_output(["git", "status", "--porcelain"], cwd=made)


def rows() -> list[table.Row]:
    """What two ways came to."""
    good, bad = Judgement(()), Judgement(("test_x",))
    return [
        table.Row("codex", "bug", "quick", Outcome("DONE", Usage(1, 100, 50, 20, 0.5, 61.0), good)),
        table.Row("codex", "bug", "plain", Outcome("ended", Usage(1, 200, 0, 20, 0.0, 5.0), bad)),
        table.Row("codex", "feature", "quick", Outcome("DONE", Usage(2, 300, 0, 30, 0.25, 9.0), good)),
    ]


def test_the_ways_stand_side_by_side_and_what_failed_is_named() -> None:
    head, names, bug, feature, total, told = table.lines("codex", rows())
    assert [word for word in head.split() if "-" not in word] == ["codex", "quick", "plain"]
    assert names.split() == ["solved", "calls", "tokens", "cost", "time"] * 2
    assert bug.split() == ["bug", "yes", "1", "120", "$0.500", "1:01", "NO", "1", "220", "-", "0:05"]
    assert feature.split() == ["feature", "yes", "2", "330", "$0.250", "0:09"]
    assert total.split() == ["all", "2/2", "3", "450", "$0.750", "1:10", "0/1", "1", "220", "-", "0:05"]
    assert told == "bug, plain: ended; fails test_x"


def test_the_document_has_every_result_and_the_sums() -> None:
    document = json.loads(json.dumps(table.document(rows())))
    assert [(each["task"], each["way"], each["solved"], each["failed"]) for each in document["results"]] == [
        ("bug", "quick", True, []),
        ("bug", "plain", False, ["test_x"]),
        ("feature", "quick", True, []),
    ]
    quick, plain = document["sums"]
    assert (quick["way"], quick["tasks"], quick["solved"], quick["calls"], quick["cost_usd"]) == (
        "quick",
        2,
        2,
        3,
        0.75,
    )
    assert (plain["way"], plain["solved"], plain["input_tokens"]) == ("plain", 0, 200)


def test_only_programs_that_have_a_plain_way_are_called_plainly() -> None:
    assert ways_for("codex", ()) == ("quick", "normal", "plain")
    assert ways_for("acp", ()) == ("quick", "normal")
    assert ways_for("claude-code", ("plain", "quick")) == ("quick", "plain")


def test_a_real_agent_is_not_called_before_somebody_agrees(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def called(*_: object) -> Outcome:
        raise AssertionError("it was called")

    monkeypatch.setattr("ways.WAYS", dict.fromkeys(("quick", "normal", "plain"), called))
    monkeypatch.setattr("evaluate.WAYS", dict.fromkeys(("quick", "normal", "plain"), called))
    assert evaluate.main(["--agent", "claude-code", "--tasks", "bug feature", "--budget", "0.5"]) == evaluate.REFUSED
    said = capsys.readouterr()
    assert "2 tasks × 3 ways (quick, normal, plain),\n10 calls if all goes well, at most 50." in said.out
    assert "Each run stops at $0.5 (BUDGET), so it costs about $3 at most." in said.out
    assert "YES=1" in said.err


def test_a_wrong_name_is_refused_with_the_right_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main(["--tasks", "bug nope"]) == evaluate.REFUSED
    assert "no task is called nope; there are bug, docs-and-code" in capsys.readouterr().err
    assert evaluate.main(["--agent", "acp", "--ways", "plain", "--yes"]) == evaluate.REFUSED
    assert "no plain way" in capsys.readouterr().err
