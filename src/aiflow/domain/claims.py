"""What a request source answers: a claim that holds or is lost, an end that is shown or dropped, a refusal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiflow.domain.request import RequestStatus


@dataclass(frozen=True, slots=True)
class Claimed:
    """A request shows that this run works on it; `was` is the status it had before."""

    was: RequestStatus


@dataclass(frozen=True, slots=True)
class Lost:
    """A request is not ours: another run holds it (`holder`), or a person gave it another status meanwhile."""

    status: RequestStatus
    holder: str | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """A request shows what came of a run; `was` and `now` are its status before and behind that."""

    was: RequestStatus
    now: RequestStatus


@dataclass(frozen=True, slots=True)
class Dropped:
    """Nothing was written: a person (its status), another run (`holder`) decides about it now, or it is gone (None)."""

    status: RequestStatus | None
    holder: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a source keeps a request, or its stopped run, from going on: a reason code, and facts for its words."""

    reason_code: str
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Comment:
    """What a person says about a run, and the words that stand above it; how that is set is the source's business."""

    title: str
    text: str
