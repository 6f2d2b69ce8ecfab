"""What the tests of the pages share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.web.app import make_app
from e2e.bench import Bench
from web_yard import WebBench


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Iterator[Bench]:
    """Give a repository that runs can be started in."""
    made = Bench(repository, tmp_path)
    yield made
    made.close()


@pytest.fixture
def web(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebBench]:
    """Give a server with pages on it."""
    made = WebBench(bench, monkeypatch, make_app)
    yield made
    made.close()
