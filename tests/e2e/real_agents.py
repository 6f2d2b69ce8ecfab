"""The real coding agents, and a home of their own that points them to a model on loopback: no key, no network.

`claude` and `codex` come from PyPI, `opencode` from npm (see the Makefile); none of them is a fake of ours.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

# What stands for a key. It must appear nowhere but in the programs' own files.
STUB_KEY = "stub-key-9f31c0"
MODEL = "stub-model"
# Nothing answers there, and the programs' updates, plugins and statistics fail at once.
NO_NETWORK = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}
_NPM = Path(sys.prefix, "npm/node_modules")


def _of_package(name: str, path: str) -> Path:
    """Find a file of an installed package without importing it."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.submodule_search_locations, f"{name} is missing: make .venv/.dev"
    return Path(next(iter(spec.submodule_search_locations)), path)


def claude() -> Path:
    """The real `claude`."""
    return _of_package("claude_agent_sdk", "_bundled/claude")


def codex() -> Path:
    """The real `codex`."""
    return _of_package("codex_cli_bin", "bin/codex")


def opencode() -> Path:
    """The real `opencode`; pinned for Linux on x86-64, elsewhere the one of the PATH."""
    pinned = _NPM / "opencode-linux-x64-baseline/bin/opencode"
    found = pinned if pinned.exists() else shutil.which("opencode")
    if found is None:
        pytest.skip("opencode is pinned for Linux on x86-64 only, and there is none on the PATH")
    return Path(found)


PROGRAMS = {"claude": claude, "codex": codex, "opencode": opencode}


class RealHome:
    """A user's home in which real agents are installed, set up, and logged in to a model on loopback.

    `environ` is a whole environment: a PATH with the programs asked for in front, HOME, and nothing of the real user's.
    Keys and addresses are in the programs' own files, so that aiflow need not pass them on.
    """

    def __init__(self, folder: Path, url: str, *programs: str) -> None:
        self.folder = folder
        self.url = url
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        self.environ = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "XDG_STATE_HOME": str(folder / ".local/state"),
            "XDG_DATA_HOME": str(folder / ".local/share"),
            "XDG_CACHE_HOME": str(folder / ".cache"),
            **NO_NETWORK,
        }
        for name in programs:
            self.install(name)

    def leave_only(self, *programs: str) -> None:
        """Let nothing be on the PATH but what is installed here and these programs of the system: no agent of ours."""
        for name in programs:
            found = shutil.which(name)
            assert found is not None, name
            (self.bin / name).symlink_to(found)
        self.environ["PATH"] = str(self.bin)

    def install(self, name: str) -> Path:
        """Put a program on the PATH, with its settings."""
        link = self.bin / name
        link.symlink_to(PROGRAMS[name]())
        {"claude": self._set_up_claude, "codex": self._set_up_codex, "opencode": self._set_up_opencode}[name]()
        return link

    def _set_up_claude(self, key: str = "ANTHROPIC_API_KEY") -> None:
        """As a user does who has a gateway: everything is in claude's own settings, nothing in the environment."""
        env = {
            "ANTHROPIC_BASE_URL": self.url,
            key: STUB_KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ENABLE_TOOL_SEARCH": "false",
        }
        self.write(".claude/settings.json", json.dumps({"env": env}, indent=1))

    def subscribe_claude(self) -> None:
        """Log claude in with a subscription in place of a key: only then does it know of a used-up quota."""
        self._set_up_claude("CLAUDE_CODE_OAUTH_TOKEN")

    def _set_up_codex(self) -> None:
        """As a user does who has a provider of their own, with a key that codex keeps."""
        self.write(".codex/auth.json", json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": STUB_KEY}))
        self.write(
            ".codex/config.toml",
            f"""model = "{MODEL}"
model_provider = "stub"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.stub]
name = "stub"
base_url = "{self.url}/v1"
wire_api = "responses"
requires_openai_auth = true
request_max_retries = 1
stream_max_retries = 1
""",
        )

    def _set_up_opencode(self) -> None:
        """As a user does who has a provider of their own."""
        self.write(".npmrc", "offline=true\n")
        options = {"baseURL": f"{self.url}/v1", "apiKey": STUB_KEY}
        model = {"name": MODEL, "tool_call": True, "limit": {"context": 100_000, "output": 10_000}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "stub",
            "options": options,
            "models": {MODEL: model},
        }
        settings = {"model": f"stub/{MODEL}", "provider": {"stub": provider}, "autoupdate": False, "share": "disabled"}
        self.write(".config/opencode/opencode.json", json.dumps(settings, indent=1))

    def write(self, path: str, text: str) -> Path:
        """Write a file below this home, readable by nobody else."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(0o600)
        return target


def processes_left(marker: str, seconds: float = 3.0) -> list[str]:
    """Name the processes that have a marker (a run id, a home) in their environment, if any are left after a while."""
    until = time.monotonic() + seconds
    while (left := _marked(marker.encode())) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def _marked(marker: bytes) -> list[str]:
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environ = Path(entry.path, "environ").read_bytes()
            command = Path(entry.path, "cmdline").read_bytes()
        except OSError:
            continue
        if marker in environ:
            found.append(f"{entry.name} {command.replace(bytes(1), b' ').decode(errors='replace').strip()}")
    return found


def without_extra(tmp_path: Path) -> str:
    """Return a PYTHONPATH with which Python cannot find the library for ACP, as one without the extra."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'acp' else find(name, *more)\n"
    )
    return str(hidden)
