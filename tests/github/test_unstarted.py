"""An issue that no run can be started of (ISS-3, ISS-5, ISS-12): blocked for want of a run id, else told why, once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.domain.claims import NO_RUNNER, NotStarted
from aiflow.domain.issues.marks import CommentMark, find_mark
from aiflow.domain.request import RequestStatus
from e2e.bench import Bench
from github.place import IssuePlace, issue_place
from github.scene import Scene
from github.test_source import GH_1, Checkout, queued


@pytest.fixture
def place(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[IssuePlace]:
    bench = Bench(repository, tmp_path)
    with issue_place(bench, monkeypatch, capfd) as made:
        yield made
    bench.close()


@pytest.fixture
def here(scene: Scene, tmp_path: Path) -> Checkout:
    return Checkout(scene, tmp_path / "here")


def marks(bodies: list[str]) -> list[CommentMark]:
    return [mark for body in bodies if (mark := find_mark(body)) is not None]


def in_the_way(root: Path, how: str, name: str) -> Path:
    """Put something where the folder of a request's next run would be."""
    folder = root / "runs" / name
    if how == "a file":
        folder.parent.mkdir(exist_ok=True)
        folder.write_text("")
    else:
        (folder / "RUN-99991231-235959-ffffff").mkdir(parents=True)
    return folder


@pytest.mark.spec("ISS-3", "ISS-5", "ISS-10")
@pytest.mark.parametrize("how", ["a file", "the last id"])
def test_without_a_run_id_the_issue_is_blocked_and_says_why_once(place: IssuePlace, how: str) -> None:
    number = place.queued()
    place.sync()
    root = place.bench.root
    folder = in_the_way(root, how, f"GH-{number}")
    assert place.here.json("run", f"GH-{number}", code=3)["error"]["reason_code"] == "IO_ERROR"
    assert place.hub.rows[number].label_names() == ["P0", "agent:blocked"]
    [body] = place.said(number)
    [mark] = marks([body])
    assert (mark.kind, mark.facts["blocked_reason"], mark.facts["reason_code"]) == (
        *("blocked", "environment_failure"),
        "IO_ERROR",
    )
    assert "aiflow did not start" in body
    assert "/retry" in body
    assert str(root) not in body
    changed = [entry for entry in place.bench.journal() if entry["kind"] == "status_changed"]
    assert {"key": "status", "from": "ready", "to": "blocked"} in [entry["data"] for entry in changed]
    assert [entry["data"]["to"] for entry in changed if entry["data"]["key"] == "labels"] == ["agent:blocked", None]
    place.here("run", f"GH-{number}", code=4)
    place.sync()
    assert len(place.said(number)) == 1
    folder.unlink() if how == "a file" else shutil.rmtree(folder)
    place.hub.comment(number, "/retry it is mended", "maya")
    place.sync()
    place.here.json("run", f"GH-{number}")
    headers = [mark.facts["attempt"] for mark in marks(place.said(number)) if mark.kind == "run-header"]
    assert headers == [1]  # what never was is no attempt


@pytest.mark.spec("ISS-3")
def test_a_file_stays_ready_and_whoever_starts_it_sees_why(place: IssuePlace) -> None:
    in_the_way(place.bench.root, "a file", "RQ-1")
    assert place.here.json("run", "RQ-1", code=3)["error"]["reason_code"] == "IO_ERROR"
    assert "status: ready" in (place.bench.root / "requests" / "RQ-1.md").read_text()


@pytest.mark.spec("ISS-5", "ISS-12")
def test_a_start_that_the_checkout_refuses_is_told_once_for_each_cause(place: IssuePlace) -> None:
    number = place.queued()
    place.sync()
    file = place.bench.root / "loose.py"
    file.write_text("x = 1\n")
    place.bench.git("add", "loose.py")
    for _ in range(2):
        assert place.here.json("run", f"GH-{number}", code=6)["error"]["reason_code"] == "WORKTREE_DIRTY"
        [body] = place.said(number)
        assert "**Not started yet: There are uncommitted changes.**" in body
        assert "loose.py" not in body
        place.api.calls.clear()
    place.here("run", f"GH-{number}", code=6)
    assert place.api.calls == []
    assert place.hub.rows[number].label_names() == ["P0", "agent:queued"]
    place.bench.git("rm", "--cached", "-q", "loose.py")
    file.unlink()
    place.here.json("run", f"GH-{number}")
    assert "aiflow is working on this issue" in place.said(number)[1]


@pytest.mark.spec("ISS-12", "ISS-3")
def test_what_is_told_is_told_again_only_to_who_asks_again(scene: Scene, here: Checkout) -> None:
    queued(scene)
    here.sync()
    whys = [NotStarted("AGENT_NOT_FOUND"), NotStarted("WORKTREE_DIRTY"), NotStarted(NO_RUNNER)]
    for why in (*whys, *whys):
        assert here.source.not_started(GH_1, why) is None
    said = marks([comment.body for comment in scene.hub.rows[1].comments])
    assert [mark.facts["reason_code"] for mark in said] == [why.reason_code for why in whys]
    blocked = here.source.not_started(GH_1, NotStarted("DISK_FULL", is_blocking=True))
    assert blocked is not None
    assert (blocked.was, blocked.now) == (RequestStatus.READY, RequestStatus.BLOCKED)
    assert here.source.not_started(GH_1, NotStarted("DISK_FULL", is_blocking=True)) is None
    assert here.source.not_started(GH_1, whys[0]) is None  # blocked as it is, it waits for a person
    assert len(scene.hub.rows[1].comments) == 4
    scene.time.sleep(60)
    scene.hub.comment(1, "/retry", "maya")
    scene.time.sleep(5)
    here.sync()
    here.source.not_started(GH_1, whys[0])
    assert len(scene.hub.rows[1].comments) == 6


@pytest.mark.spec("ISS-3")
def test_an_issue_asked_for_in_the_very_second_in_which_it_is_blocked_stays_so(scene: Scene, here: Checkout) -> None:
    scene.hub.open_issue("Say hello", "Please.")
    scene.hub.label(1, "agent:queued", "maya")
    here.sync()
    assert here.source.not_started(GH_1, NotStarted("IO_ERROR", is_blocking=True)) is not None
    for _ in range(2):
        assert here.source.load(GH_1).status is RequestStatus.BLOCKED
        assert scene.hub.rows[1].label_names() == ["agent:blocked"]
        here.sync()
    assert len(scene.hub.rows[1].comments) == 1


@pytest.mark.spec("ISS-3", "ISS-11")
def test_github_away_hides_no_reason_and_is_told_by_the_next_try(scene: Scene, here: Checkout) -> None:
    queued(scene)
    here.sync()
    why = NotStarted("IO_ERROR", is_blocking=True)
    scene.api.down()
    assert here.source.not_started(GH_1, why) is None
    scene.api.down(is_down=False)
    assert scene.hub.rows[1].comments == []
    assert here.source.not_started(GH_1, why) is not None
    assert scene.hub.rows[1].label_names() == ["agent:blocked"]
