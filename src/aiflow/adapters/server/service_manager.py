"""What a service of `Type=notify` reports to systemd: that it is ready, and that it is about to end."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "NOTIFY_SOCKET"


def tell_manager(environ: Mapping[str, str], state: str) -> bool:
    """Report a state to the service manager (`READY=1`); False if there is none, or it does not listen."""
    address = environ.get(VARIABLE, "")
    if not address.startswith(("/", "@")):
        return False
    target = "\0" + address[1:] if address.startswith("@") else address  # a name without a file
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.settimeout(1.0)
        made.sendto(state.encode(), target)
        return True
    return False
