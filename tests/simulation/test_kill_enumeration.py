"""Every command that changes something, killed at every call of a port: what comes next sets it right.

`AIFLOW_SEED` is of no use here: the steps of a command are always the same, and a failure names the one.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.backlog.metadata import Change
from aiflow.domain.lifecycle import RunState
from aiflow.domain.programs import End, Ended
from aiflow.domain.queue.order import Order
from aiflow.domain.queue.task import TaskAction
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.runs.resume import ResumeMode
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
from aiflow.usecases.runs.locks import break_lock
from aiflow.usecases.runs.resume import ResumeWish
from aiflow.usecases.runs.start import start_run
from aiflow.usecases.runs.undo import undo_acceptance
from aiflow.usecases.runs.update import update_run
from forms import rounds
from memory_engine import TEXTS, MemoryCheckout
from simulation.kill_cases import (
    Case,
    done_bench,
    enumerate_kills,
    has_work,
    newest_of,
    nothing_is_lost,
    on_newest,
    ready_bench,
    resuming,
    start_one,
    states_of,
)
from simulation.kills import (
    FORGOTTEN,
    ONE,
    TWO,
    Bench,
    CalmScene,
    a_bench,
    asked,
    done,
    enact,
    forgetful,
    interrupted,
)

TICKET = RequestId("MEM-1")

# --- what is typed ---------------------------------------------------------------------------------------------------


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


def _quick() -> Bench:
    return a_bench(**{"tests.unit": "make test", "agent.plan": "never", "agent.review": "never"})


def _forgotten() -> Bench:
    """A request of which the plan forgets something."""
    return ready_bench()._replace(agents=forgetful)


def _red_base() -> Bench:
    """A run that stopped because its base failed its tests, and a base that a person has mended since."""
    bench = ready_bench()
    bench.checkout.workshop.run_shell = lambda *_: Ended(End.EXITED, 1)
    run = start_run(bench.engine(), ONE)
    assert run.error is not None
    assert run.error.reason_code == "BASE_TESTS_FAILED"
    repository = bench.checkout.repository
    tree = repository.keep_tree({**repository.files_of(bench.checkout.base), "mended": b"1\n"})
    repository.refs["refs/heads/main"] = repository.make_commit(tree, (bench.checkout.base,), "Mend\n")
    return bench


def _with_ticket() -> Bench:
    bench = ready_bench()
    bench.checkout.requests.texts.clear()
    bench.checkout.tickets.add(1, "A ticket")
    return bench


def _with_finds() -> Bench:
    """Agents that find further work."""
    bench = ready_bench()
    bench.checkout.found = ["Close the file", "Escape names"]
    return bench


def _by_itself() -> Bench:
    return a_bench(accept="auto", **{"tests.unit": "make test"})


def _asked() -> Bench:
    bench = ready_bench()
    asked(bench)
    return bench


def _in_conflict() -> Bench:
    bench = done_bench()
    repository = bench.checkout.repository
    tree = repository.keep_tree({**repository.files_of(bench.checkout.base), f"{ONE}.txt": b"theirs\n"})
    repository.refs["refs/heads/main"] = repository.make_commit(tree, (bench.checkout.base,), "By hand\n")
    return bench


def _interrupted() -> Bench:
    bench = ready_bench()
    interrupted(bench)
    return bench


def _accepted() -> Bench:
    bench = done_bench()
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


def _is_done(bench: Bench) -> None:
    """Its newest run is done, and every other one is closed."""
    assert states_of(bench)[-1] is RunState.DONE
    assert set(states_of(bench)[:-1]) <= {RunState.FAILED}
    assert bench.checkout.status(ONE) in ("blocked", "done")


def _found_once(bench: Bench) -> None:
    """What the run's agent found is two drafts, whoever wrote them down, and new; nothing if there is no run."""
    _is_done_or_ready(bench)
    drafts = sorted(each.title for each in bench.checkout.requests.load()[0] if each.found_in == ONE)
    assert drafts == (["Close the file", "Escape names"] if states_of(bench) else [])
    own = [run for run in bench.checkout.runs.runs.values() if run and run.request_id == ONE]
    assert not any(each.is_known for run in own for each in run.follow_ups.kept)


def _is_done_or_ready(bench: Bench) -> None:
    """It has one run, which is done, or none: killed that early, nobody knows that somebody wanted one."""
    assert states_of(bench) in ([], [RunState.DONE])
    assert bench.checkout.status(ONE) == ("blocked" if states_of(bench) else "ready")


def _is_never_silently_done(bench: Bench) -> None:
    """What the plan forgot is in whatever is done; a run whose last call a crash took waits for a person."""
    for run in filter(None, bench.checkout.runs.runs.values()):
        files = bench.checkout.repository.files_of(run.tip)
        assert (run.state, FORGOTTEN in files) in ((RunState.DONE, True), (RunState.NEEDS_INPUT, False))
    assert bench.checkout.status(ONE) == ("blocked" if states_of(bench) else "ready")


