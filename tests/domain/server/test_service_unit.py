"""The server as a service (API-1): what systemd and launchd are told."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from aiflow.domain.server.service_unit import ServiceSpec, launchd_agent, service_name, systemd_unit

pytestmark = pytest.mark.spec("API-1")
SERVICE = ServiceSpec("aiflow-app-0a", "/home/a/app", ("/usr/bin/python3", "-m", "aiflow", "up"), "/bin:/usr/bin", "/l")


def test_a_unit_says_everything_that_matters() -> None:
    lines = systemd_unit(SERVICE).splitlines()
    for wanted in (
        "Type=notify",
        "ExecStart=/usr/bin/python3 -m aiflow up",
        "Environment=PATH=/bin:/usr/bin",
        "Restart=on-failure",
        "RestartPreventExitStatus=2 3",
        "KillMode=process",
        "UMask=0077",
        "WantedBy=default.target",
    ):
        assert wanted in lines


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("/plain/path", "/plain/path"),
        ("/with blank", '"/with blank"'),
        ("100%", "100%%"),
        ("$HOME", "$$HOME"),
        ('say "x"', '"say \\"x\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("", '""'),
        ("日本", '"日本"'),
    ],
)
def test_words_are_quoted_as_systemd_reads_them(word: str, written: str) -> None:
    unit = systemd_unit(SERVICE._replace(argv=("/usr/bin/python3", word)))
    assert f"ExecStart=/usr/bin/python3 {written}\n" in unit


def test_systemd_itself_takes_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("there is no systemd-analyze")
    hostile = SERVICE._replace(root="/a b/100%/$x", argv=("/bin/sh", "-C", "/a b/100%/$x", "up"), path="/a b:/bin")
    path = tmp_path / "aiflow-x.service"
    path.write_text(systemd_unit(hostile))
    done = subprocess.run([program, "verify", "--user", str(path)], capture_output=True, text=True, check=False)
    assert "aiflow-x.service:" not in done.stderr, done.stderr


def test_an_agent_of_launchd_is_started_again_only_after_a_failure() -> None:
    agent = launchd_agent(SERVICE)
    assert (agent["KeepAlive"], agent["RunAtLoad"], agent["Umask"]) == ({"SuccessfulExit": False}, True, 0o077)
    assert agent["ProgramArguments"] == list(SERVICE.argv)


@pytest.mark.parametrize(
    ("folder", "name"),
    [("app", "aiflow-app-01234567"), ("my app", "aiflow-my-app-01234567"), ("日本", "aiflow-project-01234567")],
)
def test_a_name_stays_and_tells_checkouts_apart(folder: str, name: str) -> None:
    assert service_name(folder, "0123456789") == name
