"""This process as a runner (QUE-7, QUE-11): named so exactly that its machine can find out whether it is running."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from aiflow import __version__
from aiflow.adapters.processes.machine import boot_id, host_name, machine_id, pid_namespace
from aiflow.adapters.processes.table import facts_of, started_at
from aiflow.domain.process import Liveness, liveness
from aiflow.domain.queue.runner import Runner
from aiflow.domain.queue.task import Checkout, new_task_id

if TYPE_CHECKING:
    from datetime import datetime

HOST_CHARACTERS = 40


def checkout_at(root: str) -> Checkout:
    """Name a checkout as every machine sees it."""
    return Checkout(host_name(), os.path.realpath(root))


def new_runner(root: str, namespace: str, at: datetime) -> Runner:
    """Make this process's record as a runner of a checkout."""
    checkout = checkout_at(root)
    host = re.sub(r"[^A-Za-z0-9-]+", "-", checkout.host)[:HOST_CHARACTERS]
    return Runner(
        namespace=namespace,
        runner_id=f"{host}-{os.getpid()}-{os.urandom(4).hex()}",
        checkout=checkout,
        started_at=at,
        last_heartbeat=at,
        pid=os.getpid(),
        boot_id=boot_id(),
        pid_namespace=pid_namespace(),
        machine_id=machine_id(),
        process_started_at=started_at(os.getpid()),
        version=__version__,
    )


def make_task_id(at: datetime) -> str:
    """Make the id of a new task."""
    return new_task_id(at, os.urandom(3).hex())


def is_gone(runner: Runner) -> bool:
    """Return whether a runner's process is provably gone; for another machine or container, that is unknown."""
    if runner.pid is None:
        return False
    facts = facts_of(runner.pid)
    return runner.checkout.host == facts.host and liveness(runner.process, facts) is Liveness.DEAD
