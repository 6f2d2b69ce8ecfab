"""The JSON schemas of the roles' answers (AGT-3), for programs that can be held to one.

What `answers.read_answer` accepts in the narrowest form every program takes: one object, every key required, nothing
besides; where a key does not apply it is empty.
"""

from __future__ import annotations

from typing import Any

from aiflow.domain.agents.answers import Role

_TEXT = {"type": "string"}
_QUESTION = {"type": "string", "description": "What a person has to decide; empty unless status is needs_input."}


def _texts(description: str) -> dict[str, Any]:
    return {"type": "array", "items": _TEXT, "description": description}


_CHOICES = _texts("Answers to choose from, where there are a few likely ones; else empty.")


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _status(usual: str) -> dict[str, Any]:
    return {"type": "string", "enum": [usual, "needs_input"]}


_STEP = _object(
    id={"type": "string", "description": "S01, S02, … in order."},
    title={"type": "string", "description": "One line, as the subject of a commit message."},
    instructions={"type": "string", "description": "What to change, where, and how one can tell that it is right."},
    targets=_object(paths=_texts("Files or folders the step may touch.")),
)

_FOLLOW_UPS = {
    "type": "array",
    "items": _object(title=_TEXT, body=_TEXT),
    "description": "Further work worth a request of its own, most often none.",
}

_CRITERIA = {
    "type": "array",
    "items": _object(number={"type": "integer"}, met={"type": "boolean"}, note=_TEXT),
    "description": "Each acceptance criterion that you were given, by its number; empty if you were given none.",
}

SCHEMAS: dict[Role, dict[str, Any]] = {
    Role.PLANNER: _object(
        status=_status("planned"),
        question=_QUESTION,
        choices=_CHOICES,
        steps={"type": "array", "items": _STEP, "description": "The plan; empty if status is needs_input."},
    ),
    Role.IMPLEMENTER: _object(
        status=_status("done"),
        question=_QUESTION,
        choices=_CHOICES,
        summary={"type": "string", "description": "What was changed and why; empty if status is needs_input."},
        follow_ups=_FOLLOW_UPS,
    ),
    Role.QA: _object(
        status=_status("reviewed"),
        question=_QUESTION,
        choices=_CHOICES,
        verdict={"type": "string", "enum": ["pass", "fail"]},
        findings=_texts("What must be fixed, one finding each; empty if the verdict is pass."),
        criteria=_CRITERIA,
        follow_ups=_FOLLOW_UPS,
    ),
}
