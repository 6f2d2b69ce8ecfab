"""A command to be killed at each of its steps: who comes next, and what must have come of it then."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

from aiflow.domain.lifecycle import RunState
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.domain.runs.run import Run
from aiflow.errors import AiflowError
from aiflow.usecases.engine import Engine
from aiflow.usecases.queue.desk import Desk
from aiflow.usecases.runs.find import newest_run
from aiflow.usecases.runs.locks import reclaim_locks
from aiflow.usecases.runs.recover import mark_crashed
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from aiflow.usecases.runs.start import start_run
from memory_engine import MemoryCheckout
from simulation.kills import ONE, Act, Bench, CalmScene, Recover, a_bench, done, enact
from simulation.world import Proc

Look = Callable[[Bench], None]


class Case(NamedTuple):
    """One command: what was there before, what is typed, what must have come of it whoever comes next, and what of
    typing it once more.
    """

    before: Callable[[], Bench]
    act: Act
    look: Look
    look_again: Look | None = None

    @property
    def recoveries(self) -> dict[str, tuple[Recover, Look]]:
        """Who comes next, and what must have come of it then."""
        others: dict[str, tuple[Recover, Look]] = {
            "runner": (_by_runner, self.look),
            "auto": (_by_auto, self.look),
            "doctor": (_by_doctor, nothing_is_lost),
        }
        return {**others, "again": (_again(self.act), self.look_again)} if self.look_again else others


def enumerate_kills(case: Case, name: str, every: int = 1) -> int:
    """Kill a command before each of its steps, under a recovery; returns how many it has.

    Or before every second or third: which of them changes from one recovery to the next, so that together they have all.
    """
    first = 1 + list(case.recoveries).index(name) % every
    recover, look = case.recoveries[name]
    whole = enact(case.before(), case.act, None, None).steps
    for step in range(first, whole + 2, every):
        told = enact(case.before(), case.act, step, recover)
        try:
            assert told.was_killed == (step <= whole)
            look(told.bench)
        except AssertionError as error:
            error.add_note(f"killed before step {step} of {whole}, then {name}")
            raise
    return whole


def _by_runner(scene: CalmScene, checkout: MemoryCheckout) -> Proc:
    return scene.runner(checkout)


def _by_auto(scene: CalmScene, checkout: MemoryCheckout) -> Proc:
    return scene.auto(checkout)


def _by_doctor(scene: CalmScene, checkout: MemoryCheckout) -> Proc:
    return scene.terminal(checkout, "doctor", _ask_doctor)


def _ask_doctor(engine: Engine, _desk: Desk) -> None:
    reclaim_locks(engine)
    for request in engine.source.load_all()[0]:
        mark_crashed(engine, request.id)


def _again(act: Act) -> Recover:
    """Let the person type the same once more, and ask the doctor; what is done already may be refused."""

    def recover(scene: CalmScene, checkout: MemoryCheckout) -> Proc:
        def command(engine: Engine, desk: Desk) -> None:
            with contextlib.suppress(AiflowError):
                act(scene, checkout, engine, desk)
            _ask_doctor(engine, desk)

        return scene.terminal(checkout, "again", command)

    return recover


def resuming(mode: ResumeMode) -> Act:
    """Resume the newest run, or have it done again."""

    def act(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
        run = newest_run(engine, ONE)
        step_id = "S01" if mode is ResumeMode.RETRY_STEP else None
        return run and resume_run(engine, run, ResumeWish(Goal(mode, step_id, is_forced=True), "That one."))

    return act


def on_newest(command: Callable[[Engine, Run], object]) -> Act:
    """Do something with the newest run."""

    def act(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
        run = newest_run(engine, ONE)
        return run and command(engine, run)

    return act


def start_one(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
    """Start a run."""
    return start_run(engine, ONE)


def ready_bench() -> Bench:
    """Have a request that may start, and tests."""
    return a_bench(**{"tests.unit": "make test"})


def done_bench() -> Bench:
    """Have a run that waits for its acceptance."""
    bench = ready_bench()
    done(bench)
    return bench


def states_of(bench: Bench, request_id: str = ONE) -> list[RunState]:
    """Return the states of a request's runs, the newest last."""
    runs = filter(None, bench.checkout.runs.runs.values())
    return [run.state for run in sorted(runs, key=lambda run: run.run_id) if run.request_id == request_id]


def newest_of(bench: Bench) -> Run:
    """Return the newest run."""
    run = newest_run(bench.engine(), ONE)
    assert run is not None
    return run


def has_work(bench: Bench, ref: str = "refs/heads/main") -> bool:
    """Tell whether a branch has the work of the request."""
    return f"{ONE}.txt" in bench.checkout.repository.files_of(ref)


def nothing_is_lost(bench: Bench) -> None:
    """Whatever a run has committed is in the base, or under a ref of its own."""
    repository = bench.checkout.repository
    for run in filter(None, bench.checkout.runs.runs.values()):
        refs = [bench.checkout.base, *(ref for ref in repository.refs if run.run_id in ref)]
        assert not run.has_commits or any(repository.leads_to(run.tip, ref) for ref in refs)
