"""Build what is released, and use it as people will: `make release`.

The wheel is built from the source package, on a PATH without npm, as distributions do. twine checks both. `uv tool
install` and pipx install the wheel into empty folders, where nothing else of this machine is but Python and git; there
it has to finish the demo, serve the page, and say what the queue lacks. The checksums come last.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from empty_root import empty_place
from try_out import MANUAL, try_out

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
BIN = ROOT / ".venv/bin"
TOOLS = ROOT / ".venv/release/bin"
# One file of each kind that the program reads while it runs.
NEEDED = (
    "py.typed",
    "web/static/vendor/htmx.min.js",
    "web/static/app.css",
    "web/templates/morning.html",
    "messages/ui.v1.ja.json",
    "prompts/implementer.md",
    "demo/ja/requests/TODO-1.md",
)


class RefusedError(Exception):
    """The release is not made, for the reason given."""


def main() -> int:
    """Fill dist/, or say why not."""
    began = time.monotonic()
    try:
        version = agreed_version()
        require_committed()
        shutil.rmtree(DIST, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="aiflow-release-") as folder:
            source, wheel = build(Path(folder))
            check(version, source, wheel)
            print(f"built and checked: {source.name}, {wheel.name}", flush=True)
            for installer in (with_uv, with_pipx):
                place = Path(folder, installer.__name__)
                place.mkdir()
                program = installer(wheel, place)
                said = try_out(program, empty_place(place), version)
                print(f"{installer.__name__.replace('_', ' ')}: {said}", flush=True)
    except (RefusedError, AssertionError) as error:
        print(f"No release: {error}", file=sys.stderr)
        return 1
    sums = write_sums(DIST)
    print(f"aiflow-local {version} is in dist/, made in {time.monotonic() - began:.0f} s; SHA256SUMS:\n{sums}", end="")
    return 0


def agreed_version() -> str:
    """Return the version, on which the package, the program and the changelog have to agree."""
    places = {
        "pyproject.toml": r'^version = "(.+)"$',
        "src/aiflow/__init__.py": r'^__version__ = "(.+)"$',
        "CHANGELOG.md": r"^## (\d\S*)",
    }
    found = {name: re.search(pattern, (ROOT / name).read_text(), re.MULTILINE) for name, pattern in places.items()}
    versions = {name: match[1] if match else "none" for name, match in found.items()}
    if len(set(versions.values())) != 1:
        raise RefusedError("the versions differ: " + ", ".join(f"{name} {value}" for name, value in versions.items()))
    return versions["pyproject.toml"]


def require_committed() -> None:
    """Refuse to release what no commit has."""
    changed = run(["git", "status", "--porcelain"], ROOT).splitlines()
    if changed:
        raise RefusedError(f"not committed: {', '.join(line[3:] for line in changed[:5])}")


def build(folder: Path) -> tuple[Path, Path]:
    """Build the source package, and the wheel from nothing but that."""
    epoch = {"SOURCE_DATE_EPOCH": run(["git", "log", "-1", "--format=%ct"], ROOT).strip()}
    hatchling = [str(BIN / "python"), "-m", "hatchling", "build", "-d", str(DIST), "-t"]
    run([*hatchling, "sdist"], ROOT, epoch)
    (source,) = DIST.glob("*.tar.gz")
    with tarfile.open(source) as packed:
        packed.extractall(folder / "source", filter="data")
    (unpacked,) = (folder / "source").iterdir()
    (folder / "bin").mkdir()
    run([*hatchling, "wheel"], unpacked, epoch | {"PATH": str(folder / "bin")})
    (wheel,) = DIST.glob("*.whl")
    return source, wheel


def check(version: str, source: Path, wheel: Path) -> None:
    """See that both are what a registry takes, and that the wheel lacks nothing."""
    run([str(TOOLS / "twine"), "check", "--strict", str(source), str(wheel)], ROOT)
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    needed = [f"aiflow/{name}" for name in NEEDED]
    # Hatchling leaves out without a word what is not there to be shared.
    needed.append(f"aiflow_local-{version}.data/data/{MANUAL}")
    missing = [name for name in needed if name not in names]
    if missing or f"-{version}-" not in wheel.name:
        raise RefusedError(f"{wheel.name} lacks {', '.join(missing) or version}")


def with_uv(wheel: Path, folder: Path) -> Path:
    """Install the wheel as `uv tool install` does for a user."""
    places = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    run([str(BIN / "uv"), "tool", "install", "--quiet", "--python", sys.executable, str(wheel)], folder, places)
    return folder / "bin/aiflow"


def with_pipx(wheel: Path, folder: Path) -> Path:
    """Install the wheel as pipx does for a user."""
    places = {
        "PIPX_HOME": str(folder / "pipx"),
        "PIPX_BIN_DIR": str(folder / "bin"),
        "PIPX_MAN_DIR": str(folder / "man"),
    }
    run([str(TOOLS / "pipx"), "install", "--quiet", "--python", sys.executable, str(wheel)], folder, places)
    return folder / "bin/aiflow"


def write_sums(folder: Path) -> str:
    """Write SHA256SUMS, which `sha256sum --check` reads."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (folder / "SHA256SUMS").write_text(sums)
    return sums


def run(argv: Sequence[str], folder: Path, environ: Mapping[str, str] | None = None) -> str:
    """Run a program to its end and return what it printed."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(argv, cwd=folder, env=kept | dict(environ or {}), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RefusedError(f"{' '.join(argv)}\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
