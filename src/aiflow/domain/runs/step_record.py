"""What a report shows for a step besides its summary (RUN-19): what it changed, how its tests and reviews ended.

Recorded as it happens, and saved with whatever happens next: nothing here needs git again, or a write of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from aiflow.domain.agents.judging import Criterion
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.worktree import Changes, FileChange

# So many files of a step are named, the rest is counted.
MOST_FILES = 100


class Footprint(NamedTuple):
    """What a step changed: its files, how many more there are, and the lines of all of them."""

    files: tuple[FileChange, ...] = ()
    more: int = 0
    added: int = 0
    deleted: int = 0

    @property
    def total(self) -> int:
        """How many files were changed."""
        return len(self.files) + self.more


class EndedTest(NamedTuple):
    """How one kind of test ended, and how long that took; without a reason code it passed."""

    kind: str
    seconds: float = 0.0
    reason_code: str | None = None
    exit_code: int | None = None

    @property
    def has_passed(self) -> bool:
        """Whether it passed."""
        return self.reason_code is None


class Review(NamedTuple):
    """What a reviewer said; the last one judges the request's acceptance criteria too."""

    is_passed: bool
    findings: tuple[str, ...] = ()
    criteria: tuple[Criterion, ...] = ()


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What is known of a step's work: the tests as they ended last, every review."""

    footprint: Footprint = field(default_factory=Footprint)
    tests: tuple[EndedTest, ...] = ()
    reviews: tuple[Review, ...] = ()


def footprint_of(changes: Changes) -> Footprint:
    """Sum up what a step changed."""
    files = changes.files
    added, deleted = (sum(getattr(file, name) for file in files) for name in ("added", "deleted"))
    return Footprint(files[:MOST_FILES], max(0, len(files) - MOST_FILES), added, deleted)


def noted_test(run: Run, result: EndedTest) -> Run:
    """A kind of test has ended: it counts in place of how that ended before."""
    others = tuple(each for each in run.work.record.tests if each.kind != result.kind)
    return recorded(run, tests=(*others, result))


def judged(run: Run, review: Review) -> Run:
    """A reviewer has given a verdict."""
    return recorded(run, reviews=(*run.work.record.reviews, review))


def recorded(run: Run, **fields: object) -> Run:
    """Record something of the current step."""
    work = replace(run.work, record=replace(run.work.record, **fields))  # type: ignore[arg-type]
    return replace(run, steps={**run.steps, run.current_step_id or "": work})
