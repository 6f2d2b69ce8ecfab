"""Why an issue stands where it does, as the facts of a comment (ISS-5): the code, and the issue's own word for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.domain.reasons import CATALOGUE, BlockedReason

if TYPE_CHECKING:
    from aiflow.domain.issues.wishes import LabelWish


def cause_facts(code: str | None) -> dict[str, Any]:
    """Return a reason as facts: the code, and the issue's word for it."""
    row = CATALOGUE.get(code or "")
    blocked = {"blocked_reason": row.blocked_reason.value} if row and row.blocked_reason else {}
    return {"reason_code": code, **blocked} if code else {}


def blocked_facts(code: str) -> dict[str, Any]:
    """Return a reason that blocks an issue as facts; one that has no word there is the environment's."""
    return {"blocked_reason": BlockedReason.ENVIRONMENT_FAILURE.value, **cause_facts(code)}


def no_run_key(wish: LabelWish) -> str:
    """Return the key of the comment that blocks an issue because no run of it could be made (ISS-3)."""
    return f"no-run:{wish.id}"
