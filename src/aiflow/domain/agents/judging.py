"""A request's acceptance criteria as its last reviewer judges them (RUN-18, AGT-3), and what a verdict is worth then.

Pure. What an agent writes of a criterion that cannot be read is as if it had not judged it: it never spoils the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.agents.plan import one_line, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiflow.domain.agents.answers import Reviewed

MAX_NOTE = 1_000


class Judgment(NamedTuple):
    """A reviewer's verdict on one criterion, by its number."""

    number: int
    is_met: bool
    note: str = ""


class Criterion(NamedTuple):
    """A criterion with its verdict; None is not judged."""

    number: int
    text: str
    is_met: bool | None = None
    note: str = ""

    @property
    def named(self) -> str:
        """Its number and its words."""
        return f"{self.number}. {self.text}"


class ReviewOutcome(NamedTuple):
    """What a review comes to; with `unjudged` criteria it is no verdict yet, and the reviewer is asked once more."""

    is_passed: bool
    findings: tuple[str, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    unjudged: tuple[Criterion, ...] = ()


def read_judgments(raw: object) -> tuple[Judgment, ...]:
    """Read `criteria`: a list of numbers with `met` and a note, as far as it is one."""
    return tuple(filter(None, map(_read_judgment, raw))) if isinstance(raw, list) else ()


def _read_judgment(raw: object) -> Judgment | None:
    if not isinstance(raw, dict):
        return None
    number, is_met, note = raw.get("number"), raw.get("met"), raw.get("note")
    if isinstance(number, bool) or not isinstance(number, int) or not isinstance(is_met, bool):
        return None
    return Judgment(number, is_met, one_line(whole(note))[:MAX_NOTE] if isinstance(note, str) else "")


def verdict_on(review: Reviewed, criteria: Sequence[str], *, may_ask: bool) -> ReviewOutcome:
    """Hold a review against the criteria that it was to judge (RUN-18).

    One that is not met is a finding, and nothing passes with it. Where a criterion was skipped, nothing passes either;
    but a program that knows nothing of `criteria` is believed, once it was asked again for them, or cannot be.
    """
    findings = review.findings
    judged = tuple(_judged(number, text, review.judgments) for number, text in enumerate(criteria, 1))
    unmet = tuple(_not_met(each) for each in judged if each.is_met is False)
    if unmet or not review.is_passed:
        return ReviewOutcome(is_passed=False, findings=(*findings, *unmet), criteria=judged)
    skipped = tuple(each for each in judged if each.is_met is None)
    has_judged = len(skipped) < len(judged)
    if skipped and (has_judged or may_ask):
        return ReviewOutcome(is_passed=False, findings=findings, criteria=judged, unjudged=skipped)
    return ReviewOutcome(is_passed=True, findings=findings, criteria=judged)


def _judged(number: int, text: str, judgments: Sequence[Judgment]) -> Criterion:
    """Find the verdict on a criterion; of two that differ, "not met" counts."""
    said = sorted((each for each in judgments if each.number == number), key=lambda each: each.is_met)
    return Criterion(number, text, said[0].is_met, said[0].note) if said else Criterion(number, text)


def _not_met(criterion: Criterion) -> str:
    note = f" ({criterion.note})" if criterion.note else ""
    return f"Acceptance criterion not met: {criterion.named}{note}"


def named(criteria: Sequence[Criterion]) -> str:
    """Name criteria in one line."""
    return "; ".join(each.named for each in criteria)
