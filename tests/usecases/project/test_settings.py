"""Listing settings (CFG): all, some, or what somebody set; a role's own keys only where they matter."""

from __future__ import annotations

import pytest

from aiflow.settings import TABLE, Settings, Source, settle
from aiflow.usecases.project.settings import SettingLine, list_settings
from aiflow.usecases.shapes.project import settings_shape

pytestmark = pytest.mark.spec("CFG")


@pytest.fixture
def settings() -> Settings:
    return settle({Source.FILE: {"agent.kind": "codex"}, Source.FLAG: {"agent.roles.qa.kind": "claude"}})


def names(lines: tuple[SettingLine, ...]) -> list[str]:
    return [line.row.name for line in lines]


def test_all_settings_are_listed_and_of_the_roles_what_is_set(settings: Settings) -> None:
    usual = [row.name for row in TABLE if not row.name.startswith("agent.roles.") or row.name == "agent.roles.qa.kind"]
    assert names(list_settings(settings)) == usual
    assert names(list_settings(settings, only_changed=True)) == ["agent.kind", "agent.roles.qa.kind"]


def test_settings_are_asked_for_by_name_or_section(settings: Settings) -> None:
    assert names(list_settings(settings, ["git.push"])) == ["git.push"]
    assert all(name.startswith("limits.") for name in names(list_settings(settings, ["limits"])))
    assert "agent.roles.qa.kind" in names(list_settings(settings, ["agent"]))
    assert "agent.roles.planner.kind" not in names(list_settings(settings, ["agent"]))
    (line,) = list_settings(settings, ["agent.roles.planner.kind"])
    assert (line.value, line.effective, line.source) == (line.row.default, "codex", Source.DEFAULT)


def test_their_shape(settings: Settings) -> None:
    shape = settings_shape(list_settings(settings, ["agent.kind"]))
    (entry,) = shape["settings"]
    assert list(entry) == ["name", "value", "default", "source", "environment"]
    assert (entry["value"], entry["source"], entry["environment"]) == ("codex", "file", "AIFLOW_AGENT_KIND")
