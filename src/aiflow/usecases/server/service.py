"""Run the server of a checkout as a service of the user (API-1): install it, remove it, look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.errors import ConflictError, EnvironmentProblemError

if TYPE_CHECKING:
    from aiflow.domain.server.service_unit import ServiceSpec
    from aiflow.ports.server import ServerRecord
    from aiflow.ports.services import Services, ServiceState


def install_service(services: Services, service: ServiceSpec, running: ServerRecord | None) -> ServiceState:
    """Install and start the service; refused where nothing manages services, or a server is in its way."""
    _require_manager(services)
    state = services.state(service.name)
    if running is not None and not state.is_running:
        raise ConflictError(reason_code="SERVER_RUNNING", url=running.url, pid=running.pid)
    services.install(service)
    return services.state(service.name)


def uninstall_service(services: Services, name: str) -> bool:
    """Stop and remove the service; False if there is none."""
    if not services.state(name).is_installed:
        return False
    _require_manager(services)
    return services.uninstall(name)


def _require_manager(services: Services) -> None:
    """Refuse where nothing manages services; then nothing has been written."""
    lack = services.lack()
    if lack is not None:
        raise EnvironmentProblemError(reason_code="SERVICE_UNAVAILABLE", problem=lack)
