"""What people do in a history: by the seed, one command after the other, at any time, at several terminals."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.backlog.metadata import Change
from aiflow.domain.queue.order import Order
from aiflow.domain.queue.task import TaskAction
from aiflow.domain.request import RequestId
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.domain.runs.run import Run
from aiflow.usecases.auto.stop import ask_to_stop
from aiflow.usecases.backlog.edit import edit_request
from aiflow.usecases.clean.clean_up import CleanWish, clean_up, plan_clean_up, rules_for
from aiflow.usecases.engine import Engine
from aiflow.usecases.queue.desk import Desk
from aiflow.usecases.queue.enqueue import enqueue_work
from aiflow.usecases.runner.cancel_task import cancel_task
from aiflow.usecases.runs.accept import accept_run, send_back
from aiflow.usecases.runs.cancel import ask_to_cancel
from aiflow.usecases.runs.find import newest_run
from aiflow.usecases.runs.locks import break_lock, reclaim_locks
from aiflow.usecases.runs.recover import mark_crashed
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from aiflow.usecases.runs.start import start_run
from aiflow.usecases.runs.turn import Patience, in_turn
from aiflow.usecases.runs.undo import undo_acceptance
from aiflow.usecases.runs.update import update_run
from memory_engine import MemoryCheckout
from simulation.scene import Scene
from simulation.world import Faults, Proc

MOST_WAIT_SECONDS = 60.0
Typed = Callable[[Engine, Desk, RequestId], object]


def _run(engine: Engine, _desk: Desk, request_id: RequestId) -> object:
    return start_run(engine, request_id)


def _run_in_turn(engine: Engine, _desk: Desk, request_id: RequestId) -> object:
    """Wait for one's turn, as `--wait` does, and not for ever."""
    until = engine.time.monotonic() + MOST_WAIT_SECONDS
    patience = Patience(lambda _error: None, lambda: engine.time.monotonic() > until)
    return in_turn(engine, lambda mine: start_run(mine, request_id), patience)


def _resume(mode: ResumeMode, *, is_forced: bool = False) -> Typed:
    def typed(engine: Engine, _desk: Desk, request_id: RequestId) -> object:
        run = _newest(engine, request_id)
        step_id = run.current_step_id if run and mode is ResumeMode.RETRY_STEP else None
        return run and resume_run(
            engine, run, ResumeWish(Goal(mode, step_id, is_forced), "That one.", keeps_changes=True)
        )

    return typed


def _update(engine: Engine, _desk: Desk, request_id: RequestId) -> object:
    run = _newest(engine, request_id)
    return run and update_run(engine, run, ResumeWish())


def _accept(engine: Engine, _desk: Desk, request_id: RequestId) -> object:
    run = newest_run(engine, request_id)
    return run and accept_run(engine, run)


def _undo(engine: Engine, _desk: Desk, request_id: RequestId) -> object:
    run = newest_run(engine, request_id)
    return run and undo_acceptance(engine, run)


def _send_back(*, is_dropped: bool = False) -> Typed:
    def typed(engine: Engine, _desk: Desk, request_id: RequestId) -> object:
        run = newest_run(engine, request_id)
        return run and send_back(engine, run, "Not like this.", is_dropped=is_dropped)

    return typed


def _one_by_one(*commands: Typed) -> Typed:
    """Type several commands, each if the one before was not refused."""

    def typed(engine: Engine, desk: Desk, request_id: RequestId) -> object:
        return [command(engine, desk, request_id) for command in commands]

    return typed


def _cancel(engine: Engine, _desk: Desk, request_id: RequestId) -> object:
    run = _newest(engine, request_id)
    return run and ask_to_cancel(engine, run)


def _add(action: TaskAction) -> Typed:
    def typed(_engine: Engine, desk: Desk, request_id: RequestId) -> object:
        prompt = "Do something small." if action is TaskAction.PROMPT else ""
        return enqueue_work(desk, Order(action, request_id, prompt=prompt))

    return typed


def _cancel_task(engine: Engine, desk: Desk, request_id: RequestId) -> object:
    task = desk.queue.live_of(request_id)
    return task and cancel_task(desk, engine, task.task_id, "a person")


def _set_status(status: str) -> Typed:
    def typed(engine: Engine, _desk: Desk, request_id: RequestId) -> object:
        record = (engine.journal, engine.time.now)
        return edit_request(request_id, "status", Change(status), engine.editor, record)

    return typed


def _doctor(engine: Engine, _desk: Desk, request_id: RequestId) -> object:
    reclaim_locks(engine)
    return mark_crashed(engine, request_id)


def _clean(engine: Engine, _desk: Desk, _request_id: RequestId) -> object:
    wish = CleanWish(after_days=0)
    rules = rules_for(engine, wish)
    return clean_up(engine, plan_clean_up(engine, wish, rules), rules)


def _stop(wish: StopRequest) -> Typed:
    return lambda engine, _desk, _request_id: ask_to_stop(engine, wish)


def _break_lock(engine: Engine, _desk: Desk, _request_id: RequestId) -> object:
    """Break whatever lock there is, be its holder alive or not: it may only sleep."""
    holder = engine.locks.holder()
    return holder and break_lock(engine, RequestId(holder.request_id or ""))


