"""A night of auto-run as a busy project has it, written into a checkout: what the READMEs' pictures show."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from aiflow.adapters.locks.taking import LockTaking
from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.plan import PlanStep
from aiflow.domain.agents.usage import Usage
from aiflow.domain.auto.asleep import SLEPT
from aiflow.domain.auto.session import AutoSession
from aiflow.domain.lifecycle import AutoRunState
from aiflow.domain.request import RequestId
from aiflow.domain.runs.events import (
    accepted,
    accepting,
    asked,
    called,
    implemented,
    reported,
    step_done,
    stopped,
)
from aiflow.domain.runs.run import Happening, Run, RunError
from aiflow.domain.runs.worktree import Place
from aiflow.wiring import project_at
from builders import write_request
from e2e.bench import git
from real_engine import engine_at, keep
from run_builders import CHANGES, at, in_step, ready_to_commit, why
from run_page_runs import write_log

MORNING = datetime(2026, 11, 17, 7, 14, tzinfo=UTC)
DAYS_BEFORE = 13


class Entry(NamedTuple):
    """One request: its titles, English and Japanese, and when its run worked, by minutes before the morning."""

    number: int
    priority: str
    titles: tuple[str, str]
    begin: int = 0
    end: int = 0
    cost: float = 0.0
    more: str = ""


DONE = (
    Entry(2, "P1", ("Give things a due date", "期日を付けられるようにする"), 572, 551, 0.62),
    Entry(
        6,
        "P0",
        ("A number that is not in the list must not crash", "一覧にない番号で落ちないようにする"),
        550,
        537,
        0.38,
    ),
    Entry(9, "P1", ("Write the file in one go", "ファイルを一度に書き込む"), 530, 488, 1.46),
    Entry(1, "P2", ("Say how much is left to do", "残りの件数を表示する"), 446, 425, 0.55),
    Entry(14, "P2", ("Search in the list", "一覧を検索する"), 213, 159, 1.64),
    Entry(15, "P2", ("Repeat things every week or month", "毎週・毎月の繰り返しに対応する"), 159, 84, 2.21),
    Entry(
        16,
        "P2",
        ("Colours in the terminal, unless NO_COLOR is set", "端末で色を付ける（NO_COLOR があれば付けない）"),
        84,
        16,
        1.97,
    ),
)
ASKED = Entry(4, "P1", ("Mark what is overdue", "期日を過ぎたものに印を付ける"), 537, 530, 0.21)
FAILED = Entry(3, "P1", ("List first what is due first", "期日の近い順に並べる"), 488, 446, 1.38)
FINISHED = Entry(10, "P1", ("Undo the last change", "直前の変更を元に戻す"), 425, 213, 1.72)
AT_WORK = Entry(11, "P1", ("Import a list from a CSV file", "CSV ファイルから取り込む"), 16, 0, 0.27)
# Two minutes into its work, the agent's quota was used up.
QUOTA = (timedelta(minutes=423), timedelta(minutes=265))
# While the last but one of the night's runs was at work, the machine slept.
SLEPT_FROM, SLEPT_TO = 66, 41
READY = (
    Entry(13, "P1", ("Export the list as CSV", "一覧を CSV で書き出す")),
    Entry(17, "P1", ("Accept dates like “tomorrow”", "「明日」のような日付を受け付ける")),
    Entry(18, "P2", ("Fix the typo in the README", "README の誤字を直す")),
    Entry(19, "P2", ("Show the version", "バージョンを表示する")),
)
HELD_UP = (
    Entry(7, "P1", ("Print the list as a web page", "一覧を Web ページとして出力する"), more="depends_on: [TODO-12]"),
    Entry(5, "P2", ("List only what is overdue", "期日を過ぎたものだけを一覧にする"), more="depends_on: [TODO-4]"),
)
ALL = (*DONE, ASKED, FAILED, FINISHED, AT_WORK, *READY, *HELD_UP)
QUESTION = {
    "en": ("Which word shall mark what is overdue in the list?", ("late", "overdue", "!")),
    "ja": ("期日を過ぎたものには、一覧でどんな印（文字）を付けますか。", ("期限切れ", "遅れ", "！")),
}
STEPS = {
    "en": ("Find the file", "Read the columns", "Add the things", "Say what was left out"),
    "ja": ("ファイルを探す", "列を読み取る", "一覧に加える", "読めなかった行を伝える"),
}
FAILED_STEPS = {
    "en": ("Read the due dates", "Sort by the due date", "Describe it in the README"),
    "ja": ("期日を読み取る", "期日順に並べる", "README に書く"),
}
TEST = "test_what_is_due_first_comes_first_and_numbers_stay"
FAILURE = f"""FAIL: {TEST}
  tests/test_order.py:10  self.assertEqual(shown, ["3", "2", "1"])
