"""The first five minutes in repositories as people have them: init, new, run, accept, and nothing surprises."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


def commit_first(root: Path, branch: str, files: dict[str, str]) -> None:
    """Make a first commit of these files, be they thousands, and check it out."""
    author = "Mika <mika@example.com> 1767225600 +0000"
    lines = [f"commit refs/heads/{branch}\ncommitter {author}\ndata 5\nfirst\n"]
    lines += [f"M 100644 inline {name}\ndata {len(text.encode())}\n{text}\n" for name, text in files.items()]
    subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input="".join(lines).encode(), check=True)
    git(root, "reset", "-q", "--hard")


class Shop:
    """Somebody's repository, on a branch of its own name, with everything committed."""

    def __init__(self, root: Path, state: Path, branch: str, files: dict[str, str]) -> None:
        self.root = root
        self.branch = branch
        root.mkdir()
        git(root, "init", "-q", "-b", branch)
        git(root, "config", "user.name", "Mika")
        git(root, "config", "user.email", "mika@example.com")
        commit_first(root, branch, files)
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

    def stage(self) -> Any:
        """The stage.json of the one run that there is."""
        return json.loads(next(self.root.glob("runs/*/RUN-*/stage.json")).read_text())

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


def django_like() -> dict[str, str]:
    """7,000 files in nested folders, a test for one of them, and a tracked `.gitignore`."""
    many = {
        f"django/contrib/app{number % 40}/locale/lang{number % 7}/module_{number}.py": f"VALUE = {number}\n"
        for number in range(6_000)
    }
    docs = {f"docs/ref/part{number % 25}/page_{number}.txt": "words\n" * 5 for number in range(1_000)}
    return {**many, **docs, **python_project("django")}


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, if there is one with room: some disks take seconds for thousands of files."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or shutil.disk_usage(memory).free < 1_000_000_000:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def test_a_repository_of_seven_thousand_files(quick_folder: Path) -> None:
    shop = Shop(quick_folder / "shop", quick_folder / "state", "main", django_like())
    assert len(git(shop.root, "ls-files").splitlines()) > 7_000
    answer = shop.aiflow.json("init", "--agent", "demo")
    assert answer["settings"]["tests.unit"] == "python3 -m unittest discover -q -s tests"
    deep = "django/contrib/app7/locale/lang5/module_47.py"
    body = f"```replace {deep}\nVALUE = 47\n=>\nVALUE = 48\n```\n" + REPLACE.format(path="django/__init__.py")
    shop.accept_one(body)
    changed = git(shop.root, "diff", "--name-only", "HEAD~1").splitlines()
    assert changed == ["django/__init__.py", deep]
    assert (shop.root / deep).read_text() == "VALUE = 48\n"
    assert shop.changed() == ["?? aiflow.toml", "?? requests/"]


FILL = "git submodule update --init --recursive"


@pytest.fixture
def vendored(make: Make, tmp_path: Path) -> Shop:
    """A repository whose tests need what is in its submodule."""
    lib = Shop(tmp_path / "lib", tmp_path / "lib-state", "main", {"lib.txt": "lib\n"})
    test = UNITTEST.format(package="shop") + (
        "\n    def test_the_library(self):\n"
        "        with open('vendor/lib/lib.txt') as file:\n"
        "            self.assertEqual(file.read(), 'lib\\n')\n"
    )
    shop = make(**{**python_project(), "tests/test_it.py": test})
    # Git refuses a submodule of the same machine unless the user's own settings allow it.
    settings = tmp_path / "gitconfig"
    settings.write_text('[protocol "file"]\nallow = always\n')
    shop.environ["GIT_CONFIG_GLOBAL"] = str(settings)
    shop.aiflow = shop.inside(".")
    git(shop.root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(lib.root), "vendor/lib")
    git(shop.root, "commit", "-qm", "Use the library")
    return shop


