"""Run ids (SPEC §1): made of the time in UTC and six hex digits, after the newest of the request."""

from __future__ import annotations

import contextlib
import errno
import os
from datetime import UTC, datetime

from aiflow.errors import EnvironmentProblemError

_LAST_NUMBER = 0xFFFFFF


def new_run_id(newest: str | None = None) -> str:
    """Make a run id that comes after the request's newest in text order; raises if there is none."""
    made = f"RUN-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.urandom(3).hex()}"
    if newest is None or made > newest:
        return made
    # Within one second, or with a clock that was set back: the next number after the newest.
    stamp, _, number = newest.rpartition("-")
    with contextlib.suppress(ValueError):
        if int(number, 16) < _LAST_NUMBER:
            return f"{stamp}-{int(number, 16) + 1:06x}"
    # A folder with a name that a person gave, or the last of all numbers: nothing comes after it.
    raise EnvironmentProblemError(reason_code="IO_ERROR", path=newest, problem=os.strerror(errno.EEXIST))
