"""Notifying a person by their own command (`notify.command`), and by the services that apprise knows.

A note goes to a program's standard input, and is there as variables. It is the user's command, so it gets the user's
whole environment (a display, a session bus, tokens for a webhook), which agents do not. What a note says comes from
requests and agents, so it is data only: no part of the command.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from aiflow.adapters.extras import has_extra
from aiflow.adapters.notifications import URLS_VARIABLE
from aiflow.domain.programs import End, Program
from aiflow.domain.request import UNCLEAN
from aiflow.errors import AiflowError
from aiflow.messages.commands import command_line
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aiflow.adapters.secrets import Masker
    from aiflow.domain.notes import Note
    from aiflow.domain.programs import Ended
    from aiflow.ports import Processes
    from aiflow.settings import Settings

VERSION = "1.0"
BY_URLS = "aiflow.adapters.notifications.by_urls"
VARIABLE = "AIFLOW_NOTE_"
MAX_LINE = 500
MAX_TEXT = 4000
MAX_SAID_BYTES = 10_000


@dataclass(frozen=True, slots=True)
class ProgramNotifier:
    """Starts what the settings name once per note, in the checkout's root, and waits for it.

    `address` gives the place of the page that notes link to; empty if there is none.
    """

    root: str
    environ: Mapping[str, str]
    settings: Settings
    processes: Processes
    masker: Masker
    address: Callable[[], str] = str

    def send(self, note: Note, interrupted: Callable[[], bool] = lambda: False) -> str | None:
        """Send one message; return what went wrong, None if nothing did."""
        try:
            fields = self._fields(note)
            problems = [self._start(argv, more, fields, interrupted) for argv, more in self._channels()]
        except AiflowError as error:
            return f"{error.reason_code}: {error.context.get('problem', '')}"
        except (OSError, ValueError) as error:
            return str(error)
        return next(filter(None, problems), None)

    def lack(self) -> str | None:
        """Say what is missing to send by addresses."""
        if not self.environ.get(self.settings.text("notify.urls_env"), "").strip():
            return "unset"
        return None if has_extra("notify") else "missing"

    def _channels(self) -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
        """Yield the programs that send notes, each with the variables it needs besides."""
        command, variable = self.settings.text("notify.command"), self.settings.text("notify.urls_env")
        if command.strip():
            yield ("/bin/sh", "-c", command), {}
        if variable:
            yield (sys.executable, "-m", BY_URLS), {URLS_VARIABLE: self.environ.get(variable, "")}

    def _start(
        self,
        argv: tuple[str, ...],
        more: Mapping[str, str],
        fields: Mapping[str, str | None],
        interrupted: Callable[[], bool],
    ) -> str | None:
        """Start a program and say what went wrong with it."""
        limit = self.settings.number("notify.timeout_seconds")
        document = json.dumps({"version": VERSION, **fields}, ensure_ascii=False)
        variables = {f"{VARIABLE}{name.upper()}": text or "" for name, text in fields.items()}
        program = Program(
            argv=argv,
            cwd=self.root,
            environ={**self.environ, **variables, **more},
            # No run's own: the cleanup of what a run left running leaves its notes alone.
            run_id=f"NOTE-{os.urandom(6).hex()}",
            timeout_seconds=limit,
            idle_seconds=limit,
            stdin=f"{document}\n".encode(),
        )
        said = b""

        def listen(data: bytes) -> None:
            nonlocal said
            said = (said + data)[-MAX_SAID_BYTES:]

        # A signal that came before is why there is this note; one that comes now is meant for the command.
        was_interrupted = interrupted()
        ended = self.processes.run(program, listen, lambda: not was_interrupted and interrupted())
        problem = _problem(ended, limit, argv[0])
        last_line = self._clean(said.decode("utf-8", "replace")).rpartition("\n")[2]
        # The end of it: its beginning may be the rest of a secret that was cut in two.
        if problem and last_line:
            return words("note_problem.more", problem=problem, said=last_line[-MAX_LINE:])
        return problem

    def _fields(self, note: Note) -> dict[str, str | None]:
        """Return a note as it may leave the machine: no secrets, nothing that commands a terminal, not too long."""
        command = command_line(note.action) if note.action else None
        return {
            "kind": note.kind.value,
            "reason_code": note.reason_code,
            "title": _cut(self._clean(note.title).replace("\n", " "), MAX_LINE),
            "text": _cut(self._clean(note.text), MAX_TEXT),
            "command": _cut(self._clean(command).replace("\n", " "), MAX_LINE) if command else None,
            "request_id": note.request_id,
            "run_id": note.run_id,
            "link": self._link(note),
        }

    def _link(self, note: Note) -> str | None:
        """Return where the page shows what a note is about; None where there is no page."""
        address = self.address().rstrip("/")
        if not address:
            return None
        if note.request_id is None:
            return f"{address}/"
        run = f"/runs/{quote(note.run_id, safe='')}" if note.run_id else ""
        return f"{address}/requests/{quote(note.request_id, safe='')}{run}"

    def _clean(self, text: str) -> str:
        """Mask secrets and take control characters out, line by line; lines at the end that are empty go."""
        lines = self.masker.mask_text(text).splitlines()
        return "\n".join(UNCLEAN.sub("\ufffd", line.replace("\t", " ")) for line in lines).strip()


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _problem(ended: Ended, limit: float, program: str) -> str | None:
    """Name what went wrong with the command's end."""
    if ended.end is End.TIMED_OUT or ended.end is End.SILENT:
        return words("agent_end.timed_out", seconds=f"{limit:g}")
    if ended.end is not End.EXITED:
        return words(f"agent_end.{ended.end}", program=program)
    if ended.exit_code != 0:
        return words("agent_end.exited", code=ended.exit_code)
    # Most likely it sends in the background, and was ended before it had sent.
    return words("note_problem.left") if ended.leftovers else None
