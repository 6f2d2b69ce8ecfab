"""The contract of a request source, held by files, by tickets in memory, and by both of them as one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.adapters.memory.tickets import MemoryTickets
from aiflow.adapters.several_sources import FilesAmongOthers, SeveralSources
from aiflow.domain.backlog.metadata import Change
from aiflow.domain.claims import Claimed, Comment, Dropped, Lost, NotStarted, Refusal, Settled
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.reasons import CATALOGUE
from aiflow.domain.request import ProblemKind, RequestId, RequestStatus
from aiflow.errors import BadInputError, ConflictError, NotFoundError
from aiflow.ports import RequestSource
from builders import NOW
from run_builders import new_run

S = RequestStatus
TEXT = "---\nstatus: {status}\npriority: P1\n---\n\n# Title\n\nBody.\n"
FILE, TICKET = RequestId("RQ-1"), RequestId("MEM-1")


class Scene(NamedTuple):
    """A source with one request, and a person who changes its status."""

    source: RequestSource
    request_id: RequestId
    set_status: Callable[[RequestStatus], None]
    text: Callable[[], str]


def files(root: Path, status: RequestStatus) -> Scene:
    path = root / f"requests/{FILE}.md"
    path.parent.mkdir()
    path.write_text(TEXT.format(status=status))
    kept = MarkdownRequests(root)

    def set_status(new: RequestStatus) -> None:
        kept.edit(FILE, {"status": Change(new.value)})

    return Scene(FileSource(kept), FILE, set_status, path.read_text)


def texts(_root: Path, status: RequestStatus) -> Scene:
    kept = MemoryRequests({FILE: TEXT.format(status=status)})

    def set_status(new: RequestStatus) -> None:
        kept.edit(FILE, {"status": Change(new.value)})

    return Scene(FileSource(kept), FILE, set_status, lambda: kept.texts[FILE])


def tickets(_root: Path, status: RequestStatus) -> Scene:
    kept = MemoryTickets()
    kept.add(1, "Title", "Body.\n", status=status, priority="P1")

    def said() -> str:
        ticket = kept.tickets[TICKET]
        return "\n".join([ticket.text, *(f"{each.title}\n{each.text}" for each in ticket.comments)])

    return Scene(kept, TICKET, lambda new: kept.set_status(TICKET, new), said)


def a_file_among_others(root: Path, status: RequestStatus) -> Scene:
    scene = files(root, status)
    others = MemoryTickets()
    others.add(7, "Another")
    return scene._replace(source=SeveralSources(scene.source, [others]))


def a_ticket_among_files(root: Path, status: RequestStatus) -> Scene:
    beside, scene = texts(root, S.READY), tickets(root, status)
    return scene._replace(source=SeveralSources(beside.source, [scene.source]))


KINDS = [files, texts, tickets, a_file_among_others, a_ticket_among_files]
Make = Callable[[RequestStatus], Scene]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    kind: Callable[[Path, RequestStatus], Scene] = request.param
    return lambda status: kind(tmp_path, status)


@pytest.mark.spec("REQ-1")
def test_a_request_is_found_among_all_and_by_its_id(make: Make) -> None:
    source, request_id, *_ = make(S.READY)
    assert source.owns(request_id)
    [listed] = [request for request in source.load_all()[0] if request.id == request_id]
    assert listed == source.load(request_id)
    assert (listed.title, listed.status, listed.priority) == ("Title", "ready", "P1")
    assert listed.where.endswith("/1" if request_id == TICKET else f"/{FILE}.md")
    assert "Body." in source.body(request_id)
    assert source.status(request_id) is S.READY


def test_an_unknown_id_is_none(make: Make) -> None:
    source = make(S.READY).source
    for unknown in (RequestId("RQ-99"), RequestId("MEM-99")):
        assert source.status(unknown) is None
        assert source.settle(unknown, "RUN-1", RunOutcome.FAILED) == Dropped(None)
        asked: tuple[Callable[[RequestId], object], ...] = (
            source.load,
            source.body,
            source.may_go_on,
            lambda each: source.claim(each, "RUN-1"),
        )
        for ask in asked:
            with pytest.raises(NotFoundError):
                ask(unknown)


@pytest.mark.spec("REQ-5")
@pytest.mark.parametrize("status", S)
def test_a_claim_holds_or_says_which_status_keeps_it(make: Make, status: RequestStatus) -> None:
    source, request_id, *_ = make(status)
    answer = source.claim(request_id, "RUN-1")
    if status in (S.READY, S.BLOCKED):
        assert answer == Claimed(status)
        assert source.claim(request_id, "RUN-1") == Claimed(S.RUNNING)
        assert source.status(request_id) is S.RUNNING
    elif status is not S.RUNNING:  # a file does not know who runs it, a ticket that we do not
        assert answer == Lost(status)
        assert source.status(request_id) is status


@pytest.mark.spec("ISS-3")
def test_what_is_claimed_and_left_alone_may_begin(make: Make) -> None:
    source, request_id, set_status, _ = make(S.READY)
    source.claim(request_id, "RUN-1")
    assert source.confirm(request_id, "RUN-1") is None
    set_status(S.DRAFT)
    refusal = source.confirm(request_id, "RUN-1")
    assert refusal == (Refusal("CANCELLED") if request_id == TICKET else None)


@pytest.mark.spec("REQ-3", "REQ-5")
def test_an_end_is_shown_and_a_persons_status_stays(make: Make) -> None:
    source, request_id, set_status, _ = make(S.READY)
    source.claim(request_id, "RUN-1")
    assert source.settle(request_id, "RUN-1", RunOutcome.AWAITING_ACCEPTANCE) == Settled(S.RUNNING, S.BLOCKED)
    assert source.settle(request_id, "RUN-1", RunOutcome.AWAITING_ACCEPTANCE) == Settled(S.BLOCKED, S.BLOCKED)
    assert source.settle(request_id, "RUN-1", RunOutcome.ACCEPTED) == Settled(S.BLOCKED, S.DONE)
    set_status(S.READY)
    source.claim(request_id, "RUN-2")
    assert source.settle(request_id, "", RunOutcome.FAILED) == Settled(S.RUNNING, S.BLOCKED)
    for status in (S.DRAFT, S.ARCHIVED):
        set_status(status)
        assert source.settle(request_id, "RUN-2", RunOutcome.FAILED) == Dropped(status)
        assert source.status(request_id) is status


@pytest.mark.spec("REQ-6")
def test_what_is_sent_back_has_the_persons_words_and_is_ready(make: Make) -> None:
    source, request_id, _, text = make(S.READY)
    source.claim(request_id, "RUN-1")
    source.settle(request_id, "RUN-1", RunOutcome.AWAITING_ACCEPTANCE)
    assert source.send_back(request_id, "RUN-1", Comment("Sent back", "Not like this.")) == Settled(S.BLOCKED, S.READY)
    assert text().index("Body.") < text().index("Sent back") < text().index("Not like this.")
    assert source.status(request_id) is S.READY


@pytest.mark.spec("REQ-5", "REQ-6")
def test_only_a_request_that_is_done_is_blocked_by_an_undo(make: Make) -> None:
    source, request_id, set_status, _ = make(S.READY)
    source.claim(request_id, "RUN-1")
    source.settle(request_id, "RUN-1", RunOutcome.ACCEPTED)
    assert source.undo(request_id, "RUN-1") == Settled(S.DONE, S.BLOCKED)
    assert source.undo(request_id, "RUN-1") == Settled(S.BLOCKED, S.BLOCKED)
    for status in (S.DRAFT, S.READY, S.ARCHIVED):
        set_status(status)
        assert source.undo(request_id, "RUN-1") == Dropped(status)
        assert source.status(request_id) is status


@pytest.mark.spec("RUN-6")
@pytest.mark.parametrize("status", S)
def test_whether_a_stopped_run_may_go_on_has_a_reason_of_the_catalogue(make: Make, status: RequestStatus) -> None:
    source, request_id, *_ = make(status)
    refusal = source.may_go_on(request_id)
    if refusal is None:
        assert status in (S.READY, S.BLOCKED, S.RUNNING)
    else:
        assert refusal.reason_code in CATALOGUE
        assert dict(refusal.facts)["status"] == status
    assert source.status(request_id) is status


def test_asking_and_progress_change_no_status(make: Make) -> None:
    source, request_id, *_ = make(S.READY)
    source.progress(new_run(request_id=request_id))
    assert source.feedback(request_id, None) == ()
    assert source.feedback(request_id, NOW) == ()
    assert source.status(request_id) is S.READY


@pytest.mark.spec("ISS-3", "ISS-5")
def test_a_start_that_failed_blocks_where_its_source_says_so(make: Make) -> None:
    source, request_id, *_ = make(S.READY)
    assert source.not_started(request_id, NotStarted("WORKTREE_DIRTY")) is None
    assert source.status(request_id) is S.READY
    answer = source.not_started(request_id, NotStarted("IO_ERROR", is_blocking=True))
    assert answer == (Settled(S.READY, S.BLOCKED) if request_id == TICKET else None)
    assert source.status(request_id) is (answer.now if answer else S.READY)


# --- tickets alone ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-6")
def test_a_ticket_knows_its_run_and_no_other_writes_on_it() -> None:
    kept = MemoryTickets()
    kept.add(1, "Title")
    assert kept.claim(TICKET, "RUN-1") == Claimed(S.READY)
    assert kept.claim(TICKET, "RUN-2") == Lost(S.RUNNING, "RUN-1")
    assert kept.settle(TICKET, "RUN-2", RunOutcome.FAILED) == Dropped(S.RUNNING, "RUN-1")
    assert kept.send_back(TICKET, "RUN-2", Comment("", "")) == Dropped(S.RUNNING, "RUN-1")
    kept.hold_elsewhere(TICKET, "RUN-1")
    assert kept.settle(TICKET, "", RunOutcome.FAILED) == Dropped(S.RUNNING, "RUN-1")
    kept.progress(new_run(request_id=TICKET, run_id="RUN-2"))
    assert kept.tickets[TICKET].states == []
    kept.tickets[TICKET].said.append((NOW, "Green, please."))
    assert [each.summary for each in kept.feedback(TICKET, NOW - timedelta(seconds=1))] == ["Green, please."]
    assert kept.feedback(TICKET, NOW) == ()


# --- several sources as one ------------------------------------------------------------------------------------------


def mixed(root: Path) -> tuple[SeveralSources, FilesAmongOthers, MemoryTickets]:
    (root / "requests").mkdir()
    (root / f"requests/{FILE}.md").write_text(TEXT.format(status="ready"))
    (root / "requests/MEM-1.md").write_text(TEXT.format(status="ready"))
    kept, others = MarkdownRequests(root), MemoryTickets()
    others.add(1, "Ticket")
    return SeveralSources(FileSource(kept), [others]), FilesAmongOthers(kept, [others]), others


@pytest.mark.spec("REQ-4", "SEC")
def test_a_file_under_another_sources_id_is_excluded_and_said_to_be(tmp_path: Path) -> None:
    source, *_ = mixed(tmp_path)
    valid, broken = source.load_all()
    assert {(request.id, request.title) for request in valid} == {(FILE, "Title"), (TICKET, "Ticket")}
    [foreign] = broken
    assert (foreign.id, foreign.where) == (TICKET, "requests/MEM-1.md")
    assert [problem.kind for problem in foreign.problems] == [ProblemKind.FOREIGN_ID]
    assert source.load(TICKET).title == "Ticket"
    source.claim(TICKET, "RUN-1")
    assert "status: ready" in (tmp_path / "requests/MEM-1.md").read_text()


def test_only_a_file_is_edited_and_the_refusal_names_the_other_place(tmp_path: Path) -> None:
    _, editor, _ = mixed(tmp_path)
    assert editor.edit(FILE, {"priority": Change("P0")}) == {"priority": ("P1", "P0")}
    before = (tmp_path / "requests/MEM-1.md").read_text()
    with pytest.raises(ConflictError) as refused:
        editor.edit(TICKET, {"priority": Change("P0")})
    assert refused.value.reason_code == "EDITED_ELSEWHERE"
    assert refused.value.context["path"] == "https://tickets.example/1"
    assert (tmp_path / "requests/MEM-1.md").read_text() == before
    for call in (lambda: editor.whole_text(TICKET), lambda: editor.rewrite(TICKET, "x", "y")):
        with pytest.raises(ConflictError, match="EDITED_ELSEWHERE"):
            call()
    assert editor.misspelt_keys(TICKET) == []
    with pytest.raises(NotFoundError):
        editor.edit(RequestId("MEM-9"), {"priority": Change("P0")})


def test_no_file_is_made_under_another_sources_id(tmp_path: Path) -> None:
    _, editor, _ = mixed(tmp_path)
    with pytest.raises(BadInputError):
        editor.require_free("MEM-9")
    with pytest.raises(BadInputError):
        editor.create(lambda _taken: RequestId("MEM-9"), "x", {})
    assert not (tmp_path / "requests/MEM-9.md").exists()
    editor.require_free("RQ-2")
    editor.require_free(None)
    assert editor.create(lambda _taken: RequestId("RQ-2"), TEXT.format(status="ready"), {}) == "requests/RQ-2.md"
