"""The API reference: every route of the OpenAPI document, room by room, with what it takes and answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from aiflow.api.app import document
from aiflow.api.models.errors import ALWAYS, MACHINE, WITH_BODY, WRITING
from aiflow.domain.issues.webhook import SIGNATURE_HEADER
from page_parts import code, prose, table

INTRO = """
`aiflow up` serves this API beside the page. `/openapi.json` is the whole document, with every field; this page is the
short form of it. Fields are those of [`--json`](json.md).

- A program sends the user's token: `Authorization: Bearer TOKEN`; `aiflow up --json` names its file. A browser signs in
  with a one-time code and has a session.
- Bodies are JSON (`Content-Type: application/json`), at most 1 MB. A field that is not known is refused.
- An answer has an `ETag`; with `If-None-Match` you get 304 if nothing has changed. A change of a request takes
  `If-Match`: EDIT_CONFLICT if somebody was faster.
- A list is cut into pages: `limit`, and `after` with the `next_after` of the page before.
- A start is answered with 202 and `Location` once the run exists, or with its refusal.
- An error is `{"error": {category, reason_code, message, detail, context, actions}}`, in the language of
  `Accept-Language` (see [reason codes](reason-codes.md)). Every call can be answered with AUTH_REQUIRED (401),
  ORIGIN_REFUSED (403), HOST_REFUSED (421), INPUT_INVALID or SETTINGS_INVALID (422) and IO_ERROR (503), every order also
  with BODY_TOO_SLOW (408), BODY_TOO_LARGE (413), CONTENT_TYPE_REFUSED (415) and DISK_FULL (507).
"""
ROOMS = {
    "server": "The server and the checkout",
    "requests": "Requests",
    "runs": "Runs",
    "queue": "Selection and auto-run",
    "tasks": "Tasks and runners",
    "doctor": "Doctor",
    "locks": "Locks",
    "activity": "Activity",
    "sessions": "Sessions",
    "github": "GitHub",
}
# What every call can be answered with is said once.
EVERYWHERE = frozenset({*ALWAYS, *MACHINE, *WRITING, *WITH_BODY})
IDS = {"request_id": "RQ-7", "run_id": "RUN-20251214-060102-5e1f0a", "number": "1", "task_id": "T-1", "name": "RQ-7"}
METHODS = ("get", "post", "patch", "delete")


def api_sections() -> Iterator[str]:
    """Write a section per room."""
    told = document()
    for room, title in ROOMS.items():
        yield f"## {title}\n"
        for path, operations in told["paths"].items():
            for method in METHODS:
                operation = operations.get(method)
                if operation is not None and operation["tags"] == [room]:
                    yield _operation(f"{method.upper()} {path}", operation, told["components"]["schemas"])
    assert {each["tags"][0] for path in told["paths"].values() for each in path.values()} == set(ROOMS)


def _operation(title: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """Write one route: what it does, its parameters and body, what it answers, and a call."""
    lines = [f"### {title}\n", prose(operation["description"]), ""]
    query = [code(each["name"]) for each in operation.get("parameters", ()) if each["in"] == "query"]
    if query:
        lines += [f"Query: {', '.join(query)}.", ""]
    body = operation.get("requestBody")
    schema = _resolved(body["content"]["application/json"]["schema"], schemas) if body else None
    if schema is not None:
        fields = schema["properties"].items()
        rows = [[code(name), _kind(each, schemas), prose(each.get("description", ""))] for name, each in fields]
        lines += [table(["field", "kind", ""], rows)]
    lines += [table(["answer", ""], [*_answers(operation, schemas)]), _call(title, schema, operation)]
    return "\n".join(lines)


def _call(title: str, schema: Mapping[str, Any] | None, operation: Mapping[str, Any]) -> str:
    """Write how the route is called from a shell."""
    method, _, path = title.partition(" ")
    is_signed = any(each["name"] == SIGNATURE_HEADER for each in operation.get("parameters", ()))
    key = f"{SIGNATURE_HEADER}: sha256=$SIGNATURE" if is_signed else "Authorization: Bearer $TOKEN"
    words = ["curl", f'-H "{key}"', *([f"-X {method}"] if method != "GET" else [])]
    if schema is not None:
        words.append(f"--json '{json.dumps(schema['examples'][0])}'")
    filled = re.sub(r"\{(\w+)\}", lambda found: IDS.get(found[1], found[1].upper()), path)
    return f"```sh\n{' '.join(words)} $URL{filled}\n```\n"


def _answers(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[list[str]]:
    for status, told in sorted(operation["responses"].items()):
        if status == "304":
            continue
        if status.startswith("2"):
            answer = told["content"].get("application/json")  # a stream has none, and says what it is
            yield [status, _fields(answer["schema"], schemas) if answer else told["description"]]
            continue
        codes = [each for each in told["description"].split(", ") if each not in EVERYWHERE]
        if codes:
            yield [status, ", ".join(codes)]


def _fields(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """Name the fields of an answer; those of the parts of a list behind it."""
    choices = schema.get("anyOf", [schema])
    return " or ".join(_fields_of(_resolved(each, schemas), schemas) for each in choices)


def _fields_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    names = []
    for name, each in schema.get("properties", {}).items():
        items = _resolved(each.get("items", {}), schemas) if each.get("type") == "array" else {}
        inner = ", ".join(items.get("properties", ()))
        names.append(f"{name}: [{{{inner}}}]" if inner else name)
    return code("{" + ", ".join(names) + "}")


def _kind(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """Say in a word or two what a field is."""
    choices = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    kind = _resolved(choices[0], schemas)
    default = f", default {code(json.dumps(schema['default']))}" if schema.get("default") not in (None, "", []) else ""
    if "enum" in kind:
        return ", ".join(map(code, kind["enum"])) + default
    if kind.get("type") == "array":
        items = _resolved(kind["items"], schemas)
        inner = code("{" + ", ".join(items["properties"]) + "}") if "properties" in items else items.get("type", "")
        return f"list of {inner}{default}"
    return f"{kind.get('type', 'object')}{default}"


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    found = choices[0] if choices else schema
    name = found.get("$ref", "").rpartition("/")[2]
    resolved: Mapping[str, Any] = schemas[name] if name else found
    return resolved
