"""What a run's page shows below its head: the log, the changes, the report or the plan of a step (DESIGN §2, §4)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from aiflow.domain.lifecycle import RunState
from aiflow.domain.runs.log_marks import with_looks
from aiflow.domain.runs.log_names import BASELINE_LOG, PLANNER_LOG, log_name
from aiflow.domain.runs.timeline import BASELINE, PLAN, REPORT
from aiflow.errors import AiflowError
from aiflow.usecases.runs.diff import diff_run
from aiflow.usecases.runs.report import read_report
from aiflow.web.drawing import is_part, run_path
from aiflow.web.text.diff import view_diff
from aiflow.web.text.log_lines import view_log
from aiflow.web.text.markdown import render_markdown, without_title

if TYPE_CHECKING:
    from starlette.requests import Request as HttpRequest

    from aiflow.domain.agents.plan import PlanStep
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.worktree import RunDiff
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.runs.look import RunLook
    from aiflow.web.text.diff import DiffView
    from aiflow.web.text.log_lines import LogView
    from aiflow.web.text.markdown import MarkdownView

# Where an end of the run begins, for aiflow itself.
_OWN_MARK = re.compile(r"^<!-- aiflow:end [^\n]*-->\n", re.MULTILINE)
_OTHER_LOGS = {PLAN: PLANNER_LOG, BASELINE: BASELINE_LOG}
VIEWS = ("log", "diff", "report", "plan")
# Without a script the end of a log is enough to see why it stopped; the rest is one link away.
SHOWN_LINES = 500
SHOWN_BYTES = 200_000


class Chosen(NamedTuple):
    """Which step and view the address names; `step` is empty where all of the run is meant."""

    step: str
    view: str
    here: str
    # The steps before and after it, for `[` and `]`.
    before: str | None = None
    behind: str | None = None

    def link(self, step: str | None = None, view: str | None = None) -> str:
        """Return the address of another step or view of the same run."""
        named = {"step": self.step if step is None else step, "view": view or self.view}
        return f"{self.here}?{urlencode({name: value for name, value in named.items() if value})}"


class LogPane(NamedTuple):
    """A log: where its text is, and, for a browser without a script, its last lines."""

    number: int
    at: str
    api: str
    is_there: bool
    may_grow: bool
    tail: LogView | None = None
    is_cut: bool = False


class DiffPane(NamedTuple):
    """What changed, as git reported it and as it is drawn."""

    diff: RunDiff
    view: DiffView


class PlannedStep(NamedTuple):
    """A step of the plan with its instructions as HTML."""

    step: PlanStep
    text: MarkdownView


Pane = LogPane | DiffPane | tuple[PlannedStep, ...]


def choose(look: RunLook, step: str, view: str) -> Chosen:
    """Choose what is shown: what the address names, else what a person most likely wants to see."""
    run = look.run
    names = [stage.name for stage in look.stages]
    known = {name.lower(): name for name in names}
    wanted = known.get(step.lower(), "")
    view = view if view in VIEWS else _usual_view(run, wanted)
    if not wanted and view == "log":
        wanted = _where(look)
    if view == "diff":  # only steps change anything
        names = [step.id for step in run.plan]
    at = names.index(wanted) if wanted in names else None
    before = names[at - 1] if at else None
    behind = next(iter(names[0 if at is None else at + 1 :]), None)
    return Chosen(wanted, view, run_path(run.request_id, run.run_id), before, behind)


def _usual_view(run: Run, step: str) -> str:
    if step == REPORT:
        return "report"
    if run.state is RunState.DONE:
        return "diff"
    return "report" if run.state is RunState.FAILED else "log"


def _where(look: RunLook) -> str:
    """Return the step that a run is in."""
    run = look.run
    at = next((stage.name for stage in look.stages if stage.name == BASELINE), None)
    if at and run.needs_baseline:
        return at
    if run.current_step is not None:
        return run.current_step.id
    return run.plan[-1].id if run.plan else PLAN


def draw_pane(http: HttpRequest, engine: Engine, look: RunLook, chosen: Chosen) -> Pane | MarkdownView | None:
    """Read and draw the chosen view."""
    if chosen.view == "log":
        return _log(engine, look, chosen, is_whole=not is_part(http))
    if chosen.view == "diff":
        return _diff(engine, look.run, chosen)
    if chosen.view == "report":
        text = read_report(engine, look.run)[1]
        return render_markdown(_OWN_MARK.sub("", text)) if text else None
    return tuple(
        PlannedStep(step, render_markdown(without_title(step.instructions, step.title))) for step in look.run.plan
    )


def _log(engine: Engine, look: RunLook, chosen: Chosen, *, is_whole: bool) -> LogPane:
    """Show a log's end, for a browser that has no viewer; a script that fetches the page again has one."""
    run = look.run
    number = next((step.number for step in run.plan if step.id == chosen.step), None)
    if number is None:
        number = _OTHER_LOGS.get(chosen.step, run.plan[-1].number if run.plan else PLANNER_LOG)
    at = f"{run_path(run.request_id, run.run_id)}/logs/{log_name(number)}"
    pane = LogPane(number, at, f"/api{at}", number in look.logs, look.around.is_worked_on)
    if not is_whole or not pane.is_there:
        return pane
    _, size = engine.runs.read_log(run, number, 0, 1) or (b"", 0)
    start = max(0, size - SHOWN_BYTES)
    data, _ = engine.runs.read_log(run, number, start, SHOWN_BYTES) or (b"", 0)
    is_cut = size > SHOWN_BYTES
    marks = engine.runs.log_marks(run, number, start, start + len(data))
    text = with_looks(data, start, marks).decode("utf-8", "replace")
    tail = view_log(text.split("\n", 1)[-1] if is_cut else text, most=SHOWN_LINES)
    return pane._replace(tail=tail, is_cut=is_cut or tail.left_out > 0)


def _diff(engine: Engine, run: Run, chosen: Chosen) -> DiffPane | None:
    step = chosen.step if any(planned.id == chosen.step for planned in run.plan) else None
    if chosen.step in _OTHER_LOGS:
        return None
    try:
        diff = diff_run(engine, run, step)
    except AiflowError:
        return None
    return DiffPane(diff, _drawn(diff))


@lru_cache(maxsize=8)
def _drawn(diff: RunDiff) -> DiffView:
    """Draw a diff once: the page asks for it again whenever something happens."""
    return view_diff(diff)
