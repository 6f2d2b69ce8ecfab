"""The user's other servers that answer now: looked for beside the page, which never waits long for them.

What is known is given at once and looked up again in a thread of its own once it is some seconds old.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiflow.ports.server import ServerRecord

FRESH_SECONDS = 5.0
# A page waits this long for the first look, and not at all for later ones.
FIRST_SECONDS = 0.3
MOST_ASKED = 50
AT_ONCE = 8


class OtherServers:
    """The servers of the user's other checkouts."""

    def __init__(
        self,
        records: Callable[[], Sequence[ServerRecord]],
        own: ServerRecord,
        answering: Callable[[str], str | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._records = records
        self._own = own
        self._answering = answering
        self._clock = clock
        self._guard = threading.Lock()
        self._looking: threading.Thread | None = None
        self._found: tuple[ServerRecord, ...] = ()
        self._looked_at: float | None = None

    def known(self) -> tuple[ServerRecord, ...]:
        """Return the others that answered at the last look, by name."""
        with self._guard:
            is_first = self._looked_at is None
            is_old = self._looked_at is None or self._clock() - self._looked_at >= FRESH_SECONDS
            if is_old and self._looking is None:
                self._looking = threading.Thread(target=self._look, name="neighbours", daemon=True)
                self._looking.start()
            looking = self._looking
        if is_first and looking is not None:
            looking.join(FIRST_SECONDS)
        return self._found

    def _look(self) -> None:
        """Ask all of them at once, and keep those that are who they say they are."""
        found: list[ServerRecord] = []
        try:
            others = [each for each in self._records() if self._is_other(each)][:MOST_ASKED]
            if others:
                with ThreadPoolExecutor(min(AT_ONCE, len(others))) as pool:
                    told = pool.map(lambda each: self._answering(each.url), others)
                    found = [each for each, said in zip(others, told, strict=True) if said == each.instance_id]
        finally:
            with self._guard:
                self._found = tuple(sorted(found, key=lambda each: (each.root.rsplit("/", 1)[-1], each.root)))
                self._looked_at, self._looking = self._clock(), None

    def _is_other(self, record: ServerRecord) -> bool:
        return record.instance_id != self._own.instance_id and record.url.startswith(("http://", "https://"))
