"""What `stage.json` keeps for the report (RUN-19): what each step changed and found, its checks, what each role used.

A file without it is one in which nothing of that is known (RUN-16).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aiflow.domain.agents.judging import Criterion
from aiflow.domain.agents.plan import one_line
from aiflow.domain.agents.usage import Usage
from aiflow.domain.request import RequestId, is_valid_id
from aiflow.domain.runs.follow_ups import FollowUp, FollowUps
from aiflow.domain.runs.step_record import EndedTest, Footprint, Review, StepRecord
from aiflow.domain.runs.worktree import FileChange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.adapters.files.given_fields import GivenFields


def record_shape(record: StepRecord) -> dict[str, Any]:
    """Write what is known of a step's work."""
    changed = record.footprint
    return {
        "changes": changed._asdict() | {"files": [asdict(file) for file in changed.files]},
        "test_results": [test._asdict() for test in record.tests],
        "reviews": [_review_shape(review) for review in record.reviews],
    }


def _review_shape(review: Review) -> dict[str, Any]:
    criteria = [each._asdict() for each in review.criteria]
    return review._asdict() | {"findings": list(review.findings), "criteria": criteria}


def read_record(step: GivenFields) -> StepRecord:
    """Read what is known of a step's work."""
    changed = step.object("changes")
    files = tuple(
        FileChange(file.text("path"), *_amounts(file, "added", "deleted")) for file in changed.objects("files")
    )
    tests = (
        EndedTest(test.text("kind"), test.amount("seconds"), test.maybe("reason_code"), test.number("exit_code"))
        for test in step.objects("test_results")
    )
    reviews = tuple(map(_read_review, step.objects("reviews")))
    return StepRecord(Footprint(files, *_amounts(changed, "more", "added", "deleted")), tuple(tests), reviews)


def _read_review(review: GivenFields) -> Review:
    criteria = (
        Criterion(int(each.amount("number")), each.text("text"), _is_met(each), each.text("note"))
        for each in review.objects("criteria")
    )
    return Review(review.flag("is_passed"), review.texts("findings"), tuple(criteria))


def _is_met(criterion: GivenFields) -> bool | None:
    """Return the verdict on a criterion; anything that is neither yes nor no is no verdict."""
    said = criterion.raw.get("is_met")
    return said if isinstance(said, bool) else None


def follow_ups_shape(found: FollowUps) -> dict[str, Any]:
    """Write what the agents proposed (REQ-10)."""
    return {"follow_ups": [each._asdict() for each in found.kept], "follow_ups_left_out": found.left_out}


def read_follow_ups(given: GivenFields) -> FollowUps:
    """Read what the agents proposed; what has no title cannot become a request."""
    found = (_read_follow_up(each) for each in given.objects("follow_ups"))
    return FollowUps(tuple(each for each in found if each.title), *_amounts(given, "follow_ups_left_out"))


def _read_follow_up(each: GivenFields) -> FollowUp:
    request_id = each.named("request_id")
    known = RequestId(request_id) if request_id is not None and is_valid_id(request_id) else None
    number, step_id = int(each.amount("number")), each.maybe("step_id")
    title = one_line(each.text("title"))
    return FollowUp(number, title, each.text("body"), each.text("role"), step_id, known, each.flag("is_known"))


def usage_shape(usage: Usage) -> dict[str, Any]:
    """Write what was used."""
    return asdict(usage) | {"tokens": usage.tokens}


def read_usage(used: GivenFields) -> Usage:
    """Read what agents used; a version that did not record it yet used nothing that counts."""
    calls, *tokens = _amounts(used, "calls", "input_tokens", "cached_tokens", "output_tokens")
    return Usage(calls, tokens[0], tokens[1], tokens[2], used.amount("cost_usd"), used.amount("seconds"))


def roles_shape(roles: Mapping[str, Usage]) -> dict[str, Any]:
    """Write what each role used."""
    return {role: usage_shape(used) for role, used in roles.items()}


def read_roles(given: GivenFields) -> dict[str, Usage]:
    """Read what each role used."""
    roles = given.object("roles")
    return {role: read_usage(roles.object(role)) for role in roles.raw}


def _amounts(given: GivenFields, *names: str) -> list[int]:
    return [int(given.amount(name)) for name in names]
