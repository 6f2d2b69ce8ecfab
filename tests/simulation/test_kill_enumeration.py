"""Every command that changes something, killed at every call of a port: what comes next sets it right.

`AIFLOW_SEED` is of no use here: the steps of a command are always the same, and a failure names the one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import pytest

from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.backlog.metadata import Change
from aiflow.domain.lifecycle import RunState
from aiflow.domain.programs import End, Ended
from aiflow.domain.queue.order import Order
from aiflow.domain.queue.task import TaskAction
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.domain.runs.run import Run
from aiflow.errors import AiflowError
from aiflow.usecases.auto.run import auto_run, limits_of
from aiflow.usecases.auto.shift import AutoTerms
from aiflow.usecases.auto.stop import ask_to_stop
from aiflow.usecases.backlog.create import NewRequest, create_request
from aiflow.usecases.backlog.edit import edit_request
from aiflow.usecases.clean.clean_up import CleanWish, clean_up, plan_clean_up, rules_for
from aiflow.usecases.engine import Engine
from aiflow.usecases.queue.desk import Desk
from aiflow.usecases.queue.enqueue import enqueue_work
from aiflow.usecases.runner.cancel_task import cancel_task
from aiflow.usecases.runner.work_tasks import work_tasks
from aiflow.usecases.runs.accept import accept_run, send_back
from aiflow.usecases.runs.cancel import ask_to_cancel
from aiflow.usecases.runs.find import newest_run
from aiflow.usecases.runs.locks import break_lock, reclaim_locks
from aiflow.usecases.runs.recover import mark_crashed
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from aiflow.usecases.runs.start import start_run
from aiflow.usecases.runs.undo import undo_acceptance
from aiflow.usecases.runs.update import update_run
from memory_engine import TEXTS, MemoryCheckout
from simulation.kills import (
    FORGOTTEN,
    ONE,
    TWO,
    Act,
    Bench,
    CalmScene,
    Recover,
    a_bench,
    asked,
    done,
    enact,
    forgetful,
    interrupted,
)
from simulation.world import Proc

TICKET = RequestId("MEM-1")
Look = Callable[[Bench], None]


# --- what is typed ---------------------------------------------------------------------------------------------------


def _resume(mode: ResumeMode) -> Act:
    def act(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
        run = newest_run(engine, ONE)
        step_id = "S01" if mode is ResumeMode.RETRY_STEP else None
        return run and resume_run(engine, run, ResumeWish(Goal(mode, step_id, is_forced=True), "That one."))

    return act


def _on_newest(command: Callable[[Engine, Run], object]) -> Act:
    def act(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
        run = newest_run(engine, ONE)
        return run and command(engine, run)

    return act


def _auto(scene: CalmScene, checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
    process = scene.world.current.process
    records = scene.actor(checkout, process).wrap("auto_records", checkout.session)
    return auto_run(engine, AutoTerms(records, limits_of(engine.settings), TEXTS))


def _runner(scene: CalmScene, checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
    actor = scene.actor(checkout, scene.world.current.process)
    return work_tasks(actor.desk(scene.store, scene.bells, engine), is_once=True)


def _clean(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
    wish = CleanWish(after_days=0)
    rules = rules_for(engine, wish)
    return clean_up(engine, plan_clean_up(engine, wish, rules), rules)


def _stop(scene: CalmScene, checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
    scene.auto(checkout)
    scene.world.sleep(1.0)
    return ask_to_stop(engine, StopRequest.AFTER_RUN)


def _queue_cancel(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, desk: Desk) -> object:
    live = desk.queue.live_of(ONE)
    return live and cancel_task(desk, engine, live.task_id, "a person")


def _set(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
    return edit_request(ONE, "priority", Change("P0"), engine.editor, (engine.journal, engine.time.now))


def _new(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
    new = NewRequest("Another", "Do it.", status=RequestStatus.READY)
    return create_request(new, engine.editor, engine.journal, engine.time.now)


# --- what was there before -------------------------------------------------------------------------------------------


def _ready() -> Bench:
    return a_bench(**{"tests.unit": "make test"})


def _quick() -> Bench:
    return a_bench(**{"tests.unit": "make test", "agent.plan": "never", "agent.review": "never"})


def _forgotten() -> Bench:
    """A request of which the plan forgets something."""
    return _ready()._replace(agents=forgetful)


def _red_base() -> Bench:
    """A run that stopped because its base failed its tests, and a base that a person has mended since."""
    bench = _ready()
    bench.checkout.workshop.run_shell = lambda *_: Ended(End.EXITED, 1)
    run = start_run(bench.engine(), ONE)
    assert run.error is not None
    assert run.error.reason_code == "BASE_TESTS_FAILED"
    repository = bench.checkout.repository
    tree = repository.keep_tree({**repository.files_of(bench.checkout.base), "mended": b"1\n"})
    repository.refs["refs/heads/main"] = repository.make_commit(tree, (bench.checkout.base,), "Mend\n")
    return bench


def _with_ticket() -> Bench:
    bench = _ready()
    bench.checkout.requests.texts.clear()
    bench.checkout.tickets.add(1, "A ticket")
    return bench


def _with_finds() -> Bench:
    """Agents that find further work."""
    bench = _ready()
    bench.checkout.found = ["Close the file", "Escape names"]
    return bench


def _by_itself() -> Bench:
    return a_bench(accept="auto", **{"tests.unit": "make test"})


def _asked() -> Bench:
    bench = _ready()
    asked(bench)
    return bench


def _done() -> Bench:
    bench = _ready()
    done(bench)
    return bench


def _in_conflict() -> Bench:
    bench = _done()
    repository = bench.checkout.repository
    tree = repository.keep_tree({**repository.files_of(bench.checkout.base), f"{ONE}.txt": b"theirs\n"})
    repository.refs["refs/heads/main"] = repository.make_commit(tree, (bench.checkout.base,), "By hand\n")
    return bench


def _interrupted() -> Bench:
    bench = _ready()
    interrupted(bench)
    return bench


def _accepted() -> Bench:
    bench = _done()
    engine = bench.engine()
    run = newest_run(engine, ONE)
    assert run is not None
    accept_run(engine, run)
    done(bench, TWO)
    return bench


def _undone() -> Bench:
    bench = _accepted()
    engine = bench.engine()
    run = newest_run(engine, ONE)
    assert run is not None
    undo_acceptance(engine, run)
    _is_out(bench)
    return bench


def _once_more() -> Bench:
    """A request whose work is in, and that a person made ready again."""
    bench = _by_itself()
    done(bench)
    engine = bench.engine()
    edit_request(ONE, "status", Change("ready"), engine.editor, (engine.journal, engine.time.now))
    return bench


def _queued(action: TaskAction = TaskAction.START) -> Callable[[], Bench]:
    def prepare() -> Bench:
        bench = _by_itself()
        enqueue_work(bench.desk(), Order(action, ONE))
        return bench

    return prepare


# --- what must have come of it ---------------------------------------------------------------------------------------


def _states(bench: Bench, request_id: str = ONE) -> list[RunState]:
    runs = filter(None, bench.checkout.runs.runs.values())
    return [run.state for run in sorted(runs, key=lambda run: run.run_id) if run.request_id == request_id]


def _is_done(bench: Bench) -> None:
    """Its newest run is done, and every other one is closed."""
    assert _states(bench)[-1] is RunState.DONE
    assert set(_states(bench)[:-1]) <= {RunState.FAILED}
    assert bench.checkout.status(ONE) in ("blocked", "done")


def _found_once(bench: Bench) -> None:
    """What the run's agent found is two drafts, whoever wrote them down; nothing if there is no run."""
    _is_done_or_ready(bench)
    drafts = sorted(each.title for each in bench.checkout.requests.load()[0] if each.found_in == ONE)
    assert drafts == (["Close the file", "Escape names"] if _states(bench) else [])


