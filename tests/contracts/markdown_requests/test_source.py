"""Request files as the engine's source (REQ-3, REQ-5): which status aiflow changes, and that a person's stays."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.domain.backlog.metadata import Change
from aiflow.domain.claims import Claimed, Comment, Dropped, Lost, Refusal, Settled
from aiflow.domain.lifecycle import ENGINE_TRANSITIONS, PROJECTIONS, RunOutcome
from aiflow.domain.request import InvalidRequest, Request, RequestId, RequestStatus, Value
from aiflow.errors import ConflictError, EnvironmentProblemError, NotFoundError
from aiflow.messages.details import words
from aiflow.ports import RequestSource

A = RequestId("A")
TEXT = "---\r\n# kept\r\nstatus: {status}\r\nmine: 1\r\npriority: P1\r\n---\r\n\r\n# Title\r\n\r\nBody.\r\n"

# REQ-5, stated a second time: from which status a start or resume leads to running, and where each end leads from there.
CLAIMS = {"ready": "running", "blocked": "running", "running": "running"}
SETTLES = {
    "awaiting_acceptance": "blocked",
    "accepted": "done",
    "needs_input": "blocked",
    "cancelled": "blocked",
    "failed": "blocked",
    "active": "running",
    "sent_back": "running",
}


class Scene(NamedTuple):
    files: MemoryRequests | MarkdownRequests
    source: RequestSource
    text: Callable[[], str]
    change: Callable[[str], None]
    delete: Callable[[], None]

    def status(self) -> str:
        request = self.files.read(A)
        assert isinstance(request, Request)
        return request.status.value


def memory(_root: Path, status: str) -> Scene:
    files = MemoryRequests({A: TEXT.format(status=status)})
    source = FileSource(files)
    return Scene(
        files,
        source,
        lambda: files.texts[A],
        lambda text: files.texts.update({A: text}),
        files.texts.clear,
    )


def save(path: Path, text: str) -> None:
    path.write_bytes(text.encode())


def markdown(root: Path, status: str) -> Scene:
    path = root / "requests/A.md"
    path.parent.mkdir()
    path.write_bytes(TEXT.format(status=status).encode())
    files = MarkdownRequests(root)
    source = FileSource(files)
    return Scene(
        files,
        source,
        lambda: path.read_bytes().decode(),
        lambda text: save(path, text),
        path.unlink,
    )


Make = Callable[[str], Scene]


@pytest.fixture(params=[memory, markdown])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    kind: Callable[[Path, str], Scene] = request.param
    return lambda status: kind(tmp_path, status)


# --- claim -----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("REQ-5")
@pytest.mark.parametrize("status", RequestStatus)
def test_a_claim_leads_from_ready_and_blocked_to_running_and_from_nowhere_else(
    make: Make, status: RequestStatus
) -> None:
    scene = make(status)
    answer = scene.source.claim(A, "RUN-1")
    assert scene.status() == CLAIMS.get(status, status.value)
    assert answer == (Claimed(status) if status in CLAIMS else Lost(status))
    refusal = Refusal("NOT_READY", (("status", status.value), ("detail", words("refused.status", status=status))))
    assert scene.source.may_go_on(A) == (None if status in CLAIMS else refusal)


@pytest.mark.spec("REQ-3", "REQ-5")
@pytest.mark.parametrize("status", ["ready", "blocked"])
def test_a_claim_changes_one_line_once(make: Make, status: str) -> None:
    scene = make(status)
    assert scene.source.claim(A, "RUN-1") == Claimed(RequestStatus(status))
    assert scene.text() == TEXT.format(status="running")
    assert scene.source.claim(A, "RUN-1") == Claimed(RequestStatus.RUNNING)
    assert scene.text() == TEXT.format(status="running")


@pytest.mark.spec("REQ-5")
@pytest.mark.parametrize("status", ["draft", "done", "archived"])
def test_a_refused_claim_changes_nothing(make: Make, status: str) -> None:
    scene = make(status)
    assert scene.source.claim(A, "RUN-1") == Lost(RequestStatus(status))
    assert scene.text() == TEXT.format(status=status)


# --- settle ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("REQ-5", "REQ-6", "QUE-4")
@pytest.mark.parametrize("outcome", RunOutcome)
def test_an_end_shows_on_a_running_request(make: Make, outcome: RunOutcome) -> None:
    scene = make("running")
    answer = scene.source.settle(A, "RUN-1", outcome)
    after = SETTLES[outcome]
    assert scene.text() == TEXT.format(status=after)
    was = RequestStatus.RUNNING
    assert answer == (Dropped(was) if outcome is RunOutcome.SENT_BACK else Settled(was, RequestStatus(after)))
    assert after == "running" or RequestStatus(after) in {
        to for (before, _), to in ENGINE_TRANSITIONS.items() if before is RequestStatus.RUNNING
    }


@pytest.mark.spec("REQ-3", "REQ-5")
@pytest.mark.parametrize("status", [status for status in RequestStatus if status is not RequestStatus.RUNNING])
def test_a_status_that_a_person_set_meanwhile_stays(make: Make, status: RequestStatus) -> None:
    scene = make("running")
    scene.change(TEXT.format(status=status))
    # What is blocked waits for acceptance, and is done once it is accepted: that is nobody's change meanwhile.
    is_waiting = status is RequestStatus.BLOCKED
    for outcome in (each for each in RunOutcome if not (is_waiting and each is RunOutcome.ACCEPTED)):
        answer = scene.source.settle(A, "RUN-1", outcome)
        shows = PROJECTIONS[outcome].request is status
        assert answer == (Settled(status, status) if shows else Dropped(status))
        assert scene.text() == TEXT.format(status=status)


@pytest.mark.spec("REQ-5", "REQ-6")
def test_what_waits_for_acceptance_is_done_once_it_is_accepted(make: Make) -> None:
    scene = make("blocked")
    scene.source.settle(A, "RUN-1", RunOutcome.ACCEPTED)
    assert scene.text() == TEXT.format(status="done")


@pytest.mark.spec("REQ-5", "REQ-6")
@pytest.mark.parametrize(("status", "after"), [("blocked", "ready"), ("ready", "ready")])
def test_what_is_sent_back_has_the_comment_and_is_ready(make: Make, status: str, after: str) -> None:
    scene = make(status)
    answer = scene.source.send_back(A, "RUN-1", Comment("Sent back", "Not like this.\n"))
    assert answer == Settled(RequestStatus(status), RequestStatus(after))
    assert scene.text() == TEXT.format(status=after).rstrip() + "\n\n## Sent back\n\nNot like this.\n"


@pytest.mark.spec("REQ-3")
def test_what_else_a_person_changed_meanwhile_stays_too(make: Make) -> None:
    scene = make("ready")
    scene.source.claim(A, "RUN-1")
    scene.change(scene.text().replace("P1", "P0") + "More.\r\n")
    scene.source.settle(A, "RUN-1", RunOutcome.NEEDS_INPUT)
    assert scene.text() == TEXT.format(status="blocked").replace("P1", "P0") + "More.\r\n"


# --- a file that is gone or broken -----------------------------------------------------------------------------------


@pytest.mark.spec("REQ-4", "REQ-5")
def test_a_file_that_is_gone_is_nothing_to_settle_and_cannot_be_claimed(make: Make) -> None:
    scene = make("running")
    scene.delete()
    for outcome in RunOutcome:
        assert scene.source.settle(A, "RUN-1", outcome) == Dropped(None)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: scene.source.load(A),
        lambda: scene.source.claim(A, "RUN-1"),
        lambda: scene.source.may_go_on(A),
    )
    for attempt in attempts:
        with pytest.raises(NotFoundError):
            attempt()
    assert scene.source.status(A) is None


@pytest.mark.spec("REQ-4")
@pytest.mark.parametrize("text", ["---\nstatus: wip\n---\n", "---\nstatus: [running\n", "---\nstatus: running\n"])
def test_a_file_that_is_broken_stays_as_it_is(make: Make, text: str) -> None:
    scene = make("running")
    scene.change(text)
    assert scene.source.settle(A, "RUN-1", RunOutcome.FAILED) == Dropped(None)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: scene.source.load(A),
        lambda: scene.source.claim(A, "RUN-1"),
    )
    for attempt in attempts:
        with pytest.raises(ConflictError, match="REQUEST_INVALID"):
            attempt()
    assert scene.source.status(A) is None
    assert scene.text() == text


@pytest.mark.spec("REQ-7")
def test_without_the_folder_a_run_still_ends(tmp_path: Path) -> None:
    scene = markdown(tmp_path, "running")
    shutil.rmtree(tmp_path / "requests")
    assert scene.source.settle(A, "RUN-1", RunOutcome.FAILED) == Dropped(None)
    with pytest.raises(EnvironmentProblemError, match="REQUESTS_DIR_MISSING"):
        scene.source.claim(A, "RUN-1")


@pytest.mark.spec("REQ-1")
def test_a_request_is_loaded_with_its_body(make: Make) -> None:
    scene = make("ready")
    assert (scene.source.load(A).title, scene.source.load(A).status) == ("Title", "ready")
    assert scene.source.body(A).split() == ["#", "Title", "Body."]


# --- a person is faster ----------------------------------------------------------------------------------------------


class Hasty(MemoryRequests):
    """A person who saves between aiflow's look and its write."""

    def __init__(self, status: str, act: Callable[[Hasty], None]) -> None:
        super().__init__({A: TEXT.format(status=status)})
        self.act = act

    def edit(
        self,
        request_id: RequestId,
        changes: Mapping[str, Change],
        body: tuple[str, str] | None = None,
        before: str | None = None,
    ) -> dict[str, tuple[Value, Value]]:
        self.act(self)
        return super().edit(request_id, changes, body, before)

    def status(self) -> str:
        request = self.read(A)
        assert not isinstance(request, InvalidRequest)
        return request.status.value


def sets(status: str) -> Callable[[Hasty], None]:
    return lambda files: files.texts.update({A: TEXT.format(status=status)})


@pytest.mark.spec("REQ-3", "REQ-5")
def test_between_look_and_write_the_person_wins() -> None:
    files = Hasty("ready", sets("archived"))
    assert FileSource(files).claim(A, "RUN-1") == Lost(RequestStatus.ARCHIVED)
    assert files.status() == "archived"
    files = Hasty("running", sets("done"))
    assert FileSource(files).settle(A, "RUN-1", RunOutcome.NEEDS_INPUT) == Dropped(RequestStatus.DONE)
    assert files.status() == "done"


@pytest.mark.spec("REQ-3", "REQ-5")
def test_between_look_and_write_the_file_may_go() -> None:
    files = Hasty("running", lambda files: files.texts.clear())
    assert FileSource(files).settle(A, "RUN-1", RunOutcome.NEEDS_INPUT) == Dropped(None)
    assert files.texts == {}
