"""The house: sizes, names, and what may not be imported before it is needed."""

from __future__ import annotations

import ast
import dataclasses
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from aiflow.usecases.engine import Ports
from aiflow.usecases.queue.desk import Desk, StoreView
from aiflow.wiring import Project

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


def test_a_use_case_knows_no_time_but_the_one_it_is_given() -> None:
    # A simulation plays the time and everything that goes on beside the work: what asks the machine would escape it.
    banned = {"time", "threading", "asyncio", "concurrent", "multiprocessing", "select", "queue", "sched"}
    found = []
    for path in (each for each in SOURCES if "usecases" in each.relative_to(ROOT).parts):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found += [(path.name, each.name) for each in node.names if each.name.split(".")[0] in banned]
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in banned:
                found.append((path.name, str(node.module)))
            if isinstance(node, ast.Attribute) and node.attr in ("now", "today", "utcnow"):
                owner = node.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                found += [(path.name, name)] if name in ("datetime", "date") else []
    assert found == []


# The words of the options: statuses, kinds, modes, exit codes; and what to do next. Whoever decides anything with more is a use case.
WORDS = (
    *("activity", "agents.choices", "agents.programs", "auto.stopping", "backlog.metadata", "health"),
    *("lifecycle", "next_action", "reasons", "request", "runs.resume"),
)
# Asks the editor of files several things before it writes one; that is a conversation with a person.
EDITORS = {"edit.py", "new.py"}
COMMANDS = sorted((ROOT / "src/aiflow/cli/commands").glob("*.py"))


def _only_types(tree: ast.Module) -> set[ast.AST]:
    guarded = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    return {inner for node in guarded for inner in ast.walk(node)}


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_parses_asks_a_use_case_and_prints(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    types = _only_types(tree)
    allowed = ("aiflow.cli", "aiflow.usecases", "aiflow.wiring", "aiflow.messages", "aiflow.settings", "aiflow.errors")
    words = tuple(f"aiflow.domain.{name}" for name in WORDS)
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node not in types}
    ours = {name for name in imported if name.startswith("aiflow.")}
    assert {name for name in ours if not name.startswith(allowed) and name not in words} == set()


@pytest.mark.parametrize("path", [path for path in COMMANDS if path.name not in EDITORS], ids=lambda path: path.stem)
def test_a_command_calls_no_port_itself(path: Path) -> None:
    names = {field.name for owner in (Ports, Desk, StoreView) for field in dataclasses.fields(owner)}
    ports = (names | set(Project._fields)) - {"settings"}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = (
        node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    )
    inner = [call for call in calls if isinstance(call.value, ast.Attribute) and call.value.attr in ports]
    assert [ast.unparse(call) for call in inner] == []


LOCKS = [
    *ROOT.glob("requirements/*.lock"),
    *(
        ROOT / name / "package-lock.json"
        for name in ("tests/npm", "tests/browser/npm", "tests/github/npm", "src/aiflow/web/npm")
    ),
]


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: f"{path.parent.parent.name}/{path.name}")
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
        *(
            (
                arguments,
                ["fastapi", "starlette", "uvicorn", "jinja2", "segno", "pydantic", "nh3", "markdown_it", "pygments"],
            )
            for arguments in (["--help"], ["next"], ["up", "--help"], ["sessions"], ["service", "install", "--print"])
        ),
        (["store", "status"], ["boto3", "botocore", "rich", "yaml", "aiflow.adapters.dynamo.queue"]),
        (["doctor", "--json"], ["boto3", "botocore", "aiflow.adapters.dynamo.local"]),
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


def test_no_class_name_stands_for_two_things() -> None:
    named = re.compile(r"^class (\w+)", re.MULTILINE)
    ours = (path for path in SOURCES if "demo" not in path.relative_to(ROOT / "src/aiflow").parts[:1])
    counted = Counter(name for path in ours for name in named.findall(path.read_text(encoding="utf-8")))
    assert [name for name, count in counted.items() if count > 1] == []
