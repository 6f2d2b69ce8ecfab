"""The two kinds of models: answers, which are not validated while the server works, and bodies."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

# A time, ISO 8601 with an offset.
Instant = Annotated[str, Field(examples=["2026-11-18T07:00:00+00:00"])]
RequestName = Annotated[str, Field(examples=["RQ-20251214-008"])]
RunName = Annotated[str, Field(examples=["RUN-20251214-060102-5e1f0a"])]
StepName = Annotated[str, Field(examples=["S03"])]
Code = Annotated[str, Field(description="A reason code.", examples=["RUN_IN_PROGRESS"])]


class AnswerModel(BaseModel):
    """What is answered: these fields and no others."""

    model_config = ConfigDict(extra="forbid")


class BodyModel(BaseModel):
    """What is taken: these fields and no others, each of its own kind."""

    model_config = ConfigDict(extra="forbid", strict=True)


def body_config(**example: Any) -> ConfigDict:
    """Give a body's settings, with an example of it."""
    return ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [example]})


class PageModel(AnswerModel):
    """A part of a list: how many entries there are in all, and what to give as `after` for the next part."""

    total: int
    next_after: str | int | None
