"""The simulation's own fixtures."""

from __future__ import annotations

import pytest

from simulation.scene import COARSE


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what is asked several times a second be asked more seldom."""
    for name, seconds in COARSE.items():
        monkeypatch.setattr(name, seconds)
