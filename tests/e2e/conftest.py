"""What the end-to-end tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.bench import Bench


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Iterator[Bench]:
    """Give a repository that runs can be started in."""
    made = Bench(repository, tmp_path)
    yield made
    made.close()
