"""Find out how a project is tested and set up (CLI `init`), by the files that it has; nothing is run.

A run's worktree is fresh: no `node_modules`, no `.venv` (GIT-4). So the set-up installs there what
the tests need, and they never use what happens to be installed for the user's own checkout.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Toolchain(NamedTuple):
    """One way to test a project: the file that shows it, the command of its tests, and what sets it up."""

    by: str
    unit: str = ""
    setup: str = ""


class Look(NamedTuple):
    """What is looked at: files (one folder deep, in `src` two), their texts, the programs of this machine."""

    files: frozenset[str]
    read: Callable[[str], str]
    has_program: Callable[[str], bool]

    def first(self, *names: str) -> str | None:
        """Return the first of these files that is there."""
        return next((name for name in names if name in self.files), None)

    def text(self, *names: str) -> str:
        """Return the text of these files, as far as they are there."""
        return "\n".join(self.read(name) for name in names if name in self.files)

    def table(self, name: str) -> dict[str, Any]:
        """Return what a TOML or JSON file says; nothing if it is missing or broken."""
        text = self.text(name)
        try:
            tables: Any = json.loads(text or "{}") if name.endswith(".json") else tomllib.loads(text)
        except (ValueError, RecursionError):
            return {}
        return tables if isinstance(tables, dict) else {}


def detect(look: Look) -> tuple[Toolchain, ...]:
    """Return the ways to test and set a project up that its files show, best first."""
    tools = [found for by_tool in (_python, _node, _rust, _go) if (found := by_tool(look)) is not None]
    make = _make(look)
    if make is None:
        ways = tools
    elif make.setup:  # the project's own way, complete
        ways = [make, *tools]
    else:
        setup = next((found.setup for found in tools if not found.unit), "")
        ways = [*tools, make._replace(setup=setup)]
    return tuple(sorted(ways, key=lambda found: not found.unit))


# --- Python ----------------------------------------------------------------------------------------------------------

_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")
_REQUIREMENTS = (
    "requirements.txt",
    "requirements-dev.txt",
    "requirements_dev.txt",
    "requirements-test.txt",
    "requirements-tests.txt",
    "dev-requirements.txt",
    "test-requirements.txt",
    "requirements/dev.txt",
    "requirements/test.txt",
    "requirements/tests.txt",
    "tests/requirements.txt",
)
_PYTEST = ("pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py")
_EXTRAS = ("test", "tests", "testing", "dev")
_SIMPLE = re.compile(r"\w[\w.\[\],<>=!~* -]*")
_TEST_FILE = re.compile(r"(?:(tests?)/)?test[^/]*\.py")
_VENV = "python3 -m venv .venv && .venv/bin/python -m pip install -q"


def _python(look: Look) -> Toolchain | None:
    """Find out how a Python project is tested: by what locks its packages, by tox, else in a separate environment."""
    project = look.table("pyproject.toml")
    test = _python_test(look)
    if test and look.first("uv.lock") and look.has_program("uv"):
        extra = "".join(f" --extra {name}" for name in _extras(project))
        return Toolchain("uv.lock", f"uv run --frozen {test}", f"uv sync --frozen{extra}")
    if test and look.first("poetry.lock") and look.has_program("poetry"):
        extra = "".join(f" --extras {name}" for name in _extras(project))
        return Toolchain("poetry.lock", f"poetry run {test}", f"poetry install{extra}")
    if "[testenv" in look.text("tox.ini") and look.has_program("tox"):
        return Toolchain("tox.ini", "tox -e py", "tox -e py --notest")
    wanted = " ".join(_installed(look, project))
    by = look.first(*_PROJECT, *_PYTEST, *_REQUIREMENTS) or next(iter(_test_files(look)), "")
    if wanted:
        return Toolchain(by, f".venv/bin/{test}" if test else "", f"{_VENV} {wanted}")
    return Toolchain(by, test.replace("python", "python3", 1)) if test else None


def _python_test(look: Look) -> str:
    """Return the command of the tests as it is called in an environment; empty if there are none."""
    if _uses_pytest(look):
        return "python -m pytest -q"
    places = {match[1] or "" for name in _test_files(look) if (match := _TEST_FILE.fullmatch(name))}
    folder = next((each for each in ("tests", "test", "") if each in places), None)
    if folder is None:
        return ""
    start = f" -s {folder}" if folder else ""
    return f"python -m unittest discover -q{start}" + (" -t ." if f"{folder}/__init__.py" in look.files else "")


def _test_files(look: Look) -> list[str]:
    return sorted(name for name in look.files if _TEST_FILE.fullmatch(name))


def _uses_pytest(look: Look) -> bool:
    return look.first(*_PYTEST) is not None or "pytest" in look.text(*_PROJECT, "tox.ini", *_REQUIREMENTS)


def _installed(look: Look, project: dict[str, Any]) -> Iterator[str]:
    """Yield what has to be installed before the tests can run."""
    extras = _extras(project)
    if _is_installable(look, project):
        yield f'-e ".[{",".join(extras)}]"' if extras else "-e ."
    yield from (f"-r {name}" for name in _REQUIREMENTS if name in look.files)
    yield from _group(project)
    if _uses_pytest(look):
        yield "pytest"


def _is_installable(look: Look, project: dict[str, Any]) -> bool:
    """Return whether pip can install the project itself, and whether its tests gain by it.

    A flat folder of scripts may have a `[project]` with no more than a name: no build is promised there, and its tests
    find everything without one. pip takes a `setup.cfg` only beside one of the other two files.
    """
    metadata = _tables(project, "project")
    if "setup.py" in look.files or "build-system" in project or "poetry" in _tables(project, "tool"):
        return True
    if "pyproject.toml" in look.files and "[metadata]" in look.text("setup.cfg"):
        return True
    is_in_src = any(name.startswith("src/") for name in look.files)
    return bool(metadata) and (is_in_src or bool(metadata.get("dependencies")) or bool(_extras(project)))


def _group(project: dict[str, Any]) -> list[str]:
    """Return what the dependency group for tests says, as far as every pip can read it: no group in a group."""
    groups = _tables(project, "dependency-groups")
    group: Any = next((groups[name] for name in _EXTRAS if name in groups), [])
    is_simple = isinstance(group, list) and all(isinstance(each, str) and _SIMPLE.fullmatch(each) for each in group)
    return [shlex.quote(each) for each in group if each != "pytest"] if is_simple else []


def _extras(project: dict[str, Any]) -> list[str]:
    """Return the extra that tests most likely need."""
    there = _tables(_tables(project, "project"), "optional-dependencies")
    return [name for name in _EXTRAS if name in there][:1]


def _tables(table: dict[str, Any], name: str) -> dict[str, Any]:
    found = table.get(name)
    return found if isinstance(found, dict) else {}


# --- others ----------------------------------------------------------------------------------------------------------

# A lock file, and the program and command that install what it says.
_NODE_LOCKS = {
    "package-lock.json": ("npm", "npm ci"),
    "npm-shrinkwrap.json": ("npm", "npm ci"),
    "pnpm-lock.yaml": ("pnpm", "pnpm install --frozen-lockfile"),
    "yarn.lock": ("yarn", "yarn install --frozen-lockfile"),
    "bun.lock": ("bun", "bun install --frozen-lockfile"),
    "bun.lockb": ("bun", "bun install --frozen-lockfile"),
}
_NO_TEST = "no test specified"  # what `npm init` writes


def _node(look: Look) -> Toolchain | None:
    if "package.json" not in look.files:
        return None
    package = look.table("package.json")
    program, setup = next((_NODE_LOCKS[name] for name in _NODE_LOCKS if name in look.files), ("npm", ""))
    if program == "yarn" and ".yarnrc.yml" in look.files:  # from its version 2 on
        setup = "yarn install --immutable"
    if not setup and any(package.get(kind) for kind in ("dependencies", "devDependencies")):
        setup = "npm install --no-package-lock"
    script = _tables(package, "scripts").get("test")
    has_test = isinstance(script, str) and _NO_TEST not in script
    unit = f"{program} run test" if program == "bun" else f"{program} test"
    return Toolchain("package.json", unit if has_test else "", setup) if has_test or setup else None


def _rust(look: Look) -> Toolchain | None:
    if "Cargo.toml" not in look.files:
        return None
    locked = " --locked" if "Cargo.lock" in look.files else ""
    return Toolchain("Cargo.toml", f"cargo test{locked}", f"cargo fetch{locked}")


def _go(look: Look) -> Toolchain | None:
    return Toolchain("go.mod", "go test ./...", "go mod download") if "go.mod" in look.files else None


_RULE = re.compile(r"^([\w.-]+(?:[ \t]+[\w.-]+)*)[ \t]*::?(?!=)", re.MULTILINE)


def _make(look: Look) -> Toolchain | None:
    """Return what a Makefile offers; never `install`, which may mean the whole system."""
    name = look.first("GNUmakefile", "makefile", "Makefile")
    targets = {target for rule in _RULE.findall(look.text(name)) for target in rule.split()} if name else set()
    unit = next((each for each in ("test", "tests", "check") if each in targets), None)
    setup = next((each for each in ("setup", "bootstrap") if each in targets), None)
    if name is None or unit is None:
        return None
    return Toolchain(name, f"make {unit}", f"make {setup}" if setup else "")