def _newest(engine: Engine, request_id: RequestId) -> Run | None:
    latest = engine.runs.latest([request_id]).get(request_id)
    return engine.runs.load(request_id, latest.run_id) if latest else None


# Each with how often it is typed.
COMMANDS: dict[str, tuple[Typed, int]] = {
    "run": (_run, 4),
    "run-wait": (_run_in_turn, 2),
    "resume": (_resume(ResumeMode.RESUME), 5),
    "retry": (_resume(ResumeMode.RETRY_STEP, is_forced=True), 2),
    "replan": (_resume(ResumeMode.REPLAN), 2),
    "update": (_update, 2),
    "accept": (_accept, 6),
    "undo": (_undo, 3),
    "undo, send-back, run": (_one_by_one(_undo, _send_back(), _run), 4),
    "send-back": (_send_back(), 2),
    "send-back, run": (_one_by_one(_send_back(), _run_in_turn), 8),
    "send-back --fresh, run": (_one_by_one(_send_back(is_dropped=True), _run), 2),
    "cancel": (_cancel, 2),
    "q-start": (_add(TaskAction.START), 10),
    "q-resume": (_add(TaskAction.RESUME), 4),
    "q-prompt": (_add(TaskAction.PROMPT), 2),
    "q-auto": (_add(TaskAction.AUTO_RUN), 2),
    "q-cancel": (_cancel_task, 3),
    "ready": (_set_status("ready"), 3),
    "draft": (_set_status("draft"), 1),
    "doctor": (_doctor, 2),
    "clean": (_clean, 2),
    "stop": (_stop(StopRequest.AFTER_RUN), 1),
    "stop-now": (_stop(StopRequest.NOW), 1),
    "break": (_break_lock, 3),
}


def a_crowd(scene: Scene) -> None:
    """Fill a scene: requests, runners, perhaps an auto-run, and people who type."""
    chance = scene.random
    for checkout in scene.checkouts:
        for number in range(chance.choice((2, 3, 4))):
            keys = {"depends_on": "[RQ-0]"} if number and chance.random() < 0.2 else {}
            checkout.add(f"RQ-{number}", priority=chance.choice(("P0", "P1", "P2")), **keys)
        for number in range(chance.choice((0, 0, 1, 2))):
            checkout.tickets.add(number, f"Ticket {number}")
        for _ in range(chance.choice((0, 1, 1, 2, 2))):
            scene.runner(checkout, container=_container(scene))
        if chance.random() < 0.35:
            scene.auto(checkout, container=_container(scene))
        for number in range(chance.choice((1, 2, 3))):
            scene.world.spawn(f"person{number}", _person(scene, checkout), is_immortal=True)
    scene.world.spawn("reviver", lambda process: _revive(scene, process), is_immortal=True)


def some_faults(scene: Scene) -> Faults:
    """Draw what befalls whom: often something, sometimes much, now and then nothing."""
    choice = scene.random.choice
    return Faults(
        kill=choice((0.0, 0.001, 0.004, 0.01)),
        pause=choice((0.0, 0.001, 0.003, 0.006)),
        lost=choice((0.0, 0.0, 0.02, 0.1)),
        jump=choice((0.0, 0.0, 0.0005)),
        until=choice((60.0, 150.0, 300.0)),
    )


def _container(scene: Scene) -> str | None:
    return scene.random.choice((None, None, "box"))


def _person(scene: Scene, checkout: MemoryCheckout) -> Callable[[Proc], None]:
    """Be a person: think, type, think again; a new terminal for every command."""
    names = list(COMMANDS)
    weights = [weight for _, weight in COMMANDS.values()]

    def act(_process: Proc) -> None:
        chance, world = scene.random, scene.world
        while world.now < world.faults.until:
            world.sleep(chance.choice((0.5, 3.0, 10.0, 40.0)))
            if world.now >= world.faults.until:
                return
            [name] = chance.choices(names, weights)
            request_id = chance.choice(checkout.request_ids)
            scene.terminal(checkout, name, _typed(COMMANDS[name][0], request_id))
            if chance.random() < 0.12:
                _commit(checkout, chance)
                scene.watcher.look_at_base(checkout)

    return act


def _typed(typed: Typed, request_id: RequestId) -> Callable[[Engine, Desk], Any]:
    return lambda engine, desk: typed(engine, desk, request_id)


def _commit(checkout: MemoryCheckout, chance: Random) -> None:
    """Commit something to the base branch, by hand: often to a file that runs change, too."""
    repository, base = checkout.repository, checkout.base
    name = chance.choice(("by-hand.txt", "shared.txt", *(f"{each}.txt" for each in checkout.request_ids)))
    tree = repository.keep_tree({**repository.files_of(base), name: f"{chance.random()}".encode()})
    repository.refs["refs/heads/main"] = repository.make_commit(tree, (base,), "By hand\n")


def _revive(scene: Scene, _process: Proc) -> None:
    """Start a new runner now and then in place of one that died."""
    while scene.world.now < scene.world.faults.until:
        scene.world.sleep(25.0)
        for checkout in scene.checkouts:
            if any(runner.is_dead for runner in scene.runners[checkout.name]) and scene.random.random() < 0.5:
                scene.runners[checkout.name] = [each for each in scene.runners[checkout.name] if not each.is_dead]
                scene.runner(checkout, container=_container(scene))
