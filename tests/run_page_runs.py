"""Runs in every state that their page can show, written into a checkout."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.plan import PlanStep
from aiflow.domain.agents.usage import Usage
from aiflow.domain.request import RequestId
from aiflow.domain.runs.agent_events import quota_reached
from aiflow.domain.runs.course import Course
from aiflow.domain.runs.events import (
    BASELINE,
    accepted,
    accepting,
    asked,
    called,
    cancelled,
    failure,
    not_accepted,
    noted,
    replaced,
    sent_back,
    stopped,
)
from aiflow.domain.runs.quota import QuotaPatience
from aiflow.domain.runs.run import Run, RunError
from aiflow.usecases.engine import Engine
from aiflow.usecases.runs.locks import take_lock
from real_engine import engine_at, keep
from run_builders import at, done, fail, in_step, in_tests, planning, why

NEWER = "RUN-20260103-000000-bbbbbb"
HOSTILE = "<script>alert(1)</script>\"'>&{{ 7*7 }}<img src=x onerror=alert(1)>"


def _asked(question: str, *choices: str) -> Run:
    error = RunError("NEEDS_CLARIFICATION", question, question=question, choices=choices)
    return asked(called(in_step(), Role.IMPLEMENTER), Role.IMPLEMENTER, error, at(12))


def _tests_failed(times: int = 2) -> Run:
    run = in_tests(2)
    for _ in range(times - 1):
        run = fail(run, "QA_REJECTED")
        run = replace(called(run, Role.IMPLEMENTER))
    why_not = why("UNIT_TEST_FAILED", "2 tests failed", command="python3 -m unittest -q", exit_code=1, step_id="S02")
    return stopped(run, why_not, at(40))


def _waiting() -> Run:
    run = called(in_step(2), Role.IMPLEMENTER)
    return quota_reached(run, Role.IMPLEMENTER, why("AGENT_QUOTA", "5-hour limit"), (at(90), QuotaPatience(9)), at(12))


def _lied() -> Run:
    """A run every word of which somebody else wrote, and meant ill."""
    plan = (PlanStep("S01", HOSTILE, HOSTILE, (HOSTILE,), ("unit",)),)
    run = in_step(1, plan)
    error = RunError("NEEDS_CLARIFICATION", HOSTILE, question=HOSTILE, choices=(HOSTILE, "javascript:alert(1)"))
    run = asked(called(run, Role.IMPLEMENTER), Role.IMPLEMENTER, error, at(12))
    return replace(run, title=HOSTILE, agent=HOSTILE, place=replace(run.place, branch=f"aiflow/{HOSTILE}"))


def _base_red() -> Run:
    """A run that stopped because its base fails its tests."""
    run = noted(replace(planning(), course=Course(has_baseline=True)), BASELINE, at(2))
    return stopped(run, why("BASE_TESTS_FAILED", "make test: exit code 1"), at(4))


MADE: dict[str, Callable[[], Run]] = {
    "planning": lambda: called(planning(), Role.PLANNER),
    "running": lambda: replace(called(in_step(2), Role.IMPLEMENTER), usage=Usage(3, 80_000, 0, 4_210, 0.41, 900)),
    "waiting": _waiting,
    "question": lambda: _asked("Which word shall mark what is overdue?", "late", "overdue", "!"),
    "tests_failed": _tests_failed,
    "retried_out": lambda: stopped(
        replace(in_tests(2), steps={**in_tests(2).steps, "S02": replace(in_tests(2).steps["S02"], retries=3)}),
        why("AGENT_FAILED", "exit code 1", step_id="S02"),
        at(40),
    ),
    "over_the_limit": lambda: fail(fail(in_tests(2), "UNIT_TEST_FAILED"), "UNIT_TEST_FAILED"),
    "too_large": lambda: stopped(
        in_tests(2), why("STEP_TOO_LARGE", "31 > 20 limits.step_files", step_id="S02"), at(40)
    ),
    "disk_full": lambda: stopped(in_step(2), why("DISK_FULL", "No space left on device"), at(40)),
    "settings": lambda: stopped(in_step(2), why("SETTINGS_INVALID", "aiflow.toml: 3"), at(40)),
    "cancelled": lambda: cancelled(called(in_step(2), Role.IMPLEMENTER), at(13)),
    "auto_cut_off": lambda: stopped(in_step(2), why("AUTO_CUT_OFF", ""), at(40)),
    "done": lambda: replace(done(), usage=Usage(7, 180_000, 0, 9_000, 1.72, 3120)),
    "conflicting": lambda: not_accepted(
        accepting(done(), at(30)), failure(done(), "MERGE_CONFLICT", "todo.py"), at(31)
    ),
    "accepted": lambda: accepted(accepting(done(), at(30)), "c0ffee0123456789", at(31)),
    "failed": lambda: stopped(in_step(2), why("INTERNAL_ERROR", "KeyError"), at(40)),
    "sent_back": lambda: sent_back(done(), "Not like this.", at(50)),
    "replaced": lambda: replaced(_tests_failed(), NEWER, at(60)),
    "hostile": _lied,
    "base_red": _base_red,
}
REQUESTS = {name: f"RQ-{number}" for number, name in enumerate(MADE, 1)}
WORKED_ON = ("planning", "running", "waiting")


def id_of(name: str) -> str:
    """Return the id of a run."""
    return f"RUN-20260102-0304{list(MADE).index(name):02}-aaaaaa"


def path_of(name: str) -> str:
    """Return where its page is."""
    return f"/requests/{REQUESTS[name]}/runs/{id_of(name)}"


def write_run(root: Path, name: str, *, status: str = "blocked") -> Run:
    """Write a run and its request into a checkout."""
    request_id, run_id = REQUESTS[name], id_of(name)
    run = MADE[name]()
    status = {"accepted": "done", "sent_back": "ready"}.get(name, "running" if name in WORKED_ON else status)
    folder = root / "requests"
    folder.mkdir(exist_ok=True)
    # What is not a request's own name is in its run only.
    (folder / f"{request_id}.md").write_text(f"---\ntitle: The {name} one\nstatus: {status}\n---\nDo it.\n")
    branch = run.place.branch.replace("RQ-1/RUN-20260102-030405-aaaaaa", f"{request_id}/{run_id}")
    place = replace(run.place, run_id=run_id, branch=branch, path=f"/w/{run_id}", base_commit=_commit(root))
    title = run.title if name == "hostile" else f"The {name} one"
    return keep(engine_at(root), replace(run, request_id=request_id, run_id=run_id, place=place, title=title))


def _commit(root: Path) -> str:
    found = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return found or "base"


def write_log(engine: Engine, run: Run, number: int, title: str, text: str | bytes) -> None:
    """Add to one of its logs as a step does."""
    log = engine.runs.open_log(run, number, title)
    log.write(text.encode() if isinstance(text, str) else text)
    log.close()


@contextlib.contextmanager
def worked_on(root: Path, *names: str) -> Iterator[None]:
    """Work on runs while the block lasts: hold their locks, as a process that lives."""
    engine = engine_at(root)
    with contextlib.ExitStack() as held:
        for name in names:
            lease = take_lock(engine, RequestId(REQUESTS[name]), id_of(name), beside_others=True)
            held.callback(lease.release)
        yield
