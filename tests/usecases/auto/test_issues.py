"""Auto-run and issues (ISS-12, AUT-2): it reads them by itself, in one order with the files, and no more than needed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.agents.call import Brief
from aiflow.domain.auto.stopping import Limits, StopRequest
from aiflow.settings import settle
from aiflow.usecases.auto.run import auto_run
from aiflow.usecases.auto.shift import AutoTerms
from aiflow.usecases.engine import Voice
from memory_engine import TEXTS, MemoryCheckout, MemoryProcess, obliging
from run_builders import in_step
from usecases.issues.caring import Care, trouble


@dataclass
class Night:
    """An auto-run in memory, with issues."""

    checkout: MemoryCheckout = field(default_factory=lambda: MemoryCheckout(settings=settle({})))
    time: PlayedTime = field(default_factory=PlayedTime)
    care: Care = field(init=False)
    warned: list[str] = field(default_factory=list)
    seconds: float = float("inf")

    def __post_init__(self) -> None:
        self.care = Care(self.time)

    def run(self, *, watch: bool = False) -> list[str]:
        """Let it work; return what it ran."""
        process = MemoryProcess(self.checkout, 1, self.time, obliging(self.checkout))
        terms = AutoTerms(
            self.checkout.session,
            Limits(),
            TEXTS,
            is_watching=watch,
            care=self.care,
            asked=lambda: StopRequest.NOW if self.time.seconds > self.seconds else StopRequest.NONE,
        )
        summary = auto_run(process.engine(voice=Voice(TEXTS, warn=self.warned.append)), terms)
        return [result.request_id for result in summary.session.results]


@pytest.fixture
def night() -> Night:
    return Night()


@pytest.mark.spec("ISS-12", "SEL-2")
def test_issues_and_files_run_in_one_order(night: Night) -> None:
    for name, priority in {"RQ-1": "P1", "GH-1": "P0", "GH-2": "P2"}.items():
        night.checkout.add(name, priority=priority)
    assert night.run() == ["GH-1", "RQ-1", "GH-2"]


@pytest.mark.spec("ISS-12")
def test_it_reads_the_issues_before_it_selects_and_once_more_before_it_ends(night: Night) -> None:
    night.checkout.add("RQ-1")
    looks: list[int] = []

    def label() -> None:
        looks.append(len(night.care.synced))
        if len(looks) == 2:  # somebody labels an issue while the only request runs
            night.checkout.add("GH-1")

    night.care.meanwhile = label
    assert night.run() == ["RQ-1", "GH-1"]
    assert len(looks) == 3  # not before each selection: that would be more than once per poll


@pytest.mark.spec("ISS-12", "ISS-1")
def test_waiting_for_work_it_polls_as_often_as_the_settings_say(night: Night) -> None:
    night.seconds = 100
    night.run(watch=True)
    assert night.care.synced == [pytest.approx(each, abs=3) for each in (0, 30, 60, 90)]


@pytest.mark.spec("ISS-12", "ISS-11")
def test_while_github_is_away_files_run_and_that_is_told_once(night: Night) -> None:
    night.care.wrong["sync"] = trouble()
    for name in ("RQ-1", "RQ-2"):
        night.checkout.add(name)
    assert night.run() == ["RQ-1", "RQ-2"]
    assert [line.partition(":")[0] for line in night.warned] == ["GITHUB_UNREACHABLE"]


@pytest.mark.spec("ISS-12", "RUN-11")
def test_an_issues_run_that_was_interrupted_goes_on_under_its_own_id(night: Night) -> None:
    night.checkout.add("GH-1", "running")
    run = replace(in_step(1), request_id="GH-1", run_id="RUN-20260102-030405-000001")
    process = MemoryProcess(night.checkout, 50, night.time, obliging(night.checkout))
    process.engine().runs.create(run, Brief("GH-1", "A title", "", ""))
    assert night.run() == ["GH-1"]
    assert [each.run_id for each in process.engine().runs.all_of(run.request_id)] == [run.run_id]  # type: ignore[arg-type]
