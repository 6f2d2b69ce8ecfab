"""The program between aiflow and an agent: `python -P -m aiflow.adapters.agents.acp.client`.

One JSON document on standard input says which agent to start and what to ask of it; what happens comes out on standard
output as events, one JSON object a line. Whatever it leaves behind, the guard above it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import sys
from typing import TYPE_CHECKING, Any

from aiflow.adapters.agents.acp.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Callable

LEAVE_SECONDS = 3.0
MOST_WORDS = 2_000


def main() -> int:
    """Read the order and report its result."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    logging.disable(logging.CRITICAL)  # our events report what the library would log
    asyncio.run(work(json.load(sys.stdin.buffer)))
    return 0


def say(event: str, **facts: Any) -> None:
    """Write one event."""
    line = json.dumps({"event": event, **facts}, ensure_ascii=True, default=str)
    sys.stdout.buffer.write(line.encode() + b"\n")
    sys.stdout.buffer.flush()


async def work(document: dict[str, Any], tell: Callable[..., None] = say, leave_seconds: float = LEAVE_SECONDS) -> None:
    """Start the agent, hold the conversation, and see the agent go."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *document["argv"], cwd=document["cwd"], stdin=pipe, stdout=pipe, stderr=pipe
        )
    except OSError as error:
        tell("not_started", problem=f"{document['argv'][0]}: {error.strerror}")
        return
    # The library takes a second to load; the agent uses it to start.
    from aiflow.adapters.agents.acp.conversation import Conversation, order_of

    assert process.stdin and process.stdout and process.stderr
    conversation = Conversation(order_of(document), tell)
    wire = Wire(process.stdout, process.stdin, conversation.update, lambda text: tell("noise", text=text[:MOST_WORDS]))
    errors = asyncio.ensure_future(listen(process.stderr, conversation.complain))
    is_held = await conversation.hold(wire)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), leave_seconds)
    if not is_held:
        await asyncio.wait({errors}, timeout=1.0)
        tell("lost", exit_code=process.returncode)
    if process.returncode is None:  # what it started besides is the guard's to end
        process.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), leave_seconds)
    errors.cancel()


async def listen(reader: asyncio.StreamReader, hear: Callable[[str], None]) -> None:
    """Hand the agent's own log over, line by line."""
    partial = b""
    while data := await reader.read(65536):
        *lines, partial = (partial + data).split(b"\n")
        if len(partial) > MOST_WORDS:
            lines, partial = [*lines, partial], b""
        for line in lines:
            _hear(line, hear)
    _hear(partial, hear)


def _hear(line: bytes, hear: Callable[[str], None]) -> None:
    if text := line.decode("utf-8", "replace").rstrip()[:MOST_WORDS]:
        hear(text)


if __name__ == "__main__":
    sys.exit(main())
