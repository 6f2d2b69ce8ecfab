"""The ports of a process that stays: one checkout, many callers, settings that change meanwhile."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from aiflow.errors import SettingsError
from aiflow.messages import Texts
from aiflow.usecases.engine import Charge, Engine, Voice
from aiflow.wiring.live import LivePorts


@pytest.fixture
def live(repository: Path) -> LivePorts:
    return LivePorts(str(repository), ("agent.kind=demo",))


def write(repository: Path, text: str) -> None:
    """Save the settings as an editor does."""
    draft = repository / "aiflow.toml.new"
    draft.write_text(text)
    os.replace(draft, repository / "aiflow.toml")


@pytest.mark.spec("CFG")
def test_settings_are_read_again_when_they_changed_and_only_then(repository: Path, live: LivePorts) -> None:
    before = live.ports()
    assert live.ports() is before
    write(repository, "[limits]\nrole_attempts = 5\n")
    after = live.ports()
    assert (before.settings.integer("limits.role_attempts"), after.settings.integer("limits.role_attempts")) == (2, 5)
    assert after.settings.text("agent.kind") == "demo"
    write(repository, "[limits]\nrole_attempts = \n")
    with pytest.raises(SettingsError):
        live.ports()
    (repository / "aiflow.toml").unlink()
    assert live.ports().settings.integer("limits.role_attempts") == 2


@pytest.mark.spec("CFG", "REQ-2")
def test_another_folder_of_requests_counts_at_once(repository: Path, live: LivePorts) -> None:
    (repository / "backlog").mkdir()
    (repository / "backlog/RQ-1.md").write_text("# One\n")
    live.ports()
    write(repository, 'requests_dir = "backlog"\n')
    assert [request.id for request in live.ports().source.load_all()[0]] == ["RQ-1"]


def test_what_belongs_to_a_caller_or_a_run_is_in_no_shared_object(live: LivePorts) -> None:
    english, japanese = Voice(Texts("en")), Voice(Texts("ja"), interrupted=lambda: True)
    one, other = live.engine(english), live.engine(japanese, Charge(stop_code=lambda: "RUNNER_STOPPED"))
    assert (one.runs, one.locks) == (other.runs, other.locks)
    assert (one.voice, other.voice) == (english, japanese)
    assert (one.charge.stop_code(), other.charge.stop_code()) == ("CANCELLED", "RUNNER_STOPPED")
    heard = one.heard_by(interrupted=lambda: True)
    assert (heard.voice.interrupted(), one.voice.interrupted(), heard.voice.texts) == (True, False, english.texts)


def test_many_threads_get_one_set_of_ports(live: LivePorts) -> None:
    got: list[Engine] = []
    begin = threading.Barrier(8)

    def ask() -> None:
        begin.wait()
        got.append(live.engine(Voice(Texts("en"))))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(engine.runs) for engine in got}) == 1
