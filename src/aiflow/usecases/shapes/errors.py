"""Errors as plain data (ERR-2): what the API answers, and what people read about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.domain.request import Problem
from aiflow.usecases.shapes.backlog import ENGLISH, describe_problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.errors import AiflowError
    from aiflow.messages import Texts
    from aiflow.messages.advice import Advice


def error_shape(error: AiflowError, texts: Texts) -> dict[str, Any]:
    """An error as the API answers it (ERR-2, D39 §4)."""
    from aiflow.domain.reasons import reason_for

    facts = error_facts(error, texts)
    message = texts.message(error.reason_code, facts)
    return {
        "error": {
            "category": reason_for(error.reason_code).category,
            "reason_code": error.reason_code,
            "message": message.title,
            "detail": message.summary,
            "context": {name: _in_english(value) for name, value in error.context.items()},
            "actions": [advice.typed for advice in actions_of(error, message.actions)],
        }
    }


def _in_english(value: object) -> object:
    """Return a fact as programs read it, the same in every language."""
    from aiflow.domain.queue.store_obstacles import Obstacles
    from aiflow.messages.commands import as_plain
    from aiflow.messages.details import detail_of
    from aiflow.usecases.shapes.store import describe_obstacles

    if isinstance(value, Problem):
        return describe_problem(value, ENGLISH)
    if isinstance(value, Obstacles):
        return describe_obstacles(value, ENGLISH)
    return as_plain(value) if detail_of(value) is None else ENGLISH.say(value)


def actions_of(error: AiflowError, general: tuple[Advice, ...]) -> tuple[Advice, ...]:
    """Return what to do: what the error itself knows to be right here, else the reason's general advice."""
    from aiflow.domain.next_action import ActionKind
    from aiflow.messages.advice import Advice

    known = error.context.get("commands")
    if isinstance(known, (list, tuple)) and known:
        return tuple(Advice((action,)) for action in known)
    tried = error.context.get("typed")
    if not tried:
        return general
    return tuple(advice for each in general if (advice := each.trying(ActionKind(str(tried)))) is not None)


def error_facts(error: AiflowError, texts: Texts) -> dict[str, object]:
    """Return an error's facts with everything put into words that needs it."""
    from aiflow.domain.queue.store_obstacles import Obstacles
    from aiflow.messages.details import detail_of
    from aiflow.usecases.shapes.store import describe_obstacles

    facts: dict[str, object] = {
        name: fact if detail_of(fact) is None else texts.say(fact) for name, fact in error.context.items()
    }
    problem = facts.get("problem")
    if isinstance(problem, Problem):
        facts["problem"] = facts["detail"] = describe_problem(problem, texts)
    elif isinstance(problem, Obstacles):
        facts |= {**problem.facts, "problem": describe_obstacles(problem, texts)}
    mistakes = facts.get("problems")
    if isinstance(mistakes, list):
        facts["detail"] = "\n".join(_mistake(mistake, texts) for mistake in mistakes)
    return facts


def _mistake(mistake: Mapping[str, object], texts: Texts) -> str:
    """Write one mistake in the settings: file, line, key, what is wrong."""
    place = ":".join(str(part) for part in (mistake["file"], mistake["line"]) if part)
    suffix = ".suggest" if mistake.get("suggestion") else ""
    facts = {**mistake, "wanted": texts(f"kind.{mistake['wanted']}")} if "wanted" in mistake else mistake
    words = texts(f"settings_mistake.{mistake['kind']}{suffix}", **facts)
    return f"{place}: {mistake['key']}: {words}" if mistake["key"] else f"{place}: {words}"
