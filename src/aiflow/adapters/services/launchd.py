"""Services of launchd, on macOS."""

from __future__ import annotations

import os
import plistlib
from pathlib import Path
from typing import TYPE_CHECKING

from aiflow.adapters.services.manager_calls import ManagerCalls, write_service_file
from aiflow.domain.server.service_unit import ServiceSpec, launchd_agent
from aiflow.errors import EnvironmentProblemError
from aiflow.ports.services import ServiceState

if TYPE_CHECKING:
    from collections.abc import Mapping


class LaunchdServices:
    """The user's agents."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._folder = Path(environ.get("HOME") or os.path.expanduser("~")) / "Library/LaunchAgents"
        self._launchctl = ManagerCalls("launchctl", environ)
        self._domain = f"gui/{os.getuid()}"

    def lack(self) -> str | None:
        """Say what is missing."""
        return None if self._launchctl.is_there() else "launchctl"

    def text(self, service: ServiceSpec) -> str:
        """Return the property list."""
        return plistlib.dumps(launchd_agent(service)).decode()

    def install(self, service: ServiceSpec) -> None:
        """Write the property list and load it; one that cannot be loaded is taken back."""
        path = self._path(service.name)
        self._launchctl.ask("bootout", f"{self._domain}/{service.name}")
        before = write_service_file(path, self.text(service).encode())
        try:
            self._launchctl.do("bootstrap", self._domain, str(path))
        except EnvironmentProblemError:
            if before is None:
                path.unlink(missing_ok=True)
            raise

    def uninstall(self, name: str) -> bool:
        """Unload and remove an agent."""
        path = self._path(name)
        if not path.exists():
            return False
        self._launchctl.ask("bootout", f"{self._domain}/{name}")
        path.unlink(missing_ok=True)
        return True

    def state(self, name: str) -> ServiceState:
        """Look at an agent."""
        path = self._path(name)
        _, said = self._launchctl.ask("print", f"{self._domain}/{name}") if path.exists() else (1, "")
        told = next(
            (line.split("=")[1].strip() for line in said.splitlines() if line.strip().startswith("state =")), ""
        )
        return ServiceState(name, str(path), path.exists(), told == "running", told)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.plist"
