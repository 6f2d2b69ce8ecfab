"""A run knows the folder of the requests that the settings name, and so do its agents."""

from __future__ import annotations

from typing import Any

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.settings import Source, settle
from aiflow.usecases.runs.start import start_run
from memory_engine import MemoryCheckout, MemoryProcess, obliging


@pytest.mark.spec("REQ-2", "REQ-8", "RUN-7")
def test_agents_are_told_the_folder_and_what_they_change_there_is_undone() -> None:
    checkout = MemoryCheckout(settings=settle({Source.FILE: {"requests_dir": "backlog/"}}))
    checkout.repository.dirty = ("backlog/RQ-1.md", "aiflow.toml")
    calls: list[AgentCall] = []

    def script(call: AgentCall, *more: Any) -> AgentReply:
        calls.append(call)
        if call.role is Role.IMPLEMENTER:
            checkout.repository.worktrees[call.cwd].files["backlog/RQ-9.md"] = b"# Mine\n"
        return obliging(checkout)(call, *more)

    engine = MemoryProcess(checkout, 1, PlayedTime(), script).engine()
    run = start_run(engine, checkout.add("RQ-1"))
    assert {call.requests_dir for call in calls} == {"backlog"}
    assert [*checkout.repository.files_of(f"refs/heads/{run.place.branch}")] == ["README", "RQ-1.txt"]
