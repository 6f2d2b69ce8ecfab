"""What a runner shows (QUE-7, QUE-11): a line for everything, the live area, and the events for programs."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from aiflow.cli.terminal.lines import plain, width_of
from aiflow.cli.views.auto_lines import ToldOnce
from aiflow.cli.views.runner import RunnerView
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.runner import Runner
from aiflow.domain.queue.task import Checkout, Task, TaskAction
from aiflow.messages import Texts
from aiflow.usecases.runner.desk import NewsKind, RunnerNews

NOW = datetime(2026, 11, 4, 1, 32, tzinfo=UTC)
RUNNER = Runner("app", "host-1-ab", Checkout("host", "/app"), NOW, NOW)


def task(**more: Any) -> Task:
    fields: dict[str, Any] = {"action": TaskAction.START, "request_id": "RQ-1"} | more
    return Task("app", "TASK-1", created_at=NOW, updated_at=NOW, place_at=NOW, **fields)


LOST = task(status=TaskStatus.ERROR, error_message="RUNNER_LOST: x", successor="TASK-1.2")
EVERYTHING = [
    RunnerNews(NewsKind.STARTED, facts={"base_branch": "main"}),
    RunnerNews(NewsKind.WAITING),
    RunnerNews(NewsKind.HELD_UP, None, "RUN_IN_PROGRESS", {"holder": "RUN-7"}),
    RunnerNews(NewsKind.HELD_UP, None, "DOCTOR_FAILED", {"holder": "no git"}),
    RunnerNews(NewsKind.HELD_UP, task(), "QUEUE_IN_PROGRESS", {"holder": "pid 7"}),
    *(RunnerNews(NewsKind.CLAIMED, task(action=action)) for action in TaskAction),
    RunnerNews(NewsKind.ENDED, task(status=TaskStatus.COMPLETE, run_id="RUN-1")),
    RunnerNews(NewsKind.ENDED, task(status=TaskStatus.CANCELLED, error_message="CANCELLED"), "CANCELLED"),
    RunnerNews(NewsKind.ENDED, LOST, "RUNNER_LOST"),
    RunnerNews(NewsKind.LOST, task(), "LOCK_MISMATCH"),
    RunnerNews(NewsKind.RECOVERING, task(), "PROCESS_CRASHED"),
    RunnerNews(NewsKind.REAPED, LOST, "RUNNER_LOST", {"lost_runner": "other"}),
    RunnerNews(
        NewsKind.STORE_AWAY, None, "STORE_UNREACHABLE", {"problem": "refused", "command": "aiflow queue store start"}
    ),
    RunnerNews(NewsKind.STORE_BACK),
    RunnerNews(NewsKind.CUT_OFF, task(), "STORE_UNREACHABLE", {"seconds": "90"}),
    RunnerNews(NewsKind.UNWRITTEN, task(), "STORE_UNREACHABLE"),
    RunnerNews(NewsKind.STOPPED, facts={"tasks": 3}),
]


def shown(capsys: pytest.CaptureFixture[str], *news: RunnerNews, language: str = "en") -> list[str]:
    view = RunnerView(Texts(language), RUNNER, as_json=False, clock=lambda: NOW)
    with view:
        for each in news:
            view.hear(each)
    return [line[21:] for line in capsys.readouterr().out.splitlines()]


def test_everything_that_happens_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, *EVERYTHING)
    assert len(lines) == len(EVERYTHING)
    assert lines[0] == "Runner of app in /app  (host-1-ab)  Base branch: main"
    assert lines[2:5] == [
        "Tasks wait: another run is active in this checkout: RUN-7",
        "No task is taken until this is fixed: no git  → aiflow doctor",
        "The task waits: another auto-run is active in this checkout: pid 7",
    ]
    assert lines[5:7] == ["▶ start RQ-1  TASK-1", "▶ resume RQ-1  TASK-1"]
    assert lines[10] == "▶ prompt RQ-1  TASK-1"
    assert lines[11:14] == [
        "✓ start RQ-1  complete  → aiflow accept RQ-1",
        "– start RQ-1  cancelled  → aiflow queue add RQ-1",
        "! start RQ-1  ended with an error  RUNNER_LOST: The runner no longer responds  continues as TASK-1.2",
    ]
    assert lines[16] == "Runner other is gone: its task TASK-1 ended with RUNNER_LOST.  continues as TASK-1.2"
    assert lines[-1] == "Runner stopped. Tasks worked on: 3"


def test_in_japanese_too(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, *EVERYTHING, language="ja")
    assert (len(lines), lines[1], lines[11]) == (
        len(EVERYTHING),
        "タスクを待っています…",
        "✓ 開始 RQ-1  完了  → aiflow accept RQ-1",
    )
    assert not any("<" in line for line in lines)


@pytest.mark.parametrize("is_terminal", [False, True])
def test_programs_get_one_object_per_event(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    view = RunnerView(Texts("ja"), RUNNER, as_json=True, clock=lambda: NOW)
    for each in EVERYTHING:
        view.hear(each)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["event"] for each in told] == [news.kind.value for news in EVERYTHING]
    assert {each["at"] for each in told} == {NOW.isoformat()}
    ended = told[13]
    assert (ended["task_id"], ended["status"], ended["successor"]) == ("TASK-1", "ERROR", "TASK-1.2")
    assert told[-1]["tasks"] == 3
    assert (told[16]["runner_id"], told[16]["lost_runner"]) == ("host-1-ab", "other")


@pytest.mark.spec("QUE-7")
@pytest.mark.parametrize("as_json", [False, True])
def test_that_nobody_reads_it_any_more_does_not_touch_the_runner(
    monkeypatch: pytest.MonkeyPatch, *, as_json: bool
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stdout = open(writer, "w", encoding="utf-8")  # noqa: SIM115 - to close it fails, too
    monkeypatch.setattr(sys, "stdout", stdout)
    with RunnerView(Texts("en"), RUNNER, as_json=as_json, clock=lambda: NOW) as view:
        for each in EVERYTHING:
            view.hear(each)
    monkeypatch.undo()
    with pytest.raises(BrokenPipeError):
        stdout.close()


@pytest.mark.spec("QUE-7")
@pytest.mark.parametrize("as_json", [False, True])
def test_only_a_runner_with_a_task_says_what_becomes_of_it(capfd: pytest.CaptureFixture[str], *, as_json: bool) -> None:
    view = RunnerView(Texts("en"), RUNNER, as_json=as_json, clock=lambda: NOW)

    def said(*, is_now: bool) -> str:
        capfd.readouterr()
        view.asked_to_stop(is_now=is_now)
        return capfd.readouterr().err

    assert [said(is_now=is_now) for is_now in (False, True)] == ["Stopping …\n"] * 2
    for end in (NewsKind.ENDED, NewsKind.LOST):
        view.hear(RunnerNews(NewsKind.CLAIMED, task()))
        view.hear(RunnerNews(NewsKind.HELD_UP, task(), "QUEUE_IN_PROGRESS", {"holder": "pid 7"}))
        assert said(is_now=False) == "Stops after this task. Ctrl-C again ends it.\n"
        assert said(is_now=True) == "Stopping; the current task is handed on …\n"
        view.hear(RunnerNews(end, task(status=TaskStatus.COMPLETE), "LOCK_MISMATCH"))
        assert said(is_now=True) == "Stopping …\n"


@pytest.mark.parametrize(("columns", "language"), [(60, "en"), (44, "ja")])
def test_on_a_terminal_a_long_line_is_broken_and_not_cut(
    monkeypatch: pytest.MonkeyPatch, columns: int, language: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    view = RunnerView(Texts(language), RUNNER, as_json=False, clock=lambda: NOW)
    view._is_watched = True
    told = ToldOnce(NOW, view._line(RunnerNews(NewsKind.ENDED, LOST, "RUNNER_LOST")))
    lines = view._laid_out(told)
    assert len(lines) > 1
    assert max(map(width_of, lines)) <= columns
    assert [part.colour for part in lines[0][1:3]] == ["yellow", "yellow"]
    whole = "".join(plain(line)[10:].strip() for line in lines)
    assert whole.replace(" ", "") == plain(told.line).replace(" ", "")


def test_the_live_area_says_what_it_does_and_what_came_of_it() -> None:
    view = RunnerView(Texts("en"), RUNNER, as_json=False, clock=lambda: NOW)

    def area() -> list[str]:
        return [plain(line).strip() for line in view._picture(60)]

    for each in (RunnerNews(NewsKind.CLAIMED, task()), RunnerNews(NewsKind.ENDED, task(status=TaskStatus.COMPLETE))):
        view.hear(each)
    view.hear(RunnerNews(NewsKind.WAITING))
    assert area()[1:] == ["1 complete, 0 with an error, 0 cancelled", "Waiting for tasks …", "Ctrl-C: stop"]
    view.hear(RunnerNews(NewsKind.CLAIMED, task()))
    assert area()[1:] == [
        "00:00  ▶ RQ-1",
        "00:00    setting up the worktree",
        "",
        "1 complete, 0 with an error, 0 cancelled",
        "Ctrl-C: stop after this task",
    ]
    assert all(len(line) < 60 for line in area())
