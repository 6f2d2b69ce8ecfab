"""What the page and the API can have a worker do (API-1): as the command that a person would type.

What a person wrote stands behind `--` and is never taken for an option; what no command line can carry is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import ActivityKind, Actor
from aiflow.domain.issue_ways import is_issue
from aiflow.domain.lifecycle import ACTIVE_RUN_STATES, AutoRunEvent
from aiflow.domain.request import RequestId, is_valid_id, normalize_id
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.errors import AiflowError, BadInputError, NotFoundError
from aiflow.messages.details import words
from aiflow.usecases.runs.answer_issue import answer_issue, is_answered_there
from aiflow.usecases.runs.find import find_run_of
from aiflow.usecases.runs.resume import ResumeWish, decide
from aiflow.usecases.server.start_work import Entry, WorkOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiflow.domain.runs.run import Run
    from aiflow.ports.sources import RequestSource
    from aiflow.usecases.engine import Engine

MOST_CHARACTERS = 20_000


class Resumption(NamedTuple):
    """How a run is to continue: D34 §4.2, with an answer, a person's edits kept, and the base merged in."""

    mode: ResumeMode = ResumeMode.RESUME
    target_step_id: str | None = None
    force: bool = False
    answer: str | None = None
    keep_changes: bool = False
    update: bool = False
    no_baseline: bool = False


class LeftOut(NamedTuple):
    """What a run that begins leaves out: planner and reviewer, or the tests of its base."""

    quick: bool = False
    no_baseline: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """The options as they are typed."""
        given = {"--quick": self.quick, "--no-baseline": self.no_baseline}
        return tuple(name for name, is_given in given.items() if is_given)


class AutoWishes(NamedTuple):
    """How far an auto-run may go, and whether it waits for more."""

    watch: bool = False
    until: str | None = None
    max_runs: int | None = None
    max_minutes: int | None = None
    max_cost_usd: float | None = None


def run_order(source: RequestSource, request_id: str, person: str, how: LeftOut = LeftOut()) -> WorkOrder:  # noqa: B008
    """Have a request run; of one that is not there no worker is started."""
    known = _id(request_id)
    try:
        source.load(known)
    except NotFoundError:
        raise
    except AiflowError:
        pass  # the worker checks all of it and reports what else is wrong
    return WorkOrder(command("run", known, options=how.options), person, entered(known), known)


def resume_order(engine: Engine, request_id: str, run_id: str, how: Resumption, person: str) -> WorkOrder:
    """Have a run continue, or be replaced by a new one."""
    run = find_run_of(engine, request_id, run_id)
    _check(how)
    if how.mode is ResumeMode.RESUME and how.target_step_id and not run.is_active:
        # There is one place where a run continues: another one is refused, as everywhere (D34 §6.1).
        goal = Goal(how.mode, how.target_step_id.upper(), is_forced=how.force)
        decide(engine, run, ResumeWish(goal, how.answer, how.keep_changes))
    if is_issue(run.request_id) and not run.is_active:
        return _retry_order(engine, run, how, person)
    is_replan = how.mode is ResumeMode.REPLAN
    is_begun = entered(run.request_id, run_id if is_replan else None)
    return WorkOrder(_resume_line(run.run_id, how), person, is_begun, run.request_id)


def _retry_order(engine: Engine, run: Run, how: Resumption, person: str) -> WorkOrder:
    """Have an issue tried again: the answer is posted before anything starts, so that it is never lost (ISS-6)."""
    if not is_answered_there(run, how.answer):
        decide(engine, run, ResumeWish(Goal(how.mode), how.answer))
    answer_issue(engine, run, how.answer or "")
    line = command("run", run.request_id, options=LeftOut(no_baseline=how.no_baseline).options)
    return WorkOrder(line, person, entered(run.request_id, run.run_id), run.request_id)


