"""Calls of the program whose answers a page shows: each a process of its own, forked from this one.

An interpreter that starts for each call, and imports the same modules again, took most of the time of `make docs`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, NoReturn

import aiflow.cli.main


def answer_of(folder: str, call: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Call the program in a folder, with this environment and no other, and return its JSON."""
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _become(folder, [*call.split(), "--json"], environ, writing)
    os.close(writing)
    with open(reading, encoding="utf-8") as said:
        text = said.read()
    os.waitpid(child, 0)
    answer: dict[str, Any] = json.loads(text)
    return answer


def _become(folder: str, argv: list[str], environ: Mapping[str, str], writing: int) -> NoReturn:
    """Be the program; what it says besides its answer goes nowhere."""
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number, fd in enumerate((nowhere, writing, nowhere)):
            os.dup2(fd, number)
        os.closerange(3, 1024)
        sys.stdin, sys.stdout, sys.stderr = (  # the old ones know what they led to: a file, or a terminal
            open(fd, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the whole process
            for fd, mode in enumerate("rww")
        )
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environ)
        time.tzset()
        sys.argv = ["aiflow", *argv]
        aiflow.cli.main.main(argv)
    finally:
        os._exit(1)  # whatever happens, the page is written by one process
