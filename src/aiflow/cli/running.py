"""What every command that works on runs shares: the engine, signals, waiting for its turn."""

from __future__ import annotations

import contextlib
import gc
import signal
from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import say_at_once
from aiflow.cli.views.run import RunView
from aiflow.domain.auto.stopping import StopRequest
from aiflow.errors import AiflowError, ConflictError
from aiflow.usecases.runs.turn import Patience, in_turn
from aiflow.usecases.shapes.runs import exit_code_of, run_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine

# How much garbage a process that stays may pile up, in objects, before Python looks for it. What finished tasks leave
# is little, so that with the threshold of a short command it would be found after tens of thousands of them.
STAYING = (10_000, 10, 10)
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Signals that ask to stop: the run is cancelled in order, nothing is torn down in the middle."""

    def __init__(self) -> None:
        self._received: list[int] = []

    def __call__(self) -> bool:
        """Return whether one came."""
        return bool(self._received)

    def add(self, number: int) -> None:
        """Take note of a signal."""
        self._received.append(number)

    @property
    def received(self) -> tuple[int, ...]:
        """The signals, in the order they came."""
        return tuple(self._received)

    def stop_after_work(self, heard: Callable[[Interrupts], None]) -> None:
        """Ask as Ctrl-C does, unless something was asked already."""
        if not self._received:
            self.add(signal.SIGINT)
            heard(self)

    def wish(self) -> StopRequest:
        """Say what they ask of auto-run: Ctrl-C once to end after the run, twice or any other signal to end now."""
        if not self._received:
            return StopRequest.NONE
        return StopRequest.AFTER_RUN if self._received == [signal.SIGINT] else StopRequest.NOW

    def wish_or_cut(self) -> StopRequest:
        """Say the same, and distinguish an end from outside (a closed terminal, a shutdown) from a person's Ctrl-C."""
        is_pressed = self._received[:2] == [signal.SIGINT] * 2
        return StopRequest.CUT_OFF if self.wish() is StopRequest.NOW and not is_pressed else self.wish()


def expect_to_stay() -> None:
    """Keep the memory flat, however many tasks or requests this process will work on."""
    gc.set_threshold(*STAYING)


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


def run_to_the_end(
    session: CliSession, name: RequestId, work: Callable[[Engine], Run], *, as_json: bool, wait: bool = False
) -> None:
    """Let something work on a run in front of the person, and leave with the exit code of its end."""
    view = RunView(session.texts, is_quiet=as_json, stopping=session.texts("run.cancelling"))
    with catching_signals(view.heard) as interrupts, view:
        try:
            engine = session.engine(interrupts, view)
            run = in_turn(engine, work, _patience(session, engine)) if wait else work(engine)
        except AiflowError as error:  # git knows nothing of requests, but the advice does
            error.context.setdefault("request_id", name)
            raise
    if as_json:
        print_json(run_result(run))
    else:
        with contextlib.suppress(OSError):  # a closed output does not change how it ended
            view.finish(run)
    raise click.exceptions.Exit(exit_code_of(run))


def _patience(session: CliSession, engine: Engine) -> Patience:
    """Wait as a person does (`--wait`): say once for what, until they lose patience."""
    told: list[str] = []

    def tell(error: ConflictError) -> None:
        if not told:
            told.append(error.reason_code)
            click.echo(session.texts("run.waiting", run_id=error.context.get("run_id")), err=True)

    def is_enough() -> bool:
        if told and engine.voice.interrupted():
            raise click.Abort
        return False

    return Patience(tell, is_enough)
