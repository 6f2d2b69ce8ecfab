"""The server of a checkout as a service (API-1): which manager runs services here, and the texts it gets."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiflow.domain.server.service_unit import ServiceSpec
    from aiflow.ports.services import Services

USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"


def services_here() -> Services:
    """Give what manages the user's services on this machine."""
    if sys.platform == "darwin":
        from aiflow.adapters.services.launchd import LaunchdServices

        return LaunchdServices(os.environ)
    from aiflow.adapters.services.systemd import SystemdServices

    return SystemdServices(os.environ)


def service_of(root: str, settings: Sequence[str] = ()) -> ServiceSpec:
    """Describe the service of a checkout: this very program, and the PATH of this moment, where agents are found."""
    from aiflow.domain.server.service_unit import ServiceSpec, service_name

    real = os.path.realpath(root)
    name = service_name(os.path.basename(real), hashlib.sha256(os.fsencode(real)).hexdigest())
    flags = (word for each in settings for word in ("-c", each))
    argv = (os.path.abspath(sys.executable), "-m", "aiflow", "-C", real, *flags, "up", "--no-open")
    path = os.environ.get("PATH") or USUAL_PATH
    return ServiceSpec(name, real, argv, path, os.path.join(real, ".aiflow/server/service.log"))
