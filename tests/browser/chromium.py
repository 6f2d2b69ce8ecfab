"""The browser of the tests: the machine's own Chromium, Debian's if it may be installed, else one from npm.

Run as a program (`make .venv/.browser`), it sees to it that there is one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ROOT = Path(__file__).parents[2]
PINNED = Path(__file__).parent / "npm"
FETCHED = ROOT / ".venv/browser"
APT = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "chromium", "fonts-noto-cjk")
NPM = ("npm", "ci", "--ignore-scripts", "--loglevel=error", "--no-fund", "--no-audit", "--no-update-notifier")
# Unpacks the program below TMPDIR, and says where it is and what it is to be started with.
UNPACK = (
    "import('@sparticuz/chromium').then(async ({ default: it }) => "
    "console.log(JSON.stringify({ path: await it.executablePath(), args: it.args })))"
)
MISSING = (
    "No browser for the tests: chromium, chromium-browser and google-chrome are not on the PATH. Install one (Debian: "
    "apt install chromium fonts-noto-cjk; macOS: put Google Chrome's program on the PATH), or run `make .venv/.browser` "
    "with npm and Node.js 20 on 64-bit Linux."
)
# What the one from npm asks for and the tests must not have: walls between sites are down, one crash ends all windows.
DROPPED = (
    *("--headless", "--host-resolver-rules", "--single-process", "--disable-web-security"),
    *("--allow-running-insecure-content", "--disable-site-isolation-trials", "--disable-features"),
)
# No sandbox: containers have none. Nothing but loopback has an address: not even a page with a mistake reaches out.
ARGS = ("--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1")


class Chromium(NamedTuple):
    """A browser: its program, and what it is started with."""

    path: str
    args: tuple[str, ...] = ARGS


def find() -> Chromium | None:
    """Return the browser of this machine, or the one that was fetched."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return Chromium(path)
    record = FETCHED / "chromium.json"
    if not record.is_file():
        return None
    told: dict[str, Any] = json.loads(record.read_text("utf-8"))
    own = [arg for arg in told["args"] if not arg.startswith(DROPPED)]
    return Chromium(told["path"], (*own, *ARGS)) if Path(told["path"]).is_file() else None


def install() -> bool:
    """Install Debian's where that is allowed, else fetch one; tells whether there is one now."""
    if find() is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install_with_apt()
    if find() is None and shutil.which("npm") and shutil.which("node"):
        _fetch()
    return find() is not None


def _install_with_apt() -> None:
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (APT, ("apt-get", "update", "--quiet"), APT):  # lists may be missing or old: then once more
        if subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=False).returncode == 0 and find():
            return


def _fetch() -> None:
    FETCHED.mkdir(parents=True, exist_ok=True)
    for path in PINNED.glob("package*.json"):
        shutil.copy(path, FETCHED)
    environ = os.environ | {"TMPDIR": str(FETCHED)}
    if subprocess.run(NPM, cwd=FETCHED, stdout=subprocess.DEVNULL, check=False).returncode == 0:
        command = ("node", "-e", UNPACK)
        done = subprocess.run(command, cwd=FETCHED, env=environ, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode == 0:
            (FETCHED / "chromium.json").write_text(done.stdout, "utf-8")


def main() -> int:
    """Have a browser, or say what to install."""
    began = time.monotonic()
    if not install():
        print(MISSING)
        return 3
    if time.monotonic() - began > 1:
        print(f"Browser for the tests: {getattr(find(), 'path', '')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
