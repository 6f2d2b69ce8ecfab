"""A night of auto-run as the display hears of it; run as a program, it plays it in front of whatever stdout is."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import click

from aiflow.cli.views.auto import AutoView
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.usage import Usage
from aiflow.domain.auto.session import AutoSession, AutoStatus, Result, Upcoming
from aiflow.domain.auto.stopping import Limits, StopRequest
from aiflow.domain.auto.summary import Summary, Unreached, Waiting
from aiflow.domain.lifecycle import AutoRunState, RunOutcome
from aiflow.domain.next_action import OPEN, ActionKind, NextAction
from aiflow.domain.runs.events import called
from aiflow.domain.runs.run import Run
from aiflow.messages import Texts
from builders import NOW
from run_builders import RUN_ID, at, done, fail, in_step, in_tests, new_run, planning

FIRST = Upcoming(
    "RQ-20251214-008", "ログイン画面のパスワード再設定リンクが切れているのを直し、テストを足す（全ロケール）"
)
SECOND = Upcoming(
    "RQ-20251214-009", "Add a totals row to the CSV export, with tests for every locale [bold]we[/bold] support"
)
THIRD = Upcoming("RQ-3", "Tidy \x1b[2J\x1b]0;mine\x07 the\r\nsettings\u202e page")
LIMITS = Limits(session_runs=10, session_minutes=480, session_cost_usd=5)
BEGUN = AutoSession(started_at=at(0), state=AutoRunState.SELECTING)
RUNNING = replace(BEGUN, state=AutoRunState.RUNNING)
RESULTS = (
    Result(FIRST.request_id, RUN_ID, RunOutcome.AWAITING_ACCEPTANCE, "AWAITING_ACCEPTANCE"),
    Result(SECOND.request_id, "RUN-2", RunOutcome.NEEDS_INPUT, "NEEDS_CLARIFICATION"),
    Result(THIRD.request_id, None, RunOutcome.FAILED, "WORKTREE_DIRTY"),
)
OUTPUT = "=== planner\n\x1b[31mReading\x1b[0m [red]README[/red] 日本語\x07\n".encode()


def first_run() -> Iterator[Run]:
    """The first request's run, one saved change after the other."""
    working = called(in_step(1), Role.IMPLEMENTER)
    again = called(fail(working, "UNIT_TEST_FAILED"), Role.IMPLEMENTER)
    for run in (new_run(), called(planning(), Role.PLANNER), working, again, in_tests(2), done()):
        yield replace(run, request_id=FIRST.request_id, title=FIRST.title)


def statuses() -> dict[str, AutoStatus]:
    """Every way auto-run can stand."""
    waiting = replace(BEGUN, state=AutoRunState.WAITING, results=RESULTS)
    stopping = replace(RUNNING, state=AutoRunState.STOPPING, stop_request=StopRequest.AFTER_RUN)
    return {
        "selecting": AutoStatus(BEGUN),
        "running": AutoStatus(RUNNING, FIRST, (SECOND, THIRD), 7),
        "hostile": AutoStatus(RUNNING, THIRD, (THIRD, SECOND), 2),
        "last": AutoStatus(replace(RUNNING, results=RESULTS, usage=Usage(cost_usd=1.5)), FIRST),
        "watch": AutoStatus(waiting),
        "quota": AutoStatus(waiting, FIRST, (SECOND,), 1, "AGENT_QUOTA"),
        "other": AutoStatus(waiting, None, (SECOND,), 1, "RUN-20260102-030405-bbbbbb, pid 7"),
        "stopping": AutoStatus(stopping, FIRST, (SECOND,), 1),
        "cancelling": AutoStatus(replace(stopping, stop_request=StopRequest.NOW), FIRST),
        "stopped": AutoStatus(replace(stopping, state=AutoRunState.STOPPED)),
    }


def play(view: AutoView, pause: Callable[[], None] = lambda: None) -> None:
    """Let the view hear of a whole night, and of its end."""
    view.observe_auto(AutoStatus(BEGUN))
    view.observe_auto(AutoStatus(BEGUN, interrupted=(THIRD,)))
    view.observe_auto(AutoStatus(RUNNING, FIRST, (SECOND, THIRD), 7))
    for run in first_run():
        view.observe(run)
        view.follow(OUTPUT)
        pause()
    view.observe_auto(AutoStatus(replace(RUNNING, results=RESULTS[:1]), FIRST, (SECOND, THIRD), 7))
    view.observe_auto(AutoStatus(replace(BEGUN, results=RESULTS[:1]), None, (SECOND, THIRD), 2))
    view.observe_auto(AutoStatus(replace(RUNNING, results=RESULTS[:1]), SECOND, (THIRD,), 1))
    pause()
    view.observe_auto(AutoStatus(replace(BEGUN, results=RESULTS)))
    pause()
    view.finish(summary())


def summary(**fields: object) -> Summary:
    """What is there in the morning."""
    session = replace(
        BEGUN,
        state=AutoRunState.STOPPED,
        reason_code="AUTO_FAILED_LIMIT",
        runs=2,
        usage=Usage(cost_usd=1.5),
        results=RESULTS,
        changed_at=at(192),
    )
    question = "Which time zone?\nUTC or the user's own? どちらのタイムゾーンで出力しますか、どちらも考えられます。"
    shown = Summary(
        session,
        done=(FIRST, Upcoming("RQ-7", "Seven")),
        waiting=(
            Waiting(
                FIRST.request_id,
                FIRST.title,
                "AWAITING_ACCEPTANCE",
                "Finished.",
                NextAction(ActionKind.ACCEPT, FIRST.request_id),
            ),
            Waiting(
                SECOND.request_id,
                SECOND.title,
                "NEEDS_CLARIFICATION",
                question,
                NextAction(ActionKind.ANSWER, SECOND.request_id, options=(("answer", OPEN),)),
                is_question=True,
                choices=("UTC", "The user's own"),
            ),
            Waiting(THIRD.request_id, THIRD.title, "WORKTREE_DIRTY", "There are changes."),
        ),
        unreached=(
            Unreached(
                "RQ-20251214-011", SECOND.title, "DEPENDS_NOT_DONE", f"depends_on: {SECOND.request_id} is not done"
            ),
            Unreached("RQ-12", THIRD.title, "AUTO_FAILED_LIMIT", "auto-run had stopped\nbefore"),
        ),
    )
    return replace(shown, **fields)  # type: ignore[arg-type]


def main(how: str, language: str) -> None:
    """Play the night as a program, slowly and with Ctrl-C, at once, or at length; then say what a test wants to know."""
    began = time.monotonic()
    view = AutoView(Texts(language), is_quiet=False, limits=LIMITS)

    def pause() -> None:
        if how == "slow":
            signal.raise_signal(signal.SIGINT)
            if sys.stdout.isatty():
                click.echo("said by somebody else")
            time.sleep(0.12)

    with view:
        signal.signal(signal.SIGINT, lambda _number, _frame: view.stopping("hereby stopping"))
        if how == "long":
            for number in range(3000):
                view.observe_auto(AutoStatus(RUNNING, Upcoming(f"RQ-{number}", "x" * 60)))
            told = time.monotonic() - began
        else:
            play(view, pause)
            told = 0
    total = time.monotonic() - began
    facts = {"told": told, "total": total, "rich": "rich" in sys.modules}
    os.write(2, json.dumps(facts).encode() + b"\n")
    os._exit(0)


def clock(minutes: float = 5) -> Callable[[], datetime]:
    """A clock that stands still."""
    return lambda: NOW + timedelta(minutes=minutes)


if __name__ == "__main__":
    main(*sys.argv[1:])
