"""The server as a service of the user (API-1): the texts for systemd and launchd.

One service a checkout, with a name that stays the same. Only the server itself is stopped (`KillMode=process`): it lets
its own children end as they should, and a worker continues.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MOST_NAME = 40
RESTART_SECONDS = 5
START_SECONDS = 120
OWN_MASK = 0o077


class ServiceSpec(NamedTuple):
    """A service: its name, the checkout, the command line and the PATH that it has."""

    name: str
    root: str
    argv: tuple[str, ...]
    path: str
    log: str = ""


def service_name(folder: str, digest: str) -> str:
    """Return the name of a checkout's service: its folder as far as a name can have it, and a unique part."""
    told = re.sub(r"[^A-Za-z0-9_.]+", "-", folder).strip("-.")[:MOST_NAME]
    return f"aiflow-{told or 'project'}-{digest[:8]}"


def systemd_unit(service: ServiceSpec) -> str:
    """Return a unit of systemd's user manager."""
    command = " ".join(_systemd_word(word) for word in service.argv)
    return f"""\
[Unit]
Description=aiflow for {_systemd_text(service.root)}
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=notify
ExecStart={command}
Environment={_systemd_word(f"PATH={service.path}", is_command=False)}
Restart=on-failure
RestartSec={RESTART_SECONDS}
RestartPreventExitStatus=2 3
TimeoutStartSec={START_SECONDS}
KillMode=process
UMask={OWN_MASK:04o}

[Install]
WantedBy=default.target
"""


def launchd_agent(service: ServiceSpec) -> dict[str, object]:
    """Return an agent of launchd, as its property list has it."""
    return {
        "Label": service.name,
        "ProgramArguments": list(service.argv),
        "EnvironmentVariables": {"PATH": service.path},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": RESTART_SECONDS,
        "AbandonProcessGroup": True,
        "Umask": OWN_MASK,
        "StandardOutPath": service.log,
        "StandardErrorPath": service.log,
    }


def _systemd_word(word: str, *, is_command: bool = True) -> str:
    """Quote a word as systemd reads it: escape its specifiers and, in a command, its variables."""
    told = _systemd_text(word.replace("\\", "\\\\").replace('"', '\\"'))
    told = told.replace("$", "$$") if is_command else told
    return f'"{told}"' if re.search(r"[^A-Za-z0-9_./:=@%+,$-]", told) or not told else told


def _systemd_text(text: str) -> str:
    """Write a text in one line, without specifiers."""
    return text.replace("%", "%%").replace("\n", "\\n")
