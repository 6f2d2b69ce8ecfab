"""What every run needs (DOC-1, RUN-7): said with the place, and with what is missing."""

from __future__ import annotations

import pytest

from aiflow.adapters.memory.machine import MemoryWorkshop
from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.agents.call import AgentReply
from aiflow.domain.health import Finding, Health
from aiflow.domain.request import RequestId
from aiflow.errors import AiflowError
from aiflow.messages import Texts
from aiflow.settings import Source, settle
from aiflow.usecases.engine import Engine
from aiflow.usecases.health.check_health import LEAST_FREE_BYTES, check_quick, require_health
from aiflow.usecases.shapes.errors import error_facts
from memory_engine import MemoryCheckout, MemoryProcess


def engine_of(workshop: MemoryWorkshop, **settings: str) -> Engine:
    given = {name.replace("__", "."): value for name, value in settings.items()}
    checkout = MemoryCheckout(settings=settle({Source.FILE: given}))
    checkout.workshop = workshop
    return MemoryProcess(checkout, 1, PlayedTime(), lambda *_: AgentReply()).engine()


def findings(engine: Engine, check_id: str) -> list[Finding]:
    return [finding for finding in check_quick(engine)[1] if finding.check_id == check_id]


@pytest.mark.spec("DOC-1", "ERR-2")
@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_full_disk_is_named_with_its_path_and_what_is_needed(language: str) -> None:
    engine = engine_of(MemoryWorkshop(room=("/var/state", 3_000_000))).heard_by(texts=Texts(language))
    with pytest.raises(AiflowError) as refused:
        require_health(engine, RequestId("RQ-1"))
    assert refused.value.reason_code == "DISK_FULL"
    texts = Texts(language)
    facts = error_facts(refused.value, texts)
    said = f"{texts.message('DISK_FULL', facts).summary} {facts['detail']}"
    for words in ("/var/state", "3 MB", f"{LEAST_FREE_BYTES // 1_000_000} MB"):
        assert words in said
    assert f"{LEAST_FREE_BYTES // 1_000_000} MB" in texts.message("DISK_FULL", facts).actions[0].typed


class WithoutTests(MemoryWorkshop):
    """A machine on which the program of the tests is not there yet."""

    def find_program(self, command: str) -> str | None:
        return command.split(maxsplit=1)[0]


@pytest.mark.spec("DOC-1", "GIT-4")
@pytest.mark.parametrize(
    ("command", "setup", "message"),
    [
        (".venv/bin/pytest -q", "uv sync", "tests.setup"),
        ("node_modules/.bin/jest", "npm ci", "tests.setup"),
        (".venv/bin/pytest -q", "", "tests.warn"),
        ("/opt/pytest", "uv sync", "tests.warn"),
        ("pytest -q", "uv sync", "tests.warn"),
    ],
)
def test_a_test_program_that_set_up_makes_is_not_missed(command: str, setup: str, message: str) -> None:
    (found,) = findings(engine_of(WithoutTests(), tests__unit=command, worktree__setup=setup), "tests")
    assert found.message == message
    assert (found.health is Health.PASS) == (message == "tests.setup")


@pytest.mark.spec("ISS-9", "DOC-1")
@pytest.mark.parametrize("is_pushed", [True, False])
def test_pull_requests_without_a_push_are_warned_of(is_pushed: bool) -> None:
    checkout = MemoryCheckout(settings=settle({Source.FILE: {"github.pull_request": True, "git.push": is_pushed}}))
    engine = MemoryProcess(checkout, 1, PlayedTime(), lambda *_: AgentReply()).engine()
    found = [(finding.health, finding.reason_code) for finding in findings(engine, "pull_request")]
    assert found == ([] if is_pushed else [(Health.WARN, "PULL_NEEDS_PUSH")])