def _ticket_is_done_or_ready(bench: Bench) -> None:
    """A ticket is held by the run that is done, or by none."""
    [ticket] = bench.checkout.tickets.tickets.values()
    states = states_of(bench, TICKET)
    assert (states, ticket.request.status) in (([], "ready"), ([RunState.DONE], "blocked"))
    assert bool(ticket.holder) == bool(states)


def _is_done_or_waits(bench: Bench) -> None:
    """Its newest run is done, or waits for a person: as it did before, or because it crashed for the second time."""
    assert states_of(bench)[-1] in (RunState.DONE, RunState.NEEDS_INPUT)
    assert set(states_of(bench)[:-1]) <= {RunState.FAILED}
    assert bench.checkout.status(ONE) == "blocked"


def _merges_of(bench: Bench, request_id: str) -> int:
    history = bench.checkout.repository.history(bench.checkout.base)
    messages = [bench.checkout.repository.commits[commit].message for commit in history]
    return sum(each.startswith(f"Merge {request_id}:") for each in messages)


def _is_in_once(bench: Bench) -> None:
    assert (states_of(bench), bench.checkout.status(ONE)) == ([RunState.DONE], "done")
    assert _merges_of(bench, ONE) == 1


def _stands_as_the_base(bench: Bench) -> None:
    """A request is blocked only when its work is out of the base; killed behind the move, it is still done."""
    assert states_of(bench) == [RunState.DONE]
    assert (has_work(bench), bench.checkout.status(ONE)) in ((True, "done"), (False, "done"), (False, "blocked"))


def _is_out(bench: Bench) -> None:
    """The work is out of the base, by one commit, and its branch has it."""
    run = newest_of(bench)
    assert (has_work(bench), bench.checkout.status(ONE), run.accepted_as) == (False, "blocked", None)
    assert run.error is not None
    assert run.error.reason_code == "ACCEPTANCE_UNDONE"
    assert has_work(bench, f"refs/heads/{run.place.branch}")
    history = bench.checkout.repository.history(bench.checkout.base)
    assert sum(bench.checkout.repository.commits[each].message.startswith("Revert ") for each in history) == 1


def _is_in_again(bench: Bench) -> None:
    """The work is in the base once more, by a second merge."""
    assert (has_work(bench), bench.checkout.status(ONE), _merges_of(bench, ONE)) == (True, "done", 2)
    assert newest_of(bench).accepted_as


def _is_in_again_or_not(bench: Bench) -> None:
    assert states_of(bench) == [RunState.DONE]
    assert bench.checkout.status(ONE) == "blocked" or has_work(bench)


def _keeps_its_work(bench: Bench) -> None:
    """In line with the base that it was taken out of, its branch still has the work."""
    assert states_of(bench)[-1] in (RunState.DONE, RunState.NEEDS_INPUT)
    assert has_work(bench, f"refs/heads/{newest_of(bench).place.branch}")


def _each_is_in_once(bench: Bench) -> None:
    """Each request has one run, which is in the base once, or none, and is ready still."""
    for request_id in (ONE, TWO):
        states, status = states_of(bench, request_id), bench.checkout.status(request_id)
        assert (states, status) in (([], "ready"), ([RunState.DONE], "done"))
        assert _merges_of(bench, request_id) == len(states)


def _ran_once_more_or_is_ready(bench: Bench) -> None:
    """The run before does not speak for the one that was interrupted: that goes on, or the request is as it was."""
    assert (len(states_of(bench)), bench.checkout.status(ONE)) in ((2, "done"), (1, "ready"))


def _ran_once_more(bench: Bench) -> None:
    assert (len(states_of(bench)), bench.checkout.status(ONE)) == (2, "done")


def _both_are_in(bench: Bench) -> None:
    _each_is_in_once(bench)
    assert [bench.checkout.status(request_id) for request_id in (ONE, TWO)] == ["done", "done"]


def _is_told_once(bench: Bench) -> None:
    """The comment stands in the request once, or nobody has heard of it yet."""
    assert bench.checkout.requests.texts[ONE].count("Not like this.") <= 1
    assert states_of(bench)[0] in (RunState.DONE, RunState.FAILED)


def _is_ready_again(bench: Bench) -> None:
    assert bench.checkout.requests.texts[ONE].count("Not like this.") == 1
    assert (states_of(bench), bench.checkout.status(ONE)) == ([RunState.FAILED], "ready")


def _is_cancelled(bench: Bench) -> None:
    [run] = [run for run in bench.checkout.runs.runs.values() if run]
    assert (run.state, run.error.reason_code if run.error else None) == (RunState.NEEDS_INPUT, "CANCELLED")


def _is_whole(bench: Bench) -> None:
    valid, broken = bench.checkout.requests.load()
    assert broken == []
    assert len(valid) in (2, 3, 4)


# --- the commands ---------------------------------------------------------------------------------------------------


