"""What GitHub's webhook sends, and what it is answered."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from aiflow.api.models.base import AnswerModel


class DeliveryAnswer(AnswerModel):
    """A delivery that was taken."""

    event: str = Field(description="GitHub's name for it; `ping` when the webhook was made.", examples=["issues"])
    request_id: str | None = Field(
        description="The issue that is looked at now; null if it is about none of this repository.", examples=["GH-7"]
    )


DELIVERY: dict[str, Any] = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "description": "As GitHub sends it. aiflow ignores everything else in it.",
                "properties": {
                    "issue": {"type": "object", "description": "aiflow reads only the issue's number."},
                    "repository": {"type": "object", "description": "Its `full_name` must be that of `github.repo`."},
                },
                "examples": [{"action": "labeled", "issue": {"number": 7}, "repository": {"full_name": "owner/name"}}],
            },
        }
    },
}
