"""Prompts (AGT-1): what an agent is told, put together from the texts in `prompts/` and the call.

Everything that somebody wrote stands between tags that carry a mark of this run, so that no text can pretend to end.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from aiflow.domain.agents.answer_schema import SCHEMAS
from aiflow.domain.agents.answers import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.agents.call import AgentCall
    from aiflow.domain.agents.plan import PlanStep

FOLDER = Path(__file__).parents[3] / "prompts"
MAX_CHANGES = 200_000


def prompt_for(call: AgentCall, *, goes_on: bool = False) -> str:
    """Write the whole prompt of a call, or only what is new to a session that goes on."""
    parts = [*_new(call)] if goes_on else [*_all(call)]
    return "\n\n".join([*parts, _form(call.role)]) + "\n"


def read_first(call: AgentCall, name: str) -> str:
    """Send an agent that does not read them by itself to the project's instructions; empty if there are none."""
    if not os.path.exists(os.path.join(call.cwd, name)):
        return ""
    return f"\nThe project's own instructions for agents are in `{name}`. Read them first, and follow them.\n"


def mark_of(call: AgentCall) -> str:
    """Return the mark of this run's tags; nobody who wrote a request could know it."""
    return hashlib.sha256(call.run_id.encode()).hexdigest()[:8]


def _all(call: AgentCall) -> Iterator[str]:
    yield _text(call, "head")
    yield _text(call, call.role.value)
    yield _data(call, "request", f"{call.brief.title}\n\n{call.brief.body}".strip(), id=call.brief.id)
    if call.plan and call.role is not Role.PLANNER:
        yield "# The plan\n\n" + _data(call, "plan", "\n".join(f"{step.id} {step.title}" for step in call.plan))
    if call.step is not None:
        yield "# The step\n\n" + _data(call, "step", _step(call.step), id=call.step.id)
    yield from _told(call)
    if call.role is Role.QA:
        yield from _changes(call)


def _new(call: AgentCall) -> Iterator[str]:
    yield _text(call, "again")
    yield from _told(call)
    if call.role is Role.QA:
        yield from _changes(call)


def _told(call: AgentCall) -> Iterator[str]:
    """Tell what failed before, and what a person answered."""
    if call.answers:
        said = (f"Question: {question}\nAnswer: {answer}" for question, answer in call.answers)
        yield "# A person's answers\n\nFollow them.\n\n" + _data(call, "answers", "\n\n".join(said))
    if call.feedback:
        failed = ("\n".join(filter(None, (f"{one.reason_code}: {one.summary}", one.detail))) for one in call.feedback)
        lead = "What went wrong before, or was asked for since; oldest first. Mend it."
        yield f"# Feedback\n\n{lead}\n\n" + _data(call, "feedback", "\n\n".join(failed))


def _changes(call: AgentCall) -> Iterator[str]:
    diff = call.changes()
    if len(diff) > MAX_CHANGES:
        diff = f"{diff[:MAX_CHANGES]}\n[cut: the diff is longer; read the files]"
    yield "# The change\n\n" + _data(call, "diff", diff or "(nothing was changed)")


def _text(call: AgentCall, name: str) -> str:
    """Fill one of the texts in."""
    files, lines = call.step_limits
    tests = ", ".join(f"{kind}: `{command}`" for kind, command in call.tests.items()) or "none are set up"
    facts = {
        "role": call.role.value,
        "mark": mark_of(call),
        "step_id": call.step.id if call.step else "",
        "step_files": str(files),
        "step_lines": str(lines),
        "tests": tests,
        "requests_dir": call.requests_dir,
    }
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()
    for key, value in facts.items():
        text = text.replace(f"{{{key}}}", value)
    return text


def _data(call: AgentCall, kind: str, text: str, **attributes: str) -> str:
    """Put somebody's text between tags; our own mark inside it would be no accident."""
    mark = mark_of(call)
    more = "".join(f" {name}={json.dumps(value, ensure_ascii=False)}" for name, value in attributes.items())
    body = re.sub(mark, "…", text, flags=re.IGNORECASE)
    return f'<data-{mark} kind="{kind}"{more}>\n{body}\n</data-{mark}>'


def _step(step: PlanStep) -> str:
    paths = "\n".join(f"- {path}" for path in step.target_paths) or "- (anywhere)"
    return f"{step.id} {step.title}\n\n{step.instructions}\n\nPaths it is about:\n{paths}"


def _form(role: Role) -> str:
    schema = json.dumps(SCHEMAS[role], ensure_ascii=False)
    return (
        "# Your answer\n\nWhen everything is done, answer with one JSON object by this schema, and nothing else "
        f"(no text around it):\n\n```json\n{schema}\n```"
    )
