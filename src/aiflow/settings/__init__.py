"""Settings (CFG): one frozen value from flags, environment, file and defaults, by the table of names and limits."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from aiflow.settings.table import (
    BY_NAME as BY_NAME,
)
from aiflow.settings.table import (
    ENV_PREFIX as ENV_PREFIX,
)
from aiflow.settings.table import (
    FILE_NAME as FILE_NAME,
)
from aiflow.settings.table import (
    ROLES as ROLES,
)
from aiflow.settings.table import (
    SECTIONS as SECTIONS,
)
from aiflow.settings.table import (
    TABLE as TABLE,
)
from aiflow.settings.table import (
    Setting as Setting,
)
from aiflow.settings.table import (
    SettingKind as SettingKind,
)
from aiflow.settings.table import (
    SettingValue as SettingValue,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class Source(StrEnum):
    """Where a value came from, weakest first."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


class Settings(NamedTuple):
    """Every setting's value, and where each came from."""

    values: Mapping[str, SettingValue]
    sources: Mapping[str, Source]

    def text(self, name: str) -> str:
        """Return a text setting."""
        value = self.values[name]
        assert isinstance(value, str), name
        return value

    def integer(self, name: str) -> int:
        """Return a whole-number setting."""
        value = self.values[name]
        assert isinstance(value, int), name
        return value

    def number(self, name: str) -> float:
        """Return a number setting."""
        value = self.values[name]
        assert isinstance(value, (int, float)), name
        return float(value)

    def flag(self, name: str) -> bool:
        """Return a yes-or-no setting."""
        return self.values[name] is True

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list setting."""
        value = self.values[name]
        assert isinstance(value, tuple), name
        return value

    @property
    def requests_dir(self) -> str:
        """The folder of the request files below the root, without a slash at its end (REQ-2)."""
        return self.text("requests_dir").rstrip("/")

    def with_flags(self, flags: Mapping[str, SettingValue]) -> Settings:
        """Return the settings of one call, for which a flag says more."""
        return Settings({**self.values, **flags}, {**self.sources, **dict.fromkeys(flags, Source.FLAG)})

    def for_role(self, role: str, key: str) -> SettingValue:
        """Return a key of `[agent]` as it holds for one role: its own if set, else the general one."""
        own = f"agent.roles.{role}.{key}"
        return self.values[own if self.sources[own] is not Source.DEFAULT else f"agent.{key}"]


def settle(layers: Mapping[Source, Mapping[str, SettingValue]]) -> Settings:
    """Lay the sources over the defaults: flag over environment over file over default."""
    values: dict[str, SettingValue] = {setting.name: setting.default for setting in TABLE}
    sources = dict.fromkeys(values, Source.DEFAULT)
    for source in Source:
        for name, value in layers.get(source, {}).items():
            values[name], sources[name] = value, source
    return Settings(values, sources)