def _is_done_or_ready(bench: Bench) -> None:
    """It has one run, which is done, or none: killed that early, nobody knows that somebody wanted one."""
    assert _states(bench) in ([], [RunState.DONE])
    assert bench.checkout.status(ONE) == ("blocked" if _states(bench) else "ready")


def _is_never_silently_done(bench: Bench) -> None:
    """What the plan forgot is in whatever is done; a run whose last call a crash took waits for a person."""
    for run in filter(None, bench.checkout.runs.runs.values()):
        files = bench.checkout.repository.files_of(run.tip)
        assert (run.state, FORGOTTEN in files) in ((RunState.DONE, True), (RunState.NEEDS_INPUT, False))
    assert bench.checkout.status(ONE) == ("blocked" if _states(bench) else "ready")


def _ticket_is_done_or_ready(bench: Bench) -> None:
    """A ticket is held by the run that is done, or by none."""
    [ticket] = bench.checkout.tickets.tickets.values()
    states = _states(bench, TICKET)
    assert (states, ticket.request.status) in (([], "ready"), ([RunState.DONE], "blocked"))
    assert bool(ticket.holder) == bool(states)


def _is_done_or_waits(bench: Bench) -> None:
    """Its newest run is done, or waits for a person: as it did before, or because it crashed for the second time."""
    assert _states(bench)[-1] in (RunState.DONE, RunState.NEEDS_INPUT)
    assert set(_states(bench)[:-1]) <= {RunState.FAILED}
    assert bench.checkout.status(ONE) == "blocked"