def doctor(shop: Shop, *args: str) -> Any:
    """What the doctor says of the submodules."""
    answer = shop.aiflow.json(*args, "doctor")
    return next(check for check in answer["checks"] if check["id"] == "submodules")


@pytest.mark.spec("GIT-4", "DOC-1", "RUN-3")
def test_a_repository_with_a_submodule(vendored: Shop) -> None:
    shown = vendored.aiflow("init", "--agent", "demo").stdout
    assert f"Set-up: {FILL}  (from .gitmodules)" in shown
    assert doctor(vendored)["result"] == "PASS"
    vendored.accept_one(REPLACE.format(path="shop/__init__.py"))
    assert "str(url)" in (vendored.root / "shop/__init__.py").read_text()
    assert vendored.changed() == ["?? aiflow.toml", "?? requests/"]
    assert not Path(vendored.stage()["worktree"]["path"]).exists()


@pytest.mark.spec("GIT-3", "GIT-4")
def test_a_merge_is_tested_with_the_submodule_that_it_has(vendored: Shop, tmp_path: Path) -> None:
    vendored.aiflow("init", "--agent", "demo")
    vendored.aiflow("new", "Do it", "--id", "DO-1", "--ready", "-b", REPLACE.format(path="shop/__init__.py"))
    vendored.aiflow("run", "DO-1")
    (tmp_path / "lib/lib.txt").write_text("newer\n")
    git(tmp_path / "lib", "commit", "-qam", "newer")
    git(vendored.root / "vendor/lib", "pull", "-q")
    test = vendored.root / "tests/test_it.py"
    test.write_text(test.read_text().replace("'lib\\n'", "'newer\\n'"))
    git(vendored.root, "commit", "-qm", "Use the newer library", "vendor/lib", "tests")
    vendored.aiflow("accept", "DO-1")
    assert vendored.aiflow.json("show", "DO-1")["status"] == "done"


@pytest.mark.spec("GIT-4", "DOC-1")
def test_a_submodule_that_nothing_fills_is_warned_of_with_the_setting_that_does(vendored: Shop) -> None:
    vendored.aiflow("init", "--agent", "demo", "--setup", "")
    warned = doctor(vendored)
    assert warned["result"] == "WARN"
    assert f'setup = "{FILL}"' in warned["message"]
    assert f'setup = "{FILL} && make deps"' in doctor(vendored, "-c", "worktree.setup=make deps")["message"]
    vendored.aiflow("new", "Do it", "--id", "DO-1", "--ready", "-b", REPLACE.format(path="shop/__init__.py"))
    assert vendored.aiflow.json("run", "DO-1", code=7)["reason_code"] == "BASE_TESTS_FAILED"  # before anybody is paid


@pytest.mark.spec("RUN-3", "RUN-7")
def test_a_changed_submodule_stops_the_step_and_a_dirty_one_of_the_users_stops_the_start(vendored: Shop) -> None:
    vendored.aiflow("init", "--agent", "demo")
    body = "```append vendor/lib/lib.txt\nmore\n```\n" + REPLACE.format(path="shop/__init__.py")
    vendored.aiflow("new", "Change it", "--id", "DO-1", "--ready", "-b", body)
    stopped = vendored.aiflow.json("run", "DO-1", code=6)
    assert (stopped["cause"] or stopped["reason_code"]) == "SUBMODULE_CHANGED"
    assert "vendor/lib" in stopped["summary"]
    assert (vendored.root / "vendor/lib/lib.txt").read_text() == "lib\n"
    vendored.aiflow("new", "More", "--id", "DO-2", "--ready", "-b", REPLACE.format(path="shop/__init__.py"))
    (vendored.root / "vendor/lib/lib.txt").write_text("a person's\n")
    refused = vendored.aiflow.json("run", "DO-2", code=6)["error"]
    assert (refused["reason_code"], "vendor/lib" in json.dumps(refused)) == ("WORKTREE_DIRTY", True)
