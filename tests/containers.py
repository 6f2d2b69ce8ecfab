"""Programs in a container, as far as processes go: with process numbers of their own, and everything else shared."""

from __future__ import annotations

import functools
import subprocess

import pytest

WAYS = (
    ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
    ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"),
)


@functools.cache
def _way() -> tuple[str, ...] | None:
    for way in WAYS:
        try:
            if subprocess.run([*way, "true"], check=False, capture_output=True, timeout=10).returncode == 0:
                return way
        except OSError:
            return None
    return None


def way_in() -> tuple[str, ...]:
    """Return what a command begins with that is to run in a pid namespace of its own; skips where that is refused."""
    way = _way()
    if way is None:
        pytest.skip("no pid namespaces to be had here")
    return way
