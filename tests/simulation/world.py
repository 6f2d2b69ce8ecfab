"""A world in which several processes work at once, by one seed: their time, their steps, and what befalls them.

Every call of a port is a step. Before each, some time passes, and whoever is next by then goes on: so the delays alone
decide the order. At a step a process may be killed, paused for long, have its host's clock set, or (calls of the store)
get no answer, though the call was carried out, or not. Nothing here depends on the machine: a seed is one history.
"""

from __future__ import annotations

import heapq
import itertools
import os
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from aiflow.domain.process import Liveness, Process
from aiflow.errors import EnvironmentProblemError
from simulation.threads import Hands

BEGINNING = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AFTER_ERROR_SECONDS = 1.0
MOST_STEPS = 60_000
TRACED = 6_000


class Killed(BaseException):
    """The process is dead: nothing catches this, and no port does anything for it any more."""


class ViolationError(AssertionError):
    """Something happened that must never happen."""


@dataclass
class Faults:
    """How likely each fault is at one step, and until when there are any."""

    kill: float = 0.0
    pause: float = 0.0
    lost: float = 0.0
    jump: float = 0.0
    until: float = 0.0


@dataclass(eq=False)
class Proc:
    """One process: its name for the trace, its number, its host, and its container, if it is in one."""

    name: str
    pid: int
    host: str = "host"
    container: str | None = None
    is_dead: bool = False
    is_immortal: bool = False
    steps: int = 0
    kill_at: int | None = None
    paused_until: float = 0.0
    resumed_at: float = 0.0
    fibers: list[Fiber] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)


class Fiber:
    """One thread of a process."""

    def __init__(self, world: World, process: Proc, act: Callable[[], object]) -> None:
        self.world = world
        self.process = process
        self.ready_at = world.now
        self.ticket = 0
        self.is_done = False
        self.waits: list[Fiber] | None = None
        self._act = act
        self.hands = Hands.take(self._live)

    def _live(self) -> Callable[[], None]:
        world = self.world
        try:
            if not self.process.is_dead:
                self._act()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - told by the world's end
            world.fail(error)
        self.is_done = True
        following = world.pick()
        return following.hands.baton.release if following is not None else world.end.release


class Timer:
    """Something done again and again beside a process's work, in one piece."""

    def __init__(self, world: World, process: Proc, act: Callable[[], float]) -> None:
        self._world = world
        self._process = process
        self._act = act
        self.is_over = False
        # Nothing takes any time but what sleeps, and no fault happens but the kills that were ordered.
        self.is_calm = False
        # Calls that do not count as a process's own steps.
        self.reads: frozenset[str] = frozenset()

    def start(self, seconds: float = 0.0) -> None:
        self._process.timers.append(self)
        self._world.push(self._world.now + seconds, self)

    def poke(self) -> None:
        self._world.push(self._world.now, self)

    def close(self) -> None:
        self.is_over = True

    def leave(self) -> None:
        self.close()

    def turn(self) -> None:
        if self.is_over or self._process.is_dead:
            return
        late = self._process.paused_until - self._world.now
        self._world.push(self._world.now + (late if late > 0 else self._act()), self)


class FiberBeside:
    """Something done again and again beside a process's work, with steps of its own."""

    def __init__(self, world: World, process: Proc, act: Callable[[], float]) -> None:
        self._world = world
        self._process = process
        self._act = act
        self._is_over = False
        self._is_poked = False
        self._fiber: Fiber | None = None
        self._is_asleep = False

    def start(self, seconds: float = 0.0) -> None:
        self._pause = seconds
        self._fiber = self._world.fork(self._process, self._go_on)

    def poke(self) -> None:
        self._is_poked = True
        if self._is_asleep and self._fiber is not None:
            self._world.wake(self._fiber)

    def leave(self) -> None:
        self._is_over = True
        self.poke()

    def close(self) -> None:
        self.leave()
        while self._fiber is not None and not self._fiber.is_done:
            self._world.sleep(0.05)

    def _go_on(self) -> None:
        while True:
            if not self._is_poked:
                self._is_asleep = True
                self._world.sleep(self._pause)
                self._is_asleep = False
            self._is_poked = False
            if self._is_over:
                return
            try:
                self._pause = self._act()
            except Exception:  # noqa: BLE001 - as the threads of the real one
                self._pause = AFTER_ERROR_SECONDS


