"""The first five minutes in repositories as people have them: init, new, run, accept, and nothing surprises."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Program
from e2e.bench import git

pytestmark = pytest.mark.spec("REQ-2", "REQ-8", "RUN-7", "CFG")

UNITTEST = """
import unittest

import {package}


class PackageTest(unittest.TestCase):
    def test_it(self):
        self.assertEqual({package}.get("x"), "x")
"""
PACKAGE = "def get(url):\n    return url\n"
REPLACE = """Return it in capital letters.

```replace {path}
    return url
=>
    return str(url)
```
"""


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Shop:
    """Somebody's repository, on a branch of its own name, with everything committed."""

    def __init__(self, root: Path, state: Path, branch: str, files: dict[str, str]) -> None:
        self.root = root
        self.branch = branch
        root.mkdir()
        git(root, "init", "-q", "-b", branch)
        git(root, "config", "user.name", "Mika")
        git(root, "config", "user.email", "mika@example.com")
        write(root, **files)
        git(root, "add", "-A")
        git(root, "commit", "-qm", "first")
        self.environ = {"XDG_STATE_HOME": str(state), "AIFLOW_LANG": "en", "PYTHONDONTWRITEBYTECODE": "1"}
        self.aiflow = self.inside(".")

    def inside(self, folder: str) -> Program:
        """The program as it is called in a folder of the repository."""
        program = Program(self.root / folder)
        program.environ |= self.environ
        return program

    def accept_one(self, body: str) -> None:
        """Write a request, let it run, and accept it."""
        self.aiflow("new", "Do it", "--id", "DO-1", "--ready", "-b", body)
        run = self.aiflow.json("run", "DO-1")
        assert run["state"] == "DONE", run
        self.aiflow("accept", "DO-1")
        assert self.aiflow.json("show", "DO-1")["status"] == "done"
        merged = git(self.root, "log", "-1", "--format=%s", self.branch)
        assert merged.startswith("Merge DO-1"), merged

    def changed(self) -> list[str]:
        return git(self.root, "status", "--porcelain").splitlines()


Make = Callable[..., Shop]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return lambda branch="main", **files: Shop(tmp_path / "shop", tmp_path / "state", branch, files)


def python_project(package: str = "shop") -> dict[str, str]:
    return {
        f"{package}/__init__.py": PACKAGE,
        "tests/test_it.py": UNITTEST.format(package=package),
        ".gitignore": "__pycache__/\n*.log\n",
    }


@pytest.mark.parametrize("branch", ["main", "master"])
@pytest.mark.parametrize("is_committed", [True, False], ids=["committed", "as it is"])
def test_a_repository_with_a_tracked_gitignore(make: Make, branch: str, is_committed: bool) -> None:
    shop = make(branch, **python_project())
    answer = shop.aiflow.json("init", "--agent", "demo")
    assert answer["settings"]["base_branch"] == branch
    assert answer["settings"]["tests.unit"] == "python3 -m unittest discover -q -s tests"
    assert shop.changed() == ["?? aiflow.toml", "?? requests/"]
    if is_committed:
        subprocess.run(["bash", "-c", answer["commit"]], cwd=shop.root, check=True, capture_output=True)
        assert shop.changed() == []
        assert git(shop.root, "log", "-1", "--format=%s") == "Set up aiflow"
    shop.accept_one(REPLACE.format(path="shop/__init__.py"))
    assert "str(url)" in (shop.root / "shop/__init__.py").read_text()
    assert shop.changed() == (["?? requests/DO-1.md"] if is_committed else ["?? aiflow.toml", "?? requests/"])
    assert git(shop.root, "diff", "HEAD", "--stat", "--", ".gitignore") == ""


def test_the_tests_that_init_found_really_guard_the_steps(make: Make) -> None:
    shop = make(**python_project())
    shop.aiflow("init", "--agent", "demo")
    shop.aiflow("new", "Break it", "--id", "BAD", "--ready", "-b", "```write shop/__init__.py\nget = 1\n```\n")
    assert shop.aiflow.json("run", "BAD", code=7)["cause"] == "UNIT_TEST_FAILED"


def test_a_repository_whose_package_is_called_requests(make: Make) -> None:
    shop = make("master", **python_project("requests"))
    assert shop.aiflow.json("init", code=2)["error"]["reason_code"] == "REQUESTS_DIR_IN_USE"
    assert shop.changed() == []
    shop.aiflow("init", "--requests-dir", "backlog", "--agent", "demo")
    git(shop.root, "add", "aiflow.toml", "backlog")
    git(shop.root, "commit", "-qm", "Set up aiflow")
    (shop.root / "backlog/README.md").write_text("# What we want\n")
    shop.accept_one(REPLACE.format(path="requests/__init__.py"))
    assert "str(url)" in (shop.root / "requests/__init__.py").read_text()
    listed = {each["request_id"] for each in shop.aiflow.json("list", "--all")["requests"]}
    assert listed == {"EXAMPLE-1", "EXAMPLE-2", "DO-1"}  # the README is none


def test_requests_elsewhere_may_be_edited_while_runs_start_and_are_kept_from_agents(make: Make) -> None:
    shop = make(**python_project("requests"))
    shop.aiflow("init", "--requests-dir", "docs/backlog", "--agent", "demo")
    git(shop.root, "add", "-A")
    git(shop.root, "commit", "-qm", "Set up aiflow")
    with (shop.root / "docs/backlog/EXAMPLE-1.md").open("a") as file:
        file.write("More.\n")
    body = "```append docs/backlog/EXAMPLE-2.md\nby an agent\n```\n" + REPLACE.format(path="requests/__init__.py")
    shop.accept_one(body)
    assert "by an agent" not in git(shop.root, "show", "main:docs/backlog/EXAMPLE-2.md")
    assert "str(url)" in git(shop.root, "show", "main:requests/__init__.py")
    (shop.root / "requests/__init__.py").write_text("x = 1\n")
    shop.aiflow("new", "Two", "--id", "DO-2", "--ready", "-b", "x")
    assert shop.aiflow.json("run", "DO-2", code=6)["error"]["reason_code"] == "WORKTREE_DIRTY"


def test_a_folder_of_a_monorepo(make: Make) -> None:
    makefile = {"services/api/Makefile": "test:\n\tgrep -q return app.py\n", "services/api/app.py": PACKAGE}
    shop = make(**makefile, **{".gitignore": "build/\n", "web/index.html": "<p>\n"})
    inside = shop.inside("services/api")
    shown = inside("init", "--agent", "demo").stdout
    assert (
        f"You are in services/api. aiflow works on the whole repository, so its files are in the root: {shop.root}"
        in shown
    )
    assert "Tests: cd services/api && make test  (from services/api/Makefile)" in shown
    assert sorted(os.listdir(shop.root / "services/api")) == ["Makefile", "app.py"]
    shop.aiflow = inside
    shop.accept_one(REPLACE.format(path="services/api/app.py"))
    assert "str(url)" in (shop.root / "services/api/app.py").read_text()
