"""Services of systemd's user manager."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from aiflow.adapters.services.manager_calls import ManagerCalls, write_service_file
from aiflow.domain.server.service_unit import ServiceSpec, systemd_unit
from aiflow.errors import EnvironmentProblemError
from aiflow.ports.services import ServiceState

if TYPE_CHECKING:
    from collections.abc import Mapping


class SystemdServices:
    """The user's units."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        base = environ.get("XDG_CONFIG_HOME", "")
        home = Path(environ.get("HOME") or os.path.expanduser("~"))
        self._folder = (Path(base) if os.path.isabs(base) else home / ".config") / "systemd/user"
        self._systemctl = ManagerCalls("systemctl", environ)
        self._loginctl = ManagerCalls("loginctl", environ)

    def lack(self) -> str | None:
        """Say what is missing: systemd, or its user manager, as in most containers."""
        if not self._systemctl.is_there():
            return "systemctl"
        code, said = self._systemctl.ask("--user", "show-environment")
        return None if code == 0 else said or "systemctl --user"

    def text(self, service: ServiceSpec) -> str:
        """Return the unit."""
        return systemd_unit(service)

    def install(self, service: ServiceSpec) -> None:
        """Write the unit, enable and start it; a unit that cannot be started is taken back."""
        path = self._path(service.name)
        before = write_service_file(path, self.text(service).encode())
        unit = path.name
        try:
            self._systemctl.do("--user", "daemon-reload")
            self._systemctl.do("--user", "enable", unit)
            self._systemctl.do("--user", "restart", unit)
        except EnvironmentProblemError:
            if before is None:
                self.uninstall(service.name)
            raise

    def uninstall(self, name: str) -> bool:
        """Disable, stop and remove a unit."""
        path = self._path(name)
        if not path.exists():
            return False
        self._systemctl.ask("--user", "disable", "--now", path.name)
        path.unlink(missing_ok=True)
        self._systemctl.ask("--user", "daemon-reload")
        return True

    def state(self, name: str) -> ServiceState:
        """Look at a unit."""
        path = self._path(name)
        code, said = self._systemctl.ask("--user", "is-active", path.name) if path.exists() else (3, "")
        return ServiceState(name, str(path), path.exists(), code == 0, said, self._lingers())

    def _lingers(self) -> bool | None:
        """Return whether the user's services run without the user being logged in."""
        code, said = self._loginctl.ask("show-user", str(os.getuid()), "--property=Linger", "--value")
        return said == "yes" if code == 0 and said in ("yes", "no") else None

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.service"
