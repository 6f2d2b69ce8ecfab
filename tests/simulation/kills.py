"""One command, killed at one of its steps, and what brings everything in order again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

from aiflow.adapters.memory.queue import MemoryStore
from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.programs import End, Ended
from aiflow.domain.request import RequestId
from aiflow.domain.runs.run import Run
from aiflow.usecases.engine import Engine
from aiflow.usecases.queue.desk import Desk
from aiflow.usecases.read_backlog import read_backlog, with_interrupted
from aiflow.usecases.runs.start import start_run
from memory_engine import MemoryCheckout, MemoryProcess, look, obliging, plan
from simulation.scene import REASK_SECONDS, Scene, quick_settings
from simulation.world import Killed, Proc, told_on_failure

ONE, TWO = RequestId("RQ-1"), RequestId("RQ-2")
# A call that changes nothing: killed behind it, a process leaves what it would have left behind the call before.
READS = frozenset(
    {
        *("latest", "all_of", "load", "find", "brief", "report", "read", "body", "held", "holder", "holder_of"),
        *(
            "queue_holder",
            "survey",
            "is_cancelled",
            "stop_asked",
            "is_turn_wanted",
            "facts",
            "version",
            "tracked",
            "untracked",
        ),
        *("is_intact", "tip", "is_ancestor", "find_commit", "diff", "differing", "has_unsaved", "marked", "state_of"),
        "confirm",
        *("size_of", "file_system", "unwritable", "free_bytes", "is_repository_root", "confinement", "get", "live_of"),
        *(
            "prompt",
            "pages",
            "waiting",
            "tasks_of",
            "drafted",
            "passed",
            "all",
            "allow",
            "writing",
            "wait",
            "adopt",
        ),
    }
)
FORGOTTEN, PASSED = "CHANGES.md", b'{"verdict":"pass","findings":[]}'
# Longer than anything takes here: a lock's TTL, a heartbeat's timeout, a run.
PATIENCE_SECONDS = 1500.0


Script = Callable[..., AgentReply]


class Bench(NamedTuple):
    """A checkout in memory, its store, and who works there."""

    checkout: MemoryCheckout
    store: MemoryStore
    agents: Callable[[MemoryCheckout], Script] = obliging

    def engine(self, script: Callable[..., AgentReply] | None = None) -> Engine:
        """Give the engine of a process that nothing befalls."""
        return MemoryProcess(self.checkout, 1, PlayedTime(), script or obliging(self.checkout)).engine()

    def desk(self) -> Desk:
        """Give the queue, to put something into it."""
        scene = CalmScene(0, self.store, self.checkout)
        actor = MemoryProcess(self.checkout, 1, PlayedTime(), obliging(self.checkout))
        return scene.queue_desk(actor, actor.engine())


def a_bench(**settings: Any) -> Bench:
    """Make a checkout with two requests."""
    checkout = MemoryCheckout(settings=quick_settings(**settings))
    checkout.add(ONE)
    checkout.add(TWO)
    return Bench(checkout, MemoryStore())


def forgetful(checkout: MemoryCheckout) -> Script:
    """Give agents whose plan forgets what only the last review finds, for it alone sees the whole change (RUN-18)."""

    def script(call: AgentCall, *_: Any) -> AgentReply:
        if call.role is Role.PLANNER:
            return plan("S01", "S02")
        if call.role is Role.QA:
            look(call)
            has_forgotten = call.whole is not None and FORGOTTEN not in call.whole()
            return AgentReply(f'{{"verdict":"fail","findings":["{FORGOTTEN}"]}}'.encode() if has_forgotten else PASSED)
        files = checkout.repository.worktrees[call.cwd].files
        files[f"{call.step.id if call.step else ''}.txt"] = call.run_id.encode()
        if any(FORGOTTEN in told.summary for told in call.feedback):
            files[FORGOTTEN] = b"Done as well.\n"
        return AgentReply(b'{"status":"done"}')

    return script


def done(bench: Bench, request_id: RequestId = ONE) -> Run:
    """Let a request's run be done."""
    return start_run(bench.engine(), request_id)