class SimTime:
    """The time of one process."""

    def __init__(self, world: World, process: Proc) -> None:
        self._world = world
        self._process = process

    def now(self) -> datetime:
        return BEGINNING + timedelta(seconds=self._world.now) + self._world.clocks.get(self._process.host, timedelta())

    def monotonic(self) -> float:
        return self._world.now

    def sleep(self, seconds: float) -> None:
        self._world.sleep(seconds)

    def beside(self, name: str, act: Callable[[], float]) -> Any:
        # A lease's heartbeat looks and renews under the guard, in one piece; the others have steps of their own.
        kind = Timer if name.startswith("heartbeat of ") else FiberBeside
        return kind(self._world, self._process, act)

    def mutex(self) -> SimMutex:
        return SimMutex(self._world)


class SimMutex:
    """Lets in one fiber at a time, and once more whoever is inside; a dead process's hold is gone."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._owner: Fiber | None = None
        self._depth = 0
        self._waiting: list[Fiber] = []

    def __enter__(self) -> None:
        fiber = self._world.current
        while self._owner is not None and self._owner is not fiber and not self._owner.process.is_dead:
            self._world.wait_in(self._waiting)
        if self._owner is not fiber:
            self._owner, self._depth = fiber, 0
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        if self._owner is not self._world.current:
            return
        self._depth -= 1
        if self._depth == 0:
            self._owner = None
            self.free()

    def free(self) -> None:
        """Let those who wait try again."""
        while self._waiting:
            self._world.wake(self._waiting.pop(0))


class World:
    """Everything that happens under one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.now = 0.0
        self.faults = Faults()
        self.steps = 0
        self.clocks: dict[str, timedelta] = {}
        self.processes: dict[int, Proc] = {}
        self.mutexes: list[SimMutex] = []
        self.failure: BaseException | None = None
        self.end = threading.Lock()
        self.trace: deque[tuple[float, str, str]] = deque(maxlen=TRACED)
        self.is_over = False
        # Nothing takes any time but what sleeps, and no fault happens but the kills that were ordered.
        self.is_calm = False
        # Calls that do not count as a process's own steps.
        self.reads: frozenset[str] = frozenset()
        self.on_death: Callable[[Proc], None] = lambda _process: None
        self._pids = itertools.count(100)
        self._tickets = itertools.count()
        self._due: list[tuple[float, int, Fiber | Timer]] = []
        self.current: Fiber = None  # type: ignore[assignment]

    # --- processes ---------------------------------------------------------------------------------------------------

    def spawn(self, name: str, act: Callable[[Proc], object], **more: Any) -> Proc:
        """Start a process; when `act` returns it ends, whatever is still beside it."""
        pid = next(self._pids)
        process = Proc(f"{name}.{pid}", pid, **more)
        self.processes[pid] = process

        def live() -> None:
            try:
                act(process)
            finally:
                self.bury(process)

        self.fork(process, live)
        return process

    def fork(self, process: Proc, act: Callable[[], object]) -> Fiber:
        """Start one more thread of a process."""
        fiber = Fiber(self, process, act)
        process.fibers.append(fiber)
        self.wake(fiber)
        return fiber

    def kill(self, process: Proc) -> None:
        """End a process at once: nothing more of it happens."""
        self.tell(process, "KILLED")
        self.bury(process)

    def bury(self, process: Proc) -> None:
        """Let everything of a process be over."""
        if process.is_dead:
            return
        process.is_dead = True
        self.on_death(process)
        for fiber in process.fibers:
            if not fiber.is_done and fiber is not self.current:
                self.wake(fiber)
        for mutex in self.mutexes:
            mutex.free()

    def life(self, holder: Process) -> Liveness:
        """Tell whether a process lives, as the current one can know: of another container's it knows nothing."""
        process = self.processes.get(holder.pid or 0)
        if process is None:
            return Liveness.DEAD  # it was before our time
        if process.container != self.current.process.container:
            return Liveness.UNKNOWN
        return Liveness.DEAD if process.is_dead else Liveness.ALIVE

    # --- steps -------------------------------------------------------------------------------------------------------

    def step(self, what: str, *, is_store: bool = False) -> str | None:
        """Be at a step of the current process; returns "before" or "after" if this call gets no answer."""
        fiber = self.current
        process = fiber.process
        if process.is_dead:
            raise Killed
        self.steps += 1
        process.steps += what.rpartition(".")[2] not in self.reads
        self.trace.append((self.now, process.name, what))
        if self.steps > MOST_STEPS:
            self.violate(f"no rest after {MOST_STEPS} steps")
        if process.steps == process.kill_at:
            self.kill(process)
            raise Killed
        if self.is_calm:
            return None
        chance = self.random.random
        lost = self._befall(process, is_store=is_store) if self.now < self.faults.until else None
        # Most calls take no time; those of the store, over a network, now and then take some.
        draw = chance()
        if draw > 0.7:
            delay = chance() * (0.05 if draw < 0.95 else 2.0 if is_store else 0.3)
            self._yield_until(self.now + delay)
        elif process.paused_until > self.now:
            self._yield_until(self.now)
        return lost

    def _befall(self, process: Proc, *, is_store: bool) -> str | None:
        """Let a fault happen, perhaps."""
        faults, draw = self.faults, self.random.random()
        if draw < faults.kill and not process.is_immortal:
            self.kill(process)
            raise Killed
        draw -= faults.kill
        if 0 <= draw < faults.pause and not process.is_immortal:
            process.paused_until = self.now + self.random.choice((2.0, 30.0, 80.0, 100.0, 300.0))
            process.resumed_at = process.paused_until
            self.tell(process, f"PAUSED until {process.paused_until:.1f}")
        draw -= faults.pause
        if 0 <= draw < faults.jump:
            self.clocks[process.host] = timedelta(seconds=self.random.choice((-2000, -90, 90, 1500)))
            self.tell(process, f"CLOCK set by {self.clocks[process.host]}")
        if is_store and self.random.random() < faults.lost:
            where = self.random.choice(("before", "after"))
            self.tell(process, f"NO ANSWER ({where})")
            return where
        return None

    def sleep(self, seconds: float) -> None:
        """Let the current fiber sleep."""
        if self.current.process.is_dead:
            raise Killed
        self._yield_until(self.now + max(0.0, seconds))

    def wait_in(self, waiting: list[Fiber]) -> None:
        """Let the current fiber wait until somebody wakes it."""
        waiting.append(self.current)
        self._yield_until(None)

    def wake(self, fiber: Fiber) -> None:
        """Let a fiber go on from now, whatever it waits for."""
        self._schedule(fiber, self.now)

    def push(self, at: float, timer: Timer) -> None:
        """Give a timer its next turn."""
        heapq.heappush(self._due, (at, next(self._tickets), timer))

    def _schedule(self, fiber: Fiber, at: float) -> None:
        fiber.ticket = next(self._tickets)
        heapq.heappush(self._due, (at, fiber.ticket, fiber))

    def _yield_until(self, at: float | None) -> None:
        fiber = self.current
        if at is not None:
            self._schedule(fiber, max(at, fiber.process.paused_until))
        following = self.pick()
        if following is not fiber:
            if following is None:
                self.end.release()
            else:
                following.hands.baton.release()
            fiber.hands.baton.acquire()
        if fiber.process.is_dead:
            raise Killed

    def pick(self) -> Fiber | None:
        """Return the fiber whose turn is next, and let time pass until then."""
        while self._due:
            at, ticket, each = heapq.heappop(self._due)
            if isinstance(each, Timer):
                self.now = max(self.now, at)
                if not self.is_over:
                    each.turn()
                continue
            if ticket != each.ticket or each.is_done:
                continue  # it was woken before
            if not each.process.is_dead and each.process.paused_until > at:
                self._schedule(each, each.process.paused_until)
                continue
            self.now = max(self.now, at)
            self.current = each
            return each
        return None

    # --- the whole ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Let everything happen; raises what went wrong, with the history that led to it."""
        self.end.acquire()
        first = self.pick()
        if first is not None:
            first.hands.baton.release()
            self.end.acquire()
        if self.failure is not None:
            raise self.failure
        stuck = [process.name for process in self.processes.values() if not process.is_dead]
        if stuck:
            raise ViolationError(f"everybody waits for somebody: {', '.join(stuck)}")

    def fail(self, error: BaseException) -> None:
        """End everything for an error; the first one counts."""
        if self.failure is None:
            self.failure = error
        self.is_over = True
        for process in self.processes.values():
            self.bury(process)

    def violate(self, what: str) -> NoReturn:
        """End everything because something happened that must never happen; no code of the product can catch that."""
        self.tell(self.current.process, f"VIOLATION: {what}")
        self.fail(ViolationError(what))
        raise Killed

    def tell(self, process: Proc, what: str) -> None:
        """Write a line of the history."""
        self.trace.append((self.now, process.name, what))

    def story(self, last: int = int(os.environ.get("AIFLOW_STORY", "400"))) -> str:
        """Write the end of the history down."""
        lines = list(self.trace)[-last:]
        return "\n".join(f"{at:9.2f} {who:14} {what}" for at, who, what in lines)


def no_answer() -> EnvironmentProblemError:
    """Make the error of a store that did not answer."""
    return EnvironmentProblemError(reason_code="STORE_UNREACHABLE", problem="simulated", endpoint="memory")


@contextmanager
def told_on_failure(world: World) -> Iterator[None]:
    """Add the seed and the history to whatever goes wrong."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"{world.story()}\n\nAIFLOW_SEED={world.seed} plays this again")
        raise
