"""A server on a disk that is full (ERR-3): a start is refused with the reason, and not as a defect."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import fresh_git
from e2e.bench import Bench
from e2e.up import Up


@pytest.mark.spec("ERR-3", "API-2")
def test_a_start_on_a_full_disk_says_so(tiny_disk: Path, tmp_path: Path) -> None:
    root = tiny_disk / "repository"
    root.mkdir()
    fresh_git.make_repository(root)
    bench = Bench(root, tmp_path)
    bench.aiflow.environ["XDG_DATA_HOME"] = f"{tmp_path}/data"
    try:
        up = Up(bench)
        fill(tiny_disk / "filler")
        for path in ("/api/requests/RQ-1/run", "/api/queue/run-next"):
            refused = up.call("POST", path)
            assert (refused.status, refused.shape["error"]["reason_code"]) == (507, "DISK_FULL")
        assert up.call("GET", "/api/health").shape["degraded"] == ["DISK_FULL"]
        assert up.call("GET", "/api/status").status == 200
        (tiny_disk / "filler").unlink()
        up.end()
    finally:
        bench.close()


def fill(path: Path) -> None:
    """Write until there is no room any more."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(fd, bytes(4096)):
            pass
    except OSError:
        pass
    finally:
        os.close(fd)
