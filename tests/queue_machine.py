"""The queue as a state machine: runners that enqueue, claim, beat, finish, pause, die and reap, beside a plain model.

Time is virtual. The model is a dictionary of tasks that follows the seed's rules; after every step the store must show
exactly what the model says.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aiflow.adapters.memory.queue import MemoryStore
from aiflow.domain.lifecycle import TaskEvent, TaskStatus
from aiflow.domain.queue.runner import HeartbeatWatch, Runner
from aiflow.domain.queue.task import Task, TaskEnd, is_delivered_again, place_key, successor_id, successor_of
from aiflow.domain.request import Priority
from aiflow.errors import ConflictError
from aiflow.ports.tasks import Claimant, QueueStore, RunnerRecords, TaskQueue
from task_builders import HERE, THERE, a_runner, a_task, later

TIMEOUT = 120.0
REQUESTS = st.integers(1, 3)
RUNNERS = st.integers(0, 2)
ENDS = st.sampled_from(
    [
        TaskEnd(TaskEvent.COMPLETED),
        TaskEnd(TaskEvent.FAILED, "UNIT_TEST_FAILED"),
        TaskEnd(TaskEvent.CANCELLED, "CANCELLED"),
    ]
)


@dataclass
class Actor:
    """One runner: its own view of the queue, what it believes to have, and what became of it."""

    claimant: Claimant
    queue: TaskQueue
    record: Runner
    has: Task | None = None
    vigil: HeartbeatWatch = field(default_factory=HeartbeatWatch)
    is_paused: bool = False
    is_dead: bool = False

    @property
    def acts(self) -> bool:
        """Whether it can do anything now."""
        return not (self.is_paused or self.is_dead)


class QueueMachine(RuleBasedStateMachine):
    """Everything that happens to a namespace's tasks, one thing at a time."""

    def make_store(self) -> QueueStore:
        """Make the store that is put to the test."""
        return MemoryStore()

    @initialize()
    def begin(self) -> None:
        self.namespace = f"machine-{secrets.token_hex(6)}"
        self.store = self.make_store()
        self.queue = self.store.queue(self.namespace)
        self.records: RunnerRecords = self.store.runners(self.namespace)
        self.seconds = 0.0
        self.number = 0
        self.model: dict[str, Task] = {}
        self.ended: dict[str, Task] = {}
        self.actors = [self.new_actor(f"runner-{name}", name == 2) for name in range(3)]

    def new_actor(self, name: str, is_elsewhere: bool) -> Actor:
        claimant = Claimant(name, THERE if is_elsewhere else HERE)
        record = a_runner(name, self.namespace, checkout=claimant.checkout, last_heartbeat=self.now)
        self.records.save(record)
        return Actor(claimant, self.store.queue(self.namespace), record)

    @property
    def now(self) -> datetime:
        return later(self.seconds)

    def live_of(self, request_id: str) -> Task | None:
        live = [task for task in self.model.values() if task.request_id == request_id and not task.is_final]
        assert len(live) <= 1
        return live[0] if live else None

    def is_owner(self, task: Task) -> bool:
        there = self.model[task.task_id]
        return there.status is TaskStatus.RUNNING and there.claim_token == task.claim_token

    def enqueue(self, task: Task) -> None:
        """Enqueue a task that the model does not have, and see that the store does what the model says."""
        live = self.live_of(task.request_id)
        try:
            there = self.queue.enqueue(task)
        except ConflictError as error:
            assert live is not None
            assert (error.reason_code, error.context["task_id"]) == ("REQUEST_QUEUED", live.task_id)
            return
        assert live is None
        fences = [each.fence for each in self.model.values() if each.request_id == task.request_id]
        assert there.fence > max(fences, default=0)
        self.model[task.task_id] = replace(task, fence=there.fence)

    # What happens

    @rule(seconds=st.sampled_from([1.0, 30.0, 59.0, 61.0, 125.0]))
    def time_passes(self, seconds: float) -> None:
        self.seconds += seconds

    @rule(
        request=REQUESTS,
        priority=st.sampled_from(Priority),
        kind=st.sampled_from(["ours", "theirs", "anybody"]),
    )
    def put(self, request: int, priority: Priority, kind: str) -> None:
        self.number += 1
        checkout = {"theirs": THERE, "anybody": None}.get(kind, HERE)
        self.enqueue(
            a_task(self.number, self.namespace, request_id=f"RQ-{request}", priority=priority, checkout=checkout)
        )

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def put_again(self, data: st.DataObject) -> None:
        task = self.model[data.draw(st.sampled_from(sorted(self.model)))]
        again = replace(task, status=TaskStatus.QUEUED, fence=0, claimed_by=None, claim_token=None)
        assert self.queue.enqueue(again) == task

    @rule(who=RUNNERS)
    def claim(self, who: int) -> None:
        actor = self.actors[who]
        if not (actor.acts and actor.has is None):
            return
        waiting = [
            task
            for task in self.model.values()
            if task.status is TaskStatus.QUEUED and task.checkout in (None, actor.claimant.checkout)
        ]
        wanted = min(waiting, key=place_key, default=None)
        got = actor.queue.claim(actor.claimant, self.now)
        assert (got and got.task_id) == (wanted and wanted.task_id)
        if got is not None:
            self.note_claim(actor, got)

    def note_claim(self, actor: Actor, got: Task) -> None:
        before = self.model[got.task_id]
        assert before.status is TaskStatus.QUEUED
        assert got.claim_token not in {task.claim_token for task in self.model.values()}
        expected = replace(before, status=TaskStatus.RUNNING, claimed_by=actor.claimant.runner_id, updated_at=self.now)
        assert got == replace(expected, claim_token=got.claim_token)
        self.model[got.task_id] = actor.has = got
        self.beat(actor)

    def beat(self, actor: Actor) -> None:
        task_id = actor.has.task_id if actor.has else None
        beats = actor.record.beats + 1
        actor.record = replace(actor.record, beats=beats, task_id=task_id, last_heartbeat=self.now)
        self.records.save(actor.record)

    @rule(who=RUNNERS)
    def heartbeat(self, who: int) -> None:
        if not (self.actors[who].acts):
            return
        self.beat(self.actors[who])

    @rule(who=RUNNERS, end=ENDS)
    def finish(self, who: int, end: TaskEnd) -> None:
        actor = self.actors[who]
        if not (actor.acts):
            return
        if actor.has is None:
            return
        task, actor.has = actor.has, None
        wanted = {"completed": "COMPLETE", "failed": "ERROR", "cancelled": "CANCELLED"}[end.event]
        is_owner = self.is_owner(task)
        try:
            ended = actor.queue.finish(task, end, self.now)
        except ConflictError as error:
            assert error.reason_code == "LOCK_MISMATCH"
            assert not is_owner
            assert error.context["status"] == self.model[task.task_id].status
        else:
            there = self.model[task.task_id]
            if is_owner:
                there = replace(there, status=TaskStatus(wanted), error_message=end.error_message, updated_at=self.now)
            assert ended == there
            self.model[task.task_id] = there
        self.beat(actor)

    @rule(who=RUNNERS, digits=st.integers(0, 9))
    def note_run(self, who: int, digits: int) -> None:
        actor = self.actors[who]
        if not (actor.acts):
            return
        if actor.has is None:
            return
        run_id = f"RUN-20260102-030405-00000{digits}"
        try:
            actor.queue.note_run(actor.has, run_id, self.now)
        except ConflictError as error:
            assert error.reason_code == "LOCK_MISMATCH"
            assert not self.is_owner(actor.has)
        else:
            assert self.is_owner(actor.has)
            there = self.model[actor.has.task_id]
            self.model[there.task_id] = replace(there, run_id=run_id, updated_at=self.now)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        task = self.model[data.draw(st.sampled_from(sorted(self.model)))]
        try:
            cancelled = self.queue.cancel(task.task_id, "by hand", self.now)
        except ConflictError as error:
            assert error.reason_code == "TASK_NOT_ACTIVE"
            assert task.status in (TaskStatus.COMPLETE, TaskStatus.ERROR)
            return
        if not task.is_final:
            message = "CANCELLED: by hand"
            task = replace(task, status=TaskStatus.CANCELLED, error_message=message, updated_at=self.now)
        assert cancelled == task
        self.model[task.task_id] = task

    @rule(who=RUNNERS)
    def pause(self, who: int) -> None:
        self.actors[who].is_paused = True

    @rule(who=RUNNERS)
    def go_on(self, who: int) -> None:
        self.actors[who].is_paused = False

    @rule(who=RUNNERS)
    def kill(self, who: int) -> None:
        self.actors[who].is_dead = True

    @rule(who=RUNNERS)
    def start_anew(self, who: int) -> None:
        """A dead runner's place is taken by a new one, with a name of its own."""
        if self.actors[who].is_dead:
            self.number += 1
            self.actors[who] = self.new_actor(f"runner-{who}-{self.number}", who == 2)

    @rule(who=RUNNERS, stops=st.sampled_from(["", "after end_lost", "before rest"]))
    def reap(self, who: int, stops: str) -> None:
        """Look at everybody, and end what the lost ones had; the reaper itself may be stopped half-way."""
        reaper = self.actors[who]
        if not (reaper.acts):
            return
        runners = self.records.all()
        reaper.vigil = reaper.vigil.look(runners, self.seconds, TIMEOUT)
        for runner in runners:
            if not runner.is_at_rest and reaper.vigil.is_lost(runner, self.seconds, TIMEOUT):
                self.reap_one(reaper, runner, stops)

    def reap_one(self, reaper: Actor, runner: Runner, stops: str) -> None:
        tasks = reaper.queue.tasks_of(runner.runner_id)
        assert {task.task_id for task in tasks} == {
            name
            for name, task in self.model.items()
            if task.claimed_by == runner.runner_id and task.status is TaskStatus.RUNNING
        }
        for task in tasks:
            successor = successor_id(task.task_id) if is_delivered_again(task) else None
            ended = reaper.queue.end_lost(
                task, TaskEnd(TaskEvent.FAILED, "RUNNER_LOST: gone", successor=successor), self.now
            )
            self.model[task.task_id] = replace(
                task,
                status=TaskStatus.ERROR,
                error_message="RUNNER_LOST: gone",
                successor=successor,
                updated_at=self.now,
            )
            assert ended == self.model[task.task_id]
        if stops == "after end_lost":
            return
        left = [task for task in self.model.values() if task.claimed_by == runner.runner_id and task.successor]
        for task in left:
            if task.successor not in self.model:
                self.enqueue(successor_of(task, self.now, runner.checkout))
        if stops != "before rest":
            assert self.records.put_to_rest(runner)

    # What holds

    @invariant()
    def the_store_shows_what_the_model_says(self) -> None:
        if not hasattr(self, "queue"):
            return
        shown = {task.task_id: task for page in self.queue.pages() for task in page.tasks}
        assert shown == self.model
        for name, task in self.ended.items():
            assert shown[name].status is task.status
        self.ended = {name: task for name, task in shown.items() if task.is_final}
        live = [task.request_id for task in shown.values() if not task.is_final]
        assert len(live) == len(set(live))

    def teardown(self) -> None:
        """Whatever waits can still be had, once: nothing is lost."""
        if not hasattr(self, "queue"):
            return
        waiting = {name for name, task in self.model.items() if task.status is TaskStatus.QUEUED}
        taken = []
        for checkout in (HERE, THERE):
            claimant, queue = Claimant("last", checkout), self.store.queue(self.namespace)
            while (task := queue.claim(claimant, self.now)) is not None:
                taken.append(task.task_id)
        assert sorted(taken) == sorted(waiting)
