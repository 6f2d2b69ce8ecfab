"""Errors (ERR-2, D39 §4), and which of them a route can answer: drawn from the catalogue of reason codes."""

from __future__ import annotations

import functools
from typing import Any

from pydantic import Field

from aiflow.api.models.base import AnswerModel, Code
from aiflow.domain.reasons import CATALOGUE, Category, reason_for
from aiflow.errors import AiflowError
from aiflow.messages import Texts
from aiflow.usecases.shapes.errors import error_shape

ENGLISH = Texts("en")
REF = "#/components/schemas/{model}"
# What the guard and the machine can answer to every call.
ALWAYS = ("AUTH_REQUIRED", "ORIGIN_REFUSED", "HOST_REFUSED", "INPUT_INVALID", "SETTINGS_INVALID")
MACHINE = ("IO_ERROR", "LINK_REFUSED", "PROJECT_NOT_FOUND", "REQUESTS_DIR_MISSING")
WRITING = ("DISK_FULL",)
WITH_BODY = ("BODY_TOO_LARGE", "BODY_TOO_SLOW", "CONTENT_TYPE_REFUSED")
# What a start can be refused with: the barriers of selection, the doctor's findings, who holds the lock.
STARTING = (
    *("REQUEST_NOT_FOUND", "REQUEST_INVALID", "DUPLICATE_ID", "NOT_READY", "DEPENDS_NOT_DONE", "DEPENDS_NOT_FOUND"),
    *("DEPENDS_CYCLE", "LATEST_RUN_NEEDS_INPUT", "REQUEST_LOCKED", "RUN_IN_PROGRESS", "QUEUE_IN_PROGRESS"),
    *("DOCTOR_FAILED", "WORKTREE_DIRTY", "START_UNCONFIRMED", "BASE_BRANCH_MISSING", "NOT_A_REPOSITORY"),
)
# What writing on an issue can be refused with.
ON_ISSUES = ("GITHUB_UNREACHABLE", "GITHUB_UNKNOWN", "GITHUB_RATE_LIMITED", "GITHUB_RIGHTS", "GITHUB_NOT_SIGNED_IN")
RESUMING = (
    *STARTING,
    *ON_ISSUES,
    *("RUN_NOT_FOUND", "RUN_NOT_RESUMABLE", "REPLAN_REQUIRED", "RETRY_LIMIT_EXCEEDED", "NEEDS_CLARIFICATION"),
    *("RUN_FROM_NEWER_VERSION", "RUN_LOST", "ISSUE_RETRY_ONLY"),
)
STORE = (
    *("STORE_UNREACHABLE", "STORE_NOT_INSTALLED", "STORE_THROTTLED", "STORE_REFUSED", "STORE_CREDENTIALS_MISSING"),
    *("STORE_TABLE_MISMATCH", "NAMESPACE_INVALID"),
)


class ErrorModel(AnswerModel):
    """Why a call was refused, and what to do."""

    category: Category
    reason_code: Code
    message: str = Field(description="In the language of the caller.", examples=["同一RequestのRunが実行中です"])
    detail: str = Field(description="More of it, in the language of the caller.")
    context: dict[str, Any] = Field(
        description="The facts. A conflict names its holder: `request_id`, `run_id`, `url` (page) and `api_url`.",
        examples=[{"request_id": "RQ-20251214-008", "run_id": "RUN-20251214-060102-5e1f0a"}],
    )
    actions: list[str] = Field(description="What to do, in the language of the caller; commands as they are typed.")


class ErrorAnswer(AnswerModel):
    """A refusal."""

    error: ErrorModel


def errors(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Document the refusals of a route, by their HTTP status, with an example of the first of each."""
    found: dict[int | str, dict[str, Any]] = {}
    for code in dict.fromkeys(codes):
        assert code in CATALOGUE, code
        status = _status(code)
        if status not in found:
            refusal = {"example": _example(code), "schema": {"$ref": REF.format(model="ErrorAnswer")}}
            found[status] = {"description": code, "content": {"application/json": refusal}}
        else:
            found[status]["description"] += f", {code}"
    return found


def error_schemas() -> dict[str, Any]:
    """Return the schemas of a refusal: as a route's model it would be made anew for each status of each route."""
    schema = ErrorAnswer.model_json_schema(ref_template=REF, mode="serialization")
    return {**schema.pop("$defs"), "ErrorAnswer": schema}


def _status(code: str) -> int:
    status = reason_for(code).http_status
    return status if status >= 400 else 409


@functools.cache
def _example(code: str) -> dict[str, Any]:
    ids = {"request_id": "RQ-20251214-008", "run_id": "RUN-20251214-060102-5e1f0a"}
    shape = error_shape(AiflowError(reason_code=code, **{**_PLACES, **ids}), ENGLISH)
    page = f"/requests/{ids['request_id']}/runs/{ids['run_id']}"
    links = {"url": page, "api_url": f"/api{page}"}
    shape["error"]["context"] = {**ids, **links} if code == "RUN_IN_PROGRESS" else {}
    return shape


# What an example says where a fact of its own is needed.
_PLACES: dict[str, object] = dict.fromkeys(
    ("path", "problem", "detail", "key", "found", "name", "limit", "method", "endpoint", "namespace", "task_id",
     "status", "session_id", "url", "port", "ids", "dependency", "question", "branch", "reason", "value", "table"),
    "…",
)  # fmt: skip
