"""What a run has used, in all and by role (RUN-19, AGT-4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.agents.usage import Usage
from aiflow.domain.run_summary import RoleSpent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.domain.agents.answers import Role
    from aiflow.domain.runs.run import Run


def spent(run: Run, role: Role, used: Usage) -> Run:
    """A role used something up."""
    roles = {**run.roles, role.value: run.roles.get(role.value, Usage()) + used}
    return replace(run, usage=run.usage + used, roles=roles)


def rest_of(total: Usage, roles: Mapping[str, Usage]) -> Usage:
    """Return what no role used: the time of tests and set-up, and what older versions recorded without roles."""
    known = sum(roles.values(), Usage())
    return Usage(
        max(0, total.calls - known.calls),
        max(0, total.input_tokens - known.input_tokens),
        max(0, total.cached_tokens - known.cached_tokens),
        max(0, total.output_tokens - known.output_tokens),
        max(0.0, round(total.cost_usd - known.cost_usd, 6)),
        max(0.0, round(total.seconds - known.seconds, 3)),
    )


def spent_by_role(roles: Mapping[str, Usage]) -> tuple[RoleSpent, ...]:
    """Sum up what each role used, as lists of runs count it."""
    return tuple(RoleSpent(role, used.calls, used.tokens, used.cost_usd, used.seconds) for role, used in roles.items())