def asked(bench: Bench) -> Run:
    """Let a run stop with a question, in its first step."""

    def script(call: AgentCall, *_: Any) -> AgentReply:
        if call.role is Role.PLANNER:
            return plan("S01", "S02")
        bench.checkout.repository.worktrees[call.cwd].files["half.txt"] = b"half\n"
        return AgentReply(b'{"status":"needs_input","question":"Which one?"}')

    return start_run(bench.engine(script), ONE)


def interrupted(bench: Bench) -> Run:
    """Let a process die in the middle of a run."""

    def script(call: AgentCall, *_: Any) -> AgentReply:
        if call.role is Role.PLANNER:
            return plan("S01")
        raise Killed

    with contextlib.suppress(Killed):
        start_run(bench.engine(script), ONE)
    [run] = filter(None, bench.checkout.runs.runs.values())
    return run


class CalmScene(Scene):
    """A world in which nothing happens by chance: agents do what they are asked, and only who is to be killed is."""

    call_seconds = (0.5,)

    def __init__(
        self,
        seed: int,
        store: MemoryStore,
        checkout: MemoryCheckout,
        agents: Callable[[MemoryCheckout], Script] = obliging,
    ) -> None:
        super().__init__(seed, store, checkout)
        self.agents = agents
        self.world.is_calm = True
        self.world.reads = READS
        checkout.workshop.run_shell = lambda *_: Ended(End.EXITED, 0)

    def answer(self, checkout: MemoryCheckout, call: AgentCall) -> AgentReply:
        """Answer as an obliging agent does, who may be killed half way."""
        if call.role is Role.IMPLEMENTER:
            checkout.repository.worktrees[call.cwd].files[f"{call.brief.id}.txt"] = b"half of it\n"
            self.world.step("agents.half")
        return self.agents(checkout)(call, lambda _data: None, lambda: False)


Act = Callable[[CalmScene, MemoryCheckout, Engine, Desk], object]
Recover = Callable[[CalmScene, MemoryCheckout], Proc]


class Told(NamedTuple):
    """What came of one killing: the checkout as it is at rest, and how many steps the command had until then."""

    bench: Bench
    steps: int
    was_killed: bool


def enact(bench: Bench, act: Act, kill_at: int | None, recover: Recover | None) -> Told:
    """Carry a command out, kill it before one of its steps, let somebody recover, and look whether all is well."""
    scene = CalmScene(0, bench.store, bench.checkout, bench.agents)
    world, checkout = scene.world, bench.checkout
    kept: list[Proc] = []

    def command(process: Proc) -> None:
        process.kill_at = kill_at
        actor = scene.actor(checkout, process)
        engine = actor.engine()
        desk = scene.queue_desk(actor, engine)
        process.steps = 0
        scene.politely(process, lambda: act(scene, checkout, engine, desk))

    def janitor(process: Proc) -> None:
        kept.append(world.spawn("command", command))
        _wait(scene, lambda: kept[0].is_dead)
        if recover is not None:
            helper = recover(scene, checkout)
            _wait(
                scene, lambda: helper.is_dead or (helper in scene.runners[checkout.name] and scene.watcher.is_at_rest())
            )
        scene.ask_all_to_stop()
        _wait(scene, lambda: all(each.is_dead for each in world.processes.values() if each is not process))
        engine = scene.actor(checkout, process).engine()
        if recover is not None:
            if not scene.watcher.is_at_rest():
                world.violate(f"no rest: {scene.watcher.unrest()}")
            backlog = with_interrupted(read_backlog(engine.backlog), engine.locks)
            scene.watcher.check_rest(checkout, backlog)

    with told_on_failure(world):
        world.spawn("janitor", janitor, is_immortal=True)
        world.run()
    steps = kept[0].steps
    return Told(bench, steps, kill_at is not None and steps >= kill_at)


def _wait(scene: CalmScene, is_so: Callable[[], bool]) -> None:
    until = scene.world.now + PATIENCE_SECONDS
    while not is_so():
        scene.world.sleep(REASK_SECONDS / 4)
        if scene.world.now > until:
            scene.world.violate(f"waited in vain: {scene.watcher.unrest()}")
