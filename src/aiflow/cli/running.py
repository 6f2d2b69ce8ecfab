"""What every command that works on runs shares: the engine, signals, finding the run that is meant."""

from __future__ import annotations

import contextlib
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import click

from aiflow.cli.recording import recorded
from aiflow.cli.render import say_at_once
from aiflow.cli.run_view import RunView
from aiflow.cli.session import print_json
from aiflow.domain.auto_run import StopRequest
from aiflow.domain.request import DEFAULT_PRIORITY, RequestId
from aiflow.domain.task import TaskAction
from aiflow.errors import AiflowError, ConflictError, NotFoundError
from aiflow.usecases.accept_run import newest_run
from aiflow.usecases.run_shapes import exit_code_of, run_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiflow.cli.session import Session
    from aiflow.domain.request import Priority
    from aiflow.domain.run import Run
    from aiflow.domain.task import TaskEnd
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.heartbeat import Hold
    from aiflow.usecases.record_task import Errand

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
POLL_SECONDS = 0.05
LOOK_AGAIN_SECONDS = 1.0


class Interrupts:
    """Signals that ask to stop: the run is cancelled in order, nothing is torn down in the middle."""

    def __init__(self) -> None:
        self._received: list[int] = []

    def __call__(self) -> bool:
        """Tell whether one came."""
        return bool(self._received)

    def add(self, number: int) -> None:
        """Take note of a signal."""
        self._received.append(number)

    def wish(self) -> StopRequest:
        """Say what they ask of auto-run: Ctrl-C once to end after the run, twice or any other signal to end now."""
        if not self._received:
            return StopRequest.NONE
        return StopRequest.AFTER_RUN if self._received == [signal.SIGINT] else StopRequest.NOW


@contextlib.contextmanager
def catching_signals(heard: Callable[[Interrupts], None]) -> Iterator[Interrupts]:
    """Let signals ask for a stop instead of ending the process; those that our caller ignores stay ignored (`nohup`).

    `heard` is called in the middle of anything: it may touch no lock and no buffered stream.
    """
    interrupts = Interrupts()

    def ask(number: int, _frame: object) -> None:
        interrupts.add(number)
        heard(interrupts)

    ours = [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, ask) for number in ours}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def telling_once(text: str) -> Callable[[Interrupts], None]:
    """Say one line on standard error, at the first signal."""
    told: list[bool] = []

    def tell(_interrupts: Interrupts) -> None:
        if not told:
            say_at_once(text)
        told.append(True)

    return tell


class Aim(NamedTuple):
    """What a command is to do, and with what: a request, or a run of one."""

    action: TaskAction
    name: RequestId


def run_to_the_end(
    session: Session, aim: Aim, work: Callable[[Engine], Run], *, as_json: bool, wait: bool = False
) -> None:
    """Let something work on a run in front of the person, and leave with the exit code of its end."""

    def in_turn(engine: Engine) -> Run:
        return _wait_for_turn(session, engine, work) if wait else work(engine)

    view = RunView(session.texts, is_quiet=as_json, stopping=session.texts("run.cancelling"))
    with catching_signals(view.heard) as interrupts, view:
        try:
            engine = session.engine(interrupts, view)
            run = recorded(session, engine, lambda: _errand(engine, aim), in_turn, _end_of)
        except AiflowError as error:  # git knows nothing of requests, but the advice does
            error.context.setdefault("request_id", aim.name)
            raise
    if as_json:
        print_json(run_result(run))
    else:
        with contextlib.suppress(OSError):  # that nobody reads it does not change how it ended
            view.finish(run)
    raise click.exceptions.Exit(exit_code_of(run))


def _errand(engine: Engine, aim: Aim) -> Errand:
    """Say what goes into the queue: a start names a request, everything else goes on with a run of one."""
    from aiflow.usecases.record_task import Errand

    if aim.action is TaskAction.START:
        return Errand(aim.action, aim.name, priority=_priority(engine, aim.name))
    run = find_run(engine, aim.name)
    return Errand(aim.action, run.request_id, run.run_id, _priority(engine, RequestId(run.request_id)))


def _priority(engine: Engine, request_id: RequestId) -> Priority:
    """Return a request's own priority; that it cannot be read is said by what is done with it."""
    try:
        return engine.source.load(request_id).priority
    except AiflowError:
        return DEFAULT_PRIORITY


def _end_of(hold: Hold, run: Run) -> TaskEnd:
    from aiflow.usecases.execute_task import end_of_run

    return end_of_run(hold, run)


def _wait_for_turn(session: Session, engine: Engine, work: Callable[[Engine], Run]) -> Run:
    """Start as soon as no other run is in progress (`--wait`); an auto-run lets whoever waits go first."""
    try:
        return work(engine)
    except ConflictError as error:
        if error.reason_code != "RUN_IN_PROGRESS":
            raise
        click.echo(session.texts("run.waiting", run_id=error.context.get("run_id")), err=True)
    # Told to auto-run only until the turn is ours: behind that it waits for our lock, as for any other.
    with contextlib.ExitStack() as turn:

        def observe(run: Run) -> None:
            turn.close()
            engine.observe(run)

        begun = replace(engine, observe=observe)
        turn.enter_context(engine.control.waiting_for_turn())
        while True:
            _wait_until_free(engine)
            try:
                return work(begun)
            except ConflictError as error:
                if error.reason_code != "RUN_IN_PROGRESS":
                    raise


def _wait_until_free(engine: Engine) -> None:
    """Wait until nobody runs here; a dead holder's lock is seen to again and again, for starting reclaims it."""
    until = time.monotonic() + LOOK_AGAIN_SECONDS
    while engine.locks.held()[0] and time.monotonic() < until:
        if engine.interrupted():
            raise click.Abort
        time.sleep(POLL_SECONDS)


def find_run(engine: Engine, name: RequestId) -> Run:
    """Return the run that is meant: one by its id, or a request's latest (SPEC §13)."""
    latest = engine.runs.latest([name]).get(name)
    if latest is not None:  # also of a request whose file is gone
        return _load(engine, name, latest.run_id)
    owner = engine.runs.find(name)
    if owner is not None:
        return _load(engine, owner, name)
    if not name.startswith("RUN-"):
        engine.source.load(name)  # an unknown request is said to be one
    raise NotFoundError(reason_code="RUN_NOT_FOUND", request_id=name, name=name)


def find_newest_run(engine: Engine, name: RequestId) -> Run:
    """Return the run that is accepted or sent back: one by its id, or a request's last attempt."""
    return newest_run(engine, name) or find_run(engine, name)


def _load(engine: Engine, request_id: str, run_id: str) -> Run:
    run = engine.runs.load(request_id, run_id)
    if run is None:
        raise AiflowError(reason_code="RUN_LOST", request_id=request_id, run_id=run_id, detail=f"{run_id}/stage.json")
    return run
