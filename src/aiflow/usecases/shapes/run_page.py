"""One run with everything that a page shows of it (SPEC §11: stage, plan, errors), as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.usecases.shapes.run_summary import stamp
from aiflow.usecases.shapes.runs import run_result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.domain.runs.run import Happening, Run

_COUNTED = ("implementer", "qa", "tests")


def run_page_shape(run: Run, errors: Mapping[str, object] | None, logs: tuple[int, ...]) -> dict[str, Any]:
    """What `run` prints, with D34 §3's fields, the plan, `errors.json` and which logs there are."""
    return {
        **run_result(run),
        "title": run.title,
        "agent": run.agent,
        "current_step_index": run.current_index,
        "attempts": {
            "planning": run.planning_calls,
            "steps": {i: {name: work.calls.get(name, 0) for name in _COUNTED} for i, work in run.steps.items() if i},
        },
        "history": [_line(line) for line in run.history],
        "answers": [{"question": question, "answer": answer} for question, answer in run.answers],
        "plan": [
            {
                "step_id": step.id,
                "title": step.title,
                "instructions": step.instructions,
                "targets": {"paths": list(step.target_paths)},
                "tests": None if step.tests is None else list(step.tests),
            }
            for step in run.plan
        ],
        "errors": dict(errors) if errors is not None else None,
        "logs": list(logs),
    }


def _line(line: Happening) -> dict[str, Any]:
    return {
        "at": stamp(line.at),
        "event": line.event,
        "step_id": line.step_id,
        "reason_code": line.reason_code,
        "note": line.note,
    }
