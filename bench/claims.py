"""PRF-2, PRF-3 and lost races: what claiming and finishing tasks costs, beside the bare boto3 calls it is made of.

A DynamoDB Local of its own, in memory; a database there is empty or holds 300,000 tasks. BENCH_TASKS sets another size
of the full one. `python bench/claims.py ENDPOINT KEY` is one of the runners that race for tasks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from aiflow.adapters.dynamo.queue.items import ready_keys
from aiflow.domain.lifecycle import TaskEvent
from aiflow.domain.queue.task import TaskEnd
from aiflow.ports.tasks import Claimant
from store import HERE, Database, task_number

ROOT = Path(__file__).parents[1]
# Own finished, own queued and foreign tasks: so many of each.
TASKS = int(os.environ.get("BENCH_TASKS", "100000"))
CLAIMS, TURNS = 300, 400
RACERS, RACED = 8, 600
DONE = TaskEnd(TaskEvent.COMPLETED)


class Cost(NamedTuple):
    """What one claim takes."""

    queries: int
    read_units: float
    write_units: float


def cost_of(database: Database) -> Cost:
    """Return the most that any of some claims took."""
    client, found = database.client, []
    client.is_metering = True
    for _ in range(20):
        client.costs.clear()
        database.claim()
        reads = [units for name, units in client.costs if name.startswith("query")]
        writes = [units for name, units in client.costs if not name.startswith("query")]
        found.append(Cost(len(reads), sum(reads), sum(writes)))
    client.is_metering = False
    return Cost(*(max(column) for column in zip(*found, strict=True)))


class Growth(NamedTuple):
    """PRF-2: a claim's median time in a full and in an empty database, and what it takes in the full one.

    Once a poll it looks as well at what anybody may take: `looking` is the cost of such a one.
    """

    full: float
    empty: float
    cost: Cost
    looking: Cost
    filled: int
    fill_seconds: float


def measure_growth(endpoint: str) -> Growth:
    """Claim from both databases in turn."""
    empty, full = Database(endpoint, "empty"), Database(endpoint, "full")
    begin = time.perf_counter()
    full.fill(TASKS)
    fill_seconds = time.perf_counter() - begin
    times: dict[Database, list[float]] = {empty: [], full: []}
    for number in range(CLAIMS):
        empty.queue.enqueue(task_number(number))
        for database, taken in times.items():
            begin = time.perf_counter()
            database.claim()
            taken.append(time.perf_counter() - begin)
    within, looking = Database(endpoint, "full", poll_seconds=3600), Database(endpoint, "full", poll_seconds=0)
    within.claim()
    costs = cost_of(within), cost_of(looking)
    return Growth(median(times[full]), median(times[empty]), *costs, 3 * TASKS, fill_seconds)


class Bare:
    """Claim and complete, as the least calls that could do it: nothing is checked, nothing is translated."""

    def __init__(self, database: Database) -> None:
        self.client = database.client.bare
        self.partition = ready_keys(task_number(0))["ready_pk"]

    def __call__(self) -> None:
        """Find, claim and end one task, and free its guard."""
        found = self.client.query(
            TableName="pm-runner-queue",
            IndexName="ready-index",
            KeyConditionExpression="ready_pk = :pk",
            ExpressionAttributeValues={":pk": {"S": self.partition}},
            Limit=16,
        )["Items"][0]
        key = {"namespace": found["namespace"], "task_id": found["task_id"]}
        task = self._update(
            "pm-runner-queue",
            key,
            "SET #s = :to, claimed_by = :me, claim_token = :token, updated_at = :now REMOVE ready_pk, ready_sk",
            "#s = :from",
            {":from": "QUEUED", ":to": "RUNNING", ":me": "r", ":token": "t", ":now": "2026"},
            is_wanted=True,
        )
        self._update(
            "pm-runner-queue",
            key,
            "SET #s = :to, updated_at = :now",
            "#s = :from AND claimed_by = :me AND claim_token = :token",
            {":from": "RUNNING", ":to": "COMPLETE", ":me": "r", ":token": "t", ":now": "2026"},
        )
        guard = {"namespace": found["namespace"], "request_id": task["task_group_id"]}
        self._update("aiflow-guards", guard, "REMOVE #t", "#t = :mine", {":mine": found["task_id"]["S"]})

    def _update(  # noqa: PLR0913
        self,
        table: str,
        key: dict[str, Any],
        change: str,
        condition: str,
        values: dict[str, str],
        *,
        is_wanted: bool = False,
    ) -> dict[str, Any]:
        names = {"#s": "status"} if "#s" in condition else {"#t": "task_id"}
        answer = self.client.update_item(
            TableName=table,
            Key=key,
            UpdateExpression=change,
            ConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={name: {"S": value} for name, value in values.items()},
            ReturnValues="ALL_NEW" if is_wanted else "NONE",
        )
        return dict(answer.get("Attributes", {}))


class Turn(NamedTuple):
    """PRF-3: the median time of a claim + complete, ours and as bare calls, and how many calls that is."""

    ours: float
    bare: float
    calls: int


def measure_turns(endpoint: str) -> Turn:
    """Let both work through tasks, in turn."""
    mine, theirs = Database(endpoint, "ours"), Database(endpoint, "bare")
    mine.enqueue(TURNS)
    theirs.enqueue(TURNS)

    def ours() -> None:
        mine.queue.finish(mine.claim(), DONE, datetime.now(UTC))

    works: list[Callable[[], None]] = [ours, Bare(theirs)]
    times: list[list[float]] = [[] for _ in works]
    calls = []
    for _ in range(TURNS):
        before = mine.client.calls
        works.reverse()  # none is always the first
        times.reverse()
        for work, taken in zip(works, times, strict=True):
            begin = time.perf_counter()
            work()
            taken.append(time.perf_counter() - begin)
        calls.append(mine.client.calls - before)
    ours_seconds, bare_seconds = (median(taken) for taken in times)
    return Turn(ours_seconds, bare_seconds, int(median(calls)))


class Races(NamedTuple):
    """What became of tasks that several runners were after: lost races and claims of all of them."""

    lost: int
    claims: int
    seconds: float


def measure_races(endpoint: str) -> Races:
    """Let runner processes race for tasks of the same priority."""
    database = Database(endpoint, "races")
    database.enqueue(RACED)
    command = [sys.executable, __file__, endpoint, "races"]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(RACERS)]
    for racer in racers:
        assert racer.stdout is not None
        racer.stdout.readline()
    begin = time.perf_counter()
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(b"go\n")
        racer.stdin.flush()
    told = [json.loads(racer.communicate()[0]) for racer in racers]
    seconds = time.perf_counter() - begin
    taken = Counter(task_id for each in told for task_id in each["tasks"])
    assert len(taken) == RACED and set(taken.values()) == {1}, "every task once"
    return Races(sum(each["lost"] for each in told), RACED, seconds)


def race(endpoint: str, key: str) -> None:
    """Be one runner of the race: claim and complete until there is nothing left."""
    database = Database(endpoint, key)
    database.me = Claimant(f"runner-{os.getpid()}", HERE)
    print("ready", flush=True)
    sys.stdin.readline()
    tasks = []
    while (task := database.queue.claim(database.me, datetime.now(UTC))) is not None:
        database.queue.finish(task, DONE, datetime.now(UTC))
        tasks.append(task.task_id)
    print(json.dumps({"lost": database.client.lost, "tasks": tasks}))


if __name__ == "__main__":
    race(*sys.argv[1:])
