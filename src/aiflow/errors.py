"""The error tree: what a caller must not ignore.

Each error carries a reason code of the catalogue (`domain/reasons.py`) and, in `context`, the facts its message needs.
The words themselves are in `messages/`; the docstring here is the message for developers.
"""

from __future__ import annotations

import errno
import os


class AiflowError(Exception):
    """The operation could not be carried out."""

    reason_code = "INTERNAL_ERROR"

    def __init__(self, *, reason_code: str | None = None, **context: object) -> None:
        if reason_code is not None:
            self.reason_code = reason_code
        self.context: dict[str, object] = context
        facts = ", ".join(f"{name}={value}" for name, value in context.items())
        super().__init__(f"{self.reason_code}: {(self.__doc__ or '').strip()}" + (f" ({facts})" if facts else ""))


class BadInputError(AiflowError):
    """What was asked for makes no sense; nothing was changed."""

    reason_code = "INPUT_INVALID"


class NotFoundError(AiflowError):
    """The thing that was named does not exist."""

    reason_code = "REQUEST_NOT_FOUND"


class ConflictError(AiflowError):
    """Somebody else changed or holds the thing meanwhile; nothing was changed."""

    reason_code = "EDIT_CONFLICT"


class EnvironmentProblemError(AiflowError):
    """Something outside aiflow is missing or in the way."""

    reason_code = "IO_ERROR"


class SettingsError(AiflowError):
    """The settings have a mistake; file, key and line are in the context."""

    reason_code = "SETTINGS_INVALID"


class TransitionError(AiflowError):
    """The lifecycle table has no such row; this is a defect of aiflow."""

    reason_code = "TRANSITION_NOT_ALLOWED"


def as_problem(error: OSError, path: object) -> AiflowError:
    """Name an operating system error with a reason code."""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    code = "DISK_FULL" if is_full else "LINK_REFUSED" if error.errno == errno.ELOOP else "IO_ERROR"
    return EnvironmentProblemError(reason_code=code, path=str(path), problem=os.strerror(error.errno or errno.EIO))
