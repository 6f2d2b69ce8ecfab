"""The night as the morning draws it (WEB-1): bars, every gap in words, the last days, and what an answer unblocks."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.usage import Usage
from aiflow.domain.auto.asleep import SLEPT
from aiflow.domain.runs.events import accepted, accepting, asked, called
from aiflow.domain.runs.run import Happening, Run, RunError
from aiflow.wiring import project_at
from e2e.bench import Bench
from real_engine import engine_at, keep
from run_builders import at, done, in_step
from web_yard import WebBench

pytestmark = pytest.mark.spec("WEB-1")

GAPS = {
    "en": (
        ("waited for the agent's quota", 280, 240),
        ("the machine slept", 220, 200),
        ("auto-run waited", 180, 150),
        ("Auto-run stopped: a run failed", 120, 90),
        ("nothing could run", 88, 50),
        ("auto-run was off", 50, 0),
    ),
    "ja": (
        ("エージェントの利用枠を待機", 280, 240),
        ("マシンがスリープ", 220, 200),
        ("Auto-run が待機", 180, 150),
        ("Run が FAILED になったため、Auto-run を停止しました", 120, 90),
        ("実行できる Request なし", 88, 50),
        ("Auto-run は停止中", 50, 0),
    ),
}
UNBLOCKS = {
    "en": ("RQ-2 could run after it", "RQ-4 and 1 more wait for it"),
    "ja": ("完了すれば RQ-2 を実行できます", "RQ-4 ほか1件が待っています"),
}
CHARTS = {
    "en": ("1 done, 1 waited, 0 failed", "Agent time: 2 h 10 min", "Cost: $1.00"),
    "ja": ("完了1件、対応待ち1件、失敗0件", "エージェントの作業時間: 2時間10分", "費用: $1.00"),
}


class Night:
    """A night of two runs, minutes before now."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.now = bench, datetime.now(UTC).replace(microsecond=0)

    def ago(self, minutes: int) -> datetime:
        return self.now - timedelta(minutes=minutes)

    def write(self) -> None:
        """Write what depends on what, both runs, and what auto-run wrote in the journal."""
        self.bench.add_request("RQ-1", status="blocked")
        self.bench.add_request("RQ-2", depends_on="[RQ-1]")
        self.bench.add_request("RQ-3", depends_on="[RQ-2]")
        self.bench.add_request("RQ-4", depends_on="[RQ-1, RQ-3]", priority="P3")
        self.bench.add_request("RQ-5", status="done")
        error = RunError("NEEDS_CLARIFICATION", "Which?", question="Which?")
        question = asked(called(in_step(), Role.IMPLEMENTER), Role.IMPLEMENTER, error, at(12))
        self._keep(
            "RQ-1", question, (300, "PLANNING_STARTED"), (280, "QUOTA_WAIT"), (240, "QUOTA_BACK"), (180, "NEEDS_INPUT")
        )
        self._keep(
            "RQ-5", accepted(accepting(done(), at(30)), "c0ffee", at(31)), (150, "PLANNING_STARTED"), (120, "REPORTED")
        )
        self._note(300, event="started")
        self._note(200, event=SLEPT, seconds=20 * 60)
        self._note(120, "AUTO_FAILED_LIMIT", event="stopped")
        self._note(90, event="started")
        self._note(88, "AUTO_NOTHING_RUNNABLE", ActivityKind.DECISION)
        self._note(50, event="stopped")

    def _keep(self, request_id: str, run: Run, *happened: tuple[int, str]) -> None:
        begin = self.ago(happened[0][0])
        history = tuple(Happening(self.ago(minutes), event) for minutes, event in happened)
        run_id, usage = f"RUN-{begin:%Y%m%d-%H%M%S}-aaaaaa", Usage(5, 1000, 0, 100, 0.5, 65 * 60)
        own = replace(run, request_id=request_id, run_id=run_id, created_at=begin, usage=usage, history=history)
        keep(engine_at(self.bench.root), own)

    def _note(
        self, minutes: int, code: str | None = None, kind: ActivityKind = ActivityKind.TRANSITION, **data: object
    ) -> None:
        entry = Activity(self.ago(minutes), kind, Actor.AUTO_RUN, reason_code=code, data=data)
        project_at(str(self.bench.root)).journal.append(entry)


@pytest.fixture
def night(bench: Bench) -> Night:
    night = Night(bench)
    night.write()
    return night


def words(text: str) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", text))).strip()


def told_gaps(page: str) -> list[str]:
    [caption] = re.findall(r"<figcaption class=\"legend.*?</figcaption>", page)
    return [words(each) for each in re.findall(r"<span>(.*?)</span>", caption)]


def clock(moment: datetime) -> str:
    here = moment.astimezone()
    return f"{here.hour}:{here.minute:02}"


@pytest.mark.parametrize("language", ["en", "ja"])
def test_every_gap_is_drawn_and_said_with_its_reason(web: WebBench, night: Night, language: str) -> None:
    page = web.page("/", language=language)
    told = [f"{clock(night.ago(begin))}–{clock(night.ago(end))}: {what}" for what, begin, end in GAPS[language]]
    *others, last = told_gaps(page)  # that nobody had started auto-run before the first run is no gap
    assert others == told[:-1]
    assert last.split(": ")[1] == GAPS[language][-1][0]  # where it ends moves with the clock
    figure = page[page.index('<figure class="night"') : page.index("</figure>")]
    assert (figure.count('class="quota"'), figure.count('class="off"')) == (3, 3)
    label = {"en": "The night: runs from ", "ja": "夜の経過: "}[language]
    assert re.search(rf'<svg role="group" aria-label="{label}', figure)
    titles = [words(each) for each in re.findall(r"<title[^>]*>.*?</title>", figure)]
    assert [each.split()[0] for each in titles] == ["RQ-1"] * 3 + ["RQ-5"]
    assert clock(night.ago(300)) in titles[0]


@pytest.mark.parametrize("language", ["en", "ja"])
def test_what_an_answer_unblocks_is_said_with_links(web: WebBench, night: Night, language: str) -> None:
    page = web.page("/", language=language)
    item = page[page.index('<li class="item" id="wait-RQ-1"') :]
    [why] = re.findall(r'<p class="why">.*?</p>', item[: item.index("</li>")], re.DOTALL)
    said = [words(each) for each in re.findall(r"<span>(.*?)</span>", why)]
    assert said[-4:-2] == list(UNBLOCKS[language])
    for request_id in ("RQ-2", "RQ-4"):
        assert f'<a href="/requests/{request_id}" class="mono">{request_id}</a>' in why


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_charts_say_in_words_what_they_show(web: WebBench, night: Night, language: str) -> None:
    page = web.page("/", language=language)
    charts = page[page.index('aria-labelledby="h-days"') :]
    assert tuple(re.findall(r'<svg role="img" aria-label="([^"]*)"', charts)) == CHARTS[language]
    assert len(re.findall(r"<g><title>", charts)) == 14
    assert (charts.count('class="c-done"'), charts.count("url(#hatch)")) == (1, 1)


def test_of_many_gaps_the_longest_are_told(web: WebBench, bench: Bench) -> None:
    night = Night(bench)
    for number in range(10):
        begin = 290 - 29 * number
        bench.add_request(f"RQ-{10 + number}", status="done")
        night._keep(f"RQ-{10 + number}", done(), (begin, "PLANNING_STARTED"), (begin - 10 - number, "REPORTED"))
    told = told_gaps(web.page("/"))
    assert len(told) == 9
    assert told[-1] == "Shorter gaps: 2"
    assert len({each.split("–")[0] for each in told[:-1]}) == 8
