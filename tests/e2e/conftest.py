"""What the end-to-end tests share."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.bench import Bench
from e2e.model_server import ModelServer
from e2e.real_agents import RealHome


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Iterator[Bench]:
    """Give a repository that runs can be started in."""
    made = Bench(repository, tmp_path)
    yield made
    made.close()


@pytest.fixture
def models() -> Iterator[ModelServer]:
    """Give a model on loopback; a test sets its script."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def real_home(models: ModelServer, tmp_path: Path) -> RealHome:
    """Give a user's home for real agents, which ask the model on loopback; a test installs them."""
    return RealHome(tmp_path / "home", models.url)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a file system of 64 MB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"mounting is impossible: {done.stderr.strip()}")
    yield folder
    for _ in range(50):
        if subprocess.run(["umount", str(folder)], capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", "-l", str(folder)], check=False)
