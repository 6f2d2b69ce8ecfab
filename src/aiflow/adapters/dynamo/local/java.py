"""Java on this machine (QUE-2): where it is, and whether it is new enough for DynamoDB Local."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.queue.store_obstacles import Obstacle, ObstacleKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LEAST_JAVA = 17
VERSION_SECONDS = 20
# Homebrew puts its Java here and not on the PATH.
_HOMEBREW = ("/opt/homebrew/opt/openjdk/bin/java", "/usr/local/opt/openjdk/bin/java")
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?[^"]*"')


class Java(NamedTuple):
    """A Java that was found: its program, and its version in full."""

    program: str
    version: str


def find_java(environ: Mapping[str, str]) -> Java | tuple[Obstacle, ...]:
    """Return a Java that will do, or what is wrong with those that are there."""
    problems: list[Obstacle] = []
    for program in _candidates(environ):
        answer = _ask(program, environ)
        match = _VERSION.search(answer)
        if match is None:
            problems.append(_broken(program, _first_line(answer)))
            continue
        # Java 8 and before call themselves 1.8.
        number = int(match[2] or 0) if match[1] == "1" else int(match[1])
        version = match[0].split('"')[1]
        if number >= LEAST_JAVA:
            return Java(program, version)
        told = (("program", program), ("version", version), ("least", str(LEAST_JAVA)))
        problems.append(Obstacle(ObstacleKind.OLD_JAVA, told))
    return tuple(problems) or (Obstacle(ObstacleKind.NO_JAVA, (("least", str(LEAST_JAVA)),)),)


def _broken(program: str, words: str) -> Obstacle:
    if not words:
        return Obstacle(ObstacleKind.SILENT_JAVA, (("program", program),))
    return Obstacle(ObstacleKind.BROKEN_JAVA, (("program", program), ("words", words)))


def bare_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the store gets to see of the environment: no credentials, and nothing that changes Java."""
    return {name: environ[name] for name in ("PATH", "HOME", "LANG") if name in environ}


def _candidates(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield every Java that may be meant, the likeliest first, each once."""
    home, on_path = environ.get("JAVA_HOME", ""), shutil.which("java", path=environ.get("PATH", os.defpath))
    places = [os.path.join(home, "bin", "java") if home else "", on_path or ""]
    if sys.platform == "darwin":
        places += _HOMEBREW
    seen: set[str] = set()
    for place in places:
        real = os.path.realpath(place) if place else ""
        if place and os.access(place, os.X_OK) and real not in seen:
            seen.add(real)
            yield place


def _ask(program: str, environ: Mapping[str, str]) -> str:
    """Return what a Java reports as its version; it does so on the error stream."""
    try:
        done = subprocess.run(
            [program, "-version"],
            env=bare_environment(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout.decode("utf-8", "replace")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:200]
