"""A runner as the person in front of the terminal sees it: what it waits for, each task's begin and end, and its run.

On a terminal lines scroll up above a live area; elsewhere there are only lines, each with its time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.cli.terminal.lines import GREY, Line, LinePart, broken, fitted, local_now
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import terminal_width
from aiflow.cli.views.auto import AutoView
from aiflow.cli.views.auto_area import AutoScene, row, run_lines
from aiflow.cli.views.auto_lines import Teller, ToldOnce
from aiflow.domain.auto.session import Upcoming
from aiflow.domain.auto.stopping import Limits
from aiflow.domain.lifecycle import RunOutcome, TaskStatus
from aiflow.domain.queue.next_step import next_step
from aiflow.domain.queue.task import TaskAction
from aiflow.domain.runs.stopped import recommended
from aiflow.messages.commands import as_plain, command_line
from aiflow.usecases.runner.desk import NewsKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from aiflow.domain.queue.runner import Runner
    from aiflow.domain.queue.task import Task
    from aiflow.domain.runs.run import Run
    from aiflow.messages import Texts
    from aiflow.usecases.runner.desk import RunnerNews

_MARKS = {
    TaskStatus.COMPLETE: ("✓", "green"),
    TaskStatus.ERROR: ("!", "yellow"),
    TaskStatus.CANCELLED: ("–", GREY),
}
_COLOURS = {
    NewsKind.HELD_UP: "yellow",
    NewsKind.LOST: "red",
    NewsKind.RECOVERING: "yellow",
    NewsKind.REAPED: "yellow",
    NewsKind.STORE_AWAY: "red",
    NewsKind.WAITING: GREY,
}
ACCEPTED = "auto.outcome.accepted"
_PUT_DOWN = (NewsKind.ENDED, NewsKind.LOST)
_STILL = frozenset({NewsKind.WAITING, NewsKind.HELD_UP, NewsKind.STORE_AWAY})


def task_name(task: Task, texts: Texts) -> str:
    """Say what a task is about: what is to be done, and with which request."""
    about = "" if task.action is TaskAction.AUTO_RUN else f" {task.request_id}"
    return f"{texts(f'runner.action.{task.action}')}{about}"


class RunnerView(AutoView):
    """Shows a runner; a closed output does not affect the runner."""

    def __init__(
        self, texts: Texts, runner: Runner, *, as_json: bool, clock: Callable[[], datetime] = local_now
    ) -> None:
        super().__init__(texts, is_quiet=as_json, clock=clock)
        self._runner = runner
        self._as_json = as_json
        self._task: Task | None = None
        self._has_task = False
        self._since: datetime | None = None
        self._still: str | None = None
        self._counts: Counter[TaskStatus] = Counter()

    def asked_to_stop(self, *, is_now: bool) -> None:
        """Say at once what becomes of the task at work, if there is one; a signal handler may call this."""
        key = "runner.stops" if not self._has_task else "runner.stops_now" if is_now else "runner.stops_after_task"
        self.stopping(self._texts(key))

    def hear(self, news: RunnerNews) -> None:
        """Show what happened to the runner."""
        if news.kind in (NewsKind.CLAIMED, *_PUT_DOWN):
            self._has_task = news.kind is NewsKind.CLAIMED
        if self._as_json:
            with self._unread():
                print_json(news_shape(news, self._runner, self._clock()), is_event=True)
            return
        if self._is_quiet:
            return
        now = self._clock()
        if news.kind is NewsKind.CLAIMED:
            self._begin(news.task, now)
        line = self._line(news)
        self._still = "".join(part.text for part in line) if news.kind in _STILL else None
        if news.kind in _PUT_DOWN:
            self._end(news.task if news.kind is NewsKind.ENDED else None)
        if news.kind is NewsKind.WAITING and self._screen is not None:  # the live area says so for as long as it lasts
            return
        self._tell([ToldOnce(now, line)])

    def _laid_out(self, told: ToldOnce) -> list[Line]:
        """Break a line that is longer than the terminal is wide: what to do is at its end."""
        if not self._is_watched:
            return [self._stamped(told)]
        stamp = f"{told.at.astimezone():%H:%M:%S}  "
        first, *others = broken(told.line, terminal_width() - len(stamp)) or [()]
        return [(LinePart(stamp, GREY), *first), *((LinePart(" " * len(stamp)), *other) for other in others)]

    def _begin(self, task: Task | None, now: datetime) -> None:
        self._task, self._since = task, now
        self._teller = Teller(self._texts, Limits())
        self._scene = AutoScene(request_since=now, doing_since=now)

    def _end(self, task: Task | None) -> None:
        if task is not None:
            self._counts[task.status] += 1
        self._task, self._scene = None, AutoScene()

    def _line(self, news: RunnerNews) -> Line:
        """Say one thing that happened, in one line."""
        task, facts = news.task, dict(news.facts)
        if task is not None:
            facts |= {"task_id": task.task_id, "request_id": task.request_id}
        if news.kind is NewsKind.CLAIMED and task is not None:
            return (LinePart(f"▶ {task_name(task, self._texts)}", is_bold=True), LinePart(f"  {task.task_id}", GREY))
        if news.kind is NewsKind.ENDED and task is not None:
            return self._ended(task)
        if news.kind is NewsKind.HELD_UP:
            return (LinePart(self._texts(f"runner.held_up.{news.reason_code}", **facts), "yellow"),)
        who = {"namespace": self._runner.namespace, "root": self._runner.checkout.root}
        known = {"runner_id": self._runner.runner_id, "reason": news.reason_code or "", **who, **facts}
        told = self._texts(f"runner.{news.kind}", **known)
        after = self._goes_on(task) if news.kind is NewsKind.REAPED and task is not None else ""
        return (LinePart(told + after, _COLOURS.get(news.kind)),)

    def _ended(self, task: Task) -> Line:
        mark, colour = _MARKS.get(task.status, ("!", "yellow"))
        why = ""
        if task.reason_code and task.status is not TaskStatus.CANCELLED:
            title = self._texts.message(task.reason_code, {"request_id": task.request_id}).title
            why = f"  {task.reason_code}: {title}"
        name = LinePart(f"{mark} {task_name(task, self._texts)}", colour, is_bold=True)
        key = ACCEPTED if self._is_accepted(task) else f"runner.ended.{task.status}"
        run = self._run_of(task)
        told = LinePart(f"  {self._texts(key, base=run.place.base_branch if run else '')}", colour)
        return (name, told, LinePart(why + self._goes_on(task) + self._way_on(task)))

    def _way_on(self, task: Task) -> str:
        """Say what a person does next: the run that was at work knows it best."""
        if self._is_accepted(task):
            return ""
        run = self._run_of(task)
        if run is not None:
            cause = run.error.cause if run.error else None
            action = next_step(replace(task, run_id=run.run_id), cause, recommended(run))
        else:
            action = next_step(task)
        return f"  → {command_line(action)}" if action else ""

    def _is_accepted(self, task: Task) -> bool:
        """Return whether a task's run is brought in already (accept = auto): nothing is left to do."""
        run = self._run_of(task)
        return task.status is TaskStatus.COMPLETE and run is not None and run.outcome is RunOutcome.ACCEPTED

    def _run_of(self, task: Task) -> Run | None:
        """Return the run that was at work for a task, as it was seen last."""
        run = self._scene.run
        return run if run is not None and run.request_id == task.request_id else None

    def _goes_on(self, task: Task) -> str:
        return f"  {self._texts('runner.goes_on', task_id=task.successor)}" if task.successor else ""

    def _picture(self, columns: int) -> list[Line]:
        """Return the live area as it is now."""
        if self._scene.status is not None:  # an auto-run at work has an area of its own
            return super()._picture(columns)
        now, task, room = self._clock(), self._task, columns - 1
        scene = replace(self._scene, output=self._output)
        lines: list[Line] = [()]
        if task is not None:
            run = scene.run
            name = Upcoming(run.request_id, run.title) if run else Upcoming(task.request_id, "")
            lines += run_lines(scene, name, self._texts, now)
        counts = {status.lower(): self._counts[status] for status in _MARKS}
        lines.append(row("", LinePart(self._texts("runner.counts", **counts))))
        if self._still:
            lines.append(row("", LinePart(self._still, GREY)))
        hint = self._texts("runner.hint.task" if task else "runner.hint.idle")
        lines.append(row("", LinePart(self._notice or hint, "yellow" if self._notice else GREY)))
        return [fitted(line, room) for line in lines]


def news_shape(news: RunnerNews, runner: Runner, now: datetime) -> dict[str, object]:
    """One event of a runner as plain data."""
    task = news.task
    shape: dict[str, object] = {
        "event": news.kind.value,
        "at": now.isoformat(),
        "namespace": runner.namespace,
        "runner_id": runner.runner_id,
        "reason_code": news.reason_code,
    }
    if task is not None:
        shape |= {
            "task_id": task.task_id,
            "action": task.action.value,
            "request_id": task.request_id,
            "run_id": task.run_id,
            "status": task.status.value,
            "error_message": task.error_message,
            "successor": task.successor,
        }
    return shape | {name: as_plain(fact) for name, fact in news.facts.items() if name not in shape}