def _merges_of(bench: Bench, request_id: str) -> int:
    history = bench.checkout.repository.history(bench.checkout.base)
    messages = [bench.checkout.repository.commits[commit].message for commit in history]
    return sum(each.startswith(f"Merge {request_id}:") for each in messages)


def _is_in_once(bench: Bench) -> None:
    assert (_states(bench), bench.checkout.status(ONE)) == ([RunState.DONE], "done")
    assert _merges_of(bench, ONE) == 1


def _newest(bench: Bench) -> Run:
    run = newest_run(bench.engine(), ONE)
    assert run is not None
    return run


def _has_work(bench: Bench, ref: str = "refs/heads/main") -> bool:
    return f"{ONE}.txt" in bench.checkout.repository.files_of(ref)


def _stands_as_the_base(bench: Bench) -> None:
    """A request is blocked only when its work is out of the base; killed behind the move, it is still done."""
    assert _states(bench) == [RunState.DONE]
    assert (_has_work(bench), bench.checkout.status(ONE)) in ((True, "done"), (False, "done"), (False, "blocked"))


def _is_out(bench: Bench) -> None:
    """The work is out of the base, by one commit, and its branch has it."""
    run = _newest(bench)
    assert (_has_work(bench), bench.checkout.status(ONE), run.accepted_as) == (False, "blocked", None)
    assert run.error is not None
    assert run.error.reason_code == "ACCEPTANCE_UNDONE"
    assert _has_work(bench, f"refs/heads/{run.place.branch}")
    history = bench.checkout.repository.history(bench.checkout.base)
    assert sum(bench.checkout.repository.commits[each].message.startswith("Revert ") for each in history) == 1


def _is_in_again(bench: Bench) -> None:
    """The work is in the base once more, by a second merge."""
    assert (_has_work(bench), bench.checkout.status(ONE), _merges_of(bench, ONE)) == (True, "done", 2)
    assert _newest(bench).accepted_as


def _is_in_again_or_not(bench: Bench) -> None:
    assert _states(bench) == [RunState.DONE]
    assert bench.checkout.status(ONE) == "blocked" or _has_work(bench)


def _keeps_its_work(bench: Bench) -> None:
    """In line with the base that it was taken out of, its branch still has the work."""
    assert _states(bench)[-1] in (RunState.DONE, RunState.NEEDS_INPUT)
    assert _has_work(bench, f"refs/heads/{_newest(bench).place.branch}")


