"""Shapes of what is said about issues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.domain.issues.requests import request_id_of

if TYPE_CHECKING:
    from aiflow.domain.issues.repository import LookedAfter


def looked_shape(looked: LookedAfter) -> dict[str, Any]:
    """Shape what one look at the issues came to."""
    names = {
        "changed": looked.changed,
        "gone": looked.gone,
        "tended": looked.tended,
    }
    return {"is_full": looked.is_full, **{name: [request_id_of(n) for n in them] for name, them in names.items()}}
