"""The package as it is built: the demo, the manual and the page's libraries are in it, or there is no package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from aiflow.adapters.demo_folder import DemoFolder
from aiflow.messages import LANGUAGES

ROOT = Path(__file__).parents[2]
HTMX = "web/static/vendor/htmx.min.js"


def build(root: Path, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Build a wheel as pip and uv do."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    kept = {name: value for name, value in os.environ.items() if name != "AIFLOW_BUILD_WITHOUT_NPM"}
    return subprocess.run(command, cwd=root, env=kept | environ, capture_output=True, encoding="utf-8", check=False)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Give a copy of the sources as git has them: without the page's libraries."""
    root = tmp_path / "clone"
    root.mkdir()
    (root / "release").mkdir()
    for name in ("pyproject.toml", "hatch_build.py", "release/pypi.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, root / name)
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__", "vendor"))
    return root


@pytest.fixture
def no_npm(tmp_path: Path) -> str:
    """Give a PATH without npm."""
    (tmp_path / "bin").mkdir()
    return str(tmp_path / "bin")


def test_the_package_has_the_demo_the_manual_and_the_pages_libraries_in_it(tmp_path: Path) -> None:
    done = build(ROOT, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        assert packed.read(f"aiflow/{HTMX}").startswith(b"var htmx=")
        (manual,) = (name for name in names if name.endswith("/share/man/man1/aiflow.1"))
        assert packed.read(manual) == (ROOT / "docs/reference/aiflow.1").read_bytes()
        packed.extractall(tmp_path / "installed")
    for language in LANGUAGES:
        assert {f"aiflow/demo/{language}/{name}" for name in DemoFolder(None, {}).load(language)} <= set(names)
    assert not [name for name in names if "__pycache__" in name or "/npm/" in name]
    script = "import aiflow.web.static_files as it; print(it.__file__, it.has_htmx())"
    environ = os.environ | {"PYTHONPATH": str(tmp_path / "installed")}
    told = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
    assert told.stdout == f"{tmp_path}/installed/aiflow/web/static_files.py True\n"


def test_without_npm_no_package_is_built_that_lacks_them_unless_it_is_wanted(
    clone: Path, tmp_path: Path, no_npm: str
) -> None:
    done = build(clone, tmp_path, PATH=no_npm)
    assert done.returncode != 0
    assert "npm is not on the PATH" in done.stderr
    assert "AIFLOW_BUILD_WITHOUT_NPM=1" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.whl"))
    done = build(clone, tmp_path, PATH=no_npm, AIFLOW_BUILD_WITHOUT_NPM="1")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        assert f"aiflow/{HTMX}" not in packed.namelist()


def test_older_libraries_than_the_lock_pins_are_fetched_again(clone: Path, tmp_path: Path, no_npm: str) -> None:
    old = clone / "src/aiflow" / HTMX
    old.parent.mkdir()
    old.write_text("old")
    assert build(clone, tmp_path, PATH=no_npm).returncode == 0
    os.utime(old, (1, 1))
    assert build(clone, tmp_path, PATH=no_npm).returncode != 0
    # What a source package came with is what was pinned, whatever times its files were given when it was unpacked.
    (clone / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: aiflow-local\nVersion: 1\n")
    assert build(clone, tmp_path, PATH=no_npm).returncode == 0
    old.unlink()
    assert build(clone, tmp_path, PATH=no_npm).returncode != 0


def test_set_up_without_npm_says_in_one_line_what_does_not_work(clone: Path, no_npm: str) -> None:
    command = [sys.executable, str(clone / "hatch_build.py")]
    done = subprocess.run(command, env=os.environ | {"PATH": no_npm}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (1, "", 1)
    assert "npm is not on the PATH" in done.stdout
    assert "`make setup`" in done.stdout
