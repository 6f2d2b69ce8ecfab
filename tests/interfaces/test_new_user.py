"""What a new user meets first (CLI): guesses, advice and refusals that have to hold as they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Program

pytestmark = pytest.mark.spec("CLI")


@pytest.mark.spec("CFG", "GIT-4")
def test_init_installs_a_package_that_is_in_src(repository: Path, aiflow: Program) -> None:
    (repository / "src/mylib").mkdir(parents=True)
    (repository / "src/mylib/__init__.py").write_text("")
    (repository / "tests").mkdir()
    (repository / "tests/test_mylib.py").write_text("import mylib\n")
    (repository / "pyproject.toml").write_text('[project]\nname = "mylib"\nversion = "1"\n')
    settings = aiflow.json("init")["settings"]
    assert settings["worktree.setup"] == "python3 -m venv .venv && .venv/bin/python -m pip install -q -e ."
    assert settings["tests.unit"] == ".venv/bin/python -m unittest discover -q -s tests"
