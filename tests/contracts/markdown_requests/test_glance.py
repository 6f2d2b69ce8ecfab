"""A glance at a large backlog (PRF-7): a moment old at most, and never blind to a name that came or went."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from aiflow.adapters.markdown_requests import remembered
from aiflow.adapters.markdown_requests.remembered import GlancedRequests, RememberedRequests
from aiflow.domain.request import InvalidRequest, Request
from aiflow.errors import EnvironmentProblemError
from builders import write_request

pytestmark = pytest.mark.spec("PRF-7")


class Looks(RememberedRequests):
    """Counts how often all files are looked at."""

    count = 0

    def _look(self) -> tuple[list[Request], list[InvalidRequest]]:
        self.count += 1
        return super()._look()


@pytest.fixture
def looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Looks:
    """Give three requests of a folder that counts as large, and has not changed for a while."""
    monkeypatch.setattr(remembered, "FEW_FILES", 2)
    monkeypatch.setattr(remembered, "YOUNG_NS", -1)
    monkeypatch.setattr(remembered, "GLANCE_SECONDS", 3600.0)
    for number in (1, 2, 3):
        write_request(tmp_path, f"RQ-{number}", status="ready")
    return Looks(tmp_path, "requests")


def ids(found: tuple[list[Request], list[InvalidRequest]]) -> list[str]:
    return sorted(request.id for request in found[0])


def test_a_second_glance_looks_at_no_file(looks: Looks) -> None:
    assert ids(looks.glance()) == ids(looks.glance()) == ["RQ-1", "RQ-2", "RQ-3"]
    assert looks.count == 1
    first, second = looks.glance()[0], looks.glance()[0]
    first.clear()  # what was given away is the caller's own
    assert len(second) == len(looks.glance()[0]) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: write_request(folder.parent, "RQ-4", status="ready"),
        lambda folder: (folder / "RQ-1.md").unlink(),
        lambda folder: (folder / "RQ-1.md").rename(folder / "RQ-9.md"),
        lambda folder: os.replace(write_request(folder.parent / "other", "x", status="done"), folder / "RQ-1.md"),
    ],
    ids=["made", "removed", "renamed", "replaced"],
)
def test_a_name_that_came_or_went_is_seen_at_once(
    looks: Looks, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    looks.glance()
    os.utime(tmp_path / "requests", ns=(1, 1))
    looks.glance()
    change(tmp_path / "requests")
    assert looks.glance() == looks.load()
    assert looks.count == 4


def test_a_folder_that_changed_just_now_is_looked_at_again(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "YOUNG_NS", 10**18 * 4)
    looks.glance()
    looks.glance()
    assert looks.count == 2


def test_a_glance_lasts_for_a_moment_only(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "GLANCE_SECONDS", 0.0)
    looks.glance()
    looks.glance()
    assert looks.count == 2


def test_a_small_folder_is_always_looked_at(looks: Looks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "FEW_FILES", 3)
    looks.glance()
    write_request(tmp_path, "RQ-1", status="done")  # in its place
    assert GlancedRequests(looks).load_all() == looks.load()
    assert {request.status.value for request in looks.glance()[0]} == {"ready", "done"}


def test_a_folder_that_is_gone_is_said(looks: Looks, tmp_path: Path) -> None:
    looks.glance()
    (tmp_path / "requests").rename(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentProblemError) as refused:
        looks.glance()
    assert refused.value.reason_code == "REQUESTS_DIR_MISSING"
