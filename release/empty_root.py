"""A place that has Python, git, a shell and what these need, and nothing else of this machine.

Where Linux lets us, it is a root folder of its own, entered anew by every command. Elsewhere it is an empty home with
a PATH of three links; then what is read by its full path is still found.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

KERNEL = ("/proc", "/dev")
# A user's own mounts first need a namespace of users; root in a container may have only those, too.
WAYS_IN = (("--mount",), ("--user", "--map-root-user", "--mount"))


class Place(NamedTuple):
    """Where the program is tried out: how to call a command there, its environment, and what the place is."""

    prefix: tuple[str, ...]
    environ: dict[str, str]
    told: str


def empty_place(folder: Path, *, python: str = sys.executable) -> Place:
    """Make a place in which of this machine's files only a folder is seen, under its own name."""
    programs = {"python3": os.path.realpath(python), "git": _program("git"), "sh": _program("sh")}
    home, bin_folder = folder / "home", folder / "only"
    for each in (home, bin_folder):
        each.mkdir()
    environ = {"HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8", "CI": "true"}
    inside = environ | {"PATH": "/usr/bin"}
    for prefix in _prefixes(folder, programs):
        look = ["sh", "-c", 'git --version && python3 -c "import os, ssl; print(*os.listdir(os.sep))"']
        seen = subprocess.run([*prefix, *look], env=inside, cwd=home, capture_output=True, text=True, check=False)
        if seen.returncode == 0:
            assert "etc" not in seen.stdout.split(), f"that is this machine's root: {seen.stdout}"
            return Place(prefix, inside, "in a root folder with only Python, git and sh")
    for name, path in programs.items():
        (bin_folder / name).symlink_to(path)
    return Place((), environ | {"PATH": str(bin_folder)}, "with only Python, git and sh on the PATH")


def _prefixes(folder: Path, programs: dict[str, str]) -> Iterable[tuple[str, ...]]:
    """Give every way into a root folder, the plainest first; none where the system has no such thing."""
    tools = [shutil.which(name) for name in ("unshare", "mount", "chroot")]
    if not sys.platform.startswith("linux") or None in tools:
        return
    unshare, mount, chroot = (str(tool) for tool in tools)
    root = folder.with_name(f"{folder.name}-root")
    templates = Path(programs["git"]).parents[1] / "share/git-core/templates"
    seen = [*KERNEL, str(folder), sysconfig.get_path("stdlib"), _output(programs["git"], "--exec-path")]
    seen += [str(templates)] if templates.is_dir() else []
    _furnish(root, programs, seen)
    script = root / "enter"
    mounts = [f"{mount} --rbind {shlex.quote(each)} {shlex.quote(f'{root}{each}')}" for each in seen]
    inside = """/usr/bin/sh -c 'cd "$0" && exec "$@"' "$PWD" "$@\""""
    script.write_text("\n".join(["set -e", *mounts, f"exec {chroot} {shlex.quote(str(root))} {inside}\n"]))
    for way in WAYS_IN:
        yield (unshare, *way, programs["sh"], str(script))


def _furnish(root: Path, programs: dict[str, str], seen: Sequence[str]) -> None:
    """Copy the programs and the libraries that they load, and make the folders in which the others will be seen."""
    for each in (*seen, "/tmp", "/usr/bin", "/bin"):
        Path(f"{root}{each}").mkdir(parents=True, exist_ok=True)
    for name, path in programs.items():
        _copy(path, root)
        if path != f"/usr/bin/{name}":
            (root / "usr/bin" / name).symlink_to(path)
    (root / "bin/sh").symlink_to("/usr/bin/sh")
    modules = [str(path) for path in Path(sysconfig.get_path("stdlib")).glob("lib-dynload/*.so")]
    installed = [str(path) for path in Path(seen[len(KERNEL)]).rglob("*.so")]
    for library in _libraries([*programs.values(), *modules, *installed]):
        _copy(library, root)


def _libraries(files: Sequence[str]) -> set[str]:
    """Return the shared libraries that programs load."""
    words = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False).stdout.split()
    return {word for word in words if word.startswith("/") and not word.endswith(":")}


def _copy(path: str, root: Path) -> None:
    target = Path(f"{root}{path}")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy(path, target)


def _program(name: str) -> str:
    found = shutil.which(name)
    assert found, f"{name} is not on the PATH"
    return os.path.realpath(found)


def _output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
