"""What agent programs must be able to write besides the worktree (AGT-4): their own folders, and as little as works.

Found by running the real programs under the kernel's confinement:

    program   writes                                  and does without
    claude    its configuration folder: sessions,     ~/.claude.json (counters; given up without a word)
              the login it renews every few hours
    gemini    ~/.gemini: sessions, login, settings
    opencode  its data, state and cache folders       ~/.config/opencode, which only has to be there
    codex     (brings a sandbox of its own, which cannot work inside another one)

For any other program, the existing folders that carry its name.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Programs that only start another one, which their first plain argument names.
_STARTERS = frozenset({"node", "npx", "bunx", "pnpx", "bun", "deno", "uvx", "pipx", "env", "python", "python3"})
_SUBCOMMANDS = frozenset({"run", "exec", "x", "dlx"})
# Packages and bridges that are called otherwise than the program they bring.
_ALIASES = {
    "claude-code": "claude",
    "claude-code-acp": "claude",
    "claude-agent-acp": "claude",
    "codex-acp": "codex",
    "gemini-cli": "gemini",
    "opencode-ai": "opencode",
}


def own_folders(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the folders a program keeps for itself; None: it brings its own sandbox and must not be confined.

    Those it cannot start without are made. `environ` is what the program gets.
    """
    name = program_name(argv)
    if name == "codex":
        return None
    if name == "claude":
        return (_made(claude_home(environ)),)
    home = home_of(environ)
    if name == "gemini":
        return (_made(os.path.join(home, ".gemini")),)
    if name == "opencode":
        _made(os.path.join(_base(environ, home, "CONFIG"), name))
        return tuple(_made(os.path.join(_base(environ, home, kind), name)) for kind in ("DATA", "STATE", "CACHE"))
    return tuple(filter(os.path.isdir, _named(name, environ, home)))


def home_of(environ: Mapping[str, str]) -> str:
    """Return the user's home."""
    return environ.get("HOME") or os.path.expanduser("~")


def claude_home(environ: Mapping[str, str]) -> str:
    """Return the folder of claude's settings, login and sessions."""
    return environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home_of(environ), ".claude")


def codex_home(environ: Mapping[str, str]) -> str:
    """Return the folder of codex's settings, login and sessions."""
    return environ.get("CODEX_HOME") or os.path.join(home_of(environ), ".codex")


def program_name(argv: Sequence[str]) -> str:
    """Return what a program is called, without its folder, version and ending; a mere launcher is skipped."""
    for word in argv:
        name = os.path.basename(word.rstrip("/")).partition("@")[0]
        name = name.removesuffix(".js").removesuffix(".mjs").removesuffix(".py")
        if word.startswith("-") or "=" in word or name in _STARTERS or name in _SUBCOMMANDS:
            continue
        return _ALIASES.get(name, name)
    return ""


def _named(name: str, environ: Mapping[str, str], home: str) -> Iterator[str]:
    if name:
        yield os.path.join(home, f".{name}")
        yield from (os.path.join(_base(environ, home, kind), name) for kind in ("DATA", "STATE", "CACHE"))


_DEFAULTS = {"CONFIG": ".config", "DATA": ".local/share", "STATE": ".local/state", "CACHE": ".cache"}


def _base(environ: Mapping[str, str], home: str, kind: str) -> str:
    """Return where the user's programs keep a kind of files (XDG)."""
    given = environ.get(f"XDG_{kind}_HOME", "")
    return given if os.path.isabs(given) else os.path.join(home, _DEFAULTS[kind])


def _made(folder: str) -> str:
    """Make a folder if it is missing; where that cannot be, the program will say so better than we could."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return folder
    return folder