def _each_is_in_once(bench: Bench) -> None:
    """Each request has one run, which is in the base once, or none, and is ready still."""
    for request_id in (ONE, TWO):
        states, status = _states(bench, request_id), bench.checkout.status(request_id)
        assert (states, status) in (([], "ready"), ([RunState.DONE], "done"))
        assert _merges_of(bench, request_id) == len(states)


def _ran_once_more_or_is_ready(bench: Bench) -> None:
    """The run before does not speak for the one that was interrupted: that goes on, or the request is as it was."""
    assert (len(_states(bench)), bench.checkout.status(ONE)) in ((2, "done"), (1, "ready"))


def _ran_once_more(bench: Bench) -> None:
    assert (len(_states(bench)), bench.checkout.status(ONE)) == (2, "done")


def _both_are_in(bench: Bench) -> None:
    _each_is_in_once(bench)
    assert [bench.checkout.status(request_id) for request_id in (ONE, TWO)] == ["done", "done"]


def _is_told_once(bench: Bench) -> None:
    """The comment stands in the request once, or nobody has heard of it yet."""
    assert bench.checkout.requests.texts[ONE].count("Not like this.") <= 1
    assert _states(bench)[0] in (RunState.DONE, RunState.FAILED)


def _is_ready_again(bench: Bench) -> None:
    assert bench.checkout.requests.texts[ONE].count("Not like this.") == 1
    assert (_states(bench), bench.checkout.status(ONE)) == ([RunState.FAILED], "ready")


def _is_cancelled(bench: Bench) -> None:
    [run] = [run for run in bench.checkout.runs.runs.values() if run]
    assert (run.state, run.error.reason_code if run.error else None) == (RunState.NEEDS_INPUT, "CANCELLED")


def _nothing_is_lost(bench: Bench) -> None:
    """Whatever a run has committed is in the base, or under a ref of its own."""
    repository = bench.checkout.repository
    for run in filter(None, bench.checkout.runs.runs.values()):
        refs = [bench.checkout.base, *(ref for ref in repository.refs if run.run_id in ref)]
        assert not run.has_commits or any(repository.leads_to(run.tip, ref) for ref in refs)


def _is_whole(bench: Bench) -> None:
    valid, broken = bench.checkout.requests.load()
    assert broken == []
    assert len(valid) in (2, 3, 4)


# --- who comes next --------------------------------------------------------------------------------------------------


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
            "doctor": (_by_doctor, _nothing_is_lost),
        }
        return {**others, "again": (_again(self.act), self.look_again)} if self.look_again else others


