"""What a clean did, or would do, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiflow.domain.clean.cleaning import CleanRules, Item
    from aiflow.usecases.clean.clean_up import Cleaned, CleanFailure


def cleaned_shape(cleaned: Cleaned, rules: CleanRules, *, is_dry_run: bool) -> dict[str, Any]:
    """`clean --json`; of a dry run `removed` is what would go."""
    return {
        "is_dry_run": is_dry_run,
        "after_days": rules.after_days,
        "removed": [item_shape(item) for item in cleaned.removed],
        "kept": [item_shape(item) for item in cleaned.kept],
        "failed": [_failure_shape(failure) for failure in cleaned.failed],
        "freed_bytes": sum(item.size_bytes or 0 for item in cleaned.removed),
    }


def item_shape(item: Item) -> dict[str, Any]:
    """One thing that goes or stays."""
    return {
        "kind": item.kind,
        "name": item.name,
        "request_id": item.request_id,
        "run_id": item.run_id,
        "why": item.why,
        "commit": item.commit,
        "bytes": item.size_bytes,
    }


def _failure_shape(failure: CleanFailure) -> dict[str, Any]:
    return {**item_shape(failure.item), "reason_code": failure.error.reason_code, "problem": failure.problem}
