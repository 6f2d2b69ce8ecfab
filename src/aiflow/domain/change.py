"""A change of one key of a request (REQ-3): the new value, and what must still be there for it to be made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiflow.domain.request import Value


class _Any(Enum):
    ANY = "any"


ANY = _Any.ANY


@dataclass(frozen=True, slots=True)
class Change:
    """A new value for a key; with `expected`, only if the key still says that (REQ-3)."""

    new: Value
    expected: Value | _Any = ANY