def auto_order(wishes: AutoWishes, person: str) -> WorkOrder:
    """Have the backlog worked through."""
    given = {
        "--until": wishes.until,
        "--max-runs": wishes.max_runs,
        "--max-minutes": wishes.max_minutes,
        "--max-cost": wishes.max_cost_usd,
    }
    flags = ("--watch",) if wishes.watch else ()
    named = tuple(f"{name}={value}" for name, value in given.items() if value is not None)
    return WorkOrder(("auto", *flags, *named), person, _is_auto_begun, refusal=_never_began)


def accept_line(engine: Engine, request_id: str) -> tuple[str, ...]:
    """Have a request's last attempt accepted."""
    return command("accept", engine.source.load(_id(request_id)).id)


def undo_line(engine: Engine, request_id: str) -> tuple[str, ...]:
    """Have the acceptance of a request's last attempt undone."""
    return command("undo", engine.source.load(_id(request_id)).id)


def entered(request_id: str, other_than: str | None = None) -> Callable[[Entry], bool]:
    """Return a check of journal entries for a run of a request at work; `other_than` is one that is replaced."""

    def is_begun(entry: Entry) -> bool:
        run_id, data = entry.get("run_id"), entry.get("data")
        is_ours = entry.get("request_id") == request_id and entry.get("kind") == ActivityKind.TRANSITION
        is_at_work = isinstance(data, dict) and data.get("to") in ACTIVE_RUN_STATES
        return is_ours and is_at_work and isinstance(run_id, str) and run_id != other_than

    return is_begun


def command(name: str, *typed: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return a command line of ours."""
    return (name, *options, "--", *typed) if typed else (name, *options)


def _resume_line(run_id: str, how: Resumption) -> tuple[str, ...]:
    flags = {"--keep-changes": how.keep_changes, "--update": how.update, "--force": how.force}
    flags["--no-baseline"] = how.no_baseline
    options = [name for name, is_given in flags.items() if is_given]
    options += [f"--answer={how.answer}"] if how.answer is not None else []
    if how.mode is ResumeMode.RESUME:
        return command("resume", run_id, options=options)
    if how.mode is ResumeMode.RETRY_STEP:
        return command("retry-step", run_id, *filter(None, [how.target_step_id]), options=options)
    # A new plan is what `force` would override the advice for.
    return command("replan", run_id, options=[name for name in options if name != "--force"])


def _check(how: Resumption) -> None:
    """Refuse what makes no sense together, and what cannot be passed to a process."""
    is_replan = how.mode is ResumeMode.REPLAN
    for is_wrong, key in (
        (how.update and how.mode is not ResumeMode.RESUME, "api.only_resume"),
        (how.keep_changes and is_replan, "api.not_replan"),
        (how.target_step_id is not None and is_replan, "api.not_replan"),
        (not all(map(_is_sayable, filter(None, (how.answer, how.target_step_id)))), "api.not_text"),
        (len(how.answer or "") > MOST_CHARACTERS, "api.too_long"),
    ):
        if is_wrong:
            raise BadInputError(detail=words(key, limit=MOST_CHARACTERS))


def _is_sayable(text: str) -> bool:
    """Return whether a command line can have a text in it."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _id(request_id: str) -> RequestId:
    """Return an id that a request can have; of another there is none."""
    if not is_valid_id(request_id):
        raise NotFoundError(request_id=request_id)
    return normalize_id(request_id)


def _is_auto_begun(entry: Entry) -> bool:
    data = entry.get("data")
    is_started = isinstance(data, dict) and data.get("event") == AutoRunEvent.STARTED
    return is_started and entry.get("kind") == ActivityKind.TRANSITION and entry.get("actor") == Actor.AUTO_RUN


def _never_began(answer: Entry) -> AiflowError | None:
    """Return why an auto-run that has ended never worked: the doctor did not let it."""
    code = answer.get("reason_code")
    if code != "DOCTOR_FAILED":
        return None
    checks = answer.get("checks")
    told = [each for each in checks if isinstance(each, dict)] if isinstance(checks, list) else []
    failed = [each for each in told if each.get("result") == "FAIL"]
    detail = "\n".join(str(each.get("message", "")) for each in failed)
    return AiflowError(reason_code=str(code), detail=detail, checks=[each.get("reason_code") for each in failed])
