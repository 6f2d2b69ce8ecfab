"""Writing `stage.json` over what another version wrote (RUN-16): what this one does not know stays as it was."""

from __future__ import annotations

from typing import Any

# Two entries with different names are different things: nothing of the one belongs to the other.
_NAMES = ("id", "reason_code", "task_id", "run_id")


def kept(raw: Any, before: Any, after: Any) -> Any:
    """Lay what changed over what was written: `before` is how `raw` was understood, `after` what it is now.

    Unknown fields stay, and so do values that were not understood, as long as nothing here has changed them.
    """
    if raw == before:  # mostly: all of it was understood
        return after
    if isinstance(raw, dict) and isinstance(before, dict) and isinstance(after, dict) and _is_same(before, after):
        known = {
            name: kept(raw[name], before[name], value) if name in raw and name in before else value
            for name, value in after.items()
        }
        return known | {name: value for name, value in raw.items() if name not in before and name not in after}
    if isinstance(raw, list) and isinstance(before, list) and isinstance(after, list) and len(raw) == len(before):
        return [*map(_kept_entry, raw, before, after), *after[len(before) :]]
    return raw if after == before else after


def _kept_entry(raw: Any, before: Any, after: Any) -> Any:
    """An entry that is another one now takes nothing over; a step is known by its id."""
    is_same = after == before or (isinstance(after, dict) and "id" in after)
    return kept(raw, before, after) if is_same else after


def _is_same(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return all(before.get(name) == after.get(name) for name in _NAMES)
