"""The store of this machine (QUE-2, QUE-2a): DynamoDB Local, fetched, started and stopped by aiflow, one per user.

What was recorded about it is never believed: the process is checked, and asked with our own key, which is given to no
one else (`proof.py`). A key that others may know is changed, and its database with it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from aiflow.adapters.dynamo.address import local_address
from aiflow.adapters.dynamo.local import by_java, fetch
from aiflow.adapters.dynamo.local.by_docker import DockerStore, find_docker, installed_docker
from aiflow.adapters.dynamo.local.folder import DOCKER, JAVA, Record, StoreFolder
from aiflow.adapters.dynamo.local.health import HOST, problem_at
from aiflow.adapters.dynamo.local.java import Java, find_java
from aiflow.adapters.dynamo.local.log_file import follow_log, log_end
from aiflow.adapters.dynamo.local.proof import by_process, stranger
from aiflow.adapters.files.atomic_files import translated
from aiflow.adapters.files.guard_files import guarded
from aiflow.adapters.files.user_folders import cache_home
from aiflow.domain.queue.store_obstacles import Obstacle, ObstacleKind, Obstacles
from aiflow.errors import EnvironmentProblemError
from aiflow.ports.tasks import StoreStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aiflow.adapters.dynamo.client import StoreAddress
    from aiflow.adapters.dynamo.local.proof import Connect, Prove

    Progress = Callable[[str, float | None], None]

VERSION = "DynamoDB Local 3.3.0"
PATIENCE_SECONDS = 15.0
_LOOK_SECONDS = 0.2


class LocalDynamo:
    """This machine's own store."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._folder = StoreFolder(environ)
        self._cache = cache_home(environ) / "dynamodb-local"

    def start(self, progress: Progress, *, is_key_new: bool = False) -> StoreStatus:
        """Start it if it does not run, fetching it first where it is missing; two at once start one.

        With a new key it is started again if it runs; so it is if others could read the key that it has.
        """
        with translated(self._folder.path):
            could_be_read = self._folder.key() is not None and bool(self._folder.exposed())
            self._folder.make()
            self._folder.make_key()
            # Where nothing can be kept from others, another key would be no better.
            if is_key_new or (could_be_read and not self._folder.exposed()):
                self._folder.plan_key()
            if (status := self._as_it_should()) is not None:
                return status
            with guarded(self._folder.guard):  # somebody may have started it while we waited
                return self._as_it_should() or self._start(progress)

    def _as_it_should(self) -> StoreStatus | None:
        """Return its state if it runs, with the key that it should have."""
        status = self.status()
        return status if status.is_running and self._folder.next_key() is None else None

    def stop(self) -> bool:
        """Stop it; False if it did not run."""
        with translated(self._folder.path):
            record = self._folder.record()
            if record is None:
                return False
            with guarded(self._folder.guard):
                record = self._folder.record() or record
                did_run = self._end(record)
                self._folder.write(Record(record.how, record.port))
                return did_run

    def status(self) -> StoreStatus:
        """Look at it; changes nothing."""
        with translated(self._folder.path):
            record, key = self._folder.record(), self._folder.key()
            about = self._about(record if key else None)
        if record is None or key is None or record.is_stopped:
            return about._replace(is_stopped=record is not None and record.is_stopped)
        is_alive = self._lives(record)
        problem = problem_at(record.port, key, self._proof_of(record)) if is_alive else None
        if not is_alive or (problem is not None and not self._lives(record)):  # it may have ended while it was asked
            return about._replace(endpoint=None, problem=_gone(record))
        about = about._replace(pid=record.pid, problem=problem)
        return about if problem else _answering(about)

    def _about(self, record: Record | None) -> StoreStatus:
        """Return what is known of it without looking at it."""
        data, log, exposed = str(self._folder.data), str(self._folder.log), self._folder.exposed()
        about = StoreStatus(False, data=data, log=log, exposed=exposed)  # noqa: FBT003
        if record is None or record.is_stopped:
            return about
        return about._replace(how=record.how, endpoint=_endpoint(record))

    def lack(self) -> Obstacles | None:
        """Say what is missing here to run it, None if nothing is; fetches and starts nothing."""
        with translated(self._folder.path):
            record = self._folder.record()
        found = self._look(record.how if record else None)
        return found if isinstance(found, Obstacles) else None

    def full_disk(self) -> str | None:
        """Return the folder of its data if that has no room for more, which the store itself does not say."""
        return str(self._folder.data) if self._folder.is_full() else None

    def log(self, lines: int) -> str:
        """Return the end of its log."""
        with translated(self._folder.log):
            record, docker = self._folder.record(), installed_docker(self._environ)
            if record is not None and record.container and docker is not None:
                return docker.log(record, lines)
            return log_end(self._folder.log, lines)

    def follow(self, lines: int) -> Iterator[str]:
        """Give the end of its log line by line, and what is added, for as long as somebody listens."""
        record, docker = self._folder.record(), installed_docker(self._environ)
        if record is not None and record.container and docker is not None:
            return docker.follow(record, lines)
        return follow_log(self._folder.log, lines)

    def address(self, progress: Progress) -> StoreAddress:
        """Return where it answers and by which key it knows us, started if it does not run."""
        status = self.start(progress)
        key = self._folder.key()
        assert status.endpoint is not None
        assert key is not None
        return local_address(status.endpoint, key)

    def prove(self, address: StoreAddress, connect: Connect) -> Obstacles | None:
        """Connect to an address, and say why nothing may be sent there: it is not, or no longer, our store's."""
        with translated(self._folder.path):
            record, key = self._folder.record(), self._folder.key()
        if record is None or record.is_stopped or (_endpoint(record), key) != (address.endpoint, address.access_key):
            return Obstacles.of(ObstacleKind.MOVED)
        return self._proof_of(record)(connect)

    def _start(self, progress: Progress) -> StoreStatus:
        before = self._folder.record()
        if before is not None and not before.is_stopped and self._lives(before):
            progress("wait", None)
            if self._folder.next_key() is None and (status := self._comes_round(before)) is not None:
                return status
            self._end(before)  # it is of no use, and has the data open
        way = self._find_way(before.how if before else None, progress)
        self._change_key(way)
        progress("start", None)
        self._folder.rotate_log()
        record = way.run(self._folder, before.port if before else None)
        return _answering(self._about(record)._replace(pid=record.pid))  # it just did: not asked again, it may be busy

    def _change_key(self, way: by_java.JavaStore | DockerStore) -> None:
        """Let the next key be ours if there is one, and the data be its own; killed in between, the next start does."""
        old, new = self._folder.key(), self._folder.next_key()
        if old is not None and new is not None:
            way.move_data(self._folder, old, new)
            self._folder.change_key()

    def _comes_round(self, record: Record) -> StoreStatus | None:
        """Give a store that runs but does not answer some time: it may be overloaded, or not yet ready."""
        until = time.monotonic() + PATIENCE_SECONDS
        while self._lives(record) and time.monotonic() < until:
            if (status := self.status()).is_running:
                return status
            time.sleep(_LOOK_SECONDS)
        return None

    def _lives(self, record: Record) -> bool:
        """Return whether what was written down is still there."""
        if record.container is None:
            return record.is_process_alive()
        docker = installed_docker(self._environ)
        return docker is not None and docker.is_running(record)

    def _proof_of(self, record: Record) -> Prove:
        """Return how it is proved that what was written down has the other end of a connection."""
        if record.container is None:
            return by_process(record)
        docker = installed_docker(self._environ)
        return docker.prove_by(record) if docker else lambda _connect: stranger(record.port)

    def _end(self, record: Record) -> bool:
        if record.container is None:
            return by_java.end(record)
        docker = installed_docker(self._environ)
        return docker is not None and docker.end(record)

    def _find_way(self, before: str | None, progress: Progress) -> by_java.JavaStore | DockerStore:
        """Return how to run it, with everything that needs; what cannot be fetched for Java may run in Docker."""
        found = self._look(before)
        if isinstance(found, Obstacles):
            raise EnvironmentProblemError(reason_code="STORE_NOT_INSTALLED", problem=found)
        if isinstance(found, Java):
            try:
                library = fetch.library_in(self._cache) or fetch.fetch(self._cache, self._environ, progress)
                return by_java.JavaStore(found.program, library, self._environ)
            except EnvironmentProblemError:
                docker = find_docker(self._environ) if before != JAVA else None
                if not isinstance(docker, DockerStore):
                    raise
                found = docker
        progress("docker", None)
        return found

    def _look(self, before: str | None) -> Java | DockerStore | Obstacles:
        """Choose how to run it: as before, for the data is there; at first by Java, else by Docker."""
        missing: list[Obstacle] = []
        if before != DOCKER:
            java = find_java(self._environ)
            missing += java if not isinstance(java, Java) else ()
            if fetch.library_in(self._cache) is None and fetch.find_npm(self._environ) is None:
                missing.append(Obstacle(ObstacleKind.NO_NPM))
            if isinstance(java, Java) and not missing:
                return java
        if before != JAVA:
            docker = find_docker(self._environ)
            if isinstance(docker, DockerStore):
                return docker
            missing.append(docker)
        return Obstacles((*missing, *self._ran(before)))

    def _ran(self, before: str | None) -> tuple[Obstacle, ...]:
        """Say by what it ran before, for its tasks are there and the other way will not do."""
        folder = ("folder", str(self._folder.path))
        if before == DOCKER:
            return (Obstacle(ObstacleKind.RAN_BY_DOCKER, (folder, ("engine", "Docker"))),)
        return (Obstacle(ObstacleKind.RAN_BY_JAVA, (folder,)),) if before == JAVA else ()


def _answering(about: StoreStatus) -> StoreStatus:
    return about._replace(is_running=True, version=VERSION)


def _endpoint(record: Record) -> str:
    return f"http://{HOST}:{record.port}"


def _gone(record: Record) -> Obstacles:
    if record.container is None:
        return Obstacles.of(ObstacleKind.PROCESS_GONE, pid=record.pid)
    return Obstacles.of(ObstacleKind.CONTAINER_GONE, container=record.container)
