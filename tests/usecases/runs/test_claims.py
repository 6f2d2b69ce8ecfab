"""A request and its source while a run works on it: what is in the journal, and what a refusal names."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.memory.tickets import MemoryTickets
from aiflow.adapters.system_time import SystemTime
from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.claims import Claimed, Dropped, Lost, NotStarted, Settled
from aiflow.domain.lifecycle import RunOutcome
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.errors import ConflictError, EnvironmentProblemError
from aiflow.messages import Texts
from aiflow.usecases.engine import Voice
from aiflow.usecases.runs.claims import claim, require_claim, send_back, settle, telling_source
from builders import NOW
from engines import engine_of

READY, RUNNING, BLOCKED = RequestStatus.READY, RequestStatus.RUNNING, RequestStatus.BLOCKED
MEM_1 = RequestId("MEM-1")


class Scene:
    """An engine with one ticket."""

    def __init__(self, status: RequestStatus = READY) -> None:
        self.source, self.journal = MemoryTickets(), MemoryJournal()
        self.source.add(1, "First", status=status)
        used: dict[str, Any] = {
            "source": self.source,
            "journal": self.journal,
            "time": SystemTime(lambda: NOW),
        }
        self.engine = engine_of(Voice(Texts("en")), **used)

    def changed(self, old: str, new: str, run_id: str | None = "RUN-1") -> Activity:
        data = {"key": "status", "from": old, "to": new}
        return Activity(NOW, ActivityKind.STATUS_CHANGED, Actor.ENGINE, MEM_1, run_id, data=data)


@pytest.mark.spec("REQ-5", "ERR-4")
def test_what_changes_a_request_is_in_the_journal_once() -> None:
    scene = Scene()
    assert claim(scene.engine, MEM_1, "RUN-1") == Claimed(READY)
    assert claim(scene.engine, MEM_1, "RUN-1") == Claimed(RUNNING)
    assert settle(scene.engine, MEM_1, "RUN-1", RunOutcome.NEEDS_INPUT) == Settled(RUNNING, BLOCKED)
    assert settle(scene.engine, MEM_1, "RUN-1", RunOutcome.NEEDS_INPUT) == Settled(BLOCKED, BLOCKED)
    send_back(scene.engine, MEM_1, "RUN-1", "Again.")
    assert scene.journal.entries == [
        scene.changed("ready", "running"),
        scene.changed("running", "blocked"),
        scene.changed("blocked", "ready"),
    ]
    [comment] = scene.source.tickets[MEM_1].comments
    assert (comment.title, comment.text) == ("Sent back on 2026-01-02", "Again.")


@pytest.mark.spec("REQ-5", "ERR-4")
def test_without_a_run_nobody_is_named() -> None:
    scene = Scene(RUNNING)
    scene.source.tickets[MEM_1].holder = ""
    settle(scene.engine, MEM_1, "", RunOutcome.FAILED)
    assert scene.journal.entries == [scene.changed("running", "blocked", None)]


@pytest.mark.spec("RUN-15", "LCK-7")
def test_a_claim_that_is_lost_names_who_has_it_or_which_status_it_has() -> None:
    scene = Scene()
    require_claim(scene.engine, MEM_1, "RUN-1")
    with pytest.raises(ConflictError) as held:
        require_claim(scene.engine, MEM_1, "RUN-2")
    assert held.value.reason_code == "REQUEST_LOCKED"
    assert held.value.context["holder"] == "RUN-1"
    assert "RUN-1" in str(held.value.context["detail"])
    scene.source.set_status(MEM_1, RequestStatus.ARCHIVED)
    with pytest.raises(ConflictError) as gone:
        require_claim(scene.engine, MEM_1, "RUN-2")
    assert (gone.value.reason_code, gone.value.context["status"]) == ("NOT_READY", "archived")
    assert claim(scene.engine, MEM_1, "RUN-2") == Lost(RequestStatus.ARCHIVED)
    assert len(scene.journal.entries) == 1


@pytest.mark.spec("QUE-6", "ERR-4")
def test_an_end_that_another_runs_claim_keeps_away_is_dropped_and_recorded() -> None:
    scene = Scene()
    claim(scene.engine, MEM_1, "RUN-2")
    assert settle(scene.engine, MEM_1, "RUN-1", RunOutcome.FAILED) == Dropped(RUNNING, "RUN-2")
    entry = scene.journal.entries[-1]
    assert (entry.kind, entry.reason_code, entry.run_id) == (ActivityKind.REFUSAL, "LOCK_MISMATCH", "RUN-1")
    assert dict(entry.data) == {"outcome": "failed", "holder": "RUN-2"}
    with pytest.raises(ConflictError, match="REQUEST_LOCKED"):
        send_back(scene.engine, MEM_1, "RUN-1", "Again.")
    assert scene.source.status(MEM_1) is RUNNING


@pytest.mark.spec("ISS-3", "ISS-10", "ERR-1")
def test_only_what_the_environment_refuses_is_told_and_a_block_is_in_the_journal() -> None:
    scene = Scene()
    told = scene.source.tickets[MEM_1].not_started
    with pytest.raises(ConflictError), telling_source(scene.engine, MEM_1, is_blocking=True):
        raise ConflictError(reason_code="LOCK_LOST")
    assert told == []
    with pytest.raises(EnvironmentProblemError), telling_source(scene.engine, MEM_1):
        raise EnvironmentProblemError(reason_code="WORKTREE_DIRTY")
    with pytest.raises(EnvironmentProblemError) as full, telling_source(scene.engine, MEM_1, "RUN-1", is_blocking=True):
        raise OSError(errno.ENOSPC, "full", "/runs/MEM-1")
    assert full.value.reason_code == "DISK_FULL"
    assert told == [NotStarted("WORKTREE_DIRTY"), NotStarted("DISK_FULL", is_blocking=True)]
    assert scene.journal.entries == [scene.changed("ready", "blocked")]
