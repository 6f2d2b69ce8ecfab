"""What manages services of the user: systemd, launchd, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from aiflow.domain.server.service_unit import ServiceSpec


class ServiceState(NamedTuple):
    """The state of a service: `state` is the manager's own word; `lingers` is None if that is not known.

    A service that does not linger ends when the user logs out, and does not start with the machine.
    """

    name: str
    path: str
    is_installed: bool
    is_running: bool
    state: str = ""
    lingers: bool | None = None


class Services(Protocol):
    """The services of one user."""

    def lack(self) -> str | None:
        """Say what is missing here to manage services; None if nothing is."""

    def text(self, service: ServiceSpec) -> str:
        """Return the text that the manager would get."""

    def install(self, service: ServiceSpec) -> None:
        """Install a service and start it, now and with the machine."""

    def uninstall(self, name: str) -> bool:
        """Stop and remove a service; False if there is none."""

    def state(self, name: str) -> ServiceState:
        """Look at a service; changes nothing."""
