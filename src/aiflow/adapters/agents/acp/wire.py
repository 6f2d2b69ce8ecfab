"""The wire to an agent: JSON-RPC messages, one a line, over its standard input and output.

The library's own transport gives up at a line that is JSON but no message; agents print such lines. Here they are
handed over as noise, and the conversation continues.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

MAX_LINE = 50_000_000
INTERNAL_ERROR = -32603


class Wire:
    """Messages to and from one agent (the library's `Transport`); updates and noise are handed over in their order."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        update: Callable[[dict[str, Any]], None],
        noise: Callable[[str], None],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._update = update
        self._noise = noise
        self._partial = bytearray()
        self._lines: list[bytes] = []

    async def send(self, message: dict[str, Any]) -> None:
        """Write one message."""
        self._writer.write(json.dumps(message, ensure_ascii=True).encode() + b"\n")
        await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message that is not an update, or None when the agent has closed its output."""
        while (line := await self._line()) is not None:
            message = read_message(line)
            if message is None:
                self._noise(line.decode("utf-8", "replace"))
            elif message.get("method") == "session/update":
                self._update(message["params"] if isinstance(message.get("params"), dict) else {})
            else:
                return message
        return None

    async def close(self) -> None:
        """Signal to the agent that nothing more comes."""
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.close()

    async def _line(self) -> bytes | None:
        """Return the next line that is not empty, None at the end; of an endless one only pieces."""
        while not self._lines:
            data = await self._reader.read(65536)
            if not data and not self._partial:
                return None
            # Only what is new is searched: a line of many megabytes comes in many pieces.
            begun, newline, rest = data.partition(b"\n")
            self._partial += begun
            if newline or not data or len(self._partial) > MAX_LINE:
                *lines, last = rest.split(b"\n")
                lines, self._partial = [bytes(self._partial), *lines], bytearray(last)
                self._lines = [line for line in lines if line.strip()][::-1]
        return self._lines.pop()


def read_message(line: bytes) -> dict[str, Any] | None:
    """Read a line as a message that the library can take, or None if it is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not isinstance(message.get("method", ""), str):
        return None
    if not isinstance(message.get("id"), (int, str, type(None))) or not {"method", "id"} & message.keys():
        return None
    if "error" in message and not _is_error(message["error"]):
        message["error"] = {"code": INTERNAL_ERROR, "message": json.dumps(message["error"])}
    return message


def _is_error(error: object) -> bool:
    return isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