def _start_ticket(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
    return start_run(engine, TICKET)


def _break(_scene: CalmScene, _checkout: MemoryCheckout, engine: Engine, _desk: Desk) -> object:
    return break_lock(engine, ONE)


def _add(_scene: CalmScene, _checkout: MemoryCheckout, _engine: Engine, desk: Desk) -> object:
    return enqueue_work(desk, Order(TaskAction.START, ONE, task_id="T-1"))


_update = on_newest(lambda engine, run: update_run(engine, run, ResumeWish()))
_send_back = on_newest(lambda engine, run: send_back(engine, run, "Not like this."))

CASES = {
    "run": Case(ready_bench, start_one, _is_done_or_ready, _is_done),
    "run (quick)": Case(_quick, start_one, _is_done_or_ready, _is_done),
    "run (what the plan forgot)": Case(_forgotten, start_one, _is_never_silently_done, _is_never_silently_done),
    "run (further work)": Case(_with_finds, start_one, _found_once, _found_once),
    "run (a ticket)": Case(_with_ticket, _start_ticket, _ticket_is_done_or_ready, _ticket_is_done_or_ready),
    "run (by itself)": Case(_by_itself, start_one, _each_is_in_once, _is_in_once),
    "run (after a crash)": Case(_interrupted, start_one, _is_done_or_waits, _is_done_or_waits),
    "run (once more)": Case(_once_more, start_one, _ran_once_more_or_is_ready, _ran_once_more),
    "resume": Case(_asked, resuming(ResumeMode.RESUME), _is_done_or_waits, _is_done),
    "resume (a mended base)": Case(_red_base, resuming(ResumeMode.RESUME), _is_done_or_waits, _is_done),
    "retry-step": Case(_asked, resuming(ResumeMode.RETRY_STEP), _is_done_or_waits, _is_done),
    "replan": Case(_asked, resuming(ResumeMode.REPLAN), _is_done_or_waits, _is_done),
    "resume --update": Case(_in_conflict, _update, _is_done_or_waits, _is_done),
    "accept": Case(done_bench, on_newest(accept_run), _is_done, _is_in_once),
    "undo": Case(_accepted, on_newest(undo_acceptance), _stands_as_the_base, _is_out),
    "accept (undone)": Case(_undone, on_newest(accept_run), _is_in_again_or_not, _is_in_again),
    "resume --update (undone)": Case(_undone, _update, _keeps_its_work, _keeps_its_work),
    "send-back": Case(done_bench, _send_back, _is_told_once, _is_ready_again),
    "cancel": Case(_interrupted, on_newest(ask_to_cancel), _is_done_or_waits, _is_cancelled),
    "auto": Case(_by_itself, _auto, _each_is_in_once, _both_are_in),
    "stop": Case(_by_itself, _stop, _each_is_in_once),
    "clean": Case(_accepted, _clean, nothing_is_lost, nothing_is_lost),
    "set": Case(ready_bench, _set, _is_whole, _is_whole),
    "new": Case(ready_bench, _new, _is_whole, _is_whole),
    "locks break": Case(_interrupted, _break, _is_done_or_waits),
}
QUEUE_CASES = {
    "queue add": Case(_by_itself, _add, _each_is_in_once),
    "queue cancel": Case(_queued(), _queue_cancel, _each_is_in_once),
    "runner: start": Case(_queued(), _runner, _is_in_once),
    "runner: auto": Case(_queued(TaskAction.AUTO_RUN), _runner, _both_are_in),
}


@pytest.mark.spec("RUN-18")
def test_what_the_plan_forgot_is_done_in_the_same_run_where_nobody_is_killed() -> None:
    bench = enact(_forgotten(), start_one, None, None).bench
    assert states_of(bench) == [RunState.DONE]
    _is_never_silently_done(bench)


@pytest.mark.longer
@pytest.mark.spec("RUN-11", "RUN-14", "LCK-5", "REQ-5", "REQ-10", "AUT-4", "GIT-5")
@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for command, case in CASES.items() for name in case.recoveries]
)
def test_killed_at_any_call_of_a_port_a_command_is_set_right_by_what_comes_next(command: str, name: str) -> None:
    assert enumerate_kills(CASES[command], name, rounds(3, 1)) > 0


@pytest.mark.spec("QUE-6", "QUE-7", "RUN-11", "RUN-14")
@pytest.mark.parametrize("command", QUEUE_CASES)
def test_killed_at_any_call_of_a_port_work_of_the_queue_is_set_right_by_the_next_runner(command: str) -> None:
    assert enumerate_kills(QUEUE_CASES[command], "runner") > 0


def test_a_command_has_as_many_steps_as_one_would_think() -> None:
    """Enough that the enumeration is one: every write of a run, of its request, of git and of the journal."""
    assert enact(_by_itself(), start_one, None, None).steps > 40
    assert enact(_by_itself(), _auto, None, None).steps > 100
