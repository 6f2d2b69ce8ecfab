"""What the tests of the API share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api_bench import ApiBench
from e2e.bench import Bench


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Iterator[Bench]:
    """Give a repository that runs can be started in."""
    made = Bench(repository, tmp_path)
    yield made
    made.close()


@pytest.fixture
def api(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiBench]:
    """Give a server on it."""
    made = ApiBench(bench, monkeypatch)
    yield made
    made.close()
