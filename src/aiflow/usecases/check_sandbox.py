"""The doctor's look at what confines the agents (DOC-1, SEC): the kernel, a sandbox of their own, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.answers import Role
from aiflow.domain.health import Finding, Health
from aiflow.domain.sandbox import BRING_THEIR_OWN, Sandbox, is_confined

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.usecases.engine import Engine


def check_sandbox(engine: Engine) -> Iterator[Finding]:
    """Say of which roles the kernel confines the agents, which bring a sandbox of their own, and which have none."""
    chosen = engine.settings.for_role
    sandboxes = {role: str(chosen(role, "sandbox")) for role in Role}
    kinds = {role: str(chosen(role, "kind")) for role in Role}
    off = [role for role in Role if sandboxes[role] == Sandbox.OFF]
    own = [role for role in Role if kinds[role] in BRING_THEIR_OWN and role not in off]
    confined = [role for role in Role if is_confined(kinds[role], sandboxes[role])]
    if confined:
        yield _by_the_kernel(engine, confined, is_required=Sandbox.REQUIRED in {sandboxes[role] for role in confined})
    if own:
        told = (("roles", ", ".join(own)), ("kind", kinds[own[0]]))
        yield Finding("sandbox", Health.PASS, None, "sandbox.own", told)
    if off:
        yield Finding("sandbox", Health.WARN, None, "sandbox.off", (("roles", ", ".join(off)),), fix="aiflow settings")


def _by_the_kernel(engine: Engine, confined: list[Role], *, is_required: bool) -> Finding:
    how, roles = engine.workshop.confinement(), ("roles", ", ".join(confined))
    if how is not None:
        return Finding("sandbox", Health.PASS, None, "sandbox.pass", (("how", how), roles))
    if is_required:
        return Finding("sandbox", Health.FAIL, "AGENT_SANDBOX_MISSING", "sandbox.fail", (roles,), fix="aiflow settings")
    return Finding("sandbox", Health.WARN, None, "sandbox.none", (roles,))
