"""What agents answer (AGT-3): each role's JSON, read into a value or refused with the reason code of its defect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from aiflow.domain.agents.judging import Judgment, read_judgments
from aiflow.domain.agents.plain_text import plain
from aiflow.domain.agents.plan import MAX_TEXT, FlawError, PlanStep, read_plan, read_text, read_texts, whole
from aiflow.domain.agents.proposals import Proposal, read_proposals
from aiflow.domain.details import Detail, detail

# A question that brings more answers than that, or longer ones, is not chosen from.
MAX_CHOICES, MAX_CHOICE = 9, 200


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
    proposals: tuple[Proposal, ...] = ()


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The reviewer's verdict, and its judgement of the acceptance criteria."""

    is_passed: bool
    findings: tuple[str, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    judgments: tuple[Judgment, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """Any role may ask a person instead (RUN-10)."""

    question: str
    choices: tuple[str, ...] = ()
    proposals: tuple[Proposal, ...] = ()


@dataclass(frozen=True, slots=True)
class Spoiled:
    """The answer cannot be used; the code says in which way, the detail where."""

    reason_code: str
    detail: Detail


Answer = Planned | Implemented | Reviewed | Question | Spoiled


def read_answer(role: Role, data: bytes | None) -> Answer:
    """Read what a role wrote; None is a role that wrote nothing."""
    if data is None or not data.strip():
        return Spoiled("JSON_PARSE_ERROR", detail("answer.none"))
    try:
        raw = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        return Spoiled("JSON_PARSE_ERROR", detail("answer.not_utf8"))
    except (ValueError, RecursionError) as error:
        return Spoiled("JSON_PARSE_ERROR", detail("answer.not_json", problem=str(error)[:200]))
    try:
        return _read_shape(role, _plain(raw))
    except FlawError as error:
        return Spoiled("JSON_SCHEMA_INVALID", error.flaw)
    except RecursionError:
        return Spoiled("JSON_SCHEMA_INVALID", detail("answer.too_deep"))


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _plain(raw: object) -> object:
    """Take out what a terminal obeys: these texts stand in commits, reports and comments (SEC)."""
    if isinstance(raw, str):
        return plain(raw)
    if isinstance(raw, list):
        return [_plain(each) for each in raw]
    return {name: _plain(value) for name, value in raw.items()} if isinstance(raw, dict) else raw


def _read_shape(role: Role, raw: object) -> Answer:
    if not isinstance(raw, dict):
        raise FlawError("answer", "object")
    found = read_proposals(raw.get("follow_ups", [])) if role is not Role.PLANNER else ()
    if raw.get("status") == "needs_input":
        return Question(read_text("question", raw.get("question")), _read_choices(raw.get("choices", [])), found)
    if role is Role.PLANNER:
        return Planned(read_plan(raw))
    if role is Role.QA:
        return _read_review(raw, found)
    if raw.get("status") != "done":
        raise FlawError("status", "status")
    summary = raw.get("summary", "")
    if not isinstance(summary, str):
        raise FlawError("summary", "text")
    # It goes into a commit's message, which can contain no NUL.
    return Implemented(whole(summary.replace("\0", "").strip())[:MAX_TEXT], found)


def _read_choices(raw: object) -> tuple[str, ...]:
    """Read what a question can be answered with: each once, and no more than a person looks through."""
    told = (" ".join(choice.split())[:MAX_CHOICE] for choice in read_texts("choices", raw))
    return tuple(dict.fromkeys(filter(None, told)))[:MAX_CHOICES]


def _read_review(raw: dict[str, object], found: tuple[Proposal, ...]) -> Reviewed:
    verdict = raw.get("verdict")
    if verdict not in ("pass", "fail"):
        raise FlawError("verdict", "verdict")
    findings = raw.get("findings", [])
    if not isinstance(findings, list):
        raise FlawError("findings", "list")
    told = (item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in findings)
    return Reviewed(verdict == "pass", tuple(map(whole, told)), found, read_judgments(raw.get("criteria")))
