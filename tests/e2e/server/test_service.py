"""`aiflow service` with stand-ins for systemctl, loginctl and launchctl, and what a service tells its manager."""

from __future__ import annotations

import os
import plistlib
import signal
import socket
from pathlib import Path

import pytest

from aiflow.adapters.server.service_manager import tell_manager
from aiflow.adapters.services.launchd import LaunchdServices
from aiflow.domain.server.service_unit import ServiceSpec
from aiflow.errors import EnvironmentProblemError
from e2e.bench import Bench
from e2e.up import Up

pytestmark = pytest.mark.spec("API-1")
# Writes down how it was called; fails for what `fails` names.
STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> "{folder}/calls"
if [ -f "{folder}/fails" ] && echo "$*" | grep -q -f "{folder}/fails"; then echo "it is broken" >&2; exit 1; fi
case "$*" in
  *is-active*) if grep -q "user restart" "{folder}/calls"; then echo active; else echo inactive; exit 3; fi ;;
  *Linger*) echo no ;;
  *print*) echo "  state = running" ;;
esac
"""


class Manager:
    """Programs that stand in for those of the system, first in PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name in ("systemctl", "loginctl", "launchctl"):
            (folder / name).write_text(STAND_IN.format(folder=folder))
            (folder / name).chmod(0o755)

    @property
    def environ(self) -> dict[str, str]:
        home = self.folder.parent
        path = f"{self.folder}:{os.environ['PATH']}"
        return {"PATH": path, "HOME": str(home), "XDG_CONFIG_HOME": f"{home}/config"}

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    @property
    def units(self) -> list[Path]:
        return sorted((self.folder.parent / "config/systemd/user").glob("*"))


@pytest.fixture
def manager(bench: Bench, tmp_path: Path) -> Manager:
    """Give a service manager, and let the program find it."""
    made = Manager(tmp_path / "manager")
    bench.aiflow.environ |= made.environ
    return made


def test_a_service_is_installed_looked_at_and_removed(bench: Bench, manager: Manager) -> None:
    assert bench.aiflow.json("service", "status", code=3)["service"]["is_installed"] is False
    printed = bench.aiflow("service", "install", "--print").stdout
    assert manager.units == [], "printing changes nothing"
    told = bench.aiflow("service", "install").stdout
    [unit] = manager.units
    assert unit.read_text() == printed
    assert f"-C {bench.root} up --no-open" in printed
    assert f"Environment=PATH={manager.folder}" in printed
    changing = [call for call in manager.calls if "is-active" not in call and "Linger" not in call]
    assert changing[-3:] == [
        "systemctl --user daemon-reload",
        f"systemctl --user enable {unit.name}",
        f"systemctl --user restart {unit.name}",
    ]
    assert "enable-linger" in told
    state = bench.aiflow.json("service", "status")["service"]
    assert (state["name"], state["is_running"], state["lingers"]) == (unit.stem, True, False)
    bench.aiflow("service", "uninstall")
    assert manager.units == []
    assert f"systemctl --user disable --now {unit.name}" in manager.calls
    assert "not installed" in bench.aiflow("service", "uninstall").stdout


@pytest.mark.parametrize("broken", ["show-environment", None])
def test_without_a_manager_nothing_is_written(bench: Bench, manager: Manager, broken: str | None) -> None:
    if broken:
        (manager.folder / "fails").write_text(broken)
    else:
        bench.aiflow.environ["PATH"] = str(manager.folder.parent / "nothing")
    error = bench.aiflow.json("service", "install", code=3)["error"]
    assert error["reason_code"] == "SERVICE_UNAVAILABLE"
    assert manager.units == []
    assert "[Service]" in bench.aiflow("service", "install", "--print").stdout


def test_a_service_that_does_not_start_is_taken_back(bench: Bench, manager: Manager) -> None:
    (manager.folder / "fails").write_text("restart")
    error = bench.aiflow.json("service", "install", code=3)["error"]
    assert (error["reason_code"], "it is broken" in error["context"]["problem"]) == ("SERVICE_FAILED", True)
    assert manager.units == []


def test_a_server_in_a_terminal_is_in_its_way(bench: Bench, manager: Manager) -> None:
    up = Up(bench)
    assert bench.aiflow.json("service", "install", code=4)["error"]["reason_code"] == "SERVER_RUNNING"
    assert manager.units == []
    up.end()


def test_settings_that_are_wrong_are_said_before_anything_is_installed(bench: Bench, manager: Manager) -> None:
    (bench.root / "aiflow.toml").write_text("nonsense = 1")
    assert bench.aiflow.json("service", "install", code=2)["error"]["reason_code"] == "SETTINGS_INVALID"
    assert manager.units == []


def test_launchd_is_told_the_same(manager: Manager, tmp_path: Path) -> None:
    services = LaunchdServices(manager.environ)
    service = ServiceSpec("aiflow-app-0a", "/a", ("/bin/sh", "up"), "/bin", "/l")
    services.install(service)
    path = tmp_path / "Library/LaunchAgents/aiflow-app-0a.plist"
    assert plistlib.loads(path.read_bytes())["Label"] == "aiflow-app-0a"
    assert f"launchctl bootstrap gui/{os.getuid()} {path}" in manager.calls
    assert services.state("aiflow-app-0a").is_running
    assert services.uninstall("aiflow-app-0a")
    assert not path.exists()
    assert not services.uninstall("aiflow-app-0a")
    (manager.folder / "fails").write_text("bootstrap")
    with pytest.raises(EnvironmentProblemError):
        services.install(service)
    assert not path.exists()


@pytest.mark.parametrize("is_abstract", [False, True])
def test_the_manager_hears_when_it_is_ready_and_when_it_stops(
    bench: Bench, tmp_path: Path, *, is_abstract: bool
) -> None:
    name = f"aiflow-{os.urandom(6).hex()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.settimeout(60)
        heard.bind("\0" + name if is_abstract else name)
        up = Up(bench, NOTIFY_SOCKET="@" + name if is_abstract else name)
        assert heard.recv(100) == b"READY=1"
        up.end(signal.SIGTERM)
        assert heard.recv(100) == b"STOPPING=1"


def test_who_is_not_a_service_tells_nobody(tmp_path: Path) -> None:
    assert not tell_manager({}, "READY=1")
    assert not tell_manager({"NOTIFY_SOCKET": str(tmp_path / "gone")}, "READY=1")
    assert not tell_manager({"NOTIFY_SOCKET": "relative"}, "READY=1")
