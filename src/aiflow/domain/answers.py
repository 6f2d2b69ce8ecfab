"""What agents answer (AGT-3): each role's JSON, read into a value or refused with the reason code of its defect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from aiflow.domain.plan import MAX_TEXT, FlawError, PlanStep, read_plan, read_text, whole


class Role(StrEnum):
    """What an agent is asked to be."""

    PLANNER = "planner"
    IMPLEMENTER = "implementer"
    QA = "qa"


@dataclass(frozen=True, slots=True)
class Planned:
    """The planner's plan."""

    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class Implemented:
    """The implementer says it is done."""

    summary: str = ""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The reviewer's verdict."""

    is_passed: bool
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """Any role may ask a person instead (RUN-10)."""

    question: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spoiled:
    """The answer cannot be used; the code says in which way, the detail where."""

    reason_code: str
    detail: str


Answer = Planned | Implemented | Reviewed | Asked | Spoiled


def read_answer(role: Role, data: bytes | None) -> Answer:
    """Read what a role wrote; None is a role that wrote nothing."""
    if data is None or not data.strip():
        return Spoiled("JSON_PARSE_ERROR", "no answer was written")
    try:
        raw = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        return Spoiled("JSON_PARSE_ERROR", "the answer is not UTF-8")
    except (ValueError, RecursionError) as error:
        return Spoiled("JSON_PARSE_ERROR", f"the answer is not JSON: {str(error)[:200]}")
    try:
        return _read_shape(role, raw)
    except FlawError as error:
        return Spoiled("JSON_SCHEMA_INVALID", str(error.flaw))
    except RecursionError:
        return Spoiled("JSON_SCHEMA_INVALID", "the answer is nested too deeply")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _read_shape(role: Role, raw: object) -> Answer:
    if not isinstance(raw, dict):
        raise FlawError("answer", "must be an object")
    if raw.get("status") == "needs_input":
        return Asked(read_text("question", raw.get("question")))
    if role is Role.PLANNER:
        return Planned(read_plan(raw))
    if role is Role.QA:
        return _read_review(raw)
    if raw.get("status") != "done":
        raise FlawError("status", 'must be "done" or "needs_input"')
    summary = raw.get("summary", "")
    if not isinstance(summary, str):
        raise FlawError("summary", "must be a text")
    # It stands in a commit's message, which holds no NUL.
    return Implemented(whole(summary.replace("\0", "").strip())[:MAX_TEXT])


def _read_review(raw: dict[str, object]) -> Reviewed:
    verdict = raw.get("verdict")
    if verdict not in ("pass", "fail"):
        raise FlawError("verdict", 'must be "pass" or "fail"')
    findings = raw.get("findings", [])
    if not isinstance(findings, list):
        raise FlawError("findings", "must be a list")
    told = (item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in findings)
    return Reviewed(verdict == "pass", tuple(map(whole, told)))