def _start(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
    return start_run(engine, ONE)


def _start_ticket(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
    return start_run(engine, TICKET)


def _break(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
    return break_lock(engine, ONE)


def _add(_scene: CalmScene, _checkout: MemoryCheckout, _engine: Engine, desk: Desk) -> object:
    return enqueue_work(desk, Order(TaskAction.START, ONE, task_id="T-1"))


_update = _on_newest(lambda engine, run: update_run(engine, run, ResumeWish()))
_send_back = _on_newest(lambda engine, run: send_back(engine, run, "Not like this."))

CASES = {
    "run": Case(_ready, _start, _is_done_or_ready, _is_done),
    "run (quick)": Case(_quick, _start, _is_done_or_ready, _is_done),
    "run (what the plan forgot)": Case(_forgotten, _start, _is_never_silently_done, _is_never_silently_done),
    "run (further work)": Case(_with_finds, _start, _found_once, _found_once),
    "run (a ticket)": Case(_with_ticket, _start_ticket, _ticket_is_done_or_ready, _ticket_is_done_or_ready),
    "run (by itself)": Case(_by_itself, _start, _each_is_in_once, _is_in_once),
    "run (after a crash)": Case(_interrupted, _start, _is_done_or_waits, _is_done_or_waits),
    "run (once more)": Case(_once_more, _start, _ran_once_more_or_is_ready, _ran_once_more),
    "resume": Case(_asked, _resume(ResumeMode.RESUME), _is_done_or_waits, _is_done),
    "resume (a mended base)": Case(_red_base, _resume(ResumeMode.RESUME), _is_done_or_waits, _is_done),
    "retry-step": Case(_asked, _resume(ResumeMode.RETRY_STEP), _is_done_or_waits, _is_done),
    "replan": Case(_asked, _resume(ResumeMode.REPLAN), _is_done_or_waits, _is_done),
    "resume --update": Case(_in_conflict, _update, _is_done_or_waits, _is_done),
    "accept": Case(_done, _on_newest(accept_run), _is_done, _is_in_once),
    "undo": Case(_accepted, _on_newest(undo_acceptance), _stands_as_the_base, _is_out),
    "accept (undone)": Case(_undone, _on_newest(accept_run), _is_in_again_or_not, _is_in_again),
    "resume --update (undone)": Case(_undone, _update, _keeps_its_work, _keeps_its_work),
    "send-back": Case(_done, _send_back, _is_told_once, _is_ready_again),
    "cancel": Case(_interrupted, _on_newest(ask_to_cancel), _is_done_or_waits, _is_cancelled),
    "auto": Case(_by_itself, _auto, _each_is_in_once, _both_are_in),
    "stop": Case(_by_itself, _stop, _each_is_in_once),
    "clean": Case(_accepted, _clean, _nothing_is_lost, _nothing_is_lost),
    "set": Case(_ready, _set, _is_whole, _is_whole),
    "new": Case(_ready, _new, _is_whole, _is_whole),
    "locks break": Case(_interrupted, _break, _is_done_or_waits),
}
QUEUE_CASES = {
    "queue add": Case(_by_itself, _add, _each_is_in_once),
    "queue cancel": Case(_queued(), _queue_cancel, _each_is_in_once),
    "runner: start": Case(_queued(), _runner, _is_in_once),
    "runner: auto": Case(_queued(TaskAction.AUTO_RUN), _runner, _both_are_in),
}


def _enumerate(case: Case, name: str) -> int:
    """Kill a command before each of its steps, under each recovery; returns how many it has."""
    recover, look = case.recoveries[name]
    whole = enact(case.before(), case.act, None, None).steps
    for step in range(1, whole + 2):
        told = enact(case.before(), case.act, step, recover)
        try:
            assert told.was_killed == (step <= whole)
            look(told.bench)
        except AssertionError as error:
            error.add_note(f"killed before step {step} of {whole}, then {name}")
            raise
    return whole


@pytest.mark.spec("RUN-18")
def test_what_the_plan_forgot_is_done_in_the_same_run_where_nobody_is_killed() -> None:
    bench = enact(_forgotten(), _start, None, None).bench
    assert _states(bench) == [RunState.DONE]
    _is_never_silently_done(bench)


@pytest.mark.spec("RUN-11", "RUN-14", "LCK-5", "REQ-5", "REQ-10", "AUT-4", "GIT-5")
@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for command, case in CASES.items() for name in case.recoveries]
)
def test_killed_at_any_call_of_a_port_a_command_is_set_right_by_what_comes_next(command: str, name: str) -> None:
    assert _enumerate(CASES[command], name) > 0


@pytest.mark.spec("QUE-6", "QUE-7", "RUN-11", "RUN-14")
@pytest.mark.parametrize("command", QUEUE_CASES)
def test_killed_at_any_call_of_a_port_work_of_the_queue_is_set_right_by_the_next_runner(command: str) -> None:
    assert _enumerate(QUEUE_CASES[command], "runner") > 0


def test_a_command_has_as_many_steps_as_one_would_think() -> None:
    """Enough that the enumeration is one: every write of a run, of its request, of git and of the journal."""
    assert enact(_by_itself(), _start, None, None).steps > 40
    assert enact(_by_itself(), _auto, None, None).steps > 100
