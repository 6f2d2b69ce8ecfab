"""Look after what belongs to a server (API-1): what a crash left, its runner, and ending all of it in order."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.request import RequestId
from aiflow.domain.server.supervision import (
    Known,
    Left,
    Move,
    MoveKind,
    UpSight,
    Wish,
    decide,
    open_tries,
    started,
)
from aiflow.errors import AiflowError
from aiflow.usecases.auto.attempt import RACES
from aiflow.usecases.auto.stop import ask_to_stop, working_auto
from aiflow.usecases.runs.locks import reclaim_locks
from aiflow.usecases.server.left_behind import LeftBehind, look_behind, to_continue
from aiflow.usecases.server.up_news import UpNews, UpNewsKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiflow.domain.lock import Lock
    from aiflow.ports import AutoRecords, Time
    from aiflow.ports.server import RunnerChild, Worker
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.server.issue_watch import IssueStarts
    from aiflow.usecases.server.start_work import WorkStarter

# A stop is heard within this time, a holder that is gone noticed within the other (LCK-4).
EAR_SECONDS = 0.2
LOOK_SECONDS = 1.0
WANT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class UpDesk:
    """What a server is looked after with.

    `engine` gives the checkout as it is now and raises where the settings are wrong, `wish` is what signals ask for,
    `wants_runner` is whether a runner belongs here, `is_serving` whether the server still answers. `issues` knows
    which issue is ready.
    """

    engine: Callable[[], Engine]
    records: AutoRecords
    work: WorkStarter
    runner: RunnerChild
    time: Time
    wish: Callable[[], Wish]
    wants_runner: Callable[[], bool]
    is_serving: Callable[[], bool]
    tell: Callable[[UpNews], None]
    continues: bool = True
    issues: IssueStarts | None = None


def supervise(desk: UpDesk) -> None:
    """Look after a server until it is asked to end, and what has to end with it has ended."""
    watch = _Watch(desk)
    watch.adopt()
    while desk.is_serving() and watch.turn():
        desk.time.sleep(EAR_SECONDS)
    desk.runner.release()


class _Watch:
    """What the supervision remembers from turn to turn."""

    def __init__(self, desk: UpDesk) -> None:
        self._desk = desk
        self._known = Known()
        self._left: tuple[Left, ...] = ()
        self._ready: tuple[Left, ...] = ()
        self._found = LeftBehind()
        self._is_first = self._is_look_due = True
        self._looked_at = self._wanted_at = float("-inf")
        self._is_runner_wanted = False
        self._is_busy = False
        self._auto_pid: int | None = None
        self._engine: Engine | None = None
        self._trouble: tuple[str, str] | None = None
        self._wish = Wish.STAY
        self._told: UpNews | None = None
        self._refusal = ""

    def adopt(self) -> None:
        """Take over what a server that was killed left at work: it is waited for, and ended, as our own is."""
        adopted = self._desk.work.adopt()
        if adopted:
            self._desk.tell(UpNews(UpNewsKind.ADOPTED, {"pids": ", ".join(str(each.pid) for each in adopted)}))

    def turn(self) -> bool:
        """See, decide and do; False when it is time to leave."""
        wish = self._desk.wish()
        self._see_checkout(wish)
        at_work = {worker.pid: worker for worker in self._desk.work.at_work()}
        before = self._known
        moves, self._known = decide(self._seen(wish, at_work), before)
        self._tell_ended(before)
        self._tell_wish(wish, is_idle=not at_work and not self._desk.runner.is_working())
        for move in moves:
            if move.kind is MoveKind.LEAVE:
                self._tell_left(at_work)
                return False
            self._do(move, at_work)
        return True

    def _seen(self, wish: Wish, at_work: Mapping[int, Worker]) -> UpSight:
        return UpSight(
            at=self._desk.time.monotonic(),
            wish=wish,
            workers=tuple(at_work),
            ended=self._codes(at_work),
            auto_pid=self._auto_pid,
            is_busy=self._is_busy,
            left=self._left,
            ready=self._ready,
            is_runner_wanted=self._is_runner_wanted,
            is_runner_working=self._desk.runner.is_working(),
        )

    def _codes(self, at_work: Mapping[int, Worker]) -> dict[int, int]:
        """Return how the workers ended that were started for what a crash left."""
        codes = {pid: self._desk.work.exit_code(pid) for pid in self._known.at_work_for if pid not in at_work}
        return {pid: code for pid, code in codes.items() if code is not None}

    def _see_checkout(self, wish: Wish) -> None:
        """Look at the locks now and then, and after a crash at everything; trouble with that is reported once."""
        now = self._desk.time.monotonic()
        if now - self._looked_at < (EAR_SECONDS if wish is not Wish.STAY else LOOK_SECONDS):
            return
        self._looked_at = now
        try:
            self._engine = engine = self._desk.engine()
            if now - self._wanted_at >= WANT_SECONDS:
                self._is_runner_wanted, self._wanted_at = self._desk.wants_runner(), now
            self._look(engine)
        except AiflowError as error:
            self._say_trouble(error)
        else:
            if self._trouble is not None:
                self._trouble = None
                self._desk.tell(UpNews(UpNewsKind.TROUBLE_OVER))

    def _look(self, engine: Engine) -> None:
        if any(status.verdict.is_stale for status in engine.locks.survey()):
            reclaim_locks(engine)
            self._is_look_due = True
        auto = working_auto(engine)
        self._auto_pid = auto.pid if auto else None
        holder = engine.locks.holder()
        self._is_busy = auto is not None or holder is not None
        if self._is_first:
            self._is_first = False
            self._tell_holder(auto, holder)
        if self._is_look_due and not self._is_busy:
            self._look_behind(engine)
        if self._desk.issues is not None:
            is_busy = self._is_busy or bool(self._desk.work.at_work())
            self._ready = self._desk.issues.next(engine, self._desk.time.monotonic(), is_busy=is_busy)

    def _look_behind(self, engine: Engine) -> None:
        """Find what a crash left; what is found is reported once."""
        found = look_behind(engine, self._desk.records)
        if found != self._found and not self._known.at_work_for:
            self._tell_found(found)
        self._found = found
        if self._desk.continues:
            self._left = to_continue(engine, found, has_runner=self._is_runner_wanted)
        self._is_look_due = bool(open_tries(self._left, self._known))

    def _tell_holder(self, auto: Lock | None, holder: Lock | None) -> None:
        """Report who is at work here already: the server shows it, whatever started it."""
        known = holder or auto
        if known is not None:
            facts = {"request_id": known.request_id, "run_id": known.run_id, "pid": known.pid}
            self._desk.tell(UpNews(UpNewsKind.AT_WORK, facts))

    def _tell_found(self, found: LeftBehind) -> None:
        tell, facts = self._desk.tell, {"continues": self._desk.continues}
        if found.night is not None:
            tell(UpNews(UpNewsKind.NIGHT_WAS_CUT, {**facts, "runs": found.night.runs, "done": found.night.done}))
        for request_id in found.interrupted:
            tell(UpNews(UpNewsKind.WAS_INTERRUPTED, {**facts, "request_id": request_id}))

    def _do(self, move: Move, at_work: Mapping[int, Worker]) -> None:
        if move.kind is MoveKind.START_WORKER and move.left is not None:
            self._start(move.left)
        elif move.kind is MoveKind.END_WORKER and move.pid is not None:
            self._desk.work.end(at_work[move.pid])
        elif move.kind is MoveKind.ASK_AUTO and self._engine is not None:
            with contextlib.suppress(AiflowError):  # it has just ended
                ask_to_stop(self._engine, StopRequest.AFTER_RUN)
        else:
            self._do_with_runner(move)

    def _do_with_runner(self, move: Move) -> None:
        runner = self._desk.runner
        if move.kind is MoveKind.START_RUNNER:
            self._start_runner()
        elif move.kind is MoveKind.RUNNER_DIED:
            facts = {"seconds": f"{move.seconds:g}", "said": runner.said()}
            self._tell_once(UpNews(UpNewsKind.RUNNER_DIED, facts))
        elif move.kind is MoveKind.RELEASE_RUNNER:
            runner.release()
            if self._wish is Wish.STAY:
                self._desk.tell(UpNews(UpNewsKind.RUNNER_LET_GO))
        elif move.kind is MoveKind.END_RUNNER:
            runner.end()

    def _start(self, left: Left) -> None:
        """Start a worker for what a crash left; where that is impossible, the next look tries again."""
        try:
            worker = self._desk.work.launch(left.argv)
        except AiflowError as error:
            self._say_trouble(error)
            return
        self._known = started(self._known, left, worker.pid)
        self._left, self._ready, self._is_look_due = (), (), True
        kind = UpNewsKind.STARTS if left.is_new else UpNewsKind.CONTINUES
        self._desk.tell(UpNews(kind, {"request_id": left.request_id}))

    def _start_runner(self) -> None:
        try:
            self._desk.runner.start()
        except AiflowError as error:
            self._say_trouble(error)
            return
        self._tell_once(UpNews(UpNewsKind.RUNNER_STARTED))

    def _tell_ended(self, before: Known) -> None:
        """Report what came of workers that were started for what a crash left, unless all is well."""
        for pid, left in before.at_work_for.items():
            if pid in self._known.at_work_for:
                continue
            code = self._desk.work.exit_code(pid) or 0
            facts = {"request_id": left.request_id, "code": code}
            refusal = self._desk.work.refusal(pid) if code > 0 else None
            if left.is_new and left.request_id is not None:
                self._hear_of_start(RequestId(left.request_id), code, refusal)
                continue
            if code < 0:
                self._desk.tell(UpNews(UpNewsKind.WORKER_KILLED, facts))
            elif refusal is not None:
                self._desk.tell(UpNews(UpNewsKind.WORKER_REFUSED, facts, refusal))

    def _hear_of_start(self, request_id: RequestId, code: int, refusal: AiflowError | None) -> None:
        """Hear what came of an issue that was started; a refusal is reported once for each reason."""
        assert self._desk.issues is not None
        was_refused = code < 0 or refusal is not None
        self._desk.issues.ended(request_id, self._desk.time.monotonic(), was_refused=was_refused)
        facts = {"request_id": request_id, "code": code}
        if code < 0:
            self._desk.tell(UpNews(UpNewsKind.WORKER_KILLED, facts))
        elif refusal is not None and refusal.reason_code not in (*RACES, self._refusal):
            self._desk.tell(UpNews(UpNewsKind.START_REFUSED, facts, refusal))
        self._refusal = refusal.reason_code if refusal is not None else ""

    def _tell_wish(self, wish: Wish, *, is_idle: bool) -> None:
        if wish is self._wish:
            return
        self._wish = wish
        self._desk.work.close()
        if wish in (Wish.AFTER_WORK, Wish.NOW) and not is_idle:
            is_now = wish is Wish.NOW
            self._desk.tell(UpNews(UpNewsKind.STOPPING_NOW if is_now else UpNewsKind.STOPPING))

    def _tell_left(self, at_work: Mapping[int, Worker]) -> None:
        if at_work:
            self._desk.tell(UpNews(UpNewsKind.LEFT_AT_WORK, {"pids": ", ".join(map(str, at_work))}))

    def _say_trouble(self, error: AiflowError) -> None:
        trouble = (error.reason_code, str(error.context))
        if trouble != self._trouble:
            self._trouble = trouble
            self._desk.tell(UpNews(UpNewsKind.TROUBLE, error=error))

    def _tell_once(self, news: UpNews) -> None:
        """Report something unless it repeats the last report of its kind: a runner that cannot start is one line."""
        known, self._told = self._told, news if news.kind is UpNewsKind.RUNNER_DIED else self._told
        if news.kind is UpNewsKind.RUNNER_DIED and known is not None and known.facts["said"] == news.facts["said"]:
            return
        if news.kind is UpNewsKind.RUNNER_STARTED and known is not None:
            return
        self._desk.tell(news)