AssertionError: Lists differ: ['1', '3', '2'] != ['3', '2', '1']"""
AT_WORK_ON_IT = """$ git log --oneline -3
Read listing.py
Read tests/test_order.py
Edit listing.py
$ python3 -m unittest -q tests.test_list
Ran 6 tests in 0.180s

OK
"""
RAN = "Ran 8 tests in 0.247s\nFAILED (failures=1)\n"
UNDO = {"todo.py": 31, "undo.py": 38, "tests/test_undo.py": 26, "README.md": 1}


@contextlib.contextmanager
def night_in(root: Path, language: str) -> Iterator[None]:
    """Write a night into a checkout, and be its auto-run while the block lasts."""
    locks = LockTaking(str(root), 1800, lambda: _before(AT_WORK.begin))
    with contextlib.ExitStack() as held:  # from the start: a server would go on with what nobody holds
        for lease in (
            locks.acquire_queue(),
            locks.acquire_request(RequestId(f"TODO-{AT_WORK.number}"), _run_id(AT_WORK)),
        ):
            held.callback(lease.release)  # type: ignore[union-attr]
        night = _Night(root, language)
        night.write_requests()
        night.write_days_before()
        for entry in DONE:
            night.keep_done(entry)
        night.keep_waiting()
        night.keep_running()
        night.write_journal()
        yield


class _Night:
    """Writes the parts of a night."""

    def __init__(self, root: Path, language: str) -> None:
        self._root, self._engine, self._language = root, engine_at(root), language
        self._base = git(root, "rev-parse", "HEAD")

    def write_requests(self) -> None:
        """Write every request with how it stands in the morning."""
        status = {entry.number: "done" for entry in DONE} | {AT_WORK.number: "running"}
        status |= {entry.number: "blocked" for entry in (ASKED, FAILED, FINISHED)}
        for entry in ALL:
            lines = f"title: {self._title(entry)}\npriority: {entry.priority}\n"
            lines += f"status: {status.get(entry.number, 'ready')}\n{entry.more}\n"
            write_request(self._root, f"TODO-{entry.number}", f"---\n{lines}---\n\n{self._title(entry)}\n")

    def write_days_before(self) -> None:
        """Write what the days before came to, a few runs each, the same ones every time."""
        chance = random.Random(14)
        for day in range(1, DAYS_BEFORE + 1):
            for number in range(0 if day == 9 else chance.randrange(3, 9)):
                entry = Entry(100 + 10 * day + number, "P2", ("Before", "以前"))
                minutes = 1440 * day + 10 + 40 * number
                length, fate = chance.randrange(12, 60), chance.choices("dwf", (16, 4, 1))[0]
                entry = entry._replace(begin=minutes, end=minutes - length, cost=length * 0.03)
                run = _done() if fate == "d" else stopped(in_step(2), why(_CODES[fate]), MORNING)
                self._keep(entry, run, "REPORTED" if fate == "d" else "NEEDS_INPUT" if fate == "w" else "FAILED")

    def keep_done(self, entry: Entry) -> None:
        """Write a run that was accepted."""
        self._keep(entry, _done(), "REPORTED")

    def keep_waiting(self) -> None:
        """Write the runs that wait for a person: a question, tests that fail, work to be accepted."""
        question, choices = QUESTION[self._language]
        error = RunError("NEEDS_CLARIFICATION", question, question=question, choices=choices)
        self._keep(ASKED, asked(called(in_step(), Role.IMPLEMENTER), Role.IMPLEMENTER, error, MORNING), "NEEDS_INPUT")
        failure = why("UNIT_TEST_FAILED", "1 of 8", step_id="S02", stderr_snippet=FAILURE)
        plan = tuple(PlanStep(f"S{n:02}", title) for n, title in enumerate(FAILED_STEPS[self._language], 1))
        tested = implemented(called(in_step(2, plan), Role.IMPLEMENTER), CHANGES, "", at(10))
        run = self._keep(FAILED, stopped(tested, failure, at(14)), "", is_told=True)
        write_log(self._engine, run, 2, "implementer S02 attempt 1", AT_WORK_ON_IT)
        write_log(self._engine, run, 2, "unit tests: python3 -m unittest -q", f"{FAILURE}\n\n{RAN}")
        self._commit_undo()
        done = reported(step_done(ready_to_commit(in_step(3)), git(self._root, "rev-parse", "undo"), MORNING), MORNING)
        self._keep(FINISHED, done, "REPORTED", QUOTA)

    def keep_running(self) -> None:
        """Write the run that is at work."""
        plan = tuple(PlanStep(f"S{n:02}", title) for n, title in enumerate(STEPS[self._language], 1))
        run = self._keep(AT_WORK, called(in_step(2, plan), Role.IMPLEMENTER), "")
        write_log(self._engine, run, 2, "implementer S02 attempt 1", "$ python3 -m unittest -q tests.test_csv_import\n")

    def write_journal(self) -> None:
        """Say that auto-run began in the evening and is at work."""
        began = _before(573)
        entry = Activity(began, ActivityKind.TRANSITION, Actor.AUTO_RUN, data={"event": "started"})
        slept = {"event": SLEPT, "seconds": 60 * (SLEPT_FROM - SLEPT_TO)}
        awake = Activity(_before(SLEPT_TO), ActivityKind.TRANSITION, Actor.AUTO_RUN, data=slept)
        project = project_at(str(self._root))
        project.journal.append(entry)
        project.journal.append(awake)
        session = AutoSession(began, len(DONE) + 4, len(DONE), state=AutoRunState.RUNNING, began_at=began)
        project.auto_records.save(session)

    def _title(self, entry: Entry) -> str:
        return entry.titles[self._language == "ja"]

    def _keep(
        self,
        entry: Entry,
        run: Run,
        end: str,
        quota: tuple[timedelta, timedelta] | None = None,
        *,
        is_told: bool = False,
    ) -> Run:
        """Write a run with the times of the night in place of its own; `is_told` where all of its history matters."""
        begin = _before(entry.begin)
        request_id, run_id = f"TODO-{entry.number}", _run_id(entry)
        branch = "undo" if entry is FINISHED else f"aiflow/{request_id}/{run_id}"
        error = run.error.reason_code if run.error else None
        history = [Happening(begin, "PLANNING_STARTED")]
        if quota is not None:
            history += (
                Happening(MORNING - at, event) for at, event in zip(quota, ("QUOTA_WAIT", "QUOTA_BACK"), strict=True)
            )
        if is_told:
            first, last = run.history[0].at, run.history[-1].at
            scale = timedelta(minutes=entry.begin - entry.end) / (last - first)
            history = [replace(each, at=begin + (each.at - first) * scale) for each in run.history]
        if end:
            history.append(Happening(_before(entry.end), end, reason_code=error))
        seconds = 60.0 * (entry.begin - entry.end)
        if quota is not None:
            seconds -= (quota[0] - quota[1]).total_seconds()
        return keep(
            self._engine,
            replace(
                run,
                request_id=request_id,
                run_id=run_id,
                place=Place(run_id, f"/w/{run_id}", branch, "main", self._base),
                created_at=begin,
                title=self._title(entry),
                agent="claude",
                usage=Usage(5, 200_000, 0, 9_000, entry.cost, seconds),
                history=tuple(history),
            ),
        )

    def _commit_undo(self) -> None:
        """Make the branch whose diff waits to be accepted."""
        git(self._root, "switch", "-qc", "undo")
        for name, lines in UNDO.items():
            path = self._root / name
            path.parent.mkdir(exist_ok=True)
            kept = path.read_text().splitlines() if path.exists() else []
            path.write_text(
                "\n".join([*kept[: -6 if name == "todo.py" else None], *(f"# {n}" for n in range(lines))]) + "\n"
            )
            git(self._root, "add", name)
        git(self._root, "commit", "-qm", "Undo")
        git(self._root, "switch", "-q", "main")


_CODES = {"w": "UNIT_TEST_FAILED", "f": "INTERNAL_ERROR"}


def _done() -> Run:
    run = reported(step_done(ready_to_commit(in_step(3)), "commit-3", MORNING), MORNING)
    return accepted(accepting(run, MORNING), "c0ffee0123456789", MORNING)


def _run_id(entry: Entry) -> str:
    return f"RUN-{_before(entry.begin):%Y%m%d-%H%M%S}-a41c{entry.number % 100:02}"


def path_to(entry: Entry) -> str:
    """Return where a run of the night is."""
    return f"/requests/TODO-{entry.number}/runs/{_run_id(entry)}"


def _before(minutes: int) -> datetime:
    return MORNING - timedelta(minutes=minutes)
