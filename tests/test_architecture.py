"""The house: sizes, names, and what may not be imported before it is needed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src/aiflow").rglob("*.py"))


def test_no_file_and_no_function_is_too_long() -> None:
    too_long = []
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > 300:
            too_long.append(path.name)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                assert node.end_lineno is not None
                if node.end_lineno - node.lineno + 1 > 50:
                    too_long.append(f"{path.name}:{node.name}")
    assert too_long == []


def test_no_room_for_odds_and_ends() -> None:
    assert {path.stem for path in SOURCES} & {"utils", "common", "helpers", "manager", "misc"} == set()


def test_nothing_is_left_to_do_in_the_code() -> None:
    # The requests of the demo are numbered: `TODO-1`.
    words = ("TO" + r"DO(?!-\d)", "FIX" + "ME", "X" * 3, "NotImplemented" + "Error")
    left = re.compile("|".join(words))
    assert [path.name for path in SOURCES if left.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "path", [*ROOT.glob("requirements/*.lock"), ROOT / "tests/npm/package-lock.json"], ids=lambda path: path.name
)
def test_a_lock_pins_hashes_and_names_no_host(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "sha512-" in text if path.suffix == ".json" else "--hash=sha256:" in text
    assert "://" not in text
    assert "resolved" not in text


@pytest.mark.spec("PRF-6")
@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (
            ["--help"],
            ["pathlib", "yaml", "tomllib", "aiflow.domain", "aiflow.adapters", "subprocess", "dataclasses", "rich"],
        ),
        (
            ["next", "--json"],
            [
                "pathlib",
                "yaml",
                "aiflow.domain.reasons",
                "aiflow.adapters.markdown_requests.patch",
                "subprocess",
                "rich",
            ],
        ),
        (["store", "status"], ["boto3", "botocore", "rich", "yaml", "aiflow.adapters.dynamo_queue"]),
        (["doctor", "--json"], ["boto3", "botocore", "aiflow.adapters.dynamo_local"]),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(
    repository: Path, arguments: list[str], heavy: list[str]
) -> None:
    (repository / "requests").mkdir()
    script = (
        "import sys, os\n"
        "os._exit = lambda code: print(*sorted(sys.modules), file=sys.stderr)\n"
        "from aiflow.cli.main import main\n"
        f"main({arguments!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=repository, capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "aiflow.cli.main" in loaded
    assert [name for name in heavy if any(each == name or each.startswith(f"{name}.") for each in loaded)] == []
