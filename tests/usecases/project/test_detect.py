"""How a project is tested and set up, told by its files (CLI `init`)."""

from __future__ import annotations

import json

import pytest

from aiflow.usecases.project.detect import Look, Toolchain, detect

pytestmark = pytest.mark.spec("CFG", "GIT-4")

VENV = "python3 -m venv .venv && .venv/bin/python -m pip install -q"
PYTEST = ".venv/bin/python -m pytest -q"
PROJECT = '[project]\nname = "shop"\n'
BUILD = PROJECT + '[build-system]\nrequires = ["setuptools"]\n'
PYTEST_TABLE = '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
JEST = json.dumps({"scripts": {"test": "jest"}, "devDependencies": {"jest": "*"}})
NO_TEST = json.dumps({"scripts": {"test": 'echo "Error: no test specified" && exit 1'}})


def found(files: dict[str, str], *missing: str) -> tuple[Toolchain, ...]:
    return detect(Look(frozenset(files), files.__getitem__, lambda program: program not in missing))


@pytest.mark.parametrize(
    ("files", "unit", "setup"),
    [
        ({"package.json": JEST, "package-lock.json": ""}, "npm test", "npm ci"),
        ({"package.json": JEST, "pnpm-lock.yaml": ""}, "pnpm test", "pnpm install --frozen-lockfile"),
        ({"package.json": JEST, "yarn.lock": ""}, "yarn test", "yarn install --frozen-lockfile"),
        ({"package.json": JEST, "yarn.lock": "", ".yarnrc.yml": ""}, "yarn test", "yarn install --immutable"),
        ({"package.json": JEST, "bun.lock": ""}, "bun run test", "bun install --frozen-lockfile"),
        ({"package.json": JEST}, "npm test", "npm install --no-package-lock"),
        ({"package.json": json.dumps({"scripts": {"test": "node --test"}})}, "npm test", ""),
        ({"package.json": NO_TEST, "package-lock.json": ""}, "", "npm ci"),
        ({"Cargo.toml": "", "Cargo.lock": ""}, "cargo test --locked", "cargo fetch --locked"),
        ({"Cargo.toml": ""}, "cargo test", "cargo fetch"),
        ({"go.mod": ""}, "go test ./...", "go mod download"),
        ({"pyproject.toml": "[tool.pytest]", "uv.lock": ""}, "uv run --frozen python -m pytest -q", "uv sync --frozen"),
        (
            {"pyproject.toml": PROJECT + 'optional-dependencies = {dev = ["pytest"]}', "uv.lock": ""},
            "uv run --frozen python -m pytest -q",
            "uv sync --frozen --extra dev",
        ),
        ({"pyproject.toml": "pytest = 1", "poetry.lock": ""}, "poetry run python -m pytest -q", "poetry install"),
        ({"tox.ini": "[testenv]\ndeps = pytest\n", "setup.py": ""}, "tox -e py", "tox -e py --notest"),
        (
            {"pyproject.toml": PROJECT + 'dependencies = ["attrs"]', "tests/conftest.py": ""},
            PYTEST,
            f"{VENV} -e . pytest",
        ),
        (
            {"pyproject.toml": PROJECT + 'optional-dependencies = {test = ["pytest"]}'},
            PYTEST,
            f'{VENV} -e ".[test]" pytest',
        ),
        (
            {"setup.py": "", "requirements.txt": "x", "requirements-dev.txt": "pytest"},
            PYTEST,
            f"{VENV} -e . -r requirements.txt -r requirements-dev.txt pytest",
        ),
        ({"pytest.ini": ""}, PYTEST, f"{VENV} pytest"),
        ({"tests/test_a.py": ""}, "python3 -m unittest discover -q -s tests", ""),
        ({"tests/test_a.py": "", "tests/__init__.py": ""}, "python3 -m unittest discover -q -s tests -t .", ""),
        ({"test_a.py": "", "pyproject.toml": PROJECT}, "python3 -m unittest discover -q", ""),
        (
            {"tests/test_a.py": "", "src/shop.py": "", "pyproject.toml": PROJECT},
            ".venv/bin/python -m unittest discover -q -s tests",
            f"{VENV} -e .",
        ),
        (
            {"tests/test_a.py": "", "src/shop/__init__.py": "", "pyproject.toml": BUILD + PYTEST_TABLE},
            PYTEST,
            f"{VENV} -e . pytest",
        ),
        (
            {"tests/test_a.py": "", "pyproject.toml": BUILD, "requirements-dev.txt": "pytest"},
            PYTEST,
            f"{VENV} -e . -r requirements-dev.txt pytest",
        ),
        (
            {"tests/test_a.py": "", "src/shop/__init__.py": "", "pyproject.toml": BUILD},
            ".venv/bin/python -m unittest discover -q -s tests",
            f"{VENV} -e .",
        ),
        (
            {"tests/test_a.py": "", "pyproject.toml": "", "setup.cfg": "[metadata]\nname = shop\n"},
            ".venv/bin/python -m unittest discover -q -s tests",
            f"{VENV} -e .",
        ),
        (
            {"pyproject.toml": BUILD + '[dependency-groups]\ndev = ["pytest", "hypothesis>=6"]\n'},
            PYTEST,
            f"{VENV} -e . 'hypothesis>=6' pytest",
        ),
        (
            {"pyproject.toml": BUILD + '[dependency-groups]\ntest = ["pytest", {include-group = "x"}]\n'},
            PYTEST,
            f"{VENV} -e . pytest",
        ),
        ({"Makefile": "all: x\n\ntest: all\n\techo\n"}, "make test", ""),
        ({"Makefile": "check:\n\techo\nbootstrap::\n\techo\n"}, "make check", "make bootstrap"),
        ({"GNUmakefile": "tests lint: x\n"}, "make tests", ""),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_tests_and_set_up_are_told_by_files(files: dict[str, str], unit: str, setup: str) -> None:
    best = found(files)[0]
    assert (best.unit, best.setup) == (unit, setup)
    assert best.by in files


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": "", "main.c": ""},
        {"package.json": NO_TEST},
        {"package.json": "{"},
        {"package.json": "[]"},
        {"package.json": '{"scripts": ["test"]}'},
        {"pyproject.toml": "[tool.ruff]\n"},
        {"pyproject.toml": "[project"},
        {"Makefile": "install:\n\tcp x /usr\nTEST := test\n"},
        {"Makefile": "setup:\n\techo\n"},
    ],
)
def test_where_nothing_shows_it_nothing_is_made_up(files: dict[str, str]) -> None:
    assert found(files) == ()


def test_a_projects_own_make_targets_are_taken_if_they_set_it_up_too() -> None:
    files = {"package.json": JEST, "package-lock.json": "", "Makefile": "test:\n"}
    assert [each.unit for each in found(files)] == ["npm test", "make test"]
    files["Makefile"] = "test:\nsetup:\n"
    assert [each.unit for each in found(files)] == ["make test", "npm test"]


def test_a_makefile_lends_its_tests_to_what_can_only_be_set_up() -> None:
    files = {"package.json": NO_TEST, "package-lock.json": "", "Makefile": "test:\n"}
    assert found(files)[0] == Toolchain("Makefile", "make test", "npm ci")


@pytest.mark.parametrize(("lock", "program"), [("uv.lock", "uv"), ("poetry.lock", "poetry"), ("tox.ini", "tox")])
def test_a_tool_that_is_not_installed_is_done_without(lock: str, program: str) -> None:
    files = {lock: "[testenv]", "pyproject.toml": PROJECT + 'dependencies = ["pytest"]'}
    assert found(files)[0].unit.startswith(program)
    assert found(files, program)[0] == Toolchain("pyproject.toml", PYTEST, f"{VENV} -e . pytest")
