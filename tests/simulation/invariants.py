"""What must hold at every step, whatever befalls whom; and what must hold once everything is at rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from aiflow.adapters.memory.leases import TURN
from aiflow.adapters.memory.queue import MemoryStore
from aiflow.domain.agents.call import AgentCall
from aiflow.domain.backlog.explanation import explain
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.lock import LockType
from aiflow.domain.next_action import ActionKind
from aiflow.domain.queue.task import Task
from aiflow.domain.request import Request, RequestId, RequestStatus
from aiflow.domain.runs.run import Run
from memory_engine import MemoryCheckout
from simulation.world import Proc, World

# Behind a lost lock an agent has this long to end: the lease looks twice a second, the agent hears of it once.
GRACE_SECONDS = 3.0
WRITES = frozenset({"enqueue", "claim", "note_run", "finish", "cancel", "end_lost"})


@dataclass(eq=False)
class AgentWork:
    """An agent at work: for whom, on what, and since when without the lock."""

    process: Proc
    checkout: MemoryCheckout
    request_id: str
    run_id: str
    is_ended: bool = False
    unlocked_at: float | None = None


@dataclass
class Watcher:
    """Looks at everything that happens in a world."""

    world: World
    store: MemoryStore
    checkouts: list[MemoryCheckout]
    agents: list[AgentWork] = field(default_factory=list)
    calls: set[tuple[str, str, int]] = field(default_factory=set)
    tasks: dict[tuple[str, str], Task] = field(default_factory=dict)
    bases: dict[str, str] = field(default_factory=dict)
    # Runs whose lock was taken from somebody who lived, and slept: what git does for those when they wake is not fenced.
    taken: set[str] = field(default_factory=set)
    # Whose turn was taken from them: they were taken for dead, and slept.
    turned_out: set[int | None] = field(default_factory=set)
    worked: int = 0

    def heard(self, checkout: MemoryCheckout, process: Proc, what: tuple[str, str, tuple[Any, ...], Any]) -> None:
        """Look at what a call has changed."""
        port, name, args, answer = what
        if port == "queue" and name in WRITES:
            self._look_at_tasks()
            if name == "claim" and answer is not None:
                self._look_at_turn(checkout, process, answer)
        elif port == "runs" and name in ("save", "create"):
            self._look_at_run(checkout, process, args[0])
        elif port == "merging" and name == "move_base":
            self.look_at_base(checkout)
        elif port == "locks" and name in ("reclaim", "break_lock"):
            removed = answer if isinstance(answer, list) else [answer] if answer else []
            self.turned_out |= {each.lock.pid for each in removed if each.lock.lock_type is LockType.TURN}
            self.taken |= {each.lock.run_id for each in removed if not self.world.processes[each.lock.pid].is_dead}

    # --- at every step -----------------------------------------------------------------------------------------------

    def _look_at_tasks(self) -> None:
        """A task goes its way once: queued, claimed by one, ended by that one or for it; one lives per request."""
        live: dict[str, str] = {}
        for key, task in self.store.tasks.items():
            before = self.tasks.get(key)
            if task is not before:
                self._look_at_task(before, task)
                self.tasks[key] = task
            if not task.is_final:
                if task.request_id in live:
                    self.world.violate(f"two live tasks of {task.request_id}: {live[task.request_id]}, {task.task_id}")
                live[task.request_id] = task.task_id

    def _look_at_turn(self, checkout: MemoryCheckout, process: Proc, task: Task) -> None:
        """A task is claimed by who has its checkout's turn, so that it is worked on from then on (QUE-5)."""
        turn = checkout.locks.locks.get(TURN)
        if (turn is None or turn.pid != process.pid) and process.pid not in self.turned_out:
            self.world.violate(f"{process.name} claimed {task.task_id} without its turn")

    def _look_at_task(self, before: Task | None, task: Task) -> None:
        told = f"{task.task_id} {task.request_id} is {task.status} {task.reason_code or ''}"
        self.world.tell(self.world.current.process, told)
        if before is None:
            return
        if before.is_final:
            self.world.violate(f"{task.task_id} was {before.status} ({before.error_message}), now {task.status}")
        if before.status is TaskStatus.RUNNING and task.claim_token != before.claim_token:
            self.world.violate(f"{task.task_id} of {before.claimed_by} was claimed again by {task.claimed_by}")

    def _look_at_run(self, checkout: MemoryCheckout, process: Proc, run: Run) -> None:
        """A run's stage is written by who holds its request's lock, and by nobody else."""
        self.world.tell(process, f"{run.run_id} is {run.state} {run.error.reason_code if run.error else ''}")
        if not self._holds(checkout, process, run.request_id):
            self.world.violate(f"{process.name} wrote {run.run_id} without the lock of {run.request_id}")

    def _holds(self, checkout: MemoryCheckout, process: Proc, request_id: str) -> bool:
        lock = checkout.locks.locks.get(request_id)
        return lock is not None and lock.pid == process.pid

    def look_at_base(self, checkout: MemoryCheckout) -> None:
        """The base branch only ever grows: what was accepted stays."""
        before, base = self.bases.get(checkout.name, checkout.base), checkout.base
        if not checkout.repository.leads_to(before, base):
            self.world.violate("the base branch has lost what it had")
        self.bases[checkout.name] = base

    # --- agents ------------------------------------------------------------------------------------------------------

    def enter(self, checkout: MemoryCheckout, process: Proc, call: AgentCall) -> AgentWork:
        """An agent is called: its attempt is on disk already, and it is the only one at work under a lock."""
        work = AgentWork(process, checkout, call.brief.id, call.run_id)
        self.agents.append(work)
        if not self._holds(checkout, process, work.request_id):
            return work  # its process slept right before the call, and lost the lock: it hears of that in a moment
        run = checkout.runs.runs.get((work.request_id, work.run_id))
        if run is None or run.visit.calling is not call.role or run.calls_of(call.role) != call.attempt:
            self.world.violate(f"{call.role} of {call.run_id} is called for the {call.attempt}. time, uncounted")
        if call.attempt > 2:
            self.world.violate(f"{call.role} of {call.run_id} is called for the {call.attempt}. time")
        made = (checkout.name, call.run_id, run.usage.calls)
        if made in self.calls:
            self.world.violate(f"call {run.usage.calls} of {call.run_id} is made twice")
        self.calls.add(made)
        self.worked += 1
        rivals = [each for each in self.agents if each.checkout is checkout and self._is_rightful(each)]
        if len(rivals) > 1:
            self.world.violate(f"agents at work at once: {', '.join(each.run_id for each in rivals)}")
        return work

    def _is_rightful(self, work: AgentWork) -> bool:
        return (
            not work.process.is_dead and not work.is_ended and self._holds(work.checkout, work.process, work.request_id)
        )

    def poll(self, work: AgentWork) -> None:
        """An agent without its lock has to end soon, unless its process sleeps."""
        if self._holds(work.checkout, work.process, work.request_id) or work.is_ended:
            work.unlocked_at = None
            return
        since = work.unlocked_at = work.unlocked_at or self.world.now
        if self.world.now - max(since, work.process.resumed_at) > GRACE_SECONDS:
            self.world.violate(f"the agent of {work.run_id} works on without a lock")

    def leave(self, work: AgentWork) -> None:
        """An agent has ended."""
        if work in self.agents:
            self.agents.remove(work)

    def bury(self, process: Proc) -> None:
        """A process is dead, its agents with it."""
        self.agents = [each for each in self.agents if each.process is not process]

    def end_leftovers(self, checkout: MemoryCheckout, run_id: str) -> None:
        """Whoever takes a run's lock ends what its last holder has at work."""
        for each in self.agents:
            if each.checkout is checkout and each.run_id == run_id:
                each.is_ended = True

    # --- at rest -----------------------------------------------------------------------------------------------------

    def is_at_rest(self) -> bool:
        """Tell whether nobody has anything to do: no task lives, nobody holds a lock, no run looks as if at work."""
        return (
            all(task.is_final for task in self.store.tasks.values())
            and not any(checkout.locks.locks for checkout in self.checkouts)
            and not any(run.is_active for checkout in self.checkouts for run in checkout.runs.runs.values() if run)
            and not any(status == "running" for checkout in self.checkouts for status in _statuses(checkout))
        )

    def unrest(self) -> str:
        """Say what keeps the world from coming to rest."""
        live = [
            f"{task.task_id} {task.request_id} {task.status}" for task in self.store.tasks.values() if not task.is_final
        ]
        for checkout in self.checkouts:
            live += [f"lock of {lock.request_id} by {lock.pid}" for lock in checkout.locks.locks.values()]
            live += [f"{run.run_id} {run.state}" for run in checkout.runs.runs.values() if run and run.is_active]
            live += [f"{each} is running" for each in checkout.request_ids if checkout.status(each) == "running"]
        return "; ".join(live)

    def check_rest(self, checkout: MemoryCheckout, backlog: Any) -> None:
        """Everything is told: what is in the base, what waits, and why."""
        self.look_at_base(checkout)
        merged = checkout.repository.history(checkout.base)
        for run in filter(None, checkout.runs.runs.values()):
            self._check_run(checkout, run, merged)
        self._check_found(checkout)
        for request_id in checkout.request_ids:
            self._check_request(checkout, request_id, backlog)
        messages = [checkout.repository.commits[commit].message for commit in merged]
        for run in filter(None, checkout.runs.runs.values()):
            own = [each for each in messages if f"Aiflow-Run: {run.run_id}" in each]
            merges = [each for each in own if each.startswith("Merge ")]
            # A kill behind the merge leaves work that is in and not recorded: one that a person lets go on all the
            # same is done, and merged, once more. So is what was taken out again.
            undone = sum(each.startswith("Revert ") for each in own)
            if len(merges) > undone + max(1, sum(line.event == "REPORTED" for line in run.history)):
                self.world.violate(f"{run.run_id} was merged {len(merges)} times")

    def _check_run(self, checkout: MemoryCheckout, run: Run, merged: dict[str, None]) -> None:
        old = checkout.runs.runs.get((run.request_id, run.replaces or ""))
        if old is not None and old.replaced_by is None:
            self.world.violate(f"{old.run_id} is {old.state}, though {run.run_id} has taken its place")
        if run.accepted_as and run.accepted_as not in merged:
            self.world.violate(f"{run.run_id} is accepted as {run.accepted_as[:8]}, and the base has lost it")
        refs = [ref for ref in checkout.repository.refs if run.run_id in ref]
        is_kept = any(checkout.repository.leads_to(run.tip, ref) for ref in refs)
        if run.has_commits and not run.accepted_as and refs and not is_kept and run.run_id not in self.taken:
            self.world.violate(f"no branch and no ref of {run.run_id} has its work")

    def _check_found(self, checkout: MemoryCheckout) -> None:
        """Whatever agents found is a request, and what one request's runs found is one draft each (REQ-10)."""
        found = [(run, each) for run in filter(None, checkout.runs.runs.values()) for each in run.follow_ups.kept]
        for run, each in found:
            if each.request_id not in checkout.requests.texts:
                self.world.violate(f"{run.run_id} found {each.title!r}, and nothing came of it: {each.request_id}")
        drafts = [each for each in checkout.requests.load()[0] if each.found_in]
        if len({(each.found_in, each.title) for each in drafts}) < len(drafts):
            self.world.violate(f"the same was found twice: {[(each.id, each.found_in, each.title) for each in drafts]}")

    def _check_request(self, checkout: MemoryCheckout, request_id: RequestId, backlog: Any) -> None:
        request = backlog.by_id.get(request_id)
        if not isinstance(request, Request):
            return
        latest = backlog.runs.get(request_id)
        run = checkout.runs.runs.get((request_id, latest.run_id)) if latest else None
        [first, *_] = explain(request_id, backlog)
        if request.status is RequestStatus.BLOCKED and not (first.barriers and first.actions):
            self.world.violate(f"{request_id} is blocked, and nothing says why, or what to do")
        is_in = run is not None and run.accepted_as is not None
        # A kill behind the record of an acceptance leaves its request blocked: accepting it again sets it right.
        if (
            is_in
            and request.status is RequestStatus.BLOCKED
            and not any(each.kind is ActionKind.ACCEPT for each in first.actions)
        ):
            self.world.violate(f"{request_id} is blocked, and its work is in the base")


def _statuses(checkout: MemoryCheckout) -> list[str]:
    return [checkout.status(request_id) for request_id in checkout.request_ids]
