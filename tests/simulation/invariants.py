"""What must hold at every step, whatever befalls whom; and what must hold once everything is at rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from aiflow.adapters.memory.leases import TURN
from aiflow.adapters.memory.queue import MemoryStore
from aiflow.adapters.memory.repository import HEADS
from aiflow.domain.agents.call import AgentCall
from aiflow.domain.backlog.explanation import explain
from aiflow.domain.issue_ways import is_issue
from aiflow.domain.lifecycle import RunEvent, RunOutcome, RunState, TaskStatus
from aiflow.domain.lock import LockType
from aiflow.domain.next_action import ActionKind
from aiflow.domain.queue.task import Task
from aiflow.domain.request import Request, RequestId, RequestStatus
from aiflow.domain.runs.run import Run
from aiflow.domain.runs.undoing import is_undone
from aiflow.domain.runs.warned import FORMER_BRANCH_GONE
from memory_engine import MemoryCheckout
from simulation.world import Proc, World

# Behind a lost lock an agent has this long to end: the lease looks twice a second, the agent hears of it once.
GRACE_SECONDS = 3.0
# One run of so many forgets something until its last review.
FORGETFUL = 4
WRITES = frozenset({"enqueue", "claim", "note_run", "finish", "cancel", "end_lost"})


def own_file(run_id: str) -> str:
    """Name the file that only this run's agents write."""
    return f"by-{run_id}.txt"


def late_file(run_id: str) -> str | None:
    """Name the file that this run's plan forgets, if it does: the last review misses it (RUN-18)."""
    return f"late-{run_id}.txt" if int(run_id.rpartition("-")[2], 16) % FORGETFUL == 0 else None


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
        event = run.history[-1].event if run.history else ""
        self.world.tell(process, f"{run.run_id} {event} is {run.state} {run.error.reason_code if run.error else ''}")
        self._look_at_end(checkout, run, event)
        if not self._holds(checkout, process, run.request_id):
            self.world.violate(f"{process.name} wrote {run.run_id} without the lock of {run.request_id}")

    def _look_at_end(self, checkout: MemoryCheckout, run: Run, event: str) -> None:
        """What the last review missed is in whatever is done; what is undone is blocked, or as a person set it since."""
        late, files = late_file(run.run_id), checkout.repository.files_of(run.tip)
        if run.state is RunState.DONE and own_file(run.run_id) in files and late and late not in files:
            self.world.violate(f"{run.run_id} is done without what its last review missed")
        if event == RunEvent.UNDONE and checkout.status(run.request_id) == "done":
            self.world.violate(f"{run.run_id} is undone, and {run.request_id} is done")

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
            self._check_followed(checkout, run)
        # Nothing is left of one that was lost, and whatever follows it goes on from the one before.
        runs = [run for _, run in sorted(checkout.runs.runs.items()) if run and run.tip]
        for old, new in pairwise(runs):
            if old.request_id == new.request_id and old.outcome is RunOutcome.SENT_BACK:
                self._check_sent_back(checkout, old, new)
        self._check_found(checkout)
        for request_id in checkout.request_ids:
            self._check_request(checkout, request_id, backlog)
        messages = [checkout.repository.commits[commit].message for commit in merged]
        for run in filter(None, checkout.runs.runs.values()):
            own = [each for each in messages if f"Aiflow-Run: {run.run_id}" in each]
            self._check_merges(checkout, run, own)

    def _check_merges(self, checkout: MemoryCheckout, run: Run, own: list[str]) -> None:
        """A run is merged once, and once more for each time that it is undone; its work is on the base if it is in."""
        merges = sum(each.startswith(f"Merge {run.request_id}:") for each in own)
        undone = sum(each.startswith("Revert ") for each in own)
        # A kill behind the merge leaves work that is in and not recorded: one that a person lets go on all the same is
        # done, and merged, once more. So is what was taken out again.
        if merges > undone + max(1, sum(line.event == "REPORTED" for line in run.history)):
            self.world.violate(f"{run.run_id} was merged {merges} times")
        if undone > merges:
            self.world.violate(f"{run.run_id} was undone {undone} times, and merged {merges} times")
        if checkout.repository.resolve(run.tip):  # nothing is left of a run that was lost
            self._check_work(checkout, run)

    def _check_work(self, checkout: MemoryCheckout, run: Run) -> None:
        """What is accepted is on the base, and what is undone is not."""
        repository, name = checkout.repository, own_file(run.run_id)
        is_in = name in repository.files_of(checkout.base)
        # A kill behind the move to what undoes it leaves that unrecorded: undoing it again sets it right.
        undone_as = run.landing.undone_as if run.landing else None
        is_out = undone_as is not None and repository.leads_to(undone_as, checkout.base)
        if run.accepted_as and name in repository.files_of(run.tip) and not (is_in or is_out):
            self.world.violate(f"{run.run_id} is accepted, and the base is without its work")
        if is_undone(run) and is_in:
            self.world.violate(f"{run.run_id} is undone, and the base has its work")

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

    def _check_followed(self, checkout: MemoryCheckout, run: Run) -> None:
        """A run that was sent back is continued, unless it is to be dropped; both say so (REQ-6a)."""
        runs = checkout.runs.runs
        if run.continues is not None:
            old = runs.get((run.request_id, run.continues.run_id))
            heir = runs.get((run.request_id, old.continued_by or "")) if old else None
            if old is not None and (heir is None or heir.continues is None or heir.continues.run_id != old.run_id):
                self.world.violate(f"{run.run_id} continues {old.run_id}, which is continued by {old.continued_by}")
            if not run.has_to_continue and not checkout.repository.leads_to(run.continues.commit, run.tip):
                self.world.violate(f"{run.run_id} is without the work of {run.continues.run_id}, which it continues")
        heir = runs.get((run.request_id, run.continued_by or ""))
        if heir is not None and heir.continues is None and FORMER_BRANCH_GONE not in heir.warnings:
            self.world.violate(f"{run.run_id} says that {heir.run_id} continues it, which knows nothing of it")
        if is_undone(run) and not checkout.repository.leads_to(run.tip, f"{HEADS}{run.place.branch}"):
            self.world.violate(f"{run.run_id} is undone, and its branch is without its work")

    def _check_sent_back(self, checkout: MemoryCheckout, old: Run, new: Run) -> None:
        """The run after a send-back is told why, and goes on from the work unless it is to be dropped (REQ-6a)."""
        if not any(told.reason_code == "SENT_BACK" for told in new.feedback) and not is_issue(old.request_id):
            self.world.violate(f"{new.run_id} was not told why {old.run_id} was sent back")
        if not old.is_continued_next:
            if new.continues is not None:
                self.world.violate(f"{new.run_id} continues {new.continues.run_id}, though {old.run_id} was dropped")
            return
        is_in = checkout.repository.leads_to(old.tip, checkout.base)
        if old.has_commits and not (new.continues or FORMER_BRANCH_GONE in new.warnings or is_in):
            self.world.violate(f"{new.run_id} does not continue {old.run_id}, which was sent back")

    def _check_found(self, checkout: MemoryCheckout) -> None:
        """Whatever agents found is a request, and what one request's runs found is one draft each (REQ-10)."""
        found = [(run, each) for run in filter(None, checkout.runs.runs.values()) for each in run.follow_ups.kept]
        for run, each in found:
            # One that a person broke the lock of just now is not over.
            if each.request_id not in checkout.requests.texts and not run.is_active:
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
