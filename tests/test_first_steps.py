"""What a newcomer types first works: every `sh` block of the READMEs and the tutorial is run, in the order of the page."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from aiflow import __version__
from doc_examples import fenced

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
# The one thing on these pages that a reader has to fill in.
ADDRESS = re.compile(r"<[^>]+>")


def nothing_to_fetch(folder: Path) -> dict[str, str]:
    """Have uv install the package alone, from what is here: its dependencies are those of this venv."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    names = [re.split(r"[^\w.-]", each)[0] for each in needed]
    left_out = folder / "left-out.txt"
    left_out.write_text("".join(f'{name} ; python_version < "3"\n' for name in names))
    return {
        "UV_OFFLINE": "1",
        "UV_NO_CONFIG": "1",
        "UV_OVERRIDE": str(left_out),
        "UV_NO_BUILD_ISOLATION": "1",
        "UV_PYTHON": sys.executable,
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "AIFLOW_BUILD_WITHOUT_NPM": "1",
    }


@pytest.mark.parametrize("name", ["README.md", "README.ja.md"])
def test_the_lines_that_get_and_install_it_do_so_from_the_first_to_the_last(name: str, tmp_path: Path) -> None:
    script = "".join(fenced((ROOT / name).read_text("utf-8"), "sh"))
    assert len(ADDRESS.findall(script)) == 1
    script = ADDRESS.sub(shlex.quote(str(ROOT)), script)
    home = tmp_path / "home"
    home.mkdir()
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("UV_", "XDG_", "PIP_", "AIFLOW"))}
    environ = kept | nothing_to_fetch(tmp_path) | {"HOME": str(home), "PATH": f"{BIN}:{os.environ['PATH']}"}
    script += f"{home}/.local/bin/aiflow --version\n"
    done = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=environ, capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stdout) == (0, f"aiflow, version {__version__}\n"), done.stderr
    assert (tmp_path / "aiflow/Makefile").is_file()


def test_the_tutorial_has_nothing_to_type_that_is_not_run() -> None:
    """Its `console` blocks are run by tests/test_docs.py."""
    assert list(fenced((ROOT / "docs/tutorial.md").read_text("utf-8"), "sh", "bash", "")) == []
