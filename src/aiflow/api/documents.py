"""What the OpenAPI document says about a route: its answers, every refusal it can give, its headers (API-2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Header, Path, Query
from starlette.requests import Request as HttpRequest

from aiflow.api.models.errors import ALWAYS, MACHINE, WITH_BODY, WRITING, error_schemas, errors
from aiflow.errors import BadInputError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.routing import APIRoute

# What may be given several times; everything else has one value.
LISTS = frozenset({"status", "priority", "label", "kind", "actor", "reason_code"})
PAGE = 100
MOST_A_PAGE = 500
MOST_NAME = 200

RequestPath = Annotated[str, Path(min_length=1, max_length=MOST_NAME, examples=["RQ-20251214-008"])]
RunPath = Annotated[str, Path(min_length=1, max_length=MOST_NAME, examples=["RUN-20251214-060102-5e1f0a"])]
Limit = Annotated[int, Query(ge=1, le=MOST_A_PAGE)]
Place = Annotated[int, Query(ge=0, le=10**9)]
Cursor = Annotated[str | None, Query(min_length=1, max_length=400)]
JournalCursor = Annotated[str | None, Query(pattern=r"^[0-9]{1,8}:[0-9]{1,12}$", examples=["1:2048"])]
Namespace = Annotated[str | None, Query(min_length=1, max_length=MOST_NAME)]
IfMatch = Annotated[
    str | None, Header(description="The ETag that you read: EDIT_CONFLICT if the request has changed since.")
]

_ETAG = {"ETag": {"schema": {"type": "string"}, "description": "Identifies this version of the answer."}}
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "The ETag of the caller's answer: 304 if nothing has changed.",
}
_LOCATION = {"Location": {"schema": {"type": "string"}, "description": "Its address in the API."}}


def said_once(http: HttpRequest) -> None:
    """Refuse a parameter that is given several times and has one value: it is unknown which one is meant."""
    names = [name for name, _ in http.query_params.multi_items()]
    repeated = next((name for name in names if names.count(name) > 1 and name not in LISTS), None)
    if repeated is not None:
        raise BadInputError(detail=words("api.repeated", name=repeated))


def reads(model: Any, *codes: str, is_open: bool = False, text: str | None = None) -> dict[str, Any]:
    """Document a question; an open one needs no sign-in, `text` is an example of it as plain text."""
    responses = errors(*ALWAYS, *MACHINE, *codes)
    responses[200] = {"headers": _ETAG} | ({"content": plain_text(text)} if text is not None else {})
    responses[304] = {"description": "The caller already has this answer."}
    extra = {"parameters": [_IF_NONE_MATCH], **_access(is_open=is_open)}
    return {"response_model": model, "responses": responses, "openapi_extra": extra}


def plain_text(example: str) -> dict[str, Any]:
    """Document an answer that is plain text."""
    return {"text/plain": {"schema": {"type": "string"}, "example": example}}


def changes(
    model: Any, *codes: str, status: int = 200, more: dict[int, Any] | None = None, is_open: bool = False
) -> dict[str, Any]:
    """Document a call that changes something; `more` are further answers that are no refusals."""
    # A body is refused for its kind and size even where a route takes none.
    responses = errors(*ALWAYS, *MACHINE, *WRITING, *WITH_BODY, *codes)
    for each, its_model in {status: None, **(more or {})}.items():
        documented = {} if its_model is None else {"model": its_model}  # that of the status itself is the route's own
        responses[each] = documented | ({"headers": _LOCATION} if each in (201, 202) else {})
    extra = _access(is_open=is_open)
    return {"response_model": model, "status_code": status, "responses": responses, "openapi_extra": extra}


def _access(*, is_open: bool) -> dict[str, Any]:
    return {"security": []} if is_open else {}


def operation_id(route: APIRoute) -> str:
    """Name an operation by its room and what it does."""
    room = str(route.tags[0]) if route.tags else "page"
    return f"{room}_{route.name.strip('_')}"


def describe_access(app: FastAPI) -> None:
    """Add to the document what a refusal is, and who may call: programs with the token, pages with a session."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        document = plain()
        parts = document["components"]
        parts["schemas"] = dict(sorted({**parts["schemas"], **error_schemas()}.items()))
        parts["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "The user's token, for programs."},
            "session": {"type": "apiKey", "in": "cookie", "name": "aiflow_4310", "description": "A signed-in browser."},
        }
        document["security"] = [{"token": []}, {"session": []}]
        return document

    app.openapi = described  # type: ignore[method-assign]
