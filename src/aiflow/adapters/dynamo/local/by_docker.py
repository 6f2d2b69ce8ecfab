"""Running DynamoDB Local in Docker (QUE-2), where Java or npm is missing and Docker's engine answers."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.dynamo.local.by_java import START_SECONDS, free_ports, not_started
from aiflow.adapters.dynamo.local.folder import DOCKER, Record
from aiflow.adapters.dynamo.local.health import HOST, problem_at
from aiflow.adapters.dynamo.local.proof import Connect, Prove, stranger
from aiflow.domain.queue.store_obstacles import Obstacle, ObstacleKind, Obstacles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiflow.adapters.dynamo.local.folder import StoreFolder

IMAGE = "amazon/dynamodb-local:3.3.0"
ANSWER_SECONDS = 20
FETCH_SECONDS = 1800
_LOOK_SECONDS = 0.5
# A fresh volume is root's; within the container, root has no rights but to write there.
_CONFINED = ("--user", "root", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
_RENAME = """read -r old && read -r new && cd /data || exit 1
for file in "$old"_*; do if [ -e "$file" ]; then mv "$file" "$new${file#"$old"}" || exit 1; fi; done"""


class DockerStore(NamedTuple):
    """A Docker whose engine answers."""

    program: str
    environ: Mapping[str, str]

    def run(self, folder: StoreFolder, usual_port: int | None) -> Record:
        """Start it in a container and wait until it answers; Docker fetches the image where it is missing."""
        name = container_name(folder)
        problem = Obstacles(())
        for port in free_ports(usual_port):
            record = Record(DOCKER, port, container=name)
            folder.write(record)
            self._call("rm", "--force", name)
            code, said = self._call(*_run_arguments(name, port), seconds=FETCH_SECONDS)
            if code == 0:
                return self._answering(folder, record)
            problem = _refused(code, said.strip())
            if "already allocated" not in said and "already in use" not in said:
                break
        raise not_started(problem)

    def _answering(self, folder: StoreFolder, record: Record) -> Record:
        key, until = folder.key() or "", time.monotonic() + START_SECONDS
        while (problem := problem_at(record.port, key, self.prove_by(record))) is not None:
            if time.monotonic() > until or not self.is_running(record):
                last = self.log(record, 1).strip()[:300]
                raise not_started(problem.and_also(ObstacleKind.LAST_LINE, words=last) if last else problem)
            time.sleep(_LOOK_SECONDS)
        return record

    def is_running(self, record: Record) -> bool:
        """Return whether the container runs."""
        return self._begun(record) is not None

    def prove_by(self, record: Record) -> Prove:
        """Prove that a connection ends in the container: it has the port, and had it since before we connected.

        The port belongs to a process of the engine, which is not ours to look at.
        """

        def prove(connect: Connect) -> Obstacles | None:
            begun = self._begun(record)
            connect()
            is_ours = begun is not None and self._begun(record) == begun
            return None if is_ours else stranger(record.port)

        return prove

    def _begun(self, record: Record) -> str | None:
        """Return what distinguishes this start of the container from any other; None if it does not run at its port."""
        about = "{{.State.Running}} {{.State.StartedAt}} {{json .HostConfig.PortBindings}}"
        code, said = self._call("inspect", "--format", about, str(record.container))
        is_there = said.startswith("true ") and f'"HostPort":"{record.port}"' in said
        return said if code == 0 and is_there else None

    def move_data(self, folder: StoreFolder, old: str, new: str) -> None:
        """Give the database the name by which the new key finds it; no list of processes shows the keys."""
        options = ("--rm", "--interactive", "--volume", f"{container_name(folder)}:/data", *_CONFINED)
        self._call("rm", "--force", container_name(folder))  # an unrecorded one would have it open
        command = ("--entrypoint", "/bin/sh", IMAGE, "-c", _RENAME)
        code, said = self._call("run", *options, *command, told=f"{old}\n{new}\n")
        if code != 0:
            raise not_started(_refused(code, said.strip()))

    def end(self, record: Record) -> bool:
        """Stop and remove the container; the data stays, in a volume of the same name."""
        was_running = self.is_running(record)
        self._call("stop", str(record.container), seconds=60)
        self._call("rm", "--force", str(record.container))
        return was_running

    def log(self, record: Record, lines: int) -> str:
        """Return the end of the container's log."""
        return self._call("logs", "--tail", str(lines), str(record.container))[1]

    def follow(self, record: Record, lines: int) -> Iterator[str]:
        """Give the end of the container's log, and what is added, as it comes."""
        command = [self.program, "logs", "--follow", "--tail", str(lines), str(record.container)]
        with subprocess.Popen(
            command, env=dict(self.environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    yield line.decode("utf-8", "replace").rstrip("\n")
            finally:
                process.kill()

    def _call(self, *arguments: str, seconds: float = ANSWER_SECONDS, told: str = "") -> tuple[int, str]:
        return _docker(self.program, arguments, self.environ, seconds, told)


def container_name(folder: StoreFolder) -> str:
    """Name the container and its volume by the folder: it is found again, and two users of one engine have one each."""
    return f"aiflow-store-{hashlib.sha256(os.fsencode(folder.path)).hexdigest()[:12]}"


def installed_docker(environ: Mapping[str, str]) -> DockerStore | None:
    """Return the Docker that is installed, whether or not its engine answers."""
    program = shutil.which("docker", path=environ.get("PATH", os.defpath))
    return DockerStore(program, environ) if program else None


def find_docker(environ: Mapping[str, str]) -> DockerStore | Obstacle:
    """Return a Docker that works, or what is missing."""
    docker = installed_docker(environ)
    if docker is None:
        return Obstacle(ObstacleKind.NO_DOCKER)
    code, _ = _docker(docker.program, ("info",), environ, ANSWER_SECONDS)
    return docker if code == 0 else Obstacle(ObstacleKind.NO_ENGINE)


def _run_arguments(name: str, port: int) -> tuple[str, ...]:
    return (
        *("run", "--detach", "--name", name, "--publish", f"{HOST}:{port}:8000", "--volume", f"{name}:/data"),
        *(*_CONFINED, IMAGE),
        *("-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar"),
        *("-dbPath", "/data", "-disableTelemetry"),
    )


def _docker(
    program: str, arguments: tuple[str, ...], environ: Mapping[str, str], seconds: float, told: str = ""
) -> tuple[int, str]:
    try:
        done = subprocess.run(
            [program, *arguments],
            env=dict(environ),
            input=told.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def _refused(code: int, said: str) -> Obstacles:
    """Say why no container was started."""
    if not said:
        return Obstacles.of(ObstacleKind.DOCKER_LEFT, code=code)
    return Obstacles.of(ObstacleKind.DOCKER_SAID, words=said.splitlines()[-1][:300])
