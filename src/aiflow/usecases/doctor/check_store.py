"""The doctor's look at the queue store (DOC-1, QUE-2a): whether it answers as it should, and who else can read it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.health import Finding, Health
from aiflow.domain.next_action import ActionKind, NextAction, shell
from aiflow.domain.queue.store_obstacles import ObstacleKind
from aiflow.errors import AiflowError
from aiflow.messages.commands import as_plain
from aiflow.settings.table import LOCAL_STORE
from aiflow.usecases.shapes.errors import error_facts
from aiflow.usecases.shapes.store import describe_obstacles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiflow.domain.queue.store_obstacles import Obstacles
    from aiflow.messages import Texts
    from aiflow.ports.tasks import QueueStore, StoreStatus
    from aiflow.settings import Settings

INSTALL = "brew install openjdk@17 node" if sys.platform == "darwin" else "sudo apt install openjdk-17-jre-headless npm"
START_DOCKER = "open -a Docker" if sys.platform == "darwin" else "sudo systemctl start docker"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class StoreLook(NamedTuple):
    """How the doctor looks at stores: the one of this machine, and the one that the settings name, which it opens.

    `lack` is what the store of this machine lacks to run, if anything.
    """

    local: Callable[[], StoreStatus]
    lack: Callable[[], Obstacles | None]
    opened: Callable[[], QueueStore]


def check_store(settings: Settings, look: StoreLook, texts: Texts) -> Iterator[Finding]:
    """Check the store that the settings name; the one of this machine only if it runs, or should: none is started."""
    name = settings.text("queue.store")
    if name != LOCAL_STORE:
        yield from _check_shared(name, look, texts)
        return
    try:
        status = look.local()
    except AiflowError as error:
        yield _failed(error, texts)
        return
    if status.exposed:
        fix = NextAction(ActionKind.STORE_ROTATE_KEY)
        yield Finding("store", Health.FAIL, None, "store.exposed", (), status.exposed, fix)
    if status.is_running:
        yield from _check_tables(status.endpoint or "", look, texts)
    elif lack := look.lack():
        told = (("problem", describe_obstacles(lack, texts)),)
        fix = shell(START_DOCKER if lack.has(ObstacleKind.RAN_BY_DOCKER) else INSTALL)
        yield Finding("store", Health.WARN, "STORE_NOT_INSTALLED", "store.lack", told, fix=fix)
    elif status.problem:
        told = (("problem", describe_obstacles(status.problem, texts)),)
        yield Finding("store", Health.WARN, None, "store.down", told, fix=NextAction(ActionKind.STORE_START))


def _check_shared(name: str, look: StoreLook, texts: Texts) -> Iterator[Finding]:
    from urllib.parse import urlsplit

    url = urlsplit(name)
    if url.scheme == "http" and url.hostname not in LOOPBACK:
        settings = NextAction(ActionKind.SETTINGS)
        yield Finding("store", Health.WARN, None, "store.plain", (("endpoint", name),), fix=settings)
    yield from _check_tables(name, look, texts)


def _check_tables(name: str, look: StoreLook, texts: Texts) -> Iterator[Finding]:
    try:
        missing = look.opened().check()
    except AiflowError as error:
        yield _failed(error, texts)
        return
    told = (("endpoint", name),)
    if missing:
        yield Finding("store", Health.PASS, None, "store.empty", told)
    else:
        yield Finding("store", Health.PASS, None, "store.pass", told)


def _failed(error: AiflowError, texts: Texts) -> Finding:
    """Say why a store cannot be used."""
    facts = tuple((key, str(as_plain(value))) for key, value in {"problem": "", **error_facts(error, texts)}.items())
    fix = NextAction(ActionKind.STORE_STATUS)
    return Finding("store", Health.FAIL, error.reason_code, "store.fail", facts, fix=fix)
