"""The two forms of the tests, and the seed of all that happens in them by chance.

The normal form is what every change passes; the long one (`make test-soak`) has more rounds and more kills of the same.
"""

from __future__ import annotations

import os
import random

import pytest

SOAK, SEED = "AIFLOW_SOAK", "AIFLOW_SEED"
_SEED_KEY = pytest.StashKey[int]()
NORMAL_SECONDS, FAULT_SECONDS, SOAK_SECONDS = 120, 300, 3600


def is_soak() -> bool:
    """Tell whether this is the long form."""
    return os.environ.get(SOAK, "") not in ("", "0")


def rounds(normal: int, soak: int) -> int:
    """Return how many rounds there are in this form of the tests."""
    return soak if is_soak() else normal


def seed_of(config: pytest.Config) -> int:
    """Return the session's seed: the given one, or a new one that all its workers share."""
    if _SEED_KEY not in config.stash:
        told = getattr(config, "workerinput", {}).get(SEED) or os.environ.get(SEED)
        config.stash[_SEED_KEY] = int(told) if told else random.SystemRandom().randrange(1, 1_000_000)
    return config.stash[_SEED_KEY]


def limit_of(item: pytest.Item) -> int:
    """Return how many seconds a test may take before all stacks are shown and it fails."""
    if is_soak():
        return SOAK_SECONDS
    is_long = any(item.get_closest_marker(name) for name in ("faults", "timing", "browser"))
    return FAULT_SECONDS if is_long else NORMAL_SECONDS
