"""One history: two checkouts that share a store, runners, people at terminals, faults, and the rest that comes of it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from aiflow.adapters.memory.queue import MemoryStore
from aiflow.adapters.memory.wake import MemoryBells
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.backlog.explanation import explain
from aiflow.domain.programs import End, Ended
from aiflow.domain.queue.runner import Runner
from aiflow.domain.queue.why_waiting import standing_of
from aiflow.domain.runs.merge import has_markers
from aiflow.domain.runs.worktree import Place
from aiflow.errors import AiflowError
from aiflow.settings import Settings, Source, settle
from aiflow.usecases.auto.run import auto_run, limits_of
from aiflow.usecases.auto.shift import AutoTerms
from aiflow.usecases.engine import Engine
from aiflow.usecases.queue.desk import Desk, look_around
from aiflow.usecases.read_backlog import read_backlog, with_interrupted
from aiflow.usecases.runner.work_tasks import work_tasks
from memory_engine import NAMESPACE, TEXTS, MemoryCheckout, MemoryProcess, look, plan
from simulation.invariants import Watcher, late_file, own_file
from simulation.ports import ResolvingQueue, SteppedPort
from simulation.world import Faults, Proc, SimMutex, SimTime, World, told_on_failure

TTL_SECONDS = 60.0
TIMEOUT_SECONDS = 30.0
POLL_SECONDS = 5.0
# Behind the last fault everything has come to rest within this time: a lock's TTL, a heartbeat's timeout, a few runs.
REST_SECONDS = 4000.0
REASK_SECONDS = 20.0
# What is asked several times a second is asked more seldom here: the same steps, and histories of a length to look at.
COARSE = {
    "aiflow.usecases.runner.desk.EAR_SECONDS": 2.5,
    "aiflow.usecases.runs.turn.LOOK_SECONDS": 1.0,
    "aiflow.usecases.runs.locks.LOOK_SECONDS": 1.0,
    "aiflow.usecases.runner.claim_in_turn.LOOK_SECONDS": 1.0,
    "aiflow.usecases.runner.claim_in_turn.MOST_WAIT_SECONDS": 5.0,
    "aiflow.usecases.runs.turn.RECLAIM_SECONDS": 2.0,
    "aiflow.usecases.runner.work_tasks.EAR_SECONDS": 2.5,
    "aiflow.usecases.runner.heartbeat.WATCH_SECONDS": 2.0,
    "aiflow.usecases.auto.shift.POLL_SECONDS": 1.0,
    "aiflow.usecases.auto.attempt.WAY_SECONDS": 1.0,
}


class Scene:
    """A world with checkouts in it, and whoever comes to work there."""

    call_seconds: tuple[float, ...] = (0.5, 2.0, 4.0, 15.0)

    def __init__(self, seed: int, store: MemoryStore | None = None, checkout: MemoryCheckout | None = None) -> None:
        self.world = World(seed)
        self.random = self.world.random
        self.store = store or MemoryStore()
        self.bells = MemoryBells()
        self.asked: dict[int, StopRequest] = {}
        names = ("one", "two")[: self.random.choice((1, 1, 2))]
        self.checkouts = [checkout] if checkout is not None else [_new_checkout(name, self.random) for name in names]
        for each in self.checkouts:
            self._settle_in(each)
        self.watcher = Watcher(self.world, self.store, self.checkouts)
        self.world.on_death = self.watcher.bury
        self.runners: dict[str, list[Proc]] = {checkout.name: [] for checkout in self.checkouts}

    def _settle_in(self, checkout: MemoryCheckout) -> None:
        """Let a checkout be a part of this world."""
        guard = SimMutex(self.world)
        self.world.mutexes.append(guard)
        checkout.locks.guard = guard
        checkout.locks.life = checkout.wishes.life = self.world.life
        checkout.locks.end_leftovers = lambda run_id: self.watcher.end_leftovers(checkout, run_id)
        checkout.workshop.run_shell = self._shell

    def actor(self, checkout: MemoryCheckout, process: Proc) -> MemoryProcess:
        """Give a process its way to work in a checkout."""

        def watch(*what: Any) -> None:
            self.watcher.heard(checkout, process, what)

        def wrap(name: str, port: Any) -> Any:
            stepped = SteppedPort(self.world, name, port, watch)
            return ResolvingQueue(stepped, port) if name == "queue" else stepped

        def script(call: AgentCall, _output: Any, should_stop: Callable[[], bool]) -> AgentReply:
            return self._agent(checkout, process, call, should_stop)

        time = SimTime(self.world, process)
        return MemoryProcess(checkout, process.pid, time, script, wrap, process.container)

    # --- who works ---------------------------------------------------------------------------------------------------

    def runner(self, checkout: MemoryCheckout, **more: Any) -> Proc:
        """Start a runner in a checkout."""

        def act(process: Proc) -> None:
            actor = self.actor(checkout, process)
            asked = lambda: self.asked.get(process.pid, StopRequest.NONE)  # noqa: E731
            desk = actor.desk(self.store, self.bells, asked=asked, is_gone=lambda each: self._is_gone(process, each))
            self.politely(process, lambda: work_tasks(desk))

        process = self.world.spawn("runner", act, **more)
        self.runners[checkout.name].append(process)
        return process

    def auto(self, checkout: MemoryCheckout, **more: Any) -> Proc:
        """Start an auto-run at a terminal."""

        def act(process: Proc) -> None:
            actor = self.actor(checkout, process)
            engine = actor.engine()
            asked = lambda: self.asked.get(process.pid, StopRequest.NONE)  # noqa: E731
            records = actor.wrap("auto_records", checkout.session)
            terms = AutoTerms(records, limits_of(engine.settings), TEXTS, asked=asked)
            self.politely(process, lambda: auto_run(engine, terms))

        return self.world.spawn("auto", act, **more)

    def terminal(self, checkout: MemoryCheckout, name: str, command: Callable[[Engine, Desk], object]) -> Proc:
        """Let a person type one command."""

        def act(process: Proc) -> None:
            actor = self.actor(checkout, process)
            engine = actor.engine()
            desk = self.queue_desk(actor, engine)
            self.politely(process, lambda: command(engine, desk))

        return self.world.spawn(name, act)

    def queue_desk(self, actor: MemoryProcess, engine: Engine) -> Desk:
        """Give what everything about the queue works with."""
        runner_desk = actor.desk(self.store, self.bells, engine)
        runner_desk.wake.close()
        return runner_desk

    def politely(self, process: Proc, act: Callable[[], object]) -> None:
        """Let a command end with a refusal that has a reason; anything else is a defect."""
        try:
            act()
        except AiflowError as error:
            self.world.tell(process, f"refused: {error.reason_code} {dict(error.context)}")

    def _is_gone(self, process: Proc, runner: Runner) -> bool:
        other = self.world.processes.get(runner.pid or 0)
        return other is not None and other.is_dead and other.container == process.container

    # --- agents and tests --------------------------------------------------------------------------------------------

    def _agent(
        self, checkout: MemoryCheckout, process: Proc, call: AgentCall, should_stop: Callable[[], bool]
    ) -> AgentReply:
        world, watcher = self.world, self.watcher
        work = watcher.enter(checkout, process, call)
        try:
            until = world.now + self.random.choice(self.call_seconds)
            while world.now < until:
                world.sleep(min(1.0, until - world.now))
                if work.is_ended:
                    return AgentReply(reason_code="AGENT_FAILED", detail="ended from outside")
                watcher.poll(work)
                if should_stop():
                    return AgentReply(reason_code="CANCELLED")
            return self.answer(checkout, call)
        finally:
            watcher.leave(work)

    def answer(self, checkout: MemoryCheckout, call: AgentCall) -> AgentReply:
        """Answer as agents do: mostly as they should."""
        draw = self.random.random()
        if draw < 0.08:
            return AgentReply(reason_code="AGENT_FAILED", detail="it fell over", exit_code=1)
        if draw < 0.12 and call.role is not Role.QA:
            return AgentReply(b'{"status":"needs_input","question":"Which one?"}')
        if call.role is Role.PLANNER:
            return plan(*("S01", "S02")[: self.random.choice((1, 1, 2))])
        if call.role is Role.QA:
            return self._review(call, has_doubts=draw < 0.12)
        tree = checkout.repository.worktrees.get(call.cwd)
        if tree is not None:
            self._write(tree.files, call)
        if draw > 0.8:  # sometimes the same as before, or as in another request
            return AgentReply(f'{{"status":"done","follow_ups":["Found {int(draw * 100)}", "Tidy up"]}}'.encode())
        return AgentReply(b'{"status":"done"}')

    def _review(self, call: AgentCall, *, has_doubts: bool) -> AgentReply:
        """Miss what the plan forgot, where the whole change is to be judged; now and then find something anyway."""
        look(call)
        late = late_file(call.run_id)
        if late and call.is_at_the_end and late not in (call.whole or call.changes)():
            return AgentReply(f'{{"verdict":"fail","findings":["{late}"]}}'.encode())
        return AgentReply(b'{"verdict":"fail","findings":["no"]}' if has_doubts else b'{"verdict":"pass"}')

    def _write(self, files: dict[str, bytes], call: AgentCall) -> None:
        """Change a file that others change, too, and one of the run's own; mostly resolve what conflicts."""
        step = call.step.id if call.step else ""
        text = f"{call.run_id} {step} {call.attempt}\n".encode()
        files["shared.txt" if self.random.random() < 0.3 else f"{call.brief.id}.txt"] = text
        files[own_file(call.run_id)] = text
        if self.random.random() < 0.9:
            files |= {name: text for name, was in files.items() if has_markers(was)}
        late = late_file(call.run_id)
        if late and any(late in told.summary for told in call.feedback):
            files[late] = text

    def _shell(self, _command: str, _place: Place, _output: Any, should_stop: Callable[[], bool]) -> Ended:
        self.world.sleep(self.random.choice((0.2, 2.0)))
        if should_stop():
            return Ended(End.STOPPED)
        return Ended(End.EXITED, int(self.random.random() < 0.08))

    # --- rest --------------------------------------------------------------------------------------------------------

    def play(self, crowd: Callable[[Scene], None], faults: Faults) -> None:
        """Let a crowd work under faults, then let everything come to rest, and look whether all is well."""
        self.world.faults = faults
        with told_on_failure(self.world):
            crowd(self)
            self.world.spawn("janitor", self._bring_to_rest, is_immortal=True)
            self.world.run()

    def _ask_why(self, checkout: MemoryCheckout, process: Proc) -> None:
        """Whatever lives can be explained, in the middle of everything."""
        actor = self.actor(checkout, process)
        engine = actor.engine()
        desk = self.queue_desk(actor, engine)
        live = [task for task in self.store.tasks.values() if not task.is_final]
        around = look_around(desk, live)
        if any(standing_of(task, around) is None for task in live if not task.is_final):
            self.world.violate("a task lives, and nothing says what it waits for")
        backlog = with_interrupted(read_backlog(engine.backlog), engine.locks)
        for request in backlog.requests:
            explain(request.id, backlog)

    def ask_all_to_stop(self) -> None:
        """Ask everybody to end behind what they are at."""
        for process in self.world.processes.values():
            self.asked[process.pid] = StopRequest.AFTER_RUN

    def _bring_to_rest(self, janitor: Proc) -> None:
        """Wait until the faults are over, have a runner in every checkout, and end them when there is nothing to do."""
        world = self.world
        world.sleep(self.world.faults.until)
        for checkout in self.checkouts:
            self._ask_why(checkout, janitor)
            self.runner(checkout)
        until, calm = world.now + REST_SECONDS, 0
        while calm < 3:
            world.sleep(REASK_SECONDS)
            calm = calm + 1 if self.watcher.is_at_rest() else 0
            if world.now > until:
                world.violate(f"no rest: {self.watcher.unrest()}")
        self.ask_all_to_stop()
        while any(not each.is_dead for each in world.processes.values() if each is not janitor):
            world.sleep(REASK_SECONDS)
            if world.now > until + REST_SECONDS:
                world.violate("somebody does not stop")
        for checkout in self.checkouts:
            engine = self.actor(checkout, janitor).engine()
            backlog = with_interrupted(read_backlog(engine.backlog), engine.locks)
            self.watcher.check_rest(checkout, backlog)


def quick_settings(**given: Any) -> Settings:
    """Give settings under which locks expire and runners are missed soon."""
    usual = {
        "locks.ttl_seconds": TTL_SECONDS,
        "queue.poll_ms": POLL_SECONDS * 1000,
        "queue.heartbeat_timeout_seconds": TIMEOUT_SECONDS,
        "auto.stop_after_failed": 0,
        "auto.stop_after_needs_input": 0,
    }
    return settle({Source.FLAG: {**usual, **given}})


def _new_checkout(name: str, chance: Random) -> MemoryCheckout:
    accept, tests = chance.choice(("auto", "manual")), chance.choice(("make test", ""))
    return MemoryCheckout(name, quick_settings(accept=accept, **{"tests.unit": tests}))


__all__ = ["COARSE", "NAMESPACE", "Scene"]
