"""The JSON document that an agent program of any kind gets on its standard input (AGT-2).

Programs that were written for an older aiflow read it too: keys are added, none is changed or taken away.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.former import former_shape
from aiflow.domain.agents.plan import WHOLE, plan_shape

if TYPE_CHECKING:
    from aiflow.domain.agents.call import AgentCall

PROTOCOL_VERSION = "1.0"


def document(call: AgentCall) -> dict[str, Any]:
    """Write the document of one call."""
    # A reader of a step alone, without the request, must find all of it there.
    plan = (replace(step, instructions=call.brief.body) if step.instructions == WHOLE else step for step in call.plan)
    steps = plan_shape(tuple(plan))
    step_id = call.step.id if call.step else None
    return {
        "version": PROTOCOL_VERSION,
        "role": call.role.value,
        "request": asdict(call.brief) | {"labels": list(call.brief.labels)},
        "run_id": call.run_id,
        "step": next((step for step in steps if step["id"] == step_id), None),
        "planning": {"steps": steps} if steps else None,
        "attempt": call.attempt,
        "feedback": [asdict(told) for told in call.feedback],
        "answers": [{"question": question, "answer": answer} for question, answer in call.answers],
        "former": former_shape(call.former, call.continues, call.former_diff) if call.former else None,
        "tests": dict(call.tests),
        "done": {step_id: asdict(done) for step_id, done in call.done.items()},
        "review": _review(call) if call.role is Role.QA else None,
    }


def _review(call: AgentCall) -> dict[str, Any]:
    """Write what a reviewer needs besides: `git diff HEAD` is the step's change, `git diff BASE` that of all steps."""
    return {
        "summary": call.summary,
        "test_output": call.test_output,
        "is_last": call.is_at_the_end,
        "base": call.began,
        "criteria": [{"number": number, "text": text} for number, text in enumerate(call.criteria, 1)],
    }
