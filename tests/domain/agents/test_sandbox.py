"""Whose agents the kernel confines (AGT-4, SEC)."""

from __future__ import annotations

import pytest

from aiflow.domain.agents.programs import Sandbox, is_confined
from aiflow.settings import BY_NAME


@pytest.mark.spec("AGT-4", "SEC")
@pytest.mark.parametrize(
    ("kind", "auto", "required"),
    [
        ("claude-code", True, True),
        ("acp", True, True),
        ("codex", False, False),
        ("command", False, True),
        ("demo", False, True),
    ],
)
def test_who_is_confined(kind: str, auto: bool, required: bool) -> None:
    assert (is_confined(kind, "auto"), is_confined(kind, "required"), is_confined(kind, "off")) == (
        auto,
        required,
        False,
    )


def test_every_kind_and_every_choice_of_the_settings_is_known() -> None:
    assert set(BY_NAME["agent.kind"].choices) == {"claude-code", "acp", "codex", "command", "demo"}
    assert BY_NAME["agent.sandbox"].choices == tuple(Sandbox)
