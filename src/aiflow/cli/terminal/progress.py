"""A count that grows while something long is read: on standard error, in a terminal only, gone when it is done."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiflow.messages import Texts

# What is over sooner needs no progress.
PATIENCE_SECONDS = 0.5
REFRESH_SECONDS = 0.1
_CLEAR = "\r\x1b[K"


@contextlib.contextmanager
def counting(texts: Texts) -> Iterator[Callable[[int], None]]:
    """Return the function that gets how much was read so far."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _seen: None
        return
    shown_at = [0.0]
    began = time.monotonic()

    def tell(seen: int) -> None:
        now = time.monotonic()
        if now - began > PATIENCE_SECONDS and now - shown_at[0] > REFRESH_SECONDS:
            shown_at[0] = now
            sys.stderr.write(_CLEAR + texts("queue.reading", count=f"{seen:,}"))
            sys.stderr.flush()

    try:
        yield tell
    finally:
        if shown_at[0]:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
