"""What identifies this machine, this boot of it and this container (LCK-1, QUE-7).

Where there is no such thing (macOS has no pid namespaces), None.
"""

from __future__ import annotations

import hashlib
import os
import re

PROC = "/proc"
# The kernel's own number for the namespace of everything that is in no container (PROC_PID_INIT_INO).
OUTERMOST = "4026531836"
_MACHINE_ID = re.compile(r"[0-9a-f]{32}")


def host_name() -> str:
    """Return this machine's name."""
    return os.uname().nodename


def boot_id() -> str | None:
    """Return what identifies this boot of the machine."""
    try:
        with open(f"{PROC}/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip() or None
    except OSError:
        return None


def pid_namespace() -> str | None:
    """Return what identifies the pid namespace that we use."""
    try:
        return str(os.stat(f"{PROC}/self/ns/pid").st_ino)
    except OSError:
        return None


def machine_id() -> str | None:
    """Return what distinguishes this machine from others of its name, even after a reboot if possible.

    Containers of one image may share the file, so in one only this boot and namespace count; WSL's are machines of
    their own. The id itself is not to be shown to others (machine-id(5)): its hash is.
    """
    namespace = pid_namespace()
    is_container = namespace not in (None, OUTERMOST) and "microsoft" not in os.uname().release.lower()
    whole = f"{boot_id()} {namespace}" if is_container else _machine_file()
    return hashlib.sha256(f"aiflow {whole}".encode()).hexdigest()[:16] if whole else None


def _machine_file() -> str | None:
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            found = file.read(100).strip()
    except (OSError, UnicodeDecodeError):
        return None
    return found if _MACHINE_ID.fullmatch(found) else None
