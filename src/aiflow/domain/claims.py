"""What a request source answers: a claim that holds or is lost, an end that is shown or dropped, a refusal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiflow.domain.request import RequestStatus


@dataclass(frozen=True, slots=True)
class Claimed:
    """A request shows that this run works on it; `was` is the status it had before.

    `text` is its title and body as they were when it was claimed, if the source read them again.
    """

    was: RequestStatus
    text: tuple[str, str] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Lost:
    """A request is not ours: another run holds it (`holder`), or a person gave it another status meanwhile.

    `refusal` is what else keeps one that is ready. `was` is the status it had before, where the attempt changed it.
    """

    status: RequestStatus
    holder: str | None = None
    refusal: Refusal | None = field(default=None, compare=False)
    was: RequestStatus | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Settled:
    """A request shows what came of a run; `was` and `now` are its status before and after that.

    `pull_url` is the pull request that shows the run's work, where its source opens one.
    """

    was: RequestStatus
    now: RequestStatus
    pull_url: str | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """Nothing was written: a person (its status), another run (`holder`) decides about it now, or it is gone (None)."""

    status: RequestStatus | None
    holder: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a source keeps a request from running, or its run from resuming: a reason code and its facts."""

    reason_code: str
    facts: tuple[tuple[str, str], ...] = ()


# No reason of a failure: a task waits, and nothing is running that would take it.
NO_RUNNER = "NO_RUNNER"


@dataclass(frozen=True, slots=True)
class NotStarted:
    """Why no run of a request could begin: a reason code, or NO_RUNNER.

    `is_blocking` if it is not tried again until a person has decided.
    """

    reason_code: str
    is_blocking: bool = False


@dataclass(frozen=True, slots=True)
class Comment:
    """What a person says about a run, and the words that stand above it; how that is set is the source's business."""

    title: str
    text: str
