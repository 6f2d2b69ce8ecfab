"""What keeps an issue waiting, and when it stops to (ISS-2): a blocker's end shows in no issue that it blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from aiflow.adapters.github_issues import sync
from aiflow.domain.backlog.selection import Backlog, find_barrier
from aiflow.domain.claims import Claimed, Lost
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.errors import AiflowError
from github.scene import Scene
from github.test_source import GH_1, Checkout

ELSEWHERE = ("else/where", 6)
BLOCKER = (6, "else/where")
POLL, PASS = 30, 601


@pytest.fixture
def here(scene: Scene, tmp_path: Path) -> Checkout:
    return Checkout(scene, tmp_path / "here")


def opened(scene: Scene, *titles: str) -> None:
    """Open issues; the first one is asked for."""
    for title in titles:
        scene.hub.open_issue(title, "Please.", by="maya")
    scene.hub.elsewhere[ELSEWHERE] = (True, None)
    scene.time.sleep(5)
    scene.hub.label(1, "agent:queued", "maya")


def look(scene: Scene, here: Checkout, seconds: int = PASS) -> list[str]:
    """Let time pass and a poll come; return what the first issue waits for."""
    scene.time.sleep(seconds)
    here.sync()
    return waits(here)


def calls(scene: Scene) -> int:
    """How many calls came since the last time, but for those that ask what people may do."""
    made = [each for each in scene.api.calls if "/permission" not in str(each)]
    scene.api.calls.clear()
    return len(made)


def waits(here: Checkout) -> list[str]:
    requests = here.source.load_all()[0]
    barrier = find_barrier(requests[0], Backlog(tuple(requests)))
    return [] if barrier is None else dict(barrier.facts)["ids"].split(", ")


def freed(here: Checkout) -> tuple[str, ...]:
    return here.source.load(GH_1).freed


@pytest.mark.spec("ISS-1", "ISS-2")
def test_a_blocker_of_another_repository_frees_at_the_next_full_pass(scene: Scene, here: Checkout) -> None:
    opened(scene, "Waits")
    scene.hub.block(1, *BLOCKER)
    scene.time.sleep(PASS)
    scene.hub.open_issue("Newer: a poll lists what changed since a moment before this")
    assert look(scene, here) == ["else/where#6"]
    scene.hub.elsewhere[ELSEWHERE] = (False, "completed")
    calls(scene)
    assert look(scene, here, POLL) == ["else/where#6"]  # nothing tells of it
    assert calls(scene) <= 2
    assert look(scene, here) == []
    assert calls(scene) == 2  # the page, and what blocks it: not its comments and history
    scene.hub.elsewhere[ELSEWHERE] = (True, "reopened")
    assert look(scene, here) == ["else/where#6"]
    scene.hub.elsewhere[ELSEWHERE] = (False, "not_planned")
    assert (look(scene, here), freed(here)) == ([], ("else/where#6",))
    look(scene, here, POLL)
    calls(scene)
    look(scene, here, POLL)
    assert calls(scene) == 1  # a quiet poll


@pytest.mark.spec("ISS-1", "ISS-2")
@pytest.mark.parametrize("is_hinted", [False, True], ids=["poll", "hint"])
def test_a_blocker_of_its_repository_counts_as_soon_as_it_is_seen(
    scene: Scene, here: Checkout, is_hinted: bool
) -> None:
    def seen() -> list[str]:
        if is_hinted:
            here.work.tend(2)
            return waits(here)
        return look(scene, here, POLL)

    opened(scene, "Waits", "First")
    scene.hub.block(1, 2)
    assert look(scene, here) == ["GH-2"]
    scene.hub.close(2, "maya", "not_planned")
    assert (seen(), freed(here)) == ([], ("#2",))
    scene.time.sleep(10)
    scene.hub.reopen(2, "maya")
    assert (seen(), freed(here)) == (["GH-2"], ())
    scene.time.sleep(10)
    scene.hub.close(2, "maya", "completed")
    assert (seen(), freed(here)) == ([], ())
    assert here.source.claim(GH_1, "RUN-1") == Claimed(RequestStatus.READY)


@pytest.mark.spec("ISS-2")
def test_a_blocker_that_is_deleted_frees_and_one_that_was_moved_does_not(scene: Scene, here: Checkout) -> None:
    opened(scene, "Waits", "First", "Second")
    scene.hub.block(1, 2)
    scene.hub.block(1, 3)
    assert look(scene, here) == ["GH-2", "GH-3"]
    scene.hub.delete(2)
    assert look(scene, here) == ["GH-3"]
    scene.hub.transfer(3)  # as many as before, and as many of them open
    assert look(scene, here) == ["octo/moved#3"]
    scene.hub.elsewhere["octo/moved", 3] = (False, "completed")
    assert look(scene, here) == []


@pytest.mark.spec("ISS-2")
def test_one_blocker_in_the_place_of_another_is_seen_though_no_count_shows_it(scene: Scene, here: Checkout) -> None:
    opened(scene, "Waits", "First", "Second")
    scene.hub.block(1, 2)
    assert look(scene, here) == ["GH-2"]
    scene.hub.unblock(1, 2)
    scene.hub.block(1, 3)
    assert look(scene, here) == ["GH-3"]


@pytest.mark.spec("ISS-2")
def test_what_could_not_be_read_of_blockers_is_read_later(scene: Scene, here: Checkout) -> None:
    opened(scene, "Waits")
    scene.hub.block(1, *BLOCKER)
    scene.hub.elsewhere[ELSEWHERE] = (False, "completed")
    scene.api.answers("blocked_by", 403, times=10)
    assert look(scene, here) == ["?"]
    scene.api.faults.clear()
    assert look(scene, here) == []


@pytest.mark.spec("ISS-1", "ISS-11")
def test_blockers_that_are_not_answered_for_keep_nothing_else_from_being_read(scene: Scene, here: Checkout) -> None:
    opened(scene, "Waits")
    scene.hub.block(1, *BLOCKER)
    assert look(scene, here) == ["else/where#6"]
    scene.api.answers("blocked_by", 500, times=100)
    scene.hub.open_issue("New")
    with pytest.raises(AiflowError):
        look(scene, here)
    assert here.source.load(RequestId("GH-2")).title == "New"
    scene.api.calls.clear()
    assert look(scene, here, POLL) == ["else/where#6"]  # no full pass again at each poll
    assert [str(each) for each in scene.api.calls if "blocked_by" in str(each)] == []


@pytest.mark.spec("ISS-2", "ISS-3")
@pytest.mark.parametrize("blocker", [ELSEWHERE, ("octo/demo", 2)], ids=["elsewhere", "here"])
def test_a_start_sees_a_blocker_that_no_poll_has_seen(scene: Scene, here: Checkout, blocker: tuple[str, int]) -> None:
    opened(scene, "Waits", "First")
    assert look(scene, here) == []
    scene.hub.block(1, blocker[1], blocker[0])
    name = "GH-2" if blocker[0] == "octo/demo" else "else/where#6"
    answer = here.source.claim(GH_1, "RUN-1")
    assert isinstance(answer, Lost)
    assert answer.refusal is not None
    assert (answer.status, answer.refusal.reason_code) == (RequestStatus.READY, "DEPENDS_NOT_DONE")
    assert dict(answer.refusal.facts)["ids"] == name
    assert scene.hub.rows[1].comments == []


@pytest.mark.spec("ISS-2")
def test_a_blocker_opened_again_after_the_last_poll_keeps_a_start_back(scene: Scene, here: Checkout) -> None:
    opened(scene, "Waits", "First")
    scene.hub.block(1, 2)
    scene.hub.close(2, "maya")
    assert look(scene, here) == []
    scene.time.sleep(5)
    scene.hub.reopen(2, "maya")
    assert isinstance(here.source.claim(GH_1, "RUN-1"), Lost)


@pytest.mark.spec("ISS-1", "ISS-2")
def test_of_many_that_wait_so_many_are_asked_for_in_a_pass_and_all_have_their_turn(
    scene: Scene, here: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "HELD_AT_ONCE", 2)
    opened(scene, *(f"Waits {number}" for number in range(5)))
    for number in range(1, 6):
        scene.hub.label(number, "agent:queued", "maya")
        scene.hub.block(number, *BLOCKER)
    look(scene, here)
    scene.hub.elsewhere["a/b", 1] = (True, None)
    for number in range(1, 6):
        scene.hub.unblock(number, *BLOCKER)
        scene.hub.block(number, 1, "a/b")
    for count in (2, 4, 5):
        calls(scene)
        look(scene, here)
        assert calls(scene) == 1 + 2
        names = [dict(each.kept.facts)["ids"] for each in here.source.load_all()[0] if each.kept]
        assert names.count("a/b#1") == count
    assert here.source.load(RequestId("GH-5")).kept is not None
