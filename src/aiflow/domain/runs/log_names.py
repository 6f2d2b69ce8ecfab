"""The logs of a run by number and by name (RUN-1, RUN-17): the planner's, the steps', and that of the baseline."""

from __future__ import annotations

import re

BASELINE_LOG = -1
PLANNER_LOG = 0
# What a log is called where people see it.
LOG_NAME = r"^([0-9]{1,2}|baseline)$"
_BASELINE = "baseline"
_STEP = re.compile(r"step-(\d{1,9})", re.ASCII)
_SUFFIX = ".log"


def log_name(number: int) -> str:
    """Return what a log is called where people see it: `3`, or `baseline`."""
    return _BASELINE if number == BASELINE_LOG else str(number)


def log_file(number: int) -> str:
    """Return the name of a log's file."""
    return f"{_BASELINE if number == BASELINE_LOG else f'step-{number}'}{_SUFFIX}"


def named_log(name: str) -> int:
    """Return the number of a log by what it is called."""
    return BASELINE_LOG if name == _BASELINE else int(name)


def log_of_file(file: str) -> int | None:
    """Return the number of the log that a file is, None if it is none."""
    stem = file.removesuffix(_SUFFIX)
    if stem == file:
        return None
    if stem == _BASELINE:
        return BASELINE_LOG
    match = _STEP.fullmatch(stem)
    return int(match[1]) if match else None
