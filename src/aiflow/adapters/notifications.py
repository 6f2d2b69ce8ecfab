"""Telling a person through a command of their own (`notify.command`): the note on its standard input and as variables.

It is the user's command, so it gets the user's whole environment (a display, a session bus, tokens for a webhook),
which agents do not. What a note says comes from requests and agents, so it is data only: no part of the command.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.domain.programs import End, Program
from aiflow.domain.request import UNCLEAN
from aiflow.errors import AiflowError
from aiflow.messages.commands import command_line
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiflow.adapters.secrets import Masker
    from aiflow.domain.notes import Note
    from aiflow.domain.programs import Ended
    from aiflow.ports import Processes
    from aiflow.settings import Settings

VERSION = "1.0"
VARIABLE = "AIFLOW_NOTE_"
MAX_LINE = 500
MAX_TEXT = 4000
MAX_SAID_BYTES = 10_000


@dataclass(frozen=True, slots=True)
class CommandNotifier:
    """Starts the command of the settings once per note, in the checkout's root, and waits for it."""

    root: str
    environ: Mapping[str, str]
    settings: Settings
    processes: Processes
    masker: Masker

    def send(self, note: Note, interrupted: Callable[[], bool] = lambda: False) -> str | None:
        """Send one message; return what went wrong, None if nothing did."""
        command = self.settings.text("notify.command")
        if not command.strip():
            return None
        try:
            return self._start(command, self._fields(note), interrupted)
        except AiflowError as error:
            return f"{error.reason_code}: {error.context.get('problem', '')}"
        except (OSError, ValueError) as error:
            return str(error)

    def _start(self, command: str, fields: Mapping[str, str | None], interrupted: Callable[[], bool]) -> str | None:
        """Start the command and say what went wrong with it."""
        limit = self.settings.number("notify.timeout_seconds")
        document = json.dumps({"version": VERSION, **fields}, ensure_ascii=False)
        variables = {f"{VARIABLE}{name.upper()}": text or "" for name, text in fields.items()}
        program = Program(
            argv=("/bin/sh", "-c", command),
            cwd=self.root,
            environ={**self.environ, **variables},
            # No run's own: whoever ends what a run has left running leaves its notes alone.
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
        problem = _problem(ended, limit)
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
        }

    def _clean(self, text: str) -> str:
        """Mask secrets and take control characters out, line by line; lines at the end that are empty go."""
        lines = self.masker.mask_text(text).splitlines()
        return "\n".join(UNCLEAN.sub("\ufffd", line.replace("\t", " ")) for line in lines).strip()


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _problem(ended: Ended, limit: float) -> str | None:
    """Name what went wrong with the command's end."""
    if ended.end is End.TIMED_OUT or ended.end is End.SILENT:
        return words("agent_end.timed_out", seconds=f"{limit:g}")
    if ended.end is not End.EXITED:
        return words(f"agent_end.{ended.end}", program="/bin/sh")
    if ended.exit_code != 0:
        return words("agent_end.exited", code=ended.exit_code)
    # Most likely it sends in the background, and was ended before it had sent.
    return words("note_problem.left") if ended.leftovers else None
