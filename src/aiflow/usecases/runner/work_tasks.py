"""A runner at work (QUE-5 to QUE-11): claim, execute, finish, one task at a time, until it is asked to stop.

Meanwhile it writes its heartbeat and watches the other runners. If the store is unreachable, it waits.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.backlog.selection import describe_holder
from aiflow.domain.health import Health
from aiflow.domain.next_action import START_RUNNER, ActionKind, NextAction
from aiflow.domain.queue.task import message_of
from aiflow.errors import AiflowError
from aiflow.usecases.engine import Ground
from aiflow.usecases.health.check_health import check_quick, unhealthy, word_of
from aiflow.usecases.runner.claim_in_turn import TurnClaims
from aiflow.usecases.runner.desk import EAR_SECONDS, TROUBLES, Answer, NewsKind, RunnerNews
from aiflow.usecases.runner.execute import execute_task
from aiflow.usecases.runner.finish import finish_task
from aiflow.usecases.runner.heartbeat import Heartbeat
from aiflow.usecases.runner.reap import Reaper, end_strays
from aiflow.usecases.runner.recoveries import queue_recoveries
from aiflow.usecases.runs.locks import occupant, reclaim_locks, release_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiflow.domain.health import Finding
    from aiflow.domain.lock import Lock
    from aiflow.domain.queue.task import Task
    from aiflow.usecases.runner.desk import RunnerDesk

# How often a runner looks for runs of its checkout that were interrupted, and, which reads all of a namespace, for
# queued tasks that no index shows.
RECOVER_SECONDS = 600.0
ADOPT_SECONDS = 3600.0
HEALTH_SECONDS = 5.0
DOCTOR_FAILED = "DOCTOR_FAILED"
QUEUE_IN_PROGRESS = "QUEUE_IN_PROGRESS"
DOCTOR, AGAIN = NextAction(ActionKind.DOCTOR), START_RUNNER.having(once="")


def work_tasks(desk: RunnerDesk, *, is_once: bool = False) -> int:
    """Work until a stop is asked for, and return how many tasks were worked on.

    With `is_once`, work only until the queue is empty; if the doctor finds a problem that stops all tasks, raise it.
    """
    ground = Ground(desk.engine.find_base())
    desk = replace(desk, engine=desk.engine.charged_with(ground=ground))
    reaper = Reaper(desk)
    with at_post(desk, reaper) as heartbeat:
        worker = _Worker(desk, heartbeat, reaper)
        desk.tell(RunnerNews(NewsKind.STARTED, facts={"base_branch": ground.base_branch}))
        try:
            while desk.asked() is StopRequest.NONE and worker.turn(is_once=is_once):
                pass
        except AiflowError as error:
            if error.reason_code not in TROUBLES or desk.asked() is StopRequest.NONE:
                raise
        finally:
            worker.claims.stop_waiting()
        desk.tell(RunnerNews(NewsKind.STOPPED, facts={"tasks": worker.worked}))
        trouble = worker.unwritten or worker.refused
        if trouble is not None:
            raise trouble
        return worker.worked


@contextlib.contextmanager
def at_post(desk: RunnerDesk, reaper: Reaper) -> Iterator[Heartbeat]:
    """Act as a runner for a while: registered, with a heartbeat, watching the others; tidies up however that ends."""
    heartbeat = Heartbeat(desk)

    def look() -> float:
        with contextlib.suppress(Exception):  # the store is unreachable, or the disk is full: try again next time
            reaper.look()
        return desk.pace.beat_seconds  # a check as late as half the timeout would count as sleep

    watch = desk.engine.time.beside("reaper", look)
    heartbeat.start()
    try:
        watch.start()
        yield heartbeat
    finally:
        watch.close()
        heartbeat.close()
        desk.wake.close()


class _Worker:
    """What a runner remembers from turn to turn."""

    def __init__(self, desk: RunnerDesk, heartbeat: Heartbeat, reaper: Reaper) -> None:
        self.worked = 0
        # Why the end of its last task could not be recorded, if so.
        self.unwritten: AiflowError | None = None
        # Why a runner that works only once takes no task: the person who started it has to fix that.
        self.refused: AiflowError | None = None
        self.claims = TurnClaims(desk)
        self._desk = desk
        self._time = desk.engine.time
        self._heartbeat = heartbeat
        self._reaper = reaper
        self._is_last_look = False
        self._recovered: set[str] = set()
        self._recovered_at = self._adopted_at = -ADOPT_SECONDS
        self._sick: tuple[Finding, ...] | None = None
        self._checked = -HEALTH_SECONDS
        self._told: RunnerNews | None = None

    def turn(self, *, is_once: bool) -> bool:
        """Work on the next task, or wait for one; False if there is none and nothing is waited for."""
        self._tidy()
        if self._heartbeat.is_cut_off:  # others may think we are gone, and would soon take what we claim now
            self.claims.stop_waiting()
            self._heartbeat.beat_now()
            self._desk.wait(EAR_SECONDS)
            return True
        holder = self._holder()
        sick = self._why_sick() if holder is None else None
        if self._desk.asked() is not StopRequest.NONE:  # a stop was requested while the doctor checked
            return True
        task = self._patiently(lambda: self.claims.claim(holder)) if sick is None else None
        if task is not None:
            self._heartbeat.hold_up(None)
            self._told, self._is_last_look = None, False
            self._work(task)
            return True
        return self._rest(sick or self._why_held_up(holder), is_once=is_once)

    def _rest(self, why: RunnerNews | None, *, is_once: bool) -> bool:
        """Report what keeps tasks in the queue, if anything, and wait; False if there is nothing to wait for."""
        self._heartbeat.hold_up(self._line(why) if why else None)
        is_sick = why is not None and why.reason_code == DOCTOR_FAILED
        if is_sick:
            self.claims.stop_waiting()
        if is_once and is_sick:
            self.refused = self._refusal(self._sick or ())
            return False
        if is_once and not self.claims.is_anything_left:
            return self._looks_again()
        self._tell_once(why or RunnerNews(NewsKind.WAITING))
        if self.claims.rival is not None and not is_sick:
            self.claims.wait_for_turn()
        else:
            self._desk.wait(self._desk.pace.poll_seconds)
        return True

    def _looks_again(self) -> bool:
        """Before it exits without a task, look once more for what a lost runner or an interrupted run left."""
        if self._is_last_look:
            return False
        self._is_last_look = True
        self._recovered_at = -RECOVER_SECONDS
        return True

    def _work(self, task: Task) -> None:
        desk = self._desk
        turn = self.claims.hand_over()
        try:
            hold = self._heartbeat.take(task, turn)
            desk.tell(RunnerNews(NewsKind.CLAIMED, task))
            end = execute_task(desk, self._heartbeat, hold)
        finally:
            release_turn(turn)
        if desk.asked() is not StopRequest.NONE:
            self._heartbeat.say_stopped()
        self.worked += 1
        try:
            finish_task(desk, self._heartbeat, hold, end)
        except AiflowError as error:
            if error.reason_code in TROUBLES:
                self.unwritten = error
                desk.tell(RunnerNews(NewsKind.UNWRITTEN, task, error.reason_code))
            raise
        self._heartbeat.put_down()
        if end.error_message is not None:  # what keeps one task from running may keep the next one, too
            self._checked = -HEALTH_SECONDS

    def _holder(self) -> Lock | None:
        """Return the lock of a run that is or will be active here; recover one that is gone (LCK-7, RUN-11)."""
        engine = self._desk.engine
        if (occupant(engine) or engine.locks.queue_holder()) and reclaim_locks(engine):
            self._recovered_at = -RECOVER_SECONDS  # its run was interrupted
            self._tidy()
        return occupant(engine)

    def _why_held_up(self, holder: Lock | None) -> RunnerNews | None:
        """Say what keeps tasks in the queue: a run that is active here, or for an auto-run's task, another auto-run."""
        if rival := holder or self.claims.rival:
            return RunnerNews(NewsKind.HELD_UP, None, "RUN_IN_PROGRESS", {"holder": describe_holder(rival)})
        if rival := self.claims.auto_rival:
            return RunnerNews(NewsKind.HELD_UP, None, QUEUE_IN_PROGRESS, {"holder": describe_holder(rival)})
        return None

    def _why_sick(self) -> RunnerNews | None:
        """Run the doctor's checks before the first task, after one that failed, and while something is wrong."""
        is_due = self._time.monotonic() - self._checked >= HEALTH_SECONDS
        if is_due and (self._sick is None or self._sick or self._checked < 0):
            self._checked = self._time.monotonic()
            _, findings = check_quick(self._desk.engine)
            self._sick = tuple(each for each in findings if each.health is Health.FAIL)
        if not self._sick:
            return None
        told = " ".join(word_of(self._desk.engine, each) for each in self._sick)
        return RunnerNews(NewsKind.HELD_UP, None, DOCTOR_FAILED, {"holder": told, "cause": self._sick[0].reason_code})

    def _refusal(self, failed: tuple[Finding, ...]) -> AiflowError:
        """Say why a runner that works only once exits; it has no run to resume, so the advice is to start it again."""
        commands = dict.fromkeys((*(each.fix or DOCTOR for each in failed), AGAIN))
        return unhealthy(self._desk.engine, failed, commands=tuple(commands))

    def _line(self, why: RunnerNews) -> str:
        """Return the line that the list of runners shows for what keeps tasks in the queue, secrets masked."""
        code = why.facts.get("cause") or why.reason_code
        return message_of(str(code), self._desk.engine.mask(str(why.facts["holder"])))

    def _tidy(self) -> None:
        """Regularly find tasks queued only halfway or without a runner, and runs interrupted here (RUN-11)."""
        desk = self._desk
        if self._time.monotonic() - self._adopted_at >= ADOPT_SECONDS:
            self._patiently(lambda: desk.queue.adopt(desk.engine.time.now()))
            self._reaper.suspect(self._patiently(lambda: end_strays(desk)))
            self._adopted_at = self._time.monotonic()
        if self._time.monotonic() - self._recovered_at >= RECOVER_SECONDS:
            self._patiently(self._reap)  # first: the work of a lost runner continues as its own task's successor
            self._patiently(lambda: queue_recoveries(desk, self._recovered))
            self._recovered_at = self._time.monotonic()

    def _reap(self) -> None:
        try:
            self._reaper.look()
        except Exception as error:  # except for problems with the store, the reaper tries again on its next check
            if isinstance(error, AiflowError) and error.reason_code in TROUBLES:
                raise

    def _patiently(self, call: Callable[[], Answer]) -> Answer:
        """Call until the store answers, unless a stop is asked for."""
        return self._desk.patiently(call, lambda: self._desk.asked() is not StopRequest.NONE)

    def _tell_once(self, news: RunnerNews) -> None:
        """Report what the runner waits for, once."""
        if news != self._told:
            self._desk.tell(news)
        self._told = news
