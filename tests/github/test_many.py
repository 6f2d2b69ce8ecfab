"""A repository with 1,000 issues (ISS-1): what looking after it costs, in calls and in files that are read."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest

from aiflow.adapters.github_issues.mirror import IssueMirror
from aiflow.domain.issues.issue import Story
from aiflow.domain.request import RequestId
from github.histories import quick_folder
from github.scene import Scene
from github.test_source import Checkout, calls

MANY, LABELLED, BLOCKED = 1000, 10, 3


class Counted(IssueMirror):
    """A mirror that counts how many issues are read from it."""

    reads = 0

    def story(self, number: int) -> Story | None:
        self.reads += 1
        return super().story(number)


@pytest.fixture
def here(scene: Scene) -> Iterator[Checkout]:
    folder = quick_folder()
    yield Checkout(scene, folder / "here")
    shutil.rmtree(folder)


def fill(scene: Scene) -> None:
    for number in range(1, MANY + 1):
        scene.hub.open_issue(f"Issue {number}", f"Depends on #{number - 1}" if number > 1 else "", by="maya")
        if number % (MANY // LABELLED) == 0:
            scene.hub.label(number, "agent:queued", "maya")
        if number % 3 == 0:
            scene.hub.comment(number, "I have this, too.", "rita")
        scene.time.sleep(10)
    for number in range(1, BLOCKED + 1):
        scene.hub.label(number, "agent:queued", "maya")
        scene.hub.block(number, MANY)


@pytest.mark.spec("ISS-1", "ISS-2")
def test_a_thousand_issues_cost_their_pages_and_nothing_while_nothing_happens(scene: Scene, here: Checkout) -> None:
    fill(scene)
    here.work.sync()
    # Every page; comments and history of what has an agent label; what blocks; who we are, and what who set it may do.
    assert calls(scene) == 10 + 2 * (LABELLED + BLOCKED) + BLOCKED + 1 + 1
    here.work.sync()  # the moment from which on it lists has moved
    assert calls(scene) == 1
    here.sync()  # what people asked for has been seen
    calls(scene)
    left = scene.api.remaining
    here.sync()
    here.sync()
    assert (calls(scene), scene.api.remaining) == (2, left)  # what has not changed does not count
    here.work.sync(is_full=True)
    assert calls(scene) == 10 + BLOCKED  # and what blocks those that would be ready
    scene.hub.comment(MANY, "I decided.", "maya")
    scene.time.sleep(60)
    here.work.sync()
    assert calls(scene) == 1 + 2
    check_files(scene, here)


@pytest.mark.spec("ISS-2", "ISS-6")
def test_only_those_are_asked_for_whose_word_counts(scene: Scene, here: Checkout) -> None:
    number = scene.hub.open_issue("Say hello", by="maya")
    for login in ("rita", "nobody", "theo", "mel"):
        scene.hub.comment(number, "I have this, too.", login)
    scene.hub.label(number, "agent:queued", "maya")
    here.work.look(number)
    assert asked(scene) == ["maya"]
    scene.time.sleep(6 * 60)
    scene.hub.comment(number, "/status", "theo")
    here.work.look(number)
    assert asked(scene) == ["maya", "theo"], "what was learnt is old, and somebody has written a command"
    # What those said who were not asked for has no mark that says that it counts for nothing.
    said = {line.who: line.may_decide for line in here.source.story(RequestId(f"GH-{number}"))}
    assert said == {"maya": True, "rita": None, "nobody": None, "theo": False, "mel": None}


def asked(scene: Scene) -> list[str]:
    """The people whose rights were asked for since the last time."""
    found = [said[1] for call in scene.api.calls if (said := re.search(r"collaborators/([^/]+)/permission", str(call)))]
    scene.api.calls.clear()
    return sorted(found)


def check_files(scene: Scene, here: Checkout) -> None:
    """The backlog is read without a call and every issue once; one of them without the others."""
    mirror = here.book.mirror = Counted(here.folder, scene.hub.repo)
    requests, broken = here.source.load_all()
    assert (len(requests), broken, mirror.reads) == (MANY, [], MANY)
    mirror.reads = 0
    assert here.source.load(RequestId("GH-500")).depends_on == ("GH-499",)
    assert mirror.reads < 5
    assert calls(scene) == 0
