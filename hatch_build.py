"""What a package contains beside the code: the page's libraries, fetched by npm as its lock file pins them.

`make setup` runs it as a program. A wheel or source package that would lack them is not built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
PINNED = ROOT / "src/aiflow/web/npm"
LOCK = PINNED / "package-lock.json"
VENDOR = ROOT / "src/aiflow/web/static/vendor"
FILES = {"htmx.min.js": "htmx.org/dist/htmx.min.js"}
NPM = ("npm", "ci", "--ignore-scripts", "--loglevel=error", "--no-fund", "--no-audit", "--no-update-notifier")
WITHOUT = "AIFLOW_BUILD_WITHOUT_NPM"


class PackageHook(BuildHookInterface[Any]):
    """Has the libraries in every package, or no package."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, _build_data: dict[str, Any]) -> None:
        """Fetch what is missing; `version` is "editable" where the clone itself is used."""
        if version == "editable" or is_there() or os.environ.get(WITHOUT):
            return
        problem = fetch()
        if problem:
            raise SystemExit(
                f"The page's libraries are missing from src/aiflow/web/static/vendor: {problem}. "
                f"Install npm and build again, or set {WITHOUT}=1 to build a package whose page does not update itself."
            )


def is_there() -> bool:
    """Tell whether everything is there: in a source package as it came, in a clone as today's lock file pins it."""
    found = [VENDOR / name for name in FILES if (VENDOR / name).is_file()]
    if len(found) < len(FILES) or (ROOT / "PKG-INFO").is_file():
        return len(found) == len(FILES)
    return all(path.stat().st_mtime >= LOCK.stat().st_mtime for path in found)


def fetch() -> str:
    """Fetch the libraries; returns why that was impossible, or nothing."""
    if shutil.which("npm") is None:
        return "npm is not on the PATH"
    with tempfile.TemporaryDirectory() as folder:
        for path in (PINNED / "package.json", LOCK):
            shutil.copy(path, folder)
        done = subprocess.run(NPM, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"npm failed ({(done.stderr.strip().splitlines() or ['no reason given'])[0]})"
        VENDOR.mkdir(exist_ok=True)
        for name, source in FILES.items():
            new = VENDOR / f".{name}.{os.getpid()}"
            shutil.copyfile(Path(folder, "node_modules", source), new)
            new.replace(VENDOR / name)
    return ""


def main() -> int:
    """Fetch the libraries into the clone; say what does not work without them."""
    problem = fetch()
    if problem:
        print(f"The page will not update itself: {problem}. Everything else works; with npm, run `make setup` again.")
    return bool(problem)


if __name__ == "__main__":
    sys.exit(main())
