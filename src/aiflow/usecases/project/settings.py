"""List settings (CFG): those that are asked for, or that somebody set, with what counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.settings import TABLE, Settings, Source

if TYPE_CHECKING:
    from collections.abc import Collection

    from aiflow.settings import Setting
    from aiflow.settings.table import SettingValue

_ROLES = "agent.roles."


class SettingLine(NamedTuple):
    """One setting: what it is, its own value, the one that counts, and where that comes from."""

    row: Setting
    value: SettingValue
    effective: SettingValue
    source: Source


def list_settings(
    settings: Settings, names: Collection[str] = (), *, only_changed: bool = False
) -> tuple[SettingLine, ...]:
    """List settings by name or section; without names all, but a role's own keys only where they are set."""
    wanted = (row for row in TABLE if _is_wanted(row, settings, names, only_changed=only_changed))
    return tuple(
        SettingLine(row, settings.values[row.name], _effective(row, settings), settings.sources[row.name])
        for row in wanted
    )


def _is_wanted(row: Setting, settings: Settings, names: Collection[str], *, only_changed: bool) -> bool:
    """Choose the rows to show; a role's own keys only if they are set or asked for."""
    is_changed = settings.sources[row.name] is not Source.DEFAULT
    if names:
        asked = [name for name in names if row.name == name or row.name.startswith(f"{name}.")]
        return any(is_changed or name != "agent" or not row.name.startswith(_ROLES) for name in asked)
    return is_changed or not (only_changed or row.name.startswith(_ROLES))


def _effective(row: Setting, settings: Settings) -> SettingValue:
    """Return what counts: a role's own key that is not set is that of all roles."""
    if settings.sources[row.name] is Source.DEFAULT and row.name.startswith(_ROLES):
        return settings.values[f"agent.{row.name.rpartition('.')[2]}"]
    return settings.values[row.name]
