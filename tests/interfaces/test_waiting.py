"""Waiting for what another process does: until it is so, or the time is over."""

from __future__ import annotations

import itertools
import time

import pytest

from aiflow.cli import waiting


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that moves only while somebody sleeps."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "monotonic", lambda: sum(slept))
    return slept


def test_it_looks_until_it_is_so(naps: list[float]) -> None:
    looks = itertools.count()
    assert waiting.wait_until(lambda: next(looks) == 3)
    assert len(naps) == 3


def test_it_gives_up_when_the_time_is_over(naps: list[float]) -> None:
    assert not waiting.wait_until(lambda: False, 2.0)
    assert 2.0 <= sum(naps) < 2.5


def test_what_is_so_already_is_not_waited_for(naps: list[float]) -> None:
    assert waiting.wait_until(lambda: True, 0.0)
    assert naps == []
